"""Sessions: accepted by their ids or as the next one, by one receiver at a time.

Source: message-sessions, and D10 for which one is next. `carts`, `limited-carts`, of two deliveries, and
`quick-carts`, whose locks last twelve seconds, require sessions; `inbox` forwards to `carts`; `steps` has
the subscriptions `by-cart`, which requires sessions, and `all`, which does not; `orders` is plain.
"""

import asyncio
import time

from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode
from azure.servicebus.exceptions import (
    MessagingEntityDisabledError,
    OperationTimeoutError,
    ServiceBusError,
    SessionCannotBeLockedError,
)

from bus import (
    NOTHING_SECONDS,
    WAIT_SECONDS,
    bodies,
    body,
    complete_all,
    expect,
    expect_counts,
    expect_error,
    expect_fresh_lock,
    receive,
    receive_nothing,
)


async def by_id(bus):
    """A session is accepted by its id, and delivers only its own messages."""
    await bus.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"))
    async with bus.receiver("carts", session_id="1") as receiver:
        session = bus.session(receiver)
        expect("session id", session.session_id, "1")
        expect_fresh_lock(session.locked_until_utc)
        messages = await receive(receiver, 2)
        expect("bodies", bodies(messages), [b"a", b"c"])
        expect("session ids", [message.session_id for message in messages], ["1", "1"])
        await expect_counts(bus, "carts", active=3, locked=2)
        await complete_all(receiver, messages)
        await receive_nothing(receiver)
    await expect_counts(bus, "carts", active=1, locked=0)


async def empty_id(bus):
    """The empty session id is a session like any other (observed 14)."""
    await bus.send("carts", ServiceBusMessage("a", session_id=""))
    async with bus.next_session("carts") as receiver:
        (message,) = await receive(receiver)
        session = bus.session(receiver)
        expect("session", (session.session_id, message.session_id), ("", ""))
        await session.set_state(b"state")
        expect("state", await session.get_state(), b"state")
        await receiver.complete_message(message)


async def empty(bus):
    """An empty session is accepted by its id, and delivers messages that arrive later."""
    async with bus.receiver("carts", session_id="1") as receiver:
        await receive_nothing(receiver)
        await bus.send("carts", cart("2", "another's"), cart("1", "late"))
        (message,) = await receive(receiver)
        expect("body", body(message), b"late")
        await receiver.complete_message(message)


async def next_available(bus):
    """The next available session is the unlocked one whose first message is the oldest."""
    await bus.send("carts", cart("2", "a"), cart("1", "b"), cart("2", "c"))
    async with bus.next_session("carts") as first, bus.next_session("carts") as second:
        for receiver, session_id, expected in [(second, "1", [b"b"]), (first, "2", [b"a", b"c"])]:
            session = bus.session(receiver)
            expect("session id", session.session_id, session_id)
            expect_fresh_lock(session.locked_until_utc)
            messages = await receive(receiver, len(expected))
            expect(f"bodies of session {session_id}", bodies(messages), expected)
            await complete_all(receiver, messages)
    await expect_counts(bus, "carts", active=0, locked=0)


async def waits_for_next(bus):
    """A receiver waits until a session is available."""
    receiver = bus.next_session("carts")
    opening = bus.opening(receiver)
    done, _ = await asyncio.wait([opening], timeout=NOTHING_SECONDS)
    expect("receivers that got a session", len(done), 0)
    await bus.send("carts", cart("1", "late"))
    await asyncio.wait_for(opening, WAIT_SECONDS)
    expect("session id", bus.session(receiver).session_id, "1")
    (message,) = await receive(receiver)
    expect("body", body(message), b"late")
    await receiver.complete_message(message)
    await receiver.close()


async def times_out(bus):
    """A receiver that gets no session gets an error after its timeout."""
    await bus.send("carts", cart("1", "taken"))
    async with bus.trying_once() as once, bus.receiver("carts", session_id="1"):
        begin = time.monotonic()
        text = "The operation did not complete within the allotted timeout of 00:00:0"
        with expect_error(OperationTimeoutError, "com.microsoft:timeout", text):
            async with once.next_session("carts", wait=1):
                pass
        waited = time.monotonic() - begin
        # The SDK requests a little less; the broker's default of 65 seconds would be too long for the case.
        if waited < 0.9:
            raise AssertionError(f"the error arrived after {waited} seconds instead of one")


async def taken(bus):
    """A session has one receiver at a time."""
    async with bus.trying_once() as once:
        async with bus.receiver("carts", session_id="1"):
            text = "The requested session '1' cannot be accepted. It may be locked by another receiver."
            with expect_error(SessionCannotBeLockedError, "com.microsoft:session-cannot-be-locked", text):
                async with once.receiver("carts", session_id="1"):
                    pass
        async with once.receiver("carts", session_id="1") as receiver:
            expect("session id", bus.session(receiver).session_id, "1")


async def closed(bus):
    """A closed receiver unlocks its session at once, and unsettled messages are delivered again, uncounted."""
    await bus.send("carts", *[cart("1", text) for text in "abc"])
    async with bus.receiver("carts", session_id="1") as receiver:
        await receive(receiver, 2)
        await expect_counts(bus, "carts", active=3, locked=2)
    await expect_counts(bus, "carts", active=3, locked=0)
    async with bus.next_session("carts") as receiver:
        messages = await receive(receiver, 3)
        expect("bodies", bodies(messages), [b"a", b"b", b"c"])
        expect("delivery counts", [message.delivery_count for message in messages], [0, 0, 0])
        await complete_all(receiver, messages)


