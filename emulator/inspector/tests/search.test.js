// What is looked for: lists by filters, what is done to all that they show, columns of one's own, and files.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { journeys, row, topology } from "./setup.js";

const { journey, at } = journeys();

const SHOP = [
  { id: "n1", body: "needle", properties: { color: "red" } },
  { id: "n2", body: "hay", properties: { color: "red" } },
  { id: "n3", body: "needle", properties: { color: "blue" } },
];

const ids = async (shop, entity) => (await shop.ask("GET", `/messages?entity=${entity}`)).messages.map((it) => it.message_id);

/** What the button for everything asks, and what stands there once that was answered. */
async function answer(page, button, question, yes) {
  await page.getByRole("button", { name: button }).click();
  await page.getByRole("dialog").getByText(question, { exact: true }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: yes, exact: true }).click();
}

async function exported(page) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  return JSON.parse(await readFile(await download.path(), "utf8"));
}

journey("What is done to all is done to what the list shows", topology("orders"), async (page, shop) => {
  await shop.send("orders", ...SHOP, { id: "later", body: "needle", message_annotations: { "x-opt-scheduled-enqueue-time": { timestamp: Date.now() + 3600000 } } });
  await at(page, shop, "orders?body=needle&where=color%20%3D%20%27red%27");
  await row(page, "n1").waitFor();
  await answer(page, "Delete what matches…", "Delete the 1 message of orders that match color = 'red' and have “needle” in their body?", "Delete");
  await page.getByText("Deleted: 1 message", { exact: false }).waitFor();
  assert.deepEqual(await ids(shop, "orders"), ["n2", "n3", "later"]);
  await at(page, shop, "orders?body=needle&state=active");
  await row(page, "n3").waitFor();
  await answer(page, "Dead-letter what matches…", "Dead-letter the 1 message of orders that are active and have “needle” in their body?", "Dead-letter");
  await page.getByText("Dead-lettered: 1 message").waitFor();
  assert.deepEqual(await ids(shop, "orders"), ["n2", "later"]);
  await at(page, shop, "orders/dead-letter?body=hay");
  await page.getByText("No message is like that.").waitFor();
  await page.getByRole("button", { name: "Resubmit what matches…" }).click();
  await page.locator("[aria-live]").getByText("No message is like that.").waitFor();
  assert.equal(await page.getByRole("dialog").count(), 0);
});

journey("What was looked for in one entity is not asked about in another", topology("orders", "invoices"), async (page, shop) => {
  await shop.send("orders", { id: "o-1" });
  await shop.send("invoices", { id: "i-1" });
  await at(page, shop, "orders");
  await row(page, "o-1").waitFor();
  let release = () => {};
  const held = new Promise((resolve) => { release = resolve; });
  await page.route("**/messages?entity=orders&limit=200", async (route) => { await held; await route.continue(); });
  await page.getByRole("button", { name: "Delete all…" }).click();
  await at(page, shop, "invoices");
  await row(page, "i-1").waitFor();
  const answered = page.waitForResponse("**/messages?entity=orders&limit=200");
  release();
  await answered;
  await page.getByRole("button", { name: "Dead-letter all…" }).click();
  await page.getByRole("dialog").getByText("Dead-letter all 1 message of invoices?").waitFor();
});

journey("A thousand messages at once are the first of more", topology("orders"), async (page, shop) => {
  await shop.send("orders", ...Array.from({ length: 1000 }, (_, index) => ({ id: `m-${index}` })));
  await shop.send("orders", { id: "last" });
  await at(page, shop, "orders");
  await answer(page, "Delete all…", "Delete the first 1,000 messages of orders? There are more, which stay.", "Delete");
  await page.getByText("Deleted: 1,000 messages").waitFor();
  assert.deepEqual(await ids(shop, "orders"), ["last"]);
});

journey("A file has what the list shows, and what went meanwhile is told", topology("orders"), async (page, shop) => {
  await shop.send("orders", ...SHOP);
  await at(page, shop, "orders?body=needle");
  await row(page, "n3").waitFor();
  assert.deepEqual((await exported(page)).map((it) => it.properties.message_id), ["n1", "n3"]);
  await page.getByText("Exported 2 messages").waitFor();
  await page.route("**/messages/3?*", (route) => route.fulfill({ status: 404, body: '{"error":{"message":"gone"}}' }));
  assert.deepEqual((await exported(page)).map((it) => it.properties.message_id), ["n1"]);
  await page.getByText("Exported 1 message; 1 message went meanwhile").waitFor();
  await page.route("**/messages/1?*", (route) => route.fulfill({ status: 500, body: '{"error":{"message":"broken"}}' }));
  await page.getByRole("button", { name: "Export" }).click();
  await page.getByText("broken").waitFor();
});

