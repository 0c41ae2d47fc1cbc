// The main uses of the page.

import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { test } from "node:test";
import AxeBuilder from "axe-core";
import { createNamespace, createSuite, open, row, screenshot, startEmulator, startProxy, topology } from "./setup.js";

const suite = createSuite();
const { pageTest, visit } = suite;

pageTest("A link opens a dead-letter message with its timeline", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "o-17", body: '{"total": 3}' });
  await namespace.request("POST", "/messages/act", { entity: "orders", numbers: [1], act: "dead-letter", reason: "Rejected" });
  await visit(page, namespace, "orders/dead-letter/messages/1");
  await page.getByRole("heading", { name: "Message 1" }).waitFor();
  await page.locator("aside").getByRole("cell", { name: "dead lettered, Rejected" }).waitFor();
  assert.match(await page.locator("aside pre").innerText(), /"total": 3/);
  await screenshot(page, "message");
});

pageTest("A new message appears without a reload", topology("orders"), async (page, namespace) => {
  await visit(page, namespace, "orders");
  await page.getByText("There are no messages.").waitFor();
  await namespace.send("orders", { id: "o-18" });
  await row(page, "o-18").waitFor();
});

pageTest("A dead-letter message is edited and resubmitted", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "o-1", body: '{"total": -3}' });
  await namespace.request("POST", "/messages/act", { entity: "orders", numbers: [1], act: "dead-letter", reason: "Rejected" });
  await visit(page, namespace, "orders/dead-letter");
  await row(page, "o-1").click();
  await page.getByRole("button", { name: "Repair and resubmit…" }).click();
  const text = page.getByRole("dialog").locator("textarea");
  await text.fill((await text.inputValue()).replace("-3", "3"));
  await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("There are no messages.").waitFor();
  const [sent] = (await namespace.request("GET", "/messages?entity=orders")).messages;
  assert.equal(sent.preview, '{"total": 3}');
  assert.equal((await namespace.counts("orders")).dead_letter, 0);
});

pageTest("A copy of an active message is sent to its entity with a value of another type", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "o-1", properties: { price: { int: 3 } } });
  await visit(page, namespace, "orders");
  await row(page, "o-1").click();
  await page.getByRole("button", { name: "Edit and send a copy…" }).click();
  const text = page.getByRole("dialog").locator("textarea");
  await text.fill((await text.inputValue()).replace(/\{\s*"int": 3\s*\}/, "4.0"));
  await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("Resubmitted 1 message").waitFor();
  const { message } = await namespace.request("GET", "/messages/2?entity=orders");
  assert.deepEqual(message.application_properties, { price: { double: 4 } });
  assert.equal((await namespace.counts("orders")).active, 2);
});

pageTest("Deleting all messages requires confirmation", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "a" }, { id: "b" });
  await visit(page, namespace, "orders");
  const deleteAll = page.getByRole("button", { name: "Delete all…" });
  await deleteAll.click();
  await page.getByRole("dialog").getByText("Delete all 2 messages in orders?").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await namespace.counts("orders")).active, 2);
  await deleteAll.click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("There are no messages.").waitFor();
  assert.equal((await namespace.counts("orders")).active, 0);
});

pageTest("A step of the clock enqueues a scheduled message", topology("orders"), async (page, namespace) => {
  await visit(page, namespace, "orders");
  await page.getByRole("button", { name: "Send…" }).click();
  await page.getByLabel("Message ID").last().fill("later");
  await page.getByLabel("Enqueue after (seconds)").fill("3600");
  await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
  await row(page, "scheduled, due in").waitFor();
  await page.getByRole("button", { name: "Step" }).click();
  await row(page, "active").waitFor();
  assert.equal((await namespace.counts("orders")).active, 1);
  await page.getByRole("button", { name: "Send…" }).click();
  await page.getByLabel("Message ID").last().fill("soon");
  await page.getByLabel("Enqueue after (seconds)").fill("0.0015");
  await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
  await row(page, "soon").waitFor();
});

