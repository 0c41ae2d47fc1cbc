"""Reports of failing tests, and errors for invalid input."""

import socket
import sys
import time
from unittest import SkipTest

import pytest
from pytest import Pytester

from servicebus_emulator.namespace import namespace, parsed
from servicebus_emulator.process import release

EMPTY_TEST = "def test_it(servicebus): pass"
ONE_FAULT = """
    from clients import complete, send

    def test_it(servicebus):
        send(servicebus, "queue.1")
        servicebus.faults.on("{operation}", entity="queue.1").lose_lock()
        {last}
"""


def fails(project: Pytester, tests: str, *lines: str) -> pytest.RunResult:
    """Runs tests that must fail, and expects lines of the output in this order."""
    project.makepyfile(tests)
    result = project.runpytest_subprocess("-q")
    assert result.ret == 1
    result.stdout.fnmatch_lines([pattern.replace("[", "[[]") for pattern in lines])
    return result


def test_the_report_of_a_failing_test_has_its_timeline(project: Pytester) -> None:
    tests = """
        from datetime import timedelta
        from clients import send

        def test_it(servicebus):
            send(servicebus, "queue.1", time_to_live=timedelta(hours=1))
            servicebus.advance(seconds=3600)
            assert servicebus.counts("queue.1")["active"] == 1
    """
    fails(
        project,
        tests,
        "E       assert 0 == 1",
        "-* timeline of test-1 -*",
        "  +* s *sent *o-17, by SBSender-*, in queue.1",
        "  *clock advanced  by the test, 3600 s",
        "  +3600.* s expired *o-17, in queue.1",
    )


def test_the_report_of_a_failing_set_up_has_the_timeline(project: Pytester) -> None:
    tests = """
        import pytest
        from clients import send

        @pytest.fixture
        def orders(servicebus):
            send(servicebus, "queue.1")
            servicebus.faults.on("complete").lose_reply()
            raise ValueError("no orders")

        def test_it(orders): pass
    """
    result = fails(project, tests, "E *ValueError: no orders", "-* timeline of test-1 -*", "  +* s *sent *o-17, *")
    result.assert_outcomes(errors=1)


def test_the_error_of_a_failing_block_has_the_timeline(project: Pytester) -> None:
    tests = """
        from clients import send
        from servicebus_emulator import namespace

        def test_it():
            with namespace() as servicebus:
                send(servicebus, "queue.1")
                servicebus.faults.on("complete").lose_reply()
                raise ValueError("no orders")
    """
    fails(project, tests, "E *ValueError: no orders", "E *timeline of test-1", "E *  +* s *sent *o-17, *")


def test_only_an_exception_gets_the_timeline_of_its_block() -> None:
    raised = [ValueError("a"), ValueError(), ValueError("a", "b"), SkipTest("a"), SystemExit("a")]
    before = [error.args for error in raised]
    for error in raised:
        with pytest.raises(type(error)), namespace():
            raise error
    if sys.version_info >= (3, 11):
        assert [len(getattr(error, "__notes__", [])) for error in raised] == [1, 1, 1, 0, 0]
        assert [error.args for error in raised] == before
    else:
        assert "timeline of" in str(raised[0])
        assert [error.args for error in raised[1:]] == before[1:]


def test_a_failed_assertion_shows_what_happened_instead(project: Pytester) -> None:
    tests = """
        from clients import complete, send

        def test_it(servicebus):
            send(servicebus, "queue.1")
            complete(servicebus, "queue.1")
            servicebus.assert_completed("queue.1", message_id="o-17")
            servicebus.assert_dead_lettered("queue.1", message_id="o-17", within=0.1)

        def test_a_field_that_does_not_exist(servicebus):
            servicebus.assert_completed("queue.1", colour="red")

        def test_an_assertion_that_does_not_exist(servicebus):
            servicebus.expect("queue.1", "dead-leterd")
    """
    fails(
        project,
        tests,
        '>*servicebus.assert_dead_lettered("queue.1", message_id="o-17", within=0.1)',
        'E*AssertionError: queue.1: expected 1 message dead-lettered with message id "o-17", found none within 0.1 s',
        "E*queue.1/$DeadLetterQueue is empty",
        "E*timeline of o-17 in queue.1",
        "E* sent *by SBSender-*",
        "E* delivered *",
        "E* completed *",
        'E*TypeError: the assertion completed takes no "colour"; it takes kind, entity, within, message_id, *',
        'E*TypeError: there is no assertion "dead-leterd"; did you mean "dead_lettered"? There are *',
    )


