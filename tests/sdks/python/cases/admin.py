"""The administration client: entities and rules are created, read, listed, updated and deleted.

Source: the SDK's own tests of its client, spec/admin-http.md. It uses TLS only, with the emulator's
certificate.
"""

import datetime

from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.servicebus import ServiceBusMessage
from azure.servicebus.management import (
    AccessRights,
    AuthorizationRule,
    CorrelationRuleFilter,
    FalseRuleFilter,
    SqlRuleAction,
    SqlRuleFilter,
    TrueRuleFilter,
)

from bus import ENVIRONMENT, body, everything, expect, receive

MINUTE = datetime.timedelta(minutes=1)


async def namespace(bus):
    """The properties of the namespace."""
    async with bus.administration() as admin:
        shown = await admin.get_namespace_properties()
        expect("name", shown.name, "sbemulatorns")
        expect("tier", (shown.messaging_sku, shown.namespace_type), ("Standard", "Messaging"))


async def queues(bus):
    """A queue has the properties it was created with, also if its name contains a slash."""
    rule = AuthorizationRule(
        type="SharedAccessAuthorizationRule",
        claim_type="SharedAccessKey",
        claim_value="None",
        rights=[AccessRights.SEND, AccessRights.LISTEN],
        key_name="mine",
    )
    settings = {
        "lock_duration": datetime.timedelta(seconds=13),
        "max_size_in_megabytes": 3072,
        "requires_duplicate_detection": True,
        "requires_session": True,
        "default_message_time_to_live": datetime.timedelta(days=7),
        "dead_lettering_on_message_expiration": True,
        "duplicate_detection_history_time_window": 12 * MINUTE,
        "max_delivery_count": 14,
        "enable_batched_operations": False,
        "auto_delete_on_idle": 10 * MINUTE,
        "enable_partitioning": True,
        "user_metadata": "a < b & 'c'",
        "status": "Active",
        "enable_express": True,
    }
    async with bus.administration() as admin:
        made = await admin.create_queue("eu/new", authorization_rules=[rule], **settings)
        for shown in (made, await admin.get_queue("eu/new")):
            expect("name", shown.name, "eu/new")
            # Each of the 16 partitions has the requested size (observed 30).
            for name, value in {**settings, "max_size_in_megabytes": 16 * 3072}.items():
                expect(name, getattr(shown, name), value)
            [kept] = shown.authorization_rules
            expect("rule", (kept.key_name, kept.rights), ("mine", ["Send", "Listen"]))
            expect("length of the key", len(kept.primary_key), 44)
        # Observed 25, 27: with sessions and auto-delete on idle, too.
        beside = {"requires_session": True, "auto_delete_on_idle": 10 * MINUTE}
        forwarding = await admin.create_queue("to-orders", forward_to="orders", **beside)
        seen = (forwarding.requires_session, forwarding.auto_delete_on_idle)
        expect("what is beside", seen, (True, 10 * MINUTE))
        expect("target", forwarding.forward_to.rsplit("/", 1)[1], "orders")
        names = [queue.name for queue in await everything(admin.list_queues())]
        expect("names", names, ["eu/new", "failures", "orders", "to-orders"])
        await admin.delete_queue("eu/new")
        names = [queue.name for queue in await everything(admin.list_queues())]
        expect("names", names, ["failures", "orders", "to-orders"])


async def changes(bus):
    """Properties that were read can be changed and written back; properties that are left out are reset."""
    async with bus.administration() as admin:
        await admin.create_queue("new", user_metadata="m", forward_to="orders", requires_duplicate_detection=True)
        queue = await admin.get_queue("new")
        queue.lock_duration = 2 * MINUTE
        queue.forward_to = None
        queue.status = "SendDisabled"
        # Observed 26.
        queue.forward_dead_lettered_messages_to = "new"
        await admin.update_queue(queue)
        queue = await admin.get_queue("new")
        seen = (queue.lock_duration, queue.forward_to, queue.status, queue.user_metadata)
        expect("queue", seen, (2 * MINUTE, None, "SendDisabled", "m"))
        expect("itself", queue.forward_dead_lettered_messages_to.rsplit("/", 1)[1], "new")
        topic = await admin.get_topic("prices")
        topic.default_message_time_to_live = MINUTE
        await admin.update_topic(topic)
        expect("topic", (await admin.get_topic("prices")).default_message_time_to_live, MINUTE)
        subscription = await admin.get_subscription("prices", "all")
        subscription.max_delivery_count = 3
        await admin.update_subscription("prices", subscription)
        expect("subscription", (await admin.get_subscription("prices", "all")).max_delivery_count, 3)


