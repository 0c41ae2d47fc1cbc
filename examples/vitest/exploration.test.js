/** The shop's worker charges each order once, whatever fault its completion has. */
import { ServiceBusClient } from "@azure/service-bus";
import { explore } from "servicebus-emulator";
import { expect, test } from "vitest";

import { work } from "./shop.js";

const COMPLETIONS = { parties: ["worker"], only: ["worker.complete"], effects: ["lose-lock", "deliver-twice"], within: 120 };

/** Handles deliveries one after another, each with a new worker, which does not remember earlier ones. */
async function workUntilDone(run, charge, charged) {
  const client = new ServiceBusClient(run.connectionString);
  await client.createSender("orders").sendMessages({ body: 12, messageId: "o-17" });
  await client.close();
  while ((await run.counts("orders")).active > 0) await work(run.parties.worker, charge, 1);
  expect(charged).toEqual(["o-17"]);
}

async function carefully(run) {
  const charged = [];
  const charge = (order) => charged.includes(order) || charged.push(order);
  await workUntilDone(run, charge, charged);
}

test("an order is charged once with any fault", async () => {
  await explore(COMPLETIONS, carefully);
});

test("a worker that remembers orders only in memory fails", async () => {
  const carelessly = async (run) => {
    const charged = [];
    await workUntilDone(run, (order) => charged.push(order), charged);
  };
  const exploring = explore(COMPLETIONS, carelessly);
  await expect(exploring).rejects.toThrow("worker's completion of o-17, delivery 1");
  await expect(exploring).rejects.toThrow('"token": "x1:worker.complete@orders/o-17#1=');
});

test("a run that fails without its fault fails the exploration", async () => {
  let runs = 0;
  const forgetfully = async (run) => {
    if (++runs === 3) throw new Error("no database");
    await carefully(run);
  };
  await expect(explore(COMPLETIONS, forgetfully)).rejects.toThrow("fails although its fault was not applied");
});
