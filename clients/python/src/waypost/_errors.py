"""The errors, as types."""

from __future__ import annotations

import json

import httpx


class WaypostError(Exception):
    """Base of all errors of this library."""


class InvalidArgumentError(WaypostError, ValueError):
    """An invalid argument; nothing was sent."""


class ConnectionFailedError(WaypostError):
    """No response, or an incomplete one. A command may have been carried out all the same."""


class TimedOutError(ConnectionFailedError):
    """A response took too long."""


class ApiError(WaypostError):
    """An error response.

    Attributes:
        status: The HTTP status.
        message: What went wrong, for people.
        body: The raw body, as text.
        trace_id: Identifies the request in Waypost's logs; None if the response has none.
        retry_after: In how many seconds to retry; None if the response does not say.
        position: The response's position in the log; None if it has none.
        headers: All of the response.

    """

    status: int
    message: str
    body: str
    trace_id: str | None
    retry_after: float | None
    position: str | None
    headers: httpx.Headers

    def __init__(
        self,
        status: int,
        message: str,
        *,
        body: str = "",
        trace_id: str | None = None,
        retry_after: float | None = None,
        position: str | None = None,
        headers: httpx.Headers | None = None,
    ) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message
        self.body = body
        self.trace_id = trace_id
        self.retry_after = retry_after
        self.position = position
        self.headers = httpx.Headers() if headers is None else headers

    def __str__(self) -> str:
        trace = f" (trace {self.trace_id})" if self.trace_id else ""
        return f"{self.status}: {self.message}{trace}"


class BadRequestError(ApiError):
    """400: something in the request is wrong; the message names the field."""


class UnauthorizedError(ApiError):
    """401: the key or token is missing, unknown, expired or revoked."""


class ForbiddenError(ApiError):
    """403: not allowed; for a key, the message names the missing scope."""


class NotFoundError(ApiError):
    """404: not found, or not visible to this caller."""


class ConflictError(ApiError):
    """409: in conflict with what exists already."""


class GoneError(ApiError):
    """410: no longer available, or a feed cannot resume from there."""


class TooLargeError(ApiError):
    """413: the body is too large."""


class UnsupportedTypeError(ApiError):
    """415: a body of this type is not accepted."""


class RateLimitedError(ApiError):
    """429: the limit is exceeded; ``retry_after`` says for how long."""


class ServerError(ApiError):
    """Any 5xx: an internal error."""


class UnavailableError(ServerError):
    """503: a dependency of Waypost is temporarily unavailable."""


class InvalidResponseError(ApiError):
    """A success with an unexpected body, such as a proxy's page."""


class SocketClosedError(WaypostError):
    """A socket ended permanently.

    Attributes:
        code: The close code, 3500 to 3999.
        message: The reason in words.

    """

    code: int
    message: str

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"the socket was closed with {self.code}: {self.message}"


class SubscriptionRefusedError(WaypostError):
    """A refused subscription, such as one after a position of another feed."""

    message: str

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    413: TooLargeError,
    415: UnsupportedTypeError,
    429: RateLimitedError,
    503: UnavailableError,
}


def error_of(
    status: int,
    body: str,
    *,
    trace_id: str | None,
    retry_after: float | None,
    position: str | None,
    headers: httpx.Headers | None = None,
) -> ApiError:
    """Build the error for a response."""
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    return kind(
        status,
        _message_of(body) or f"the server answered with status {status}",
        body=body,
        trace_id=trace_id,
        retry_after=retry_after,
        position=position,
        headers=headers,
    )


def _message_of(body: str) -> str | None:
    try:
        parsed = json.loads(body)
    except ValueError:
        return None
    message = parsed.get("error") if isinstance(parsed, dict) else None
    return message if isinstance(message, str) and message else None
