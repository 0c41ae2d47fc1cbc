"""Celery over kombu: a worker in a separate process runs the tasks."""

import contextlib
import os
import subprocess
import sys
import time

from celery import chain, group
from celery.exceptions import TimeoutError as NoResult

import tasks
from emulator import TIMEOUT, counts, eventually, expect, happened, settled


def result(promise):
    try:
        return promise.get(timeout=TIMEOUT, interval=0.05)
    except NoResult:
        raise AssertionError(f"no result within {TIMEOUT} s") from None


@contextlib.contextmanager
def worker():
    """A worker for the duration of a block; its log is printed if the block fails."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
    log = os.path.join(os.environ["CELERY_RESULTS"], "worker.log")
    with open(log, "w+") as file:
        process = subprocess.Popen([sys.executable, program], stdin=subprocess.PIPE, stdout=file, stderr=file)
        try:
            yield
            process.terminate()
            expect("the worker's exit code", process.wait(TIMEOUT), 0)
        except BaseException:
            file.seek(0)
            print(file.read())
            raise
        finally:
            process.kill()
            process.wait()


def runs():
    expect("sum", result(tasks.add.delay(2, 3)), 5)


def retries():
    expect("attempts before", result(tasks.unlucky.delay()), 2)


def waits():
    """The worker holds a task for later until it is due."""
    due = time.time() + 1
    ran = result(tasks.now.apply_async(countdown=1))
    assert ran >= due - 0.1, f"due at {due}, ran at {ran}"


def acknowledges_late():
    expect("text", result(tasks.late.delay("hello")), "HELLO")
    eventually("completed", lambda: happened("late")["completed"] == 1)


def chained():
    expect("sum", result(chain(tasks.add.s(1, 2), tasks.add.s(3))()), 6)


def grouped():
    expect("sums", result(group(tasks.add.s(n, n) for n in range(3))()), [0, 2, 4])


def fails():
    """A failure is the result of the task; its message is completed like any other."""
    with contextlib.suppress(ValueError):
        result(tasks.fails.delay())
        raise AssertionError("it did not fail")


def leaves_nothing():
    """Every message that Celery sent was completed, and none was delivered twice."""
    settled()
    happenings = happened("celery")
    expect("completed of sent", happenings["completed"], happenings["sent"])
    expect("delivered of sent", happenings["delivered"], happenings["sent"])
    expect("dead letters", counts("celery")["dead_letter"], 0)


CASES = [runs, retries, waits, acknowledges_late, chained, grouped, fails, leaves_nothing]
