"""The code under test: a worker that charges orders."""

from collections.abc import Callable
from itertools import islice

from azure.servicebus import ServiceBusClient
from azure.servicebus.exceptions import MessageLockLostError


def work(connection_string: str, charge: Callable[[str, int], None], deliveries: int) -> None:
    """Handles this number of deliveries of orders, and charges each order once.

    An order without a number is dead-lettered; an order that the bank rejects is abandoned and delivered again.
    """
    charged = set()
    with ServiceBusClient.from_connection_string(connection_string) as client:
        with client.get_queue_receiver("orders", max_wait_time=30) as receiver:
            for order in islice(receiver, deliveries):
                try:
                    if order.message_id not in charged:
                        charge(str(order.message_id), int(str(order)))
                        charged.add(order.message_id)
                    receiver.complete_message(order)
                except ValueError as error:
                    receiver.dead_letter_message(order, reason="NotANumber", error_description=str(error))
                except ConnectionError:
                    receiver.abandon_message(order)
                except MessageLockLostError:
                    pass  # The order is delivered again, and is known then.
