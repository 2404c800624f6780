"""The request that each method sends, and its result: clients/cases/requests.json."""

from __future__ import annotations

from typing import Any

import pytest

from playing import FakeClock, case_id, cases, client_of, has, invoke, play
from scripted import Scripted


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("case", cases("requests"), ids=case_id)
def test_a_method_sends_its_request(case: dict[str, Any], is_async: bool) -> None:
    exchange = [{"request": case["request"], "answer": case["answer"]}]
    with Scripted(exchange, strict=True) as server:

        async def work() -> None:
            client = client_of(case, is_async, server.url, FakeClock(), case["as"])
            result = await invoke(client, case["call"], case["arguments"])
            assert has(result, case["result"]), result

        play(is_async, work)
        server.check()
