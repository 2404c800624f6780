"""A running Waypost for these tests: see clients/system."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from waypost import Password, Settings, Waypost

START = Path(__file__).resolve().parents[3] / "system" / "start"
PATIENT = Settings(max_retries=60, timeout=90, attempt_timeout=10)
WAIT_LIMIT_S = 60.0


class System:
    """Waypost, and its faults."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            pytest.fail("clients/system/start did not start; is Waypost built?")
        addresses = json.loads(line)
        self.url: str = addresses["url"]
        self._control: str = addresses["control"]

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._ask(
            urllib.request.Request(self._control + path, json.dumps(body or {}).encode())
        )

    def get(self, path: str) -> Any:
        return self._ask(urllib.request.Request(self._control + path))

    def organization(self, **asked: Any) -> Any:
        return self.post("/organization", asked)

    def client(self, settings: Settings | None = None, **asked: Any) -> Waypost:
        """A client with a key of an organization of its own."""
        return Waypost(self.url, self.organization(**asked)["key"], settings=settings)

    def person(self, settings: Settings | None = None, **asked: Any) -> Waypost:
        """A client of a person with an account of their own."""
        account = self.post("/account", asked)
        password = Password(account["email"], account["password"])
        return Waypost(self.url, password, settings=settings)

    def restart(self, pause: float = 0.0) -> None:
        """Kills Waypost (kill -9) and starts it again."""
        self.post("/waypost/kill")
        time.sleep(pause)
        self.post("/waypost/start")

    def interrupt_nats(self, pause: float = 0.0) -> None:
        """Kills NATS (kill -9) and starts it again."""
        self.post("/nats/stop")
        time.sleep(pause)
        self.post("/nats/start")

    def _ask(self, request: urllib.request.Request) -> Any:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)


@pytest.fixture(scope="session")
def system() -> Iterator[System]:
    with subprocess.Popen(
        [sys.executable, str(START), "--until-eof"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield System(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=60)


@pytest.fixture(autouse=True)
def whole_again(system: System) -> Iterator[None]:
    """Leaves the next test a running system, however this one ended."""
    yield
    system.post("/nats/release")
    system.post("/nats/start")
    system.post("/waypost/start")


def eventually(look: Callable[[], Any], what: str) -> Any:
    """Waits until `look` returns something, and returns it."""
    end = time.monotonic() + WAIT_LIMIT_S
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {WAIT_LIMIT_S:.0f} s for {what}")


@pytest.fixture
def greeting() -> Any:
    """A workflow that says hello in the feed."""
    return {
        "name": "Greet",
        "status": "ACTIVE",
        "steps": [
            {"id": "start", "type": "TRIGGER", "next": ["notify"]},
            {"id": "notify", "type": "NOTIFY", "event": "hello", "data": {"n": "{{ trigger.n }}"}},
        ],
    }
