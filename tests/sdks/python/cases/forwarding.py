"""Auto-forwarding of messages and dead-lettered messages to another queue, at most four times (D3).

Source: service-bus-auto-forwarding, service-bus-dead-letter-queues. `inbox` forwards to `orders`,
`hop1` over the others to `hop6`, and `complaints` forwards its dead letters to `orders`.
"""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from bus import body, expect, expect_counts, expect_error, receive, receive_nothing


async def chain(bus):
    """A message is forwarded unchanged from queue to queue, with a new sequence number in each."""
    await bus.send("orders", ServiceBusMessage("direct"))
    message = ServiceBusMessage("over", message_id="o-17", subject="placed", application_properties={"total": 3})
    await bus.send("inbox", message)
    await expect_counts(bus, "inbox", active=0, transfer=0)
    async with bus.receiver("orders") as receiver:
        direct, over = await receive(receiver, 2)
        expect("body", body(over), b"over")
        expect("message id", over.message_id, "o-17")
        expect("subject", over.subject, "placed")
        expect("application properties", over.application_properties, {b"total": 3})
        expect("sequence number", over.sequence_number, 2)
        expect("number where it was sent", over.enqueued_sequence_number, 1)
        expect("delivery count", over.delivery_count, 0)
        await receiver.complete_message(direct)
        await receiver.complete_message(over)


async def dead_letters(bus):
    """A forwarded dead-lettered message keeps its reason and its dead-letter source."""
    await bus.send("complaints", ServiceBusMessage("bad"))
    async with bus.receiver("complaints") as receiver:
        (message,) = await receive(receiver)
        expect("source of a message that is none", message.dead_letter_source, None)
        await receiver.abandon_message(message)
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        expect("source", message.dead_letter_source, "complaints")
        expect("reason", message.dead_letter_reason, "MaxDeliveryCountExceeded")
        await receiver.complete_message(message)
    await expect_counts(bus, "complaints", active=0, dead_letter=0)


async def hops(bus):
    """Four forwards are allowed: the fifth fails at its source."""
    await bus.send("hop2", ServiceBusMessage("four"))
    async with bus.receiver("hop6") as receiver:
        (message,) = await receive(receiver)
        expect("body", body(message), b"four")
        await receiver.complete_message(message)
    await bus.send("hop1", ServiceBusMessage("five"))
    description = "The maximum number of allowed hops when forwarding between queues. Value is set to 4."
    await expect_failed(bus, "hop5", b"five", "MaxTransferHopCountExceeded", description)
    async with bus.receiver("hop6") as receiver:
        await receive_nothing(receiver)


async def target_deleted(bus):
    """A message whose target does not exist is moved to the transfer dead-letter queue of its source."""
    await bus.delete("orders")
    await bus.send("inbox", ServiceBusMessage("lost"))
    await expect_failed(bus, "inbox", b"lost", "MessagingEntityNotFoundException")


async def target_disabled(bus):
    """So is a message that its target rejects."""
    await bus.configure("orders", Status="SendDisabled")
    await bus.send("inbox", ServiceBusMessage("early"))
    await expect_failed(bus, "inbox", b"early", "MessagingEntityDisabledException")


async def target_full(bus):
    """So is a message for which its target has no space."""
    await bus.send("tiny", *[ServiceBusMessage(bytes(200_000)) for _ in range(5)])
    await bus.send("to-tiny", ServiceBusMessage(bytes(200_000)))
    await expect_counts(bus, "tiny", active=5)
    await expect_failed(bus, "to-tiny", bytes(200_000), "QuotaExceededException")


async def not_received_from(bus):
    """A queue that forwards cannot be received from; its dead-letter queues can."""
    async with bus.trying_once() as bus_once:
        with expect_error(ServiceBusError, "amqp:not-allowed"):
            await bus_once.receiver("inbox").receive_messages(1, max_wait_time=30)
    async with bus.dead_letters("inbox") as receiver:
        await receive_nothing(receiver)


async def expect_failed(bus, queue, expected_body, reason, description=None):
    """Receives the only message that a queue could not forward."""
    await expect_counts(bus, queue, active=0, dead_letter=0, transfer_dead_letter=1)
    async with bus.transfer_dead_letters(queue) as receiver:
        (message,) = await receive(receiver)
        expect("body", body(message), expected_body)
        expect("reason", message.dead_letter_reason, reason)
        if description is not None:
            expect("description", message.dead_letter_error_description, description)
        await receiver.complete_message(message)
    await expect_counts(bus, queue, transfer_dead_letter=0)
