"""What became of a record that was imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict


@dataclass(frozen=True)
class ImportOutcome:
    """What became of one record."""

    line: int
    """Its number, from 1, in the order given."""
    id: str | None = None
    status: str | None = None
    """``created``, ``updated`` or ``unchanged``; None where it was refused."""
    error: str | None = None
    """Why it was refused; None where it was written."""


class AcceptedFix(TypedDict):
    """A fix that was taken, now or when it was first sent."""

    id: str
    recorded_at: str
