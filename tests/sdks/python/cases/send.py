"""Sending: one message, a list, a batch, and the properties that arrive at the receiver."""

import datetime
import decimal
import os
import uuid

from azure.servicebus import ServiceBusMessage
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType
from azure.servicebus.exceptions import MessageSizeExceededError

from bus import body, expect, receive


async def single(bus):
    """One message per call arrives, in the order sent."""
    await bus.send("orders", ServiceBusMessage("first"), ServiceBusMessage(b"second"))
    await expect_bodies(bus, [b"first", b"second"])


async def one_by_one(bus):
    """Each message is sent when the previous one has been accepted."""
    async with bus.sender("orders") as sender:
        for _ in range(int(os.environ.get("SERVICEBUS_SENDS", "20"))):
            await sender.send_messages(ServiceBusMessage(b"x" * 1024))


async def list_of_messages(bus):
    """A list is sent as one transfer, and its messages arrive separately."""
    await bus.send("orders", [ServiceBusMessage(f"order {number}") for number in range(5)])
    await expect_bodies(bus, [f"order {number}".encode() for number in range(5)])


async def batch(bus):
    """A batch accepts messages up to its size, reports when it is full, and arrives completely."""
    async with bus.sender("orders") as sender:
        batch_of_messages = await sender.create_message_batch(max_size_in_bytes=4096)
        added = 0
        try:
            while True:
                batch_of_messages.add_message(ServiceBusMessage(b"x" * 512))
                added += 1
        except MessageSizeExceededError:
            pass
        if not 5 <= added <= 7:
            raise AssertionError(f"a batch of 4,096 bytes took {added} messages of 512 bytes")
        await sender.send_messages(batch_of_messages)
    await expect_bodies(bus, [b"x" * 512] * added)


async def properties(bus):
    """The receiver reads every property that an application can set on a message."""
    sent_at = datetime.datetime(2024, 2, 29, 12, 30, 15, 250000, tzinfo=datetime.timezone.utc)
    identifier = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
    application_properties = {
        "text": "größer",
        "whole": 42,
        "negative": -(2**31),
        "fraction": 0.5,
        "flag": True,
        "identifier": identifier,
        "instant": sent_at,
        "nothing": None,
    }
    standard = {
        "message_id": "order-17",
        "content_type": "application/json",
        "correlation_id": "request-4",
        "subject": "placed",
        "to": "warehouse",
        "reply_to": "confirmations",
        "reply_to_session_id": "cart-7",
        "partition_key": "eu",
        "time_to_live": datetime.timedelta(minutes=5),
    }
    await bus.send("orders", ServiceBusMessage(b'{"total": 3}', application_properties=application_properties, **standard))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        for name, value in standard.items():
            expect(name, getattr(message, name), value)
        seen = {name.decode(): value for name, value in message.application_properties.items()}
        # The SDK returns strings as bytes and times as milliseconds since 1970.
        expected = application_properties | {"text": "größer".encode(), "instant": int(sent_at.timestamp() * 1000)}
        expect("application properties", seen, expected)
        expect("body", body(message), b'{"total": 3}')
        expect("sequence number", message.sequence_number, 1)
        expect("enqueued sequence number", message.enqueued_sequence_number, None)
        expect("delivery count", message.delivery_count, 0)
        expect("expiry", message.expires_at_utc, message.enqueued_time_utc + standard["time_to_live"])
        age = datetime.datetime.now(datetime.timezone.utc) - message.enqueued_time_utc
        if not datetime.timedelta(seconds=-1) < age < datetime.timedelta(seconds=30):
            raise AssertionError(f"the message was enqueued {age} ago by the client's clock")
        await receiver.complete_message(message)


async def again(bus):
    """A received message is sent again: this SDK then writes delivery annotations after the body (observed 1)."""
    await bus.send("orders", ServiceBusMessage("first", application_properties={"kept": 1}))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        await bus.send("orders", message)
        await receiver.complete_message(message)
        (copy,) = await receive(receiver)
        expect("body", body(copy), b"first")
        expect("application properties", copy.application_properties, {b"kept": 1})
        await receiver.complete_message(copy)


async def decimals(bus):
    """Decimals are read as they were sent, in properties and as the body (observed 8)."""
    sent = {name: decimal.Decimal(text) for name, text in [("price", "33802.4489"), ("debt", "-0.05"), ("whole", "7")]}
    await bus.send(
        "orders",
        ServiceBusMessage("properties", application_properties=sent),
        AmqpAnnotatedMessage(value_body=decimal.Decimal("12.5")),
    )
    async with bus.receiver("orders") as receiver:
        properties, value = await receive(receiver, 2)
        seen = {name.decode(): amount for name, amount in properties.application_properties.items()}
        expect("application properties", seen, sent)
        expect("body", value.raw_amqp_message.body, decimal.Decimal("12.5"))
        await receiver.complete_message(properties)
        await receiver.complete_message(value)


async def without_id(bus):
    """The broker generates an id for a message that has none (D30).

    A `ServiceBusMessage` of this SDK brings a UUID of its own; only an annotated message has none.
    """
    await bus.send("orders", ServiceBusMessage("own id"), AmqpAnnotatedMessage(data_body=b"no id"))
    async with bus.receiver("orders") as receiver:
        own, given = await receive(receiver, 2)
        expect("length of the SDK's id", len(own.message_id), 36)
        expect("length of the broker's id", len(given.message_id), 32)
        uuid.UUID(hex=given.message_id)
        await receiver.complete_message(own)
        await receiver.complete_message(given)


async def body_kinds(bus):
    """Bodies that are an AMQP value or sequences arrive unchanged, whatever they contain."""
    await bus.send(
        "orders",
        AmqpAnnotatedMessage(value_body={"total": 3, "lines": ["a", "b"]}),
        AmqpAnnotatedMessage(sequence_body=[[1, 2, 3], ["four"]]),
        AmqpAnnotatedMessage(data_body=[b"one,", b"two"]),
        AmqpAnnotatedMessage(data_body=b""),
    )
    async with bus.receiver("orders") as receiver:
        for kind, expected in [
            # The SDK returns strings as bytes.
            (AmqpMessageBodyType.VALUE, {b"total": 3, b"lines": [b"a", b"b"]}),
            (AmqpMessageBodyType.SEQUENCE, [[1, 2, 3], [b"four"]]),
            (AmqpMessageBodyType.DATA, [b"one,", b"two"]),
            (AmqpMessageBodyType.DATA, [b""]),
        ]:
            (message,) = await receive(receiver)
            expect("kind of body", message.body_type, kind)
            read = message.body if kind is AmqpMessageBodyType.VALUE else list(message.body)
            expect("body", read, expected)
            await receiver.complete_message(message)


async def expect_bodies(bus, expected):
    """Receives and completes all messages of the queue: these bodies in this order, numbered from 1."""
    async with bus.receiver("orders") as receiver:
        messages = await receive(receiver, len(expected))
        expect("bodies", [body(message) for message in messages], expected)
        expect("sequence numbers", [message.sequence_number for message in messages], list(range(1, len(expected) + 1)))
        for message in messages:
            await receiver.complete_message(message)
