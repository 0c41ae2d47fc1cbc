// How values are shown.

const ADDRESS_PARTS = [
  ["/$Transfer/$DeadLetterQueue", "transfer-dead-letter"],
  ["/$DeadLetterQueue", "dead-letter"],
];

/** The time of day of an instant, to the millisecond. @param {string | number | null | undefined} at */
export function time(at) {
  if (at === null || at === undefined) return "";
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString().slice(11, 23);
}

/** An instant in full. @param {string | number | null | undefined} at */
export function instant(at) {
  if (at === null || at === undefined) return "";
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return String(at);
  return date.toISOString().replace("T", " ");
}

/** A span of time: `250 ms`, `42 s`, `5 min`, `2 h 30 min`, `14 d`. @param {number} seconds */
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

/** A number with its noun, in the plural where it needs one. @param {number} n @param {string} noun @param {string} [plural] */
export function count(n, noun, plural = `${noun}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? noun : plural}`;
}

/** An address, and which of the queues it is. @param {string} address @returns {[string, string]} */
export function parts(address) {
  for (const [end, name] of ADDRESS_PARTS) {
    if (address.toLowerCase().endsWith(end.toLowerCase())) return [address.slice(0, -end.length), name];
  }
  return [address, ""];
}

/** The address of an entity's own messages or of one of its dead-letter queues. @param {string} path @param {string} part */
export function address(path, part) {
  return path + (ADDRESS_PARTS.find(([, name]) => name === part)?.[0] ?? "");
}

/** The bytes of texts in base64, one after the other. @param {string[]} texts */
export function bytes(...texts) {
  return Uint8Array.from(texts.map(atob).join(""), (byte) => byte.charCodeAt(0));
}

/** Bytes as text, or null where they are not UTF-8. @param {Uint8Array} data */
export function utf8(data) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch {
    return null;
  }
}

/** The first bytes as a table of hexadecimal numbers. @param {Uint8Array} data @param {number} most */
export function hex(data, most = 16384) {
  const lines = [];
  for (let at = 0; at < Math.min(data.length, most); at += 16) {
    const row = Array.from(data.subarray(at, at + 16));
    const numbers = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${numbers.padEnd(47)}  ${text}`);
  }
  if (data.length > most) lines.push(`… ${count(data.length - most, "byte")} more`);
  return lines.join("\n");
}