def test_a_fault_that_never_fired_fails_its_test(project: Pytester) -> None:
    fails(
        project,
        ONE_FAULT.format(operation="complete", last=""),
        'a fault never fired: {"effect":"lose-lock","entity":"queue.1",*"operation":"complete","times":1}',
        "  no completion came",
        "  scripted at *test_a_fault_that_never_fired_fails_its_test.py:5",
        "hint: let the test perform the operation of the fault, or remove the fault",
        "timeline of test-1",
        "  +* sent *",
    ).assert_outcomes(passed=1, errors=1)


def test_a_fault_that_never_fired_fails_a_test_that_ends_its_namespace(project: Pytester) -> None:
    tests = """
        from servicebus_emulator import namespace

        def test_fixture(servicebus):
            servicebus.faults.on("complete").lose_lock()
            assert "never fired" in servicebus.end()

        def test_block():
            with namespace() as servicebus:
                servicebus.faults.on("complete").lose_lock()
                servicebus.end()

        def test_failing_later(servicebus):
            servicebus.faults.on("complete").lose_lock()
            assert servicebus.end() is None

        def test_failing_later_without_a_problem(servicebus):
            servicebus.end()
            raise ValueError("another")
    """
    result = fails(
        project,
        tests,
        "_* ERROR at teardown of test_fixture _*",
        "a fault never fired: *",
        "_* test_block _*",
        "E *AssertionError: a fault never fired: *",
        "_* test_failing_later _*",
        "-* timeline of test-* -*",
        "a fault never fired: *",
        "_* test_failing_later_without_a_problem _*",
        "E *ValueError: another",
    )
    result.assert_outcomes(passed=1, failed=3, errors=1)


def test_a_fault_that_never_fired_shows_similar_operations(project: Pytester) -> None:
    tests = """
        import pytest
        from clients import send

        @pytest.mark.servicebus(queues=["a", "b"])
        def test_it(servicebus):
            servicebus.faults.on("send", entity="a", nth=2).reject("amqp:not-allowed")
            servicebus.faults.on("send", entity="a", message_id="x").server_busy()
            send(servicebus, "a")
            send(servicebus, "b")
    """
    near = [
        "  only 1 send came, and 1 in other entities",
        "  1 send came, without what was asked for, and 1 in other entities",
    ]
    fails(project, tests, *near)


def test_no_failure_for_a_fault_that_fired_or_was_removed_or_whose_test_failed_or_was_skipped(
    project: Pytester,
) -> None:
    tests = """
        import pytest
        from azure.servicebus.exceptions import MessageLockLostError
        from clients import complete, send

        def test_fired(servicebus):
            send(servicebus, "queue.1")
            late = servicebus.faults.on("complete", entity="queue.1").lose_lock()
            with pytest.raises(MessageLockLostError):
                complete(servicebus, "queue.1")
            assert late.hits == 1

        def test_removed(servicebus):
            servicebus.faults.on("complete").lose_reply().remove()

        def test_failing(servicebus):
            servicebus.faults.on("complete").lose_reply()
            raise ValueError("another")

        def test_skipped(servicebus):
            servicebus.faults.on("complete").lose_reply()
            pytest.skip("not here")
    """
    fails(project, tests, "E       ValueError: another").assert_outcomes(passed=2, failed=1, skipped=1)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ('on("complete", colour=1).lose_lock()', "*unknown field `colour`, expected one of `operation`, *"),
        ('on("complet").lose_lock()', "*operation*complet*"),
        ('on("send").apply("lose-lok")', "*lose-lok*"),
    ],
)
def test_an_invalid_fault_has_a_readable_error(project: Pytester, request_: str, error: str) -> None:
    tests = f"def test_it(servicebus): servicebus.faults.{request_}"
    fails(project, tests, f"E*EmulatorError: {error}")


