"""Kills of Waypost (kill -9) and NATS during retries, sockets, feeds and the queue."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from conftest import PATIENT, System, eventually

from waypost import AsyncSubscription, AsyncWaypost, Clock, LiveEvent, Settings, Waypost


class Waits(Clock):
    """Real time that counts how often a call was retried."""

    def __init__(self) -> None:
        self.count = 0

    def sleep(self, seconds: float) -> None:
        self.count += 1
        super().sleep(seconds)


class Crowd:
    """Does something repeatedly, each time once, while a system has faults."""

    def __init__(self, work: Callable[[int], str]) -> None:
        self._work = work
        self._is_over = False
        self.answered: list[str] = []
        self.errors: list[Exception] = []
        self._thread = threading.Thread(target=self._go_on)
        self._thread.start()

    def _go_on(self) -> None:
        try:
            while not self._is_over:
                self.answered.append(self._work(len(self.answered)))
                # No more than the listeners should have to receive.
                time.sleep(0.01)
        except Exception as error:
            self.errors.append(error)

    def more(self, count: int = 10) -> None:
        """Waits until `count` more things are done."""
        until = len(self.answered) + count
        eventually(lambda: len(self.answered) >= until or self.errors, f"{count} answers")
        assert not self.errors, self.errors

    def end(self) -> None:
        self._is_over = True
        self._thread.join()
        assert not self.errors, self.errors


def patient() -> Settings:
    """An attempt timeout shorter than NATS is away."""
    return replace(PATIENT, attempt_timeout=2, clock=Waits())


def hurt(system: System, crowd: Crowd, waits: Waits) -> None:
    """Kills Waypost and NATS and pauses NATS while the crowd works."""
    harms: list[Callable[[], None]] = [
        lambda: system.restart(0.5),
        lambda: system.interrupt_nats(3),
        lambda: hold_nats(system, 3),
        lambda: system.restart(0.5),
    ]
    try:
        for harm in harms:
            crowd.more()
            before = waits.count
            harm()
            system.post("/waypost/start")
            crowd.more()
            assert waits.count > before, "nobody felt it"
    finally:
        crowd.end()


def hold_nats(system: System, seconds: float) -> None:
    """Connections stay open and nothing answers."""
    system.post("/nats/hold")
    time.sleep(seconds)
    system.post("/nats/release")


Received = tuple[str, str, dict[str, Any]]


def triggered(events: list[Received]) -> list[str]:
    return [data["runId"] for _, kind, data in events if kind == "workflow.triggered"]


def check(waypost: Waypost, crowd: Crowd, events: list[Received]) -> None:
    """Nothing was lost, duplicated, or done twice."""
    assert triggered(events) == crowd.answered
    positions = [position for position, _, _ in events]
    assert len(positions) == len(set(positions))
    log = [(one["position"], one["type"]) for one in waypost.events.read()]
    begun = [one for one in log if one[1] == "workflow.triggered"]
    assert len(begun) == len(crowd.answered)
    received = {(position, kind) for position, kind, _ in events}
    assert [one for one in log[log.index(begun[0]) :] if one not in received] == []
    runs = [run["runId"] for run in waypost.workflows.runs("greet", limit=100)]
    assert sorted(runs) == sorted(crowd.answered)


class Listener:
    """Collects the events of a source, until every run has ended."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.events: list[Received] = []
        self.ended = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for item in self._source:
            self.take(item)

    def take(self, item: Any) -> None:
        if isinstance(item, LiveEvent):
            self.events.append((item.position, item.type, item.data))
        elif isinstance(item, dict):
            self.events.append((item["position"], item["type"], item["data"]))
        self.ended += bool(self.events) and self.events[-1][1] == "run.succeeded"

    def until(self, crowd: Crowd) -> None:
        count = len(crowd.answered)
        eventually(lambda: self.ended >= count, f"the end of {count} runs")


def trigger(waypost: Waypost) -> Callable[[int], str]:
    return lambda number: waypost.workflows.trigger("greet", {"n": number})["runId"]


def test_a_socket_loses_and_doubles_nothing_through_faults(system: System, greeting: Any) -> None:
    settings = patient()
    with system.client(settings) as waypost:
        waypost.workflows.put("greet", greeting)
        with waypost.subscribe("events") as subscription:
            # The snapshot shows that it is subscribed from here on.
            next(subscription)
            listener = Listener(subscription)
            crowd = Crowd(trigger(waypost))
            hurt(system, crowd, cast("Waits", settings.clock))
            listener.until(crowd)
        check(waypost, crowd, listener.events)


def test_a_feed_loses_and_doubles_nothing_through_faults(system: System, greeting: Any) -> None:
    settings = patient()
    with system.client(settings) as waypost:
        waypost.workflows.put("greet", greeting)
        listener = Listener(waypost.events.follow(after=waypost.position))
        crowd = Crowd(trigger(waypost))
        hurt(system, crowd, cast("Waits", settings.clock))
        listener.until(crowd)
        check(waypost, crowd, listener.events)


def test_an_async_socket_loses_and_doubles_nothing_through_faults(
    system: System, greeting: Any
) -> None:
    key, settings = system.organization()["key"], patient()
    writer = Waypost(system.url, key, settings=settings)
    writer.workflows.put("greet", greeting)

    async def listen(subscription: AsyncSubscription, listener: Listener) -> None:
        async for item in subscription:
            listener.take(item)

    async def work() -> None:
        async with AsyncWaypost(system.url, key) as waypost:
            async with waypost.subscribe("events") as subscription:
                await subscription.__anext__()
                listener = Listener([])
                listening = asyncio.create_task(listen(subscription, listener))
                crowd = Crowd(trigger(writer))
                await asyncio.to_thread(hurt, system, crowd, cast("Waits", settings.clock))
                await asyncio.to_thread(listener.until, crowd)
            # When it ends, its listeners end.
            await listening
        await asyncio.to_thread(check, writer, crowd, listener.events)

    asyncio.run(asyncio.wait_for(work(), 120))


def test_writes_are_done_once_through_faults(system: System) -> None:
    settings = patient()
    with system.client(settings) as waypost:
        # Without an id: a retry under another key would create a second one.
        crowd = Crowd(lambda number: waypost.leads.create({"name": f"Lead {number:04}"})["id"])
        hurt(system, crowd, cast("Waits", settings.clock))
        leads = list(waypost.leads.list(limit=100))
        assert sorted(one["id"] for one in leads) == sorted(crowd.answered)
        names = [one["name"] for one in leads]
        assert sorted(names) == [f"Lead {number:04}" for number in range(len(crowd.answered))]


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
        # Twenty at once exceed an hourly limit of eight; learning that takes one of the eight.
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
