using System;
using System.Collections.Generic;
using System.IO;

namespace ServiceBus.Testing
{
    /// <summary>
    /// The entities and settings of a namespace, with the names of the official emulator's configuration file. The emulator validates
    /// them.
    /// </summary>
    public sealed class Topology
    {
        private const string DefaultFile = "topology.json";

        private string json;

        /// <summary>Queues, each a name or a <see cref="Queue"/>.</summary>
        public IList<Queue> Queues { get; } = new List<Queue>();

        /// <summary>Topics with their subscriptions.</summary>
        public IList<Topic> Topics { get; } = new List<Topic>();

        /// <summary>The block <c>Emulator</c> of a namespace: <c>Settings = { ["Expiry"] = "on-receive" }</c>.</summary>
        public IDictionary<string, object> Settings { get; } = new Dictionary<string, object>();

        /// <summary>The configuration in a file; its path is relative to the tests' assemblies.</summary>
        public static Topology FromFile(string path) =>
            FromJson(File.ReadAllText(Path.Combine(AppContext.BaseDirectory, path)));

        /// <summary>A configuration as text.</summary>
        public static Topology FromJson(string text) => new Topology { json = text };

        /// <summary><c>topology.json</c> beside the tests' assemblies, or null.</summary>
        internal static Topology Beside() =>
            File.Exists(Path.Combine(AppContext.BaseDirectory, DefaultFile)) ? FromFile(DefaultFile) : null;

        /// <summary>The topology as JSON; without queues and topics, it has one queue, <c>queue.1</c>.</summary>
        internal string Encoded()
        {
            var queues = Queues.Count + Topics.Count > 0 ? Queues : new Queue[] { "queue.1" };
            return json ?? Json.Write(new { queues, topics = Topics, settings = Settings });
        }
    }

    /// <summary>
    /// The properties of queues, topics and subscriptions. The emulator rejects a property that the kind of entity does not have.
    /// </summary>
    public abstract class Entity
    {
        internal Entity(string name) => this["name"] = Name = name;

        /// <summary>The name.</summary>
        public string Name { get; }

        /// <summary>The duration of a message's lock.</summary>
        public TimeSpan LockDuration { set => this["LockDuration"] = value; }

        /// <summary>The number of deliveries after which a message is dead-lettered.</summary>
        public int MaxDeliveryCount { set => this["MaxDeliveryCount"] = value; }

        /// <summary>The time to live of messages that have none, and the maximum for others.</summary>
        public TimeSpan DefaultMessageTimeToLive { set => this["DefaultMessageTimeToLive"] = value; }

        /// <summary>Whether expired messages are dead-lettered.</summary>
        public bool DeadLetteringOnMessageExpiration { set => this["DeadLetteringOnMessageExpiration"] = value; }

        /// <summary>Whether a message with a known id is discarded as a duplicate.</summary>
        public bool RequiresDuplicateDetection { set => this["RequiresDuplicateDetection"] = value; }

        /// <summary>How long message ids are kept to detect duplicates.</summary>
        public TimeSpan DuplicateDetectionHistoryTimeWindow { set => this["DuplicateDetectionHistoryTimeWindow"] = value; }

        /// <summary>Whether every message must have a session.</summary>
        public bool RequiresSession { set => this["RequiresSession"] = value; }

        /// <summary>The entity to which messages are forwarded.</summary>
        public string ForwardTo { set => this["ForwardTo"] = value; }

        /// <summary>The entity to which dead-lettered messages are forwarded.</summary>
        public string ForwardDeadLetteredMessagesTo { set => this["ForwardDeadLetteredMessagesTo"] = value; }

        /// <summary>The idle time after which the entity is deleted.</summary>
        public TimeSpan AutoDeleteOnIdle { set => this["AutoDeleteOnIdle"] = value; }

        /// <summary>Any other property of the configuration, by its name: <c>["Status"] = "SendDisabled"</c>.</summary>
        public object this[string property] { set => Properties[property] = value; }

        internal Dictionary<string, object> Properties { get; } = new Dictionary<string, object>();
    }

    /// <summary>A queue: <c>new Queue("orders") { MaxDeliveryCount = 3 }</c>.</summary>
    public sealed class Queue : Entity
    {
        /// <summary>A queue with default properties.</summary>
        public Queue(string name) : base(name) { }

        /// <summary>A queue with default properties.</summary>
        public static implicit operator Queue(string name) => new Queue(name);
    }

    /// <summary>A topic: <c>new Topic("prices") { Subscriptions = { "all" } }</c>.</summary>
    public sealed class Topic : Entity
    {
        /// <summary>A topic with default properties.</summary>
        public Topic(string name) : base(name) => this["subscriptions"] = Subscriptions;

        /// <summary>Subscriptions, each a name or a <see cref="Subscription"/>.</summary>
        public IList<Subscription> Subscriptions { get; } = new List<Subscription>();
    }

    /// <summary>A subscription; without rules it receives every message.</summary>
    public sealed class Subscription : Entity
    {
        /// <summary>A subscription with default properties.</summary>
        public Subscription(string name) : base(name) => this["rules"] = Rules;

        /// <summary>The rules of the subscription.</summary>
        public IList<Rule> Rules { get; } = new List<Rule>();

        /// <summary>A subscription with default properties.</summary>
        public static implicit operator Subscription(string name) => new Subscription(name);
    }

    /// <summary>A rule: <c>new Rule("high") { Sql = "price > 10" }</c>; without a filter it matches every message.</summary>
    public sealed class Rule
    {
        private readonly string name;

        /// <summary>A rule with this name.</summary>
        public Rule(string name) => this.name = name;

        /// <summary>The SQL expression of the filter.</summary>
        public string Sql { private get; set; }

        /// <summary>The correlation filter: <c>new { Label = "order" }</c>.</summary>
        public object Correlation { private get; set; }

        /// <summary>The action, which changes the subscription's copy of the message: <c>SET tag = 'high'</c>.</summary>
        public string Action { private get; set; }

        internal object Encoded() => new { name, sql = Sql, correlation = Correlation, action = Action };
    }
}
