"""Topics: subscriptions receive the messages that their rules match.

Source: service-bus-queues-topics-subscriptions, topic-filters, service-bus-auto-forwarding,
duplicate-detection, service-bus-dead-letter-queues. `prices` has the subscriptions `all`,
`cheap` (price < 10) and `eu` (subject and region are equal); `alarms` has `marked`, which has two rules
without an action and one with; `jobs` has `limited`, of two deliveries; `calls` finds duplicates and
has `to-orders` and `complaints`, which forward; the rules of `checks` can fail. The SDK cannot manage
rules over AMQP, so that they are of the configuration alone.
"""

import datetime

from azure.servicebus import ServiceBusMessage, ServiceBusMessageState, ServiceBusReceiveMode, ServiceBusSubQueue
from azure.servicebus.exceptions import MessageNotFoundError, ServiceBusError

from bus import body, bodies, expect, expect_counts, expect_error, expect_missing, later, receive, receive_nothing


async def fans_out(bus):
    """Every subscription that matches a message has its own copy, with its own sequence number."""
    await bus.publish("prices", price("a", 12))
    await bus.publish("prices", price("b", 8, message_id="p-17", correlation_id="c", subject="changed"))
    await expect_counts(bus, "prices/Subscriptions/all", active=2)
    await expect_counts(bus, "prices/Subscriptions/cheap", active=1)
    await expect_counts(bus, "prices/Subscriptions/eu", active=0)
    for subscription, number in [("all", 2), ("cheap", 1)]:
        async with bus.subscriber("prices", subscription) as receiver:
            *others, message = await receive(receiver, number)
            expect("body", body(message), b"b")
            expect("message id", message.message_id, "p-17")
            expect("correlation id", message.correlation_id, "c")
            expect("subject", message.subject, "changed")
            expect("application properties", message.application_properties, {b"price": 8})
            expect("delivery count", message.delivery_count, 0)
            expect("sequence number", message.sequence_number, number)
            expect("number in the topic", message.enqueued_sequence_number, 2)
            for each in [*others, message]:
                await receiver.complete_message(each)
            await receive_nothing(receiver)
    await expect_counts(bus, "prices/Subscriptions/all", active=0, locked=0)


async def filtered(bus):
    """The messages of a batch are matched separately; values are compared by type, texts by case."""
    messages = [
        price("text", "5"),
        price("float", 9.5),
        ServiceBusMessage("none"),
        price("eu", 20, subject="changed", region="eu"),
        price("EU", 20, subject="changed", region="EU"),
        price("new", 10, subject="new", region="eu"),
    ]
    await bus.publish("prices", messages)
    for subscription, expected in [
        ("all", [b"text", b"float", b"none", b"eu", b"EU", b"new"]),
        ("cheap", [b"float"]),
        ("eu", [b"eu"]),
    ]:
        mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
        async with bus.subscriber("prices", subscription, receive_mode=mode) as receiver:
            expect(f"received from {subscription}", bodies(await receive(receiver, len(expected))), expected)
            await receive_nothing(receiver)


async def actions(bus):
    """Rules without an action create one copy together; one with an action creates another, changed copy."""
    message = ServiceBusMessage("fire", subject="new", application_properties={"level": 2, "secret": "s", "kept": "k"})
    await bus.publish("alarms", message, ServiceBusMessage("smoke", application_properties={"level": 1}))
    async with bus.subscriber("alarms", "marked") as receiver:
        messages = await receive(receiver, 3)
        for each in messages:
            await receiver.complete_message(each)
    seen = {}
    for message in messages:
        properties = message.application_properties
        rule = properties.get(b"RuleName")
        seen[(body(message), rule)] = (message.subject, properties)
    expected = {
        (b"fire", None): ("new", {b"level": 2, b"secret": b"s", b"kept": b"k"}),
        (b"fire", b"raised"): (
            "raised",
            {b"level": 3, b"kept": b"k", b"seen": True, b"RuleName": b"raised"},
        ),
        (b"smoke", None): (None, {b"level": 1}),
    }
    expect("copies", seen, expected)


