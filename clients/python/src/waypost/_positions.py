"""What this client wrote last, so that its reads can wait for it."""

from __future__ import annotations

import threading
from typing import Literal

Feed = Literal["events", "fixes"]
"""Where a command is recorded: people's positions have a feed of their own."""


class Positions:
    """The newest position of each feed. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[Feed, str] = {}
        self._last: Feed = "events"

    def learn(self, feed: Feed, position: str) -> None:
        """Record the position from a command."""
        with self._lock:
            self._newest[feed] = _newer(self._newest.get(feed), position)
            self._last = feed

    def wanted(self, feed: Feed) -> str | None:
        """Choose the position that a read waits for.

        Data from fixes also depends on the other feed (who shares a circle), and a request
        waits for one position: the one that was returned last.
        """
        with self._lock:
            return self._newest.get(self._last if feed == "fixes" else "events")

    def forget(self, position: str) -> None:
        """Drop a position that the server no longer knows."""
        with self._lock:
            self._newest = {
                feed: known for feed, known in self._newest.items() if known != position
            }


def _newer(known: str | None, answered: str) -> str:
    """Choose the later of two positions.

    Responses to concurrent commands arrive in any order. Positions are opaque, but those of one
    feed end in a growing number; where that is not so, the later response counts.
    """
    if known is None:
        return answered
    (known_feed, _, known_number), (feed, _, number) = (
        known.rpartition("-"),
        answered.rpartition("-"),
    )
    comparable = known_feed == feed and known_number.isdecimal() and number.isdecimal()
    return known if comparable and int(known_number) > int(number) else answered
