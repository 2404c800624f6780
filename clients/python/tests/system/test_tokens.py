"""Tokens that end while they are used."""

from __future__ import annotations

import time
from typing import Any

from conftest import System

from waypost import LiveEvent, Snapshot


def test_tokens_are_renewed_under_calls_and_sockets(system: System) -> None:
    system.post("/waypost/stop")
    system.post("/waypost/start", {"settings": {"WAYPOST_TOKEN_SECONDS": "6"}})
    try:
        with system.person(name="Ada") as ada, ada.subscribe("locations") as positions:
            assert isinstance(next(positions), Snapshot)
            socket: Any = positions._socket
            until = time.monotonic() + 8
            number = 0
            while time.monotonic() < until:
                number += 1
                fix = ada.location.update(number, 0.5)
                told = next(positions)
                assert isinstance(told, LiveEvent)
                assert (told.data["lat"], told.data["recorded_at"]) == (number, fix["recorded_at"])
                time.sleep(0.2)
            assert positions._socket is socket, "it was renewed on the open socket"
    finally:
        system.post("/waypost/stop")
        system.post("/waypost/start", {"settings": {"WAYPOST_TOKEN_SECONDS": "3600"}})
