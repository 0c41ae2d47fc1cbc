// AMQP values in the JSON of the control API: strings, booleans and null as such, other types as `{"int":5}`.

/** Returns a value as text, and its AMQP type. @param {any} value @returns {[string, string]} */
export function formatValue(value) {
  if (value === null || value === undefined) return ["", value === null ? "null" : ""];
  if (typeof value !== "object") return [String(value), typeof value];
  const [[type, inner] = ["", ""]] = Object.entries(value);
  if (typeof inner === "object") return [JSON.stringify(plain(value)), type];
  const date = new Date(Number(inner));
  return [type === "timestamp" && !Number.isNaN(date.getTime()) ? date.toISOString() : String(inner), type];
}

/** Returns a value with its lists as arrays, and its maps as objects if all keys are strings. @param {any} value @returns {any} */
export function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  if (value?.list) return plain(value.list);
  if (value?.described) return { described: plain(value.described) };
  if (!value?.map) return value;
  const pairs = plain(value.map);
  return pairs.every((/** @type {any} */ [key]) => typeof key === "string") ? Object.fromEntries(pairs) : { map: pairs };
}
