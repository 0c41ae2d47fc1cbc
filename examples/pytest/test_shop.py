"""What the shop's worker does with orders, good and bad."""

from datetime import timedelta

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue

import shop

HOUR = 3600


def send(servicebus, body, **options):
    """Sends an order as a customer would."""
    with ServiceBusClient.from_connection_string(servicebus.connection_string) as client:
        with client.get_queue_sender("orders") as sender:
            sender.send_messages(ServiceBusMessage(body, message_id="o-17", **options))


def test_an_order_is_charged(servicebus):
    charged = []
    send(servicebus, "12")
    shop.work(servicebus.connection_string, lambda *order: charged.append(order), orders=1)
    assert charged == [("o-17", 12)]
    assert servicebus.timeline("orders", "o-17") == ["sent", "delivered", "completed"]


def test_a_poison_order_is_dead_lettered_with_its_reason(servicebus):
    send(servicebus, "twelve")
    shop.work(servicebus.connection_string, charge=None, orders=1)
    assert servicebus.counts("orders")["dead_letter"] == 1
    with ServiceBusClient.from_connection_string(servicebus.connection_string) as client:
        with client.get_queue_receiver("orders", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead_letters:
            assert [letter.dead_letter_reason for letter in dead_letters.peek_messages()] == ["NotANumber"]


def test_an_order_that_the_bank_never_takes_is_given_up(servicebus):
    def refuse(order, total):
        raise ConnectionError

    send(servicebus, "12")
    shop.work(servicebus.connection_string, refuse, orders=3)
    assert servicebus.timeline("orders", "o-17").count("abandoned") == 3
    assert servicebus.counts("orders/$DeadLetterQueue")["active"] == 1


def test_an_order_of_a_worker_that_died_comes_again(servicebus):
    charged = []
    send(servicebus, "12")
    with ServiceBusClient.from_connection_string(servicebus.connection_string) as client:
        with client.get_queue_receiver("orders") as receiver:
            assert len(receiver.receive_messages(max_wait_time=30)) == 1
    servicebus.advance(seconds=61)
    shop.work(servicebus.connection_string, lambda *order: charged.append(order), orders=1)
    assert charged == [("o-17", 12)]
    happened = ["sent", "delivered", "clock-advanced", "lock-expired", "delivered", "completed"]
    assert servicebus.timeline("orders", "o-17") == happened


def test_an_offer_ends_after_an_hour(servicebus):
    send(servicebus, "12", time_to_live=timedelta(hours=1))
    servicebus.advance(seconds=HOUR - 60)
    assert servicebus.counts("orders")["active"] == 1
    servicebus.advance(seconds=60)
    assert servicebus.counts("orders")["active"] == 0
    assert servicebus.counts("orders")["dead_letter"] == 1
