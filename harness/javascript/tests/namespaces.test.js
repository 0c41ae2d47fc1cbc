/** The topology of a namespace, and its operations in tests. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { withServiceBus } from "servicebus-emulator";
import { ServiceBusClient } from "@azure/service-bus";

import { complete, send } from "./clients.cjs";
import { FRAMEWORKS, begin, directory } from "./frameworks.js";

const FILE = (queue) => JSON.stringify({ UserConfig: { Namespaces: [{ Name: "n", Queues: [{ Name: queue }] }] } });
const high = { name: "high", sql: "price > 10", action: "SET tag = 'high'" };
const TOPOLOGY = {
  queues: ["plain", { name: "strict", maxDeliveryCount: 1, lockDuration: "PT5S" }],
  topics: [{ name: "prices", subscriptions: [{ name: "high", rules: [high] }, "all"] }],
  settings: { Expiry: "on-receive" },
};

test(
  "a topology declares entities, rules and settings",
  withServiceBus(TOPOLOGY, async (servicebus) => {
    for (const entity of ["plain", "strict", "prices/Subscriptions/high", "prices/Subscriptions/all"]) {
      assert.equal((await servicebus.counts(entity)).active, 0);
    }
    const { high } = await servicebus.explain("prices/Subscriptions/high", { price: 3 });
    assert.equal(high.reason.expression, "price > 10");
    assert.deepEqual(high.reason.values, [{ name: "price", value: "3 (a whole number)" }]);
    assert.ok((await servicebus.explain("prices/Subscriptions/high", { price: 12 })).high.matched);
  }),
);

test(
  "a topology with settings only has the default queue",
  withServiceBus({ settings: { Tier: "premium" } }, (servicebus) => servicebus.counts("queue.1")),
);

test(
  "a topology with an empty list of queues has no entities",
  withServiceBus({ queues: [] }, async (servicebus) => {
    await assert.rejects(servicebus.counts("queue.1"), /there is no entity/);
  }),
);

test(
  "a test may end its namespace",
  withServiceBus(async (servicebus) => {
    assert.equal(await servicebus.end(true), null);
  }),
);

const CORRELATED = { name: "orders", correlation: { Label: "order" } };
const CORRELATING = { topics: [{ name: "all", subscriptions: [{ name: "orders", rules: [CORRELATED] }] }] };
test(
  "a rule has a correlation filter",
  withServiceBus(CORRELATING, async (servicebus) => {
    const { orders } = await servicebus.explain("all/Subscriptions/orders", {}, { Label: "order" });
    assert.ok(orders.matched);
  }),
);

test(
  "a configuration of the official emulator is a topology",
  withServiceBus(JSON.parse(FILE("configured")), (servicebus) => servicebus.counts("configured")),
);

test("a topology is a file, beside the test or with a path", async () => {
  const files = { "topology.json": FILE("beside"), "declared.txt": FILE("named") };
  for (const [name, framework] of Object.entries(FRAMEWORKS)) {
    const url = name === "jest" ? "" : `new URL("declared.txt", import.meta.url)`;
    const tests = [
      ["beside", undefined, 'await servicebus.counts("beside");'],
      ["named", '"declared.txt"', 'await servicebus.counts("named");'],
      ["as a URL", url || '"declared.txt"', 'await servicebus.counts("named");'],
    ];
    const text = framework.head + tests.map((one) => framework.test(...one)).join("");
    const { code, output } = await begin(framework, directory({ ...files, [framework.file]: text })).ended;
    assert.equal(code, 0, output);
  }
});

test(
  "messages of a test are in its timeline",
  withServiceBus(async (servicebus) => {
    await send(servicebus, "queue.1");
    await complete(servicebus, "queue.1");
    await servicebus.waitIdle();
    assert.deepEqual((await servicebus.timeline("queue.1", "o-17")).kinds, ["sent", "delivered", "completed"]);
  }),
);

test(
  "a test does not see messages of another",
  withServiceBus(async (servicebus) => {
    assert.equal((await servicebus.counts("queue.1")).active, 0);
    assert.equal(String(await servicebus.timeline()), "  nothing happened");
  }),
);

test(
  "a test advances its own clock",
  withServiceBus(async (servicebus) => {
    await servicebus.freeze();
    const began = await servicebus.now();
    await send(servicebus, "queue.1", { timeToLive: 3_600_000 });
    await servicebus.advance(3601);
    assert.equal((await servicebus.now()) - began, 3_601_000);
    assert.equal((await servicebus.counts("queue.1")).active, 0);
    await servicebus.resume();
    await servicebus.stepByItself();
    const held = await servicebus.holdClock(async () => {
      const due = new Date((await servicebus.now()).getTime() + 3_600_000);
      await send(servicebus, "queue.1", { scheduledEnqueueTimeUtc: due });
      return servicebus.counts("queue.1");
    });
    assert.equal(held.scheduled, 1);
    await servicebus.expect("queue.1", "message_count", { active: 1 });
  }),
);

test(
  "sessions are listed",
  withServiceBus({ queues: [{ name: "carts", requiresSession: true }] }, async (servicebus) => {
    await send(servicebus, "carts", { sessionId: "cart-7" });
    const [cart] = await servicebus.sessions("carts");
    assert.deepEqual([cart.id, cart.active, cart.holder, cart.lockedUntil], ["cart-7", 1, null, null]);
    const client = new ServiceBusClient(servicebus.connectionString);
    await client.acceptSession("carts", "cart-7");
    await servicebus.loseSessionLock("carts", "cart-7");
    await client.close();
    await servicebus.reset();
    assert.deepEqual(await servicebus.sessions("carts"), []);
  }),
);

test(
  "a namespace with a locked message is not idle",
  withServiceBus(async (servicebus) => {
    await send(servicebus, "queue.1");
    const client = new ServiceBusClient(servicebus.connectionString);
    const [message] = await client.createReceiver("queue.1").receiveMessages(1);
    assert.ok(message);
    assert.equal(await servicebus.isIdle(), false);
    await assert.rejects(servicebus.waitIdle(0), /queue\.1/);
    await client.close();
  }),
);

test(
  "assertions hold for what happened before",
  withServiceBus({ queues: [{ name: "orders", requiresSession: true }, "bills"] }, async (servicebus) => {
    await send(servicebus, "bills");
    await send(servicebus, "orders", { sessionId: "s-1" });
    await servicebus.expect("bills", "message_count", { active: 1, deadLetter: 0 });
    const dead = servicebus.expect("bills", "message_count", { deadLetter: 1, within: 0 });
    await assert.rejects(dead, /^ExpectationError: bills: expected deadLetter = 1, found deadLetter = 0/);
    await servicebus.expect("orders", "session_order", { session: "s-1", bodies: ["12"] });
    await servicebus.expect("orders", "session_state", { session: "s-1", set: false });
    await servicebus.expect("orders", "not_delivered", { bodyJson: 12 });
    await complete(servicebus, "bills");
    await servicebus.expect("bills", "completed", { messageId: { contains: "17" }, count: 1 });
    await servicebus.expect("bills", "empty");
  }),
);

test(
  "bytes are decoded as UTF-8",
  withServiceBus({ queues: ["orders", { name: "carts", requiresSession: true }] }, async (servicebus) => {
    const client = new ServiceBusClient(servicebus.connectionString);
    await client.createSender("orders").sendMessages({ body: Buffer.from("an order") });
    await client.createSender("carts").sendMessages({ body: Buffer.from("add"), sessionId: "s-1" });
    const session = await client.acceptSession("carts", "s-1");
    await session.setSessionState(Buffer.from([0, 255]));
    await client.close();
    await complete(servicebus, "orders");
    const order = new Uint8Array(Buffer.from("an order"));
    await servicebus.expect("orders", "completed", { body: order });
    await servicebus.expect("orders", "completed", { body: { contains: Buffer.from("order") } });
    await servicebus.expect("carts", "session_order", { session: "s-1", bodies: [Buffer.from("add")] });
    await servicebus.expect("carts", "session_state", { session: "s-1", bytes: Buffer.from([0, 255]) });
    await assert.rejects(
      servicebus.expect("orders", "not_completed", { body: order }),
      /expected no message completed/,
    );
    await assert.rejects(servicebus.expect("orders", "not_completed", { body: Buffer.from([255]) }), {
      message: "body is the bytes ff, which are not UTF-8; it takes a text",
    });
    await assert.rejects(servicebus.expect("orders", "not_completed", { bodyJson: { id: order } }), {
      message: "bodyJson contains bytes, which JSON does not have; it takes JSON",
    });
  }),
);

test(
  "assertions wait for later events",
  withServiceBus(async (servicebus) => {
    const client = new ServiceBusClient(servicebus.connectionString);
    await assert.rejects(servicebus.waitForReceiver("queue.1", 0), /queue\.1/);
    const receiving = client.createReceiver("queue.1").receiveMessages(1);
    await servicebus.waitForReceiver("queue.1");
    const expecting = servicebus.expect("queue.1", "delivered", { times: 1 });
    await send(servicebus, "queue.1");
    await Promise.all([expecting, receiving]);
    await client.close();
  }),
);

test(
  "arguments of the framework follow the namespace",
  withServiceBus(async (servicebus, context) => {
    assert.equal(context.name, "arguments of the framework follow the namespace");
    assert.match(servicebus.tlsConnectionString, /^Endpoint=sb:\/\/127\.0\.0\.1:\d+;(?!.*UseDevelopmentEmulator)/);
    assert.ok(servicebus.caCertificate);
    const without = Object.create(servicebus, { emulator: { value: { ready: { ca_certificate: null } } } });
    assert.throws(() => without.caCertificate, /no directory .*: pass `--tls-directory DIR`/);
  }),
);

test("the line of a test is not one of Node's core", async () => {
  const { callSite } = await import("./node_modules/servicebus-emulator/dist/call_site.js");
  const frames = ["async Test.run (node:internal/test_runner/test:797:25)", "file:///shop/it.test.mjs:3:1"];
  const stack = ["Error", ...frames.map((frame) => `    at ${frame}`)].join("\n");
  assert.equal(callSite(stack).location, "/shop/it.test.mjs:3");
});

test("test files that run in parallel have separate emulators", async () => {
  const body = 'await send(servicebus, "queue.1"); await servicebus.expect("queue.1", "message_count", { active: 1 });';
  for (const framework of Object.values(FRAMEWORKS)) {
    const text = framework.head + framework.test("it", undefined, `${body} recordProcess(servicebus);`);
    const files = ["a", "b", "c"].map((name) => [`${name}.${framework.file}`, text]);
    const cwd = directory(Object.fromEntries(files));
    const { code, output } = await begin(framework, cwd).ended;
    assert.equal(code, 0, output);
    assert.equal(new Set(readFileSync(join(cwd, "processes"), "utf8").trim().split("\n")).size, 3);
  }
});

test("tables, hooks and fake timers of vitest and jest work", async () => {
  const { vitest, jest } = FRAMEWORKS;
  const tests = {
    [vitest.file]: `${vitest.head}import { beforeEach, describe, expect, vi } from "vitest";
      describe("queues", () => {
        test.override({ topology: { queues: ["a", "b"] } });
        beforeEach(({ servicebus }) => send(servicebus, "a"));
        test.for(["a", "b"])("%s", async (queue, { servicebus, expect }) => {
          expect((await servicebus.counts(queue)).active).toBe(queue === "a" ? 1 : 0);
        });
        test.concurrent("beside others", async ({ servicebus }) => { await servicebus.counts("a"); });
      });
      test("fake timers", async ({ servicebus }) => {
        vi.useFakeTimers();
        await servicebus.counts("queue.1");
        vi.useRealTimers();
      });`,
    [jest.file]: `${jest.head}
      test.each(["a", "b"])("%s", withServiceBus({ queues: ["a", "b"] }, async (servicebus, queue) => {
        expect((await servicebus.counts(queue)).active).toBe(0);
      }));
      test("fake timers", withServiceBus(async (servicebus) => {
        jest.useFakeTimers();
        await servicebus.counts("queue.1");
      }));`,
  };
  for (const framework of [vitest, jest]) {
    const { code, output } = await begin(framework, directory({ [framework.file]: tests[framework.file] })).ended;
    assert.equal(code, 0, output);
  }
});
