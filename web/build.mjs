// Builds the page into crates/tercet-server/assets. `--check [DIR]` compares with the files there instead; `--out DIR` writes elsewhere.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { build } from "esbuild";
import { encodeLand } from "./land.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const committed = fileURLToPath(new URL("../crates/tercet-server/assets/", import.meta.url));
const argument = (name) => {
  const at = process.argv.indexOf(name);
  return at < 0 ? null : process.argv[at + 1];
};
const MAX_BYTES = 300 * 1024;

/** The outline of land, in the compact form that src/field/land.ts reads. */
const land = {
  name: "land",
  setup(plugin) {
    plugin.onResolve({ filter: /^virtual:land$/ }, () => ({ path: "land", namespace: "land" }));
    plugin.onLoad({ filter: /.*/, namespace: "land" }, async () => {
      const topology = JSON.parse(await readFile(join(here, "node_modules/world-atlas/land-110m.json"), "utf8"));
      return { contents: `export default ${JSON.stringify(encodeLand(topology))};`, loader: "js" };
    });
  },
};

const result = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  outdir: "out",
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  banner: { js: "// The page of `tercet serve`, built from web/. It includes Preact, uPlot and the land outline of Natural Earth: see licenses.txt." },
  plugins: [land],
  write: false,
});

const files = new Map();
for (const file of result.outputFiles) {
  files.set(file.path.split(/[\\/]/).pop(), file.contents);
}
for (const name of ["index.html", "icon.svg"]) {
  files.set(name, new Uint8Array(await readFile(join(here, "static", name))));
}

files.set("licenses.txt", Buffer.from(await licenses(["preact", "uplot", "world-atlas"])));

/** The licences of what the bundle includes. */
async function licenses(packages) {
  const texts = ["The page of `tercet serve` includes the following. The land outline is that of Natural Earth, in the public domain.\n"];
  for (const name of packages) {
    const { version } = JSON.parse(await readFile(join(here, "node_modules", name, "package.json"), "utf8"));
    const text = await readFile(join(here, "node_modules", name, "LICENSE"), "utf8");
    texts.push(`\n${name} ${version}\n\n${text.trim().replaceAll("\r\n", "\n")}\n`);
  }
  return texts.join("");
}

let total = 0;
for (const [name, bytes] of files) {
  total += bytes.length;
  console.log(`${name}: ${bytes.length} bytes`);
}
if (total > MAX_BYTES) {
  console.error(`the page has ${total} bytes, more than ${MAX_BYTES}`);
  process.exit(1);
}

if (process.argv.includes("--check")) {
  let differ = 0;
  for (const [name, bytes] of files) {
    const old = await readFile(join(argument("--check") ?? committed, name)).catch(() => null);
    if (old === null || Buffer.compare(old, Buffer.from(bytes)) !== 0) {
      console.error(`crates/tercet-server/assets/${name} is not what web/ builds: run \`npm run build\` in web/`);
      differ += 1;
    }
  }
  process.exit(differ === 0 ? 0 : 1);
}
const out = argument("--out") ?? committed;
await mkdir(out, { recursive: true });
for (const [name, bytes] of files) {
  await writeFile(join(out, name), bytes);
}
