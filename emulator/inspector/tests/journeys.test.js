// What people do with the page, in a browser without a window.

import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import AxeBuilder from "axe-core";
import { emulator, journeys, namespace, open, row, shot, topology } from "./setup.js";

const all = journeys();
const { journey, at } = all;

journey("The story of a dead letter stands behind its link", topology("orders"), async (page, shop) => {
  await shop.send("orders", { id: "o-17", body: '{"total": 3}' });
  await shop.ask("POST", "/messages/act", { entity: "orders", numbers: [1], act: "dead-letter", reason: "Rejected" });
  await at(page, shop, "orders/dead-letter/messages/1");
  await page.getByRole("heading", { name: "Message 1" }).waitFor();
  await page.locator("aside").getByRole("cell", { name: "dead lettered, Rejected" }).waitFor();
  assert.match(await page.locator("aside pre").innerText(), /"total": 3/);
  await shot(page, "message");
});

journey("A message appears within a second", topology("orders"), async (page, shop) => {
  await at(page, shop, "orders");
  await page.getByText("There are no messages here.").waitFor();
  await shop.send("orders", { id: "o-18" });
  await row(page, "o-18").waitFor({ timeout: 1000 });
});

journey("A dead letter is repaired and sent again", topology("orders"), async (page, shop) => {
  await shop.send("orders", { id: "o-1", body: '{"total": -3}' });
  await shop.ask("POST", "/messages/act", { entity: "orders", numbers: [1], act: "dead-letter", reason: "Rejected" });
  await at(page, shop, "orders/dead-letter");
  await row(page, "o-1").click();
  await page.getByRole("button", { name: "Repair and resubmit…" }).click();
  const text = page.getByRole("dialog").locator("textarea");
  await text.fill((await text.inputValue()).replace("-3", "3"));
  await page.getByRole("dialog").getByRole("button", { name: "Send" }).click();
  await page.getByText("There are no messages here.").waitFor();
  const [sent] = (await shop.ask("GET", "/messages?entity=orders")).messages;
  assert.equal(sent.preview, '{"total": 3}');
  assert.equal((await shop.counts("orders")).dead_letter, 0);
});

journey("A purge asks first", topology("orders"), async (page, shop) => {
  await shop.send("orders", { id: "a" }, { id: "b" });
  await at(page, shop, "orders");
  const purge = page.getByRole("button", { name: "Delete all…" });
  await purge.click();
  await page.getByRole("dialog").getByText("all 2 messages of orders").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await shop.counts("orders")).active, 2);
  await purge.click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("There are no messages here.").waitFor();
  assert.equal((await shop.counts("orders")).active, 0);
});

journey("A scheduled message is stepped to", topology("orders"), async (page, shop) => {
  await at(page, shop, "orders");
  await page.getByRole("button", { name: "Send…" }).click();
  await page.getByLabel("Message id").last().fill("later");
  await page.getByLabel("Schedule in seconds").fill("3600");
  await page.getByRole("dialog").getByRole("button", { name: "Send" }).click();
  await row(page, "scheduled").waitFor();
  await page.getByRole("button", { name: "Step" }).click();
  await row(page, "active").waitFor();
  assert.equal((await shop.counts("orders")).active, 1);
});

journey("The clock is advanced, frozen and resumed", topology("orders"), async (page, shop) => {
  await page.getByLabel("Advance by").fill("120");
  await page.getByRole("button", { name: "Advance" }).click();
  await page.getByText("2 min ahead").waitFor();
  await page.getByRole("button", { name: "Freeze" }).click();
  await page.getByText("frozen", { exact: true }).waitFor();
  assert.equal((await shop.ask("GET", "/clock")).frozen, true);
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Freeze" }).waitFor();
});

journey("A fault is set and removed", topology("orders"), async (page, shop) => {
  await at(page, shop, "faults");
  await page.getByText("No fault is set.").waitFor();
  await page.getByLabel("Operation").selectOption("send");
  await page.getByLabel("Effect").selectOption("lose-reply");
  await page.getByLabel("Entity").last().fill("orders");
  await page.getByRole("button", { name: "Set", exact: true }).click();
  await page.getByRole("cell", { name: /entity orders/ }).waitFor();
  await page.getByRole("button", { name: "Remove fault 1" }).click();
  await page.getByText("No fault is set.").waitFor();
});

journey("What was exported comes back bit for bit", topology("orders", "copies"), async (page, shop) => {
  await shop.send("orders", { id: "o-1", body: Buffer.from([0, 255, 128]), properties: { price: { decimal128: "CQAAAAAAAAAAAAAAAAAiMA==" } } }, { id: "o-2", session: "s", properties: { n: { int: 5 } } }).catch(() =>
    shop.send("orders", { id: "o-1", body: Buffer.from([0, 255, 128]) }, { id: "o-2", properties: { n: { int: 5 } } }),
  );
  await at(page, shop, "orders");
  await row(page, "o-1").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  await at(page, shop, "copies");
  await page.getByLabel("Import").setInputFiles(await download.path());
  await row(page, "o-2").waitFor();
  for (const number of [1, 2]) {
    const [from, to] = await Promise.all(["orders", "copies"].map((entity) => shop.ask("GET", `/messages/${number}?entity=${entity}`)));
    const comparable = ({ message_annotations, amqp, ...rest }) => rest;
    assert.deepEqual(comparable(to.message), comparable(from.message));
  }
});

journey("A body is text and nothing of it runs", topology("orders"), async (page, shop) => {
  await shop.send("orders", { id: "<img src=x onerror=document.title='run'>", body: "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>" });
  await at(page, shop, "orders/messages/1");
  await page.locator("aside pre").getByText("onerror").waitFor();
  assert.equal(await page.title(), "Service Bus emulator");
  assert.equal(await page.locator("aside img, aside script").count(), 0);
});

