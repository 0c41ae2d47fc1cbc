// The page in front of more than it can show: a bounded part of it exists, and only what is looked at is asked for.

import assert from "node:assert/strict";
import { journeys, open, row, topology } from "./setup.js";

const all = journeys();
const { journey, at } = all;

const MESSAGES = 100000;
const QUEUES = 9999;
const ROWS = 100;
const PAGES = 10;
const HEAP = 20 * 1024 * 1024;
/** How high a row is, in pixels. */
const ROW = 28;
const TABS = 10;
/** Pages side by side. */
const SEEN = 8;
/** Between two frames while the list is dragged, in milliseconds. */
const FRAME = 33;
/** Time until rows stand there, in times of that until an empty list does. */
const RATIO = 4;

/** Events that are shown. */
const EVENTS = 500;

/** Requests of a page that a part of their address tells apart, those since the last `clear`. */
function requests(page, part) {
  const seen = { asked: [], failed: [], clear: () => { seen.asked = []; seen.failed = []; } };
  page.on("request", (request) => request.url().includes(part) && seen.asked.push(request.url()));
  page.on("requestfailed", (request) => request.url().includes(part) && seen.failed.push(request.url()));
  return seen;
}

async function fill(shop, count) {
  const batch = Array.from({ length: 1000 }, (_, index) => ({ id: `m-${index}` }));
  for (let sent = 0; sent < count; sent += batch.length) await shop.send("orders", ...batch);
}

const list = (page) => page.locator("main .list");
const scroll = (page, part) => list(page).evaluate((it, to) => { it.scrollTop = it.scrollHeight * to; }, part);
const settled = (page) => page.waitForFunction(() => !document.querySelector(".pending"));

/** Scrolls to a part of the list, and waits for the row in the middle of what is seen. */
async function visit(page, part) {
  const middle = await list(page).evaluate((it, [to, height]) => {
    it.scrollTop = it.scrollHeight * to;
    return Math.floor((it.scrollTop + it.clientHeight / 2) / height);
  }, [part, ROW]);
  await page.locator(`main .row[aria-rowindex="${middle}"]:not(.pending)`).waitFor();
}

async function heap(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find((it) => it.name === "JSHeapUsedSize").value;
}

