"""Runs one named case against the emulator through one flavour of the Python SDK.

    python run.py <sync|async> <case>        for example: python run.py async locks.renews

Reads `SERVICEBUS_CONNECTION_STRING`, `SERVICEBUS_CONTROL_URL` (the namespace's part of the
control API), `SERVICEBUS_EXPIRY`, `SERVICEBUS_LOCKS_ON_DETACH` and `SERVICEBUS_DOOR` with its companions;
administration clients also `SERVICEBUS_ADMIN_CONNECTION_STRING` and `SERVICEBUS_CA_FILE`. Exits 0 when the case holds,
else prints what differed. A case that hangs ends itself, with the stack of every thread.
"""

import asyncio
import faulthandler
import importlib
import sys
import traceback

from bus import Bus

DEADLINE_SECONDS = 180


async def run(flavour, case):
    """Finds `module.function` among the cases and gives it a bus of the flavour."""
    module, function = case.split(".")
    body = getattr(importlib.import_module(f"cases.{module}"), function)
    async with Bus.connect(flavour) as bus:
        await body(bus)


def main():
    """Turns the outcome of the case into an exit code that no lingering thread can hold up."""
    _, flavour, case = sys.argv
    faulthandler.dump_traceback_later(DEADLINE_SECONDS, exit=True)
    try:
        asyncio.run(run(flavour, case))
    except Exception:  # whatever it is, it is what the case has to report
        traceback.print_exc()
        print(f"python {flavour}, {case}: failed")
        return 1
    print(f"python {flavour}, {case}: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