@pytest.mark.parametrize(
    ("marker", "error"),
    [
        ("queue=['a']", "@pytest.mark.servicebus takes queues, topics, settings, topology by their names, not 'queue'"),
        ("['a']", "@pytest.mark.servicebus takes queues, topics, settings, topology by their names, not ['a']"),
        (
            "queues=[queue('a', max_deliveries=3), queue('b', lock_duration='PT1S')]",
            'the topology cannot be served: *.Queues[0].Properties.MaxDeliveries *did you mean "MaxDeliveryCount"?; '
            '*.Queues[1].Properties.LockDuration "PT1S": 5 s (PT5S) to 5 min (PT5M)',
        ),
        ("queues='orders'", 'queues is a list: ["orders"], not "orders"'),
        (
            "topology='none.json', settings={'Tier': 'premium'}",
            "@pytest.mark.servicebus takes a topology, or queues, topics and settings, not both",
        ),
        ("queues=map(str, 'ab')", "queues is a list, not <map object at *>, which the first test would use up"),
        (
            "topology=['a']",
            "a topology is the result of `topology(…)` or the path of a configuration file, not ['a']; *",
        ),
        ("topology='none.json'", "*No such file or directory: '*none.json'"),
    ],
)
def test_an_invalid_topology_has_a_readable_error(project: Pytester, marker: str, error: str) -> None:
    tests = f"""
        import pytest
        from servicebus_emulator import queue

        @pytest.mark.servicebus({marker})
        def test_it(servicebus): pass
    """
    result = fails(project, tests, "_* ERROR at setup of test_it _*", error)
    assert "Traceback" not in result.stdout.str() and "During handling" not in result.stdout.str()


def test_without_a_program_the_error_says_how_to_build_one(project: Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERVICEBUS_EMULATOR_BIN", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    project.makeconftest("import servicebus_emulator.process as it\nit.installed = lambda: None")
    fails(
        project,
        EMPTY_TEST,
        "this installation has no emulator for * on *, and PATH has none: build it with "
        "`cargo build --release -p servicebus-emulator` and set SERVICEBUS_EMULATOR_BIN to the program",
    )


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (
            "/nowhere/emulator",
            "SERVICEBUS_EMULATOR_BIN is /nowhere/emulator, which is not an executable file: correct the path, or *",
        ),
        (
            "true",
            "the emulator did not start: */true is not the emulator's program; check `servicebus_options` and *_BIN",
        ),
        ("cat", "the emulator did not start: *cat: unrecognized option *; check `servicebus_options` and *_BIN"),
    ],
)
def test_a_program_that_is_not_the_emulator_is_an_error(
    project: Pytester, monkeypatch: pytest.MonkeyPatch, program: str, error: str
) -> None:
    monkeypatch.setenv("SERVICEBUS_EMULATOR_BIN", program)
    fails(project, EMPTY_TEST, error)


