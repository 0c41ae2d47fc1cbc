"""Every kind of test that requests `servicebus` has a separate namespace."""

import sys

from pytest import Pytester

FILE = '{"UserConfig":{"Namespaces":[{"Name":"n","Queues":[{"Name":"%s"}]}]}}'


def passes(project: Pytester, tests: str, number: int, *options: str) -> None:
    project.makepyfile(tests)
    project.runpytest_subprocess(*options).assert_outcomes(passed=number)


def test_the_marker_declares_entities_and_settings(project: Pytester) -> None:
    project.maketxtfile(**{"declared": FILE % "from-a-file"})
    tests = """
        from datetime import timedelta
        import pytest
        from servicebus_emulator import EmulatorError, queue, rule, subscription, topic, topology

        high = subscription("high", [rule("high", "price > 10", action="SET tag = 'high'")])

        @pytest.mark.servicebus(
            queues=["plain", queue("strict", max_delivery_count=1, lock_duration=timedelta(seconds=5))],
            topics=[topic("prices", [high, "all"])],
            settings={"Expiry": "on-receive"},
        )
        def test_entities(servicebus):
            for entity in ["plain", "strict", "prices/Subscriptions/high", "prices/Subscriptions/all"]:
                assert servicebus.counts(entity)["active"] == 0
            rule = servicebus.explain("prices/Subscriptions/high", {"price": 3})["high"]
            assert rule["reason"]["expression"] == "price > 10"
            assert servicebus.explain("prices/Subscriptions/high", {"price": 12})["high"]["matched"]

        @pytest.mark.servicebus(topology="declared.txt")
        def test_a_file(servicebus):
            servicebus.counts("from-a-file")

        made = pytest.mark.servicebus(topology=topology(queues=map(str, ["made"])))

        @made
        def test_a_value(servicebus):
            servicebus.counts("made")

        @made
        def test_the_same_value(servicebus):
            servicebus.counts("made")

        @pytest.mark.servicebus(settings={"Tier": "premium"})
        def test_settings_only(servicebus):
            servicebus.counts("queue.1")

        @pytest.mark.servicebus
        def test_nothing(servicebus):
            servicebus.counts("queue.1")

        @pytest.mark.servicebus(topology=None)
        def test_no_topology(servicebus):
            servicebus.counts("queue.1")

        @pytest.mark.servicebus(queues=[])
        def test_no_entities(servicebus):
            with pytest.raises(EmulatorError, match="there is no entity"):
                servicebus.counts("queue.1")
    """
    passes(project, tests, 8)


def test_a_file_beside_the_test_declares_the_topology_unless_the_fixture_does(project: Pytester) -> None:
    project.makefile(".json", topology=FILE % "beside")
    tests = """
        import pytest
        from servicebus_emulator import topology

        def test_beside(servicebus):
            servicebus.counts("beside")

        class TestOverridden:
            @pytest.fixture
            def servicebus_topology(self):
                return topology(queues=["overridden"])

            def test_overridden(self, servicebus):
                servicebus.counts("overridden")

            @pytest.mark.servicebus(queues=["marked"])
            def test_marked(self, servicebus):
                servicebus.counts("marked")
    """
    passes(project, tests, 3)


