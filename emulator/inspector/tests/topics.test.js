// What the page shows of topics: their rules, the dead letters of their subscriptions, and the topology as a whole.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { emulator, journeys, namespace, row } from "./setup.js";

const all = journeys();
const { journey, at } = all;

/** A topic of which one subscription takes red orders, and two take all. */
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

journey("The explainer names the part of a filter that is not true", ORDERS, async (page, shop) => {
  await at(page, shop, "rules");
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

journey("The dead letter of a subscription goes back to it alone", ORDERS, async (page, shop) => {
  await shop.send("orders", { id: "o-17", body: '{"total": -3}' });
  await shop.ask("POST", "/messages/act", { entity: "orders/Subscriptions/billing", numbers: [1], act: "dead-letter", reason: "Rejected" });
  await at(page, shop, `${encodeURIComponent("orders/Subscriptions/billing")}/dead-letter`);
  await row(page, "o-17").click();
  await page.getByRole("button", { name: "Repair and resubmit…" }).click();
  const text = page.getByRole("dialog").locator("textarea");
  await text.fill((await text.inputValue()).replace("-3", "3"));
  await page.getByRole("dialog").getByText("emulator only").waitFor();
  await page.getByRole("button", { name: "To the topic orders instead" }).click();
  await page.getByRole("dialog").getByText("It comes to 2 subscriptions.").waitFor();
  await page.getByRole("button", { name: "To this subscription alone" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Send" }).click();
  await page.getByText("There are no messages here.").waitFor();
  const active = async (name) => (await shop.counts(`orders/Subscriptions/${name}`)).active;
  assert.deepEqual([await active("billing"), await active("audit")], [1, 1]);
  const [sent] = (await shop.ask("GET", "/messages?entity=orders/Subscriptions/billing")).messages;
  assert.equal(sent.preview, '{"total": 3}');
});

journey("A message that no rule takes is said before it is sent to its topic", ORDERS, async (page, shop) => {
  await shop.ask("DELETE", "/subscriptions/orders/Subscriptions/audit");
  await shop.send("orders", { id: "o-18", properties: { color: "red", price: { int: 12 } } });
  await shop.ask("DELETE", "/subscriptions/orders/Subscriptions/billing");
  await shop.ask("POST", "/messages/act", { entity: "orders/Subscriptions/red", numbers: [1], act: "dead-letter" });
  await at(page, shop, `${encodeURIComponent("orders/Subscriptions/red")}/dead-letter/messages/1`);
  await page.getByRole("button", { name: "Repair and resubmit…" }).click();
  await page.getByRole("button", { name: "To the topic orders instead" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("It comes to 1 subscription.").waitFor();
  const text = dialog.locator("textarea");
  await text.fill((await text.inputValue()).replace('"red"', '"blue"'));
  await dialog.getByText("No rule will match").waitFor();
});

journey("The exported topology starts a second emulator", ORDERS, async (page, shop) => {
  await at(page, shop, "");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export the topology" }).click()]);
  const file = await download.path();
  const second = await emulator("--config", file);
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
