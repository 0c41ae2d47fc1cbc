"""Each test writes a project and runs pytest in it, as users do; its `clients.py` sends and receives."""

import pytest

pytest_plugins = ["pytester"]

CLIENTS = """
    from azure.servicebus import ServiceBusClient, ServiceBusMessage

    def send(servicebus, entity, body="12", **options):
        with ServiceBusClient.from_connection_string(servicebus.connection_string) as client:
            with client.get_queue_sender(entity) as sender:
                sender.send_messages(ServiceBusMessage(body, message_id="o-17", **options))

    def complete(servicebus, entity):
        with ServiceBusClient.from_connection_string(servicebus.connection_string) as client:
            with client.get_queue_receiver(entity) as receiver:
                [message] = receiver.receive_messages(max_wait_time=30)
                receiver.complete_message(message)
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """An empty project, whose tests run in a separate pytest process."""
    pytester.makepyfile(clients=CLIENTS)
    settings = ["addopts = -p no:cacheprovider", "asyncio_mode = auto", "asyncio_default_fixture_loop_scope = function"]
    pytester.makeini("\n".join(["[pytest]", *settings]))
    return pytester
