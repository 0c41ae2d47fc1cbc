using System;
using System.Collections.Generic;

namespace ServiceBus.Testing
{
    /// <summary>
    /// The fields of an assertion: <c>new Expected { MessageId = "o-17", Reason = TextMatch.Contains("Rejected") }</c>. The emulator
    /// rejects a field that the assertion does not have, and lists those that it has.
    /// </summary>
    public sealed class Expected
    {
        /// <summary>The id of the messages.</summary>
        public TextMatch MessageId { set => this["message_id"] = value; }

        /// <summary>The body of the messages.</summary>
        public TextMatch Body { set => this["body"] = value; }

        /// <summary>The body as JSON: <c>new { id = 17 }</c>; objects in the body may have further members.</summary>
        public object BodyJson { set => this["body_json"] = value; }

        /// <summary>The dead-letter reason.</summary>
        public TextMatch Reason { set => this["reason"] = value; }

        /// <summary>The dead-letter error description.</summary>
        public TextMatch Description { set => this["description"] = value; }

        /// <summary>The client that they were delivered to, or the entity that they were forwarded to.</summary>
        public TextMatch To { set => this["to"] = value; }

        /// <summary>The exact number; without it, at least one.</summary>
        public int Count { set => this["count"] = value; }

        /// <summary>The exact number of times.</summary>
        public int Times { set => this["times"] = value; }

        /// <summary>The minimum number, or the minimum number of times.</summary>
        public int AtLeast { set => this["at_least"] = value; }

        /// <summary>The maximum number.</summary>
        public int AtMost { set => this["at_most"] = value; }

        /// <summary>The scheduled enqueue time.</summary>
        public DateTimeOffset At { set => this["at"] = value; }

        /// <summary>The time until they are due, by the clock of the namespace.</summary>
        public TimeSpan DueIn { set => this["due_in"] = value; }

        /// <summary>The tolerance of these times; the default is 10 s.</summary>
        public TimeSpan Tolerance { set => this["tolerance"] = value; }

        /// <summary>Messages in the entity.</summary>
        public int Active { set => this["active"] = value; }

        /// <summary>Messages in the dead-letter queue.</summary>
        public int DeadLetter { set => this["dead_letter"] = value; }

        /// <summary>Messages in the transfer dead-letter queue.</summary>
        public int TransferDeadLetter { set => this["transfer_dead_letter"] = value; }

        /// <summary>Scheduled messages.</summary>
        public int Scheduled { set => this["scheduled"] = value; }

        /// <summary>Locked messages.</summary>
        public int Locked { set => this["locked"] = value; }

        /// <summary>Deferred messages.</summary>
        public int Deferred { set => this["deferred"] = value; }

        /// <summary>Messages that wait to be forwarded to another entity.</summary>
        public int Transfer { set => this["transfer"] = value; }

        /// <summary>The session.</summary>
        public string Session { set => this["session"] = value; }

        /// <summary>The bodies of the session's messages in their order.</summary>
        public IEnumerable<TextMatch> Bodies { set => this["bodies"] = value; }

        /// <summary>The state of the session as text.</summary>
        public TextMatch StateText { set => this["text"] = value; }

        /// <summary>The state of the session.</summary>
        public byte[] StateBytes { set => this["bytes"] = value; }

        /// <summary>The state of the session as JSON.</summary>
        public object StateJson { set => this["json"] = value; }

        /// <summary>Whether the session has a state.</summary>
        public bool StateSet { set => this["set"] = value; }

        /// <summary>The maximum real time that the assertion waits; the default is 5 s.</summary>
        public TimeSpan Within { set => this["within"] = value; }

        internal Dictionary<string, object> Fields { get; } = new Dictionary<string, object>();

        /// <summary>Any other field of the control API's assertions, by its name.</summary>
        public object this[string field] { set => Fields[field] = value; }
    }

    /// <summary>An exact text, or a part of a text.</summary>
    public struct TextMatch
    {
        private TextMatch(object encoded) => Encoded = encoded;

        internal object Encoded { get; }

        /// <summary>Matches a text that contains this part.</summary>
        public static TextMatch Contains(string part) => new TextMatch(new { contains = part });

        /// <summary>Exactly this text, in UTF-8.</summary>
        public static implicit operator TextMatch(byte[] text) => new TextMatch((object)text);

        /// <summary>Exactly this text.</summary>
        public static implicit operator TextMatch(string text) => new TextMatch(text);
    }
}
