"""A client's settings, and its source of time and randomness."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import Final, final


@final
class Unset:
    """The type of `UNSET`."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()
"""Leaves a field as it is, where ``None`` would clear it."""


class Clock:
    """Time, waits and randomness; a test passes its own."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only increase."""
        return time.monotonic()

    def random(self) -> float:
        """Draw a number from 0 up to, but excluding, 1."""
        return random.random()  # noqa: S311 - spreads retries, keeps no secret

    def sleep(self, seconds: float) -> None:
        """Wait, in this thread."""
        time.sleep(seconds)

    async def asleep(self, seconds: float) -> None:
        """Wait, and let other tasks run."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True)
class Settings:
    """A client's retries and timeouts. All durations are in seconds."""

    max_retries: int = 2
    """Attempts after the first one."""
    timeout: float = 120.0
    """For a whole call with all its attempts; a wait that would end later is not started."""
    attempt_timeout: float = 30.0
    """For connecting, sending, and each wait for more of a response, in one attempt."""
    max_retry_after: float = 120.0
    """A longer ``Retry-After`` is reported instead of waited for."""
    read_your_writes: bool = True
    """Whether reads wait until they see what this client wrote."""
    clock: Clock = field(default_factory=Clock, repr=False)

    def backoff(self, attempt: int, longest: float = 8.0, first: float = 0.5) -> float:
        """Choose the wait before retry ``attempt``, from 0: full jitter, doubling."""
        return self.clock.random() * min(longest, first * 2.0 ** min(attempt, 30))
