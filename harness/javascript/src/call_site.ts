/** Finds the line of a test that called this package. */
import { fileURLToPath } from "node:url";

/** The file of the first frame outside this package, and its location with the line. */
export function callSite(stack = new Error().stack): { file: string; location: string } | undefined {
  for (const frame of stack?.split("\n").slice(1) ?? []) {
    // A module of Node's core, such as `node:internal/test_runner/test`, of which the expression would match a part.
    if (/[ (]node:/.test(frame)) continue;
    const [, location, line] = /((?:file:\/\/)?(?:\/|\b[A-Za-z]:\\).*):(\d+):\d+\)?$/.exec(frame) ?? [];
    if (location === undefined || line === undefined) continue;
    const file = location.startsWith("file:") ? fileURLToPath(location) : location;
    if (!file.startsWith(__dirname)) return { file, location: `${file}:${line}` };
  }
  return undefined;
}
