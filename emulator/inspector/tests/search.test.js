// Filters of the message list, actions on the listed messages, custom columns, export and import.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Recorded } from "../page/source.js";
import { createNamespace, createSuite, launchBrowser, open, row, topology } from "./setup.js";

const suite = createSuite();
const { pageTest, visit } = suite;

const MESSAGES = [
  { id: "n1", body: "needle", properties: { color: "red" } },
  { id: "n2", body: "hay", properties: { color: "red" } },
  { id: "n3", body: "needle", properties: { color: "blue" } },
];

const ids = async (namespace, entity) => (await namespace.request("GET", `/messages?entity=${entity}`)).messages.map((it) => it.message_id);

/** Clicks the button of an action and confirms its dialog. */
async function confirm(page, button, question, action) {
  await page.getByRole("button", { name: button }).click();
  await page.getByRole("dialog").getByText(question, { exact: true }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: action, exact: true }).click();
}

async function exportMessages(page) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  return JSON.parse(await readFile(await download.path(), "utf8"));
}

pageTest("A list of one state shows each of its messages", topology("orders"), async (page, namespace) => {
  const later = { "x-opt-scheduled-enqueue-time": { timestamp: Date.now() + 3600000 } };
  await namespace.send("orders", ...Array.from({ length: 240 }, (_, index) => ({ id: `m-${index}`, message_annotations: index % 2 ? later : undefined })));
  await visit(page, namespace, "orders?state=scheduled");
  for (const [index, id] of [[0, "m-1"], [60, "m-121"], [119, "m-239"]]) {
    await page.locator("main .list").evaluate((it, to) => { it.scrollTop = to * 28; }, index);
    await page.locator(`main .row[aria-rowindex="${index + 2}"]`).getByText(id, { exact: true }).waitFor();
  }
  assert.equal(await page.locator("main .list").getAttribute("aria-rowcount"), "121");
});

test("A report counts all messages of a state", async () => {
  const messages = Array.from({ length: 120 }, (_, index) => ({ sequence_number: index + 1, state: "active" }));
  const report = new Recorded({ test: "", failure: null, namespace: "n", fragment: "", answers: { "/messages?entity=q": { messages, total: 130 } } });
  const answer = await report.request("GET", "/namespaces/n/messages", { query: { entity: "q", state: "active", from: 51, limit: 50 } });
  assert.deepEqual([answer.messages.length, answer.next, answer.total], [50, 101, 120]);
});

test("A report limits the events of a message apart from those of no message", async () => {
  const events = [null, "a", null, "b", null, null, "a", null].map((message_id, index) => ({ message_id, position: index + 1, entity: "q" }));
  const report = new Recorded({ test: "", failure: null, namespace: "n", fragment: "", answers: { "/timeline": { events } } });
  const answer = async (query) => {
    const { events: found, next } = await report.request("GET", "/namespaces/n/timeline", { query: { order: "newest", ...query } });
    return [found.map((it) => it.position), next];
  };
  assert.deepEqual(await answer({ message_id: "a", limit: 2 }), [[2, 6, 7, 8], undefined]);
  assert.deepEqual(await answer({ message_id: "a", limit: 1 }), [[7, 8], 7]);
  assert.deepEqual(await answer({ message_id: "c", limit: 2 }), [[], undefined]);
  assert.deepEqual(await answer({ limit: 3 }), [[6, 7, 8], 6]);
});

pageTest("Actions apply to the messages that match the filters", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", ...MESSAGES, { id: "later", body: "needle", message_annotations: { "x-opt-scheduled-enqueue-time": { timestamp: Date.now() + 3600000 } } });
  await visit(page, namespace, "orders?body=needle&where=color%20%3D%20%27red%27");
  await row(page, "n1").waitFor();
  await confirm(page, "Delete matching…", "Delete 1 matching message in orders (SQL filter: color = 'red'; body contains: needle)?", "Delete");
  await page.getByText("Deleted 1 message").waitFor();
  assert.deepEqual(await ids(namespace, "orders"), ["n2", "n3", "later"]);
  await visit(page, namespace, "orders?body=needle&state=active");
  await row(page, "n3").waitFor();
  await confirm(page, "Dead-letter matching…", "Dead-letter 1 matching message in orders (state: active; body contains: needle)?", "Dead-letter");
  await page.getByText("Dead-lettered 1 message").waitFor();
  assert.deepEqual(await ids(namespace, "orders"), ["n2", "later"]);
  await visit(page, namespace, "orders/dead-letter?body=hay");
  await page.getByText("No messages match the filters.").waitFor();
  await page.getByRole("button", { name: "Resubmit matching…" }).click();
  await page.locator("[aria-live]").getByText("No messages match the filters.").waitFor();
  assert.equal(await page.getByRole("dialog").count(), 0);
});

