"""Everything that happens, as lines up to the current end or as a live feed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

from .._calls import Call, may_retry
from .._errors import ApiError, ConnectionFailedError
from .._sse import Events, Lines, Seen
from .._version import log
from ..models import Event
from ._transport import AsyncTransport

_LONGEST_WAIT_S = 20.0
# Waypost sends something at least every 15 s.
_QUIET_S = 40.0


class AsyncFeed:
    """One of the organization's two feeds. Needs the scope ``events:read``."""

    def __init__(self, transport: AsyncTransport, path: str) -> None:
        self._transport = transport
        self._path = path

    async def read(
        self,
        *,
        after: str | None = None,
        types: Iterable[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Event]:
        """Yield events up to the current end, oldest first.

        Resumes after the last one if the connection breaks, as often as the settings allow.

        Args:
            after: The position to start after; None: with the first event.
            types: Which types, such as ``run.*`` or ``lead.created``; None: all.
            limit: How many at most.

        """
        settings = self._transport.settings
        given, breaks = 0, 0
        while True:
            call = self._call("application/x-ndjson", after, types, limit, given)
            try:
                async with self._transport.stream(call) as answer:
                    lines = Lines()
                    async for piece in answer.aiter_bytes():
                        for line in filter(None, lines.feed(piece)):
                            event: Event = json.loads(line)
                            after, given, breaks = event["position"], given + 1, 0
                            yield event
                if lines.has_rest:
                    raise ConnectionFailedError("the feed broke off")
                return
            except ConnectionFailedError:
                if breaks >= settings.max_retries:
                    raise
                await settings.clock.asleep(settings.backoff(breaks))
                breaks += 1

    async def follow(
        self,
        *,
        after: str | None = None,
        types: Iterable[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Event]:
        """Yield events as they happen, for as long as you like, without gaps or duplicates.

        Reconnects after any break and resumes after the last event that it yielded. Ends with
        :class:`GoneError` if it cannot resume there: the log was restored from a backup.

        Args:
            after: The position to start after; None: from now on.
            types: Which types, such as ``run.*`` or ``lead.created``; None: all.
            limit: How many at most; None: no limit.

        """
        settings = self._transport.settings
        once = AsyncTransport(self._transport.session, replace(settings, max_retries=0))
        seen, last, given, breaks = Seen(), None, 0, 0
        types = None if types is None else list(types)
        session = self._transport.session
        while (limit is None or given < limit) and not session.is_closed:
            call = self._call("text/event-stream", after, types, limit, given)
            if last is not None:
                call = replace(call, headers={"last-event-id": last})
            wait = None
            try:
                async with once.stream(call) as answer:
                    events = Events()
                    async for piece in answer.aiter_bytes():
                        for position, data in events.feed(piece):
                            last = position
                            if data is not None and seen.is_new(position):
                                given, breaks = given + 1, 0
                                yield json.loads(data)
            except ApiError as error:
                if not may_retry(call, error.status):
                    raise
                wait = error.retry_after
            except ConnectionFailedError:
                pass
            if (limit is None or given < limit) and not session.is_closed:
                again = settings.backoff(breaks, _LONGEST_WAIT_S) if wait is None else wait
                breaks += 1
                log.info("The feed %s broke off and is resumed in %.1f s", self._path, again)
                await settings.clock.asleep(again)

    def _call(
        self,
        accept: str,
        after: str | None,
        types: Iterable[str] | None,
        limit: int | None,
        given: int,
    ) -> Call:
        query = {
            "after": after,
            "types": None if types is None else ",".join(types),
            "limit": None if limit is None else limit - given,
        }
        return Call("GET", self._path, query=query, accept=accept, quiet=_QUIET_S)