pageTest("The clock can be advanced, frozen and resumed", topology("orders"), async (page, namespace) => {
  await page.getByLabel("Advance by").fill("120");
  await page.getByRole("button", { name: "Advance" }).click();
  await page.getByText("2 min ahead").waitFor();
  await page.getByRole("button", { name: "Freeze" }).click();
  await page.getByText("frozen", { exact: true }).waitFor();
  assert.equal((await namespace.request("GET", "/clock")).frozen, true);
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Freeze" }).waitFor();
});

pageTest("A fault can be added and removed", topology("orders"), async (page, namespace) => {
  await visit(page, namespace, "faults");
  await page.getByText("There are no faults.").waitFor();
  await page.getByLabel("Operation").selectOption("send");
  await page.getByLabel("Effect").selectOption("lose-reply");
  await page.getByLabel("Entity").last().fill("orders");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("cell", { name: /entity orders/ }).waitFor();
  await page.getByRole("button", { name: "Remove fault 1" }).click();
  await page.getByText("There are no faults.").waitFor();
});

pageTest("An imported message equals the exported message", topology("orders", "copies"), async (page, namespace) => {
  await namespace.send("orders", { id: "o-1", body: Buffer.from([0, 255, 128]), properties: { price: { decimal128: "CQAAAAAAAAAAAAAAAAAiMA==" } } }, { id: "o-2", session: "s", properties: { n: { int: 5 } } }).catch(() =>
    namespace.send("orders", { id: "o-1", body: Buffer.from([0, 255, 128]) }, { id: "o-2", properties: { n: { int: 5 } } }),
  );
  await namespace.send("orders", { id: "o-3", properties: { whole: { double: 1e17 }, large: { double: 3.8939683381872185e162 }, wide: { long: "9007199254740992" } } });
  await visit(page, namespace, "orders");
  await row(page, "o-3").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  await visit(page, namespace, "copies");
  await page.getByLabel("Import").setInputFiles(await download.path());
  await row(page, "o-3").waitFor();
  for (const number of [1, 2, 3]) {
    const [from, to] = await Promise.all(["orders", "copies"].map((entity) => namespace.request("GET", `/messages/${number}?entity=${entity}`)));
    const comparable = ({ message_annotations, amqp, ...rest }) => rest;
    assert.deepEqual(comparable(to.message), comparable(from.message));
  }
});

pageTest("Markup in a message ID or body is shown as text", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "<img src=x onerror=document.title='run'>", body: "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>" });
  await visit(page, namespace, "orders/messages/1");
  await page.locator("aside pre").getByText("onerror").waitFor();
  assert.equal(await page.title(), "Service Bus emulator");
  assert.equal(await page.locator("aside img, aside script").count(), 0);
});

pageTest("The page can be used with the keyboard alone", topology("alpha", "beta"), async (page, namespace) => {
  await namespace.send("beta", { id: "first" }, { id: "second" });
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
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  // A closed dialog restores the focus.
  const send = page.getByRole("button", { name: "Send…" });
  await send.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.locator("button:focus", { hasText: "Send…" }).waitFor();
  // The label of the hidden file input shows that the input has the focus.
  await page.getByLabel("Import").focus();
  assert.notEqual(await page.locator("label.button").evaluate((it) => getComputedStyle(it).outlineStyle), "none");
});

pageTest("A dialog shows errors", topology({ Name: "carts", Properties: { RequiresSession: true } }), async (page, namespace) => {
  await visit(page, namespace, "carts");
  await page.getByRole("button", { name: "Send…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Application properties").fill("{bad");
  await dialog.getByRole("button", { name: "Send" }).click();
  await dialog.getByRole("alert").getByText("are not valid").waitFor();
  await dialog.getByLabel("Application properties").fill("");
  await dialog.getByRole("button", { name: "Send" }).click();
  await dialog.getByRole("alert").getByText("SessionId").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Send…" }).click();
  await dialog.waitFor();
  assert.equal(await dialog.getByRole("alert").count(), 0);
});

pageTest("Element IDs are unique", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "o-1" });
  await visit(page, namespace, "orders");
  await row(page, "o-1").waitFor();
  const ids = await page.locator("[id]").evaluateAll((all) => all.map((it) => it.id));
  assert.deepEqual(ids, [...new Set(ids)]);
  for (const list of [page.locator(".tree .list"), page.locator("main .list")]) {
    const active = await list.getAttribute("aria-activedescendant");
    assert.equal(await list.locator(`[id="${active}"]`).count(), 1);
  }
});

