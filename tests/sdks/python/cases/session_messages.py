"""Messages of sessions: their strict order, and their state when a receiver does not complete them.

Source: message-sessions, message-deferral, message-browsing, service-bus-dead-letter-queues.
"""

import datetime

from azure.servicebus import ServiceBusMessage, ServiceBusMessageState, ServiceBusSubQueue
from azure.servicebus.exceptions import MessageNotFoundError, OperationTimeoutError, ServiceBusError

from bus import (
    bodies,
    body,
    complete_all,
    expect,
    expect_counts,
    expect_error,
    later,
    receive,
    receive_nothing,
)
from cases.sessions import cart

NO_SESSION_ID = "The SessionId was not set on a message, and it cannot be sent to the entity."


async def in_order(bus):
    """An abandoned message is the next one again, before the later messages of its session."""
    await bus.send("carts", *[cart("1", text) for text in "abcd"])
    async with bus.receiver("carts", session_id="1") as receiver:
        (first,) = await receive(receiver)
        await receiver.abandon_message(first)
        a, b, c = await receive(receiver, 3)
        expect("bodies", bodies([a, b, c]), [b"a", b"b", b"c"])
        await receiver.abandon_message(c)
        await receiver.complete_message(b)
        await receiver.abandon_message(a)
        messages = await receive(receiver, 3)
        seen = [(body(message), message.delivery_count) for message in messages]
        expect("bodies and delivery counts", seen, [(b"a", 2), (b"c", 1), (b"d", 0)])
        await complete_all(receiver, messages)


async def deferred(bus):
    """A deferred message is received by its sequence number, by the receiver of its session."""
    await bus.send("carts", cart("1", "a"), cart("1", "b"))
    async with bus.receiver("carts", session_id="1") as receiver:
        a, b = await receive(receiver, 2)
        await receiver.defer_message(a)
        await receiver.complete_message(b)
        await receive_nothing(receiver)
    await expect_counts(bus, "carts", active=1, deferred=1, locked=0)
    async with bus.trying_once() as once, once.receiver("carts", session_id="2") as another:
        with expect_error(MessageNotFoundError, "com.microsoft:message-not-found"):
            await another.receive_deferred_messages(1)
    async with bus.receiver("carts", session_id="1") as receiver:
        (message,) = await receiver.receive_deferred_messages(1)
        expect("state", message.state, ServiceBusMessageState.DEFERRED)
        await receiver.abandon_message(message)
        (message,) = await receiver.receive_deferred_messages(1)
        expect("delivery count", message.delivery_count, 2)
        await receiver.complete_message(message)
    await expect_counts(bus, "carts", active=0, deferred=0, locked=0)


async def deferred_alone(bus):
    """A session that has only deferred messages is not the next available session."""
    await bus.send("carts", cart("1", "a"))
    async with bus.receiver("carts", session_id="1") as receiver:
        (message,) = await receive(receiver)
        await receiver.defer_message(message)
    async with bus.trying_once() as once:
        with expect_error(OperationTimeoutError, "com.microsoft:timeout"):
            async with once.next_session("carts", wait=0.5):
                pass


async def peeked(bus):
    """A session receiver peeks only at its session."""
    await bus.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"))
    async with bus.receiver("carts", session_id="1") as receiver:
        seen = [(message.sequence_number, body(message)) for message in await receiver.peek_messages(10)]
        expect("messages", seen, [(1, b"a"), (3, b"c")])
        (last,) = await receiver.peek_messages(10, sequence_number=2)
        expect("from the second on", (body(last), last.session_id), (b"c", "1"))
        await expect_counts(bus, "carts", active=3, locked=0)


async def dead_lettered(bus):
    """Dead-lettered messages are received without a session, and keep its id."""
    await bus.send("carts", cart("1", "bad"), cart("2", "worse"))
    for session_id in ["1", "2"]:
        async with bus.receiver("carts", session_id=session_id) as receiver:
            (message,) = await receive(receiver)
            await receiver.dead_letter_message(message, reason="Rejected", error_description="no total")
    async with bus.dead_letters("carts") as receiver:
        messages = await receive(receiver, 2)
        seen = [(body(message), message.session_id, message.dead_letter_reason) for message in messages]
        expect("dead letters", seen, [(b"bad", "1", "Rejected"), (b"worse", "2", "Rejected")])
        await receiver.renew_message_lock(messages[0])
        await complete_all(receiver, messages)
    await expect_counts(bus, "carts", active=0, dead_letter=0)


