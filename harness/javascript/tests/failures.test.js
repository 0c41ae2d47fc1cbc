/** What a failing test says in each framework, and what is said of bad input. */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { once } from "node:events";
import { test } from "node:test";

import { FRAMEWORKS, begin, directory, fails, project } from "./frameworks.js";

/** Tests that fail: what each is called, what its namespace holds, what it does, and what is printed, in this order. */
const FAILING = [
  {
    name: "an expired order",
    body: `await send(servicebus, "queue.1", { timeToLive: 3_600_000 });
      await servicebus.advance(3600);
      const { active } = await servicebus.counts("queue.1");
      assert.equal(active, 1, "orders left");`,
    says: [
      /orders left/,
      /timeline of test-\d+/,
      /\+\S+ s +sent +o-17, by .*, in queue\.1/,
      /clock advanced +by the test, 3600 s/,
      /\+3600\S+ s +expired +o-17, in queue\.1/,
    ],
  },
  {
    name: "what was expected in vain",
    body: `await send(servicebus, "queue.1");
      await complete(servicebus, "queue.1");
      await servicebus.expect("queue.1", "completed", { messageId: "o-17" });
      await servicebus.expect("queue.1", "dead_lettered", { reason: "Rejected", within: 0.1 });`,
    says: [
      /queue\.1: expected 1 message dead-lettered with reason "Rejected", found none within 0\.1 s/,
      / sent /,
      / delivered /,
      / completed /,
    ],
  },
  {
    name: "a field of an assertion",
    body: `await servicebus.expect("queue.1", "completed", { colour: "red" });`,
    says: [/EmulatorError[^\n]*takes no "colour"; it takes kind, entity, within, messageId, body, bodyJson, count/],
  },
  {
    name: "an assertion",
    body: `await servicebus.expect("queue.1", "not-completed");`,
    says: [/EmulatorError[^\n]*"not-completed"; did you mean "not_completed"/],
  },
  {
    name: "an entity of an assertion",
    body: `await servicebus.expect("queue.2", "empty");`,
    says: [/there is no queue "queue\.2"; did you mean "queue\.1"\?/],
  },
  {
    name: "what is no error",
    body: `throw "a text";`,
    says: [/a text/, /timeline of test-\d+/, / {2}nothing happened/],
  },
  {
    name: "a fault that never fired",
    body: `await send(servicebus, "queue.1");
      await servicebus.faults.on("complete", { entity: "queue.1" }).loseLock();`,
    says: [
      /a fault never fired: \{"effect":"lose-lock","entity":"queue\.1",.*"operation":"complete"/,
      /no completion came/,
      /scripted at \S*it\.test\.[cm]js:\d+/,
      /hint: have the test do/,
      /timeline of test-\d+/,
    ],
  },
  {
    name: "faults that were almost met",
    topology: '{ queues: ["a", "b"] }',
    body: `await servicebus.faults.on("send", { entity: "a", nth: 2 }).reject("amqp:not-allowed");
      await servicebus.faults.on("send", { entity: "a", messageId: "x" }).serverBusy();
      await send(servicebus, "a");
      await send(servicebus, "b");`,
    says: [/only 1 send came, and 1 in other entities/, /1 send came, without what was asked for, and 1 in/],
  },
  {
    name: "a field of a fault",
    body: `await servicebus.faults.on("complete", { colour: 1, messageId: "x" }).loseLock();`,
    says: [/unknown field `colour`, expected one of .*`messageId`/],
  },
  {
    name: "an effect",
    body: `await servicebus.faults.on("send").apply("lose-lok");`,
    says: [/lose-lok/],
  },
  {
    name: "a property of a queue",
    topology: '{ queues: [{ name: "a", maxDeliveries: 3 }, { name: "b", lockDuration: "PT1S" }] }',
    body: "",
    says: [
      /the topology cannot be served: \S*Queues\[0\]\.Properties\.MaxDeliveries .*did you mean "MaxDeliveryCount"\?; /,
      /LockDuration "PT1S": 5 s \(PT5S\) to 5 min \(PT5M\)/,
    ],
  },
  {
    name: "a part of a topology",
    topology: '{ queue: ["a"] }',
    body: "",
    says: [/a topology has queues, topics and settings, or UserConfig, not queue/],
  },
  {
    name: "a text for a list",
    topology: '{ queues: "orders" }',
    body: "",
    says: [/queues is a list: \["orders"\], not "orders"/],
  },
  {
    name: "a file that is not there",
    topology: '"none.json"',
    body: "",
    says: [/the topology cannot be read: ENOENT: no such file or directory, open '\S+none\.json'/],
  },
];

/** Tests that pass beside them. */
const PASSING = [
  [
    "a fault that fired",
    undefined,
    `await send(servicebus, "queue.1");
    const late = await servicebus.faults.on("complete", { entity: "queue.1" }).loseLock();
    await assert.rejects(complete(servicebus, "queue.1"), { code: "MessageLockLost" });
    assert.equal(await late.hits(), 1);`,
  ],
  ["a fault that was taken out", undefined, 'await (await servicebus.faults.on("complete").loseReply()).remove();'],
];

for (const [name, framework] of Object.entries(FRAMEWORKS)) {
  test(`${name}: a failing test says why, with its timeline`, async () => {
    const tests = FAILING.map(({ name, topology, body }) => [name, topology, body]);
    const said = await fails(framework, project(framework, [...tests, ...PASSING]));
    for (const { name, says } of FAILING) follows(said, says, name);
    assert.match(said, new RegExp(`${PASSING.length} passed|pass ${PASSING.length}\\b`), said);
  });
}

test("vitest: a fault of a test that fails or is skipped is no second failure", async () => {
  const { vitest } = FRAMEWORKS;
  const scripted = 'await servicebus.faults.on("complete").loseReply();';
  const tests = `${vitest.head}${vitest.test("fails", undefined, `${scripted} throw new Error("another");`)}
    test("is skipped", async ({ servicebus, skip }) => { ${scripted} skip(); });`;
  const said = await fails(vitest, directory({ [vitest.file]: tests }));
  assert.match(said, /1 failed \| 1 skipped/, said);
  assert.doesNotMatch(said, /never fired/);
});

const node = FRAMEWORKS["node:test"];
const FREE = [["it", undefined, ""]];

/** Hides the package of the platform. */
const HIDES = `import Module from "node:module";
const { _resolveFilename: resolve } = Module;
Module._resolveFilename = (name, ...rest) => resolve(name.replace(/^@servicebus-emulator/, "./none"), ...rest);
`;

const BAD_ENVIRONMENTS = {
  "no program": [
    { SERVICEBUS_EMULATOR_BIN: "", PATH: "/nowhere" },
    /this installation has no emulator for \S+-\S+, and there is none on the path \(ENOENT\): install without leaving/,
    /out optional dependencies, or build it with `cargo build --release -p servicebus-emulator` and name it in SERVICE/,
  ],
  "a program that does not exist": [
    { SERVICEBUS_EMULATOR_BIN: "/nowhere/emulator" },
    /SERVICEBUS_EMULATOR_BIN names \/nowhere\/emulator, which cannot be started \(ENOENT\): name a program, or unset it/,
  ],
  "no emulator": [
    { SERVICEBUS_EMULATOR_BIN: "true" },
    /the emulator did not start: true is no emulator; check SERVICEBUS_EMULATOR_OPTIONS and SERVICEBUS_EMULATOR_BIN/,
  ],
  "another program": [{ SERVICEBUS_EMULATOR_BIN: "cat" }, /the emulator did not start: .*unrecognized option/],
  "an option": [{ SERVICEBUS_EMULATOR_OPTIONS: "--amqp-prot 1" }, /the emulator did not start: .*--amqp-prot/],
};

for (const [name, [environment, ...said]] of Object.entries(BAD_ENVIRONMENTS)) {
  test(`${name}: told in a sentence`, async () => {
    const cwd = directory({ [node.file]: (environment.PATH ? HIDES : "") + node.head + node.test(...FREE[0]) });
    follows(await fails(node, cwd, environment), said);
  });
}

test("settings of an emulator beside the tests are not theirs", async () => {
  const settings = { DATA: "/dev/null/data", CONFIG: "none.json", HTTPS_PORT: "1", CONTROL_TOKEN: "secret" };
  const named = Object.entries(settings).map(([name, value]) => [`SERVICEBUS_EMULATOR_${name}`, value]);
  const { code, said } = await begin(node, project(node, FREE), Object.fromEntries(named)).ended;
  assert.equal(code, 0, said);
});

test("a port in use is told in a sentence", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address();
  try {
    const said = await fails(node, project(node, FREE), { SERVICEBUS_EMULATOR_OPTIONS: `--amqp-port ${port}` });
    follows(said, [
      new RegExp(`the emulator did not start: cannot listen on 127\\.0\\.0\\.1:${port}: Address already in use`),
    ]);
  } finally {
    taken.close();
  }
});

test("an emulator that dies is told in its test and in later ones", async () => {
  const dies = `process.kill(servicebus.emulator.ready.pid, "SIGKILL"); await servicebus.counts("queue.1");`;
  const said = await fails(
    node,
    project(node, [
      ["it", undefined, dies],
      ["next", undefined, ""],
    ]),
  );
  const sentence = /the emulator ended by SIGKILL in the middle of the run: start the run again \(/;
  follows(said, [/✖ it/, sentence, /timeline of test-1/, sentence, /✖ next/, sentence]);
});

/** Expects these patterns in a text, one after the other. */
function follows(text, patterns, name = "") {
  let from = 0;
  for (const pattern of patterns) {
    const at = text.slice(from).search(pattern);
    assert.ok(at >= 0, `${name}: ${pattern} is not in what follows:\n${text.slice(from)}`);
    from += at + 1;
  }
}
