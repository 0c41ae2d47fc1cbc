// Large namespaces: the page keeps and requests only a bounded part of the data.

import assert from "node:assert/strict";
import { createSuite, fill, open, row, topology } from "./setup.js";

const suite = createSuite();
const { pageTest, visit } = suite;

const MESSAGES = 100000;
const QUEUES = 9999;
const MAX_ROWS = 100;
const PAGES = 10;
const MAX_HEAP = 20 * 1024 * 1024;
/** The height of a row in pixels. */
const ROW_HEIGHT = 28;
const TABS = 10;
/** The number of visible pages. */
const VISIBLE_PAGES = 8;
const FRAMES = 100;
/** The maximum number of changes to the document in a frame: rows are added and removed, at most twice. */
const MAX_CHANGES = 4 * MAX_ROWS;
/** The maximum number of layouts per frame. */
const MAX_LAYOUTS = 3;

/** The maximum number of events in a view. */
const MAX_EVENTS = 500;

/** Collects the requests of a page whose URLs contain a text. */
function requests(page, part) {
  const urls = [];
  page.on("request", (request) => request.url().includes(part) && urls.push(request.url()));
  return urls;
}

const list = (page) => page.locator("main .list");
const scroll = (page, part) => list(page).evaluate((it, to) => { it.scrollTop = it.scrollHeight * to; }, part);
const settled = (page) => page.waitForFunction(() => !document.querySelector(".pending"));

/** Scrolls to a part of the list and waits for the row in the middle of the visible ones. */
async function scrollToRow(page, part) {
  const middle = await list(page).evaluate((it, [to, height]) => {
    it.scrollTop = it.scrollHeight * to;
    return Math.floor((it.scrollTop + it.clientHeight / 2) / height);
  }, [part, ROW_HEIGHT]);
  await page.locator(`main .row[aria-rowindex="${middle}"]:not(.pending)`).waitFor();
}

async function heap(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find((it) => it.name === "JSHeapUsedSize").value;
}

/** What a frame causes while the list is scrolled: the greatest number of changes to the document, and the mean number of layouts. */
async function workPerFrame(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const layouts = async () => (await session.send("Performance.getMetrics")).metrics.find((it) => it.name === "LayoutCount").value;
  const before = await layouts();
  const changes = await list(page).evaluate(async (it, frames) => {
    let [changes, most] = [0, 0];
    const observer = new MutationObserver((records) => { changes += records.length; });
    observer.observe(it, { subtree: true, childList: true, attributes: true, characterData: true });
    for (let frame = 0; frame < frames; frame += 1) {
      it.scrollTop += 5000;
      await new Promise(requestAnimationFrame);
      most = Math.max(most, changes);
      changes = 0;
    }
    observer.disconnect();
    return most;
  }, FRAMES);
  return { changes, layouts: (await layouts() - before) / FRAMES };
}

pageTest("A list of a hundred thousand messages and the work of its frames are bounded", topology("orders"), async (page, namespace) => {
  await fill(namespace, MESSAGES);
  const requested = requests(page, "/messages?");
  await visit(page, namespace, "orders");
  await row(page, "m-0").first().waitFor();
  // The entity does not change, so only scrolling causes requests.
  for (let step = 0; step <= 2 * PAGES; step += 1) {
    await scrollToRow(page, step / (2 * PAGES));
    assert.ok((await page.locator("main .row:not(.header)").count()) <= MAX_ROWS);
  }
  await row(page, "m-999").first().waitFor();
  requested.length = 0;
  await scrollToRow(page, 0);
  assert.ok(requested.some((url) => url.includes("skip=0")), "the first page was kept beside more than ten others");
  const used = await heap(page);
  assert.ok(used <= MAX_HEAP, `${used} bytes of JavaScript heap`);

  await scrollToRow(page, 0);
  const { changes, layouts } = await workPerFrame(page);
  assert.ok(changes > 0 && changes <= MAX_CHANGES, `${changes} changes to the document in a frame`);
  assert.ok(layouts <= MAX_LAYOUTS, `${layouts} layouts per frame`);
}, { timeout: 300000 });

pageTest("Rows that are scrolled past are not requested", topology("orders"), async (page, namespace) => {
  await fill(namespace, 10000);
  const requested = requests(page, "/messages?");
  await visit(page, namespace, "orders");
  await row(page, "m-0").first().waitFor();
  requested.length = 0;
  // Scrolls in every frame, so the list never rests for 80 ms.
  await list(page).evaluate(async (it) => {
    const ends = performance.now() + 1000;
    for (let step = 1; performance.now() < ends; step += 1) {
      it.scrollTop = step * 2000;
      await new Promise(requestAnimationFrame);
    }
  });
  const during = requested.filter((url) => !url.includes("limit=1&") && !url.endsWith("limit=1"));
  await settled(page);
  assert.ok(during.length <= 2, during.join(" "));

  // Scrolls away before a slow response arrives.
  await page.route(/skip=5000&/, async () => {});
  await list(page).evaluate((it) => { it.scrollTop = 5010 * 28; });
  await page.waitForRequest(/skip=5000&/);
  const aborted = page.waitForEvent("requestfailed", (request) => /skip=5000&/.test(request.url()));
  await scroll(page, 0);
  await aborted;
  await row(page, "m-0").first().waitFor();
}, { timeout: 120000 });

