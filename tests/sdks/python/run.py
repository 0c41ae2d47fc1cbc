"""Runs named cases against the emulator through one variant of the Python SDK, in one process.

    python run.py <sync|async>

Every line of standard input is a request, `{"id": 1, "case": "locks.renews", "environment": {…}}`. Each runs on a thread
and an event loop of its own, and is answered by a line on standard output, `{"id": 1, "passed": true, "output": ""}`.
The environment is a case's own: `SERVICEBUS_CONNECTION_STRING`, `SERVICEBUS_CONTROL_URL` (the namespace's part of the
control API), `SERVICEBUS_EXPIRY`, `SERVICEBUS_LOCKS_ON_DETACH`, `SERVICEBUS_CA_FILE` and `SERVICEBUS_TRANSPORT` with its
companion; for administration clients also `SERVICEBUS_ADMIN_CONNECTION_STRING`. The requests decide how many cases run
side by side. A case that hangs is answered with the stack of every thread. The process ends with its standard input.
"""

import asyncio
import importlib
import json
import os
import sys
import threading
import traceback

from bus import ENVIRONMENT, Bus

DEADLINE_SECONDS = 180


class Run:
    """A request: it runs a case, and is answered once, when the case ends or hangs."""

    _answering = threading.Lock()

    def __init__(self, flavour, request, answers):
        self._flavour = flavour
        self._id = request["id"]
        self._case = request["case"]
        self._environment = request["environment"]
        self._answers = answers
        self._is_answered = False
        self._deadline = threading.Timer(DEADLINE_SECONDS, self._give_up)
        self._deadline.daemon = True

    def start(self):
        """Starts a separate thread."""
        self._deadline.start()
        threading.Thread(target=self._run, name=f"case {self._id} {self._case}", daemon=True).start()

    def _run(self):
        ENVIRONMENT.set(self._environment)
        try:
            asyncio.run(self._run_case())
        except BaseException:  # the case reports every exception
            self._answer(False, traceback.format_exc())
        else:
            self._answer(True, "")

    async def _run_case(self):
        """Finds `module.function` among the cases and calls it with a namespace of the variant."""
        module, function = self._case.split(".")
        body = getattr(importlib.import_module(f"cases.{module}"), function)
        async with Bus.connect(self._flavour) as bus:
            await body(bus)

    def _give_up(self):
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        stacks = [
            f"\n{names.get(ident, 'a thread')}\n{''.join(traceback.format_stack(frame))}"
            for ident, frame in sys._current_frames().items()
        ]
        self._answer(False, f"still running after {DEADLINE_SECONDS} s\n{''.join(stacks)}")

    def _answer(self, passed, output):
        self._deadline.cancel()
        with self._answering:
            if not self._is_answered:
                self._is_answered = True
                answer = {"id": self._id, "passed": passed, "output": output}
                print(json.dumps(answer), file=self._answers, flush=True)


def main():
    """Reads requests to the end of standard input; threads of hanging cases do not keep the process running."""
    answers = sys.stdout
    # Other output must not be mistaken for a response.
    sys.stdout = sys.stderr
    for line in sys.stdin:
        Run(sys.argv[1], json.loads(line), answers).start()
    os._exit(0)


if __name__ == "__main__":
    main()
