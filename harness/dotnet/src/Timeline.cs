using System;
using System.Collections.Generic;
using System.Collections.ObjectModel;
using System.Linq;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>The events of a namespace, oldest first; as text it has a line for each event.</summary>
    public sealed class Timeline : ReadOnlyCollection<TimelineEvent>
    {
        internal Timeline(XElement answer) : base(answer.Element("events").Elements().Select(each => new TimelineEvent(each)).ToArray()) { }

        /// <summary>The kind of each event: <c>sent</c>, <c>delivered</c>, <c>completed</c>.</summary>
        public IEnumerable<string> Kinds => this.Select(each => each.Kind);

        /// <inheritdoc/>
        public override string ToString() => Count == 0 ? "  nothing happened" : string.Join("\n", this);
    }

    /// <summary>An event of the timeline.</summary>
    public sealed class TimelineEvent
    {
        private readonly XElement json;

        internal TimelineEvent(XElement json) => this.json = json;

        /// <summary>The time of the event, by the clock of the namespace.</summary>
        public DateTimeOffset At => (DateTimeOffset)json.Element("at");

        /// <summary>The time since the namespace was created.</summary>
        public TimeSpan Offset => TimeSpan.FromSeconds((double)json.Element("offset"));

        /// <summary>The kind: <c>sent</c>, <c>delivered</c>, <c>dead-lettered</c> and others.</summary>
        public string Kind => (string)json.Element("kind");

        /// <summary>The entity.</summary>
        public string Entity => (string)json.Element("entity");

        /// <summary>The sequence number of the message.</summary>
        public long? SequenceNumber => (long?)json.Element("sequence_number");

        /// <summary>The id of the message.</summary>
        public string MessageId => (string)json.Element("message_id");

        /// <summary>The session of the message.</summary>
        public string Session => (string)json.Element("session");

        /// <summary>The client that caused the event.</summary>
        public string Client => (string)json.Element("client");

        /// <summary>The delivery count of the message.</summary>
        public long? DeliveryCount => (long?)json.Element("delivery_count");

        /// <summary>The end of the message's lock.</summary>
        public DateTimeOffset? LockedUntil => (DateTimeOffset?)json.Element("locked_until");

        /// <summary>The reason.</summary>
        public string Reason => (string)json.Element("reason");

        /// <summary>Further details.</summary>
        public string Detail => (string)json.Element("detail");

        /// <inheritdoc/>
        public override string ToString() => (string)json.Element("line");
    }

    /// <summary>The numbers of messages of an entity.</summary>
    public sealed class MessageCounts
    {
        private readonly XElement json;

        internal MessageCounts(XElement json) => this.json = json;

        /// <summary>Active messages as Service Bus counts them, with locked and deferred ones.</summary>
        public long Active => (long)json.Element("active");

        /// <summary>Messages in the dead-letter queue.</summary>
        public long DeadLetter => (long)json.Element("dead_letter");

        /// <summary>Messages in the transfer dead-letter queue.</summary>
        public long TransferDeadLetter => (long)json.Element("transfer_dead_letter");

        /// <summary>Scheduled messages.</summary>
        public long Scheduled => (long)json.Element("scheduled");

        /// <summary>Messages that wait to be forwarded to another entity.</summary>
        public long Transfer => (long)json.Element("transfer");

        /// <summary>Locked messages.</summary>
        public long Locked => (long)json.Element("locked");

        /// <summary>Deferred messages.</summary>
        public long Deferred => (long)json.Element("deferred");

        /// <summary>The size of all messages.</summary>
        public long SizeBytes => (long)json.Element("size_bytes");
    }

    /// <summary>A session of a queue or subscription.</summary>
    public sealed class Session
    {
        private readonly XElement json;

        internal Session(XElement json) => this.json = json;

        /// <summary>The session id.</summary>
        public string Id => (string)json.Element("id");

        /// <summary>The number of its active messages.</summary>
        public long Active => (long)json.Element("active");

        /// <summary>The number of its locked messages.</summary>
        public long Locked => (long)json.Element("locked");

        /// <summary>The number of its deferred messages.</summary>
        public long Deferred => (long)json.Element("deferred");

        /// <summary>The client that has locked the session, or null.</summary>
        public string Holder => (string)json.Element("holder");

        /// <summary>The end of the session's lock, or null.</summary>
        public DateTimeOffset? LockedUntil => (DateTimeOffset?)json.Element("locked_until");

        /// <summary>The session state, or null.</summary>
        public byte[] State => json.Element("state") == null ? null : Convert.FromBase64String(json.Element("state").Value);
    }

    /// <summary>How a rule evaluates a message.</summary>
    public sealed class RuleExplanation
    {
        private readonly XElement json;

        internal RuleExplanation(XElement json) => this.json = json;

        /// <summary>The name of the rule.</summary>
        public string Rule => (string)json.Element("rule");

        /// <summary>Whether the rule matches the message.</summary>
        public bool Matched => (bool)json.Element("matched");

        /// <summary>The first part of the filter that was not true.</summary>
        public string Expression => (string)json.Element("reason")?.Element("expression");

        /// <summary>The value of that part.</summary>
        public string Truth => (string)json.Element("reason")?.Element("truth");

        /// <summary>The error by which the evaluation failed, or null.</summary>
        public string Error => (string)json.Element("error");
    }
}
