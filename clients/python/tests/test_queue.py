"""The location queue: clients/cases/queue.json."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from playing import FakeClock, case_id, cases, check_error, client_of, collected, play
from scripted import Scripted
from waypost import Waypost, WaypostError


class Played:
    """A queue that goes through the steps of a case."""

    def __init__(self, case: dict[str, Any], client: Any, server: Scripted, path: Path) -> None:
        given = case.get("client", {})
        self._sizes = {name: given[name] for name in ("batch", "capacity") if name in given}
        self._client, self._server, self._path = client, server, path
        self._clock: FakeClock = client._transport.settings.clock
        self.queue = self._open()

    def _open(self) -> Any:
        return self._client.location_queue(str(self._path), **self._sizes)

    async def step(self, step: dict[str, Any]) -> None:
        match step["do"]:
            case "add":
                self.queue.add(**step["fix"])
            case "addMany":
                for number in range(step["from"], step["from"] + step["count"]):
                    time = f"2026-11-22T12:00:{number:02}Z"
                    self.queue.add(float(number), 0.5, recorded_at=time)
            case "clock":
                self._clock.at += step["advanceSeconds"]
            case "restart":
                self.queue.close()
                self.queue = self._open()
            case "flush":
                await self._flush(step)
            case "parked":
                parked = [
                    {"fix": one.fix, "status": one.status, "message": one.message}
                    for one in self.queue.parked()
                ]
                assert parked == step["expect"]
            case "retryParked":
                self.queue.retry_parked(self.queue.parked()[step["index"]].id)
            case "dropParked":
                self.queue.drop_parked(self.queue.parked()[step["index"]].id)
            case "dropped":
                assert self.queue.dropped == step["expect"]
            case other:
                raise AssertionError(other)

    async def _flush(self, step: dict[str, Any]) -> None:
        self._server.exchange += step["exchange"]
        expected = step["expect"]
        if "error" in step:
            with pytest.raises(WaypostError) as raised:
                await collected(self.queue.flush())
            check_error(raised.value, step["error"])
        else:
            result = await collected(self.queue.flush())
            found = {"sent": result.sent, "waiting": result.waiting, "parked": result.parked}
            if result.retry_after is not None:
                found["retryAfterSeconds"] = result.retry_after
            assert found == expected
        self._server.check()


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("case", cases("queue"), ids=case_id)
def test_a_queue_goes_through_its_steps(
    case: dict[str, Any], is_async: bool, tmp_path: Path
) -> None:
    clock = FakeClock(chance=1.0)
    with Scripted([]) as server:

        async def work() -> None:
            client = client_of(case, is_async, server.url, clock)
            played = Played(case, client, server, tmp_path / "fixes")
            for step in case["steps"]:
                await played.step(step)

        play(is_async, work)
    assert clock.waits == []


def test_a_file_of_an_earlier_version_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "fixes"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE notes (name TEXT PRIMARY KEY, value REAL NOT NULL)")
        database.execute("INSERT INTO notes VALUES ('dropped', 3)")
    with Waypost("http://127.0.0.1:9", "wp_test") as waypost:
        for _ in range(2):
            with closing(waypost.location_queue(str(path))) as queue:
                assert queue.dropped == 3
    with closing(sqlite3.connect(path)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE name = 'notes'").fetchall()
        assert tables == []
