package cases;

/**
 * Differences of Service Bus from the control, Artemis, and from what JMS suggests. Cases ask
 * {@link Namespace#differs}, and assert what Service Bus documents. The table in `README.md` has these sentences.
 */
enum Difference {
    /** D2 of the emulator's decisions. */
    LOCKS_OUTLIVE_LINKS("Messages that a receiver holds when its link or connection ends stay locked until their lock ends:"
            + " Service Bus locks messages for a duration, not for a link"),
    PRIORITY("`JMSPriority` is delivered and does not change the order of deliveries: queues of Service Bus are first in,"
            + " first out"),
    DEAD_LETTER_QUEUE("The dead-letter queue is a part of its queue, `orders/$DeadLetterQueue`; Artemis has one for all,"
            + " `DLQ`"),
    REJECTED("A rejected message is dead-lettered; Artemis makes it available again or drops it"),
    DEFERRED("A message that is modified as undeliverable-here is deferred, and received only by its sequence number"),
    NO_LOCAL("`noLocal` has no effect: a connection receives messages that it has published itself"),
    EXPIRED("An expired message is dead-lettered if its entity is configured so"),
    CREATION("An attach creates a queue or topic with the idle time that the connection names, and needs the right to manage"),
    SESSIONS("`JMSXGroupID` is the session of a message, and a queue that requires sessions is received from by session"),
    CLIENT_ID("Connections may share a client identifier: `sole-connection-for-container` is not offered"),
    SUBSCRIPTION_NAMES("Subscriptions are entities by the name of the subscription and the client, `sub$client$D`"),
    HEADERS("Selectors know `JMSPriority`, `JMSDeliveryMode` and `JMSTimestamp`, which Artemis treats as unknown over AMQP"),
    NOT("`NOT price = 10` is `NOT (price = 10)`, as in SQL; Artemis reads `(NOT price) = 10`"),
    ONE_ENTITY("A transaction receives from one queue, or from the subscriptions of one topic: one that also receives from others"
            + " is not committed, and all its messages are redelivered"),
    SCHEDULED("A delivery delay is a scheduled enqueue time");

    final String text;

    Difference(String text) {
        this.text = text;
    }
}
