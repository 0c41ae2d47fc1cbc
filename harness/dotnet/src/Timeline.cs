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
        private const int ShownEvents = 200;

        internal Timeline(XElement answer)
            : base(answer.Items("events").Select(each => new TimelineEvent(each)).ToArray())
        {
        }

        /// <summary>The kind of each event: <c>sent</c>, <c>delivered</c>, <c>completed</c>.</summary>
        public IEnumerable<string> Kinds => this.Select(each => each.Kind);

        /// <inheritdoc/>
        public override string ToString()
        {
            var older = Math.Max(0, Count - ShownEvents);
            var lines = this.Skip(older).Select(each => each.ToString());
            var all = older > 0 ? new[] { $"  … {older} older events" }.Concat(lines) : lines;
            return Count == 0 ? "  nothing happened" : string.Join("\n", all);
        }
    }

    /// <summary>Something that happened.</summary>
    public sealed class TimelineEvent
    {
        private readonly string line;

        internal TimelineEvent(XElement json)
        {
            line = json.Text("line");
            At = json.Time("at").Value;
            Offset = TimeSpan.FromSeconds(double.Parse(json.Text("offset"), CultureInfo.InvariantCulture));
            Kind = json.Text("kind");
            Entity = json.Text("entity");
            SequenceNumber = json.OptionalNumber("sequence_number");
            MessageId = json.Text("message_id");
            Session = json.Text("session");
            Client = json.Text("client");
            DeliveryCount = json.OptionalNumber("delivery_count");
            LockedUntil = json.Time("locked_until");
            Reason = json.Text("reason");
            Detail = json.Text("detail");
        }

        /// <summary>When, by the clock of the namespace.</summary>
        public DateTimeOffset At { get; }

        /// <summary>When, since the namespace began.</summary>
        public TimeSpan Offset { get; }

        /// <summary>What: <c>sent</c>, <c>delivered</c>, <c>dead-lettered</c> and others.</summary>
        public string Kind { get; }

        /// <summary>Where.</summary>
        public string Entity { get; }

        /// <summary>The number of the message.</summary>
        public long? SequenceNumber { get; }

        /// <summary>The id of the message.</summary>
        public string MessageId { get; }

        /// <summary>The session of the message.</summary>
        public string Session { get; }

        /// <summary>By which client.</summary>
        public string Client { get; }

        /// <summary>How often the message was delivered.</summary>
        public long? DeliveryCount { get; }

        /// <summary>How long the message is locked.</summary>
        public DateTimeOffset? LockedUntil { get; }

        /// <summary>Why.</summary>
        public string Reason { get; }

        /// <summary>More of it.</summary>
        public string Detail { get; }

        /// <inheritdoc/>
        public override string ToString() => line;
    }

    /// <summary>How many messages an entity has.</summary>
    public sealed class MessageCounts
    {
        internal MessageCounts(XElement json)
        {
            Active = json.Number("active");
            DeadLetter = json.Number("dead_letter");
            TransferDeadLetter = json.Number("transfer_dead_letter");
            Scheduled = json.Number("scheduled");
            Transfer = json.Number("transfer");
            Locked = json.Number("locked");
            Deferred = json.Number("deferred");
            SizeBytes = json.Number("size_bytes");
        }

        /// <summary>As the service counts: locked and deferred ones are part of it.</summary>
        public long Active { get; }

        /// <summary>In the dead-letter queue.</summary>
        public long DeadLetter { get; }

        /// <summary>In the transfer dead-letter queue.</summary>
        public long TransferDeadLetter { get; }

        /// <summary>Scheduled for later.</summary>
        public long Scheduled { get; }

        /// <summary>On their way to another entity.</summary>
        public long Transfer { get; }

        /// <summary>Locked by a receiver.</summary>
        public long Locked { get; }

        /// <summary>Deferred by a receiver.</summary>
        public long Deferred { get; }

        /// <summary>What all of them take.</summary>
        public long SizeBytes { get; }
    }

    /// <summary>A session of a queue or subscription.</summary>
    public sealed class Session
    {
        internal Session(XElement json)
        {
            Id = json.Text("id");
            Active = json.Number("active");
            Locked = json.Number("locked");
            Deferred = json.Number("deferred");
            Holder = json.Text("holder");
            LockedUntil = json.Time("locked_until");
            var state = json.Text("state");
            State = state == null ? null : Convert.FromBase64String(state);
        }

        /// <summary>Its id.</summary>
        public string Id { get; }

        /// <summary>How many messages it has.</summary>
        public long Active { get; }

        /// <summary>How many of them are locked.</summary>
        public long Locked { get; }

        /// <summary>How many of them are deferred.</summary>
        public long Deferred { get; }

        /// <summary>Which client holds it, if any.</summary>
        public string Holder { get; }

        /// <summary>Until when.</summary>
        public DateTimeOffset? LockedUntil { get; }

        /// <summary>What is kept with it, if anything.</summary>
        public byte[] State { get; }
    }

    /// <summary>What a rule says of a message.</summary>
    public sealed class RuleExplanation
    {
        internal RuleExplanation(XElement json)
        {
            Rule = json.Text("rule");
            Matched = json.Text("matched") == "true";
            Expression = json.Element("reason")?.Text("expression");
            Truth = json.Element("reason")?.Text("truth");
            Error = json.Text("error");
        }

        /// <summary>The name of the rule.</summary>
        public string Rule { get; }

        /// <summary>Whether it selects the message.</summary>
        public bool Matched { get; }

        /// <summary>The first part of the filter that was not true.</summary>
        public string Expression { get; }

        /// <summary>What that part was instead.</summary>
        public string Truth { get; }

        /// <summary>Why it cannot be evaluated.</summary>
        public string Error { get; }
    }
}
