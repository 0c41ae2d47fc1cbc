"""Manages a namespace with `azure-mgmt-servicebus`, with only a credential and an endpoint."""

import sys
from datetime import timedelta

from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.mgmt.servicebus import ServiceBusManagementClient
from azure.mgmt.servicebus.models import (
    CorrelationFilter,
    RegenerateAccessKeyParameters,
    Rule,
    SBAuthorizationRule,
    SBQueue,
    SBSubscription,
    SBTopic,
    SqlFilter,
)
from azure.servicebus import ServiceBusClient, ServiceBusMessage


class Anyone:
    """A credential of a test: its token is not a JSON web token."""

    def get_token(self, *scopes, **kwargs):
        return AccessToken("anyone", 4_000_000_000)


def main(endpoint, authority, connection_string, group="rg", namespace="sbemulatorns"):
    client = ServiceBusManagementClient(
        Anyone(), "00000000-0000-0000-0000-000000000001", base_url=endpoint, connection_verify=authority
    )
    own = (group, namespace)
    assert client.namespaces.get(*own).sku.name == "Standard"
    assert [found.name for found in client.namespaces.list()] == [namespace]
    queues(client, own, connection_string)
    topics(client, own)
    keys(client, own)
    refusals(client, own)


def queues(client, own, connection_string):
    made = client.queues.create_or_update(*own, "orders", SBQueue(lock_duration=timedelta(seconds=30), max_delivery_count=3))
    assert str(made.lock_duration) == "0:00:30" and made.max_delivery_count == 3, made
    with ServiceBusClient.from_connection_string(connection_string) as bus:
        with bus.get_queue_sender("orders") as sender:
            sender.send_messages([ServiceBusMessage("one"), ServiceBusMessage("two")])
        with bus.get_queue_receiver("orders") as receiver:
            for message in receiver.receive_messages(max_message_count=1, max_wait_time=60):
                receiver.dead_letter_message(message, reason="Rejected")
    shown = client.queues.get(*own, "orders")
    counts = shown.count_details
    assert (counts.active_message_count, counts.dead_letter_message_count) == (1, 1), counts
    assert shown.message_count == 2, shown
    shown.max_delivery_count = 4
    assert client.queues.create_or_update(*own, "orders", shown).max_delivery_count == 4
    for number in range(5):
        client.queues.create_or_update(*own, f"page-{number}", SBQueue())
    names = [queue.name for queue in client.queues.list_by_namespace(*own, top=2)]
    assert names == ["orders", *(f"page-{number}" for number in range(5)), "queue.1"], names
    client.queues.delete(*own, "orders")
    client.queues.delete(*own, "orders")


def topics(client, own):
    client.topics.create_or_update(*own, "events", SBTopic(enable_batched_operations=True))
    client.subscriptions.create_or_update(*own, "events", "billing", SBSubscription(requires_session=True))
    names = lambda: [rule.name for rule in client.rules.list_by_subscriptions(*own, "events", "billing")]
    assert names() == ["$Default"], names()
    rule = Rule(filter_type="SqlFilter", sql_filter=SqlFilter(sql_expression="amount > 10"))
    made = client.rules.create_or_update(*own, "events", "billing", "large", rule)
    assert made.sql_filter.sql_expression == "amount > 10", made
    assert names() == ["large"], names()
    paid = CorrelationFilter(label="paid", properties={"tier": "gold"})
    rule = Rule(filter_type="CorrelationFilter", correlation_filter=paid)
    made = client.rules.create_or_update(*own, "events", "billing", "paid", rule)
    assert made.correlation_filter.properties == {"tier": "gold"}, made
    assert client.topics.get(*own, "events").subscription_count == 1
    client.rules.delete(*own, "events", "billing", "large")
    assert names() == ["paid"], names()
    client.subscriptions.delete(*own, "events", "billing")
    client.topics.delete(*own, "events")


def keys(client, own):
    client.namespaces.create_or_update_authorization_rule(*own, "sender", SBAuthorizationRule(rights=["Send"]))
    found = client.namespaces.list_keys(*own, "sender")
    with ServiceBusClient.from_connection_string(found.primary_connection_string) as bus:
        with bus.get_queue_sender("queue.1") as sender:
            sender.send_messages(ServiceBusMessage("by a key of its own"))
    again = client.namespaces.regenerate_keys(*own, "sender", RegenerateAccessKeyParameters(key_type="PrimaryKey"))
    assert again.primary_key != found.primary_key and again.secondary_key == found.secondary_key
    assert client.queues.get(*own, "queue.1").message_count == 1
    client.queues.create_or_update_authorization_rule(*own, "queue.1", "reader", SBAuthorizationRule(rights=["Listen"]))
    rules = [rule.name for rule in client.queues.list_authorization_rules(*own, "queue.1")]
    assert rules == ["reader"], rules
    client.namespaces.delete_authorization_rule(*own, "sender")


def refusals(client, own):
    for operation, status, code in [
        (lambda: client.queues.get(*own, "nowhere"), 404, "MessagingGatewayNotFoundStatusCode"),
        (lambda: client.queues.create_or_update(*own, "q", SBQueue(lock_duration=timedelta(hours=1))), 400, "MessagingGatewayBadRequest"),
        (lambda: client.namespaces.get("rg", "elsewhere"), 404, "ResourceNotFound"),
        (lambda: client.subscriptions.create_or_update(*own, "nowhere", "s", SBSubscription()), 404, "MessagingGatewayNotFoundStatusCode"),
    ]:
        try:
            operation()
            raise SystemExit(f"{code} was not raised")
        except HttpResponseError as error:
            assert (error.status_code, error.error.code) == (status, code), error


main(*sys.argv[1:])
