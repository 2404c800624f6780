"""Sends fixes when possible, each once, and keeps them until then.

Made by scripts/unasync.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, cast

from .._calls import Call, moment
from .._errors import ApiError, ConnectionFailedError, InvalidArgumentError, UnauthorizedError
from .._fixes import Batch, FlushResult, ParkedFix, Store, allowance, refused
from ..models import Fix
from ._sio import Lock
from ._transport import Transport

_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 300.0


class LocationQueue:
    """A queue of fixes for Waypost.

    Fixes are kept until they are accepted: while offline, across disconnects and, in a file,
    across restarts. A batch is sent under one key until it is answered, so that nothing is
    recorded twice. One process at a time may use the file.
    """

    def __init__(self, transport: Transport, path: str | None, batch: int, capacity: int) -> None:
        if not 1 <= batch <= 100:
            raise InvalidArgumentError("batch is 1 to 100")
        settings = replace(transport.settings, max_retries=0)
        self._transport = Transport(transport.session, settings)
        self._clock = settings.clock
        self._store = Store(path)
        self._flushing = Lock()
        self._most = batch
        self._capacity = capacity

    def add(
        self,
        lat: float,
        lng: float,
        *,
        accuracy: float | None = None,
        speed: float | None = None,
        place_name: str | None = None,
        battery: float | None = None,
        recorded_at: datetime | str | None = None,
    ) -> None:
        """Add a fix; units as for :meth:`Location.update`. Two of one instant both stay."""
        now = datetime.fromtimestamp(self._clock.now(), timezone.utc)
        given: dict[str, Any] = {
            "lat": lat,
            "lng": lng,
            "accuracy": accuracy,
            "speed": speed,
            "place_name": place_name,
            "battery": battery,
            "recorded_at": moment(recorded_at or now),
        }
        fix = {name: value for name, value in given.items() if value is not None}
        self._store.add(cast("Fix", fix), self._capacity)

    def flush(self) -> FlushResult:
        """Send the waiting fixes, as far as allowed now.

        Does nothing during a wait that the server requested, or that follows a failure.

        Raises:
            UnauthorizedError: The credential and its successor are rejected; all fixes are kept.

        """
        sent = 0
        with self._flushing:
            while self._store.read_metadata("not_before") <= self._clock.now():
                batch = self._store.batch(self._size())
                if batch is None:
                    break
                sent += self._send(batch)
        waiting, parked = self._store.counts()
        wait = self._store.read_metadata("not_before") - self._clock.now()
        return FlushResult(sent, waiting, parked, wait if wait > 0 and waiting else None)

    def run(self, every: float = 10.0, until: Callable[[], bool] = lambda: False) -> None:
        """Flush repeatedly, after ``every`` seconds or when a retry is allowed."""
        while not until():
            result = self.flush()
            self._clock.sleep(max(every, result.retry_after or 0.0))

    def parked(self) -> list[ParkedFix]:
        """List the fixes that were permanently rejected, and why."""
        return self._store.parked()

    def retry_parked(self, id: int) -> None:
        """Queue a parked fix again."""
        self._store.unpark(id)

    def drop_parked(self, id: int) -> None:
        """Discard a parked fix."""
        self._store.drop(id)

    @property
    def dropped(self) -> int:
        """How many were dropped in total because the queue was full."""
        return int(self._store.read_metadata("dropped"))

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def _size(self) -> int:
        sizes = [self._most]
        if whole := self._store.read_metadata("whole_hour"):
            sizes.append(int(whole))
        if self._store.read_metadata("left_until") > self._clock.now():
            sizes.append(int(self._store.read_metadata("left")))
        return max(1, min(sizes))

    def _send(self, batch: Batch) -> int:
        """Send one batch; return how many were accepted."""
        call = Call(
            "POST",
            "/location/update",
            body=batch.fixes,
            key=True,
            idempotency_key=batch.key,
            writes="fixes",
        )
        try:
            _, headers, _ = self._transport.fetch(call)
        except UnauthorizedError:
            raise
        except ApiError as error:
            if error.status == 429:
                self._limited(batch, error)
            elif error.status == 408 or error.status >= 500:
                self._wait(error.retry_after)
            else:
                self._refused(batch, error)
            return 0
        except ConnectionFailedError:
            self._wait(None)
            return 0
        self._store.sent(batch)
        self._store.write_metadata("failures", 0)
        left, seconds, _ = allowance(headers)
        self._record_left(left, seconds)
        return len(batch.ids)

    def _limited(self, batch: Batch, error: ApiError) -> None:
        left, seconds, _ = allowance(error.headers)
        if left is not None and 0 < left < len(batch.ids):
            # A 429 accepts nothing, so what is left of the hour can still be used.
            self._store.undo(batch)
            self._record_left(left, seconds)
        else:
            self._wait(error.retry_after)

    def _refused(self, batch: Batch, error: ApiError) -> None:
        indexes = [index for index in refused(error.message) if index < len(batch.ids)]
        _, _, whole = allowance(error.headers)
        if len(batch.ids) == 1:
            self._store.park(batch.ids, error.status, error.message)
        elif indexes:
            self._store.undo(batch)
            self._store.park([batch.ids[index] for index in indexes], error.status, error.message)
        elif whole is not None and whole < len(batch.ids):
            self._store.undo(batch)
            self._store.write_metadata("whole_hour", whole)
        else:
            self._store.split(batch)

    def _record_left(self, left: int | None, seconds: float | None) -> None:
        if left is None or seconds is None:
            return
        until = self._clock.now() + seconds
        self._store.write_metadata("left", left)
        self._store.write_metadata("left_until", until)
        if left == 0:
            self._store.write_metadata("not_before", until)

    def _wait(self, asked: float | None) -> None:
        failures = int(self._store.read_metadata("failures"))
        if asked is None:
            settings = self._transport.settings
            asked = settings.backoff(failures, _LONGEST_WAIT_S, _FIRST_WAIT_S)
            self._store.write_metadata("failures", failures + 1)
        self._store.write_metadata("not_before", self._clock.now() + asked)
