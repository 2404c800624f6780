"""Credentials: however many calls find a token expired, one renews it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx

from playing import FakeClock
from waypost import AsyncWaypost, Password, Settings, Token, Waypost


class Door:
    """Accepts only the newest token, and answers requests."""

    def __init__(self) -> None:
        self.newest = "t1"
        self.refused = 0
        self.signed_in = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/login":
            self.signed_in += 1
            self.newest = f"s{self.signed_in}"
            session = {"access_token": self.newest, "token_type": "bearer", "expires_in": 3600}
            return httpx.Response(200, json=session)
        if request.headers.get("authorization") != f"Bearer {self.newest}":
            self.refused += 1
            return httpx.Response(401, json={"error": "the token is not in force"})
        return httpx.Response(200, json={"data": []})


def test_many_tasks_renew_a_token_once() -> None:
    door = Door()
    given: list[str] = []

    async def next_token() -> str:
        given.append(f"t{len(given) + 1}")
        await asyncio.sleep(0)
        return given[-1]

    async def work() -> None:
        http = httpx.AsyncClient(transport=httpx.MockTransport(door))
        async with AsyncWaypost("http://waypost.example", next_token, http=http) as waypost:
            await asyncio.gather(*(waypost.location.latest() for _ in range(20)))
            door.newest = "t2"
            await asyncio.gather(*(waypost.location.latest() for _ in range(20)))

    asyncio.run(work())
    assert given == ["t1", "t2"]
    assert door.refused > 0


def test_many_threads_renew_a_token_once() -> None:
    door, lock = Door(), threading.Lock()
    given: list[str] = []

    def next_token() -> str:
        with lock:
            given.append(f"t{len(given) + 1}")
            return given[-1]

    http = httpx.Client(transport=httpx.MockTransport(door))
    with Waypost("http://waypost.example", next_token, http=http) as waypost:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda _: waypost.location.latest(), range(20)))
            door.newest = "t2"
            list(threads.map(lambda _: waypost.location.latest(), range(20)))
    assert given == ["t1", "t2"]


def test_a_password_signs_in_again_a_minute_before_the_token_ends() -> None:
    door, clock = Door(), FakeClock()
    http = httpx.Client(transport=httpx.MockTransport(door))
    with Waypost(
        "http://waypost.example",
        Password("ada@example.com", "a long password"),
        settings=Settings(clock=clock),
        http=http,
    ) as waypost:
        waypost.location.latest()
        clock.at += 3539
        waypost.location.latest()
        assert door.signed_in == 1
        clock.at += 1
        waypost.location.latest()
    assert door.signed_in == 2
    assert door.refused == 0


def test_a_short_token_is_renewed_when_a_fifth_is_left() -> None:
    clock, given = FakeClock(), []

    def next_token() -> Token:
        given.append(1)
        return Token("t1", 10)

    http = httpx.Client(transport=httpx.MockTransport(Door()))
    with Waypost(
        "http://waypost.example", next_token, settings=Settings(clock=clock), http=http
    ) as waypost:
        for second in (0, 7.9, 0.2):
            clock.at += second
            waypost.location.latest()
    assert len(given) == 2


def test_a_queue_runs_until_it_is_asked_to_stop() -> None:
    clock, sizes = FakeClock(), []

    def take(request: httpx.Request) -> httpx.Response:
        import json

        fixes = json.loads(request.content)
        sizes.append(len(fixes))
        return httpx.Response(202, json={"accepted": fixes})

    http = httpx.Client(transport=httpx.MockTransport(take))
    with Waypost(
        "http://waypost.example", "t1", settings=Settings(clock=clock), http=http
    ) as waypost:
        queue = waypost.location_queue()

        def until() -> bool:
            queue.add(1, 2)
            return len(sizes) == 3

        queue.run(every=5, until=until)
    assert sizes == [1, 1, 1]
    assert clock.waits == [5, 5, 5]
