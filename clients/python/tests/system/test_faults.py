"""Kills of Waypost (kill -9) and of NATS amid retries, sockets, feeds and the queue."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENT, System, eventually

from waypost import AsyncWaypost, LiveEvent, Waypost

RUNS = 60


class Crowd:
    """Triggers a workflow again and again, each once, while a system is hurt."""

    def __init__(self, waypost: Waypost) -> None:
        self._waypost = waypost
        self.answered: list[str] = []
        self.errors: list[Exception] = []
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self) -> None:
        try:
            for number in range(RUNS):
                self.answered.append(
                    self._waypost.workflows.trigger("greet", {"n": number})["runId"]
                )
        except Exception as error:
            self.errors.append(error)

    def until(self, count: int) -> None:
        eventually(lambda: len(self.answered) >= count or self.errors, f"{count} answers")
        assert not self.errors, self.errors


def hurt(system: System, crowd: Crowd) -> None:
    """Kills Waypost twice and NATS once while the crowd works."""
    crowd.until(10)
    system.restart()
    crowd.until(25)
    system.interrupt_nats(0.5)
    system.post("/waypost/start")
    crowd.until(40)
    system.restart(0.5)
    crowd.thread.join()
    assert not crowd.errors, crowd.errors


def triggered(events: list[tuple[str, str, dict[str, Any]]]) -> list[str]:
    return [data["runId"] for _, kind, data in events if kind == "workflow.triggered"]


def check(waypost: Waypost, crowd: Crowd, events: list[tuple[str, str, dict[str, Any]]]) -> None:
    """Nothing was lost, doubled, or done twice."""
    assert triggered(events) == crowd.answered
    positions = [position for position, _, _ in events]
    assert len(positions) == len(set(positions))
    log = [(one["position"], one["type"]) for one in waypost.events.read()]
    begun = [one for one in log if one[1] == "workflow.triggered"]
    assert len(begun) == RUNS
    told = {(position, kind) for position, kind, _ in events}
    first = log.index(begun[0])
    assert [one for one in log[first:] if one not in told] == []
    runs = [run["runId"] for run in waypost.workflows.runs("greet", limit=100)]
    assert sorted(runs) == sorted(crowd.answered)


def listen(source: Any, shown: Callable[[Any], tuple[str, str, dict[str, Any]] | None]) -> Any:
    """Collects what a source tells until every run has succeeded."""
    events: list[tuple[str, str, dict[str, Any]]] = []
    ended = 0
    for item in source:
        event = shown(item)
        if event is not None:
            events.append(event)
            ended += event[1] == "run.succeeded"
        if ended == RUNS:
            break
    return events


def of_socket(item: Any) -> tuple[str, str, dict[str, Any]] | None:
    return (item.position, item.type, item.data) if isinstance(item, LiveEvent) else None


def of_feed(event: Any) -> tuple[str, str, dict[str, Any]] | None:
    return event["position"], event["type"], event["data"]


@pytest.mark.parametrize("kind", ["socket", "feed"])
def test_nothing_is_lost_or_doubled_through_kills(system: System, greeting: Any, kind: str) -> None:
    with system.client(PATIENT) as waypost:
        waypost.workflows.put("greet", greeting)
        if kind == "socket":
            source: Any = waypost.subscribe("events")
            # The snapshot says that it is subscribed from here on.
            next(source)
            shown: Any = of_socket
        else:
            source, shown = waypost.events.follow(after=waypost.position), of_feed
        told: list[Any] = []
        listener = threading.Thread(target=lambda: told.extend(listen(source, shown)))
        listener.start()
        crowd = Crowd(waypost)
        hurt(system, crowd)
        listener.join(60)
        assert not listener.is_alive(), f"{len(told)} events"
        source.close()
        check(waypost, crowd, told)


def test_an_async_socket_goes_on_through_kills(system: System, greeting: Any) -> None:
    organization = system.organization()
    writer = Waypost(system.url, organization["key"], settings=PATIENT)
    writer.workflows.put("greet", greeting)

    async def work() -> list[Any]:
        async with AsyncWaypost(system.url, organization["key"], settings=PATIENT) as waypost:
            events: list[Any] = []
            ended = 0
            async with waypost.subscribe("events") as subscription:
                await subscription.__anext__()
                crowd = Crowd(writer)
                hurting = asyncio.create_task(asyncio.to_thread(hurt, system, crowd))
                async for item in subscription:
                    event = of_socket(item)
                    if event is not None:
                        events.append(event)
                        ended += event[1] == "run.succeeded"
                    if ended == RUNS:
                        break
                await hurting
            await asyncio.to_thread(check, writer, crowd, events)
            return events

    assert len(asyncio.run(asyncio.wait_for(work(), 120))) >= RUNS


def test_writes_are_done_once_through_kills(system: System) -> None:
    with system.client(PATIENT) as waypost:
        done = threading.Event()
        errors: list[Exception] = []

        def write() -> None:
            try:
                for number in range(40):
                    # Without an id of its own: a second try under another key would make a second.
                    waypost.leads.create({"name": f"Lead {number}"})
            except Exception as error:
                errors.append(error)
            done.set()

        threading.Thread(target=write).start()
        system.restart()
        system.interrupt_nats(0.5)
        system.post("/waypost/start")
        system.restart()
        assert done.wait(90)
        assert not errors, errors
        names = sorted(lead["name"] for lead in waypost.leads.list(limit=100))
        assert names == sorted(f"Lead {number}" for number in range(40))


def test_fixes_of_a_queue_arrive_once_through_kills_and_a_restart(
    system: System, tmp_path: Path
) -> None:
    path = str(tmp_path / "fixes")
    with system.person() as person:
        queue = person.location_queue(path, batch=10)
        for number in range(50):
            time = f"2026-11-01T10:{number:02}:00Z"
            queue.add(number, 0.5, recorded_at=time)
        queue.flush()
        for number in range(50, 60):
            queue.add(number, 0.5, recorded_at=f"2026-11-01T10:{number:02}:00Z")
        system.post("/waypost/kill")
        assert queue.flush().waiting == 10
        # The phone restarts too.
        queue.close()
        queue = person.location_queue(path, batch=10)
        system.post("/waypost/start")
        eventually(lambda: queue.flush().waiting == 0, "the queue to be empty")
        history = person.location.history(limit=1000)
        assert [one["lat"] for one in history] == [float(number) for number in range(59, -1, -1)]


def test_a_queue_keeps_to_the_hours_limit(system: System) -> None:
    with system.person(tier="enterprise", locations=8) as person:
        queue = person.location_queue()
        for number in range(20):
            queue.add(number, 0.5, recorded_at=f"2026-11-01T10:{number:02}:00Z")
        result = queue.flush()
        # Twenty at once never fit into an hour of eight; learning that takes one of the eight.
        assert (result.sent, result.waiting, result.parked) == (7, 13, 0)
        assert 0 < (result.retry_after or 0) <= 3604
        assert queue.flush().sent == 0
        assert len(person.location.history(limit=100)) == 7


def test_a_queue_parks_what_is_wrong(system: System) -> None:
    with system.person() as person:
        queue = person.location_queue()
        for number, lat in enumerate((1.0, 99.0, 3.0)):
            queue.add(lat, 0.5, recorded_at=f"2026-11-01T10:{number:02}:00Z")
        result = queue.flush()
        assert (result.sent, result.waiting, result.parked) == (2, 0, 1)
        assert "lat" in queue.parked()[0].message
