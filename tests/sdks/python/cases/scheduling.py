"""Scheduled messages: scheduled, waiting, active with a new sequence number, or cancelled.

Source: message-sequencing. The client's clock sets the time, to which the namespace's clock is advanced (D20).
"""

import datetime

from azure.servicebus import ServiceBusMessage, ServiceBusMessageState
from azure.servicebus.exceptions import MessageNotFoundError

from bus import body, bodies, expect, expect_counts, expect_error, later, receive, receive_nothing


async def annotated(bus):
    """A message with a scheduled enqueue time waits until then, visible only to peeks, and gets a new number."""
    at = later(300)
    await bus.send("orders", ServiceBusMessage("later", scheduled_enqueue_time_utc=at))
    await expect_counts(bus, "orders", active=0, scheduled=1)
    async with bus.receiver("orders") as receiver:
        await receive_nothing(receiver)
        (peeked,) = await receiver.peek_messages(10)
        expect("state", peeked.state, ServiceBusMessageState.SCHEDULED)
        expect("sequence number", peeked.sequence_number, 1)
        expect_close("scheduled time", peeked.scheduled_enqueue_time_utc, at)
        await bus.advance(240)
        await receive_nothing(receiver)
        await bus.advance(61)
        (message,) = await receive(receiver)
        expect("body", body(message), b"later")
        # Observed 6.
        expect("state", message.state, ServiceBusMessageState.SCHEDULED)
        expect("sequence number", message.sequence_number, 2)
        expect_close("enqueued time", message.enqueued_time_utc, later(0))
        await receiver.complete_message(message)
    await expect_counts(bus, "orders", active=0, scheduled=0)


async def by_request(bus):
    """The response to a schedule request has a sequence number for each message, in order."""
    async with bus.sender("orders") as sender:
        numbers = await sender.schedule_messages([ServiceBusMessage("a"), ServiceBusMessage("b")], later(300))
        expect("sequence numbers", numbers, [1, 2])
        expect("another", await sender.schedule_messages(ServiceBusMessage("c"), later(200)), [3])
    await expect_counts(bus, "orders", active=0, scheduled=3)
    await bus.advance(301)
    async with bus.receiver("orders") as receiver:
        messages = await receive(receiver, 3)
        seen = [(message.sequence_number, body(message)) for message in messages]
        expect("messages in the order of their times", seen, [(4, b"c"), (5, b"a"), (6, b"b")])
        for message in messages:
            await receiver.complete_message(message)


async def past(bus):
    """A message scheduled for a time in the past is active at once."""
    await bus.send("orders", ServiceBusMessage("late", scheduled_enqueue_time_utc=later(-60)))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        expect("sequence number", message.sequence_number, 1)
        await receiver.complete_message(message)


async def batch(bus):
    """A batch may contain scheduled and other messages."""
    await bus.send("orders", [ServiceBusMessage("now"), ServiceBusMessage("later", scheduled_enqueue_time_utc=later(60))])
    await expect_counts(bus, "orders", active=1, scheduled=1)
    await bus.advance(61)
    async with bus.receiver("orders") as receiver:
        messages = await receive(receiver, 2)
        expect("bodies", bodies(messages), [b"now", b"later"])
        for message in messages:
            await receiver.complete_message(message)


async def cancelled(bus):
    """A cancelled message is never delivered; the others are."""
    async with bus.sender("orders") as sender:
        messages = [ServiceBusMessage(text) for text in "abc"]
        numbers = await sender.schedule_messages(messages, later(60))
        await sender.cancel_scheduled_messages(numbers[0])
        await sender.cancel_scheduled_messages([numbers[2]])
    await expect_counts(bus, "orders", active=0, scheduled=1)
    await bus.advance(61)
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        expect("body", body(message), b"b")
        await receiver.complete_message(message)
        await receive_nothing(receiver)


async def cancel_refused(bus):
    """Unknown, cancelled and active messages cannot be cancelled; either all are cancelled or none."""
    async with bus.trying_once() as bus_once, bus_once.sender("orders") as sender:
        (first,) = await sender.schedule_messages(ServiceBusMessage("first"), later(60))
        with not_found():
            await sender.cancel_scheduled_messages(4711)
        with not_found():
            await sender.cancel_scheduled_messages([first, 4711])
        await expect_counts(bus, "orders", scheduled=1)
        (second,) = await sender.schedule_messages(ServiceBusMessage("second"), later(60))
        await sender.cancel_scheduled_messages(second)
        with not_found():
            await sender.cancel_scheduled_messages(second)
        await bus.advance(61)
        with not_found():
            await sender.cancel_scheduled_messages(first)
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        async with bus.trying_once() as bus_once, bus_once.sender("orders") as sender:
            with not_found():
                await sender.cancel_scheduled_messages(message.sequence_number)
        await receiver.complete_message(message)


async def expires(bus):
    """The time to live starts when the message becomes active: at 5:00, so that it ends at 15:00."""
    message = ServiceBusMessage(
        "short", scheduled_enqueue_time_utc=later(300), time_to_live=datetime.timedelta(minutes=10)
    )
    await bus.send("expiring", message)
    await bus.advance(840)
    await expect_counts(bus, "expiring", active=1, scheduled=0, dead_letter=0)
    await bus.advance(61)
    left = 0 if bus.expiry == "eager" else 1
    await expect_counts(bus, "expiring", active=left, dead_letter=1 - left)
    async with bus.receiver("expiring") as receiver:
        await receive_nothing(receiver)
    async with bus.dead_letters("expiring") as receiver:
        (message,) = await receive(receiver)
        expect("reason", message.dead_letter_reason, "TTLExpiredException")
        await receiver.complete_message(message)


def not_found():
    """The error of a cancellation."""
    return expect_error(MessageNotFoundError, "com.microsoft:message-not-found")


def expect_close(what, actual, expected):
    """Asserts a time, with a tolerance for the duration of the case."""
    if abs(actual - expected) > datetime.timedelta(seconds=15):
        raise AssertionError(f"{what}: expected about {expected}, got {actual}")
