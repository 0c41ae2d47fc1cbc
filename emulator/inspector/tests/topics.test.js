// Topics: their rules, the dead-letter messages of their subscriptions, and the exported topology.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createSuite, row, startEmulator } from "./setup.js";

const { pageTest, visit } = createSuite();

/** A topic with a subscription for red orders and two for all orders. */
const ORDERS = {
  UserConfig: {
    Namespaces: [{
      Name: "sbemulatorns",
      Topics: [{
        Name: "orders",
        Subscriptions: [
          { Name: "red", Rules: [{ Name: "color", Properties: { FilterType: "Sql", SqlFilter: { SqlExpression: "color = 'red' AND price > 10" } } }] },
          { Name: "audit" },
          { Name: "billing", Properties: { MaxDeliveryCount: 3 } },
        ],
      }],
    }],
  },
};

pageTest("The rules view shows the first condition that is not true", ORDERS, async (page, namespace) => {
  await visit(page, namespace, "rules");
  const message = page.getByLabel("Message");
  await message.fill('{"UserProperties": {"color": "red", "price": 7}}');
  const red = page.getByRole("row", { name: /Subscriptions\/red/ });
  await red.getByRole("cell", { name: "no", exact: true }).waitFor();
  await red.getByText("price > 10").waitFor();
  await red.getByText(/price 7/).waitFor();
  await message.fill('{"UserProperties": {"color": "red", "price": 12}}');
  await red.getByRole("cell", { name: "yes", exact: true }).waitFor();
  await page.getByRole("row", { name: /Subscriptions\/audit/ }).getByRole("cell", { name: "yes", exact: true }).waitFor();
});

pageTest("A dead-letter message of a subscription is resubmitted to that subscription only", ORDERS, async (page, namespace) => {
  await namespace.send("orders", { id: "o-17", body: '{"total": -3}' });
  await namespace.request("POST", "/messages/act", { entity: "orders/Subscriptions/billing", numbers: [1], act: "dead-letter", reason: "Rejected" });
  await visit(page, namespace, `${encodeURIComponent("orders/Subscriptions/billing")}/dead-letter`);
  await row(page, "o-17").click();
  await page.getByRole("button", { name: "Repair and resubmit…" }).click();
  const text = page.getByRole("dialog").locator("textarea");
  await text.fill((await text.inputValue()).replace("-3", "3"));
  await page.getByRole("dialog").getByText("emulator only").waitFor();
  await page.getByRole("button", { name: "Send to topic orders instead" }).click();
  await page.getByRole("dialog").getByText("The message matches 2 subscriptions.").waitFor();
  await page.getByRole("button", { name: "Send to this subscription only" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("There are no messages.").waitFor();
  const active = async (name) => (await namespace.counts(`orders/Subscriptions/${name}`)).active;
  assert.deepEqual([await active("billing"), await active("audit")], [1, 1]);
  const [sent] = (await namespace.request("GET", "/messages?entity=orders/Subscriptions/billing")).messages;
  assert.equal(sent.preview, '{"total": 3}');
});

pageTest("A dialog warns if a message matches no subscription", ORDERS, async (page, namespace) => {
  await namespace.request("DELETE", "/subscriptions/orders/Subscriptions/audit");
  await namespace.send("orders", { id: "o-18", properties: { color: "red", price: { int: 12 } } });
  await namespace.request("DELETE", "/subscriptions/orders/Subscriptions/billing");
  await namespace.request("POST", "/messages/act", { entity: "orders/Subscriptions/red", numbers: [1], act: "dead-letter" });
  await visit(page, namespace, `${encodeURIComponent("orders/Subscriptions/red")}/dead-letter/messages/1`);
  await page.getByRole("button", { name: "Repair and resubmit…" }).click();
  await page.getByRole("button", { name: "Send to topic orders instead" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("The message matches 1 subscription.").waitFor();
  const text = dialog.locator("textarea");
  await text.fill((await text.inputValue()).replace('"red"', '"blue"'));
  await dialog.getByText("The message matches no subscription").waitFor();
});

pageTest("An emulator starts with the exported topology", ORDERS, async (page, namespace) => {
  await visit(page, namespace, "");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export topology" }).click()]);
  const file = await download.path();
  const second = await startEmulator("--config", file);
  const exported = JSON.parse(await readFile(file, "utf8")).UserConfig.Namespaces[0].Name;
  const answer = await fetch(`${second.page}v1/namespaces/${exported}/entities`);
  const { entities } = await answer.json();
  assert.deepEqual(entities.map((it) => it.path), ["orders", "orders/Subscriptions/audit", "orders/Subscriptions/billing", "orders/Subscriptions/red"]);
  const [red] = (await (await fetch(`${second.page}v1/namespaces/${exported}/explain?topic=orders`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '[{"UserProperties": {"color": "blue"}}]',
  })).json()).subscriptions.filter((it) => it.subscription.endsWith("red"));
  assert.equal(red.matched, false);
  await second.stop();
});
