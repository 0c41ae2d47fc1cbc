// JSON as tokens. JSON.parse would round large numbers, reorder numeric names and drop duplicate names.

// Deeper JSON and XML are not indented, because the indentation would outweigh the content.
export const MAX_DEPTH = 100;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Returns the tokens of a text, or null if it is not JSON. @param {string | null | undefined} text @returns {string[] | null} */
export function tokens(text) {
  if (!text || !/^\s*[[{"\d\-tfn]/.test(text)) return null;
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  return text.match(TOKEN);
}

/** Whether the token is the value of a floating-point type, which has no other values than a number of JavaScript. @param {string[]} all @param {number} index */
function isFloat(all, index) {
  return all[index - 1] === ":" && /^"(double|float)"$/.test(all[index - 2]);
}

/** Parses JSON. Fails if it contains an integer that JSON.parse would round. @param {string} text @returns {any} */
export function parseExact(text) {
  const value = JSON.parse(text);
  const rounded = text.match(TOKEN)?.find((token, index, all) => /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token)) && !isFloat(all, index));
  if (rounded) throw new Error(`${rounded} exceeds the integers that JSON numbers represent exactly: write it as a string, for example {"long": "${rounded}"}`);
  return value;
}

/** Parses JSON with values of AMQP: a number with a point or an exponent is a double, also if it is whole. @param {string} text @returns {any} */
export function parseTyped(text) {
  parseExact(text);
  const all = text.match(TOKEN) ?? [];
  const typed = all.map((token, index) => {
    const number = Number(token);
    // JSON.stringify writes -0 as 0.
    const exact = Object.is(number, -0) ? '"-0"' : token;
    if (isFloat(all, index)) return exact;
    return /^-?\d.*[.e]/i.test(token) && Number.isInteger(number) ? `{"double":${exact}}` : token;
  });
  return JSON.parse(typed.join(""));
}

/** Indents JSON, or returns it unchanged if it is too deep. @param {string[]} all its tokens @param {string} text */
export function indented(all, text) {
  /** @type {string[]} */
  const out = [];
  let depth = 0;
  let before = "";
  for (const token of all) {
    const closes = token === "}" || token === "]";
    const opened = before === "{" || before === "[";
    if (closes) depth -= 1;
    if (closes ? !opened : opened || before === ",") out.push("\n", "  ".repeat(depth));
    out.push(token === ":" ? ": " : token);
    if (token === "{" || token === "[") depth += 1;
    if (depth > MAX_DEPTH) return text;
    before = token;
  }
  return out.join("");
}

/** Returns the value at a path, a string without its quotes; empty if the path does not exist. @param {string[]} all @param {string[]} path */
export function valueAt(all, path) {
  let start = 0;
  for (const key of path) {
    const found = members(all, start).filter(([name]) => name === key).pop();
    if (!found) return "";
    start = found[1];
  }
  const source = all.slice(start, end(all, start)).join("");
  return source.startsWith('"') ? String(JSON.parse(source)) : source;
}

/** Returns the names or indexes of the members, and the token at which each value begins. @param {string[]} all @param {number} start @returns {[string, number][]} */
function members(all, start) {
  /** @type {[string, number][]} */
  const found = [];
  const isObject = all[start] === "{";
  if (!isObject && all[start] !== "[") return found;
  for (let next = start; all[next] !== "}" && all[next] !== "]"; next = end(all, found[found.length - 1][1])) {
    if (all[next + 1] === "}" || all[next + 1] === "]") break;
    found.push(isObject ? [JSON.parse(all[next + 1]), next + 3] : [String(found.length), next + 1]);
  }
  return found;
}

/** Returns the token after a value. @param {string[]} all @param {number} start */
function end(all, start) {
  let depth = 0;
  let next = start;
  do {
    if (all[next] === "{" || all[next] === "[") depth += 1;
    if (all[next] === "}" || all[next] === "]") depth -= 1;
    next += 1;
  } while (depth > 0);
  return next;
}