pageTest("An action does not open its dialog after another entity was selected", topology("orders", "invoices"), async (page, namespace) => {
  await namespace.send("orders", { id: "o-1" });
  await namespace.send("invoices", { id: "i-1" });
  await visit(page, namespace, "orders");
  await row(page, "o-1").waitFor();
  let release = () => {};
  const released = new Promise((resolve) => { release = resolve; });
  await page.route("**/messages?entity=orders&limit=200", async (route) => { await released; await route.continue(); });
  await page.getByRole("button", { name: "Delete all…" }).click();
  await visit(page, namespace, "invoices");
  await row(page, "i-1").waitFor();
  const answered = page.waitForResponse("**/messages?entity=orders&limit=200");
  release();
  await answered;
  await page.getByRole("button", { name: "Dead-letter all…" }).click();
  await page.getByRole("dialog").getByText("Dead-letter 1 message in invoices?").waitFor();
});

pageTest("An action applies to at most a thousand messages", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", ...Array.from({ length: 1000 }, (_, index) => ({ id: `m-${index}` })));
  await namespace.send("orders", { id: "last" });
  await visit(page, namespace, "orders");
  await confirm(page, "Delete all…", "Delete the first 1,000 messages in orders? The other messages stay unchanged.", "Delete");
  await page.getByText("Deleted 1,000 messages").waitFor();
  assert.deepEqual(await ids(namespace, "orders"), ["last"]);
});

pageTest("An export contains the listed messages and reports skipped ones", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", ...MESSAGES);
  await visit(page, namespace, "orders?body=needle");
  await row(page, "n3").waitFor();
  assert.deepEqual((await exportMessages(page)).map((it) => it.properties.message_id), ["n1", "n3"]);
  await page.getByText("Exported 2 messages").waitFor();
  await page.route("**/messages/3?*", (route) => route.fulfill({ status: 404, body: '{"error":{"message":"gone"}}' }));
  assert.deepEqual((await exportMessages(page)).map((it) => it.properties.message_id), ["n1"]);
  await page.getByText("Exported 1 message; 1 message skipped (no longer in the entity)").waitFor();
  await page.route("**/messages/1?*", (route) => route.fulfill({ status: 500, body: '{"error":{"message":"broken"}}' }));
  await page.getByRole("button", { name: "Export" }).click();
  await page.getByText("broken").waitFor();
});

