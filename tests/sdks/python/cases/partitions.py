"""Partitioned queues: sequence numbers have a partition in their top 16 bits, and work as any other (D18).

Source: service-bus-partitioning.
"""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from bus import body, bodies, expect, expect_counts, expect_error, later, receive

QUEUE = "partitioned"


async def keys(bus):
    """Messages with one partition key are in one partition, in the order sent, and keep the key."""
    await bus.send(QUEUE, *[keyed(text, "eu") for text in "abc"], *[ServiceBusMessage("none") for _ in range(20)])
    async with bus.receiver(QUEUE) as receiver:
        messages = await receive(receiver, 23)
        of_eu = [message for message in messages if message.partition_key == "eu"]
        expect("bodies of one key", bodies(of_eu), [b"a", b"b", b"c"])
        expect("partitions of one key", len({partition(message) for message in of_eu}), 1)
        expect("more than one partition", len({partition(message) for message in messages}) > 1, True)
        for message in messages:
            await receiver.complete_message(message)


async def numbers(bus):
    """A sequence number with a partition cancels a scheduled message, receives a deferred one, and starts a peek."""
    # Of eight keys most are not in partition 0.
    sent = [keyed(f"b{key}", f"key {key}") for key in range(8)]
    await bus.send(QUEUE, *sent)
    async with bus.receiver(QUEUE) as receiver:
        for message in await receive(receiver, 8):
            await receiver.defer_message(message)
        peeked = await receiver.peek_messages(10, sequence_number=1)
        expect("some in a partition", any(partition(message) > 0 for message in peeked), True)
        for message in peeked:
            (first, *_) = await receiver.peek_messages(1, sequence_number=message.sequence_number)
            expect("peeked from its number", body(first), body(message))
            (deferred,) = await receiver.receive_deferred_messages(message.sequence_number)
            expect("received by its number", body(deferred), body(message))
            await receiver.complete_message(deferred)
    async with bus.sender(QUEUE) as sender:
        for message in sent:
            await sender.cancel_scheduled_messages(await sender.schedule_messages(message, later(60)))
    await expect_counts(bus, QUEUE, active=0, deferred=0, scheduled=0)


async def batch_of_one_key(bus):
    """All messages of a batch go to one partition: a batch with two keys is rejected as a whole."""
    async with bus.trying_once() as bus_once, bus_once.sender(QUEUE) as sender:
        with expect_error(ServiceBusError, "amqp:not-allowed"):
            await sender.send_messages([keyed("a", "eu"), keyed("b", "us")])
        await sender.send_messages([keyed("a", "eu"), keyed("b", "eu")])
    await expect_counts(bus, QUEUE, active=2)


def keyed(text, key):
    """A message with a partition key."""
    return ServiceBusMessage(text, partition_key=key)


def partition(message):
    """The top 16 bits of its sequence number."""
    return message.sequence_number >> 48
