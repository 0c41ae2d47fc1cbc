// Messages that are no good: whatever they hold, the page shows a bounded part of it, and goes on.

import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { journeys, row, topology } from "./setup.js";

const { journey, at } = journeys();

const SHOWN = 1 << 18;

/** Opens a message, and waits until its body is shown. */
async function body(page, shop, number = 1) {
  await at(page, shop, `orders/messages/${number}`);
  await page.getByRole("heading", { name: `Message ${number}` }).waitFor();
  const shown = page.getByRole("region", { name: "Body" });
  await shown.waitFor();
  return shown;
}

/** That the page still does what it is told. */
async function answers(page) {
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor({ timeout: 5000 });
}

journey("A few bytes that stand for a hundred megabytes are unpacked in part", topology("orders"), async (page, shop) => {
  await shop.send("orders", { id: "bomb", body: gzipSync(Buffer.alloc(100 << 20, "a")) });
  const shown = await body(page, shop);
  await page.getByText("unpacked from gzip").waitFor();
  assert.ok((await shown.evaluate((it) => it.textContent.length)) <= SHOWN + 100);
  await answers(page);
});

journey("Bytes that only begin like gzip are shown as they are", topology("orders"), async (page, shop) => {
  await shop.send("orders", { id: "no-gzip", body: Buffer.from([0x1f, 0x8b, 0xff, 0x00, 0x01]) });
  assert.match(await (await body(page, shop)).innerText(), /1f 8b ff 00 01/);
});

journey("Deep JSON is text", topology("orders"), async (page, shop) => {
  const depth = 100000;
  await shop.send("orders", { id: "deep", body: "[".repeat(depth) + "]".repeat(depth) });
  const shown = await body(page, shop);
  assert.ok((await shown.evaluate((it) => it.textContent.length)) <= SHOWN + 100);
  await answers(page);
});

journey("JSON is indented and stays as it is", topology("orders"), async (page, shop) => {
  const text = '{"n":12345678901234567890,"pi":0.1234567890123456789,"z":1.0,"1":{"e":[],"o":{}},"s":"a\\"b, {\\u00e9","n":[1,-0]}';
  await shop.send("orders", { id: "numbers", body: text });
  const shown = await (await body(page, shop)).innerText();
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

journey("Whole numbers of 64 bits are shown as they are", topology("orders"), async (page, shop) => {
  await shop.send("orders", { id: "wide", properties: { n: { long: "9223372036854775807" }, u: { ulong: "18446744073709551615" } } });
  await body(page, shop);
  await page.getByRole("row", { name: "n 9223372036854775807 long" }).waitFor();
  await page.getByRole("row", { name: "u 18446744073709551615 ulong" }).waitFor();
});

/** A namespace that takes messages of several megabytes. */
const PREMIUM = { UserConfig: { Namespaces: [{ Name: "sbemulatorns", Emulator: { Tier: "premium" }, Queues: [{ Name: "orders", Properties: { MaxMessageSizeInKilobytes: 4096 } }] }] } };

journey("A megabyte in one line is shown in part, and saved whole", PREMIUM, async (page, shop) => {
  const text = `<a>${"x".repeat(1000000)}</a>`;
  await shop.send("orders", { id: "long", body: text });
  const shown = await body(page, shop);
  await shown.getByText("more characters").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "save" }).click()]);
  assert.equal((await stat(await download.path())).size, text.length);
  await answers(page);
});

journey("More than a mebibyte is not shown, and saved", PREMIUM, async (page, shop) => {
  const text = "x".repeat(2000000);
  await shop.send("orders", { id: "large", body: text });
  await at(page, shop, "orders/messages/1");
  await page.locator("aside").getByText("messages of more than 1 MiB are not shown here").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Save the body" }).click()]);
  assert.equal((await stat(await download.path())).size, text.length);
});

journey("What is not text is shown as bytes", topology("orders"), async (page, shop) => {
  await shop.send("orders", { id: "bytes", body: Buffer.from([0xc3, 0x28, 0xff]) });
  const shown = await body(page, shop);
  assert.match(await shown.innerText(), /c3 28 ff/);
  await page.getByRole("button", { name: "text" }).click();
  await shown.getByText("not UTF-8").waitFor();
});

journey("Thousands of properties are shown in part", topology("orders"), async (page, shop) => {
  const properties = Object.fromEntries(Array.from({ length: 10000 }, (_, index) => [`p${index}`, true]));
  // They do not all fit into a message; as many as do are sent.
  let count = 10000;
  for (; ; count = Math.floor(count / 2)) {
    const some = Object.fromEntries(Object.entries(properties).slice(0, count));
    if (await shop.send("orders", { id: "wide", properties: some }).then(() => true, () => false)) break;
  }
  assert.ok(count >= 1000, `${count} properties fit`);
  await body(page, shop);
  await page.locator("aside").getByText(/more are not shown/).waitFor();
  assert.ok((await page.locator("aside tr").count()) <= 1100);
  await answers(page);
});

journey("Names may have slashes, and ids may have anything", topology("a/b.c/d_e-f", "record"), async (page, shop) => {
  const id = "100%/é?#&=\"'<b>";
  await shop.send("a/b.c/d_e-f", { id, body: "x" });
  await page.locator(".tree .row", { hasText: "a/b.c/d_e-f" }).click();
  await row(page, id).click();
  await page.getByRole("heading", { name: "Message 1" }).waitFor();
  await at(page, shop, `record?message_id=${encodeURIComponent(id)}`);
  await page.locator("main").getByRole("cell", { name: id }).waitFor();
  await page.locator("main").getByRole("link", { name: id }).click();
  await page.getByRole("heading", { name: "Message 1" }).waitFor();
  // An entity that is named like a view.
  await page.locator(".tree .row", { hasText: "record" }).click();
  await page.getByRole("heading", { name: "record", exact: true }).waitFor();
  await page.getByText("There are no messages here.").waitFor();
  await at(page, shop, "%zz/messages/%");
  await page.getByText("There is no entity %zz").waitFor();
});