async def abandons_to_the_limit(bus):
    """After its last delivery a message leaves the session to the next messages."""
    await bus.send("limited-carts", cart("1", "poison"), cart("1", "good"))
    async with bus.receiver("limited-carts", session_id="1") as receiver:
        for deliveries in range(2):
            (message,) = await receive(receiver)
            expect("delivered", (body(message), message.delivery_count), (b"poison", deliveries))
            await receiver.abandon_message(message)
        (message,) = await receive(receiver)
        expect("body", body(message), b"good")
        await receiver.complete_message(message)
    async with bus.dead_letters("limited-carts") as receiver:
        (message,) = await receive(receiver)
        expect("reason", message.dead_letter_reason, "MaxDeliveryCountExceeded")
        await receiver.complete_message(message)


async def without_id(bus):
    """A session queue rejects a message without a session id, and a batch that contains one."""
    with expect_no_session_id():
        await bus.send("carts", ServiceBusMessage("lost"))
    with expect_no_session_id():
        await bus.send("carts", [cart("1", "with"), ServiceBusMessage("without")])
    async with bus.sender("carts") as sender:
        with expect_no_session_id():
            await sender.schedule_messages(ServiceBusMessage("later"), later(60))
    await expect_counts(bus, "carts", active=0, scheduled=0, dead_letter=0)


async def without_id_at_subscription(bus):
    """A topic accepts a message without a session id, and a session subscription dead-letters it."""
    await bus.publish("steps", ServiceBusMessage("stray"), cart("1", "a"))
    await expect_counts(bus, "steps/Subscriptions/all", active=2, dead_letter=0)
    await expect_counts(bus, "steps/Subscriptions/by-cart", active=1, dead_letter=1)
    sub_queue = ServiceBusSubQueue.DEAD_LETTER
    async with bus.subscriber("steps", "by-cart", sub_queue=sub_queue) as receiver:
        await expect_dead_without_session_id(receiver)


async def forwarded(bus):
    """A forwarded message joins its session, or is dead-lettered if it has none."""
    await bus.send("inbox", cart("1", "a"), ServiceBusMessage("stray"))
    async with bus.receiver("carts", session_id="1") as receiver:
        (message,) = await receive(receiver)
        expect("body", body(message), b"a")
        await receiver.complete_message(message)
    async with bus.dead_letters("carts") as receiver:
        await expect_dead_without_session_id(receiver)


async def scheduled(bus):
    """A scheduled message joins its session when it becomes active."""
    async with bus.sender("carts") as sender:
        await sender.schedule_messages([cart("1", "asked"), cart("2", "another's")], later(300))
        await sender.send_messages(cart("1", "annotated", scheduled_enqueue_time_utc=later(200)))
    await expect_counts(bus, "carts", active=0, scheduled=3)
    async with bus.receiver("carts", session_id="1") as receiver:
        await receive_nothing(receiver)
    await bus.advance(301)
    async with bus.next_session("carts") as receiver:
        expect("session id", bus.session(receiver).session_id, "1")
        messages = await receive(receiver, 2)
        expect("bodies", bodies(messages), [b"annotated", b"asked"])
        await complete_all(receiver, messages)
    await expect_counts(bus, "carts", active=1, scheduled=0)


async def expires(bus):
    """A message of a session expires like any other, and the following ones are delivered next."""
    old = cart("1", "old", time_to_live=datetime.timedelta(seconds=30))
    await bus.send("carts", old, cart("1", "new"))
    await bus.advance(31)
    async with bus.receiver("carts", session_id="1") as receiver:
        (message,) = await receive(receiver)
        expect("body", body(message), b"new")
        await receiver.complete_message(message)
    async with bus.dead_letters("carts") as receiver:
        (message,) = await receive(receiver)
        expect("reason", message.dead_letter_reason, "TTLExpiredException")
        await receiver.complete_message(message)


async def replies(bus):
    """A reply arrives in the session that the request specifies."""
    await bus.send("carts", cart("requests", "ask", reply_to="carts", reply_to_session_id="answers-7"))
    async with bus.receiver("carts", session_id="requests") as receiver:
        (request,) = await receive(receiver)
        await bus.send(request.reply_to, cart(request.reply_to_session_id, "answer"))
        await receiver.complete_message(request)
    async with bus.receiver("carts", session_id="answers-7") as receiver:
        (answer,) = await receive(receiver)
        expect("body", body(answer), b"answer")
        expect("session to reply to", answer.reply_to_session_id, None)
        await receiver.complete_message(answer)


def expect_no_session_id():
    """The error for a message without a session id."""
    return expect_error(ServiceBusError, "amqp:not-allowed", NO_SESSION_ID)


async def expect_dead_without_session_id(receiver):
    """Receives the only dead-lettered message, which has no session id."""
    (message,) = await receive(receiver)
    expect("body", body(message), b"stray")
    expect("session id", message.session_id, None)
    expect("reason", message.dead_letter_reason, "Session ID is null.")
    expect(
        "description",
        message.dead_letter_error_description,
        "Session enabled entity doesn't allow a message whose session identifier is null.",
    )
    await receiver.complete_message(message)
