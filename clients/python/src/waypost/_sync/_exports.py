"""All companies, deals or contacts as one file.

Made by scripts/unasync.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, overload

import httpx

from .._calls import Call
from .._exported import ExportedFile, described
from .._settings import UNSET, Unset
from ._transport import Transport

Progress = Callable[[int], None]


class ExportStream:
    """An export while it arrives."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer
        self.filename, self.content_type = described(answer.headers)

    def iter_bytes(self) -> Iterator[bytes]:
        """Yield the file in chunks. Raises if it breaks off: what arrived is then incomplete."""
        for piece in self._answer.iter_bytes():
            yield piece


class Exports:
    """Records that can be exported."""

    _transport: Transport
    _kind: str

    @overload
    def export(
        self,
        format: str = "csv",
        *,
        to: None = None,
        updated_since: datetime | str | None = None,
        progress: Progress | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> bytes: ...

    @overload
    def export(
        self,
        format: str = "csv",
        *,
        to: str | os.PathLike[str] | BinaryIO,
        updated_since: datetime | str | None = None,
        progress: Progress | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> ExportedFile: ...

    def export(
        self,
        format: str = "csv",
        *,
        to: str | os.PathLike[str] | BinaryIO | None = None,
        updated_since: datetime | str | None = None,
        progress: Progress | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> bytes | ExportedFile:
        """Export everything, newest first.

        Args:
            format: ``csv``, ``excel`` or ``pdf``; for companies also ``crm``.
            to: A file's path, which gets its name only once it is complete; or something to write
                bytes to. None: the bytes are the result.
            updated_since: Only what was written or deleted since then.
            progress: Called with the number of bytes so far, after each chunk.
            min_position: Waits until this position is seen, in place of this client's own.

        """
        call = self._call(format, updated_since, min_position)
        if to is None:
            return b"".join(self._pieces(call, progress))
        if isinstance(to, (str, os.PathLike)):
            return self._save(call, Path(to), progress)
        with self._transport.stream(call) as answer:
            # What was written there cannot be undone, so this is not retried.
            return _copy(answer, to, progress)

    @contextmanager
    def stream_export(
        self,
        format: str = "csv",
        *,
        updated_since: datetime | str | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> Iterator[ExportStream]:
        """Export in chunks, in an ``with`` block."""
        with self._transport.stream(self._call(format, updated_since, min_position)) as answer:
            yield ExportStream(answer)

    def _pieces(self, call: Call, progress: Progress | None) -> list[bytes]:
        def read(answer: httpx.Response) -> list[bytes]:
            pieces: list[bytes] = []
            size = 0
            for piece in answer.iter_bytes():
                pieces.append(piece)
                size += len(piece)
                if progress is not None:
                    progress(size)
            return pieces

        return self._transport.consume(call, read) or []

    def _save(self, call: Call, path: Path, progress: Progress | None) -> ExportedFile:
        part = path.with_name(f".{path.name}.{os.getpid()}.part")

        def read(answer: httpx.Response) -> ExportedFile:
            with part.open("wb") as file:
                return _copy(answer, file, progress)

        try:
            exported = self._transport.consume(call, read)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return exported or ExportedFile(None, None, 0)

    def _call(
        self,
        format: str,
        updated_since: datetime | str | None,
        min_position: str | Unset | None,
    ) -> Call:
        query = {"format": format, "updatedSince": updated_since}
        return Call(
            "GET",
            f"/api/export/{self._kind}",
            query=query,
            accept="*/*",
            waits="events",
            min_position=min_position,
            retry_failed=True,
        )


def _copy(answer: httpx.Response, file: BinaryIO, progress: Progress | None) -> ExportedFile:
    size = 0
    for piece in answer.iter_bytes():
        file.write(piece)
        size += len(piece)
        if progress is not None:
            progress(size)
    filename, content_type = described(answer.headers)
    return ExportedFile(filename, content_type, size)
