"""Observed behaviour of the service, by the numbers of `tests/conformance/OBSERVED.md`.

Source: spec/observed.md. `reader` is a key that may listen alone; `failing` forwards its dead letters to the topic
`reports`, whose subscriptions filter by where they come from.
"""

import datetime

from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageHeader
from azure.servicebus.exceptions import MessageLockLostError, ServiceBusError
from azure.servicebus.management import (
    AccessRights,
    AuthorizationRule,
    CorrelationRuleFilter,
    SqlRuleFilter,
)

from bus import ENVIRONMENT, body, expect, expect_counts, expect_error, receive
from cases.admin import fails

MINUTE = datetime.timedelta(minutes=1)


async def headers(bus):
    """A header is received as it was sent, and fields that were not sent are null (2); so is an annotation (69)."""
    header = AmqpMessageHeader(durable=True, first_acquirer=False)
    await bus.send(
        "orders",
        AmqpAnnotatedMessage(data_body=b"with a header", header=header, annotations={"x-mine": None, "mine": 1}),
        AmqpAnnotatedMessage(data_body=b"without a header"),
    )
    async with bus.receiver("orders") as receiver:
        first, second = await receive(receiver, 2)
        seen = [(header.durable, header.first_acquirer) for header in map(header_of, (first, second))]
        expect("durable and first acquirer", seen, [(True, False), (None, None)])
        annotations = first.raw_amqp_message.annotations
        expect("annotations", (annotations[b"x-mine"], annotations[b"mine"]), (None, 1))
        expect("time to live", (second.time_to_live, header_of(second).time_to_live), (None, None))


def header_of(message):
    """The header of a received message."""
    return message.raw_amqp_message.header


