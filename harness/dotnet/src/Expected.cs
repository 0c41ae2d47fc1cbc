using System;
using System.Collections.Generic;
using System.Linq;

namespace ServiceBus.Testing
{
    /// <summary>
    /// What an assertion asks for: <c>new Expected { MessageId = "o-17", Reason = TextMatch.Contains("Rejected") }</c>. What it does not
    /// take is refused by the emulator, with what it takes.
    /// </summary>
    public sealed class Expected
    {
        /// <summary>The id of the messages that are meant.</summary>
        public TextMatch MessageId { set => this["message_id"] = value; }

        /// <summary>The body of the messages that are meant.</summary>
        public TextMatch Body { set => this["body"] = value; }

        /// <summary>The body as JSON: <c>new { id = 17 }</c>; objects of the message may have more than that.</summary>
        public object BodyJson { set => this["body_json"] = value; }

        /// <summary>Why they were dead-lettered.</summary>
        public TextMatch Reason { set => this["reason"] = value; }

        /// <summary>The description of that.</summary>
        public TextMatch Description { set => this["description"] = value; }

        /// <summary>The client that they were delivered to, or the entity that they were forwarded to.</summary>
        public TextMatch To { set => this["to"] = value; }

        /// <summary>How many, exactly; one is enough unless this is said.</summary>
        public int Count { set => this["count"] = value; }

        /// <summary>How often, exactly.</summary>
        public int Times { set => this["times"] = value; }

        /// <summary>How many or how often at least.</summary>
        public int AtLeast { set => this["at_least"] = value; }

        /// <summary>How many at most.</summary>
        public int AtMost { set => this["at_most"] = value; }

        /// <summary>For when they are scheduled.</summary>
        public DateTimeOffset At { set => this["at"] = value; }

        /// <summary>In how much time of the namespace's clock they are due.</summary>
        public TimeSpan DueIn { set => this["due_in"] = value; }

        /// <summary>How far off that may be; ten seconds unless it is said.</summary>
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

        /// <summary>Messages on their way to another entity.</summary>
        public int Transfer { set => this["transfer"] = value; }

        /// <summary>The session.</summary>
        public string Session { set => this["session"] = value; }

        /// <summary>The bodies of the session's messages in their order.</summary>
        public IEnumerable<TextMatch> Bodies { set => this["bodies"] = value.Select(each => each.Encoded).ToArray(); }

        /// <summary>The state of the session as text.</summary>
        public TextMatch StateText { set => this["text"] = value; }

        /// <summary>The state of the session.</summary>
        public byte[] StateBytes { set => this["bytes"] = value; }

        /// <summary>The state of the session as JSON.</summary>
        public object StateJson { set => this["json"] = value; }

        /// <summary>Whether the session has a state.</summary>
        public bool StateSet { set => this["set"] = value; }

        /// <summary>For how much real time the assertion waits; 5 s unless it is said.</summary>
        public TimeSpan Within { set => this["within"] = value; }

        internal Dictionary<string, object> Fields { get; } = new Dictionary<string, object>();

        /// <summary>Any other field of the control API's assertions, by its name.</summary>
        public object this[string field]
        {
            set => Fields[field] = value is TextMatch text ? text.Encoded : value;
        }
    }

    /// <summary>A text that is compared exactly, or of which a part is known.</summary>
    public struct TextMatch
    {
        private TextMatch(object encoded) => Encoded = encoded;

        internal object Encoded { get; }

        /// <summary>A text that has this in it.</summary>
        public static TextMatch Contains(string part) => new TextMatch(new { contains = part });

        /// <summary>Exactly this text, in UTF-8.</summary>
        public static implicit operator TextMatch(byte[] text) => new TextMatch((object)text);

        /// <summary>Exactly this text.</summary>
        public static implicit operator TextMatch(string text) => new TextMatch(text);
    }
}
