"""Lists, fetched page by page.

Made by scripts/unasync.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Generic, TypeVar

from .._calls import Call, invalid_response, next_cursor, parse
from .._pages import Page
from ._transport import Transport

T = TypeVar("T")


class Listing(Generic[T]):
    """A list, fetched by cursor: nothing is skipped or repeated while others write to it.

    Pages are requested as they are needed, and again with each new iteration.
    """

    def __init__(self, transport: Transport, call: Call) -> None:
        self._transport = transport
        self._call = call

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            for item in page.data:
                yield item

    def pages(self) -> Iterator[Page[T]]:
        """Yield page after page."""
        call = self._call
        while True:
            page: Page[T] = read_page(self._transport, call)
            yield page
            if page.next_cursor is None:
                return
            call = replace(call, query={**self._call.query, "cursor": page.next_cursor})

    def collect(self, limit: int) -> list[T]:
        """Return the first items, at most ``limit``, as a list."""
        items: list[T] = []
        if limit > 0:
            for item in self:
                items.append(item)
                if len(items) == limit:
                    break
        return items


def read_page(transport: Transport, call: Call) -> Page[Any]:
    """Request one page."""
    status, headers, content = transport.fetch(call)
    parsed = parse(status, headers, content)
    if not isinstance(parsed, dict) or not isinstance(parsed.get("data"), list):
        raise invalid_response(status, headers, content)
    data = parsed["data"]
    # A list without pages does not describe them.
    total, page, limit = (
        parsed.get(name, default)
        for name, default in (("total", len(data)), ("page", 1), ("limit", len(data)))
    )
    return Page(data, total, page, limit, next_cursor(headers))
