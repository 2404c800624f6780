"""Follows everything that happens, with asyncio, and resumes where it stopped the last time.

WAYPOST_URL and WAYPOST_KEY name the system and a key with the scope events:read. The optional
argument is the number of events after which to end.
"""

import asyncio
import os
import sys
from pathlib import Path

from waypost import AsyncWaypost

PLACE = Path("follow_events.position")


async def main(most: int | None) -> None:
    after = PLACE.read_text() if PLACE.exists() else None
    async with AsyncWaypost(os.environ["WAYPOST_URL"], os.environ["WAYPOST_KEY"]) as waypost:
        async for event in waypost.events.follow(after=after, limit=most):
            print(event["time"], event["type"], event["subject"])
            # Only once it is handled, so that nothing is skipped after a crash.
            PLACE.write_text(event["position"])


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else None))