def test_a_path_that_the_fixture_returns_is_relative_to_the_test(project: Pytester) -> None:
    project.makefile(".json", **{"beside/declared": FILE % "declared"})
    tests = """
        import pytest

        @pytest.fixture
        def servicebus_topology():
            return "declared.json"

        def test_it(servicebus):
            servicebus.counts("declared")
    """
    project.makepyfile(**{"beside/test_it": tests})
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_tests_do_not_share_messages_sessions_or_the_clock(project: Pytester) -> None:
    tests = """
        from datetime import timedelta
        import pytest
        from clients import complete, send
        from servicebus_emulator import queue

        def test_a_message(servicebus):
            send(servicebus, "queue.1")
            complete(servicebus, "queue.1")
            servicebus.wait_idle()
            assert servicebus.timeline("queue.1", "o-17").kinds == ["sent", "delivered", "completed"]

        def test_no_message_of_another(servicebus):
            assert servicebus.counts("queue.1")["active"] == 0
            assert str(servicebus.timeline()) == "  nothing happened"

        def test_time(servicebus):
            servicebus.freeze()
            began = servicebus.now()
            send(servicebus, "queue.1", time_to_live=timedelta(hours=1))
            servicebus.advance(3601)
            assert servicebus.now() - began == timedelta(seconds=3601)
            assert servicebus.counts("queue.1")["active"] == 0
            servicebus.resume()
            servicebus.step_by_itself()
            with servicebus.hold_clock():
                due = servicebus.now() + timedelta(hours=1)
                send(servicebus, "queue.1", scheduled_enqueue_time_utc=due)
                assert servicebus.counts("queue.1")["scheduled"] == 1
            servicebus.expect("queue.1", "message_count", active=1)

        @pytest.mark.servicebus(queues=[queue("carts", requires_session=True)])
        def test_a_session(servicebus):
            send(servicebus, "carts", session_id="cart-7")
            [cart] = servicebus.sessions("carts")
            assert (cart["id"], cart["active"], cart["holder"]) == ("cart-7", 1, None)
            servicebus.reset()
            assert servicebus.sessions("carts") == []

        def test_a_namespace_that_the_test_ends(servicebus):
            assert servicebus.end() is None
    """
    passes(project, tests, 5)


def test_a_test_case_of_unittest_has_the_namespace_as_an_attribute(project: Pytester) -> None:
    tests = """
        import unittest
        import pytest
        from servicebus_emulator import namespace, topology

        @pytest.mark.usefixtures("servicebus")
        class ByTheFixture(unittest.TestCase):
            def test_it(self):
                self.assertEqual(self.servicebus.counts("queue.1")["active"], 0)

        class ByTheContext(unittest.TestCase):
            def test_it(self):
                with namespace(topology(queues=["orders"])) as servicebus:
                    self.assertEqual(servicebus.counts("orders")["active"], 0)
                    servicebus.faults.on("complete").lose_lock().remove()
    """
    passes(project, tests, 2)


def test_unittest_runs_without_pytest(project: Pytester) -> None:
    project.makepyfile(
        test_alone="""
        import unittest
        from servicebus_emulator import namespace

        class Alone(unittest.TestCase):
            def test_it(self):
                with namespace() as servicebus:
                    servicebus.faults.on("complete", entity="queue.1").lose_lock()
        """
    )
    result = project.run(sys.executable, "-m", "unittest")
    result.stderr.fnmatch_lines(
        ['*AssertionError: a fault never fired: {"effect":"lose-lock","entity":"queue.1",*', "FAILED*"]
    )


def test_asynchronous_tests_have_a_namespace(project: Pytester) -> None:
    tests = """
        import asyncio
        from azure.servicebus import ServiceBusMessage
        from azure.servicebus.aio import ServiceBusClient

        async def work(client):
            async with client.get_queue_receiver("queue.1") as receiver:
                async for message in receiver:
                    await receiver.complete_message(message)

        async def test_a_worker_beside_the_test(servicebus):
            async with ServiceBusClient.from_connection_string(servicebus.connection_string) as client:
                worker = asyncio.create_task(work(client))
                await asyncio.to_thread(servicebus.wait_for_receiver, "queue.1")
                async with client.get_queue_sender("queue.1") as sender:
                    await sender.send_messages(ServiceBusMessage("12"))
                await asyncio.to_thread(servicebus.wait_idle)
                assert servicebus.timeline("queue.1").kinds[-1] == "completed"
                worker.cancel()
    """
    passes(project, tests, 1)


def test_each_worker_of_xdist_has_an_emulator(project: Pytester) -> None:
    tests = """
        import os
        import pytest
        from clients import send

        @pytest.mark.parametrize("number", range(4))
        def test_it(servicebus, servicebus_emulator, number):
            send(servicebus, "queue.1")
            assert servicebus.counts("queue.1")["active"] == 1
            with open(os.path.join(os.path.dirname(__file__), "pids"), "a") as file:
                file.write(f"{servicebus_emulator.ready['pid']}\\n")
    """
    passes(project, tests, 4, "-n", "2")
    pids = (project.path / "pids").read_text().split()
    assert len(pids) == 4
    assert len(set(pids)) == 2