async def topics(bus):
    """Topics with subscriptions; deleting an entity deletes those that it contains."""
    async with bus.administration() as admin:
        await admin.create_topic("new", support_ordering=False, max_size_in_megabytes=2048)
        topic = await admin.get_topic("new")
        expect("topic", (topic.support_ordering, topic.max_size_in_megabytes), (False, 2048))
        made = await admin.create_subscription("new", "One", max_delivery_count=3, requires_session=True)
        expect("subscription", (made.name, made.max_delivery_count, made.requires_session), ("One", 3, True))
        await admin.create_subscription("new", "two", forward_to="orders")
        names = [one.name for one in await everything(admin.list_subscriptions("new"))]
        expect("names", names, ["One", "two"])
        expect("count", (await admin.get_topic_runtime_properties("new")).subscription_count, 2)
        await admin.delete_subscription("new", "two")
        expect("count", (await admin.get_topic_runtime_properties("new")).subscription_count, 1)
        await admin.delete_topic("new")
        names = [topic.name for topic in await everything(admin.list_topics())]
        expect("topics", "new" in names, False)


async def rules(bus):
    """Rules of every kind are returned as they were created."""
    at = datetime.datetime(2020, 7, 5, 11, 12, 13, tzinfo=datetime.timezone.utc)
    values = {"s": "x", "i": 5, "l": 2**40, "b": True, "f": 1.5, "d": at, "t": datetime.timedelta(hours=1)}
    async with bus.administration() as admin:
        where = ("prices", "all")
        [default] = await everything(admin.list_rules(*where))
        expect("default", (default.name, type(default.filter), default.action), ("$Default", TrueRuleFilter, None))
        await admin.create_rule(
            *where,
            "sql",
            filter=SqlRuleFilter("price > @p", {"@p": 10}),
            action=SqlRuleAction("SET mark = @m", {"@m": "x"}),
        )
        await admin.create_rule(
            *where, "correlation", filter=CorrelationRuleFilter(label="l", session_id="s", properties=values)
        )
        await admin.create_rule(*where, "none", filter=FalseRuleFilter())
        sql = await admin.get_rule(*where, "sql")
        expect("filter", (sql.filter.sql_expression, dict(sql.filter.parameters)), ("price > @p", {"@p": 10}))
        expect("action", (sql.action.sql_expression, dict(sql.action.parameters)), ("SET mark = @m", {"@m": "x"}))
        correlation = await admin.get_rule(*where, "correlation")
        expect("system", (correlation.filter.label, correlation.filter.session_id), ("l", "s"))
        expect("properties", dict(correlation.filter.properties), values)
        correlation.filter = SqlRuleFilter("price = 1")
        await admin.update_rule(*where, correlation)
        changed = await admin.get_rule(*where, "correlation")
        expect("changed", changed.filter.sql_expression, "price = 1")
        await admin.delete_rule(*where, "$Default")
        names = [rule.name for rule in await everything(admin.list_rules(*where))]
        expect("names", names, ["correlation", "none", "sql"])


async def pages(bus):
    """More queues than fit in a page are all listed, each once."""
    async with bus.administration() as admin:
        for number in range(203):
            await admin.create_queue(f"many-{number:03}")
        names = [queue.name for queue in await everything(admin.list_queues())]
        expect("names", names, ["failures"] + [f"many-{number:03}" for number in range(203)] + ["orders"])
        counted = await everything(admin.list_queues_runtime_properties())
        expect("runtime properties", [one.name for one in counted], names)


async def counts(bus):
    """The subscription counts dead-lettered messages, the topic counts scheduled ones."""
    async with bus.administration() as admin:
        subscription = await admin.get_subscription("prices", "all")
        subscription.default_message_time_to_live = MINUTE
        subscription.dead_lettering_on_message_expiration = True
        await admin.update_subscription("prices", subscription)
        await bus.publish("prices", [ServiceBusMessage(b"m") for _ in range(62)])
        await bus.advance(61)
        later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        await bus.publish(
            "prices", ServiceBusMessage(b"active"), ServiceBusMessage(b"later", scheduled_enqueue_time_utc=later)
        )
        shown = await admin.get_subscription_runtime_properties("prices", "all")
        seen = (shown.active_message_count, shown.dead_letter_message_count, shown.total_message_count)
        expect("subscription", seen, (1, 62, 63))
        [listed] = [
            one for one in await everything(admin.list_subscriptions_runtime_properties("prices")) if one.name == "all"
        ]
        expect("in a list", listed.dead_letter_message_count, 62)
        expect("whether it was accessed", shown.accessed_at_utc.year > 1, True)
        unused = await admin.get_queue_runtime_properties("failures")
        expect("when an unused one was accessed", unused.accessed_at_utc.year, 1)
        shown = await admin.get_topic_runtime_properties("prices")
        expect("topic", shown.scheduled_message_count, 1)
        expect("whether it holds something", shown.size_in_bytes > 0, True)
        await bus.send("orders", ServiceBusMessage(b"m"))
        shown = await admin.get_queue_runtime_properties("orders")
        expect("queue", (shown.active_message_count, shown.total_message_count), (1, 1))
        expect("order", shown.created_at_utc < shown.updated_at_utc < shown.accessed_at_utc, True)


