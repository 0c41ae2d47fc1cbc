/** Runs test files as users do, each in a separate directory beside the installed packages. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const PROGRAMS = join(HERE, "node_modules");
const NAMES = "{ complete, leaveChild, send, recordProcess, wait }";
const IMPORTED = `import assert from "node:assert/strict";\nimport ${NAMES} from "../clients.cjs";\n`;
const REQUIRED = `const assert = require("node:assert/strict");\nconst ${NAMES} = require("../clients.cjs");\n`;
const quoted = JSON.stringify;
const wrapped = (name, topology, body) =>
  `test(${quoted(name)}, withServiceBus(${topology ? `${topology}, ` : ""}async (servicebus) => {${body}}));\n`;

/** How a test is written for each framework, and how the framework is run. */
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

const directories = [];
process.once("exit", () => directories.forEach((directory) => rmSync(directory, { recursive: true, force: true })));

/** Creates a directory with these files, which is removed when this process ends. */
export function directory(files) {
  const directory = mkdtempSync(join(HERE, "project-"));
  directories.push(directory);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(directory, name), text);
  }
  return directory;
}

/** Creates a directory with one file of these tests, each a name, a topology and a body. */
export function project({ file, head, test }, tests) {
  return directory({ [file]: head + tests.map((one) => test(...one)).join("") });
}

/** Starts a run in a directory; `ended` resolves to its exit code and its output. */
export function begin({ command }, cwd, environment = {}) {
  const env = { ...process.env, ...environment };
  delete env.NODE_TEST_CONTEXT; // The new run is not part of this one.
  const run = spawn(process.execPath, command, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [run.stdout, run.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const ended = once(run, "close").then(([code]) => ({ code, output }));
  return { run, ended };
}

/** Runs tests that must fail, and returns the output. */
export async function fails(framework, cwd, environment) {
  const { code, output } = await begin(framework, cwd, environment).ended;
  if (code !== 1) throw new Error(`the run ended with ${code}:\n${output}`);
  return output;
}
