import { useState } from "preact/hooks";
import { type ApiError, asError, request } from "../lib/api";
import { Logo } from "../ui/icons";

/** Asks the server for a session; the token itself is not kept. */
export async function signIn(token: string): Promise<void> {
  await request("api/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
}

export function SignIn({ done }: { done: () => void }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      await signIn(token.trim());
      done();
    } catch (failure) {
      setError(asError(failure));
    }
  };
  return (
    <form class="signin card" onSubmit={submit}>
      <Logo />
      <h1>Sign in</h1>
      <p class="muted">This server asks for its token. It is in the file of <code>--token-file</code>, or in the variable <code>TERCET_TOKEN</code> of the server.</p>
      <label for="token">Token</label>
      <input id="token" class="input" type="password" autocomplete="current-password" value={token} onInput={(event) => setToken(event.currentTarget.value)} />
      {error && (
        <p class="error-text" role="alert">
          {error.status === 401 ? "The token is wrong." : error.message}
        </p>
      )}
      <button type="submit" class="button primary" disabled={token.trim() === ""}>
        Sign in
      </button>
    </form>
  );
}
