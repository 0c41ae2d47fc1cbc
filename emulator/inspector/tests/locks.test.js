// Locks and sessions that a client holds.

import assert from "node:assert/strict";
import { connect } from "./amqp-client.js";
import { createSuite, row, topology } from "./setup.js";

const { pageTest, visit } = createSuite();

pageTest("A lock expires when the clock advances, and the diagram shows both deliveries", topology({ Name: "orders", Properties: { LockDuration: "PT1M" } }), async (page, namespace) => {
  await namespace.request("POST", "/clock/freeze");
  const worker = await connect(namespace.connectionString);
  await namespace.send("orders", { id: "o-17" });
  await worker.receive("orders");
  await visit(page, namespace, "orders/messages/1");
  await page.locator("aside").getByText("locked by worker for 60 s").waitFor();
  assert.deepEqual(await page.locator("aside .diagram .lock title").allTextContents(), ["lock held"]);
  assert.equal(await page.locator("aside .diagram .lock.lost").count(), 0);
  await page.getByLabel("Advance by").fill("20");
  await page.getByRole("button", { name: "Advance" }).click();
  await page.locator("aside").getByText("locked by worker for 40 s").waitFor();
  await page.getByRole("button", { name: "Step" }).click();
  await page.locator("aside").getByText("Delivery count").waitFor();
  await worker.receive("orders");
  await page.locator("aside .diagram .lock.lost").first().waitFor();
  await page.locator("aside").getByRole("cell", { name: /^delivered, delivery 2/ }).waitFor();
  // Two locks, of which the first is lost, and a line for each advance of the clock.
  assert.deepEqual(await page.locator("aside .diagram .lock title").allTextContents(), ["lock lost", "lock held"]);
  assert.ok((await page.locator("aside .diagram .advance").count()) >= 2);
  worker.close();
});

pageTest("The timeline of a message keeps its events after many advances of the clock", topology("orders"), async (page, namespace) => {
  await namespace.request("POST", "/clock/freeze");
  await namespace.send("orders", { id: "o-17" });
  for (let advance = 0; advance < 600; advance += 1) await namespace.request("POST", "/clock/advance", { seconds: 1 });
  await visit(page, namespace, "orders/messages/1");
  await page.locator("aside").getByRole("cell", { name: /^sent/ }).waitFor();
});

pageTest("The timeline of a message distinguishes messages that share its ID", topology("orders"), async (page, namespace) => {
  await namespace.send("orders", { id: "o-17" }, { id: "o-18" });
  await visit(page, namespace, "orders/messages/1");
  await page.locator("aside").getByRole("link", { name: "o-17", exact: true }).waitFor();
  await namespace.send("orders", { id: "o-17" });
  await page.locator("aside").getByRole("link", { name: "o-17 (no. 1)" }).waitFor();
  await page.locator("aside").getByRole("link", { name: "o-17 (no. 3)" }).waitFor();
});

pageTest("A session shows its state, and its lock can be expired", topology({ Name: "orders", Properties: { RequiresSession: true } }), async (page, namespace) => {
  const worker = await connect(namespace.connectionString);
  await namespace.send("orders", { id: "o-1", session: "customer-7" }, { id: "o-2", session: "customer-8" });
  const { receiver } = await worker.receive("orders", { session: "customer-7" });
  await worker.setSessionState("orders", "customer-7", '{"step": 2}');
  await visit(page, namespace, "orders/sessions");
  const session = page.getByRole("row", { name: /customer-7/ });
  await session.getByText("worker").waitFor();
  await session.getByRole("link").click();
  await page.getByText('{"step": 2}').waitFor();
  const lost = new Promise((resolve) => receiver.once("receiver_close", resolve));
  receiver.connection.on("receiver_error", () => {});
  await session.getByRole("button", { name: "Expire lock" }).click();
  await lost;
  await session.getByText("worker").waitFor({ state: "detached" });
  const { sessions } = await namespace.request("GET", "/sessions?entity=orders");
  assert.equal(sessions.find((it) => it.id === "customer-7").holder, null);
  worker.close();
});

pageTest("A thousand of many sessions are listed, and only the selected state is decoded", topology({ Name: "orders", Properties: { RequiresSession: true } }), async (page, namespace) => {
  const worker = await connect(namespace.connectionString);
  const sessions = Array.from({ length: 1200 }, (_, index) => ({ id: "o", session: `s-${String(index).padStart(4, "0")}` }));
  await namespace.send("orders", ...sessions.slice(0, 1000));
  await namespace.send("orders", ...sessions.slice(1000));
  await worker.receive("orders", { session: "s-0000" });
  await worker.setSessionState("orders", "s-0000", "x".repeat(1025));
  await page.evaluate(() => {
    const own = atob;
    globalThis.decoded = 0;
    globalThis.atob = (text) => { globalThis.decoded += 1; return own(text); };
  });
  await visit(page, namespace, "orders/sessions");
  await page.getByText("200 more sessions not shown.").waitFor();
  assert.equal(await page.locator("main tbody tr").count(), 1000);
  const session = page.getByRole("row", { name: /s-0000/ });
  await session.getByText("1.0 KiB").or(session.getByText("1 KiB")).waitFor();
  await session.getByText(/for \d+ s/).waitFor();
  assert.equal(await page.evaluate(() => globalThis.decoded), 0);
  await session.getByRole("link").click();
  await page.getByText("x".repeat(1025)).waitFor();
  worker.close();
});

pageTest("Receivers and connections are listed", topology("orders"), async (page, namespace) => {
  await visit(page, namespace, "orders");
  await page.getByText("No receivers").waitFor();
  const worker = await connect(namespace.connectionString);
  await namespace.send("orders", { id: "o-1" });
  await worker.receive("orders");
  await row(page, "locked by worker").waitFor();
  await visit(page, namespace, "connections");
  await page.getByRole("heading", { name: "worker" }).waitFor();
  assert.match(await page.getByRole("row", { name: /^receiver/ }).innerText(), /receiver/);
  worker.close();
});
