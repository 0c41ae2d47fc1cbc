"""Receivers that close with a message locked, under both settings of D2."""

import os
import subprocess
import sys

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageLockLostError

from bus import ENVIRONMENT, expect, expect_counts, expect_error, receive, receive_nothing


async def closed(bus):
    """A receiver is closed with a message locked; the lock is kept, or released at once."""
    await bus.send("orders", ServiceBusMessage("held"))
    async with bus.receiver("orders") as receiver:
        (held,) = await receive(receiver)
    async with bus.receiver("orders") as receiver:
        if bus.locks_on_detach == "keep":
            await receive_nothing(receiver)
            await expect_counts(bus, "orders", active=1, locked=1)
            # The lock is kept: its token still renews it, from another link.
            await receiver.renew_message_lock(held)
        else:
            (again,) = await receive(receiver)
            expect("delivery count", again.delivery_count, 0)
            with expect_error(MessageLockLostError):
                await receiver.renew_message_lock(held)
            await receiver.abandon_message(again)
    await expect_return(bus)


async def settled_by_token(bus):
    """After its receiver is closed, a message is settled by its lock token while the lock is valid."""
    await bus.send("orders", ServiceBusMessage("held"))
    async with bus.receiver("orders") as receiver:
        (held,) = await receive(receiver)
    async with bus.receiver("orders") as receiver:
        if bus.locks_on_detach == "keep":
            await receiver.complete_message(held)
            await expect_counts(bus, "orders", active=0, locked=0)
        else:
            with expect_error(MessageLockLostError):
                await receiver.complete_message(held)
            (again,) = await receive(receiver)
            expect("delivery count", again.delivery_count, 0)
            await receiver.complete_message(again)


async def dropped(bus):
    """A process is killed with a message locked, which ends its connection."""
    await bus.send("orders", ServiceBusMessage("held"))
    dying = os.path.join(os.path.dirname(os.path.dirname(__file__)), "die_holding_a_lock.py")
    command = [sys.executable, dying, bus.flavour, "orders"]
    subprocess.run(command, env={**os.environ, **ENVIRONMENT.get()}, stdin=subprocess.DEVNULL, check=True, timeout=120)
    if bus.locks_on_detach == "release":
        await expect_counts(bus, "orders", active=1, locked=0)
        async with bus.receiver("orders") as receiver:
            (message,) = await receive(receiver)
            expect("delivery count", message.delivery_count, 0)
            await receiver.abandon_message(message)
    else:
        await expect_counts(bus, "orders", active=1, locked=1)
    await expect_return(bus)


async def expect_return(bus):
    """After a minute the message is available again, counted once, by its expired lock or by the abandon."""
    await bus.advance(61)
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        expect("delivery count", message.delivery_count, 1)
        await receiver.complete_message(message)
    await expect_counts(bus, "orders", active=0, dead_letter=0)
