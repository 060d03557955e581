// The tests: name, options of the browser context, and what is done with the page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PHONE = { viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true };
const DARK = { colorScheme: "dark" };

/** Every view with the element that shows that it is complete. */
const views = (id) => [
  ["start", "", ".file-card"],
  ["search", "#/search?q=memory+safety", ".result"],
  ["document", `#/search?q=memory&doc=x`, ".document"],
  ["files", "#/files", ".file-table tbody tr"],
  ["field", `#/file/${id("demo/weather.tet")}/t2m?at=0:12&pick=18,20`, ".colorbar-labels span + span"],
  ["line", `#/file/${id("demo/weather.tet")}/lat`, ".u-over"],
  ["chunks", `#/file/${id("demo/weather.tet")}/t2m?part=chunks`, ".chunk-frame canvas"],
  ["attributes", `#/file/${id("demo/weather.tet")}/t2m?part=attributes`, ".attrs"],
  ["messages", `#/file/${id("demo/forecast.tgm")}`, ".message-detail .colorbar-labels span + span"],
  ["table", `#/file/${id("demo/cities.tatami")}?stats=country`, ".top-value, .histogram"],
  ["bytes", `#/file/${id("demo/weather.tet")}?tab=bytes`, ".hex div"],
  ["info", `#/file/${id("demo/weather.tet")}?tab=info`, ".json"],
];

/** The link of the first document, for the view of it. */
async function openDocument(page, { open }) {
  await open("#/search?q=memory", ".result");
  await page.click(".result-title");
  await page.waitForSelector(".document-body");
}

async function show(page, tools, [name, fragment, ready]) {
  if (name === "document") {
    await openDocument(page, tools);
  } else {
    await tools.open(fragment, ready);
  }
  await page.waitForTimeout(150);
}

