/** Runs files of tests as users do, each in a directory of its own beside the installed packages. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const PROGRAMS = join(HERE, "node_modules");
const NAMES = "{ complete, leaveChild, send, tellProcess, wait }";
const IMPORTED = `import assert from "node:assert/strict";\nimport ${NAMES} from "../clients.cjs";\n`;
const REQUIRED = `const assert = require("node:assert/strict");\nconst ${NAMES} = require("../clients.cjs");\n`;
const quoted = JSON.stringify;
const wrapped = (name, topology, body) =>
  `test(${quoted(name)}, withServiceBus(${topology ? `${topology}, ` : ""}async (servicebus) => {${body}}));\n`;

/** How each framework is given a test, and how it is run. */
export const FRAMEWORKS = {
  vitest: {
    file: "it.test.mjs",
    head: `${IMPORTED}import { test } from "servicebus-emulator/vitest";\n`,
    test: (name, topology, body) =>
      `${topology ? `test.extend({ topology: ${topology} })` : "test"}(${quoted(name)}, async ({ servicebus }) => {${body}});\n`,
    command: [join(PROGRAMS, "vitest/vitest.mjs"), "run", "--no-color", "--testTimeout=60000", "--root=."],
  },
  jest: {
    file: "it.test.cjs",
    head: `${REQUIRED}const { withServiceBus } = require("servicebus-emulator/jest");\n`,
    test: wrapped,
    command: [
      join(PROGRAMS, "jest/bin/jest.js"),
      "--no-color",
      "--testTimeout=60000",
      "--testMatch=**/*.test.*",
      "--rootDir=.",
    ],
  },
  "node:test": {
    file: "it.test.mjs",
    head: `${IMPORTED}import { test } from "node:test";\nimport { withServiceBus } from "servicebus-emulator";\n`,
    test: wrapped,
    command: ["--test", "--test-reporter=spec"],
  },
};

const made = [];
process.once("exit", () => made.forEach((directory) => rmSync(directory, { recursive: true, force: true })));

/** A directory with these files, gone when this process is. */
export function directory(files) {
  const directory = mkdtempSync(join(HERE, "project-"));
  made.push(directory);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(directory, name), text);
  }
  return directory;
}

/** A directory with one file of these tests, each a name, a topology and a body. */
export function project({ file, head, test }, tests) {
  return directory({ [file]: head + tests.map((one) => test(...one)).join("") });
}

/** Begins a run in a directory; `printed` is what it has said when it has ended. */
export function begin({ command }, cwd, environment = {}) {
  const env = { ...process.env, ...environment };
  delete env.NODE_TEST_CONTEXT; // It is no part of this run.
  const run = spawn(process.execPath, command, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [run.stdout, run.stderr]) stream.setEncoding("utf8").on("data", (text) => (said += text));
  const ended = once(run, "close").then(([code]) => ({ code, said }));
  return { run, ended };
}

/** Runs tests that must fail; what is printed. */
export async function fails(framework, cwd, environment) {
  const { code, said } = await begin(framework, cwd, environment).ended;
  if (code !== 1) throw new Error(`the run ended with ${code}:\n${said}`);
  return said;
}
