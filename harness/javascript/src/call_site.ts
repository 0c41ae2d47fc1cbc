/** Where a test called this package. */
import { fileURLToPath } from "node:url";

/** The file and line of the first frame outside this package. */
export function callSite(stack = new Error().stack): { file: string; line: string } | undefined {
  for (const frame of stack?.split("\n").slice(1) ?? []) {
    const [, place, line] = /((?:file:\/\/)?(?:\/|\b[A-Za-z]:\\).*):(\d+):\d+\)?$/.exec(frame) ?? [];
    if (place === undefined || line === undefined) continue;
    const file = place.startsWith("file:") ? fileURLToPath(place) : place;
    if (!file.startsWith(__dirname)) return { file, line };
  }
  return undefined;
}