/** The 95th of a hundred parts of the times between frames, in milliseconds, while the list is moved by so many pixels in each. */
function frames(page, step) {
  return list(page).evaluate(async (it, by) => {
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

/** The shortest of some times until a list says something, in milliseconds. */
async function time(page, shop, entity, text) {
  const times = [];
  for (let run = 0; run < 5; run += 1) {
    await at(page, shop, "faults");
    await page.getByText("No fault is set.").waitFor();
    times.push(await page.evaluate(async ([hash, wanted]) => {
      const began = performance.now();
      location.hash = hash;
      while (!document.querySelector("main")?.innerText.includes(wanted)) await new Promise(requestAnimationFrame);
      return performance.now() - began;
    }, [`#/${shop.name}/${entity}`, text]));
  }
  return Math.min(...times);
}

journey("A hundred thousand messages are as quick to see as none", topology("orders", "empty"), async (page, shop) => {
  await fill(shop, MESSAGES);
  const asked = requests(page, "/messages?");
  await at(page, shop, "orders");
  await row(page, "m-0").first().waitFor();
  // Nothing changes, so that nothing but scrolling asks.
  for (let step = 0; step <= 2 * PAGES; step += 1) {
    await visit(page, step / (2 * PAGES));
    assert.ok((await page.locator("main .row:not(.heads)").count()) <= ROWS);
  }
  await row(page, "m-999").first().waitFor();
  asked.clear();
  await visit(page, 0);
  assert.ok(asked.asked.some((url) => url.includes("skip=0")), "the first page is kept beside more than ten others");
  const used = await heap(page);
  assert.ok(used <= HEAP, `${used} bytes of JavaScript`);

  // The best of some, because other programs take their time too.
  const best = async (by) => Math.min(await frames(page, by), await frames(page, by), await frames(page, by));
  const [still, dragged] = [await best(0), await best(5000)];
  assert.ok(dragged <= Math.max(FRAME, 2 * still), `${dragged} ms for a frame while dragging, ${still} ms at rest`);

  const [none, full] = [await time(page, shop, "empty", "There are no messages here."), await time(page, shop, "orders", "m-0")];
  assert.ok(full / none <= RATIO, `${full} ms until rows, ${none} ms until an empty list`);
}, { timeout: 300000 });

journey("What is passed while scrolling is not asked for", topology("orders"), async (page, shop) => {
  await fill(shop, 10000);
  const asked = requests(page, "/messages?");
  await at(page, shop, "orders");
  await row(page, "m-0").first().waitFor();
  asked.clear();
  // A drag: every frame somewhere else, never at rest for 80 ms.
  await list(page).evaluate(async (it) => {
    const ends = performance.now() + 1000;
    for (let step = 1; performance.now() < ends; step += 1) {
      it.scrollTop = step * 2000;
      await new Promise(requestAnimationFrame);
    }
  });
  const during = asked.asked.filter((url) => !url.includes("limit=1&") && !url.endsWith("limit=1"));
  await settled(page);
  assert.ok(during.length <= 2, during.join(" "));

  // An answer that is slow, and passed before it comes.
  await page.route(/skip=5000&/, async () => {});
  await list(page).evaluate((it) => { it.scrollTop = 5010 * 28; });
  await page.waitForRequest(/skip=5000&/);
  const aborted = page.waitForEvent("requestfailed", (request) => /skip=5000&/.test(request.url()));
  await scroll(page, 0);
  await aborted;
  await row(page, "m-0").first().waitFor();
}, { timeout: 120000 });

journey("Ten thousand queues are one request", topology(...Array.from({ length: QUEUES }, (_, index) => `q-${String(index).padStart(5, "0")}`)), async (page, shop) => {
  const other = await open(all.browser, all.bus, "");
  // Those of the tree: what the page shows before it is told where to go may ask for dead letters.
  const asked = requests(other, `${shop.name}/entities?order=path`);
  await other.goto(`${all.bus.page}#/${shop.name}/record`);
  await other.locator(".tree .row", { hasText: "q-00001" }).waitFor();
  await settled(other);
  assert.equal(asked.asked.length, 1, asked.asked.join(" "));
  assert.equal(await other.locator(".tree .list").getAttribute("aria-rowcount"), String(QUEUES + 1));
  await other.getByLabel("Filter entities by a part of their name").fill("q-09998");
  await other.locator(".tree .row", { hasText: "q-09998" }).click();
  await other.getByRole("heading", { name: "q-09998" }).waitFor();
  // The last of all that have its name in theirs.
  await shop.ask("PUT", "/queues/zz/q");
  await other.goto(`${all.bus.page}#/${shop.name}/q`);
  await other.getByText("There is no entity q in").waitFor();
  await other.goto(`${all.bus.page}#/${shop.name}/zz%2Fq`);
  await other.getByRole("heading", { name: "zz/q" }).waitFor();
  assert.deepEqual(other.wrong, []);
  await other.context().close();
}, { timeout: 120000 });

journey("The record of an entity is shown in part", topology("orders"), async (page, shop) => {
  await fill(shop, 2000);
  await at(page, shop, "orders/record");
  await page.getByText(`The newest ${EVENTS} events, oldest first.`).waitFor();
  assert.equal(await page.locator("main .events tbody tr").count(), EVENTS);
  await page.locator("main .events tbody tr").last().getByText("m-999").waitFor();
});

journey("Topics are found behind a thousand queues", {
  UserConfig: { Namespaces: [{ Name: "sbemulatorns", Queues: Array.from({ length: 1001 }, (_, index) => ({ Name: `q-${index}` })), Topics: [{ Name: "zz", Subscriptions: [{ Name: "all" }] }] }] },
}, async (page, shop) => {
  await at(page, shop, "rules");
  await page.getByRole("cell", { name: "zz/Subscriptions/all" }).waitFor();
  assert.equal(await page.getByText("The namespace has no topics.").count(), 0);
});

journey("Ten tabs stay alive", topology("orders"), async (first, shop) => {
  const tabs = [first];
  await at(first, shop, "orders");
  while (tabs.length < TABS) {
    // A browser tells a page that another tab is in front of it; one without a window does not.
    await tabs.at(-1).evaluate(() => {
      Object.defineProperty(document, "hidden", { value: true, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    const tab = await first.context().newPage();
    await tab.goto(`${all.bus.page}#/${shop.name}/orders`);
    await tab.getByText("There are no messages here.").waitFor();
    tabs.push(tab);
  }
  await shop.send("orders", { id: "o-17" });
  await row(tabs.at(-1), "o-17").waitFor({ timeout: 1000 });
  // One that slept knows when it is seen again.
  await first.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: false, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await row(first, "o-17").waitFor({ timeout: 2000 });
});

journey("Eight pages that are all seen stay alive, and one without a stream gets that of a page that is closed", topology("orders"), async (first, shop) => {
  const pages = [first];
  await at(first, shop, "orders");
  // A browser opens six connections to a host: were each a stream, the seventh page would get no file.
  while (pages.length < SEEN) {
    const page = await first.context().newPage();
    await page.goto(`${all.bus.page}#/${shop.name}/orders`);
    await page.getByText("There are no messages here.").waitFor();
    pages.push(page);
  }
  await shop.send("orders", { id: "o-1" });
  for (const page of pages) await row(page, "o-1").waitFor({ timeout: 5000 });
  const last = pages.at(-1);
  await last.waitForRequest((request) => request.url().endsWith("/changes") && request.resourceType() === "fetch");
  const stream = last.waitForRequest((request) => request.url().endsWith("/changes") && request.resourceType() === "eventsource");
  for (const page of pages.slice(1, -1)) await page.close();
  await stream;
  await shop.send("orders", { id: "o-2" });
  await row(last, "o-2").waitFor({ timeout: 1000 });
}, { timeout: 120000 });
