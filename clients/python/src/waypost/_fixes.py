"""Fixes that wait to be sent, in a file or in memory."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import cast

import httpx

from ._calls import moment
from ._errors import InvalidArgumentError
from .models import Fix

_TABLES = """
CREATE TABLE IF NOT EXISTS fixes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, instant INTEGER NOT NULL UNIQUE, fix TEXT NOT NULL,
    batch TEXT, status INTEGER, message TEXT);
CREATE TABLE IF NOT EXISTS metadata (name TEXT PRIMARY KEY, value REAL NOT NULL);
"""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FRACTION = re.compile(r"\.(\d+)")
_INDEX = re.compile(r"(?:^|; )\[(\d+)\]")


@dataclass(frozen=True)
class FlushResult:
    """The result of a flush."""

    sent: int
    """Fixes that were accepted this time."""
    waiting: int
    parked: int
    retry_after: float | None
    """In how many seconds to retry; None if that is possible at once, or nothing waits."""


@dataclass(frozen=True)
class ParkedFix:
    """A fix that the server permanently rejected."""

    id: int
    fix: Fix
    status: int
    message: str


@dataclass(frozen=True)
class Batch:
    """Fixes that are sent together, under the same key until they are answered."""

    key: str
    ids: Sequence[int]
    fixes: Sequence[Fix]


class Store:
    """The queue's storage. Safe to share between threads."""

    def __init__(self, path: str | None) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path or ":memory:", check_same_thread=False)
        with self._database as database:
            database.executescript(_TABLES)
            _migrate(database)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def add(self, fix: Fix, capacity: int) -> None:
        """Store a fix, and drop the oldest if there are too many."""
        instant = _instant(fix)
        with self._lock, self._database as database:
            taken = "SELECT 1 FROM fixes WHERE instant = ?"
            moved = instant
            while database.execute(taken, (moved,)).fetchone():
                moved += 1000
            if moved != instant:
                fix = cast("Fix", {**fix, "recorded_at": moment(_EPOCH + _micro(moved))})
                fix["recorded_at"] = _short(cast("str", fix["recorded_at"]))
            database.execute(
                "INSERT INTO fixes (instant, fix) VALUES (?, ?)", (moved, json.dumps(fix))
            )
            waiting = self._count("status IS NULL")
            if waiting > capacity:
                # A batch in progress stays unchanged, or its key would mean something else.
                database.execute(
                    "DELETE FROM fixes WHERE id IN (SELECT id FROM fixes WHERE status IS NULL "
                    "ORDER BY batch IS NOT NULL, id LIMIT ?)",
                    (waiting - capacity,),
                )
                self._write_metadata("dropped", self._read_metadata("dropped") + waiting - capacity)

    def batch(self, most: int) -> Batch | None:
        """Return the batch in progress, or make one of the oldest; None if nothing waits."""
        with self._lock, self._database as database:
            first = database.execute(
                "SELECT batch FROM fixes WHERE batch IS NOT NULL ORDER BY id LIMIT 1"
            ).fetchone()
            if first is None:
                key = secrets.token_urlsafe(24)
                database.execute(
                    "UPDATE fixes SET batch = ? WHERE id IN "
                    "(SELECT id FROM fixes WHERE status IS NULL ORDER BY id LIMIT ?)",
                    (key, most),
                )
            else:
                key = first[0]
            rows = database.execute(
                "SELECT id, fix FROM fixes WHERE batch = ? ORDER BY id", (key,)
            ).fetchall()
            ids, fixes = [row[0] for row in rows], [json.loads(row[1]) for row in rows]
            return Batch(key, ids, fixes) if rows else None

    def sent(self, batch: Batch) -> None:
        """Delete an accepted batch."""
        with self._lock, self._database as database:
            database.execute("DELETE FROM fixes WHERE batch = ?", (batch.key,))

    def undo(self, batch: Batch) -> None:
        """Dissolve a batch of which nothing was accepted."""
        with self._lock, self._database as database:
            database.execute("UPDATE fixes SET batch = NULL WHERE batch = ?", (batch.key,))

    def split(self, batch: Batch) -> None:
        """Split in two a batch of which nothing was accepted."""
        half = (len(batch.ids) + 1) // 2
        with self._lock, self._database as database:
            for ids in (batch.ids[:half], batch.ids[half:]):
                key = secrets.token_urlsafe(24)
                database.executemany(
                    "UPDATE fixes SET batch = ? WHERE id = ?", [(key, one) for one in ids]
                )

    def park(self, ids: Sequence[int], status: int, message: str) -> None:
        """Park rejected fixes."""
        with self._lock, self._database as database:
            database.executemany(
                "UPDATE fixes SET batch = NULL, status = ?, message = ? WHERE id = ?",
                [(status, message, one) for one in ids],
            )

    def parked(self) -> list[ParkedFix]:
        """List the parked fixes, the oldest first."""
        with self._lock:
            rows = self._database.execute(
                "SELECT id, fix, status, message FROM fixes WHERE status IS NOT NULL ORDER BY id"
            ).fetchall()
        return [ParkedFix(row[0], json.loads(row[1]), row[2], row[3]) for row in rows]

    def unpark(self, id: int) -> None:  # noqa: A002
        """Queue a fix again."""
        with self._lock, self._database as database:
            database.execute("UPDATE fixes SET status = NULL, message = NULL WHERE id = ?", (id,))

    def drop(self, id: int) -> None:  # noqa: A002
        """Discard a parked fix."""
        with self._lock, self._database as database:
            database.execute("DELETE FROM fixes WHERE id = ? AND status IS NOT NULL", (id,))

    def counts(self) -> tuple[int, int]:
        """Count the waiting and the parked fixes."""
        with self._lock:
            return self._count("status IS NULL"), self._count("status IS NOT NULL")

    def read_metadata(self, name: str) -> float:
        """Read a number that survives a restart; 0 unless it was written."""
        with self._lock:
            return self._read_metadata(name)

    def write_metadata(self, name: str, value: float) -> None:
        """Write a number that survives a restart."""
        with self._lock, self._database:
            self._write_metadata(name, value)

    def _read_metadata(self, name: str) -> float:
        found = self._database.execute("SELECT value FROM metadata WHERE name = ?", (name,))
        row = found.fetchone()
        return float(row[0]) if row else 0.0

    def _write_metadata(self, name: str, value: float) -> None:
        self._database.execute("INSERT OR REPLACE INTO metadata VALUES (?, ?)", (name, value))

    def _count(self, which: str) -> int:
        found = self._database.execute(f"SELECT count(*) FROM fixes WHERE {which}")  # noqa: S608
        return int(found.fetchone()[0])


