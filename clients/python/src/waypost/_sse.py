"""Lines and server-sent events from bytes, however these are split."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator


class Lines:
    """Splits at line feeds alone: JSON may hold other characters that Unicode calls line ends."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the lines that end in this piece."""
        if b"\n" not in piece:
            self._rest += piece
            return
        *whole, rest = (bytes(self._rest) + piece).split(b"\n")
        self._rest = bytearray(rest)
        for line in whole:
            yield line.removesuffix(b"\r")

    @property
    def has_rest(self) -> bool:
        """Whether there is an unfinished line."""
        return bool(self._rest)


class Events:
    """Reads the ids and data of server-sent events; comments and other fields are ignored.

    A position that is sent without an event has no data.
    """

    def __init__(self) -> None:
        self._lines = Lines()
        self._id = ""
        self._yielded = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> Iterator[tuple[str, str | None]]:
        """Yield id and data of the events that end in this piece."""
        for line in self._lines.feed(piece):
            name, _, value = line.decode(errors="replace").partition(":")
            value = value.removeprefix(" ")
            if not line and (self._data or self._id != self._yielded):
                yield self._id, "\n".join(self._data) if self._data else None
                self._yielded = self._id
                self._data.clear()
            elif name == "data":
                self._data.append(value)
            elif name == "id":
                self._id = value


class Seen:
    """The latest positions, so that nothing is delivered twice after a break."""

    _MOST = 4096

    def __init__(self) -> None:
        self._order: deque[str] = deque()
        self._known: set[str] = set()

    def is_new(self, position: str) -> bool:
        """Note a position; False if it was noted before."""
        if position in self._known:
            return False
        self._known.add(position)
        self._order.append(position)
        if len(self._order) > self._MOST:
            self._known.discard(self._order.popleft())
        return True

    def clear(self) -> None:
        """Forget all: positions of another log mean something else."""
        self._order.clear()
        self._known.clear()
