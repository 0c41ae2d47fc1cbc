package cases;

/**
 * What Service Bus does otherwise than the control, Artemis, and than JMS lets one expect. Cases ask
 * {@link Namespace#differs}, and assert what Service Bus documents. The table in `README.md` is made of these sentences.
 */
enum Difference {
    /** D2 of the emulator's decisions. */
    LOCKS_OUTLIVE_LINKS("Messages that a receiver holds when its link or connection ends stay locked until their lock ends:"
            + " Service Bus locks messages for a duration, not for a link"),
    PRIORITY("`JMSPriority` is carried and does not change the order of deliveries: queues of Service Bus are first in,"
            + " first out"),
    DEAD_LETTER_QUEUE("The dead-letter queue is a part of its queue, `orders/$DeadLetterQueue`; Artemis has one for all,"
            + " `DLQ`"),
    REJECTED("A message that is rejected goes to the dead-letter queue; Artemis makes it available again or drops it"),
    DEFERRED("A message that is modified as undeliverable here is deferred, and is received by its sequence number alone"),
    NO_LOCAL("`noLocal` has no effect: a connection receives what it has published itself"),
    EXPIRED("An expired message goes to the dead-letter queue of its entity where that entity says so"),
    CREATION("An attach creates a queue or topic with the idle time that the connection names, and needs the right to manage"),
    SESSIONS("`JMSXGroupID` is the session of a message, and a queue that requires sessions is received from by session"),
    CLIENT_ID("Connections may share a client identifier: `sole-connection-for-container` is not offered"),
    SUBSCRIPTION_NAMES("Subscriptions are entities by the name of the subscription and the client, `sub$client$D`"),
    HEADERS("Selectors know `JMSPriority`, `JMSDeliveryMode` and `JMSTimestamp`, which Artemis takes for unknown over AMQP"),
    NOT("`NOT price = 10` is `NOT (price = 10)`, as in SQL; Artemis reads `(NOT price) = 10`"),
    ONE_ENTITY("A transaction receives from one queue, or from the subscriptions of one topic: one that has received from another"
            + " too is not committed, and all comes again"),
    SCHEDULED("A delivery delay is a scheduled enqueue time");

    final String text;

    Difference(String text) {
        this.text = text;
    }
}
