"""Tokens that expire while in use."""

from __future__ import annotations

import time
from typing import Any

from conftest import System

from waypost import LiveEvent, Snapshot

# A token is renewed when a fifth of this is left, which a busy machine must not miss.
SECONDS = 20


def test_tokens_are_renewed_under_calls_and_sockets(system: System) -> None:
    system.post("/waypost/stop")
    system.post("/waypost/start", {"settings": {"WAYPOST_TOKEN_SECONDS": str(SECONDS)}})
    try:
        with system.person(name="Ada") as ada, ada.subscribe("locations") as positions:
            assert isinstance(next(positions), Snapshot)
            socket: Any = positions._socket
            until = time.monotonic() + SECONDS * 1.2
            number = 0
            while time.monotonic() < until:
                number += 1
                fix = ada.location.update(number / 8, 0.5)
                item = next(positions)
                assert isinstance(item, LiveEvent)
                assert (item.data["lat"], item.data["recorded_at"]) == (
                    number / 8,
                    fix["recorded_at"],
                )
                time.sleep(0.2)
            assert positions._socket is socket, "it was renewed on the open socket"
    finally:
        system.post("/waypost/stop")
        system.post("/waypost/start", {"settings": {"WAYPOST_TOKEN_SECONDS": "3600"}})
