// AMQP values in the JSON of the control API: strings, booleans and null as such, other types as `{"int":5}`.

/** Returns a value as text, and its AMQP type. @param {any} value @returns {[string, string]} */
export function formatValue(value) {
  if (value === null || value === undefined) return ["", value === null ? "null" : ""];
  if (typeof value !== "object") return [String(value), typeof value === "string" ? "string" : typeof value];
  if (Array.isArray(value)) return [JSON.stringify(value.map((it) => formatValue(it)[0])), "list"];
  const [[type, inner] = ["", ""]] = Object.entries(value);
  switch (type) {
    case "timestamp": {
      const date = new Date(Number(inner));
      return [Number.isNaN(date.getTime()) ? String(inner) : date.toISOString(), type];
    }
    case "list":
      return [JSON.stringify(inner.map((/** @type {any} */ it) => formatValue(it)[0])), type];
    case "map":
      return [JSON.stringify(Object.fromEntries(inner.map((/** @type {any} */ [key, it]) => [formatValue(key)[0], formatValue(it)[0]]))), type];
    case "described":
      return [`${formatValue(inner[0])[0]}: ${formatValue(inner[1])[0]}`, type];
    default:
      return [typeof inner === "object" ? JSON.stringify(inner) : String(inner), type];
  }
}
