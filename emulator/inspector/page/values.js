// AMQP values as the control API writes them: texts, booleans and null as themselves, others as `{"int":5}`.

/** A value as text, and the name of its type. @param {any} value @returns {[string, string]} */
export function typed(value) {
  if (value === null || value === undefined) return ["", value === null ? "null" : ""];
  if (typeof value !== "object") return [String(value), typeof value === "string" ? "string" : typeof value];
  if (Array.isArray(value)) return [JSON.stringify(value.map((it) => typed(it)[0])), "list"];
  const [[type, inner] = ["", ""]] = Object.entries(value);
  switch (type) {
    case "timestamp":
      return [new Date(Number(inner)).toISOString(), type];
    case "list":
      return [JSON.stringify(inner.map((/** @type {any} */ it) => typed(it)[0])), type];
    case "map":
      return [JSON.stringify(Object.fromEntries(inner.map((/** @type {any} */ [key, it]) => [typed(key)[0], typed(it)[0]]))), type];
    case "described":
      return [`${typed(inner[0])[0]}: ${typed(inner[1])[0]}`, type];
    default:
      return [typeof inner === "object" ? JSON.stringify(inner) : String(inner), type];
  }
}
