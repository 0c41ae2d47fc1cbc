using System;
using System.Collections.Generic;
using System.Collections.ObjectModel;
using System.Globalization;
using System.Linq;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>What happened, oldest first; as text it has a line for each event.</summary>
    public sealed class Timeline : ReadOnlyCollection<TimelineEvent>
    {
        internal Timeline(XElement answer) : base(answer.Items("events").Select(each => new TimelineEvent(each)).ToArray()) { }

        /// <summary>The kind of each event: <c>sent</c>, <c>delivered</c>, <c>completed</c>.</summary>
        public IEnumerable<string> Kinds => this.Select(each => each.Kind);

        /// <inheritdoc/>
        public override string ToString() => Count == 0 ? "  nothing happened" : string.Join("\n", this);
    }

    /// <summary>Something that happened.</summary>
    public sealed class TimelineEvent
    {
        private readonly XElement json;

        internal TimelineEvent(XElement json) => this.json = json;

        /// <summary>When, by the clock of the namespace.</summary>
        public DateTimeOffset At => json.Time("at").Value;

        /// <summary>When, since the namespace began.</summary>
        public TimeSpan Offset => TimeSpan.FromSeconds(double.Parse(json.Text("offset"), CultureInfo.InvariantCulture));

        /// <summary>What: <c>sent</c>, <c>delivered</c>, <c>dead-lettered</c> and others.</summary>
        public string Kind => json.Text("kind");

        /// <summary>Where.</summary>
        public string Entity => json.Text("entity");

        /// <summary>The number of the message.</summary>
        public long? SequenceNumber => json.OptionalNumber("sequence_number");

        /// <summary>The id of the message.</summary>
        public string MessageId => json.Text("message_id");

        /// <summary>The session of the message.</summary>
        public string Session => json.Text("session");

        /// <summary>By which client.</summary>
        public string Client => json.Text("client");

        /// <summary>How often the message was delivered.</summary>
        public long? DeliveryCount => json.OptionalNumber("delivery_count");

        /// <summary>How long the message is locked.</summary>
        public DateTimeOffset? LockedUntil => json.Time("locked_until");

        /// <summary>Why.</summary>
        public string Reason => json.Text("reason");

        /// <summary>More of it.</summary>
        public string Detail => json.Text("detail");

        /// <inheritdoc/>
        public override string ToString() => json.Text("line");
    }

    /// <summary>How many messages an entity has.</summary>
    public sealed class MessageCounts
    {
        private readonly XElement json;

        internal MessageCounts(XElement json) => this.json = json;

        /// <summary>As the service counts: locked and deferred ones are part of it.</summary>
        public long Active => json.Number("active");

        /// <summary>In the dead-letter queue.</summary>
        public long DeadLetter => json.Number("dead_letter");

        /// <summary>In the transfer dead-letter queue.</summary>
        public long TransferDeadLetter => json.Number("transfer_dead_letter");

        /// <summary>Scheduled for later.</summary>
        public long Scheduled => json.Number("scheduled");

        /// <summary>On their way to another entity.</summary>
        public long Transfer => json.Number("transfer");

        /// <summary>Locked by a receiver.</summary>
        public long Locked => json.Number("locked");

        /// <summary>Deferred by a receiver.</summary>
        public long Deferred => json.Number("deferred");

        /// <summary>What all of them take.</summary>
        public long SizeBytes => json.Number("size_bytes");
    }

    /// <summary>A session of a queue or subscription.</summary>
    public sealed class Session
    {
        private readonly XElement json;

        internal Session(XElement json) => this.json = json;

        /// <summary>Its id.</summary>
        public string Id => json.Text("id");

        /// <summary>How many messages it has.</summary>
        public long Active => json.Number("active");

        /// <summary>How many of them are locked.</summary>
        public long Locked => json.Number("locked");

        /// <summary>How many of them are deferred.</summary>
        public long Deferred => json.Number("deferred");

        /// <summary>Which client holds it, if any.</summary>
        public string Holder => json.Text("holder");

        /// <summary>Until when.</summary>
        public DateTimeOffset? LockedUntil => json.Time("locked_until");

        /// <summary>What is kept with it, if anything.</summary>
        public byte[] State => json.Text("state") == null ? null : Convert.FromBase64String(json.Text("state"));
    }

    /// <summary>What a rule says of a message.</summary>
    public sealed class RuleExplanation
    {
        private readonly XElement json;

        internal RuleExplanation(XElement json) => this.json = json;

        /// <summary>The name of the rule.</summary>
        public string Rule => json.Text("rule");

        /// <summary>Whether it selects the message.</summary>
        public bool Matched => json.Text("matched") == "true";

        /// <summary>The first part of the filter that was not true.</summary>
        public string Expression => json.Element("reason")?.Text("expression");

        /// <summary>What that part was instead.</summary>
        public string Truth => json.Element("reason")?.Text("truth");

        /// <summary>Why it cannot be evaluated.</summary>
        public string Error => json.Text("error");
    }
}