async def missing(bus):
    """A missing entity is not found, whatever the text of the error."""
    async with bus.administration() as admin:
        for call in (
            lambda: admin.get_queue("missing"),
            lambda: admin.get_topic("missing"),
            lambda: admin.get_subscription("missing", "all"),
            lambda: admin.get_subscription("prices", "missing"),
            lambda: admin.get_rule("prices", "all", "missing"),
            lambda: admin.get_queue_runtime_properties("missing"),
            lambda: admin.delete_queue("missing"),
            lambda: admin.delete_subscription("prices", "missing"),
            lambda: admin.delete_rule("prices", "all", "missing"),
            lambda: admin.create_subscription("missing", "new"),
        ):
            await fails(ResourceNotFoundError, call)
        queue = await admin.get_queue("orders")
        await admin.delete_queue("orders")
        await fails(ResourceNotFoundError, lambda: admin.update_queue(queue))


async def conflicts(bus):
    """A name can be used once."""
    async with bus.administration() as admin:
        for call in (
            lambda: admin.create_queue("ORDERS"),
            lambda: admin.create_topic("orders"),
            lambda: admin.create_queue("prices"),
            lambda: admin.create_subscription("prices", "all"),
            lambda: admin.create_rule("prices", "all", "$Default"),
        ):
            await fails(ResourceExistsError, call)


async def refused(bus):
    """Invalid properties are rejected with the reason."""
    async with bus.administration() as admin:
        for call, text in (
            (lambda: admin.create_queue("new", lock_duration=10 * MINUTE), "'5' minutes"),
            (lambda: admin.create_queue("new", max_delivery_count=0), "MaxDeliveryCount"),
            (lambda: admin.create_queue("new", max_size_in_megabytes=777), "1024;2048;3072;4096;5120"),
            (lambda: admin.create_queue("new", auto_delete_on_idle=MINUTE), "AutoDeleteOnIdle"),
            (lambda: admin.create_queue("new", forward_to="missing"), "doesn't exist"),
            (lambda: admin.create_queue("a b"), "must not contain"),
            (lambda: admin.create_rule("prices", "all", "new", filter=SqlRuleFilter("price >")), "cannot be understood"),
        ):
            error = await fails(HttpResponseError, call)
            expect(f"whether the error has {text}", text in str(error), True)
        queue = await admin.get_queue("orders")
        queue.requires_session = True
        error = await fails(HttpResponseError, lambda: admin.update_queue(queue))
        expect("whether the error has the reason", "RequiresSession property of an existing Queue" in str(error), True)
        await fails(ResourceNotFoundError, lambda: admin.get_queue("new"))


async def wrong_key(bus):
    """A client without a key cannot read or change entities."""
    right = ENVIRONMENT.get()["SERVICEBUS_ADMIN_CONNECTION_STRING"]
    wrong = right.replace("SAS_KEY_VALUE", "wrong")
    async with bus.administration(wrong) as admin:
        await fails(ClientAuthenticationError, lambda: admin.get_queue("orders"))
        await fails(ClientAuthenticationError, lambda: admin.delete_queue("orders"))
        await fails(ClientAuthenticationError, lambda: admin.create_queue("new"))
    async with bus.administration() as admin:
        expect("queue", (await admin.get_queue("orders")).name, "orders")
        await fails(ResourceNotFoundError, lambda: admin.get_queue("new"))


async def used_at_once(bus):
    """Clients send to and receive from a created queue; a deleted queue no longer exists."""
    async with bus.administration() as admin:
        await admin.create_topic("new")
        await admin.create_subscription("new", "one")
        await bus.publish("new", ServiceBusMessage(b"m"))
        async with bus.subscriber("new", "one") as receiver:
            [message] = await receive(receiver)
            expect("body", body(message), b"m")
            await receiver.complete_message(message)
        shown = await admin.get_subscription_runtime_properties("new", "one")
        expect("left", shown.total_message_count, 0)


async def fails(kind, call):
    """Returns the error of a call, which must have exactly this type."""
    try:
        await call()
    except Exception as error:  # the type is checked below
        if type(error) is not kind:
            raise AssertionError(f"expected {kind.__name__}, got {type(error).__name__}: {error}") from error
        return error
    raise AssertionError(f"expected {kind.__name__}, got no error")
