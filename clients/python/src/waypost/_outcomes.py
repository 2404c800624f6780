"""The outcome of an imported record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict


@dataclass(frozen=True)
class ImportOutcome:
    """The outcome of one record."""

    line: int
    """Its number, from 1, in the order given."""
    id: str | None = None
    status: str | None = None
    """``created``, ``updated`` or ``unchanged``; None if it was refused."""
    error: str | None = None
    """Why it was refused; None if it was written."""


class AcceptedFix(TypedDict):
    """A fix that was accepted, now or when it was first sent."""

    id: str
    recorded_at: str
