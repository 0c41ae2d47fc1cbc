// Takes pictures of the views with something in them, for people to look at: `../screenshots`.

import { writeFile } from "node:fs/promises";
import { connect } from "./receiver.js";
import { browser as launch, emulator, namespace, shot } from "./setup.js";

const SCHEMES = ["light", "dark"];
const WIDTHS = [1440, 760];

/** Views that the README shows. */
const README = ["messages", "story"];

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
/** The views, by the part of the address behind the namespace. @type {[string, string][]} */
const VIEWS = [
  ["namespace", ""],
  ["messages", ORDERS],
  ["message", `${ORDERS}/messages/3`],
  ["story", `${ORDERS}/dead-letter/messages/1`],
  ["entity-record", `${ORDERS}/record`],
  ["settings", `${encodeURIComponent("events/Subscriptions/billing")}/settings`],
  ["sessions", `${encodeURIComponent("checkout/payments")}/sessions/customer-7`],
  ["record", "record"],
  ["rules", "rules"],
  ["faults", "faults"],
  ["connections", "connections"],
  ["repair", `${ORDERS}/dead-letter/messages/1`],
];

const bus = await emulator();
const browser = await launch();
const shop = await namespace(bus, "shop", TOPOLOGY);
await shop.ask("POST", "/clock/freeze");
const worker = await connect(shop.connectionString);
await fill();
for (const colorScheme of SCHEMES) {
  for (const width of WIDTHS) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    for (const [name, hash] of VIEWS) {
      const page = await context.newPage();
      await page.goto(`${bus.page}#/${shop.name}/${hash}`);
      await page.waitForFunction(() => !document.querySelector(".pending"));
      if (name === "repair") await page.getByRole("button", { name: "Repair and resubmit…" }).click();
      await page.waitForTimeout(500);
      if (name === "story") await page.locator("aside .picture").evaluate((picture) => picture.scrollIntoView());
      await shot(page, `${name}-${colorScheme}-${width}`);
      if (README.includes(name) && width === WIDTHS[0]) await picture(page, `${name}-${colorScheme}`);
      await page.close();
    }
    await context.close();
  }
}
worker.close();
await browser.close();
await bus.stop();

/** A small picture, as the README has it. */
async function picture(page, name) {
  await page.setViewportSize({ width: 1280, height: 720 });
  if (name.startsWith("story")) await page.locator("aside .picture").evaluate((it) => it.scrollIntoView());
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 60 });
  await writeFile(`${process.env.SERVICEBUS_SCREENSHOTS}/${name}.webp`, Buffer.from(data, "base64"));
}

/** Orders of which one could not be charged, one is on its way, and the others wait. */
async function fill() {
  const order = (number, total, more = {}) => ({
    id: `order-${number}`,
    subject: "order",
    body: JSON.stringify({ order: number, total, lines: [{ sku: "A-17", quantity: 2 }], customer: { name: "Grüße & Söhne", region: "eu" } }),
    properties: { region: "eu", price: { int: total } },
    ...more,
  });
  await shop.send("checkout/orders", order(1001, -3));
  for (let delivery = 1; delivery <= 2; delivery += 1) {
    const { delivery: held, receiver } = await worker.receive("checkout/orders");
    await shop.ask("POST", "/clock/advance", { seconds: 2 * delivery });
    held.modified({ delivery_failed: true });
    receiver.close();
  }
  const last = await worker.receive("checkout/orders");
  await shop.ask("POST", "/clock/advance", { seconds: 61 });
  last.receiver.close();
  await shop.send("checkout/orders", order(1002, 120), order(1003, 40), ...Array.from({ length: 40 }, (_, index) => order(1004 + index, 10 * index)));
  await worker.receive("checkout/orders");
  const later = Date.parse((await shop.ask("GET", "/clock")).now) + 3600000;
  await shop.send("checkout/orders", order(2001, 15, { message_annotations: { "x-opt-scheduled-enqueue-time": { timestamp: later } } }));
  await shop.send("checkout/payments", { id: "p-1", session: "customer-7", body: "paid" }, { id: "p-2", session: "customer-8", body: "paid" });
  await worker.receive("checkout/payments", { session: "customer-7" });
  await worker.setSessionState("checkout/payments", "customer-7", '{"step": "authorised", "attempts": 2}');
  await shop.send("events", order(3001, 250), order(3002, 20));
  await shop.ask("POST", "/faults", { operation: "complete", entity: "checkout/orders", effect: "lose-lock", nth: 2 });
  await shop.ask("POST", "/faults", { operation: "send", effect: { delay: { seconds: 2 } } }).catch(() => undefined);
}
