"""Waypost: workflows, business data, location safety, live events and webhooks.

    from waypost import Waypost

    with Waypost("https://waypost.example", "wp_…") as waypost:
        run = waypost.workflows.trigger("welcome-a-lead", {"name": "Ada"})
        print(waypost.runs.get(run["runId"])["state"])

:class:`AsyncWaypost` is the same for asyncio. `waypost.webhooks` verifies what Waypost sends you,
`waypost.models` has the types of all requests and responses.
"""

from . import models
from ._async._client import AsyncWaypost
from ._async._exports import AsyncExportStream
from ._async._lists import AsyncListing
from ._async._queue import AsyncLocationQueue
from ._async._sockets import AsyncSubscription
from ._credentials import Password, Token
from ._errors import (
    ApiError,
    BadRequestError,
    ConflictError,
    ConnectionFailedError,
    ForbiddenError,
    GoneError,
    InvalidArgumentError,
    InvalidResponseError,
    NotFoundError,
    RateLimitedError,
    ServerError,
    SocketClosedError,
    SubscriptionRefusedError,
    TimedOutError,
    TooLargeError,
    UnauthorizedError,
    UnavailableError,
    UnsupportedTypeError,
    WaypostError,
)
from ._exported import ExportedFile
from ._fixes import FlushResult, ParkedFix
from ._live import Conflated, LiveEvent, Reset, Snapshot, SubscriptionItem
from ._outcomes import AcceptedFix, ImportOutcome
from ._pages import Page
from ._settings import UNSET, Clock, Settings
from ._sync._client import Waypost
from ._sync._exports import ExportStream
from ._sync._lists import Listing
from ._sync._queue import LocationQueue
from ._sync._sockets import Subscription
from ._version import __version__

__all__ = [
    "UNSET",
    "AcceptedFix",
    "ApiError",
    "AsyncExportStream",
    "AsyncListing",
    "AsyncLocationQueue",
    "AsyncSubscription",
    "AsyncWaypost",
    "BadRequestError",
    "Clock",
    "Conflated",
    "ConflictError",
    "ConnectionFailedError",
    "ExportStream",
    "ExportedFile",
    "FlushResult",
    "ForbiddenError",
    "GoneError",
    "ImportOutcome",
    "InvalidArgumentError",
    "InvalidResponseError",
    "Listing",
    "LiveEvent",
    "LocationQueue",
    "NotFoundError",
    "Page",
    "ParkedFix",
    "Password",
    "RateLimitedError",
    "Reset",
    "ServerError",
    "Settings",
    "Snapshot",
    "SocketClosedError",
    "Subscription",
    "SubscriptionItem",
    "SubscriptionRefusedError",
    "TimedOutError",
    "Token",
    "TooLargeError",
    "UnauthorizedError",
    "UnavailableError",
    "UnsupportedTypeError",
    "Waypost",
    "WaypostError",
    "__version__",
    "models",
]