journey("A file that cannot be sent is said", topology("orders"), async (page, shop) => {
  await at(page, shop, "orders");
  const file = (text) => page.getByLabel("Import").setInputFiles({ name: "m.json", mimeType: "application/json", buffer: Buffer.from(text) });
  await file("no JSON");
  await page.locator("[aria-live] .bad").waitFor();
  await file('[{"application_properties": {"n": {"long": 9007199254740993}}}]');
  await page.getByText('9007199254740993 would be rounded: write it as a text, as in {"long": "9007199254740993"}').waitFor();
  await file('[{"body": {"text": "x"}}, {"body": {"omitted": 5}}]');
  await page.locator("[aria-live] .bad", { hasText: "messages[1]" }).waitFor();
  await file('{"body": {"text": "alone"}, "application_properties": {"n": {"long": "9007199254740993"}}}');
  await page.getByText("Sent 1 message").waitFor();
  const { message } = await shop.ask("GET", "/messages/1?entity=orders");
  assert.deepEqual(message.application_properties, { n: { long: "9007199254740993" } });
});

journey("Columns of one's own show properties, and bodies that are long", topology("orders"), async (page, shop) => {
  const pad = "y".repeat(3000);
  await shop.send("orders", { id: "long", body: JSON.stringify({ pad, total: 7 }), properties: { color: "red" } }, { id: "short", body: '{"total": 12345678901234567890}' });
  await shop.send("orders", { id: "none", body: "text" });
  await at(page, shop, "orders");
  await page.getByLabel("Columns").fill("body.total, color, message_id");
  await page.keyboard.press("Tab");
  const cells = async (id) => (await row(page, id).getByRole("gridcell").allInnerTexts()).slice(-3);
  await row(page, "long").getByText("red").waitFor();
  assert.deepEqual(await cells("long"), ["7", "red", "long"]);
  assert.deepEqual(await cells("short"), ["12345678901234567890", "", "short"]);
  assert.deepEqual(await cells("none"), ["", "", "none"]);
});

const copied = async (page, button) => {
  await page.getByRole("button", { name: button }).click();
  return page.evaluate(() => globalThis.copied);
};

journey("What is copied holds", {
  UserConfig: { Namespaces: [{ Name: "sbemulatorns", Queues: [{ Name: "orders" }], Topics: [{ Name: "prices", Subscriptions: [{ Name: "high" }] }] }] },
}, async (page, shop) => {
  await shop.send("prices", { id: "p-1" }, { id: "p-2" });
  await shop.ask("POST", "/messages/act", { entity: "prices/Subscriptions/high", numbers: [1], act: "dead-letter" });
  await page.evaluate(() => { navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }; });
  const high = encodeURIComponent("prices/Subscriptions/high");
  for (const [hash, rust] of [
    ["orders", 'assert_message_count!(servicebus.queue("orders"), active = 0).await;'],
    ["prices", 'assert_message_count!(servicebus.topic("prices"), scheduled = 0).await;'],
    ["prices/transfer-dead-letter", 'assert_message_count!(servicebus.topic("prices").transfer_dead_letters(), active = 0).await;'],
    [high, 'assert_message_count!(servicebus.subscription("prices", "high"), active = 1).await;'],
    [`${high}/dead-letter`, 'assert_message_count!(servicebus.subscription("prices", "high").dead_letters(), active = 1).await;'],
  ]) {
    await at(page, shop, hash);
    assert.equal(await copied(page, "Copy as Rust"), rust);
  }
  assert.equal(await copied(page, "Copy as pytest"), 'assert servicebus.counts("prices/Subscriptions/high/$DeadLetterQueue")["active"] == 1');
  await at(page, shop, `${high}?where=a%20%3D%20'b'`);
  assert.match(await copied(page, "Copy as curl"), /messages\?entity=prices%2FSubscriptions%2Fhigh&where=a\+%3D\+%27b%27'$/);
});