def _migrate(database: sqlite3.Connection) -> None:
    # Files of earlier versions have the table `metadata` under the name `notes`.
    named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'notes'"
    if database.execute(named).fetchall():
        database.execute("INSERT OR REPLACE INTO metadata SELECT name, value FROM notes")
        database.execute("DROP TABLE notes")


def refused(message: str) -> list[int]:
    """Read which indexes of an array an error names."""
    return [int(index) for index in _INDEX.findall(message)]


def allowance(headers: httpx.Headers) -> tuple[int | None, float | None, int | None]:
    """Read what is left of the hourly limit, the seconds until it resets, and the whole limit."""
    left = _limit(headers.get("ratelimit", ""))
    whole = _limit(headers.get("ratelimit-policy", ""))
    seconds = left.get("t")
    return left.get("r"), None if seconds is None else float(seconds), whole.get("q")


def _limit(text: str) -> dict[str, int]:
    for one in text.split(","):
        name, *parameters = one.strip().split(";")
        if name.strip('"') == "locations":
            pairs = (parameter.strip().partition("=") for parameter in parameters)
            return {key: int(value) for key, _, value in pairs if value.isdecimal()}
    return {}


def _instant(fix: Fix) -> int:
    recorded_at = fix.get("recorded_at") or ""
    try:
        at = datetime.fromisoformat(_FRACTION.sub(_six, recorded_at).replace("Z", "+00:00"))
        return (at - _EPOCH) // timedelta(microseconds=1)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"recorded_at: {recorded_at!r} is no RFC 3339 time") from None


def _six(found: re.Match[str]) -> str:
    # Python 3.10 reads no other number of digits.
    return f".{found[1][:6]:0<6}"


def _micro(instant: int) -> timedelta:
    return timedelta(microseconds=instant)


def _short(text: str) -> str:
    # Microseconds only where there are any.
    return text.replace("000Z", "Z") if "." in text else text
