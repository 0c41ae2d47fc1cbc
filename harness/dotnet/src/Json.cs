using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Reflection;
using System.Runtime.Serialization.Json;
using System.Text;
using System.Text.RegularExpressions;
using System.Xml;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>JSON by the reader of .NET Standard, whose writer needs a declared type for each value.</summary>
    internal static class Json
    {
        /// <summary>That of System.Text.Json.</summary>
        private const int MaxDepth = 64;

        /// <summary>Types of numbers by name, because older frameworks do not have all of them.</summary>
        private static readonly string[] Numbers = { "System.Numerics.BigInteger", "System.Int128", "System.UInt128", "System.Half" };

        /// <summary>Reads each value as an XML element. A null has no element, so that converting it gives null.</summary>
        internal static XElement Read(string text)
        {
            using (var reader = JsonReaderWriterFactory.CreateJsonReader(Encoding.UTF8.GetBytes(text), XmlDictionaryReaderQuotas.Max))
            {
                var json = XElement.Load(reader);
                json.Descendants().Where(each => (string)each.Attribute("type") == "null").Remove();
                return json;
            }
        }

        /// <summary>
        /// The JSON of dictionaries, sequences, plain values, and of the properties of any other object. Values that JSON does not have
        /// are as in the control API.
        /// </summary>
        internal static string Write(object value) => Write(value, 0);

        private static string Write(object value, int depth) =>
            value == null ? "null"
            : depth > MaxDepth ? throw new ServiceBusEmulatorException(
                $"the value has no JSON: it has more than {MaxDepth} levels, here {value.GetType()}; does it contain itself?")
            : value is string text ? $"\"{Regex.Replace(text, "[\\x00-\\x1f\"\\\\]", Escape)}\""
            : value is char || value is Guid || value is Uri ? Write(value.ToString())
            : value is Enum constant ? constant.ToString("d")
            : value is DateTime local ? Write(new DateTimeOffset(local))
            : value is double || value is float || Numbers.Contains(value.GetType().FullName) ? Formatted(value, "R")
            : value is IConvertible plain ? plain.ToString(CultureInfo.InvariantCulture).ToLowerInvariant()
            : value is TimeSpan span ? Write(span.TotalSeconds)
            : value is DateTimeOffset time ? Write(time.UtcDateTime.ToString("o", CultureInfo.InvariantCulture))
            : value.GetType().FullName == "System.DateOnly" ? Write(Formatted(value, "o"))
            : value.GetType().FullName == "System.TimeOnly" ? Write(Formatted(value, "HH:mm:ss.FFFFFFF"))
            : value is byte[] bytes ? Write(new Dictionary<string, object> { ["$bytes"] = Convert.ToBase64String(bytes) })
            : value.GetType().Namespace?.StartsWith("System.Text.Json", StringComparison.Ordinal) == true ? TextOf(value)
            : value is TextMatch match ? Write(match.Encoded)
            : value is Entity entity ? Write(entity.Properties)
            : value is Rule rule ? Write(rule.Encoded())
            : value is IEnumerable items && !IsMap(value) ? $"[{Joined(items.Cast<object>().Select(each => Write(each, depth + 1)))}]"
            : $"{{{Joined(Members(value).Select(each => $"{Write(each.Key)}:{Write(each.Value, depth + 1)}"))}}}";

        /// <summary>The members of an object that are not null, by their names.</summary>
        internal static Dictionary<string, object> Given(object value) =>
            Members(value).Where(each => each.Value != null).ToDictionary(each => each.Key, each => each.Value);

        /// <summary>
        /// The text of a <c>JsonDocument</c>, <c>JsonElement</c> or <c>JsonNode</c>, whose package this library does not refer to.
        /// </summary>
        private static string TextOf(object json) => json.GetType().Name == "JsonDocument"
            ? TextOf(json.GetType().GetProperty("RootElement").GetValue(json))
            : (string)(json.GetType().GetMethod("GetRawText")?.Invoke(json, null)
                ?? json.GetType().GetMethod("ToJsonString").Invoke(json, new object[] { null }));

        private static bool IsMap(object value) => value is IDictionary || value is IDictionary<string, object>;

        private static IDictionary<string, object> Members(object value) =>
            value as IDictionary<string, object>
            ?? (value as IDictionary)?.Keys.Cast<object>().ToDictionary(each => $"{each}", each => ((IDictionary)value)[each])
            ?? value.GetType().GetProperties(BindingFlags.Public | BindingFlags.Instance)
                .Where(each => each.GetIndexParameters().Length == 0)
                .ToDictionary(each => each.Name, each => each.GetValue(value, null));

        private static string Formatted(object value, string format) =>
            ((IFormattable)value).ToString(format, CultureInfo.InvariantCulture);

        private static string Escape(Match character) => $"\\u{(int)character.Value[0]:x4}";

        private static string Joined(IEnumerable<string> parts) => string.Join(",", parts);
    }
}
