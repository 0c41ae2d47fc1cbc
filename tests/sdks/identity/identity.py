"""Sends, receives and administers with `DefaultAzureCredential`, like a program without settings for an emulator."""

import os

from azure.identity import DefaultAzureCredential
from azure.servicebus import ServiceBusClient, ServiceBusMessage

client = ServiceBusClient(
    os.environ["SERVICEBUS_FULLY_QUALIFIED_NAMESPACE"],
    DefaultAzureCredential(),
    custom_endpoint_address=os.environ["SERVICEBUS_TLS_ENDPOINT"],
    connection_verify=os.environ["SERVICEBUS_CA_FILE"],
)
with client:
    with client.get_queue_sender("queue.1") as sender:
        sender.send_messages(ServiceBusMessage("an order"))
    with client.get_queue_receiver("queue.1") as receiver:
        for message in receiver.receive_messages(max_wait_time=60):
            assert str(message) == "an order", message
            receiver.complete_message(message)
