"""kombu over azureservicebus://, which creates its queues by the administration API and uses AMQP."""

import socket

from kombu import Connection, Consumer, Exchange, Producer, Queue

from emulator import TIMEOUT, TRANSPORT, URL, advance, counts, eventually, expect, happened, queues, settled


def connect():
    return Connection(URL, transport_options=TRANSPORT)


def queue(name):
    return Queue(name, Exchange(name, type="direct"), routing_key=name)


def publish(connection, name, *bodies):
    producer = Producer(connection)
    for body in bodies:
        producer.publish(body, exchange=name, routing_key=name, declare=[queue(name)], headers={"color": "red"})


def consume(connection, name, number, act, **options):
    """Consumes this number of messages and returns their bodies."""
    bodies = []

    def received(body, message):
        bodies.append(body)
        expect("headers", message.headers["color"], "red")
        act(message)

    with Consumer(connection, [queue(name)], callbacks=[received], accept=["json"], **options):
        while len(bodies) < number:
            try:
                connection.drain_events(timeout=TIMEOUT)
            except socket.timeout:
                raise AssertionError(f"{len(bodies)} of {number} messages came within {TIMEOUT} s") from None
    return bodies


def acknowledged():
    with connect() as connection:
        publish(connection, "kombu.orders", {"total": 12}, {"total": 13})
        assert "kombu.orders" in queues(), queues()
        found = consume(connection, "kombu.orders", 2, lambda message: message.ack())
        expect("bodies", found, [{"total": 12}, {"total": 13}])
    settled()
    expect("completed", happened("kombu.orders")["completed"], 2)


def without_acknowledgement():
    with connect() as connection:
        publish(connection, "kombu.news", {"total": 14})
        expect("bodies", consume(connection, "kombu.news", 1, lambda _: None, no_ack=True), [{"total": 14}])
    expect("received and deleted", happened("kombu.news")["received-and-deleted"], 1)


def requeued():
    """A requeued message stays locked: the service delivers it again when the lock has expired."""
    with connect() as connection:
        publish(connection, "kombu.again", {"total": 15})
        consume(connection, "kombu.again", 1, lambda message: message.requeue())
        expect("locked", counts("kombu.again")["locked"], 1)
        advance(61)
        deliveries = consume(connection, "kombu.again", 1, lambda message: message.ack())
        expect("bodies", deliveries, [{"total": 15}])
    settled()
    expect("delivered", happened("kombu.again")["delivered"], 2)


def rejected():
    """The same applies to a rejected message, until it has been delivered ten times."""
    with connect() as connection:
        publish(connection, "kombu.bad", {"total": -1})
        for _ in range(10):
            consume(connection, "kombu.bad", 1, lambda message: message.reject())
            advance(61)
    expect("dead letters", counts("kombu.bad")["dead_letter"], 1)


def purged():
    with connect() as connection:
        publish(connection, "kombu.full", *range(3))
        channel = connection.channel()
        expect("size", channel._size("kombu.full"), 3)
        expect("purged", queue("kombu.full")(channel).purge(), 3)
    expect("active", counts("kombu.full")["active"], 0)


def deleted():
    with connect() as connection:
        bound = queue("kombu.gone")(connection.channel())
        bound.declare()
        assert "kombu.gone" in queues(), queues()
        bound.delete()
        assert "kombu.gone" not in queues(), queues()


def simple_queue():
    with connect() as connection, connection.SimpleQueue("kombu.simple") as simple:
        simple.put("hello", headers={"color": "blue"})
        message = simple.get(timeout=TIMEOUT)
        expect("payload", message.payload, "hello")
        message.ack()
        eventually("empty", lambda: counts("kombu.simple")["active"] == 0)


CASES = [acknowledged, without_acknowledgement, requeued, rejected, purged, deleted, simple_queue]
