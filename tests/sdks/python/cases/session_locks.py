"""Session locks: renewed in time, by the application or the SDK, or lost with the locks of received messages.

Source: message-sessions, and D17 for a changed queue. The locks of `quick-carts` last twenty seconds: the
SDK renews a lock that has ten seconds left by its own clock, so that it does so every ten seconds, and the
bus's clock may move ten seconds meanwhile.
"""

import asyncio
import time

from azure.servicebus.exceptions import AutoLockRenewFailed, SessionLockLostError

from bus import (
    WAIT_SECONDS,
    body,
    expect,
    expect_counts,
    expect_error,
    expect_fresh_lock,
    receive,
)
from cases.sessions import cart


async def renews(bus):
    """Renewing a session's lock in time also extends the locks of its messages."""
    await bus.send("carts", cart("1", "slow"))
    async with bus.receiver("carts", session_id="1") as receiver:
        session = bus.session(receiver)
        (message,) = await receive(receiver)
        for _ in range(2):
            await bus.advance(40)
            expect_fresh_lock(await session.renew_lock())
        await bus.advance(40)
        await receiver.complete_message(message)
    await expect_counts(bus, "carts", active=0, locked=0)


async def loses_lock(bus):
    """Settling after the lock has expired raises the SDK's error, and the messages are redelivered and counted."""
    await bus.send("carts", cart("1", "late"), cart("1", "later"))
    for number, settle in enumerate(["complete_message", "abandon_message", "dead_letter_message"]):
        async with bus.receiver("carts", session_id="1") as receiver:
            messages = await receive(receiver, 2)
            expect("delivery counts", [message.delivery_count for message in messages], [number, number])
            await bus.advance(61)
            with expect_lost():
                await getattr(receiver, settle)(messages[0])
            # From then on the SDK itself rejects it.
            with expect_error(SessionLockLostError):
                await getattr(receiver, settle)(messages[1])
    await expect_counts(bus, "carts", active=2, locked=0)


async def loses_lock_on_renewal(bus):
    """Renewing after the lock has expired raises the same error, and so does a receive."""
    async with bus.receiver("carts", session_id="1") as receiver:
        await bus.advance(61)
        with expect_lost():
            await bus.session(receiver).renew_lock()
    async with bus.receiver("carts", session_id="1") as receiver:
        await bus.advance(61)
        with expect_lost():
            await receiver.receive_messages(1, max_wait_time=30)


async def passes_on(bus):
    """A waiting receiver gets a session whose lock expires, although its receiver is still attached."""
    await bus.send("carts", cart("1", "stuck"))
    async with bus.receiver("carts", session_id="1") as stuck:
        await receive(stuck)
        receiver = bus.next_session("carts")
        opening = bus.opening(receiver)
        await bus.advance(61)
        await asyncio.wait_for(opening, WAIT_SECONDS)
        (message,) = await receive(receiver)
        expect("delivered", (body(message), message.delivery_count), (b"stuck", 1))
        await receiver.complete_message(message)
        await receiver.close()


async def expires_to_the_limit(bus):
    """Expired locks count as deliveries, as abandons do, until the message is dead-lettered."""
    await bus.send("limited-carts", cart("1", "forgotten"), cart("1", "unseen"))
    for deliveries in range(2):
        async with bus.receiver("limited-carts", session_id="1") as receiver:
            (message,) = await receive(receiver)
            expect("delivered", (body(message), message.delivery_count), (b"forgotten", deliveries))
            await bus.advance(61)
    async with bus.dead_letters("limited-carts") as receiver:
        (message,) = await receive(receiver)
        expect("reason", message.dead_letter_reason, "MaxDeliveryCountExceeded")
        expect("delivery count", message.delivery_count, 2)
        await receiver.complete_message(message)
    async with bus.receiver("limited-carts", session_id="1") as receiver:
        (message,) = await receive(receiver)
        expect("delivered", (body(message), message.delivery_count), (b"unseen", 0))
        await receiver.complete_message(message)


async def changed(bus):
    """A changed queue loses the locks of its sessions (D17)."""
    await bus.send("carts", cart("1", "held"))
    async with bus.receiver("carts", session_id="1") as receiver:
        (message,) = await receive(receiver)
        await bus.configure("carts", MaxDeliveryCount=5)
        with expect_lost():
            await receiver.complete_message(message)
    async with bus.next_session("carts") as receiver:
        (message,) = await receive(receiver)
        expect("delivery count", message.delivery_count, 1)
        await receiver.complete_message(message)


async def auto_renewed(bus):
    """The SDK renews a session's lock automatically, well beyond the lock's duration."""
    await bus.send("quick-carts", cart("1", "slow"))
    async with bus.renewer() as renewer:
        async with bus.receiver("quick-carts", session_id="1", auto_lock_renewer=renewer) as receiver:
            (message,) = await receive(receiver)
            session = bus.session(receiver)
            for _ in range(3):
                locked_until = session.locked_until_utc
                await until("a renewal", lambda: session.locked_until_utc != locked_until)
                await bus.advance(8)
            expect("error of the renewer", session.auto_renew_error, None)
            await receiver.complete_message(message)
    await expect_counts(bus, "quick-carts", active=0, locked=0)


async def auto_renewal_fails(bus):
    """A renewer that is too late calls the application's callback, and the session is lost."""
    await bus.send("quick-carts", cart("1", "stuck"))
    failures = []

    def note(renewable, error):
        failures.append((renewable.session_id, type(error)))

    async def note_asynchronously(renewable, error):
        note(renewable, error)

    callback = note if bus.flavour == "sync" else note_asynchronously
    async with bus.renewer(on_lock_renew_failure=callback) as renewer:
        async with bus.receiver("quick-carts", session_id="1", auto_lock_renewer=renewer) as receiver:
            (message,) = await receive(receiver)
            await bus.advance(21)
            await until("a failure", lambda: failures)
            expect("failures", failures, [("1", AutoLockRenewFailed)])
            with expect_error(SessionLockLostError):
                await receiver.complete_message(message)
    await expect_counts(bus, "quick-carts", active=1, locked=0)


def expect_lost():
    """The error of an operation after the session's lock has expired."""
    return expect_error(SessionLockLostError, "com.microsoft:session-lock-lost")


async def until(what, holds):
    """Waits until a condition holds, which another thread or task fulfils."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what} did not come within {WAIT_SECONDS} seconds")
        await asyncio.sleep(0.02)
