/** Reports of failing tests in each framework, and errors for invalid input. */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { once } from "node:events";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { explore } from "servicebus-emulator";

import { complete, send } from "./clients.cjs";
import { FRAMEWORKS, begin, directory, fails, project } from "./frameworks.js";

/** Tests that fail: name, topology and body of each, and patterns of the output, in this order. */
const FAILING = [
  {
    name: "an expired order",
    body: `await send(servicebus, "queue.1", { timeToLive: 3_600_000 });
      await servicebus.advance(3600);
      const { active } = await servicebus.counts("queue.1");
      assert.equal(active, 1, "orders left");`,
    output: [
      /orders left/,
      /timeline of test-\d+/,
      /\+\S+ s +sent +o-17, by .*, in queue\.1/,
      /clock advanced +by the test, 3600 s/,
      /\+3600\S+ s +expired +o-17, in queue\.1/,
    ],
  },
  {
    name: "an assertion that does not hold",
    body: `await send(servicebus, "queue.1");
      await complete(servicebus, "queue.1");
      await servicebus.expect("queue.1", "completed", { messageId: "o-17" });
      await servicebus.expect("queue.1", "dead_lettered", { reason: "Rejected", within: 0.1 });`,
    output: [
      /queue\.1: expected 1 message dead-lettered with reason "Rejected", found none within 0\.1 s/,
      / sent /,
      / delivered /,
      / completed /,
    ],
  },
  {
    name: "an unknown field of an assertion",
    body: `await servicebus.expect("queue.1", "completed", { colour: "red" });`,
    output: [/EmulatorError[^\n]*takes no "colour"; it takes kind, entity, within, messageId, body, bodyJson, count/],
  },
  {
    name: "an unknown assertion",
    body: `await servicebus.expect("queue.1", "not-completed");`,
    output: [/EmulatorError[^\n]*"not-completed"; did you mean "not_completed"/],
  },
  {
    name: "an unknown entity of an assertion",
    body: `await servicebus.expect("queue.2", "empty");`,
    output: [/there is no queue "queue\.2"; did you mean "queue\.1"\?/],
  },
  {
    name: "a thrown text",
    body: `throw "a text";`,
    output: [/a text/, /timeline of test-\d+/, / {2}nothing happened/],
  },
  {
    name: "a frozen error",
    body: `throw Object.freeze(new Error("orders are missing"));`,
    output: [/orders are missing/, /timeline of test-\d+/],
  },
  {
    name: "an undefined field of an assertion",
    body: `await servicebus.expect("queue.1", "not_completed", { messageId: undefined });`,
    output: [/EmulatorError[^\n]*messageId is undefined: omit the field, or give it a value/],
  },
  {
    name: "an undefined field of a fault",
    body: `servicebus.faults.on("complete", { messageId: undefined });`,
    output: [/EmulatorError[^\n]*messageId is undefined: omit the field, or give it a value/],
  },
  {
    name: "a time that is no number",
    body: `await servicebus.waitIdle(NaN);`,
    output: [/EmulatorError[^\n]*within is NaN, which JSON does not have; it takes a finite number/],
  },
  {
    name: "a fault that never fired",
    body: `await send(servicebus, "queue.1");
      await servicebus.faults.on("complete", { entity: "queue.1" }).loseLock();`,
    output: [
      /a fault never fired: \{"effect":"lose-lock","entity":"queue\.1",.*"operation":"complete"/,
      /no completion came/,
      /scripted at \S*it\.test\.[cm]js:\d+/,
      /hint: let the test perform/,
      /timeline of test-\d+/,
    ],
  },
  {
    name: "faults with similar operations",
    topology: '{ queues: ["a", "b"] }',
    body: `await servicebus.faults.on("send", { entity: "a", nth: 2 }).reject("amqp:not-allowed");
      await servicebus.faults.on("send", { entity: "a", messageId: "x" }).serverBusy();
      await send(servicebus, "a");
      await send(servicebus, "b");`,
    output: [/only 1 send came, and 1 in other entities/, /1 send came, without what was asked for, and 1 in/],
  },
  {
    name: "an unknown field of a fault",
    body: `await servicebus.faults.on("complete", { colour: 1, messageId: "x" }).loseLock();`,
    output: [/unknown field `colour`, expected one of .*`messageId`/],
  },
  {
    name: "an unknown effect",
    body: `await servicebus.faults.on("send").apply("lose-lok");`,
    output: [/lose-lok/],
  },
  {
    name: "an unknown property of a queue",
    topology: '{ queues: [{ name: "a", maxDeliveries: 3 }, { name: "b", lockDuration: "PT1S" }] }',
    body: "",
    output: [
      /the topology cannot be served: \S*Queues\[0\]\.Properties\.MaxDeliveries .*did you mean "MaxDeliveryCount"\?; /,
      /LockDuration "PT1S": 5 s \(PT5S\) to 5 min \(PT5M\)/,
    ],
  },
  {
    name: "an unknown field of a topology",
    topology: '{ queue: ["a"] }',
    body: "",
    output: [/a topology has queues, topics and settings, or UserConfig, not queue/],
  },
  {
    name: "a text instead of a list",
    topology: '{ queues: "orders" }',
    body: "",
    output: [/queues is a list: \["orders"\], not "orders"/],
  },
  {
    name: "a missing file",
    topology: '"none.json"',
    body: "",
    output: [/the topology cannot be read: ENOENT: no such file or directory, open '\S+none\.json'/],
  },
];

/** Tests that pass in the same file. */
const PASSING = [
  [
    "a fault that fired",
    undefined,
    `await send(servicebus, "queue.1");
    const late = await servicebus.faults.on("complete", { entity: "queue.1" }).loseLock();
    await assert.rejects(complete(servicebus, "queue.1"), { code: "MessageLockLost" });
    assert.equal(await late.hits(), 1);`,
  ],
  ["a fault that was removed", undefined, 'await (await servicebus.faults.on("complete").loseReply()).remove();'],
];

const node = FRAMEWORKS["node:test"];

for (const [name, framework] of Object.entries(FRAMEWORKS)) {
  test(`${name}: a failing test shows the reason and its timeline`, async () => {
    const tests = FAILING.map(({ name, topology, body }) => [name, topology, body]);
    const output = await fails(framework, project(framework, [...tests, ...PASSING]));
    for (const test of FAILING) follows(output, test.output, test.name);
    assert.match(output, new RegExp(`${PASSING.length} passed|pass ${PASSING.length}\\b`), output);
  });
}

const LATE = 'late = servicebus; await send(servicebus, "queue.1"); await pause(4_000);';
const TIMED_OUT = {
  "node:test": `
    test("late", { timeout: 2_000 }, withServiceBus(async (servicebus) => {${LATE}}));`,
  jest: `
    test("late", withServiceBus(async (servicebus) => {${LATE}}), 2_000);
    test.concurrent("beside", withServiceBus(async (servicebus) => {
      await pause(3_000);
      await servicebus.counts("queue.1");
    }));`,
};
for (const [name, tests] of Object.entries(TIMED_OUT)) {
  test(`${name}: a test that times out shows its timeline, and its namespace ends`, async () => {
    const framework = FRAMEWORKS[name];
    const head = "let late; const pause = (milliseconds) => new Promise((resume) => setTimeout(resume, milliseconds));";
    const next = framework.test("next", undefined, 'await assert.rejects(late.counts("queue.1"), /no namespace/);');
    const output = await fails(framework, directory({ [framework.file]: framework.head + head + tests + next }));
    follows(output, [/timeline of test-\d+/, / sent +o-17/]);
    assert.match(output, name === "jest" ? /1 failed, 2 passed/ : /pass 1\n.*fail 0\n.*cancelled 1/, output);
  });
}

test("an exploration that needs longer than by default fails before the timeout of a test, and says so", async () => {
  const slowly = async ({ connectionString, parties }) => {
    await send({ connectionString: parties.worker }, "queue.1");
    await complete({ connectionString }, "queue.1");
    await pause(1_600);
  };
  const options = { parties: ["worker"], name: undefined, within: undefined }; // As if they were omitted.
  await assert.rejects(explore(options, slowly), /slowly: .*\n.*hint: more than 3 s are needed: pass/s);
});

test("an exploration reports a run that hangs", async () => {
  const hangs = async ({ parties }) => {
    await send({ connectionString: parties.worker }, "queue.1");
    await new Promise(() => {});
  };
  await assert.rejects(explore({ parties: ["worker"], within: 1 }, hangs), /the run does not end within 1 s/);
});

test("node:test: a fault does not fail a test that was skipped or is to do", async () => {
  const tests = ["skip", "todo"].map(
    (method) => `test("it", withServiceBus(async (servicebus, t) => {
      await servicebus.faults.on("complete").loseReply();
      t.${method}();
    }));`,
  );
  const { code, output } = await begin(node, directory({ [node.file]: node.head + tests.join("\n") })).ended;
  assert.equal(code, 0, output);
  assert.match(output, /skipped 1\n.*todo 1/, output);
  assert.doesNotMatch(output, /never fired/);
});

test("jest: an error of Node's core stays as it is", async () => {
  const { jest } = FRAMEWORKS;
  const body = 'require("node:fs").readFileSync("/nowhere/orders");';
  const output = await fails(jest, project(jest, [["it", undefined, body]]));
  follows(output, [/ENOENT: no such file/, /timeline of test-\d+/]);
  assert.doesNotMatch(output, /thrown: /);
});

test("vitest: a repetition does not add its timeline to the error of an earlier one", async () => {
  const { vitest } = FRAMEWORKS;
  const tests = `let runs = 0;
    test("it", { repeats: 1 }, async ({ servicebus }) => { if (runs++ === 0) throw new Error("in the first run"); });`;
  const output = await fails(vitest, directory({ [vitest.file]: vitest.head + tests }));
  follows(output, [/in the first run/, /timeline of test-1/]);
  assert.doesNotMatch(output, /timeline of test-2/);
});

test("vitest: a fault does not fail a test that has failed or was skipped", async () => {
  const { vitest } = FRAMEWORKS;
  const scripted = 'await servicebus.faults.on("complete").loseReply();';
  const tests = `${vitest.head}${vitest.test("fails", undefined, `${scripted} throw new Error("another");`)}
    test("is skipped", async ({ servicebus, skip }) => { ${scripted} skip(); });`;
  const output = await fails(vitest, directory({ [vitest.file]: tests }));
  assert.match(output, /1 failed \| 1 skipped/, output);
  assert.doesNotMatch(output, /never fired/);
});

const EMPTY_TEST = [["it", undefined, ""]];

/** Hides the package of the platform. */
const HIDES = `import Module from "node:module";
const { _resolveFilename: resolve } = Module;
Module._resolveFilename = (name, ...rest) => resolve(name.replace(/^@servicebus-emulator/, "./none"), ...rest);
`;

const BAD_ENVIRONMENTS = {
  "no program": [
    { SERVICEBUS_EMULATOR_BIN: "", PATH: "/nowhere" },
    /this installation has no emulator for \S+-\S+, and PATH has none \(ENOENT\): install optional dependencies, too, or/,
    /build it with `cargo build --release -p servicebus-emulator` and set SERVICEBUS_EMULATOR_BIN to the program/,
  ],
  "a program that does not exist": [
    { SERVICEBUS_EMULATOR_BIN: "/nowhere/emulator" },
    /SERVICEBUS_EMULATOR_BIN is \/nowhere\/emulator, which cannot be started \(ENOENT\): correct the path, or unset it/,
  ],
  "a program that is not the emulator": [
    { SERVICEBUS_EMULATOR_BIN: "true" },
    /the emulator did not start: true is not the emulator's program; check SERVICEBUS_EMULATOR_OPTIONS and SERVICEBUS_EMULATOR_BIN/,
  ],
  "another program": [{ SERVICEBUS_EMULATOR_BIN: "cat" }, /the emulator did not start: .*unrecognized option/],
  "an option with a space": [
    { SERVICEBUS_EMULATOR_OPTIONS: `'--none a b'` },
    /the emulator did not start: .*'--none a b'/,
  ],
  "an unknown option": [{ SERVICEBUS_EMULATOR_OPTIONS: "--amqp-prot 1" }, /the emulator did not start: .*--amqp-prot/],
  "a value that an option does not have": [
    { SERVICEBUS_EMULATOR_OPTIONS: "--tier gold" },
    /the emulator did not start: .*'gold'.* \[possible values: basic, standard, premium\]; check/,
  ],
};

for (const [name, [environment, ...errors]] of Object.entries(BAD_ENVIRONMENTS)) {
  test(`${name}: a readable error`, async () => {
    const cwd = directory({ [node.file]: (environment.PATH ? HIDES : "") + node.head + node.test(...EMPTY_TEST[0]) });
    follows(await fails(node, cwd, environment), errors);
  });
}

test("a program of another version is a readable error", async () => {
  const other = `#!/bin/sh\necho '{"event":"ready","version":"9.9.9"}'\n`;
  const cwd = directory({ [node.file]: node.head + node.test(...EMPTY_TEST[0]), other });
  const program = join(cwd, "other");
  chmodSync(program, 0o755);
  follows(await fails(node, cwd, { SERVICEBUS_EMULATOR_BIN: program }), [
    /did not start: \S+\/other is version 9\.9\.9, but this package is version \d\S+; check .*SERVICEBUS_EMULATOR_BIN/,
  ]);
});

test("variables for another emulator are ignored", async () => {
  const settings = { DATA: "/dev/null/data", CONFIG: "none.json", HTTPS_PORT: "1", CONTROL_TOKEN: "secret" };
  const named = Object.entries(settings).map(([name, value]) => [`SERVICEBUS_EMULATOR_${name}`, value]);
  const { code, output } = await begin(node, project(node, EMPTY_TEST), Object.fromEntries(named)).ended;
  assert.equal(code, 0, output);
});

test("a port in use is a readable error", async () => {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  try {
    const output = await fails(node, project(node, EMPTY_TEST), { SERVICEBUS_EMULATOR_OPTIONS: `--amqp-port ${port}` });
    follows(output, [
      new RegExp(`the emulator did not start: cannot listen on 127\\.0\\.0\\.1:${port}: Address already in use`),
    ]);
  } finally {
    listener.close();
  }
});

test("an emulator that dies fails its test and later ones with a readable error", async () => {
  const dies = `process.kill(servicebus.emulator.ready.pid, "SIGKILL"); await servicebus.counts("queue.1");`;
  const output = await fails(
    node,
    project(node, [
      ["it", undefined, dies],
      ["next", undefined, ""],
    ]),
  );
  const error = /the emulator was ended by SIGKILL during the test run: start the run again \(/;
  follows(output, [/✖ it/, error, /timeline of test-1/, error, /✖ next/, error]);
});

/** Expects these patterns in a text, in this order. */
function follows(text, patterns, name = "") {
  let from = 0;
  for (const pattern of patterns) {
    const at = text.slice(from).search(pattern);
    assert.ok(at >= 0, `${name}: ${pattern} is not in the rest:\n${text.slice(from)}`);
    from += at + 1;
  }
}
