"""Entity status: operations that a disabled queue rejects, when a link attaches and when one is attached.

Source: entity-suspend, and D27 for what is locked. This SDK tries a disabled queue again.
"""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageLockLostError, MessagingEntityDisabledError

from bus import body, expect, expect_counts, expect_error, receive, receive_nothing


async def disabled(bus):
    """No client may send to a disabled queue or receive from it; its messages are kept."""
    await bus.send("orders", ServiceBusMessage("kept"))
    await bus.configure("orders", Status="Disabled")
    await expect_no_send(bus)
    await expect_no_receive(bus)
    await bus.configure("orders", Status="Active")
    await expect_receive(bus, b"kept")


async def send_disabled(bus):
    """Clients can receive from a queue that is disabled for sends."""
    await bus.send("orders", ServiceBusMessage("kept"))
    await bus.configure("orders", Status="SendDisabled")
    await expect_no_send(bus)
    await expect_receive(bus, b"kept")


async def receive_disabled(bus):
    """Clients can send to a queue that is disabled for receives."""
    await bus.configure("orders", Status="ReceiveDisabled")
    await bus.send("orders", ServiceBusMessage("kept"))
    await expect_no_receive(bus)
    await expect_counts(bus, "orders", active=1, locked=0)


async def open_sender(bus):
    """An open sender is rejected while the queue is disabled, and can send afterwards."""
    async with bus.trying_once() as bus_once, bus_once.sender("orders") as sender:
        await sender.send_messages(ServiceBusMessage("before"))
        await bus.configure("orders", Status="Disabled")
        with disabled_error():
            await sender.send_messages(ServiceBusMessage("meanwhile"))
        await bus.configure("orders", Status="Active")
        await sender.send_messages(ServiceBusMessage("after"))
    await expect_receive(bus, b"before")
    await expect_receive(bus, b"after")


async def open_receiver(bus):
    """An open receiver loses its link, and receives again once the queue is active."""
    async with bus.trying_once() as bus_once, bus_once.receiver("orders") as receiver:
        await receive_nothing(receiver)
        await bus.configure("orders", Status="ReceiveDisabled")
        await bus.send("orders", ServiceBusMessage("kept"))
        with disabled_error():
            await receiver.receive_messages(1, max_wait_time=30)
    await bus.configure("orders", Status="Active")
    await expect_receive(bus, b"kept")


async def locked(bus):
    """A lock keeps its expiry time while its queue is disabled (D27), unless it ends with its link (D2)."""
    await bus.send("orders", ServiceBusMessage("held"))
    async with bus.trying_once() as bus_once, bus_once.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        await bus.configure("orders", Status="Disabled")
        with disabled_error():
            await receiver.complete_message(message)
        await bus.configure("orders", Status="Active")
    keeps = bus.locks_on_detach == "keep"
    await expect_counts(bus, "orders", active=1, locked=1 if keeps else 0)
    async with bus.receiver("orders") as receiver:
        if not keeps:
            with expect_error(MessageLockLostError, "com.microsoft:message-lock-lost"):
                await receiver.complete_message(message)
            (message,) = await receive(receiver)
            expect("delivery count", message.delivery_count, 0)
        await receiver.complete_message(message)
    await expect_counts(bus, "orders", active=0, locked=0)


def disabled_error():
    """The error of a disabled queue."""
    return expect_error(MessagingEntityDisabledError, "com.microsoft:entity-disabled")


async def expect_no_send(bus):
    """Sending is refused."""
    async with bus.trying_once() as bus_once:
        with disabled_error():
            await bus_once.send("orders", ServiceBusMessage("refused"))


async def expect_no_receive(bus):
    """Receiving is refused."""
    async with bus.trying_once() as bus_once:
        with disabled_error():
            await bus_once.receiver("orders").receive_messages(1, max_wait_time=30)


async def expect_receive(bus, expected):
    """Receives and completes the next message."""
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        expect("body", body(message), expected)
        await receiver.complete_message(message)
