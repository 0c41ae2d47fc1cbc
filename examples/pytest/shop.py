"""The code under test: a worker that charges orders."""

import itertools

from azure.servicebus import ServiceBusClient


def work(connection_string, charge, orders):
    """Charges so many orders. What is no number is rejected; what the bank does not take comes again."""
    with ServiceBusClient.from_connection_string(connection_string) as client:
        with client.get_queue_receiver("orders", max_wait_time=30) as receiver:
            for order in itertools.islice(receiver, orders):
                try:
                    charge(order.message_id, int(str(order)))
                except ValueError as error:
                    receiver.dead_letter_message(order, reason="NotANumber", error_description=str(error))
                except ConnectionError:
                    receiver.abandon_message(order)
                else:
                    receiver.complete_message(order)
