// Browser tests of the page against a real server: `TERCET=…/tercet node tests/run.mjs [NAME…]`.
//
// CHROMIUM names the browser (default: chromium), SCREENSHOTS a directory for pictures of every view, UPDATE_PICTURES one for the pictures
// that views are compared with.

import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { tests } from "./views.mjs";

const tercet = process.env.TERCET ?? "tercet";
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const TEST_MS = 30_000;

function run(...command) {
  const done = spawnSync(tercet, command, { encoding: "utf8" });
  if (done.status !== 0) {
    throw new Error(`tercet ${command.join(" ")}: ${done.stderr || done.stdout || done.error}`);
  }
}

export const HOSTILE = `<img src=x onerror="window.hacked=1">`;

/** The files of the demo, documents to search, and names and texts that try to run script. */
function files(directory) {
  run("demo", join(directory, "demo"), "--quiet");
  const documents = join(directory, "documents");
  mkdirSync(documents);
  for (let i = 1; i <= 30; i++) {
    writeFileSync(join(documents, `part${i}.md`), `# Memory safety, part ${i}\n\nThe borrow checker makes memory safety a matter of types. Part ${i} of the guide. ${i % 3 === 0 ? "A collector frees memory." : ""}\n`);
  }
  writeFileSync(join(documents, "hostile.md"), `# Hostile ${HOSTILE}\n\n<script>window.hacked=2</script> a hostile memory ${HOSTILE} <b onclick="window.hacked=3">bold</b>\n`);
  run("tatami", "index", documents, "-o", join(directory, "notes.tatami"), "--quiet");
  rmSync(documents, { recursive: true });
  // Columns: `kind` is text in both, `price` is a number in one and text in the other.
  const goods = [["shop", (i) => i], ["market", (i) => `about ${i}`]];
  for (const [name, price] of goods) {
    const lines = Array.from({ length: 8 }, (_, i) => JSON.stringify({ url: `https://${name}.example/${i}`, title: `Turtle ${name} ${i}`, body: "a turtle for sale", kind: i % 2 === 0 ? "toy" : "book", price: price(i) }));
    writeFileSync(join(directory, `${name}.jsonl`), lines.join("\n"));
    run("tatami", "index", join(directory, `${name}.jsonl`), "-o", join(directory, `${name}.tatami`), "--quiet");
    rmSync(join(directory, `${name}.jsonl`));
  }
  run("convert", join(directory, "demo/weather.tet"), join(directory, "grid.tgm"), "--quiet");
  copyFileSync(join(directory, "demo/weather.tet"), join(directory, `${HOSTILE.replaceAll("/", "")}.tet`));
  copyFileSync(join(directory, "demo/hours.tgm"), join(directory, "live.tgm"));
  const table = join(directory, "rows.csv");
  const rows = Array.from({ length: 5000 }, (_, i) => `${i},${i === 3 ? `"${HOSTILE.replaceAll('"', '""')}"` : `name ${i % 7}`},${Math.sin(i).toFixed(4)}`);
  writeFileSync(table, ["number,name,value", ...rows].join("\n"));
  run("tatami", "convert", table, join(directory, "rows.tatami"), "--quiet");
  rmSync(table);
  largePlane(directory);
}

/** A plane that is larger than a picture: the value of row `r`, column `c` is `2400 r + c`. */
function largePlane(directory) {
  const [rows, columns] = [1200, 2400];
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rows}, ${columns}), }`;
  const header = `${text}${" ".repeat(63 - ((text.length + 10) % 64))}\n`;
  const values = Float32Array.from({ length: rows * columns }, (_, i) => i);
  const npy = join(directory, "plane.npy");
  writeFileSync(npy, Buffer.concat([Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, header.length & 255, header.length >> 8]), Buffer.from(header), Buffer.from(values.buffer)]));
  run("tet", "create", join(directory, "large.tet"), "--from", `plane=${npy}`, "--quiet");
  rmSync(npy);
}

/** One pixel of a stored picture for a square of so many pixels: fonts differ between machines. */
const SCALE = 10;
/** A pixel differs by more than this, and at most this part of them may. */
const [DIFFERENCE, TOLERANCE] = [32, 0.02];

/** Compares the page, without text, with the stored picture `tests/pictures/NAME.png`; `UPDATE_PICTURES=DIR` writes pictures. */
async function compare(context, page, name) {
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync("* { color: transparent !important; caret-color: transparent !important; transition: none !important; animation: none !important } svg.icon { visibility: hidden }");
    document.adoptedStyleSheets = [sheet];
  });
  const shot = (await page.screenshot()).toString("base64");
  const stored = new URL(`pictures/${name}.png`, import.meta.url);
  const update = process.env.UPDATE_PICTURES;
  const blank = await context.newPage();
  try {
    const found = await blank.evaluate(
      async ([shot, stored, scale, difference]) => {
        const pixels = async (data, scale) => {
          const image = new Image();
          image.src = `data:image/png;base64,${data}`;
          await image.decode();
          const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [image.width, image.height];
          const context = canvas.getContext("2d", { willReadFrequently: true });
          context.drawImage(image, 0, 0);
          const [width, height] = [Math.floor(image.width / scale), Math.floor(image.height / scale)];
          const small = new ImageData(width, height);
          for (let y = 0; y < height; y++) {
            for (let x = 0; x < width; x++) {
              const block = context.getImageData(x * scale, y * scale, scale, scale).data;
              for (let channel = 0; channel < 4; channel++) {
                let sum = 0;
                for (let i = channel; i < block.length; i += 4) {
                  sum += block[i];
                }
                small.data[(y * width + x) * 4 + channel] = sum / (scale * scale);
              }
            }
          }
          return small;
        };
        const now = await pixels(shot, scale);
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [now.width, now.height];
        canvas.getContext("2d").putImageData(now, 0, 0);
        const png = canvas.toDataURL().split(",")[1];
        if (stored === null) {
          return { png };
        }
        const before = await pixels(stored, 1);
        if (before.width !== now.width || before.height !== now.height) {
          return { png, part: 1 };
        }
        let differing = 0;
        for (let i = 0; i < now.data.length; i += 4) {
          differing += [0, 1, 2].some((channel) => Math.abs(now.data[i + channel] - before.data[i + channel]) > difference) ? 1 : 0;
        }
        return { png, part: differing / (now.width * now.height) };
      },
      [shot, update === undefined ? readFileSync(stored).toString("base64") : null, SCALE, DIFFERENCE],
    );
    if (update !== undefined) {
      mkdirSync(update, { recursive: true });
      writeFileSync(join(update, `${name}.png`), Buffer.from(found.png, "base64"));
    } else if (found.part > TOLERANCE) {
      throw new Error(`${name} differs from its picture in ${(found.part * 100).toFixed(1)} % of the pixels; UPDATE_PICTURES=tests/pictures stores the new one`);
    }
  } finally {
    await blank.close();
  }
}

const TOKEN = "a/token?of=the&tests#0123456789";
const servers = [];

/** Starts a server; the URL is the first on its output. */
function serve(command, env = {}) {
  const child = spawn(tercet, command, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
  servers.push(child);
  return new Promise((resolve, reject) => {
    let output = "";
    const timer = setTimeout(() => reject(new Error(`the server did not start: ${output}`)), 20_000);
    const read = (chunk) => {
      output += chunk;
      const url = /(?:https?:\/\/)?(127\.0\.0\.1:[1-9]\d*)/.exec(output);
      if (url !== null) {
        clearTimeout(timer);
        resolve({ child, base: `http://${url[1]}/` });
      }
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${output}`)));
  });
}

const directory = mkdtempSync(join(tmpdir(), "tercet-web-"));
let server = null;
let browser = null;
let [passed, failed] = [0, 0];
const requested = new Set();

/** Requests that the OpenAPI document of the server does not describe, by path or by parameter. */
async function undocumented(base) {
  const { paths } = await (await fetch(`${base}openapi.json`)).json();
  const known = Object.entries(paths).map(([path, item]) => ({
    pattern: new RegExp(`^${path.replaceAll(/[.]/g, "\\.").replaceAll(/\{[^}]+\}/g, "[^/]+")}$`),
    names: Object.values(item).flatMap((operation) => (operation.parameters ?? []).map((parameter) => parameter.name)),
  }));
  return [...requested].map((url) => new URL(url)).flatMap((url) => {
    const found = known.filter(({ pattern }) => pattern.test(url.pathname));
    const unknown = [...url.searchParams.keys()].filter((name) => !found.some(({ names }) => names.includes(name)));
    return /^\/(app\.(js|css)|icon\.svg)?$/.test(url.pathname) || (found.length > 0 && unknown.length === 0) ? [] : [`${url.pathname} ${unknown.join(", ")}`];
  });
}
try {
  const root = join(directory, "archive");
  mkdirSync(root);
  files(root);
  server = await serve(["serve", root, "--addr", "127.0.0.1:0"]);
  browser = await chromium.launch({ executablePath, args: FLAGS });
  const list = await (await fetch(`${server.base}api/files?limit=1000`)).json();
  const id = (path) => {
    const found = list.files.find((file) => file.path === path);
    if (found === undefined) {
      throw new Error(`the server does not list ${path}: ${list.files.map((file) => file.path).join(", ")}`);
    }
    return found.id;
  };
  const wanted = process.argv.slice(2);
  for (const [name, options, test] of tests) {
    if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) {
      continue;
    }
    const start = performance.now();
    const problems = [];
    const expected = [];
    const context = await browser.newContext({ viewport: { width: 1360, height: 850 }, colorScheme: "light", ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(8000);
    page.on("pageerror", (error) => problems.push(`error in the page: ${error.stack}`));
    page.on("dialog", (dialog) => {
      problems.push(`a dialog opened: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("console", (message) => {
      // A failed request that a test expects is reported by the browser, too.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource") && !expected.some((pattern) => pattern.test(message.text()))) {
        problems.push(`console: ${message.text()}`);
      }
    });
    page.on("request", (request) => {
      if (/^https?:/.test(request.url())) {
        requested.add(request.url());
      }
      if (new URL(request.url()).hostname !== "127.0.0.1" && !request.url().startsWith("data:") && !request.url().startsWith("blob:")) {
        problems.push(`request to ${request.url()}`);
      }
    });
    const tools = {
      base: server.base,
      root,
      id,
      token: TOKEN,
      guarded: async () => (await serve(["serve", root, "--addr", "127.0.0.1:0"], { TERCET_TOKEN: TOKEN })).base,
      single: async (path) => (await serve(["view", join(root, path)])).base,
      expect: (pattern) => expected.push(pattern),
      open: async (fragment, ready) => {
        await page.goto(`${server.base}${fragment}`);
        if (ready) {
          await page.waitForSelector(ready);
        }
      },
      json: async (path) => (await fetch(server.base + path)).json(),
      // A copied command line, with the program under test and in the served directory.
      shell: (line) => {
        const done = spawnSync("sh", ["-c", `"$TERCET" ${line}`], { cwd: root, encoding: "utf8", env: { ...process.env, TERCET: tercet } });
        if (done.status !== 0) {
          throw new Error(`${line}: ${done.stderr}`);
        }
        return done.stdout;
      },
      read: (path) => readFileSync(join(root, path)),
      append: (path, from) => appendFileSync(join(root, path), readFileSync(join(root, from))),
      looks: (picture) => compare(context, page, picture),
      picture: async (picture) => {
        if (process.env.SCREENSHOTS) {
          mkdirSync(process.env.SCREENSHOTS, { recursive: true });
          await page.screenshot({ path: join(process.env.SCREENSHOTS, `${picture}.png`) });
        }
      },
    };
    let timer;
    try {
      await Promise.race([test(page, tools), new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`not done after ${TEST_MS} ms`)), TEST_MS); })]);
    } catch (error) {
      const shown = await page.evaluate(() => `${location.href}: ${document.querySelector("main")?.innerText.replace(/\s+/g, " ").slice(0, 300)}`).catch(() => "");
      problems.push(error.stack ?? String(error), `the page shows ${shown}`);
      await tools.picture(`failed-${name.replaceAll(/\W+/g, "-")}`).catch(() => {});
    }
    clearTimeout(timer);
    await context.close();
    if (problems.length === 0) {
      passed += 1;
      console.log(`ok      ${name} (${Math.round(performance.now() - start)} ms)`);
    } else {
      failed += 1;
      console.log(`FAILED  ${name}\n        ${problems.join("\n        ")}`);
    }
  }
  const missing = await undocumented(server.base);
  if (missing.length === 0) {
    passed += 1;
    console.log(`ok      ${requested.size} different requests of the page are in the OpenAPI document`);
  } else {
    failed += 1;
    console.log(`FAILED  requests that are not in the OpenAPI document: ${[...new Set(missing)].join("; ")}`);
  }
} catch (error) {
  failed += 1;
  console.log(`FAILED  ${error.stack ?? error}`);
} finally {
  await browser?.close();
  for (const child of servers) {
    child.removeAllListeners("exit");
    child.kill("SIGTERM");
  }
  rmSync(directory, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed === 0 ? 0 : 1;
