// Unusual messages: the page shows a bounded part of their content and stays responsive.

import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { remaining } from "../page/format.js";
import { createSuite, row, topology } from "./setup.js";

const { pageTest, visit } = createSuite();

const MAX_BODY = 1 << 18;

/** Opens a message and waits for its body. */
async function body(page, namespace, number = 1) {
  await visit(page, namespace, `orders/messages/${number}`);
  await page.getByRole("heading", { name: `Message ${number}` }).waitFor();
  const shown = page.getByRole("region", { name: "Body" });
  await shown.waitFor();
  return shown;
}

/** Asserts that the page still responds to keys. */
async function assertResponsive(page) {
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
}

pageTest("A gzip bomb is decompressed in part", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "bomb", body: gzipSync(Buffer.alloc(100 << 20, "a")) });
  const shown = await body(page, namespace);
  await page.getByText("decompressed (gzip)").waitFor();
  assert.ok((await shown.evaluate((it) => it.textContent.length)) <= MAX_BODY + 100);
  await assertResponsive(page);
});

pageTest("An invalid gzip body is shown as bytes", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "no-gzip", body: Buffer.from([0x1f, 0x8b, 0xff, 0x00, 0x01]) });
  assert.match(await (await body(page, namespace)).innerText(), /1f 8b ff 00 01/);
});

pageTest("Deep JSON is not indented", topology("orders"), async (page, namespace) => {
  const depth = 100000;
  await namespace.send("orders", { id: "deep", body: "[".repeat(depth) + "]".repeat(depth) });
  const shown = await body(page, namespace);
  assert.ok((await shown.evaluate((it) => it.textContent.length)) <= MAX_BODY + 100);
  await assertResponsive(page);
});

pageTest("Indented JSON keeps its numbers, names and order", topology("orders"), async (page, namespace) => {
  const text = '{"n":12345678901234567890,"pi":0.1234567890123456789,"z":1.0,"1":{"e":[],"o":{}},"s":"a\\"b, {\\u00e9","n":[1,-0]}';
  await namespace.send("orders", { id: "numbers", body: text });
  const shown = await (await body(page, namespace)).innerText();
  assert.equal(shown, `{
  "n": 12345678901234567890,
  "pi": 0.1234567890123456789,
  "z": 1.0,
  "1": {
    "e": [],
    "o": {}
  },
  "s": "a\\"b, {\\u00e9",
  "n": [
    1,
    -0
  ]
}`);
});

/** A list in a list, and so on. */
const nested = (depth) => (depth ? { list: [nested(depth - 1), "a\"b"] } : { int: 1 });

pageTest("AMQP values are shown with their types and without repeated quoting", topology("orders"), async (page, namespace) => {
  const map = [["n", { int: 5 }], ["s", "5"], ["b", true], ["none", null], ["in", { map: [[{ int: 1 }, { list: ["x"] }], ["1", 1.5]] }]];
  await namespace.send("orders", { id: "map", body: { value: { map } } }, { id: "deep", body: { value: nested(30) } });
  await namespace.send("orders", { id: "sequence", body: { sequences: [["a", { int: 1 }]] } }, { id: "bytes", body: { value: { binary: "AAH/" } } });
  const shown = async (number) => JSON.parse(await (await body(page, namespace, number)).innerText());
  assert.deepEqual(await shown(1), { n: { int: 5 }, s: "5", b: true, none: null, in: { map: [[{ int: 1 }, ["x"]], ["1", { double: 1.5 }]] } });
  await page.getByText("AMQP value, map").waitFor();
  let deep = await shown(2);
  for (let depth = 30; depth > 0; depth -= 1) [deep] = deep;
  assert.deepEqual(deep, { int: 1 });
  assert.deepEqual(await shown(3), [["a", { int: 1 }]]);
  assert.match(await (await body(page, namespace, 4)).innerText(), /00 01 ff/);
});

pageTest("XML is indented, without elements that are not closed and not to any depth", topology("orders"), async (page, namespace) => {
  const deep = "<i>".repeat(30000) + "</i>".repeat(30000);
  await namespace.send("orders", { id: "html", body: '<html><head><meta a="b"><link></head><p>a</p><br><img/></html>' }, { id: "deep", body: deep });
  assert.equal(await (await body(page, namespace)).innerText(), `<html>
  <head>
    <meta a="b">
    <link>
  </head>
  <p>a</p>
  <br>
  <img/>
</html>`);
  assert.equal(await (await body(page, namespace, 2)).innerText(), deep);
});

pageTest("A message that cannot be shown does not leave the last one in its place", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "first", body: "one" }, { id: "second", body: "two" }, { id: "third", body: "three" });
  await page.route("**/messages/2?*", async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    await route.fulfill({ response, json: { ...answer, message: { ...answer.message, body: { data: 5 } } } });
  });
  await body(page, namespace);
  await row(page, "second").click();
  await page.locator("aside").getByRole("alert").waitFor();
  assert.equal(await page.locator("aside button").count(), 0);
  assert.match(await page.locator("aside").innerText(), /^The page cannot show this: /);
  await row(page, "third").click();
  await page.getByRole("region", { name: "Body" }).getByText("three").waitFor();
  assert.equal(await page.locator("aside").getByRole("alert").count(), 0);
});