async def settled(bus):
    """A subscription's messages are settled like a queue's, independently of other copies."""
    await bus.publish("prices", price("a", 1), price("b", 2), price("c", 3))
    async with bus.subscriber("prices", "all") as receiver:
        first, second, third = await receive(receiver, 3)
        await receiver.renew_message_lock(first)
        await receiver.complete_message(first)
        await receiver.defer_message(second)
        await receiver.abandon_message(third)
        await expect_counts(bus, "prices/Subscriptions/all", active=2, deferred=1, locked=0)
        (again,) = await receive(receiver)
        expect("abandoned", (body(again), again.delivery_count), (b"c", 1))
        await receiver.complete_message(again)
        (peeked,) = await receiver.peek_messages(10, sequence_number=1)
        expect("peeked", (body(peeked), peeked.state), (b"b", ServiceBusMessageState.DEFERRED))
        (deferred,) = await receiver.receive_deferred_messages(second.sequence_number)
        await receiver.complete_message(deferred)
    await expect_counts(bus, "prices/Subscriptions/all", active=0, deferred=0, locked=0)
    await expect_counts(bus, "prices/Subscriptions/cheap", active=3)


async def dead_letters(bus):
    """Every subscription has a dead-letter queue, for rejected messages, the delivery limit and expired locks."""
    await bus.publish("jobs", *[ServiceBusMessage(text) for text in ["bad", "poison", "stuck"]])
    async with bus.subscriber("jobs", "limited") as receiver:
        bad, poison, stuck = await receive(receiver, 3)
        await receiver.dead_letter_message(bad, reason="Rejected", error_description="no total")
        await receiver.abandon_message(poison)
        (poison,) = await receive(receiver)
        await receiver.abandon_message(poison)
        await bus.advance(61)
        (stuck,) = await receive(receiver)
        expect("delivered again", (body(stuck), stuck.delivery_count), (b"stuck", 1))
        await bus.advance(61)
        await receive_nothing(receiver)
    await expect_counts(bus, "jobs/Subscriptions/limited", active=0, dead_letter=3)
    async with bus.subscriber("jobs", "limited", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        messages = await receive(receiver, 3)
        expect(
            "reasons",
            [(body(message), message.dead_letter_reason) for message in messages],
            [(b"bad", "Rejected"), (b"poison", "MaxDeliveryCountExceeded"), (b"stuck", "MaxDeliveryCountExceeded")],
        )
        expect("description", messages[0].dead_letter_error_description, "no total")
        for message in messages:
            await receiver.complete_message(message)
    await expect_counts(bus, "jobs/Subscriptions/limited", dead_letter=0)


async def scheduled(bus):
    """A topic keeps scheduled messages; rules evaluate them when they are due, and cancelled ones never."""
    at = later(300)
    await bus.publish("prices", price("annotated", 1, scheduled_enqueue_time_utc=at))
    async with bus.publisher("prices") as sender:
        numbers = await sender.schedule_messages([price("asked", 20), price("cancelled", 2)], at)
        await sender.cancel_scheduled_messages(numbers[1])
        async with bus.trying_once() as bus_once, bus_once.publisher("prices") as once:
            with expect_error(MessageNotFoundError, "com.microsoft:message-not-found"):
                await once.cancel_scheduled_messages(numbers[1])
    await expect_counts(bus, "prices", scheduled=2)
    await expect_counts(bus, "prices/Subscriptions/all", active=0, scheduled=0)
    await bus.advance(301)
    await expect_counts(bus, "prices", scheduled=0)
    for subscription, expected in [("all", [b"annotated", b"asked"]), ("cheap", [b"annotated"])]:
        async with bus.subscriber("prices", subscription) as receiver:
            messages = await receive(receiver, len(expected))
            expect(f"received from {subscription}", bodies(messages), expected)
            expect("state", messages[0].state, ServiceBusMessageState.SCHEDULED)
            for message in messages:
                await receiver.complete_message(message)


async def expires(bus):
    """The time to live applies in every subscription separately."""
    await bus.publish("prices", price("old", 1, time_to_live=datetime.timedelta(seconds=30)))
    async with bus.subscriber("prices", "all") as receiver:
        (message,) = await receive(receiver)
        await receiver.complete_message(message)
    await bus.advance(31)
    async with bus.subscriber("prices", "cheap") as receiver:
        await receive_nothing(receiver)
    await expect_counts(bus, "prices/Subscriptions/cheap", active=0, dead_letter=0)


async def expires_by_default(bus):
    """A subscription's own time to live applies, and its dead-lettered messages have that reason."""
    await bus.publish("checks", ServiceBusMessage("old"))
    await bus.advance(301)
    async with bus.subscriber("checks", "fleeting", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        (message,) = await receive(receiver)
        expect("reason", message.dead_letter_reason, "TTLExpiredException")
        await receiver.complete_message(message)


async def evaluation_errors(bus):
    """A message whose filter fails is dead-lettered by a subscription configured so; no other subscription gets it."""
    await bus.publish("checks", *[ServiceBusMessage(str(n), application_properties={"parts": n}) for n in [0, 5]])
    for subscription in ["strict", "lenient"]:
        async with bus.subscriber("checks", subscription) as receiver:
            (message,) = await receive(receiver)
            expect("body", body(message), b"5")
            await receiver.complete_message(message)
            await receive_nothing(receiver)
    await expect_counts(bus, "checks/Subscriptions/lenient", dead_letter=0)
    async with bus.subscriber("checks", "strict", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        (message,) = await receive(receiver)
        expect("dead letter", (body(message), message.dead_letter_reason), (b"0", "FilterException"))
        await receiver.complete_message(message)


async def forwards(bus):
    """A subscription forwards like a queue: messages and dead-lettered messages to different queues."""
    await bus.publish("calls", ServiceBusMessage("call", message_id="c-1", application_properties={"n": 1}))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        expect("message", (body(message), message.message_id), (b"call", "c-1"))
        expect("application properties", message.application_properties, {b"n": 1})
        expect("source of a message that is not a dead letter", message.dead_letter_source, None)
        await receiver.complete_message(message)
    async with bus.subscriber("calls", "complaints") as receiver:
        (message,) = await receive(receiver)
        await receiver.abandon_message(message)
    async with bus.receiver("failures") as receiver:
        (message,) = await receive(receiver)
        expect("source", message.dead_letter_source, "calls/Subscriptions/complaints")
        expect("reason", message.dead_letter_reason, "MaxDeliveryCountExceeded")
        await receiver.complete_message(message)
    async with bus.trying_once() as once:
        with expect_error(ServiceBusError, "amqp:not-allowed"):
            await once.subscriber("calls", "to-orders").receive_messages(1, max_wait_time=30)


async def duplicates(bus):
    """A topic drops a duplicate message for all its subscriptions."""
    await bus.publish("calls", *[ServiceBusMessage(text, message_id="c-1") for text in ["first", "again"]])
    await bus.advance(301)
    await bus.publish("calls", ServiceBusMessage("late", message_id="c-1"))
    async with bus.subscriber("calls", "complaints") as receiver:
        messages = await receive(receiver, 2)
        expect("bodies", bodies(messages), [b"first", b"late"])
        for message in messages:
            await receiver.complete_message(message)
        await receive_nothing(receiver)


async def addresses(bus):
    """Names are case-insensitive."""
    await bus.publish("PRICES", price("a", 1))
    async with bus.receiver("Prices/subscriptions/ALL") as receiver:
        (message,) = await receive(receiver)
        await receiver.complete_message(message)
    await expect_counts(bus, "prices/Subscriptions/all", active=0)


async def wrong_direction(bus):
    """Clients cannot send to a subscription or receive from a topic."""
    async with bus.trying_once() as once:
        with expect_error(ServiceBusError, "amqp:not-allowed"):
            await once.send("prices/Subscriptions/all", ServiceBusMessage("lost"))
        with expect_error(ServiceBusError, "amqp:not-allowed"):
            await once.receiver("prices").receive_messages(1, max_wait_time=30)
        with expect_error(ServiceBusError, "amqp:not-allowed"):
            await once.dead_letters("prices").receive_messages(1, max_wait_time=30)
    await expect_counts(bus, "prices/Subscriptions/all", active=0)


async def not_found(bus):
    """A topic or subscription that does not exist, and a subscription of a queue."""
    async with bus.trying_once() as once:
        with expect_missing():
            await once.publish("missing", ServiceBusMessage("lost"))
        for topic, subscription in [("missing", "all"), ("prices", "missing"), ("orders", "all")]:
            with expect_missing():
                await once.subscriber(topic, subscription).receive_messages(1, max_wait_time=30)
            with expect_missing():
                await once.subscriber(topic, subscription).peek_messages(1)


def price(text, value, region=None, **options):
    """A message with a price, and perhaps a region."""
    properties = {"price": value} if region is None else {"price": value, "region": region}
    return ServiceBusMessage(text, application_properties=properties, **options)