/** Accessibility problems, WCAG 2.1 A and AA. The policy of the page does not permit the script; the tester does. */
async function axe(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() =>
    globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }).then((result) => result.violations.map((problem) => `${problem.id}: ${problem.help}: ${problem.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.any[0]?.message ?? ""}`).join(" | ")}`)),
  );
  return found;
}

/** Whether a canvas shows more than one colour in its middle. */
const isDrawn = (page, selector) =>
  page.waitForFunction((css) => {
    const canvas = document.querySelector(css);
    if (!(canvas instanceof HTMLCanvasElement) || canvas.width === 0) {
      return false;
    }
    const { data } = canvas.getContext("2d").getImageData(0, Math.floor(canvas.height / 3), canvas.width, 40);
    return new Set(new Uint32Array(data.buffer)).size > 5;
  }, selector);

const pixels = (page, selector) => page.evaluate((css) => document.querySelector(css).toDataURL(), selector);
const fragment = (page) => page.evaluate(() => location.hash);
const text = (page, selector) => page.locator(selector).first().innerText();

/** Moves the focus with Tab until it is on an element, as a keyboard user does. */
async function tabTo(page, selector) {
  for (let i = 0; i < 200; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((css) => document.activeElement?.matches(css) ?? false, selector)) {
      return;
    }
  }
  assert.fail(`Tab does not reach ${selector}`);
}

export const tests = [
  [
    "first paint within a second, without layout jumps",
    {},
    async (page, { open, id }) => {
      for (const [place, ready] of [["", ".file-card"], ["#/search?q=memory", ".result"], [`#/file/${id("demo/weather.tet")}/t2m`, ".colorbar-labels span + span"]]) {
        await page.addInitScript(() => {
          globalThis.shift = 0;
          new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) {
              globalThis.shift += entry.value;
            }
          }).observe({ type: "layout-shift", buffered: true });
        });
        await open("#/none", "h1");
        await page.goto("about:blank");
        await open(place, ready);
        await page.waitForTimeout(300);
        const [paint, shift] = await page.evaluate(() => [performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity, globalThis.shift]);
        assert.ok(paint < 1000, `first paint of ${place} after ${paint} ms`);
        assert.ok(shift < 0.05, `layout shift of ${place}: ${shift}`);
      }
    },
  ],
  [
    "search shows highlighted results while typing",
    {},
    async (page, { open, json, picture }) => {
      await open("", "input[type=search]");
      await page.type("input[type=search]", "memory saf", { delay: 15 });
      await page.waitForSelector(".suggestions .chip");
      await page.keyboard.press("ArrowRight");
      await page.waitForSelector(".result mark");
      assert.match(await page.inputValue("input[type=search]"), /^memory saf\w+/);
      await page.fill("input[type=search]", "memory safety");
      const answer = await json("api/search?q=memory%20safety&limit=10");
      await page.waitForFunction((count) => document.querySelectorAll(".result").length === count, answer.results.length);
      assert.match(await text(page, ".results-count"), new RegExp(`^${answer.matches} match.*(ms|µs)`));
      assert.equal(await text(page, ".result-title"), answer.results[0].title);
      assert.deepEqual(
        await page.locator(".result").first().locator(".result-snippet mark").allInnerTexts(),
        answer.results[0].snippet.marks.map(([start, end]) => answer.results[0].snippet.text.slice(start, end)),
      );
      await picture("search");
    },
  ],
  [
    "facets and sorting by the columns of documents",
    {},
    async (page, { open, json }) => {
      const info = await json("api/info");
      assert.deepEqual([info.search.facets, info.search.sorts], [["kind"], ["score", "title", "url", "norm_body", "kind"]]);
      await open("#/search?q=turtle", ".result");
      await page.waitForSelector(".facet legend >> text=kind");
      const values = await page.locator(".facet").filter({ hasText: "kind" }).locator(".facet-value").allInnerTexts();
      assert.deepEqual(values.map((value) => value.replace(/\s+/g, " ")), ["book 8", "toy 8"]);
      await page.selectOption(".select-label select", { label: "Title Z–A" });
      await page.waitForFunction(() => location.hash.includes("sort=-title") && document.querySelector(".result-title")?.textContent === "Turtle shop 7");
      await page.selectOption(".select-label select", { label: "Title A–Z" });
      await page.waitForFunction(() => document.querySelector(".result-title")?.textContent === "Turtle market 0");
      // Of a file without the column, the search works, too.
      await open("#/search?q=memory", ".result");
      await page.waitForFunction(() => document.querySelectorAll(".results .problem").length === 0);
    },
  ],
  [
    "search state is in the URL: paging, document, back",
    {},
    async (page, { open, picture }) => {
      await open("#/search?q=memory", ".result");
      await page.click("nav.pages >> text=Next");
      await page.waitForFunction(() => location.hash.includes("page=2"));
      await page.waitForFunction(() => document.querySelector(".result-list")?.start === 11);
      await page.click(".result-title");
      await page.waitForSelector(".document-body mark");
      await picture("document");
      const shared = await fragment(page);
      const title = await text(page, ".document-title");
      await open("#/files", ".file-table");
      await open(shared, ".document-body mark");
      assert.equal(await text(page, ".document-title"), title);
      await page.goBack();
      await page.waitForSelector(".file-table");
    },
  ],
  [
    "search by keyboard only",
    {},
    async (page, { open }) => {
      await open("#/files", ".file-table");
      await page.click("text=Search");
      await page.waitForSelector("input[type=search]");
      await page.locator("h1").first().evaluate(() => document.activeElement?.blur());
      await page.keyboard.press("/");
      await page.keyboard.type("memory safety");
      await page.waitForSelector(".result mark");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowDown");
      const second = await page.evaluate(() => document.activeElement.textContent);
      assert.equal(second, await page.locator(".result-title").nth(1).innerText());
      await page.keyboard.press("Enter");
      await page.waitForSelector(".document-body mark");
      assert.equal(await text(page, ".document-title"), second);
      await page.keyboard.press("n");
      await page.waitForSelector("mark.current");
      await page.keyboard.press("Escape");
      await page.waitForSelector(".document", { state: "detached" });
      await page.waitForFunction((title) => document.activeElement?.textContent === title, second);
      await page.keyboard.press("Escape");
      await page.waitForFunction(() => document.activeElement?.matches("input[type=search]"));
      await page.keyboard.press("Escape");
      await page.waitForSelector(".file-card");
    },
  ],
  [
    "no key is lost, however it falls between frames",
    {},
    async (page, { open }) => {
      await open("#/search?q=m", ".suggestions .chip");
      // One input event a task: renders happen in between, deferred effects only now and then.
      const typed = "emory safety, part 12 of the guide";
      await page.evaluate(async (letters) => {
        const box = document.querySelector("input[type=search]");
        for (const letter of letters) {
          box.value += letter;
          box.dispatchEvent(new InputEvent("input", { bubbles: true }));
          await new Promise((next) => setTimeout(next, 7));
        }
      }, typed);
      assert.equal(await page.inputValue("input[type=search]"), `m${typed}`);
      await page.waitForFunction((query) => new URLSearchParams(location.hash.split("?")[1]).get("q") === query, `m${typed}`);
    },
  ],
  [
    "search explains errors and empty results",
    {},
    async (page, { open }) => {
      await open("#/search?q=memory+(safety", ".problem");
      assert.equal(await text(page, ".wrong"), "(");
      await page.fill("input[type=search]", "turtlexyz");
      await page.waitForSelector(".empty");
      assert.match(await text(page, ".empty"), /Nothing found/);
    },
  ],
  [
    "search filters by facet",
    {},
    async (page, { open, json }) => {
      const all = await json("api/search?q=turtle");
      await open("#/search?q=turtle", ".result");
      const file = page.locator(".facet-value").filter({ hasText: "shop.tatami" });
      const label = await file.locator(".facet-count").innerText();
      await file.locator("input").check();
      await page.waitForSelector(".filter-chips .chip");
      await page.waitForFunction((count) => document.querySelector(".results-count")?.textContent?.startsWith(count), `${label} match`);
      // A value of a column, in this file.
      const kind = page.locator(".facet-value").filter({ hasText: "toy" });
      await kind.locator("input").check();
      await page.waitForFunction(() => document.querySelector(".results-count")?.textContent?.startsWith("4 match"));
      while ((await page.locator(".filter-chips .chip").count()) > 0) {
        const chips = await page.locator(".filter-chips .chip").count();
        await page.click(".filter-chips .chip >> nth=0");
        await page.waitForFunction((before) => document.querySelectorAll(".filter-chips .chip").length < before, chips);
      }
      await page.waitForFunction((count) => document.querySelector(".results-count")?.textContent?.startsWith(count), `${all.matches} match`);
      await page.fill("#search-where", "norm_body < 0");
      await page.press("#search-where", "Enter");
      await page.waitForSelector(".empty");
      await page.click("text=Clear filters");
      await page.waitForSelector(".result");
    },
  ],
  [
    "arrays by keyboard only",
    {},
    async (page, { open, id }) => {
      const file = id("demo/weather.tet");
      await open("#/files", ".file-table");
      await tabTo(page, `.file-table a[href*="${file}"]`);
      await page.keyboard.press("Enter");
      await page.waitForSelector(".dataset-link");
      await tabTo(page, `.dataset-link[href*="t2m"]`);
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => /^min/.test(document.querySelector(".readout")?.textContent ?? ""));
      await tabTo(page, ".field input[type=range]");
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction(() => /[?&]at=0(:|%3A)1/.test(location.hash));
      await tabTo(page, ".plot-canvas");
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction(() => /\[1, \d+, \d+\]/.test(document.querySelector(".readout")?.textContent ?? ""));
      await page.keyboard.press("Enter");
      await page.waitForSelector(".u-over");
      await page.keyboard.press("+");
      await page.waitForFunction(() => location.hash.includes("zoom="));
      await page.keyboard.press("0");
      await page.waitForFunction(() => !location.hash.includes("zoom="));
      await tabTo(page, "a[href*='part=chunks']");
      await page.keyboard.press("Enter");
      await tabTo(page, ".chunk-frame canvas");
      await page.keyboard.press("ArrowRight");
      await page.waitForSelector(".chunk-detail");
    },
  ],
  [
    "messages by keyboard only",
    {},
    async (page, { open, id }) => {
      await open(`#/file/${id("demo/forecast.tgm")}`, ".message-table tbody tr");
      await tabTo(page, ".where-box input");
      await page.keyboard.type("mars.step >= 12");
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => /^6 of/.test(document.querySelector(".list-count")?.textContent ?? ""));
      await tabTo(page, ".message-table a");
      await page.keyboard.press("ArrowDown");
      await page.waitForFunction(() => /Message 7/.test(document.querySelector(".message-detail h2")?.textContent ?? ""));
      await tabTo(page, ".message-detail .plot-canvas");
      await page.keyboard.press("ArrowDown");
      await page.waitForFunction(() => /\[\d+, \d+\]/.test(document.querySelector(".readout")?.textContent ?? ""));
    },
  ],
  [
    "tables and bytes by keyboard only",
    {},
    async (page, { open, id }) => {
      await open(`#/file/${id("demo/cities.tatami")}`, ".rows-body .row .tabular");
      await tabTo(page, ".column-button");
      await page.keyboard.press("Enter");
      await page.waitForSelector(".top-value, .histogram");
      await tabTo(page, ".rows-scroll");
      await page.keyboard.press("Enter");
      await page.keyboard.press("ArrowDown");
      await page.waitForSelector(".side .row-value");
      await page.keyboard.press("Escape");
      await page.waitForSelector(".side .row-value", { state: "detached" });
      await open(`#/file/${id("demo/weather.tet")}?tab=bytes`, ".hex div");
      await tabTo(page, ".verify-bar .primary");
      await page.keyboard.press("Enter");
      await page.waitForSelector(".verify-bar.good");
      await tabTo(page, ".icicle");
      await page.keyboard.press("+");
      await page.waitForFunction(() => location.hash.includes("zoom="));
      await tabTo(page, ".region-scroll");
      await page.keyboard.press("ArrowDown");
      await page.waitForFunction(() => location.hash.includes("at="));
    },
  ],
  [
    "a field is drawn with its values, coast and colours",
    {},
    async (page, { open, id, json, picture }) => {
      const file = id("demo/weather.tet");
      await open(`#/file/${file}/t2m?at=0:12`, ".plot-canvas");
      await isDrawn(page, ".plot-canvas");
      await page.waitForSelector(".colorbar-labels span + span");
      assert.match(await text(page, ".colorbar-name"), /t2m \[K\]/);
      assert.match(await text(page, ".slider-value"), /2024-06-21 12:00\s+13\/24/);
      await page.waitForFunction(() => /^min/.test(document.querySelector(".readout")?.textContent ?? ""));
      const before = await pixels(page, ".plot-canvas");
      await picture("field");
      // The value under the cursor is the value of the file.
      await page.focus(".plot-canvas");
      await page.keyboard.press("ArrowRight");
      const position = /\[12, (\d+), (\d+)\]/.exec(await text(page, ".readout"));
      assert.ok(position !== null, await text(page, ".readout"));
      const cell = await json(`api/tet/${file}/t2m?isel=time%3D12&isel=lat%3D${position[1]}&isel=lon%3D${position[2]}`);
      assert.ok((await text(page, ".readout strong")).startsWith(String(Number(cell.values.toPrecision(7)))), `${cell.values}: ${await text(page, ".readout")}`);
      // The coast can be hidden, the colour map changed.
      await page.click("text=Coast");
      await page.waitForFunction(() => location.hash.includes("coast=0"));
      await page.waitForTimeout(100);
      assert.notEqual(await pixels(page, ".plot-canvas"), before);
      await page.selectOption(".field-tools select", "magma");
      await page.waitForFunction(() => location.hash.includes("cmap=magma"));
    },
  ],
  [
    "a large plane is drawn by means, its values are exact",
    {},
    async (page, { open, id }) => {
      await open(`#/file/${id("large.tet")}/plane`, ".plot-canvas");
      await isDrawn(page, ".plot-canvas");
      await page.waitForFunction(() => /drawn as/.test(document.querySelector(".readout")?.textContent ?? ""));
      const under = async () => {
        const [, row, column] = /\[(\d+), (\d+)\]/.exec(await text(page, ".readout")).map(Number);
        await page.waitForFunction((value) => document.querySelector(".readout strong")?.textContent?.trim() === String(value), 2400 * row + column);
      };
      await page.focus(".plot-canvas");
      await page.keyboard.press("ArrowRight");
      await under();
      for (let i = 0; i < 6; i++) {
        await page.keyboard.press("+");
      }
      await page.waitForFunction(() => location.hash.includes("zoom="));
      await page.keyboard.press("Escape");
      await page.waitForFunction(() => /values/.test(document.querySelector(".readout")?.textContent ?? "") && !/drawn as/.test(document.querySelector(".readout")?.textContent ?? ""));
      await page.keyboard.press("ArrowDown");
      await under();
    },
  ],
  [
    "sliders, play, zoom, series and difference",
    {},
    async (page, { open, id, picture }) => {
      const file = id("demo/weather.tet");
      await open(`#/file/${file}/t2m`, ".plot-canvas");
      await isDrawn(page, ".plot-canvas");
      await page.focus(".slider input");
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction(() => location.hash.includes("at=0:1"));
      await page.click(".play");
      await page.waitForFunction(() => /at=0:[3-9]/.test(location.hash));
      await page.click(".play");
      const box = await page.locator(".plot-canvas").boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await page.mouse.wheel(0, -300);
      await page.waitForFunction(() => location.hash.includes("zoom="));
      const zoomed = await fragment(page);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width / 2 + 80, box.y + box.height / 2 + 10, { steps: 4 });
      await page.mouse.up();
      await page.waitForFunction((old) => location.hash !== old, zoomed);
      assert.ok(!(await fragment(page)).includes("pick="), "a drag is not a click");
      await page.click("[aria-label='Whole field']");
      await page.waitForFunction(() => !location.hash.includes("zoom="));
      await page.mouse.click(box.x + box.width / 3, box.y + box.height / 2);
      await page.waitForSelector(".series-panel .u-over");
      assert.match(await fragment(page), /pick=\d+,\d+/);
      await page.waitForTimeout(200);
      await picture("series");
      // A dataset minus itself is zero everywhere.
      await open(`#/file/${file}/t2m?minus=${id("demo/salvaged.tet")}/t2m`, ".plot-canvas");
      await page.waitForFunction(() => /−/.test(document.querySelector(".colorbar-name")?.textContent ?? ""));
      await page.mouse.move(5, 5);
      await page.waitForFunction(() => /^min 0max 0/.test(document.querySelector(".readout")?.textContent ?? ""));
    },
  ],
  [
    "chunks are verified and damage is shown",
    {},
    async (page, { open, id, json, picture }) => {
      const file = id("demo/damaged.tet");
      const { total } = await json(`api/tet/${file}/t2m/chunks`);
      await open(`#/file/${file}/t2m?part=chunks`, ".chunk-frame canvas");
      await page.click("text=Verify chunks");
      await page.waitForFunction(() => /damaged/.test(document.querySelector(".legend")?.textContent ?? ""));
      const numbers = await page.locator(".legend .muted").allInnerTexts();
      assert.equal(numbers.reduce((sum, n) => sum + Number(n.replaceAll(",", "")), 0), total);
      await page.focus(".chunk-frame canvas");
      await page.keyboard.press("ArrowRight");
      assert.match(await text(page, ".chunk-detail"), /Covers\s+time 0\.\.6/);
      await page.selectOption(".field-tools select", "max");
      await page.waitForSelector(".scale-legend");
      await picture("chunks");
      // Values of the damaged chunk are refused, not shown.
      await open(`#/file/${file}/t2m?at=0:6`, ".problem");
      assert.match(await text(page, ".problem"), /damaged|checksum/);
    },
  ],
  [
    "messages: list, filter, objects",
    {},
    async (page, { open, id, picture, json }) => {
      const file = id("demo/forecast.tgm");
      await open(`#/file/${file}`, ".message-table tbody tr");
      const list = await json(`api/tgm/${file}`);
      await page.waitForFunction((count) => document.querySelectorAll(".message-table tbody tr").length === count, list.messages.length);
      await isDrawn(page, ".plot-canvas");
      await picture("messages");
      await page.locator(".message-table a").nth(0).focus();
      await page.keyboard.press("ArrowDown");
      await page.waitForFunction(() => location.hash.includes("m=1"));
      await page.waitForFunction(() => /Message 1/.test(document.querySelector(".message-detail h2")?.textContent ?? ""));
      await page.fill(".where-box input", "mars.step >= 12");
      await page.keyboard.press("Enter");
      const matching = await json(`api/tgm/${file}?where=${encodeURIComponent("mars.step >= 12")}`);
      await page.waitForFunction((count) => document.querySelectorAll(".message-table tbody tr").length === count, matching.messages.length);
      assert.ok(matching.messages.length < list.messages.length);
      await page.fill(".where-box input", "step >=");
      await page.keyboard.press("Enter");
      await page.waitForSelector(".message-list .problem");
    },
  ],
  [
    "messages: objects have axes, coordinates, a map and a state",
    {},
    async (page, { open, id, json }) => {
      const file = id("grid.tgm");
      await open(`#/file/${file}?m=3&pick=18,20`, ".plot-canvas");
      await page.waitForFunction(() => /^min/.test(document.querySelector(".readout")?.textContent ?? ""));
      await page.waitForSelector(".field-tools >> text=/[Cc]oast/");
      await isDrawn(page, ".plot-canvas");
      const labels = await page.locator(".field").first().innerText();
      assert.ok(!/axis \d/.test(labels), labels);
      assert.match(await text(page, ".message-detail .facts"), /unverified|not verified/i);
      await json(`api/files/${file}/verify`);
      await open(`#/file/${file}?m=4`, ".plot-canvas");
      await page.waitForFunction(() => /Message 4/.test(document.querySelector(".message-detail h2")?.textContent ?? "") && !/unverified|not verified/i.test(document.querySelector(".message-detail .facts")?.textContent ?? ""));
    },
  ],
  [
    "messages are followed live",
    {},
    async (page, { open, id, append }) => {
      await open(`#/file/${id("live.tgm")}?live=1`, ".message-table tbody tr");
      await page.waitForTimeout(400);
      const before = await page.locator(".message-table tbody tr").count();
      append("live.tgm", "demo/hours.tgm");
      await page.waitForFunction((count) => document.querySelectorAll(".message-table tbody tr").length > count, before, { timeout: 15_000 });
      await page.waitForSelector(".message-table tr.fresh");
    },
  ],
  [
    "tables: scrolling, filter, statistics, rows",
    {},
    async (page, { open, id, picture, json }) => {
      const file = id("rows.tatami");
      await open(`#/file/${file}`, ".rows-body .row .tabular");
      await page.evaluate(() => {
        const element = document.querySelector(".rows-scroll");
        element.scrollTop = element.scrollHeight;
      });
      await page.waitForFunction(() => [...document.querySelectorAll(".rows-body [role=rowheader]")].at(-1)?.textContent === "4,999");
      await page.waitForFunction(() => /4999/.test([...document.querySelectorAll(".rows-body .row")].at(-1)?.textContent ?? ""));
      assert.ok((await page.locator(".rows-body .row").count()) < 80, "only rows in view are drawn");
      await page.click(".column-button >> text=value");
      await page.waitForSelector(".histogram rect");
      await page.click(".column-button >> text=name");
      await page.waitForSelector(".top-value");
      await picture("table");
      await page.click(".top-value >> nth=0");
      await page.waitForFunction(() => /of 5,000 rows/.test(document.querySelector(".list-count")?.textContent ?? ""));
      const where = await page.inputValue(".where-box input");
      const answer = await json(`api/tatami/${file}/rows?limit=1&count=true&where=${encodeURIComponent(where)}`);
      assert.match(await text(page, ".list-count"), new RegExp(`^${answer.matched.toLocaleString("en-US")} of`));
      await page.fill(".where-box input", "number > ");
      await page.keyboard.press("Enter");
      await page.waitForSelector(".table-view .problem");
      await page.fill(".where-box input", "number = 17");
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => document.querySelectorAll(".rows-body .row").length === 1);
      await page.click(".rows-body .row");
      await page.waitForSelector(".side .row-value");
      assert.match(await text(page, ".side"), /name 3/);
    },
  ],
  [
    "copied command lines run",
    {},
    async (page, { open, id, shell, read }) => {
      await open(`#/file/${id("demo/weather.tet")}/t2m?at=0:5&zoom=10,30,5,20&range=250,300&cmap=magma`, ".plot-canvas");
      await page.waitForFunction(() => /^min/.test(document.querySelector(".readout")?.textContent ?? ""));
      await page.click("text=Copy as");
      const shown = await page.locator(".snippet pre").allInnerTexts();
      assert.ok(shown.some((item) => item.includes(`tercet.open("demo/weather.tet")["t2m"]`) && item.includes("field[5, 5:20, 10:30]")), shown.join("\n"));
      const lines = shown.filter((item) => item.startsWith("tet "));
      assert.ok(lines[0].includes("--isel time=5 --isel lat=5..20 --isel lon=10..30 --cmap magma --range=250..300"), lines[0]);
      assert.equal(lines.length, 2);
      lines.forEach(shell);
      await page.keyboard.press("Escape");
      await page.waitForSelector(".snippet", { state: "detached" });
      // A part of an object of a message has one position or range for each axis, too.
      await open(`#/file/${id("grid.tgm")}?m=3&zoom=10,30,5,20`, ".plot-canvas");
      await page.waitForFunction(() => /^min/.test(document.querySelector(".readout")?.textContent ?? ""));
      await page.locator(".field-tools >> text=Copy as").click();
      const object = await page.locator(".snippet pre").allInnerTexts();
      const extract = object.find((item) => item.startsWith("tgm "));
      assert.equal(extract, "tgm extract grid.tgm 3.0 -s 5:20,10:30 -o values.npy");
      shell(extract.replace("values.npy", "object.npy"));
      const url = /^curl '([^']+)' -o values\.npy$/.exec(object.find((item) => item.startsWith("curl ")))[1];
      const npy = Buffer.from(await (await fetch(url)).arrayBuffer());
      assert.ok(npy.equals(read("object.npy")), "both commands write the same file");
      assert.match(npy.toString("latin1"), /'shape': \(15, 20\)/);
      await page.keyboard.press("Escape");
      await page.waitForSelector(".snippet", { state: "detached" });
      await open(`#/file/${id("demo/cities.tatami")}?where=people+%3E+9000000&columns=name,people`, ".rows-body .row .tabular");
      await page.click("text=Copy as");
      const cat = (await page.locator(".snippet pre").allInnerTexts()).find((item) => item.startsWith("tatami "));
      assert.match(shell(cat), /^\{"name":"Cairo","people":10000000\}/);
      await open("#/search?q=%2Bmemory+-collector", ".result");
      await page.click("text=Copy as");
      const search = (await page.locator(".snippet pre").allInnerTexts()).find((item) => item.startsWith("tatami "));
      assert.match(search, /^tatami search \S+ '?\+memory -collector'?/);
    },
  ],
  [
    "bytes: regions, zoom, hexadecimal, verification",
    {},
    async (page, { open, id, picture }) => {
      await open(`#/file/${id("demo/damaged.tet")}?tab=bytes`, ".icicle");
      await page.waitForSelector(".hex div");
      await page.focus(".region-scroll");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowDown");
      await page.waitForFunction(() => /at=0-32/.test(location.hash));
      assert.match(await text(page, ".region-pane h2"), /superblock/i);
      await page.focus(".icicle");
      await page.keyboard.press("+");
      await page.waitForFunction(() => location.hash.includes("zoom="));
      await page.click(".verify-bar .primary");
      await page.waitForSelector(".verify-bar.bad");
      await page.waitForSelector(".finding.error");
      await page.click(".finding.error .link");
      await page.waitForFunction(() => /damaged/.test(document.querySelector(".region-pane")?.textContent ?? ""));
      await picture("bytes");
      await open(`#/file/${id("demo/weather.tet")}?tab=bytes`, ".icicle");
      await page.click(".verify-bar .primary");
      await page.waitForSelector(".verify-bar.good");
    },
  ],
  [
    "hostile names and texts run no script",
    {},
    async (page, tools) => {
      const hostile = (await tools.json("api/files?limit=1000")).files.find((file) => file.path.startsWith("<img"));
      assert.ok(hostile, "the hostile file is listed");
      await tools.open("#/files", ".file-table");
      assert.ok((await text(page, ".file-table")).includes("<img src=x"));
      await tools.open(`#/file/${hostile.id}/t2m`, ".plot-canvas");
      await tools.open("#/search?q=hostile", ".result");
      assert.match(await text(page, ".result"), /<img src=x/);
      await page.click(".result-title");
      await page.waitForSelector(".document-body");
      assert.match(await text(page, ".document-body"), /<script>|<b onclick|<img/);
      await tools.open(`#/file/${tools.id("rows.tatami")}?where=number+%3D+3&row=0`, ".side .row-value");
      assert.match(await text(page, ".side"), /<img src=x/);
      await tools.open("#/search?q=" + encodeURIComponent(`<img src=x onerror="window.hacked=4">`), "h1");
      await tools.open("#/" + encodeURIComponent(`<img src=x onerror="window.hacked=5">`), "h1");
      assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
      assert.equal(await page.locator("img").count(), 0);
    },
  ],
  [
    "a token is asked for, or taken from the URL",
    {},
    async (page, { guarded, token, picture }) => {
      const base = await guarded();
      await page.goto(base);
      await page.fill("#token", "wrong");
      await page.keyboard.press("Enter");
      await page.waitForSelector(".error-text");
      await picture("sign-in");
      assert.deepEqual(await axe(page), []);
      await page.fill("#token", token);
      await page.keyboard.press("Enter");
      await page.waitForSelector(".file-card");
      await page.context().clearCookies();
      await page.goto("about:blank");
      await page.goto(`${base}#token=${encodeURIComponent(token)}`);
      await page.waitForSelector(".file-card");
      assert.ok(!page.url().includes("token"), page.url());
    },
  ],
  [
    "`tercet view` shows one file at once",
    {},
    async (page, { single, picture }) => {
      await page.goto(await single("demo/weather.tet"));
      await isDrawn(page, ".plot-canvas");
      assert.equal(await page.locator(".sidebar").count(), 0);
      await picture("view");
    },
  ],
  [
    "the policy forbids inline script",
    {},
    async (page, { open, expect }) => {
      await open("#/files", ".file-table");
      expect(/Executing inline script violates/);
      const blocked = await page.evaluate(
        () =>
          new Promise((resolve) => {
            document.addEventListener("securitypolicyviolation", () => resolve(true));
            const script = document.createElement("script");
            script.textContent = "window.hacked = 6";
            document.body.append(script);
            setTimeout(() => resolve(false), 1000);
          }),
      ).catch(() => false);
      assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
      assert.ok(blocked);
    },
  ],
  [
    "the theme follows the system and the switch",
    DARK,
    async (page, { open, id, picture }) => {
      const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      await open("#/files", ".file-table");
      const dark = await background();
      await page.click("header button");
      const light = await background();
      assert.notEqual(dark, light);
      await page.reload();
      await page.waitForSelector(".file-table");
      assert.equal(await background(), light);
      await page.click("header button");
      assert.equal(await background(), dark);
      await open(`#/file/${id("demo/weather.tet")}/t2m`, ".plot-canvas");
      await isDrawn(page, ".plot-canvas");
      await picture("dark");
    },
  ],
  [
    "unknown places and files are explained",
    {},
    async (page, { open, id }) => {
      await open("#/nowhere", "h1");
      assert.match(await text(page, "main"), /Not found/);
      await open("#/file/0000000000000000", ".empty");
      assert.match(await text(page, ".empty"), /gone/);
      await open(`#/file/${id("demo/weather.tet")}/no%2Fsuch`, ".empty");
      await open(`#/file/${id("demo/weather.tet")}/t2m?at=0:999,7:x&zoom=a,b&pick=;;9,&cmap=none&x=9&y=-1`, ".plot-canvas");
      await isDrawn(page, ".plot-canvas");
    },
  ],
  [
    "views look as before",
    {},
    async (page, tools) => {
      const { open, id, looks } = tools;
      await open(`#/file/${id("demo/weather.tet")}/t2m?at=0:12&pick=18,20`, ".colorbar-labels span + span");
      await page.waitForFunction(() => /^min/.test(document.querySelector(".readout")?.textContent ?? ""));
      await page.waitForSelector(".u-over");
      await isDrawn(page, ".plot-canvas");
      await page.waitForTimeout(300);
      await looks("field");
      await open(`#/file/${id("grid.tgm")}?m=3`, ".message-detail .colorbar-labels span + span");
      await page.waitForFunction(() => /^min/.test(document.querySelector(".readout")?.textContent ?? ""));
      await isDrawn(page, ".plot-canvas");
      await page.waitForTimeout(300);
      await looks("messages");
      await open(`#/file/${id("demo/damaged.tet")}/t2m?part=chunks`, ".chunk-frame canvas");
      await page.click("text=Verify chunks");
      await page.waitForFunction(() => /damaged/.test(document.querySelector(".legend")?.textContent ?? ""));
      await page.waitForTimeout(300);
      await looks("chunks");
      await open(`#/file/${id("rows.tatami")}?stats=value`, ".histogram rect");
      await page.waitForSelector(".rows-body .row .tabular");
      await page.waitForTimeout(300);
      await looks("table");
      // Other tests verify the file as well.
      await tools.json(`api/files/${id("demo/weather.tet")}/verify`);
      await open(`#/file/${id("demo/weather.tet")}?tab=bytes`, ".hex div");
      await page.waitForTimeout(300);
      await looks("bytes");
    },
  ],
  [
    "every view fits a phone",
    PHONE,
    async (page, tools) => {
      for (const view of views(tools.id)) {
        await show(page, tools, view);
        const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
        assert.ok(inner <= outer, `${view[0]} is ${inner} pixels wide on a screen of ${outer}`);
        await tools.picture(`phone-${view[0]}`);
      }
    },
  ],
  ...[["light", {}], ["dark", DARK]].map(([theme, options]) => [
    `every view is accessible (axe), ${theme}`,
    options,
    async (page, tools) => {
      const problems = [];
      for (const view of views(tools.id)) {
        await show(page, tools, view);
        await tools.picture(`${theme}-${view[0]}`);
        problems.push(...(await axe(page)).map((problem) => `${view[0]}: ${problem}`));
      }
      assert.deepEqual(problems, []);
    },
  ]),
];