pageTest("An import may have more bytes than a request", topology("orders"), async (page, namespace) => {
  await visit(page, namespace, "orders");
  const messages = Array.from({ length: 60 }, () => ({ body: { text: "x".repeat(200_000) } }));
  await page.getByLabel("Import").setInputFiles({ name: "m.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(messages)) });
  await page.getByText("Imported 60 messages").waitFor();
  assert.equal((await namespace.counts("orders")).active, 60);
});

pageTest("Scheduled messages cannot be dead-lettered together", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "o-1", message_annotations: { "x-opt-scheduled-enqueue-time": { timestamp: Date.now() + 3600000 } } });
  await visit(page, namespace, "orders?state=scheduled");
  await page.getByRole("button", { name: "Delete matching…" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Dead-letter matching…" }).count(), 0);
});

pageTest("An import reports files that cannot be sent", topology("orders"), async (page, namespace) => {
  await visit(page, namespace, "orders");
  const file = (text) => page.getByLabel("Import").setInputFiles({ name: "m.json", mimeType: "application/json", buffer: Buffer.from(text) });
  await file("no JSON");
  await page.locator("[aria-live] .bad").waitFor();
  await file('[{"application_properties": {"n": {"long": 9007199254740993}}}]');
  await page.getByText('9007199254740993 exceeds the integers that JSON numbers represent exactly: write it as a string, for example {"long": "9007199254740993"}').waitFor();
  await file('[{"application_properties": {"n": {"double": 100000000000000000}}}]');
  await page.getByText("Imported 1 message").waitFor();
  await file('[{"body": {"text": "x"}}, {"body": {"omitted": 5}}]');
  await page.locator("[aria-live] .bad", { hasText: "messages[1]" }).waitFor();
  await file('{"body": {"text": "alone"}, "application_properties": {"n": {"long": "9007199254740993"}}}');
  await row(page, "active").nth(1).waitFor();
  for (const [number, n] of [[1, { double: 1e17 }], [2, { long: "9007199254740993" }]]) {
    const { message } = await namespace.request("GET", `/messages/${number}?entity=orders`);
    assert.deepEqual(message.application_properties, { n });
  }
});

pageTest("Custom columns show properties and values of long bodies", topology("orders"), async (page, namespace) => {
  const pad = "y".repeat(3000);
  await namespace.send("orders", { id: "long", body: JSON.stringify({ pad, total: 7 }), properties: { color: "red" } }, { id: "short", body: '{"total": 12345678901234567890}' });
  await namespace.send("orders", { id: "none", body: "text" }, { id: "map", body: { value: { map: [["total", { int: 5 }]] } } });
  await visit(page, namespace, "orders");
  await page.getByLabel("Columns").fill("body.total, color, message_id");
  await page.keyboard.press("Tab");
  const cells = async (id) => (await row(page, id).getByRole("gridcell").allInnerTexts()).slice(-3);
  await row(page, "long").getByText("red").waitFor();
  assert.deepEqual(await cells("long"), ["7", "red", "long"]);
  assert.deepEqual(await cells("short"), ["12345678901234567890", "", "short"]);
  assert.deepEqual(await cells("none"), ["", "", "none"]);
  assert.deepEqual(await cells("map"), ["5", "", "map"]);
});

const copied = async (page, button) => {
  await page.getByRole("button", { name: button }).click();
  return page.evaluate(() => globalThis.copied);
};

pageTest("The copied request and assertions describe the list", {
  UserConfig: { Namespaces: [{ Name: "sbemulatorns", Queues: [{ Name: "orders" }], Topics: [{ Name: "prices", Subscriptions: [{ Name: "high" }] }] }] },
}, async (page, namespace) => {
  await namespace.send("prices", { id: "p-1" }, { id: "p-2" });
  await namespace.request("POST", "/messages/act", { entity: "prices/Subscriptions/high", numbers: [1], act: "dead-letter" });
  await page.evaluate(() => { navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }; });
  const high = encodeURIComponent("prices/Subscriptions/high");
  for (const [hash, rust] of [
    ["orders", 'assert_message_count!(servicebus.queue("orders"), active = 0).await;'],
    ["prices", 'assert_message_count!(servicebus.topic("prices"), scheduled = 0).await;'],
    ["prices/transfer-dead-letter", 'assert_message_count!(servicebus.topic("prices").transfer_dead_letters(), active = 0).await;'],
    [high, 'assert_message_count!(servicebus.subscription("prices", "high"), active = 1).await;'],
    [`${high}/dead-letter`, 'assert_message_count!(servicebus.subscription("prices", "high").dead_letters(), active = 1).await;'],
  ]) {
    await visit(page, namespace, hash);
    assert.equal(await copied(page, "Copy as Rust"), rust);
  }
  assert.equal(await copied(page, "Copy as pytest"), 'assert servicebus.counts("prices/Subscriptions/high/$DeadLetterQueue")["active"] == 1');
  await visit(page, namespace, `${high}?where=a%20%3D%20'b'`);
  assert.match(await copied(page, "Copy as curl"), /messages\?entity=prices%2FSubscriptions%2Fhigh&where=a\+%3D\+%27b%27'$/);
});

test("A text is copied at an address without a clipboard API", { timeout: 60000 }, async () => {
  const browser = await launchBrowser("--host-resolver-rules=MAP servicebus 127.0.0.1");
  const namespace = await createNamespace(suite.emulator, "insecure", topology("orders"));
  const [origin, address] = [suite.emulator.origin, suite.emulator.page].map((it) => it.replace("127.0.0.1", "servicebus"));
  const page = await open(browser, { origin, page: address }, `#/${namespace.name}/orders`);
  await page.evaluate(() => document.addEventListener("copy", (event) => { globalThis.copied = event.target.value; }));
  assert.match(await copied(page, "Copy as curl"), /^curl 'http:\/\/servicebus:/);
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.deepEqual(page.errors, []);
  await browser.close();
});
