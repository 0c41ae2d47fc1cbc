// What the page shows of locks and sessions that a client holds.

import assert from "node:assert/strict";
import { connect } from "./receiver.js";
import { journeys, row, topology } from "./setup.js";

const { journey, at } = journeys();

journey("A lock runs down, ends by an advance, and the next delivery is drawn", topology({ Name: "orders", Properties: { LockDuration: "PT1M" } }), async (page, shop) => {
  await shop.ask("POST", "/clock/freeze");
  const worker = await connect(shop.connectionString);
  await shop.send("orders", { id: "o-17" });
  await worker.receive("orders");
  await at(page, shop, "orders/messages/1");
  await page.locator("aside").getByText("locked by worker for 60 s").waitFor();
  assert.deepEqual(await page.locator("aside .picture .lock title").allTextContents(), ["locked, and still held"]);
  assert.equal(await page.locator("aside .picture .lock.lost").count(), 0);
  await page.getByLabel("Advance by").fill("20");
  await page.getByRole("button", { name: "Advance" }).click();
  await page.locator("aside").getByText("locked by worker for 40 s").waitFor();
  await page.getByRole("button", { name: "Step" }).click();
  await page.locator("aside").getByText("Failed deliveries").waitFor();
  await worker.receive("orders");
  await page.locator("aside .picture .lock.lost").first().waitFor();
  await page.locator("aside").getByRole("cell", { name: /^delivered, delivery 2/ }).waitFor();
  // Two locks, the first of them lost, and a line for each step of the clock.
  assert.deepEqual(await page.locator("aside .picture .lock title").allTextContents(), ["locked, and lost", "locked, and still held"]);
  assert.ok((await page.locator("aside .picture .advance").count()) >= 2);
  worker.close();
});

journey("The state of a session is read, and its lock taken away", topology({ Name: "orders", Properties: { RequiresSession: true } }), async (page, shop) => {
  const worker = await connect(shop.connectionString);
  await shop.send("orders", { id: "o-1", session: "customer-7" }, { id: "o-2", session: "customer-8" });
  const { receiver } = await worker.receive("orders", { session: "customer-7" });
  await worker.setSessionState("orders", "customer-7", '{"step": 2}');
  await at(page, shop, "orders/sessions");
  const held = page.getByRole("row", { name: /customer-7/ });
  await held.getByText("worker").waitFor();
  await held.getByRole("link").click();
  await page.getByText('{"step": 2}').waitFor();
  const lost = new Promise((resolve) => receiver.once("receiver_close", resolve));
  receiver.connection.on("receiver_error", () => {});
  await held.getByRole("button", { name: "Take the lock away" }).click();
  await lost;
  await held.getByText("worker").waitFor({ state: "detached" });
  const { sessions } = await shop.ask("GET", "/sessions?entity=orders");
  assert.equal(sessions.find((it) => it.id === "customer-7").holder, null);
  worker.close();
});

journey("Who receives, and nobody, is said", topology("orders"), async (page, shop) => {
  await at(page, shop, "orders");
  await page.getByText("no client receives here").waitFor();
  const worker = await connect(shop.connectionString);
  await shop.send("orders", { id: "o-1" });
  await worker.receive("orders");
  await row(page, "locked by worker").waitFor();
  await at(page, shop, "connections");
  await page.getByRole("heading", { name: "worker" }).waitFor();
  assert.match(await page.getByRole("row", { name: /^receiver/ }).innerText(), /receiver/);
  worker.close();
});
