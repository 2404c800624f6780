"""Requests before they are sent, and responses after they arrive: no network access here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit

import httpx

from ._errors import ApiError, InvalidArgumentError, InvalidResponseError, error_of
from ._positions import Feed
from ._settings import UNSET, Unset

QueryValue = str | int | bool | date | None
_AGAIN = frozenset({408, 429, 502, 503, 504})
_NEXT = re.compile(r'<([^>]*)>\s*;[^,<]*?\brel="?next"?', re.IGNORECASE)


@dataclass(frozen=True)
class Call:
    """One request, however many attempts it takes."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    query: Mapping[str, QueryValue] = field(default_factory=dict)
    body: Any = UNSET
    lines: bytes | None = None
    """A body of NDJSON, in place of `body`."""
    accept: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    key: bool = False
    """Whether it takes an Idempotency-Key."""
    idempotency_key: str | None = None
    """The caller's own key, used instead of a new one."""
    waits: Feed | None = None
    """The feed whose newest position a read waits for."""
    min_position: str | Unset | None = UNSET
    """The caller's own position; None waits for nothing."""
    writes: Feed = "events"
    """The feed that a command writes to, which its position belongs to."""
    retry_failed: bool = False
    """Whether 500 may mean that something is unavailable, as where 503 is not a status."""
    anonymous: bool = False
    """Whether it is sent without a credential."""
    quiet: float = 0.0
    """For how many seconds its response may be silent, at least."""

    def url(self, base: str) -> str:
        """Build the address."""
        query = {name: _text(value) for name, value in self.query.items() if value is not None}
        return f"{base}{self.path}" + (f"?{urlencode(query, quote_via=quote)}" if query else "")

    def content(self) -> tuple[bytes | None, str | None]:
        """Build the body and its type."""
        if self.lines is not None:
            return self.lines, "application/x-ndjson"
        if isinstance(self.body, Unset):
            return None, None
        return written(self.body), "application/json"


def written(value: object) -> bytes:
    """Write JSON in UTF-8."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"this is no JSON: {error}") from error


def segment(value: str) -> str:
    """Encode an id as one segment of a path."""
    if value in {"", ".", ".."}:
        # These would address something else.
        raise InvalidArgumentError(f"{value!r} is no id")
    return quote(value, safe="")


def moment(value: datetime | str) -> str:
    """Format a time as the API reads it."""
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        raise InvalidArgumentError("a moment needs a time zone: use datetime.now(timezone.utc)")
    return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def _text(value: QueryValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return moment(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def may_retry(call: Call, status: int) -> bool:
    """Whether a response means that the same may succeed later."""
    return status in _AGAIN or (status == 500 and call.retry_failed)


def retry_after(headers: httpx.Headers, now: float) -> float | None:
    """Read in how many seconds to retry: whole seconds, or a date."""
    text = headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except ValueError:
        return None


def failure(status: int, headers: httpx.Headers, content: bytes, now: float) -> ApiError:
    """Build the error for an unsuccessful response."""
    return error_of(
        status,
        content.decode(errors="replace"),
        trace_id=_trace_id(headers),
        retry_after=retry_after(headers, now),
        position=headers.get("waypost-position"),
        headers=headers,
    )


def parse(status: int, headers: httpx.Headers, content: bytes) -> Any:
    """Read a success; None if it has no body."""
    if status == 204 or not content:
        return None
    try:
        return json.loads(content)
    except ValueError:
        raise invalid_response(status, headers, content) from None


def invalid_response(status: int, headers: httpx.Headers, content: bytes) -> InvalidResponseError:
    """Build the error for a success with an unexpected body."""
    kind = headers.get("content-type", "nothing that it names")
    return InvalidResponseError(
        status,
        f"the answer is {kind}, not JSON; is there a proxy in between?",
        body=content.decode(errors="replace"),
        trace_id=_trace_id(headers),
    )


def next_cursor(headers: httpx.Headers) -> str | None:
    """Read the cursor of the next page from the `Link` header."""
    found = _NEXT.search(headers.get("link", ""))
    if found is None:
        return None
    # Only the cursor: the address may be one that this client cannot reach, or should not.
    query = httpx.QueryParams(urlsplit(found[1]).query)
    cursor = query.get("cursor")
    return cursor if isinstance(cursor, str) else None


def _trace_id(headers: httpx.Headers) -> str | None:
    parts = headers.get("traceparent", "").split("-")
    return parts[1] if len(parts) == 4 else None
