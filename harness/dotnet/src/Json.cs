using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Runtime.Serialization.Json;
using System.Xml;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>JSON by the reader and writer of .NET Standard, which has an XML element for each value.</summary>
    internal static class Json
    {
        /// <summary>Names of members may be invalid as names in XML: each is an attribute of an element with this name.</summary>
        private const string Item = "item";

        internal static XElement Read(byte[] text)
        {
            using (var reader = JsonReaderWriterFactory.CreateJsonReader(text, XmlDictionaryReaderQuotas.Max))
            {
                return XElement.Load(reader);
            }
        }

        /// <summary>The JSON of dictionaries, sequences, plain values, and of the properties of any other object.</summary>
        internal static byte[] Write(object value)
        {
            var text = new MemoryStream();
            using (var writer = JsonReaderWriterFactory.CreateJsonWriter(text))
            {
                writer.WriteStartElement("root");
                WriteValue(writer, value);
                writer.WriteEndElement();
            }
            return text.ToArray();
        }

        /// <summary>The members of an object by their names.</summary>
        internal static IDictionary<string, object> Members(object value)
        {
            return value as IDictionary<string, object>
                ?? value.GetType().GetProperties().ToDictionary(each => each.Name, each => each.GetValue(value, null));
        }

        internal static string Text(this XElement json, string name)
        {
            var member = json.Element(name);
            return member == null || (string)member.Attribute("type") == "null" ? null : member.Value;
        }

        internal static long Number(this XElement json, string name) => json.OptionalNumber(name) ?? 0;

        internal static long? OptionalNumber(this XElement json, string name)
        {
            var text = json.Text(name);
            return text == null ? (long?)null : long.Parse(text, CultureInfo.InvariantCulture);
        }

        internal static DateTimeOffset? Time(this XElement json, string name)
        {
            var text = json.Text(name);
            return text == null ? (DateTimeOffset?)null : DateTimeOffset.Parse(text, CultureInfo.InvariantCulture);
        }

        internal static IEnumerable<XElement> Items(this XElement json, string name) =>
            json.Element(name)?.Elements() ?? Enumerable.Empty<XElement>();

        private static void WriteValue(XmlDictionaryWriter writer, object value)
        {
            value = Plain(value);
            if (value is string text)
            {
                writer.WriteString(text);
            }
            else if (value is IConvertible plain)
            {
                writer.WriteAttributeString("type", value is bool ? "boolean" : "number");
                writer.WriteString(plain.ToString(CultureInfo.InvariantCulture).ToLowerInvariant());
            }
            else if (value == null)
            {
                writer.WriteAttributeString("type", "null");
            }
            else
            {
                WriteElements(writer, value);
            }
        }

        /// <summary>Converts values that JSON does not have as the control API does.</summary>
        private static object Plain(object value) =>
            value is TimeSpan span ? span.TotalSeconds
            : value is DateTimeOffset time ? time.UtcDateTime.ToString("o", CultureInfo.InvariantCulture)
            : value is byte[] bytes ? new Dictionary<string, object> { ["$bytes"] = Convert.ToBase64String(bytes) }
            : value;

        private static void WriteElements(XmlDictionaryWriter writer, object value)
        {
            if (value is IEnumerable sequence && !(value is IDictionary<string, object>))
            {
                writer.WriteAttributeString("type", "array");
                foreach (var each in sequence)
                {
                    writer.WriteStartElement(Item);
                    WriteValue(writer, each);
                    writer.WriteEndElement();
                }
                return;
            }
            writer.WriteAttributeString("type", "object");
            foreach (var member in Members(value))
            {
                writer.WriteStartElement("a", Item, Item);
                writer.WriteAttributeString(Item, member.Key);
                WriteValue(writer, member.Value);
                writer.WriteEndElement();
            }
        }
    }
}
