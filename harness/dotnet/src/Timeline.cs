using System;
using System.Collections.Generic;
using System.Collections.ObjectModel;
using System.Globalization;
using System.Linq;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>The events of a namespace, oldest first; as text it has a line for each event.</summary>
    public sealed class Timeline : ReadOnlyCollection<TimelineEvent>
    {
        internal Timeline(XElement answer) : base(answer.Items("events").Select(each => new TimelineEvent(each)).ToArray()) { }

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
        public DateTimeOffset At => json.Time("at").Value;

        /// <summary>The time since the namespace was created.</summary>
        public TimeSpan Offset => TimeSpan.FromSeconds(double.Parse(json.Text("offset"), CultureInfo.InvariantCulture));

        /// <summary>The kind: <c>sent</c>, <c>delivered</c>, <c>dead-lettered</c> and others.</summary>
        public string Kind => json.Text("kind");

        /// <summary>The entity.</summary>
        public string Entity => json.Text("entity");

        /// <summary>The sequence number of the message.</summary>
        public long? SequenceNumber => json.OptionalNumber("sequence_number");

        /// <summary>The id of the message.</summary>
        public string MessageId => json.Text("message_id");

        /// <summary>The session of the message.</summary>
        public string Session => json.Text("session");

        /// <summary>The client that caused the event.</summary>
        public string Client => json.Text("client");

        /// <summary>The delivery count of the message.</summary>
        public long? DeliveryCount => json.OptionalNumber("delivery_count");

        /// <summary>The end of the message's lock.</summary>
        public DateTimeOffset? LockedUntil => json.Time("locked_until");

        /// <summary>The reason.</summary>
        public string Reason => json.Text("reason");

        /// <summary>Further details.</summary>
        public string Detail => json.Text("detail");

        /// <inheritdoc/>
        public override string ToString() => json.Text("line");
    }

    /// <summary>The numbers of messages of an entity.</summary>
    public sealed class MessageCounts
    {
        private readonly XElement json;

        internal MessageCounts(XElement json) => this.json = json;

        /// <summary>Active messages as Service Bus counts them, with locked and deferred ones.</summary>
        public long Active => json.Number("active");

        /// <summary>Messages in the dead-letter queue.</summary>
        public long DeadLetter => json.Number("dead_letter");

        /// <summary>Messages in the transfer dead-letter queue.</summary>
        public long TransferDeadLetter => json.Number("transfer_dead_letter");

        /// <summary>Scheduled messages.</summary>
        public long Scheduled => json.Number("scheduled");

        /// <summary>Messages that wait to be forwarded to another entity.</summary>
        public long Transfer => json.Number("transfer");

        /// <summary>Locked messages.</summary>
        public long Locked => json.Number("locked");

        /// <summary>Deferred messages.</summary>
        public long Deferred => json.Number("deferred");

        /// <summary>The size of all messages.</summary>
        public long SizeBytes => json.Number("size_bytes");
    }

    /// <summary>A session of a queue or subscription.</summary>
    public sealed class Session
    {
        private readonly XElement json;

        internal Session(XElement json) => this.json = json;

        /// <summary>The session id.</summary>
        public string Id => json.Text("id");

        /// <summary>The number of its active messages.</summary>
        public long Active => json.Number("active");

        /// <summary>The number of its locked messages.</summary>
        public long Locked => json.Number("locked");

        /// <summary>The number of its deferred messages.</summary>
        public long Deferred => json.Number("deferred");

        /// <summary>The client that has locked the session, or null.</summary>
        public string Holder => json.Text("holder");

        /// <summary>The end of the session's lock, or null.</summary>
        public DateTimeOffset? LockedUntil => json.Time("locked_until");

        /// <summary>The session state, or null.</summary>
        public byte[] State => json.Text("state") == null ? null : Convert.FromBase64String(json.Text("state"));
    }

    /// <summary>How a rule evaluates a message.</summary>
    public sealed class RuleExplanation
    {
        private readonly XElement json;

        internal RuleExplanation(XElement json) => this.json = json;

        /// <summary>The name of the rule.</summary>
        public string Rule => json.Text("rule");

        /// <summary>Whether the rule matches the message.</summary>
        public bool Matched => json.Text("matched") == "true";

        /// <summary>The first part of the filter that was not true.</summary>
        public string Expression => json.Element("reason")?.Text("expression");

        /// <summary>The value of that part.</summary>
        public string Truth => json.Element("reason")?.Text("truth");

        /// <summary>The error by which the evaluation failed, or null.</summary>
        public string Error => json.Text("error");
    }
}
