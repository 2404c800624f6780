"""Metadata of an exported file."""

from __future__ import annotations

import re
from dataclasses import dataclass

import httpx

_FILENAME = re.compile(r'filename="([^"/\\]+)"')


@dataclass(frozen=True)
class ExportedFile:
    """An export that was written somewhere."""

    filename: str | None
    """The name that Waypost suggests, with the day in UTC."""
    content_type: str | None
    size: int
    """In bytes."""


def described(headers: httpx.Headers) -> tuple[str | None, str | None]:
    """Read the suggested name and the type of a file."""
    name = _FILENAME.search(headers.get("content-disposition", ""))
    return name[1] if name else None, headers.get("content-type")
