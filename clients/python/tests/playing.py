"""Plays cases on both clients: what a case means in Python."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import waypost
from waypost import AsyncWaypost, Clock, ImportOutcome, Page, Settings, Token, Waypost

CASES = Path(__file__).resolve().parents[2] / "cases"
NOON = 1795348800.0
AnyClient = Waypost | AsyncWaypost
SETTINGS = {
    "maxRetries": "max_retries",
    "deadlineSeconds": "timeout",
    "attemptSeconds": "attempt_timeout",
    "maxRetryAfterSeconds": "max_retry_after",
    "readYourWrites": "read_your_writes",
}
NAMES = {"import": "import_records", "from": "from_"}


def cases(name: str) -> list[dict[str, Any]]:
    file = json.loads((CASES / f"{name}.json").read_text())
    assert file["format"] == 1
    found: list[dict[str, Any]] = file["cases"]
    return found


def case_id(case: object) -> str:
    return case["id"] if isinstance(case, dict) else str(case)


class FakeClock(Clock):
    """Starts at noon and advances only by waits."""

    def __init__(self, chance: float = 0.5) -> None:
        self.at = NOON
        self.chance = chance
        self.waits: list[float] = []

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    def random(self) -> float:
        return self.chance

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.at += seconds

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)
        await asyncio.sleep(0)


class RealClock(FakeClock):
    """Real time, without randomness."""

    def now(self) -> float:
        return Clock.now(self)

    def monotonic(self) -> float:
        return Clock.monotonic(self)


def client_of(
    case: dict[str, Any], is_async: bool, url: str, clock: Clock, who: str = "key"
) -> AnyClient:
    given = case.get("client", {})
    settings = {SETTINGS[name]: value for name, value in given.items() if name in SETTINGS}
    tokens = iter(given.get("tokens", []))
    seconds = iter(given.get("tokenSeconds", []))
    credential: Any = None if who == "anonymous" else "wp_test"
    if "tokens" in given:
        credential = lambda: Token(next(tokens), next(seconds, None))  # noqa: E731
    kind = AsyncWaypost if is_async else Waypost
    return kind(url, credential, settings=Settings(**settings, clock=clock))


def play(is_async: bool, work: Callable[[], Awaitable[None]]) -> None:
    """Runs a test's work. With the client without `async` it never waits for anything else."""
    del is_async
    asyncio.run(asyncio.wait_for(work(), 20))


async def invoke(
    client: AnyClient,
    call: str,
    arguments: dict[str, Any],
    options: dict[str, Any] | None = None,
    take: int | None = None,
) -> Any:
    """Calls a method by its name in the cases; items of lists and feeds are collected."""
    method: Any = client
    for part in call.split("."):
        method = getattr(method, snake(part))
    given = {snake(name): value for name, value in {**arguments, **(options or {})}.items()}
    return plain(await collected(method(**given), take))


def snake(name: str) -> str:
    return NAMES.get(name) or re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


async def collected(result: Any, take: int | None = None) -> Any:
    if inspect.isawaitable(result):
        return await result
    if hasattr(result, "__aiter__"):
        items: list[Any] = []
        walk = result.__aiter__()
        while take is None or len(items) < take:
            try:
                items.append(await walk.__anext__())
            except StopAsyncIteration:
                break
        await walk.aclose()
        return items
    if hasattr(result, "__next__") or isinstance(result, waypost.Listing):
        items = []
        steps = iter(result)
        while take is None or len(items) < take:
            try:
                items.append(next(steps))
            except StopIteration:
                break
        steps.close()
        return items
    return result


def plain(value: Any) -> Any:
    if isinstance(value, Page):
        return {name: value.__dict__[name] for name in ("data", "total", "page", "limit")}
    if isinstance(value, ImportOutcome):
        return {name: one for name, one in asdict(value).items() if one is not None}
    if isinstance(value, bytes):
        return value.decode()
    return [plain(one) for one in value] if isinstance(value, list) else value


def has(value: Any, expected: Any) -> bool:
    """Whether a value has all that is expected; further fields are allowed."""
    if isinstance(expected, dict) and isinstance(value, dict):
        return all(name in value and has(value[name], one) for name, one in expected.items())
    if isinstance(expected, list) and isinstance(value, list):
        return len(value) == len(expected) and all(map(has, value, expected))
    return bool(value == expected)


def check_error(error: BaseException, expected: dict[str, Any]) -> None:
    kind = getattr(waypost, f"{expected['type']}Error".replace("ErrorError", "Error"))
    assert isinstance(error, kind), repr(error)
    if isinstance(error, waypost.ApiError):
        assert error.message
    names = {"retryAfterSeconds": "retry_after", "traceId": "trace_id"}
    for name, value in expected.items():
        if name != "type":
            assert getattr(error, names.get(name, name)) == value, name