pageTest("Ten thousand queues are listed by one request", topology(...Array.from({ length: QUEUES }, (_, index) => `q-${String(index).padStart(5, "0")}`)), async (page, namespace) => {
  const other = await open(suite.browser, suite.emulator, "");
  // Only those of the tree: the page may request the dead-letter counts before it has a route.
  const requested = requests(other, `${namespace.name}/entities?order=path`);
  await other.goto(`${suite.emulator.page}#/${namespace.name}/record`);
  await other.locator(".tree .row", { hasText: "q-00001" }).waitFor();
  await settled(other);
  assert.equal(requested.length, 1, requested.join(" "));
  assert.equal(await other.locator(".tree .list").getAttribute("aria-rowcount"), String(QUEUES + 1));
  await other.getByLabel("Filter entities by name").fill("q-09998");
  await other.locator(".tree .row", { hasText: "q-09998" }).click();
  await other.getByRole("heading", { name: "q-09998" }).waitFor();
  // The name of the last entity contains the searched name, which is not an entity.
  await namespace.request("PUT", "/queues/zz/q");
  await other.goto(`${suite.emulator.page}#/${namespace.name}/q`);
  await other.getByText("There is no entity q in").waitFor();
  await other.goto(`${suite.emulator.page}#/${namespace.name}/zz%2Fq`);
  await other.getByRole("heading", { name: "zz/q" }).waitFor();
  assert.deepEqual(other.errors, []);
  await other.context().close();
}, { timeout: 120000 });

pageTest("The timeline of an entity shows the newest events", topology("orders"), async (page, namespace) => {
  await fill(namespace, 2000);
  await visit(page, namespace, "orders/record");
  await page.getByText(`The newest ${MAX_EVENTS} events, oldest first.`).waitFor();
  assert.equal(await page.locator("main .events tbody tr").count(), MAX_EVENTS);
  await page.locator("main .events tbody tr").last().getByText("m-999").waitFor();
});

pageTest("Topics are found after a thousand queues", {
  UserConfig: { Namespaces: [{ Name: "sbemulatorns", Queues: Array.from({ length: 1001 }, (_, index) => ({ Name: `q-${index}` })), Topics: [{ Name: "zz", Subscriptions: [{ Name: "all" }] }] }] },
}, async (page, namespace) => {
  await visit(page, namespace, "rules");
  await page.getByRole("cell", { name: "zz/Subscriptions/all" }).waitFor();
  assert.equal(await page.getByText("The namespace has no topics.").count(), 0);
});

pageTest("Ten tabs show a message that arrives", topology("orders"), async (first, namespace) => {
  const tabs = [first];
  await visit(first, namespace, "orders");
  while (tabs.length < TABS) {
    // A browser hides a page behind another tab; a headless browser does not.
    await tabs.at(-1).evaluate(() => {
      Object.defineProperty(document, "hidden", { value: true, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    const tab = await first.context().newPage();
    await tab.goto(`${suite.emulator.page}#/${namespace.name}/orders`);
    await tab.getByText("There are no messages.").waitFor();
    tabs.push(tab);
  }
  await namespace.send("orders", { id: "o-17" });
  await row(tabs.at(-1), "o-17").waitFor();
  // A hidden page updates when it becomes visible.
  await first.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: false, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await row(first, "o-17").waitFor();
});

pageTest("Eight visible pages show a message that arrives, and one uses the stream of a closed page", topology("orders"), async (first, namespace) => {
  const pages = [first];
  await visit(first, namespace, "orders");
  // A browser opens six connections to a host. If each were a stream, the seventh page could not load.
  while (pages.length < VISIBLE_PAGES) {
    const page = await first.context().newPage();
    await page.goto(`${suite.emulator.page}#/${namespace.name}/orders`);
    await page.getByText("There are no messages.").waitFor();
    pages.push(page);
  }
  await namespace.send("orders", { id: "o-1" });
  for (const page of pages) await row(page, "o-1").waitFor();
  const last = pages.at(-1);
  await last.waitForRequest((request) => request.url().endsWith("/changes") && request.resourceType() === "fetch");
  const stream = last.waitForRequest((request) => request.url().endsWith("/changes") && request.resourceType() === "eventsource");
  for (const page of pages.slice(1, -1)) await page.close();
  await stream;
  await namespace.send("orders", { id: "o-2" });
  await row(last, "o-2").waitFor();
}, { timeout: 120000 });
