// Takes screenshots of the views with example data: `../screenshots`.

import { writeFile } from "node:fs/promises";
import { connect } from "./amqp-client.js";
import { createNamespace, launchBrowser, screenshot, startEmulator } from "./setup.js";

const SCHEMES = ["light", "dark"];
const WIDTHS = [1440, 760];

/** Views in the README. */
const README = ["messages", "timeline"];

const TOPOLOGY = {
  UserConfig: {
    Namespaces: [{
      Name: "sbemulatorns",
      Queues: [
        { Name: "checkout/orders", Properties: { MaxDeliveryCount: 3, LockDuration: "PT1M" } },
        { Name: "checkout/payments", Properties: { RequiresSession: true } },
        { Name: "shipping/labels" },
        { Name: "archive" },
      ],
      Topics: [{
        Name: "events",
        Subscriptions: [
          { Name: "billing", Rules: [{ Name: "expensive", Properties: { FilterType: "Sql", SqlFilter: { SqlExpression: "price > 100 AND region = 'eu'" } } }] },
          { Name: "audit" },
          { Name: "search", Properties: { ForwardTo: "archive" } },
        ],
      }],
    }],
  },
};

const ORDERS = encodeURIComponent("checkout/orders");
/** The views by their routes below the namespace. @type {[string, string][]} */
const VIEWS = [
  ["namespace", ""],
  ["messages", ORDERS],
  ["message", `${ORDERS}/messages/3`],
  ["timeline", `${ORDERS}/dead-letter/messages/1`],
  ["entity-timeline", `${ORDERS}/record`],
  ["settings", `${encodeURIComponent("events/Subscriptions/billing")}/settings`],
  ["sessions", `${encodeURIComponent("checkout/payments")}/sessions/customer-7`],
  ["namespace-timeline", "record"],
  ["rules", "rules"],
  ["faults", "faults"],
  ["connections", "connections"],
  ["repair", `${ORDERS}/dead-letter/messages/1`],
];

const emulator = await startEmulator();
const browser = await launchBrowser();
const namespace = await createNamespace(emulator, "shop", TOPOLOGY);
await namespace.request("POST", "/clock/freeze");
const worker = await connect(namespace.connectionString);
await fill();
for (const colorScheme of SCHEMES) {
  for (const width of WIDTHS) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    for (const [name, route] of VIEWS) {
      const page = await context.newPage();
      await page.goto(`${emulator.page}#/${namespace.name}/${route}`);
      await page.waitForFunction(() => !document.querySelector(".pending"));
      if (name === "repair") await page.getByRole("button", { name: "Repair and resubmit…" }).click();
      await page.waitForTimeout(500);
      if (name === "timeline") await page.locator("aside .diagram").evaluate((picture) => picture.scrollIntoView());
      await screenshot(page, `${name}-${colorScheme}-${width}`);
      if (README.includes(name) && width === WIDTHS[0]) await readmePicture(page, `${name}-${colorScheme}`);
      await page.close();
    }
    await context.close();
  }
}
worker.close();
await browser.close();
await emulator.stop();

/** Takes a small picture for the README. */
async function readmePicture(page, name) {
  await page.setViewportSize({ width: 1280, height: 720 });
  if (name.startsWith("timeline")) await page.locator("aside .diagram").evaluate((it) => it.scrollIntoView());
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 60 });
  await writeFile(`${process.env.SERVICEBUS_SCREENSHOTS}/${name}.webp`, Buffer.from(data, "base64"));
}

/** Sends orders. One is dead-lettered, one is locked, and one is scheduled. */
async function fill() {
  const order = (number, total, more = {}) => ({
    id: `order-${number}`,
    subject: "order",
    body: JSON.stringify({ order: number, total, lines: [{ sku: "A-17", quantity: 2 }], customer: { name: "Grüße & Söhne", region: "eu" } }),
    properties: { region: "eu", price: { int: total } },
    ...more,
  });
  await namespace.send("checkout/orders", order(1001, -3));
  for (let delivery = 1; delivery <= 2; delivery += 1) {
    const { delivery: locked, receiver } = await worker.receive("checkout/orders");
    await namespace.request("POST", "/clock/advance", { seconds: 2 * delivery });
    locked.modified({ delivery_failed: true });
    receiver.close();
  }
  const last = await worker.receive("checkout/orders");
  await namespace.request("POST", "/clock/advance", { seconds: 61 });
  last.receiver.close();
  await namespace.send("checkout/orders", order(1002, 120), order(1003, 40), ...Array.from({ length: 40 }, (_, index) => order(1004 + index, 10 * index)));
  await worker.receive("checkout/orders");
  const later = Date.parse((await namespace.request("GET", "/clock")).now) + 3600000;
  await namespace.send("checkout/orders", order(2001, 15, { message_annotations: { "x-opt-scheduled-enqueue-time": { timestamp: later } } }));
  await namespace.send("checkout/payments", { id: "p-1", session: "customer-7", body: "paid" }, { id: "p-2", session: "customer-8", body: "paid" });
  await worker.receive("checkout/payments", { session: "customer-7" });
  await worker.setSessionState("checkout/payments", "customer-7", '{"step": "authorised", "attempts": 2}');
  await namespace.send("events", order(3001, 250), order(3002, 20));
  await namespace.request("POST", "/faults", { operation: "complete", entity: "checkout/orders", effect: "lose-lock", nth: 2 });
  await namespace.request("POST", "/faults", { operation: "send", effect: { delay: { seconds: 2 } } }).catch(() => undefined);
}
