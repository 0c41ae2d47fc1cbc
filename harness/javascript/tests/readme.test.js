/** The README's tests pass as they stand there, and its faults are scripted. */
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
    const { code, said } = await begin(framework, directory({ [framework.file]: snippet })).ended;
    assert.equal(code, 0, said);
    assert.match(said, /1 passed|pass 1\b/);
  });
}

test("the topology is served", async () => {
  const snippet = SNIPPETS.find((text) => text.includes("const topology"));
  const { code, said } = await begin(node, directory({ [node.file]: node.head + snippet })).ended;
  assert.equal(code, 0, said);
});

test("what it expects happens, and its faults are scripted", async () => {
  const [expectation, faults] = SNIPPETS.filter((text) => text.startsWith("await"));
  const topology = '{ queues: [{ name: "orders", deadLetteringOnMessageExpiration: true }] }';
  const expires = 'await send(servicebus, "orders", { timeToLive: 1_000 }); await servicebus.advance(1);';
  const tests = node.test("expects", topology, expires + expectation) + node.test("scripts", topology, faults);
  const said = await fails(node, directory({ [node.file]: node.head + tests }));
  assert.match(said, /pass 1\b/, said);
  assert.match(said, /(a fault never fired: \{[^]*){3}/, said);
});
