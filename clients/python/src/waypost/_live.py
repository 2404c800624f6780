"""The items and the position of a subscription: no network access here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from ._errors import SubscriptionRefusedError
from ._sse import Seen

Channel = Literal["locations", "places", "sos", "runs", "events"]
ID = "s1"


@dataclass(frozen=True)
class Snapshot:
    """The channel's current state. Events follow."""

    data: list[dict[str, Any]]


@dataclass(frozen=True)
class LiveEvent:
    """Something happened."""

    position: str
    """Its position in the log: a subscription ``after`` it resumes after this event."""
    type: str
    time: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Reset:
    """Missed events are no longer available: a snapshot follows, to start over from."""


@dataclass(frozen=True)
class Conflated:
    """The client was too slow: of the fixes between, only each person's newest follow."""

    after: str
    through: str


SubscriptionItem = Snapshot | LiveEvent | Reset | Conflated
"""What a subscription delivers."""


class Place:
    """A subscription's position across all of its connections."""

    def __init__(self, channel: Channel, after: str | None) -> None:
        self._channel = channel
        self._after = after
        """The position to start after; None: a snapshot."""
        self._base: str | None = None
        self._seen = Seen()

    def subscribe(self) -> str:
        """Return the frame that starts or resumes it."""
        self._base = None
        frame = {"type": "subscribe", "id": ID, "channel": self._channel}
        return json.dumps(frame if self._after is None else {**frame, "after": self._after})

    def take(self, frame: dict[str, Any]) -> SubscriptionItem | None:
        """Take a frame of the server; return its item, if any."""
        if frame.get("id") != ID:
            return None
        match frame.get("type"):
            case "subscribed":
                self._base = frame["position"]
            case "snapshot":
                self._after = self._base
                return Snapshot(frame["data"])
            case "event":
                return self._event(frame)
            case "reset":
                self._after = None
                self._seen.clear()
                return Reset()
            case "conflated":
                return Conflated(frame["from"], frame["to"])
            case "error":
                raise SubscriptionRefusedError(str(frame.get("error")))
        return None

    def _event(self, frame: dict[str, Any]) -> LiveEvent | None:
        position = frame["position"]
        if not self._seen.is_new(position):
            return None
        self._after = position
        event = frame["event"]
        return LiveEvent(position, event["type"], event["time"], event["data"])


def auth(token: str) -> str:
    """Return the frame that authenticates."""
    return json.dumps({"type": "auth", "token": token})


def read(text: str | bytes) -> dict[str, Any]:
    """Read a frame; an empty one if it is invalid."""
    try:
        frame = json.loads(text)
    except ValueError:
        return {}
    return frame if isinstance(frame, dict) else {}
