// Formats of values and addresses.

const SUFFIXES = [
  ["/$Transfer/$DeadLetterQueue", "transfer-dead-letter"],
  ["/$DeadLetterQueue", "dead-letter"],
];

/** The time of day in UTC, to the millisecond. @param {string | number | null | undefined} at */
export function time(at) {
  if (at === null || at === undefined) return "";
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString().slice(11, 23);
}

/** The date and time in UTC. @param {string | number | null | undefined} at */
export function instant(at) {
  if (at === null || at === undefined) return "";
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return String(at);
  return date.toISOString().replace("T", " ");
}

/** A duration: `250 ms`, `42 s`, `5 min`, `2 h 30 min`, `14 d`. @param {number} seconds */
export function span(seconds) {
  const sign = seconds < 0 ? "−" : "";
  const s = Math.abs(seconds);
  if (s === 0) return "0 s";
  if (s < 1) return `${sign}${Math.max(1, Math.round(s * 1000))} ms`;
  if (s < 10) return `${sign}${trim(s, 1)} s`;
  if (s < 120) return `${sign}${Math.round(s)} s`;
  const [unit, smaller, size, ratio] = s < 7200 ? ["min", "s", 60, 60] : s < 172800 ? ["h", "min", 3600, 60] : ["d", "h", 86400, 24];
  const whole = Math.floor(s / size);
  const rest = Math.floor(((s - whole * size) / size) * ratio);
  return `${sign}${whole} ${unit}${rest ? ` ${rest} ${smaller}` : ""}`;
}

/** The time that remains until an instant; none after it, until the page gets the change. @param {string} until @param {number} now in milliseconds */
export function remaining(until, now) {
  return span(Math.max(0, (Date.parse(until) - now) / 1000));
}

/** @param {number} value @param {number} digits */
function trim(value, digits) {
  return value.toFixed(digits).replace(/\.0+$/, "");
}

/** Seconds since the namespace was started. @param {number} seconds */
export function offset(seconds) {
  return `+${seconds.toFixed(3)} s`;
}

/** A number of bytes. @param {number | null | undefined} bytes */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "";
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1 << 20 ? `${trim(bytes / 1024, 1)} KiB` : `${trim(bytes / (1 << 20), 1)} MiB`;
}

/** A number with its noun in the singular or plural. @param {number} n @param {string} noun @param {string} [plural] */
export function count(n, noun, plural = `${noun}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? noun : plural}`;
}

/** Splits an address into the path of the entity and the sub-queue. @param {string} address @returns {[string, string]} */
export function splitAddress(address) {
  for (const [end, name] of SUFFIXES) {
    if (address.toLowerCase().endsWith(end.toLowerCase())) return [address.slice(0, -end.length), name];
  }
  return [address, ""];
}

/** The address of a sub-queue of an entity. @param {string} path @param {string} subQueue */
export function address(path, subQueue) {
  return path + (SUFFIXES.find(([, name]) => name === subQueue)?.[0] ?? "");
}

/** Decodes base64 texts and concatenates the bytes. @param {string[]} texts */
export function bytes(...texts) {
  return Uint8Array.from(texts.map(atob).join(""), (byte) => byte.charCodeAt(0));
}

/** Decodes UTF-8, or returns null if the bytes are not UTF-8. @param {Uint8Array} data */
export function utf8(data) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch {
    return null;
  }
}

/** A hex dump of the first bytes. @param {Uint8Array} data @param {number} limit */
export function hex(data, limit = 16384) {
  const lines = [];
  for (let at = 0; at < Math.min(data.length, limit); at += 16) {
    const row = Array.from(data.subarray(at, at + 16));
    const numbers = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${numbers.padEnd(47)}  ${text}`);
  }
  if (data.length > limit) lines.push(`… ${count(data.length - limit, "byte")} more`);
  return lines.join("\n");
}
