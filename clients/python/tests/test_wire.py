"""Retries, keys, positions, errors, pages, exports and feeds: clients/cases/wire.json."""

from __future__ import annotations

from typing import Any

import pytest

from playing import FakeClock, case_id, cases, check_error, client_of, has, invoke, play
from scripted import Scripted
from waypost import WaypostError


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("case", cases("wire"), ids=case_id)
def test_a_script_is_played(case: dict[str, Any], is_async: bool) -> None:
    clock = FakeClock()
    with Scripted(case["exchange"]) as server:

        async def work() -> None:
            client = client_of(case, is_async, server.url, clock)
            for call in case["calls"]:
                await make(client, call)

        play(is_async, work)
        server.check()
    assert clock.waits == case["waits"]


async def make(client: Any, call: dict[str, Any]) -> None:
    expected = call["expect"]
    try:
        result = await invoke(
            client, call["call"], call["arguments"], call.get("options"), call.get("take")
        )
    except WaypostError as error:
        if "error" not in expected:
            raise
        check_error(error, expected["error"])
    else:
        assert "error" not in expected, result
        assert has(result, expected["result"]), result