pageTest("64-bit integers are shown without rounding", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "wide", properties: { n: { long: "9223372036854775807" }, u: { ulong: "18446744073709551615" } } });
  await body(page, namespace);
  await page.getByRole("row", { name: "n 9223372036854775807 long" }).waitFor();
  await page.getByRole("row", { name: "u 18446744073709551615 ulong" }).waitFor();
});

pageTest("A timestamp beyond those of JavaScript is shown as a number", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "late", properties: { at: { timestamp: "9223372036854775807" } } });
  await body(page, namespace);
  await page.getByRole("row", { name: "at 9223372036854775807 timestamp" }).waitFor();
});

pageTest("A message that is no longer in its entity keeps its content and its edited copy", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "o-1", body: "content", message_annotations: { "x-opt-scheduled-enqueue-time": { timestamp: Date.now() + 3600000 } } });
  const shown = await body(page, namespace);
  await page.locator("aside").getByText("scheduled, due in").waitFor();
  await page.getByRole("button", { name: "Edit and send a copy…" }).click();
  const text = page.getByRole("dialog").locator("textarea");
  await text.fill('{"body": {"text": "edited"}}');
  await namespace.request("POST", "/messages/act", { entity: "orders", numbers: [1], act: "delete" });
  await page.locator("aside").getByText("The message is no longer in orders.").waitFor();
  assert.equal(await text.inputValue(), '{"body": {"text": "edited"}}');
  await page.keyboard.press("Escape");
  assert.equal(await shown.innerText(), "content");
  assert.equal(await page.locator("aside").getByText("scheduled, due in").count(), 0);
  assert.equal(await page.getByRole("group", { name: "Message actions" }).count(), 0);
});

test("No time remains until an instant that has passed", () => {
  assert.deepEqual([42, -1].map((seconds) => remaining(new Date(seconds * 1000).toISOString(), 0)), ["42 s", "0 s"]);
});

/** A namespace that accepts messages of several megabytes. */
const PREMIUM = { UserConfig: { Namespaces: [{ Name: "sbemulatorns", Emulator: { Tier: "premium" }, Queues: [{ Name: "orders", Properties: { MaxMessageSizeInKilobytes: 4096 } }] }] } };

pageTest("A body of one megabyte is shown in part and saved completely", PREMIUM, async (page, namespace) => {
  const text = `<a>${"x".repeat(1000000)}</a>`;
  await namespace.send("orders", { id: "long", body: text });
  const shown = await body(page, namespace);
  await shown.getByText("more characters").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Save" }).click()]);
  assert.equal((await stat(await download.path())).size, text.length);
  await assertResponsive(page);
});

pageTest("A body of more than 1 MiB is saved but not shown", PREMIUM, async (page, namespace) => {
  const text = "x".repeat(2000000);
  await namespace.send("orders", { id: "large", body: text });
  await visit(page, namespace, "orders/messages/1");
  await page.locator("aside").getByText("Bodies of messages larger than 1 MiB are not shown").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Save body" }).click()]);
  assert.equal((await stat(await download.path())).size, text.length);
});

pageTest("A body that is not UTF-8 is shown as bytes", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "bytes", body: Buffer.from([0xc3, 0x28, 0xff]) });
  const shown = await body(page, namespace);
  assert.match(await shown.innerText(), /c3 28 ff/);
  await page.getByRole("button", { name: "text" }).click();
  await shown.getByText("not UTF-8").waitFor();
});

pageTest("A thousand of many properties are shown", topology("orders"), async (page, namespace) => {
  const properties = Object.fromEntries(Array.from({ length: 10000 }, (_, index) => [`p${index}`, true]));
  // Halves the number until the message is small enough.
  let count = 10000;
  for (; ; count = Math.floor(count / 2)) {
    const some = Object.fromEntries(Object.entries(properties).slice(0, count));
    if (await namespace.send("orders", { id: "wide", properties: some }).then(() => true, () => false)) break;
  }
  assert.ok(count >= 1000, `${count} properties fit`);
  await body(page, namespace);
  await page.locator("aside").getByText(/more values not shown/).waitFor();
  assert.ok((await page.locator("aside tr").count()) <= 1100);
  await assertResponsive(page);
});

pageTest("Links work for special characters in names and IDs", topology("a/b.c/d_e-f", "record"), async (page, namespace) => {
  const id = "100%/é?#&=\"'<b>";
  await namespace.send("a/b.c/d_e-f", { id, body: "x" });
  await page.locator(".tree .row", { hasText: "a/b.c/d_e-f" }).click();
  await row(page, id).click();
  await page.getByRole("heading", { name: "Message 1" }).waitFor();
  await visit(page, namespace, `record?message_id=${encodeURIComponent(id)}`);
  await page.locator("main").getByRole("cell", { name: id }).waitFor();
  await page.locator("main").getByRole("link", { name: id }).click();
  await page.getByRole("heading", { name: "Message 1" }).waitFor();
  // An entity with the name of a view.
  await page.locator(".tree .row", { hasText: "record" }).click();
  await page.getByRole("heading", { name: "record", exact: true }).waitFor();
  await page.getByText("There are no messages.").waitFor();
  await visit(page, namespace, "%zz/messages/%");
  await page.getByText("There is no entity %zz").waitFor();
});