pageTest("A namespace that is created later can be selected", topology("orders"), async (page, namespace) => {
  const select = page.getByLabel("Namespace", { exact: true });
  await createNamespace(suite.emulator, "created-later", topology("late"));
  await select.hover();
  await select.getByRole("option", { name: "created-later", exact: true }).waitFor({ state: "attached" });
  await select.selectOption("created-later");
  await page.locator(".tree .row", { hasText: "late" }).waitFor();
});

pageTest("A deleted namespace is reported as missing, not as an unresponsive emulator", topology("orders"), async (page, namespace) => {
  await page.getByText("1 entity.").waitFor();
  await page.evaluate(() => {
    globalThis.notes = "";
    new MutationObserver(() => { globalThis.notes += document.body.innerText; }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await namespace.request("DELETE", "");
  await page.getByRole("status").getByText(`there is no namespace "${namespace.name}"`).waitFor();
  assert.doesNotMatch(await page.evaluate(() => globalThis.notes), /The emulator is not responding/);
});

pageTest("The counts of entities are current after a reset and when they are created again", topology("orders"), async (page, namespace) => {
  const count = (text) => page.locator(".tree .row", { hasText: "orders" }).getByRole("gridcell").nth(1).filter({ hasText: new RegExp(`^${text}$`) }).waitFor({ state: "attached" });
  await count("");
  for (const [method, path, body] of [["POST", "/reset"], ["DELETE", "/queues/orders"], ["DELETE", ""]]) {
    await namespace.send("orders", { id: "o-1" }, { id: "o-2" });
    await count("2");
    await namespace.request(method, path, body);
    if (path === "") await createNamespace(suite.emulator, namespace.name, topology("orders"));
    else if (method === "DELETE") await namespace.request("PUT", path);
    await count("");
  }
});

pageTest("Changes of entities, settings and faults by others are shown", topology("orders"), async (page, namespace) => {
  await visit(page, namespace, "faults");
  await page.getByText("There are no faults.").waitFor();
  await namespace.request("POST", "/faults", { operation: "send", entity: "orders", effect: "lose-reply" });
  await page.getByRole("cell", { name: "entity orders" }).waitFor();
  await visit(page, namespace, "orders/settings");
  const limit = page.locator("main dt", { hasText: "MaxDeliveryCount" }).locator("+ dd");
  await limit.getByText("10", { exact: true }).waitFor();
  await namespace.request("PUT", "/queues/orders", { MaxDeliveryCount: 3 });
  await limit.getByText("3", { exact: true }).waitFor();
  await namespace.request("PUT", "/queues/created-later");
  await page.locator(".tree .row", { hasText: "created-later" }).waitFor();
});

pageTest("The sparkline has one sample per interval", topology("orders"), async (page, namespace) => {
  await page.addInitScript(() => {
    globalThis.setInterval = (run, interval) => { if (interval === 5000) globalThis.sample = run; };
  });
  await page.reload();
  await visit(page, namespace, "orders");
  const samples = async () => (await page.locator("svg.sparkline polyline").getAttribute("points")).split(" ").length;
  for (const id of ["o-1", "o-2"]) {
    await namespace.send("orders", { id });
    await row(page, id).waitFor();
  }
  assert.equal(await samples(), 1);
  await page.evaluate(() => globalThis.sample());
  await page.getByRole("img", { name: "At most 2 active messages in the last five minutes" }).waitFor();
  assert.equal(await samples(), 2);
});

for (const colorScheme of ["light", "dark"]) {
  pageTest(`All views are accessible in the ${colorScheme} scheme`, topology("orders", "invoices"), async (page, namespace) => {
    await namespace.send("orders", { id: "o-17", body: '{"total": 3}', properties: { color: "red", price: { int: 12 } } }, { id: "o-18" });
    await namespace.request("POST", "/messages/act", { entity: "orders", numbers: [2], act: "dead-letter", reason: "Rejected" });
    for (const route of ["", "orders", "orders/messages/1", "orders/dead-letter/messages/1", "orders/settings", "orders/record", "orders/sessions", "record", "record?message_id=o-17", "rules", "faults", "connections"]) {
      await visit(page, namespace, route);
      await page.locator("main").waitFor();
      await page.waitForFunction(() => !document.querySelector(".pending"));
      await page.waitForTimeout(300);
      await screenshot(page, `${colorScheme}-${route.replaceAll("/", "-") || "namespace"}`);
      const violations = await page.evaluate(async (source) => {
        const run = globalThis.axe ?? (new Function(source)(), globalThis.axe);
        return (await run.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })).violations.map((it) => `${it.id}: ${it.nodes.map((node) => node.target).join(" ")}`);
      }, AxeBuilder.source).catch((error) => [String(error)]);
      assert.deepEqual(violations, [], route);
    }
  }, { colorScheme, bypassCSP: true });
}

test("The page keeps its data after the emulator ends", { timeout: 60000 }, async () => {
  const emulator = await startEmulator();
  const namespace = await createNamespace(emulator, "ended", topology("orders"));
  await namespace.send("orders", { id: "o-17" });
  const page = await open(suite.browser, emulator, "#/ended/orders");
  await row(page, "o-17").waitFor();
  await emulator.kill();
  await page.getByText("The emulator is not responding").waitFor();
  assert.ok(await row(page, "o-17").isVisible());
  for (const route of ["#/ended", "#/ended/orders/settings", "#/ended/record"]) {
    await page.evaluate((to) => { location.hash = to; }, route);
    await page.locator("main").getByRole("alert").getByText("The emulator is not responding.").waitFor();
  }
  await page.context().close();
});

test("A page recovers from a lost connection, and its buttons report it", { timeout: 60000 }, async () => {
  const namespace = await createNamespace(suite.emulator, "lost", topology("orders"));
  const proxy = await startProxy(suite.emulator);
  const page = await open(suite.browser, proxy, `#/${namespace.name}/orders`);
  const show = (route) => page.evaluate((to) => { location.hash = to; }, `#/${namespace.name}${route}`);
  await page.getByText("There are no messages.").waitFor();
  proxy.lose();
  await page.getByText("Data as of").waitFor();
  await page.getByRole("button", { name: "Send…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Enqueue after (seconds)").fill("60");
  await dialog.getByRole("button", { name: "Send", exact: true }).click();
  await dialog.getByRole("alert").getByText("The emulator is not responding.").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Dismiss" }).click();
  await show("");
  await page.getByRole("button", { name: "Export topology" }).click();
  await page.locator("[aria-live] .bad", { hasText: "The emulator is not responding." }).waitFor();
  await show("/orders/settings");
  await page.locator("main").getByRole("alert").getByText("The emulator is not responding.").waitFor();
  proxy.restore();
  await page.locator("main").getByText("MaxDeliveryCount").waitFor();
  await page.getByText("Data as of").waitFor({ state: "detached" });
  assert.deepEqual(page.errors, []);
  await page.context().close();
  proxy.stop();
});

test("Requests with a foreign host or from other sites are refused", async () => {
  const status = (method, headers) =>
    new Promise((resolve, reject) => {
      const sent = httpRequest(`${suite.emulator.page}v1/namespaces/sbemulatorns/reset`, { method, headers }, (response) => resolve(response.statusCode));
      sent.on("error", reject).end();
    });
  assert.equal(await status("POST", { host: "evil.example" }), 421);
  assert.equal(await status("POST", { "sec-fetch-site": "cross-site", origin: "http://evil.example" }), 403);
});