async def deletes(bus):
    """With receive-and-delete a message has empty delivery annotations (4)."""
    await bus.send("orders", ServiceBusMessage(b"m"))
    async with bus.receiver("orders", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
        (message,) = await receive(receiver)
        expect("delivery annotations", message.raw_amqp_message.delivery_annotations, {})


async def long_batch(bus):
    """A batch is limited only by its size: 4,501 messages are one batch (9)."""
    await bus.send("orders", small_messages())
    await expect_counts(bus, "orders", active=4501)


async def long_batch_refused(bus):
    """In a namespace with the old limit, 4,501 messages are rejected as a whole (9)."""
    text = "The service was unable to process the request; please retry the operation."
    async with bus.trying_once() as once:
        with expect_error(ServiceBusError, "amqp:internal-error", text):
            await once.send("orders", small_messages())
    await expect_counts(bus, "orders", active=0)


def small_messages():
    """Messages that fit in a batch of 256 KB."""
    return [AmqpAnnotatedMessage(data_body=b"") for _ in range(4501)]


async def dead_letters(bus):
    """In a dead-letter queue deliveries are not counted, neither by abandons nor by expired locks (11)."""
    await bus.send("orders", ServiceBusMessage(b"m"))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        await receiver.dead_letter_message(message)
    async with bus.dead_letters("orders") as receiver:
        (message,) = await receive(receiver)
        await receiver.abandon_message(message)
        (again,) = await receive(receiver)
        await bus.advance(61)
        (last,) = await receive(receiver)
        expect("delivery counts", [one.delivery_count for one in (message, again, last)], [0, 0, 0])


async def dates(bus):
    """A date in a rule is returned without a zone if it was created without one (20). This SDK writes whole seconds."""
    naive = datetime.datetime(2021, 7, 5, 11, 12, 13)
    aware = naive.replace(tzinfo=datetime.timezone.utc)
    async with bus.administration() as admin:
        for name, at in (("naive", naive), ("aware", aware)):
            await admin.create_rule("prices", "all", name, filter=SqlRuleFilter("at = @at", {"@at": at}))
            shown = await admin.get_rule("prices", "all", name)
            expect(f"{name} parameter", shown.filter.parameters["@at"], at)
            await admin.create_rule("prices", "all", name + "2", filter=CorrelationRuleFilter(properties={"at": at}))
            shown = await admin.get_rule("prices", "all", name + "2")
            expect(f"{name} property", shown.filter.properties["at"], at)


async def filter_counts(bus):
    """The rule that a subscription begins with counts as an SQL filter (22)."""
    async with bus.administration() as admin:
        await admin.create_rule("prices", "all", "correlation", filter=CorrelationRuleFilter(label="l"))
        await admin.create_rule("prices", "all", "sql", filter=SqlRuleFilter("price = 1"))
        shown = await admin.get_topic_runtime_properties("prices")
        expect("filters", (shown.sql_filter_count, shown.correlation_filter_count), (2, 1))


async def dead_letter_source(bus):
    """The broker sets the dead-letter source that a filter reads, never a sender (24)."""
    forged = {"x-opt-deadletter-source": "forged"}
    await bus.publish("reports", AmqpAnnotatedMessage(data_body=b"forged", annotations=forged))
    await bus.send("failing", AmqpAnnotatedMessage(data_body=b"failed", annotations=forged))
    async with bus.receiver("failing") as receiver:
        (message,) = await receive(receiver)
        await receiver.abandon_message(message)
    async with bus.subscriber("reports", "of-failing") as receiver:
        (message,) = await receive(receiver)
        expect("body", body(message), b"failed")
        await receiver.complete_message(message)
    await expect_counts(bus, "reports/Subscriptions/forged", active=0)
    await expect_counts(bus, "reports/Subscriptions/of-failing", active=0)


async def forwarded_to_disabled(bus):
    """In a namespace configured so, a disabled entity accepts forwarded messages (29)."""
    await bus.configure("orders", Status="SendDisabled")
    await bus.send("inbox", ServiceBusMessage(b"m"))
    await expect_counts(bus, "orders", active=1)
    await expect_counts(bus, "inbox", transfer_dead_letter=0)


async def addresses(bus):
    """The address to forward to is returned with scheme and host in lower case, and the path unchanged (28)."""
    async with bus.administration() as admin:
        made = await admin.create_queue("new", forward_to="SB://Some.Host/Orders")
        expect("target", made.forward_to, "sb://some.host/Orders")


async def authorization_rules(bus):
    """Any text of 44 characters is a key (31); times are returned only where they were set (35)."""
    key = "not base64, but forty-four characters long!!"
    rule = AuthorizationRule(
        type="SharedAccessAuthorizationRule",
        claim_type="SharedAccessKey",
        rights=[AccessRights.SEND],
        key_name="mine",
        primary_key=key,
        secondary_key=key,
    )
    async with bus.administration() as admin:
        made = await admin.create_queue("new", authorization_rules=[rule])
        [kept] = made.authorization_rules
        expect("keys", (kept.primary_key, kept.secondary_key), (key, key))
        expect("times", (kept.created_at_utc, kept.modified_at_utc), (None, None))


async def claims(bus):
    """Without the Manage right a missing entity is not found (32); other requests get the service's error (33)."""
    right = ENVIRONMENT.get()["SERVICEBUS_ADMIN_CONNECTION_STRING"]
    reader = right.replace("RootManageSharedAccessKey", "reader").replace("SAS_KEY_VALUE", "secret")
    async with bus.administration(reader) as admin:
        await fails(ResourceNotFoundError, lambda: admin.get_queue("missing"))
        await fails(ResourceNotFoundError, lambda: admin.get_topic("missing"))
        for call, text in (
            (lambda: admin.get_queue("orders"), "Manage,EntityRead claims required for this operation"),
            (
                lambda: admin.create_queue("new"),
                "Authorization failed for specified action: Manage,EntityWrite",
            ),
            (
                lambda: admin.delete_queue("orders"),
                "Authorization failed for specified action: Manage,EntityDelete.",
            ),
            (
                lambda: admin.get_subscription("prices", "all"),
                "SubCode=40100: Unauthorized : Unauthorized access for 'GetSubscription'",
            ),
        ):
            error = await fails(ClientAuthenticationError, call)
            expect(f"whether {error} has {text}", text in str(error), True)


async def user_metadata(bus):
    """A change of a queue's user metadata ends its locks, as any other change of properties does (38)."""
    await bus.send("orders", ServiceBusMessage(b"m"))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        async with bus.administration() as admin:
            queue = await admin.get_queue("orders")
            queue.user_metadata = "changed"
            await admin.update_queue(queue)
        with expect_error(MessageLockLostError):
            await receiver.renew_message_lock(message)
        (again,) = await receive(receiver)
        expect("delivery count", again.delivery_count, 1)
        await receiver.complete_message(again)


async def names_like_hosts(bus):
    """The name of an entity may look like a host; a token for it applies to the entity (39)."""
    for queue in ("localhost/orders", "127.0.0.1/orders"):
        await bus.send(queue, ServiceBusMessage(b"m"))
        async with bus.receiver(queue) as receiver:
            (message,) = await receive(receiver)
            await receiver.complete_message(message)
        await expect_counts(bus, queue, active=0)
    await expect_counts(bus, "orders", active=0)


async def documents_of_errors(bus):
    """Errors are well-formed XML, whatever was requested (40)."""
    async with bus.administration() as admin:
        for name in ("<b>&", "a\x01b", "\uffff"):
            error = await fails(HttpResponseError, lambda: admin.create_queue(name))
            expect("status", error.status_code, 400)


async def never_idle(bus):
    """In a basic namespace no queue is deleted when it is idle (65)."""
    text = "The property 'AutoDeleteOnIdle' cannot be set when creating a Queue because the namespace"
    async with bus.administration() as admin:
        error = await fails(HttpResponseError, lambda: admin.create_queue("new", auto_delete_on_idle=10 * MINUTE))
        expect(f"whether {error} has the reason", text in str(error) and "is using 'Basic' tier." in str(error), True)


async def no_time_to_live(bus):
    """A message without a time to live is received without one; a time to live of 0 is rejected (59)."""
    await bus.send("orders", ServiceBusMessage(b"m"))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        expect("time to live", (message.time_to_live, message.expires_at_utc), (None, None))
    none = AmqpAnnotatedMessage(data_body=b"m", header=AmqpMessageHeader(time_to_live=0))
    async with bus.trying_once() as once:
        with expect_error(ServiceBusError, "amqp:internal-error"):
            await once.send("orders", none)
