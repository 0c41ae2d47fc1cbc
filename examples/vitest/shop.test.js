/** What the shop's worker does with orders, good and bad. */
import { ServiceBusClient } from "@azure/service-bus";
import { expect } from "vitest";

import { test } from "./servicebus.js";
import { Refused, work } from "./shop.js";

/** Sends an order as a customer would. */
async function send(servicebus, body, options) {
  const client = new ServiceBusClient(servicebus.connectionString);
  await client.createSender("orders").sendMessages({ body, messageId: "o-17", ...options });
  await client.close();
}

test("an order is charged", async ({ servicebus }) => {
  const charged = [];
  await send(servicebus, 12);
  await work(servicebus.connectionString, (...order) => charged.push(order), 1);
  expect(charged).toEqual([["o-17", 12]]);
  expect(await servicebus.timeline("orders", "o-17")).toEqual(["sent", "delivered", "completed"]);
});

test("a poison order is dead-lettered with its reason", async ({ servicebus }) => {
  await send(servicebus, "twelve");
  await work(servicebus.connectionString, undefined, 1);
  expect(await servicebus.counts("orders")).toMatchObject({ active: 0, dead_letter: 1 });
  const client = new ServiceBusClient(servicebus.connectionString);
  const letters = client.createReceiver("orders", { subQueueType: "deadLetter" });
  const [letter] = await letters.peekMessages(1);
  expect(letter.deadLetterReason).toBe("NotANumber");
  await client.close();
});

test("an order that the bank never takes is given up", async ({ servicebus }) => {
  await send(servicebus, 12);
  const refuse = () => {
    throw new Refused();
  };
  await work(servicebus.connectionString, refuse, 3);
  const happened = await servicebus.timeline("orders", "o-17");
  expect(happened.filter((kind) => kind === "abandoned")).toHaveLength(3);
  expect(await servicebus.counts("orders")).toMatchObject({ active: 0, dead_letter: 1 });
});

test("an order of a worker that died comes again", async ({ servicebus }) => {
  const charged = [];
  await send(servicebus, 12);
  const dying = new ServiceBusClient(servicebus.connectionString);
  expect(await dying.createReceiver("orders").receiveMessages(1)).toHaveLength(1);
  await dying.close();
  await servicebus.advance(61);
  await work(servicebus.connectionString, (...order) => charged.push(order), 1);
  expect(charged).toEqual([["o-17", 12]]);
  expect(await servicebus.timeline("orders", "o-17")).toEqual(
    ["sent", "delivered", "clock-advanced", "lock-expired", "delivered", "completed"],
  );
});

test("an offer ends after an hour", async ({ servicebus }) => {
  await send(servicebus, 12, { timeToLive: 3_600_000 });
  await servicebus.advance(3540);
  expect(await servicebus.counts("orders")).toMatchObject({ active: 1, dead_letter: 0 });
  await servicebus.advance(60);
  expect(await servicebus.counts("orders")).toMatchObject({ active: 0, dead_letter: 1 });
});
