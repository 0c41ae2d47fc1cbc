/** The emulator ends with the test run, however the run ends. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { get } from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { FRAMEWORKS, begin, project } from "./frameworks.js";

const MILLISECONDS = 30_000;
const { vitest, jest, "node:test": node } = FRAMEWORKS;
const WAITS = ["it waits", undefined, "await wait(servicebus);"];
const LEAVES_A_CHILD = ["it waits", undefined, "leaveChild(); await wait(servicebus);"];
const and = (framework, ...options) => ({ ...framework, command: [...framework.command, ...options] });

const RUNS = {
  vitest: [vitest, WAITS],
  "vitest in threads": [and(vitest, "--pool=threads"), WAITS],
  jest: [jest, WAITS],
  "jest in workers": [and(jest, "--workers=2"), WAITS],
  "node:test": [node, WAITS],
  "node:test with a process that outlives it": [node, LEAVES_A_CHILD],
};

for (const [name, [framework, waits]] of Object.entries(RUNS)) {
  for (const signal of ["SIGKILL", "SIGTERM", "SIGINT"]) {
    test(`${name}, ${signal}`, async () => {
      const cwd = project(framework, [waits]);
      copyFileSync(join(cwd, framework.file), join(cwd, `other.${framework.file}`)); // Enough for two workers.
      const { run, ended } = begin(framework, cwd);
      try {
        const response = await hold(await line(join(cwd, "emulator")));
        run.kill(signal);
        await once(response.resume(), "close", { signal: AbortSignal.timeout(MILLISECONDS) });
      } finally {
        run.kill("SIGKILL");
      }
      await ended; // All processes that write to its output have ended, too.
    });
  }
}

/** Waits until a file has a line, and returns it. */
async function line(file) {
  for (const deadline = Date.now() + MILLISECONDS; ; await pause(50)) {
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    if (text.endsWith("\n")) return text.trim();
    assert.ok(Date.now() < deadline, "the test has not started");
  }
}

/** Opens a response that ends when the emulator ends. */
async function hold(address) {
  const [response] = await once(get(`http://${address}/$emulator/v1/hold`, { agent: false }), "response");
  return response.on("error", () => {}); // An error also means that the emulator has ended.
}
