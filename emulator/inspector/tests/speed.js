// Measures the list of a hundred thousand messages: frames while it is scrolled, and the time until its first rows are shown, each
// beside that of a page without such work. The least of five runs, because other programs use the processor too.

import { createNamespace, fill, launchBrowser, open, startEmulator, topology } from "./setup.js";

const MESSAGES = 100000;
const RUNS = 5;
/** The maximum time between two frames while the list is scrolled, in milliseconds. */
const MAX_FRAME = 33;
/** The maximum ratio of the time until a full list is shown to that until an empty list is shown. */
const MAX_RATIO = 4;

/** The 95th percentile of the times between frames in milliseconds, while the list scrolls by `step` pixels per frame. */
function frameTime(page, step) {
  return page.locator("main .list").evaluate(async (it, by) => {
    it.scrollTop = 0;
    const times = [];
    let last = await new Promise(requestAnimationFrame);
    for (let frame = 0; frame < 100; frame += 1) {
      it.scrollTop += by;
      const now = await new Promise(requestAnimationFrame);
      times.push(now - last);
      last = now;
    }
    return times.sort((a, b) => a - b)[94];
  }, step);
}

/** The time until a list shows a text, in milliseconds. */
async function loadTime(page, root, entity, text) {
  await page.goto(`${root}/faults`);
  await page.getByText("There are no faults.").waitFor();
  return page.evaluate(async ([route, text]) => {
    const start = performance.now();
    location.hash = route;
    while (!document.querySelector("main")?.innerText.includes(text)) await new Promise(requestAnimationFrame);
    return performance.now() - start;
  }, [`${root.slice(root.indexOf("#"))}/${entity}`, text]);
}

async function least(measure) {
  const times = [];
  for (let run = 0; run < RUNS; run += 1) times.push(await measure());
  return Math.min(...times);
}

/** Prints a time and that of a page without such work; exits with 1 if the time is longer than `limit` milliseconds. */
function print(name, value, reference, limit) {
  const holds = value <= limit;
  if (!holds) process.exitCode = 1;
  console.log(`${name}: ${value.toFixed(1)} ms, ${reference.toFixed(1)} ms without, limit ${limit.toFixed(1)} ms: ${holds ? "holds" : "missed"}`);
}

const emulator = await startEmulator();
const browser = await launchBrowser();
const namespace = await createNamespace(emulator, "speed", topology("orders", "empty"));
await fill(namespace, MESSAGES);
const root = `${emulator.page}#/speed`;
const page = await open(browser, emulator, "#/speed/orders");
await page.locator("main .list .row", { hasText: "m-0" }).first().waitFor();
const [scrolling, idle] = [await least(() => frameTime(page, 5000)), await least(() => frameTime(page, 0))];
print("frame while scrolling", scrolling, idle, Math.max(MAX_FRAME, 2 * idle));
const [full, empty] = [await least(() => loadTime(page, root, "orders", "m-0")), await least(() => loadTime(page, root, "empty", "There are no messages."))];
print("rows shown", full, empty, MAX_RATIO * empty);
await browser.close();
await emulator.stop();
