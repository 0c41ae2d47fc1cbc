/** The shop's worker, with valid and invalid orders. */
import { ServiceBusClient } from "@azure/service-bus";
import { test } from "servicebus-emulator/vitest";
import { expect } from "vitest";

import { Refused, work } from "./shop.js";

/** Sends an order as a customer would. */
async function send(servicebus, body, options) {
  const client = new ServiceBusClient(servicebus.connectionString);
  await client.createSender("orders").sendMessages({ body, messageId: "o-17", ...options });
  await client.close();
}

/** The events of the order, in order. */
async function happened(servicebus) {
  return (await servicebus.timeline("orders", "o-17")).kinds;
}

test("an order is charged", async ({ servicebus }) => {
  const charged = [];
  await send(servicebus, 12);
  await work(servicebus.connectionString, (...order) => charged.push(order), 1);
  expect(charged).toEqual([["o-17", 12]]);
  expect(await happened(servicebus)).toEqual(["sent", "delivered", "completed"]);
});

test("a poison order is dead-lettered with its reason", async ({ servicebus }) => {
  await send(servicebus, "twelve");
  await work(servicebus.connectionString, undefined, 1);
  await servicebus.expect("orders", "dead_lettered", { messageId: "o-17", reason: "NotANumber" });
});

test("an order that the bank never takes is given up", async ({ servicebus }) => {
  await send(servicebus, 12);
  const refuse = () => {
    throw new Refused();
  };
  await work(servicebus.connectionString, refuse, 3);
  await servicebus.expect("orders", "dead_lettered", { messageId: "o-17", reason: "MaxDeliveryCountExceeded" });
});

test("a redelivered order is charged once", async ({ servicebus }) => {
  const charged = [];
  await servicebus.faults.on("complete", { entity: "orders" }).loseLock(); // the first completion is too late
  await send(servicebus, 12);
  await work(servicebus.connectionString, (...order) => charged.push(order), 2);
  expect(charged).toEqual([["o-17", 12]]);
  expect((await happened(servicebus)).filter((kind) => kind === "delivered")).toHaveLength(2);
  expect(await servicebus.counts("orders")).toMatchObject({ active: 0 });
});

test("an order of a worker that died is redelivered", async ({ servicebus }) => {
  const charged = [];
  await send(servicebus, 12);
  const dying = new ServiceBusClient(servicebus.connectionString);
  expect(await dying.createReceiver("orders").receiveMessages(1)).toHaveLength(1);
  await dying.close();
  await servicebus.advance(61);
  await work(servicebus.connectionString, (...order) => charged.push(order), 1);
  expect(charged).toEqual([["o-17", 12]]);
  expect(await happened(servicebus)).toEqual(
    ["sent", "delivered", "clock-advanced", "lock-expired", "delivered", "completed"],
  );
});

test("an offer ends after an hour", async ({ servicebus }) => {
  await send(servicebus, 12, { timeToLive: 3_600_000 });
  await servicebus.advance(3540);
  expect(await servicebus.counts("orders")).toMatchObject({ active: 1, deadLetter: 0 });
  await servicebus.advance(60);
  expect(await servicebus.counts("orders")).toMatchObject({ active: 0, deadLetter: 1 });
  await servicebus.expect("orders", "dead_lettered", { messageId: "o-17", reason: "TTLExpiredException" });
});
