"""The processes that a client's test may kill: Waypost and NATS."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

WAIT_LIMIT_S = 60.0
PAUSE_S = 0.02
# Durations too long to wait for, and limits that many tests from one address would reach.
SETTINGS = {
    "WAYPOST_ALLOW_PRIVATE_TARGETS": "1",
    "WAYPOST_DEMO": "false",
    "WAYPOST_LOG": "warn",
    "WAYPOST_WEBHOOK_RETRY_SECONDS": "0.1,0.2,0.4,0.8,1.6,3,3,3,3",
    "WAYPOST_WEBHOOK_TIMEOUT_SECONDS": "2",
    "WAYPOST_REGISTRATIONS_PER_ADDRESS": "100000",
    "WAYPOST_SIGN_INS_PER_ADDRESS": "100000",
    "WAYPOST_CONNECTIONS_PER_ADDRESS": "1000",
}


def until(ready: Callable[[], bool], what: str) -> None:
    """Waits for a condition; raises if it is not met in time."""
    end = time.monotonic() + WAIT_LIMIT_S
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {WAIT_LIMIT_S:.0f} s for {what}")
        time.sleep(PAUSE_S)


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Waypost:
    """`waypost up`, on one port for all its starts."""

    def __init__(self, program: Path, home: Path, settings: dict[str, str]) -> None:
        self.program, self.home = program, home
        self.addr = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self.addr}"
        self.environment = {**os.environ, **SETTINGS, **settings}
        self.environment |= {"WAYPOST_ADDR": self.addr, "WAYPOST_HOME": str(home)}
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self, settings: dict[str, str] | None = None) -> None:
        """Starts it, unless it runs, and waits until it is ready."""
        with self._lock:
            self.environment |= settings or {}
            if self._process is None:
                with (self.home / "waypost.log").open("ab") as log:
                    self._process = subprocess.Popen(
                        [str(self.program), "up"],
                        env=self.environment,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                    )
            until(self._ready, "Waypost to be ready")

    def kill(self) -> None:
        """Ends it at once (SIGKILL)."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Asks it to end (SIGTERM), and waits for that."""
        self._end(signal.SIGTERM)

    def run(self, arguments: list[str], given: str = "") -> Any:
        """Runs the operator's command line; returns the JSON object that it prints."""
        done = subprocess.run(
            [str(self.program), *arguments],
            env=self.environment, input=given, capture_output=True, text=True, check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or f"exit status {done.returncode}")
        return json.loads(done.stdout)

    def log(self) -> str:
        """What it has written so far."""
        return (self.home / "waypost.log").read_text(errors="replace")

    def _ready(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            self._process = None
            raise RuntimeError("Waypost ended by itself:\n" + self.log()[-4000:])
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _end(self, number: int) -> None:
        with self._lock:
            if self._process is not None:
                self._process.send_signal(number)
                self._process.wait()
                self._process = None


class Nats:
    """The private NATS server: `local-servers with` starts it once and does not monitor it."""

    def __init__(self, home: Path) -> None:
        self._config = home / "nats" / "nats.conf"
        found = [process for process in Path("/proc").glob("[0-9]*") if self._runs(process)]
        if len(found) != 1:
            raise RuntimeError(f"expected one NATS server on {self._config}, found {len(found)}")
        self._pid = int(found[0].name)
        self._program = os.readlink(found[0] / "exe")
        self._ours: subprocess.Popen[bytes] | None = None
        self._running = True

    def stop(self) -> None:
        """Ends it at once (SIGKILL); what it acknowledged is on disk."""
        if self._running:
            os.kill(self._pid, signal.SIGKILL)
            if self._ours is not None:
                self._ours.wait()
            until(lambda: not self._alive(), "NATS to end")
            self._running = False

    def start(self) -> None:
        """Restarts it on the same port and data."""
        if self._running:
            return
        with (self._config.parent / "nats.log").open("ab") as log:
            self._ours = subprocess.Popen(
                [self._program, "-c", str(self._config)],
                cwd=self._config.parent, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        self._pid = self._ours.pid
        self._running = True

    def hold(self) -> None:
        """Pauses it (SIGSTOP): connections stay open and nothing answers."""
        if self._running:
            os.kill(self._pid, signal.SIGSTOP)

    def release(self) -> None:
        """Resumes it (SIGCONT)."""
        if self._running:
            os.kill(self._pid, signal.SIGCONT)

    def close(self) -> None:
        """Ends the server started here; local-servers ends the first one."""
        if self._running and self._ours is not None:
            self._ours.send_signal(signal.SIGCONT)
            self._ours.terminate()
            self._ours.wait()

    def _runs(self, process: Path) -> bool:
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        # The server itself, not a program whose arguments name the same file.
        return words[1:3] == [b"-c", str(self._config).encode()]

    def _alive(self) -> bool:
        try:
            state = Path(f"/proc/{self._pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return False
        return state != "Z"
