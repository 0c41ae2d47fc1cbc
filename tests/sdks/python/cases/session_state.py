"""Session states, which outlive messages and receivers, and lists of sessions.

Source: message-sessions, service-bus-quotas.
"""

from azure.servicebus.exceptions import MessageSizeExceededError, SessionLockLostError

from bus import expect, expect_error, later, receive
from cases.sessions import cart


async def set_and_read(bus):
    """A session has no state until its receiver sets one."""
    async with bus.receiver("carts", session_id="1") as receiver:
        session = bus.session(receiver)
        expect("state at first", await session.get_state(), None)
        for state in [b"\x00\xffhalf done", b"done"]:
            await session.set_state(state)
            expect("state", await session.get_state(), state)
        async with bus.receiver("carts", session_id="2") as another:
            expect("state of another session", await bus.session(another).get_state(), None)


async def cleared(bus):
    """A state is cleared by setting none, or an empty one."""
    async with bus.receiver("carts", session_id="1") as receiver:
        session = bus.session(receiver)
        for cleared in [None, b""]:
            await session.set_state("half done")
            await session.set_state(cleared)
            expect("state", await session.get_state(), None)


async def outlives(bus):
    """A state outlives the session's messages, its receivers and their locks."""
    await bus.send("carts", cart("1", "a"))
    async with bus.receiver("carts", session_id="1") as receiver:
        (message,) = await receive(receiver)
        await bus.session(receiver).set_state(b"half done")
        await receiver.complete_message(message)
    async with bus.receiver("carts", session_id="1") as receiver:
        session = bus.session(receiver)
        expect("state for the second receiver", await session.get_state(), b"half done")
        await bus.advance(61)
        with expect_error(SessionLockLostError, "com.microsoft:session-lock-lost"):
            await session.get_state()
    async with bus.receiver("carts", session_id="1") as receiver:
        expect("state for the third receiver", await bus.session(receiver).get_state(), b"half done")


async def subscription(bus):
    """Sessions of a subscription have separate states."""
    async with bus.subscriber("steps", "by-cart", session_id="1") as receiver:
        await bus.session(receiver).set_state(b"half done")
        expect("state", await bus.session(receiver).get_state(), b"half done")
    async with bus.receiver("carts", session_id="1") as receiver:
        expect("state of the queue's session", await bus.session(receiver).get_state(), None)


async def too_large(bus):
    """A state has at most 256 KiB; a larger one is rejected and changes nothing."""
    largest = bytes(range(256)) * 1024
    async with bus.receiver("carts", session_id="1") as receiver:
        session = bus.session(receiver)
        await session.set_state(largest)
        with expect_error(MessageSizeExceededError, "amqp:link:message-size-exceeded", "262144"):
            await session.set_state(largest + b"!")
        expect("length of the state", len(await session.get_state()), len(largest))


async def listed(bus):
    """The sessions that hold messages are listed, page by page."""
    expect("sessions at first", await bus.sessions("carts"), [])
    names = [f"cart-{number:03}" for number in range(250)]
    await bus.send("carts", *[[cart(name, "a") for name in names[begin : begin + 50]] for begin in range(0, 250, 50)])
    expect("sessions", await bus.sessions("carts"), names)
    await bus.publish("steps", cart("1", "a"))
    expect("sessions of a subscription", await bus.sessions_of_subscription("steps", "by-cart"), ["1"])


async def listed_by_state(bus):
    """The sessions whose state was set since then are listed, with and without messages; without a time also those with
    messages alone."""
    await bus.send("carts", cart("message alone", "a"))
    async with bus.receiver("carts", session_id="before") as receiver:
        await bus.session(receiver).set_state(b"half done")
    await bus.advance(120)
    for session_id in ["set", "cleared"]:
        async with bus.receiver("carts", session_id=session_id) as receiver:
            await bus.session(receiver).set_state(b"half done")
            if session_id == "cleared":
                await bus.session(receiver).set_state(None)
    since = later(-60)
    expect("sessions since a minute", await bus.sessions("carts", state_updated_after=since), ["set"])
    since = later(-180)
    expect("sessions before", await bus.sessions("carts", state_updated_after=since), ["before", "set"])
    expect("sessions to come", await bus.sessions("carts", state_updated_after=later(60)), [])
    expect("sessions", await bus.sessions("carts"), ["before", "message alone", "set"])
