"""The shop's worker, with valid and invalid orders."""

from datetime import timedelta
from typing import Any

import shop
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from servicebus_emulator import ServiceBus

HOUR = 3600


def send(servicebus: ServiceBus, body: str, **options: Any) -> None:
    """Sends an order as a customer would."""
    with ServiceBusClient.from_connection_string(servicebus.connection_string) as client:
        with client.get_queue_sender("orders") as sender:
            sender.send_messages(ServiceBusMessage(body, message_id="o-17", **options))


def happened(servicebus: ServiceBus) -> list[str]:
    """The events of the order, in order."""
    return servicebus.timeline("orders", "o-17").kinds


class Bank:
    """Records the charged orders."""

    def __init__(self) -> None:
        self.charged: list[tuple[str, int]] = []

    def charge(self, order: str, total: int) -> None:
        self.charged.append((order, total))


def test_an_order_is_charged(servicebus):
    bank = Bank()
    send(servicebus, "12")
    shop.work(servicebus.connection_string, bank.charge, deliveries=1)
    assert bank.charged == [("o-17", 12)]
    assert happened(servicebus) == ["sent", "delivered", "completed"]


def test_a_poison_order_is_dead_lettered_with_its_reason(servicebus):
    send(servicebus, "twelve")
    shop.work(servicebus.connection_string, Bank().charge, deliveries=1)
    servicebus.assert_dead_lettered("orders", message_id="o-17", reason="NotANumber")


def test_an_order_that_the_bank_always_rejects_is_dead_lettered(servicebus):
    def refuse(order, total):
        raise ConnectionError

    send(servicebus, "12")
    shop.work(servicebus.connection_string, refuse, deliveries=3)
    servicebus.assert_dead_lettered("orders", message_id="o-17", reason="MaxDeliveryCountExceeded")


def test_a_redelivered_order_is_charged_once(servicebus):
    bank = Bank()
    servicebus.faults.on("complete", entity="orders").lose_lock()  # the first completion is too late
    send(servicebus, "12")
    shop.work(servicebus.connection_string, bank.charge, deliveries=2)
    assert bank.charged == [("o-17", 12)]
    assert happened(servicebus).count("delivered") == 2
    assert servicebus.counts("orders")["active"] == 0


def test_an_order_of_a_worker_that_died_is_redelivered(servicebus):
    bank = Bank()
    send(servicebus, "12")
    with ServiceBusClient.from_connection_string(servicebus.connection_string) as client:
        with client.get_queue_receiver("orders") as receiver:
            assert len(receiver.receive_messages(max_wait_time=30)) == 1
    servicebus.advance(seconds=61)
    shop.work(servicebus.connection_string, bank.charge, deliveries=1)
    assert bank.charged == [("o-17", 12)]
    assert happened(servicebus) == ["sent", "delivered", "clock-advanced", "lock-expired", "delivered", "completed"]


def test_an_offer_ends_after_an_hour(servicebus):
    send(servicebus, "12", time_to_live=timedelta(hours=1))
    servicebus.advance(seconds=HOUR - 60)
    assert servicebus.counts("orders")["active"] == 1
    servicebus.advance(seconds=60)
    assert servicebus.counts("orders")["active"] == 0
    servicebus.assert_dead_lettered("orders", message_id="o-17", reason="TTLExpiredException")
