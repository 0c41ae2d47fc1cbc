/**
 * Measures the time of a namespace in a test, where `harness/javascript/run` has installed the packages:
 *
 *     node target/javascript/empty/measure.mjs [TESTS]
 */
import { FRAMEWORKS, begin, directory } from "./frameworks.js";

const TESTS = Number(process.argv[2] ?? 1000);
const EMPTY = (name) => `test(${JSON.stringify(name)}, async () => {});\n`;

/** The seconds that a run of `TESTS` tests takes. */
async function seconds(framework, one) {
  const tests = Array.from({ length: TESTS }, (_, number) => one(`test ${number}`)).join("");
  const cwd = directory({ [framework.file]: framework.head + tests });
  const began = performance.now();
  const { code, output } = await begin(framework, cwd).ended;
  if (code !== 0) throw new Error(output);
  return (performance.now() - began) / 1000;
}

for (const [name, framework] of Object.entries(FRAMEWORKS)) {
  const empty = await seconds(framework, EMPTY);
  const own = await seconds(framework, (name) => framework.test(name, undefined, ""));
  const sending = await seconds(framework, (name) =>
    framework.test(name, undefined, 'await send(servicebus, "queue.1");'),
  );
  const each = (((own - empty) / TESTS) * 1000).toFixed(1);
  console.log(
    `${name}: ${TESTS} tests without a namespace ${empty.toFixed(2)} s, with one ${own.toFixed(2)} s (${each} ms each),`,
  );
  console.log(`  and of a message each, by the SDK, ${sending.toFixed(2)} s`);
}