def test_the_reason_of_a_failed_start_is_not_a_line_of_the_log(
    project: Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = project.path / "program"
    log_line = "2026-11-30T05:49:25.123456Z  WARN servicebus_emulator: slow"
    program.write_text(f"#!/bin/sh\necho '{log_line}' >&2\necho 'a reason' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("SERVICEBUS_EMULATOR_BIN", str(program))
    fails(project, EMPTY_TEST, "the emulator did not start: a reason; check `servicebus_options` and *_BIN")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("sleep 60 & wait", "it was not ready within 3 s"),
        ("echo wrong >&2; echo not ready; sleep 60 & wait", "wrong"),
        (
            """echo '{"event":"ready","version":"9.9.9"}'; exec cat""",
            "*/program is version 9.9.9, but this package is version *.*",
        ),
    ],
)
def test_a_script_that_is_not_the_emulator_is_refused_in_time(
    project: Pytester, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    program = project.path / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("SERVICEBUS_EMULATOR_BIN", str(program))
    project.makeconftest("import servicebus_emulator.process as it\nit.START_SECONDS = 3")
    began = time.monotonic()
    fails(project, EMPTY_TEST, f"the emulator did not start: {reason}; check `servicebus_options` and *_BIN")
    assert time.monotonic() - began < 30


def test_times_have_any_number_of_digits() -> None:
    times = ["2026-11-30T20:15:24Z", "2026-11-30T20:15:24.19Z", "2026-11-30T20:15:24.1234567Z"]
    assert [parsed(time).microsecond for time in times] == [0, 190_000, 123_456]


def test_versions_of_python_and_cargo_are_compared_by_their_numbers() -> None:
    versions = ["0.2.0", "0.2.0-rc.1", "0.2.0rc1", "0.2.0.dev1"]
    assert [release(version) for version in versions] == ["0.2.0"] * 4


def test_variables_for_another_emulator_are_ignored(project: Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"DATA": "/dev/null/data", "CONFIG": "none.json", "HTTPS_PORT": "1", "CONTROL_TOKEN": "secret"}
    for name, value in settings.items():
        monkeypatch.setenv(f"SERVICEBUS_EMULATOR_{name}", value)
    project.makepyfile(EMPTY_TEST)
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_port_in_use_has_a_readable_error(project: Pytester) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        project.makeini(f"[pytest]\nservicebus_options = --amqp-port {port}\n")
        fails(
            project,
            EMPTY_TEST,
            f"the emulator did not start: cannot listen on 127.0.0.1:{port}: Address already in use *",
        )


def test_an_unknown_option_has_a_readable_error(project: Pytester) -> None:
    project.makeini("[pytest]\nservicebus_options = --amqp-prot 1\n")
    fails(project, EMPTY_TEST, "the emulator did not start: *; check `servicebus_options` and SERVICEBUS_EMULATOR_BIN")


def test_the_error_of_an_option_has_its_values(project: Pytester) -> None:
    project.makeini("[pytest]\nservicebus_options = --tier gold\n")
    values = "[possible values: basic, standard, premium]"
    fails(project, EMPTY_TEST, f"the emulator did not start: error: *'gold'* {values}; check `servicebus_options` *")


def test_without_a_certificate_authority_the_error_names_the_option(project: Pytester) -> None:
    tests = """
        def test_it(servicebus, monkeypatch):
            monkeypatch.setitem(servicebus.emulator.ready, "ca_certificate", None)
            print(servicebus.ca_certificate)
    """
    fails(project, tests, "E*EmulatorError: the emulator has no directory *: pass `--tls-directory DIR`")


def test_a_request_to_a_stopped_emulator_has_a_readable_error(project: Pytester) -> None:
    tests = """
        from servicebus_emulator import Emulator, namespace

        def test_it():
            emulator = Emulator()
            emulator.stop()
            with namespace(emulator=emulator):
                pass
    """
    fails(project, tests, "E*EmulatorError: the emulator exited with code 0 during the test run: start the run again*")


def test_an_emulator_that_dies_fails_its_test_and_later_ones_with_a_readable_error(project: Pytester) -> None:
    tests = """
        import os
        import signal
        from clients import send

        def test_it(servicebus, servicebus_emulator):
            send(servicebus, "queue.1")
            os.kill(servicebus_emulator.ready["pid"], signal.SIGKILL)
            servicebus.counts("queue.1")

        def test_next(servicebus):
            pass
    """
    error = "*the emulator was ended by SIGKILL during the test run: start the run again *"
    fails(project, tests, "*ERROR at setup of test_next*", error, "*FAILURES*", error)
