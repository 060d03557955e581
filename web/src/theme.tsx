// Dark and light: that of the system, unless the user chooses.

import { useState } from "preact/hooks";
import { Icon } from "./ui/icons";

const KEY = "tercet-theme";
const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

function stored(): Theme {
  try {
    const text = localStorage.getItem(KEY);
    return THEMES.find((theme) => theme === text) ?? "auto";
  } catch {
    return "auto";
  }
}

function apply(theme: Theme): void {
  if (theme === "auto") {
    delete document.documentElement.dataset.theme;
  } else {
    document.documentElement.dataset.theme = theme;
  }
}

export function restoreTheme(): void {
  apply(stored());
}

export function ThemeSwitch() {
  const [theme, setTheme] = useState(stored());
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "auto";
  const names: Record<Theme, string> = { auto: "as the system", light: "light", dark: "dark" };
  const choose = () => {
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // Without storage the choice lasts until the page is closed.
    }
    apply(next);
    setTheme(next);
    window.dispatchEvent(new Event("themechange"));
  };
  return (
    <button type="button" class="button quiet" onClick={choose} aria-label={`Theme: ${names[theme]}. Switch to ${names[next]}.`} title={`Theme: ${names[theme]}`}>
      <Icon name={theme === "auto" ? "auto" : theme === "light" ? "sun" : "moon"} size={18} />
    </button>
  );
}
