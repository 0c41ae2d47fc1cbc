/** The tests in the README pass, and its faults are added. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { FRAMEWORKS, begin, directory, fails } from "./frameworks.js";

const README = readFileSync(new URL("README.md", import.meta.url), "utf8");
const SNIPPETS = [...README.matchAll(/```javascript\n(.*?)```/gs)].map(([, text]) => text);
const { vitest, jest, "node:test": node } = FRAMEWORKS;

for (const [name, framework, sign] of [
  ["vitest", vitest, "/vitest"],
  ["jest", jest, "/jest"],
  ["node:test", node, '"node:test"'],
]) {
  test(`the first test passes in ${name}`, async () => {
    const snippet = SNIPPETS.find((text) => text.includes(sign));
    const { code, output } = await begin(framework, directory({ [framework.file]: snippet })).ended;
    assert.equal(code, 0, output);
    assert.match(output, /1 passed|pass 1\b/);
  });
}

test("the topology in the README is valid", async () => {
  const snippet = SNIPPETS.find((text) => text.includes("const topology"));
  const { code, output } = await begin(node, directory({ [node.file]: node.head + snippet })).ended;
  assert.equal(code, 0, output);
});

test("the assertion in the README holds, and its faults are added", async () => {
  const [expectation, faults] = SNIPPETS.filter((text) => text.startsWith("await"));
  const topology = '{ queues: [{ name: "orders", deadLetteringOnMessageExpiration: true }] }';
  const expires = 'await send(servicebus, "orders", { timeToLive: 1_000 }); await servicebus.advance(1);';
  const tests = node.test("expects", topology, expires + expectation) + node.test("adds faults", topology, faults);
  const output = await fails(node, directory({ [node.file]: node.head + tests }));
  assert.match(output, /pass 1\b/, output);
  assert.match(output, /(a fault never fired: \{[^]*){3}/, output);
});
