"""Receives one message and exits without notifying the broker.

    python die_holding_a_lock.py <sync|async> <queue>
"""

import asyncio
import os
import sys

from bus import Bus, receive


async def die(flavour, queue):
    """Exits without closing anything: the system closes the socket."""
    async with Bus.connect(flavour) as bus:
        await receive(bus.receiver(queue))
        os._exit(0)


asyncio.run(die(sys.argv[1], sys.argv[2]))
