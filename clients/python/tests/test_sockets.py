"""Frames of a subscription: clients/cases/sockets.json."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from playing import FakeClock, RealClock, case_id, cases, check_error, client_of, play
from scripted_socket import ScriptedSocket
from waypost import AsyncWaypost, Conflated, LiveEvent, Reset, Snapshot, Waypost, WaypostError


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("case", cases("sockets"), ids=case_id)
def test_a_subscription_follows_its_script(case: dict[str, Any], is_async: bool) -> None:
    is_timed = "tokenSeconds" in case.get("client", {})
    clock = RealClock() if is_timed else FakeClock()
    with ScriptedSocket(case["connections"]) as server:

        async def work() -> None:
            client = client_of(case, is_async, server.url, clock)
            items, error = await receive(client, case)
            assert [shown(item) for item in items] == case["items"]
            if "ends" in case:
                assert error is not None, "it went on"
                check_error(error, case["ends"])
            elif error is not None:
                raise error

        play(is_async, work)
        for connection in case["connections"]:
            if not any("refuse" in step for step in connection):
                assert server.ended.acquire(timeout=5), "the connection was left open"
        server.check()
    assert clock.waits == case["waits"]


async def receive(client: Any, case: dict[str, Any]) -> tuple[list[Any], WaypostError | None]:
    """The items received, as many as the case has, and the error if the case ends with one."""
    asked = case["subscribe"]
    subscription = client.subscribe(asked["channel"], after=asked.get("after"))
    items: list[Any] = []
    try:
        while len(items) < len(case["items"]) or "ends" in case:
            if isinstance(client, AsyncWaypost):
                items.append(await subscription.__anext__())
            else:
                items.append(await asyncio.to_thread(next, subscription))
    except WaypostError as error:
        return items, error
    finally:
        if isinstance(client, AsyncWaypost):
            await subscription.aclose()
        else:
            subscription.close()
    return items, None


def shown(item: object) -> dict[str, Any]:
    match item:
        case Snapshot(data):
            return {"kind": "snapshot", "data": data}
        case LiveEvent(position, type, time, data):
            return {"kind": "event", "position": position, "type": type, "time": time, "data": data}
        case Conflated(after, through):
            return {"kind": "conflated", "from": after, "to": through}
        case Reset():
            return {"kind": "reset"}
    raise AssertionError(item)


def test_a_subscription_can_be_ended_from_another_thread() -> None:
    import threading

    script = cases("sockets")[0]["connections"]
    with ScriptedSocket(script) as server:
        client = client_of({}, False, server.url, FakeClock())
        assert isinstance(client, Waypost)
        subscription = client.subscribe("runs")
        first, second = next(subscription), next(subscription)
        assert isinstance(first, Snapshot)
        assert isinstance(second, LiveEvent)
        threading.Timer(0.1, subscription.close).start()
        assert list(subscription) == []
        server.check()