journey("Everything is reached by keys", topology("alpha", "beta"), async (page, shop) => {
  await shop.send("beta", { id: "first" }, { id: "second" });
  await page.locator(".tree .row", { hasText: "beta" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("bet");
  await page.locator(".tree .row", { hasText: "alpha" }).waitFor({ state: "detached" });
  await page.locator(".tree .row", { hasText: "beta" }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await row(page, "second").waitFor();
  await page.locator("main .list").focus();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Message 2" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator("aside").waitFor({ state: "detached" });
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  // A dialog that is closed gives the focus back.
  const send = page.getByRole("button", { name: "Send…" });
  await send.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.locator("button:focus", { hasText: "Send…" }).waitFor();
  // A file is chosen by a button that is seen to have the focus.
  await page.getByLabel("Import").focus();
  assert.notEqual(await page.locator("label.button").evaluate((it) => getComputedStyle(it).outlineStyle), "none");
});

journey("What is refused is said in the dialog", topology({ Name: "carts", Properties: { RequiresSession: true } }), async (page, shop) => {
  await at(page, shop, "carts");
  await page.getByRole("button", { name: "Send…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Application properties").fill("{bad");
  await dialog.getByRole("button", { name: "Send" }).click();
  await dialog.getByRole("alert").getByText("cannot be sent").waitFor();
  await dialog.getByLabel("Application properties").fill("");
  await dialog.getByRole("button", { name: "Send" }).click();
  await dialog.getByRole("alert").getByText("SessionId").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Send…" }).click();
  await dialog.waitFor();
  assert.equal(await dialog.getByRole("alert").count(), 0);
});

journey("No two parts have one id", topology("orders"), async (page, shop) => {
  await shop.send("orders", { id: "o-1" });
  await at(page, shop, "orders");
  await row(page, "o-1").waitFor();
  const ids = await page.locator("[id]").evaluateAll((all) => all.map((it) => it.id));
  assert.deepEqual(ids, [...new Set(ids)]);
  for (const list of [page.locator(".tree .list"), page.locator("main .list")]) {
    const active = await list.getAttribute("aria-activedescendant");
    assert.equal(await list.locator(`[id="${active}"]`).count(), 1);
  }
});

journey("A namespace that is made later can be chosen", topology("orders"), async (page, shop) => {
  const select = page.getByLabel("Namespace", { exact: true });
  await namespace(all.bus, "made-later", topology("late"));
  await select.hover();
  await select.getByRole("option", { name: "made-later", exact: true }).waitFor({ state: "attached" });
  await select.selectOption("made-later");
  await page.locator(".tree .row", { hasText: "late" }).waitFor();
});

journey("A namespace that is removed is missing, and the emulator still answers", topology("orders"), async (page, shop) => {
  await page.getByText("1 entity.").waitFor();
  await shop.ask("DELETE", "");
  await page.getByRole("status").getByText(`there is no namespace "${shop.name}"`).waitFor();
  assert.equal(await page.getByText("The emulator does not answer").count(), 0);
});

for (const colorScheme of ["light", "dark"]) {
  journey(`Nothing is out of reach in ${colorScheme}`, topology("orders", "invoices"), async (page, shop) => {
    await shop.send("orders", { id: "o-17", body: '{"total": 3}', properties: { color: "red", price: { int: 12 } } }, { id: "o-18" });
    await shop.ask("POST", "/messages/act", { entity: "orders", numbers: [2], act: "dead-letter", reason: "Rejected" });
    for (const hash of ["", "orders", "orders/messages/1", "orders/dead-letter/messages/1", "orders/settings", "orders/record", "orders/sessions", "record", "record?message_id=o-17", "rules", "faults", "connections"]) {
      await at(page, shop, hash);
      await page.locator("main").waitFor();
      await page.waitForFunction(() => !document.querySelector(".pending"));
      await page.waitForTimeout(300);
      await shot(page, `${colorScheme}-${hash.replaceAll("/", "-") || "namespace"}`);
      const found = await page.evaluate(async (source) => {
        const run = globalThis.axe ?? (new Function(source)(), globalThis.axe);
        return (await run.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })).violations.map((it) => `${it.id}: ${it.nodes.map((node) => node.target).join(" ")}`);
      }, AxeBuilder.source).catch((error) => [String(error)]);
      assert.deepEqual(found, [], hash);
    }
  }, { colorScheme, bypassCSP: true });
}

test("A page outlives its emulator", { timeout: 60000 }, async () => {
  const own = await emulator();
  const shop = await namespace(own, "mortal", topology("orders"));
  await shop.send("orders", { id: "o-17" });
  const page = await open(all.browser, own, "#/mortal/orders");
  await row(page, "o-17").waitFor();
  await own.kill();
  await page.getByText("The emulator does not answer").waitFor();
  assert.ok(await row(page, "o-17").isVisible());
  for (const hash of ["#/mortal", "#/mortal/orders/settings", "#/mortal/record"]) {
    await page.evaluate((to) => { location.hash = to; }, hash);
    await page.locator("main").getByRole("alert").getByText("The emulator does not answer.").waitFor();
  }
  await page.context().close();
});

test("Other names and other sites are refused", async () => {
  const status = (method, headers) =>
    new Promise((resolve, reject) => {
      const asked = request(`${all.bus.page}v1/namespaces/sbemulatorns/reset`, { method, headers }, (response) => resolve(response.statusCode));
      asked.on("error", reject).end();
    });
  assert.equal(await status("POST", { host: "evil.example" }), 421);
  assert.equal(await status("POST", { "sec-fetch-site": "cross-site", origin: "http://evil.example" }), 403);
});