async def side_by_side(bus):
    """Receivers of different sessions work at the same time and do not get each other's messages."""
    await bus.send("carts", *[cart(str(number % 3), str(number)) for number in range(9)])
    async with bus.next_session("carts") as a, bus.next_session("carts") as b, bus.next_session("carts") as c:
        for turn in range(3):
            for session, receiver in enumerate([a, b, c]):
                (message,) = await receive(receiver)
                expect("body", body(message), str(3 * turn + session).encode())
                await receiver.complete_message(message)
    await expect_counts(bus, "carts", active=0, locked=0)


async def streams(bus):
    """Iterating over a session yields its messages, in order, until none has arrived for a while."""
    await bus.send("carts", *[cart(str(number % 3), str(number)) for number in range(9)])
    seen = {}
    for _ in range(3):
        async with bus.next_session("carts", wait=1) as receiver:
            session_id = bus.session(receiver).session_id
            seen[session_id] = []
            async for message in receiver:
                seen[session_id].append(body(message))
                await receiver.complete_message(message)
    expected = {"0": [b"0", b"3", b"6"], "1": [b"1", b"4", b"7"], "2": [b"2", b"5", b"8"]}
    expect("bodies by session", seen, expected)
    await expect_counts(bus, "carts", active=0, locked=0)


async def receive_and_delete(bus):
    """A session receiver may use receive-and-delete."""
    await bus.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"))
    mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
    async with bus.receiver("carts", session_id="1", receive_mode=mode) as receiver:
        expect("bodies", bodies(await receive(receiver, 2)), [b"a", b"c"])
        await expect_counts(bus, "carts", active=1, locked=0)


async def subscription(bus):
    """A subscription may require sessions, whether or not others of the topic do."""
    await bus.publish("steps", cart("1", "a"), cart("2", "b"), cart("1", "c"))
    async with bus.subscriber("steps", "by-cart", session_id="1") as receiver:
        messages = await receive(receiver, 2)
        expect("bodies of the session", bodies(messages), [b"a", b"c"])
        await complete_all(receiver, messages)
    async with bus.subscriber("steps", "all") as receiver:
        messages = await receive(receiver, 3)
        expect("bodies of the neighbour", bodies(messages), [b"a", b"b", b"c"])
        expect("session ids", [message.session_id for message in messages], ["1", "2", "1"])
        await complete_all(receiver, messages)
    await expect_counts(bus, "steps/Subscriptions/by-cart", active=1)


async def plain_receiver(bus):
    """A session queue or subscription rejects receivers without a session."""
    text = "It is not possible for an entity that requires sessions to create a non-sessionful message receiver."
    async with bus.trying_once() as once:
        for receiver in [once.receiver("carts"), once.subscriber("steps", "by-cart")]:
            with expect_error(ServiceBusError, "amqp:not-allowed", text):
                await receiver.receive_messages(1, max_wait_time=30)


async def on_plain_queue(bus):
    """An entity without sessions rejects session receivers, and so does a dead-letter queue."""
    text = "A sessionful message receiver cannot be created on an entity that does not require sessions."
    async with bus.trying_once() as once:
        for receiver in [
            once.receiver("orders", session_id="1"),
            once.next_session("orders"),
            once.subscriber("steps", "all", session_id="1"),
            once.receiver("carts/$DeadLetterQueue", session_id="1"),
        ]:
            with expect_error(ServiceBusError, "amqp:not-allowed", text):
                await receiver.receive_messages(1, max_wait_time=30)


async def long_id(bus):
    """A session id has at most 128 characters."""
    async with bus.trying_once() as once:
        async with once.receiver("carts", session_id="c" * 128) as receiver:
            expect("session id", bus.session(receiver).session_id, "c" * 128)
        with expect_error(ServiceBusError, "com.microsoft:argument-error", "128"):
            async with once.receiver("carts", session_id="c" * 129):
                pass


async def disabled(bus):
    """A disabled queue detaches its session receivers and rejects new ones."""
    await bus.send("carts", cart("1", "kept"))
    async with bus.trying_once() as once:
        async with once.receiver("carts", session_id="1") as receiver:
            await bus.configure("carts", Status="ReceiveDisabled")
            with expect_disabled():
                await receiver.receive_messages(1, max_wait_time=30)
        for receiver in [once.receiver("carts", session_id="1"), once.next_session("carts")]:
            with expect_disabled():
                await receiver.receive_messages(1, max_wait_time=30)
    await bus.configure("carts", Status="Active")
    async with bus.next_session("carts") as receiver:
        (message,) = await receive(receiver)
        expect("delivery count", message.delivery_count, 0)
        await receiver.complete_message(message)


def expect_disabled():
    """The error of a disabled queue."""
    return expect_error(MessagingEntityDisabledError, "com.microsoft:entity-disabled")


def cart(session_id, text, **options):
    """A message of a session."""
    return ServiceBusMessage(text, session_id=session_id, **options)
