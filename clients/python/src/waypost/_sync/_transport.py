"""Sends requests: with retries where they help, and after earlier writes.

Made by scripts/unasync.py.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from .._calls import Call, failure, may_retry, parse
from .._errors import (
    ApiError,
    BadRequestError,
    ConnectionFailedError,
    NotFoundError,
    TimedOutError,
    UnauthorizedError,
)
from .._positions import Positions
from .._settings import Settings, Unset
from .._version import USER_AGENT, log
from ._credential import Credential

T = TypeVar("T")


@dataclass
class Session:
    """What all calls of a client share."""

    base: str
    http: httpx.Client
    credential: Credential
    tls: ssl.SSLContext | None = None
    positions: Positions = field(default_factory=Positions)
    is_closed: bool = False
    """Feeds and subscriptions then do not reconnect."""
    streams: list[httpx.Response] = field(default_factory=list)
    """Responses being read."""


@dataclass
class _Progress:
    """A call's state between its attempts."""

    deadline: float
    key: str | None
    position: str | None
    token: str | None = None
    retries: int = 0
    may_have_arrived: bool = False
    renewed: bool = False


class Transport:
    """Sends calls with one retry policy."""

    def __init__(self, session: Session, settings: Settings, cause: str | None = None) -> None:
        self.session = session
        self.settings = settings
        self.cause = cause

    def request(self, call: Call) -> Any:
        """Send a call and read its JSON; None if the response has no body."""
        return parse(*self.fetch(call))

    def fetch(self, call: Call) -> tuple[int, httpx.Headers, bytes]:
        """Send a call; return the whole response."""

        def read(answer: httpx.Response) -> tuple[int, httpx.Headers, bytes]:
            return answer.status_code, answer.headers, answer.read()

        return self.consume(call, read) or (204, httpx.Headers(), b"")

    def consume(self, call: Call, read: Callable[[httpx.Response], T]) -> T | None:
        """Send a call and have its response read, again from the start after a break.

        None: what was to be deleted is gone.
        """
        progress = self._begin(call)
        while True:
            answer = self._open(call, progress)
            if answer is None:
                return None
            try:
                return read(answer)
            except httpx.RequestError as error:
                self._recover(call, progress, _lost(error))
            finally:
                answer.close()

    @contextmanager
    def stream(self, call: Call) -> Iterator[httpx.Response]:
        """Send a call; stream its response. Failures before the body are retried."""
        answer = self._open(call, self._begin(call))
        if answer is None:
            raise ConnectionFailedError("there is nothing to read")
        self.session.streams.append(answer)
        try:
            yield answer
        except httpx.RequestError as error:
            raise _lost(error) from error
        finally:
            self.session.streams.remove(answer)
            answer.close()

    def _begin(self, call: Call) -> _Progress:
        position = None
        if isinstance(call.min_position, str):
            position = call.min_position
        elif isinstance(call.min_position, Unset) and self.settings.read_your_writes:
            position = self.session.positions.wanted(call.waits) if call.waits else None
        key = call.idempotency_key or (secrets.token_urlsafe(24) if call.key else None)
        deadline = self.settings.clock.monotonic() + self.settings.timeout
        return _Progress(deadline, key, position)

    def _open(self, call: Call, progress: _Progress) -> httpx.Response | None:
        """Send until there is a success; None: what was to be deleted is gone."""
        while True:
            try:
                answer = self._send(call, progress)
                if answer.is_success:
                    self._learn(call, answer.headers)
                    return answer
                try:
                    content = answer.read()
                finally:
                    answer.close()
            except httpx.RequestError as broken:
                self._recover(call, progress, _lost(broken))
                continue
            now = self.settings.clock.now()
            error = failure(answer.status_code, answer.headers, content, now)
            if (
                isinstance(error, NotFoundError)
                and call.method == "DELETE"
                and progress.may_have_arrived
            ):
                return None
            if not self._put_right(call, progress, error):
                self._recover(call, progress, error)

    def _send(self, call: Call, progress: _Progress) -> httpx.Response:
        headers = {"accept": call.accept, "user-agent": USER_AGENT, **call.headers}
        progress.token = None if call.anonymous else self.session.credential.token()
        if progress.token:
            headers["authorization"] = f"Bearer {progress.token}"
        if progress.key:
            headers["idempotency-key"] = progress.key
        if self.cause and call.method != "GET":
            headers["waypost-cause"] = self.cause
        if progress.position:
            headers["waypost-min-position"] = progress.position
        content, content_type = call.content()
        if content_type:
            headers["content-type"] = content_type
        left = max(0.001, progress.deadline - self.settings.clock.monotonic())
        timeout = min(self.settings.attempt_timeout, left)
        request = self.session.http.build_request(
            call.method,
            call.url(self.session.base),
            headers=headers,
            content=content,
            # The wait for a pooled connection may take as long as the call may.
            timeout=httpx.Timeout(timeout, read=max(timeout, call.quiet), pool=left),
        )
        return self.session.http.send(request, stream=True, follow_redirects=False)

    def _learn(self, call: Call, headers: httpx.Headers) -> None:
        position = headers.get("waypost-position")
        if position and call.method != "GET":
            self.session.positions.learn(call.writes, position)

    def _put_right(self, call: Call, progress: _Progress, error: ApiError) -> bool:
        """Correct the next attempt, if that may help; it then follows at once."""
        credential = self.session.credential
        if isinstance(error, UnauthorizedError) and not call.anonymous:
            if progress.renewed or not credential.is_renewable:
                return False
            progress.renewed = True
            credential.renewed(progress.token)
            return True
        is_refused = error.message.lower().startswith("waypost-min-position")
        if isinstance(error, BadRequestError) and progress.position and is_refused:
            if call.min_position == progress.position:
                return False
            # Its log was since restored from a backup: the position means nothing any more.
            self.session.positions.forget(progress.position)
            progress.position = None
            return True
        return False

    def _recover(
        self, call: Call, progress: _Progress, error: ApiError | ConnectionFailedError
    ) -> None:
        """Wait for the next attempt, or raise the error if there is none."""
        settings, asked = self.settings, None
        if isinstance(error, ApiError):
            if not may_retry(call, error.status):
                raise error
            asked = error.retry_after
        if progress.retries >= settings.max_retries:
            raise error
        wait = settings.backoff(progress.retries) if asked is None else asked
        if asked is not None and asked > settings.max_retry_after:
            raise error
        if settings.clock.monotonic() + wait > progress.deadline:
            raise error
        if not (isinstance(error, ApiError) and error.status == 429):
            progress.may_have_arrived = True
        progress.retries += 1
        log.info("%s %s is tried again in %.1f s: %s", call.method, call.path, wait, error)
        settings.clock.sleep(wait)


def _lost(error: httpx.RequestError) -> ConnectionFailedError:
    kind = TimedOutError if isinstance(error, httpx.TimeoutException) else ConnectionFailedError
    lost = kind(str(error) or type(error).__name__)
    lost.__cause__ = error
    return lost
