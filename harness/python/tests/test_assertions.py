"""Each assertion is called with all its fields; the emulator's own tests check what they mean."""

from pytest import MonkeyPatch, Pytester

TESTS = """
    from datetime import datetime, timedelta, timezone

    import pytest
    from azure.servicebus import ServiceBusClient, ServiceBusMessage
    from clients import complete, send
    from servicebus_emulator import contains, queue

    SOON = timedelta(minutes=10)
    QUEUES = ["orders", queue("source", forward_to="target"), "target", queue("carts", requires_session=True)]


    @pytest.mark.servicebus(queues=QUEUES)
    def test_assertions_that_hold(servicebus):
        with ServiceBusClient.from_connection_string(servicebus.connection_string) as client:
            with client.get_queue_sender("carts") as sender:
                sender.send_messages([ServiceBusMessage(step, session_id="s-1") for step in ("add", "pay")])
            with client.get_queue_receiver("carts", session_id="s-1") as cart:
                cart.session.set_state(b'{"open": true}')
            with client.get_queue_sender("orders") as sender:
                for number in range(1, 5):
                    sender.send_messages(ServiceBusMessage('{"total": 12}', message_id=f"o-{number}"))
                sender.schedule_messages(ServiceBusMessage("later"), datetime.now(timezone.utc) + SOON)
            with client.get_queue_receiver("orders") as receiver:
                [first, second, third, fourth] = receiver.receive_messages(4, 30)
                receiver.renew_message_lock(first)
                receiver.complete_message(first)
                receiver.dead_letter_message(second, reason="Rejected", error_description="total is negative")
                receiver.defer_message(third)
                receiver.abandon_message(fourth)
                servicebus.assert_attached("orders", count=1)
            with client.get_queue_sender("source") as sender:
                sender.send_messages(ServiceBusMessage("x", time_to_live=timedelta(seconds=9)))
        servicebus.assert_completed("orders", message_id="o-1", body_json={"total": 12}, count=1)
        servicebus.assert_not_completed("orders", body=contains("13"))
        servicebus.assert_completed("orders", body=b'{"total": 12}', count=1)
        servicebus.assert_completed("orders", body=contains(b"12"), count=1)
        servicebus.assert_dead_lettered("orders", reason="Rejected", description=contains("negative"))
        servicebus.assert_not_dead_lettered("orders", reason="TTLExpiredException")
        servicebus.assert_deferred("orders", message_id="o-3")
        servicebus.assert_not_deferred("orders", message_id="o-4")
        servicebus.assert_abandoned("orders", times=1)
        servicebus.assert_not_abandoned("orders", message_id="o-1")
        servicebus.assert_delivered("orders", at_least=4)
        servicebus.assert_not_delivered("target")
        servicebus.assert_lock_renewed("orders", message_id="o-1")
        servicebus.assert_lock_not_renewed("orders", message_id="o-2")
        servicebus.assert_scheduled("orders", due_in=SOON, tolerance=60)
        servicebus.assert_scheduled("orders", at=datetime.now(timezone.utc).replace(tzinfo=None) + SOON, tolerance=60)
        servicebus.assert_not_scheduled("orders", due_in=5)
        servicebus.assert_forwarded("source", to="target")
        servicebus.assert_not_forwarded("source", to="orders")
        servicebus.assert_unsettled_sends("source", at_most=1)
        servicebus.assert_message_count("orders", active=2, dead_letter=1, scheduled=1)
        servicebus.assert_empty("source")
        servicebus.assert_session_order("carts", "s-1", ["add", contains("pa")])
        servicebus.assert_session_state("carts", "s-1", json={"open": True})
        servicebus.assert_session_state("carts", "s-1", bytes=b'{"open": true}')
        servicebus.assert_not_expired("target")
        servicebus.advance(10)
        servicebus.assert_expired("target", count=1)


    def test_a_failure_has_the_timeline_and_a_hint(servicebus):
        send(servicebus, "queue.1")
        with pytest.raises(AssertionError) as failed:
            servicebus.assert_completed("queue.1", message_id="o-17", within=0)
        failure = str(failed.value)
        assert failure.startswith('queue.1: expected 1 message completed with message id "o-17", found none within 0 s')
        assert "\\ntimeline of o-17 in queue.1\\n" in failure
        assert failure.endswith("hint: o-17 was never received: no client is attached to queue.1")
        complete(servicebus, "queue.1")
        servicebus.expect("queue.1", "completed", message_id="o-17")


    def test_bytes_are_decoded_as_utf_8(servicebus):
        send(servicebus, "queue.1")
        complete(servicebus, "queue.1")
        with pytest.raises(AssertionError, match="expected no message completed"):
            servicebus.assert_not_completed("queue.1", body=b"12")
        with pytest.raises(TypeError, match="^body is the bytes ff, which are not UTF-8; it takes a text$"):
            servicebus.assert_not_completed("queue.1", body=b"\\xff")
        with pytest.raises(TypeError, match="^body_json contains bytes, which JSON does not have; it takes JSON$"):
            servicebus.assert_not_completed("queue.1", body_json=b"12")
        with pytest.raises(TypeError, match='^bodies is "12"; it takes a list of texts$'):
            servicebus.assert_session_order("queue.1", "s-1", "12")


    def test_a_duration_is_seconds_or_a_timedelta(servicebus):
        servicebus.freeze()
        servicebus.faults.on("send").delay(timedelta(seconds=90)).remove()
        servicebus.faults.on("send").apply("delay", seconds=timedelta(seconds=90)).remove()
        began = servicebus.now()
        servicebus.advance(timedelta(minutes=2))
        assert servicebus.now() - began == timedelta(minutes=2)
        servicebus.wait_idle(within=timedelta(seconds=1))
        with pytest.raises(AssertionError, match="within 0.02 s"):
            servicebus.wait_for_receiver("queue.1", within=timedelta(milliseconds=20))
"""


def test_each_assertion_holds_and_a_failure_explains_itself(project: Pytester, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")  # A time without a zone is in UTC all the same.
    project.makepyfile(TESTS)
    project.runpytest_subprocess().assert_outcomes(passed=4)
