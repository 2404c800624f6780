"""The client.

Made by scripts/unasync.py.
"""

from __future__ import annotations

import ssl
from dataclasses import replace
from types import TracebackType
from typing import cast
from urllib.parse import urlsplit

import httpx

from .._calls import Call
from .._credentials import Password, Token
from .._errors import InvalidArgumentError
from .._live import Channel
from .._settings import Settings
from ..models import Readiness
from ._automation import (
    Keys,
    OrganizationCircles,
    Runs,
    Webhooks,
    Workflows,
)
from ._business import (
    BusinessAnalytics,
    Clients,
    Companies,
    Contacts,
    Deals,
    Leads,
    Orders,
)
from ._credential import Credential, CredentialSource
from ._feeds import Feed
from ._people import Auth, Circles, Location, Sos
from ._queue import LocationQueue
from ._sio import wake
from ._sockets import Subscription
from ._transport import Session, Transport


class Waypost:
    """A client of one Waypost, for one key or one person.

    Keep it for as long as you need it: it reuses connections, and its reads see what it wrote.

    Args:
        url: Waypost's URL, such as ``https://waypost.example``.
        credential: An API key or access token; a :class:`Password` to sign in with; or a function
            that returns the next token whenever one is needed. None: only what needs none.
        settings: Its retries and timeouts.
        tls: Which certificates to trust, for requests and sockets; the usual ones unless given.
        http: Your own httpx client, for all but sockets. You close it.

    """

    def __init__(
        self,
        url: str,
        credential: CredentialSource | None = None,
        *,
        settings: Settings | None = None,
        tls: ssl.SSLContext | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise InvalidArgumentError(f"{url!r} is no address such as https://waypost.example")
        if parts.query or parts.fragment:
            raise InvalidArgumentError("the address holds no query")
        settings = settings or Settings()
        self._owned = None if http is not None else httpx.Client(verify=tls or True)
        session = Session(
            base=url.rstrip("/"),
            http=http or cast("httpx.Client", self._owned),
            tls=tls,
            credential=Credential(credential, self._sign_in, settings.clock),
        )
        self._begin(Transport(session, settings))

    def _begin(self, transport: Transport) -> None:
        self._transport = transport
        self.workflows = Workflows(transport)
        self.runs = Runs(transport)
        self.companies = Companies(transport)
        self.deals = Deals(transport)
        self.contacts = Contacts(transport)
        self.orders = Orders(transport)
        self.leads = Leads(transport)
        self.clients = Clients(transport)
        self.analytics = BusinessAnalytics(transport)
        self.keys = Keys(transport)
        self.webhooks = Webhooks(transport)
        self.organization_circles = OrganizationCircles(transport)
        self.events = Feed(transport, "/api/v1/events")
        self.locations = Feed(transport, "/api/v1/locations")
        self.auth = Auth(transport)
        self.location = Location(transport)
        self.circles = Circles(transport)
        self.sos = Sos(transport)

    def with_settings(
        self,
        *,
        max_retries: int | None = None,
        timeout: float | None = None,
        attempt_timeout: float | None = None,
        max_retry_after: float | None = None,
        read_your_writes: bool | None = None,
    ) -> Waypost:
        """Return a client with other settings on the same connections, credential and positions."""
        given = {
            "max_retries": max_retries,
            "timeout": timeout,
            "attempt_timeout": attempt_timeout,
            "max_retry_after": max_retry_after,
            "read_your_writes": read_your_writes,
        }
        changed = {name: value for name, value in given.items() if value is not None}
        settings = replace(self._transport.settings, **changed)  # type: ignore[arg-type]
        return self._like(Transport(self._transport.session, settings, self._transport.cause))

    def with_cause(self, cause: str | None) -> Waypost:
        """Return a client whose commands pass on their cause.

        Args:
            cause: The `Waypost-Cause` of the webhook or HTTP step that you respond to. Workflows
                that trigger each other that way then end.

        """
        transport = self._transport
        return self._like(Transport(transport.session, transport.settings, cause))

    def _like(self, transport: Transport) -> Waypost:
        other = object.__new__(type(self))
        other._owned = None
        other._begin(transport)
        return other

    def subscribe(self, channel: Channel, *, after: str | None = None) -> Subscription:
        """Subscribe to a channel's live events.

        Args:
            channel: ``runs``, ``events``, ``locations``, ``places`` or ``sos``; the first two
                for keys only.
            after: The position to resume after; None: a snapshot comes first.

        """
        return Subscription(self._transport, channel, after)

    def location_queue(
        self, path: str | None = None, *, batch: int = 100, capacity: int = 10_000
    ) -> LocationQueue:
        """Open a queue of fixes that survives disconnects and, in a file, restarts.

        Args:
            path: The file; None: in memory.
            batch: How many are sent at once, 1 to 100.
            capacity: How many may wait; beyond that, the oldest are dropped.

        """
        return LocationQueue(self._transport, path, batch, capacity)

    @property
    def position(self) -> str | None:
        """The newest position that this client's commands returned.

        Pass it to another process, whose ``min_position`` then waits for what was written here.
        """
        return self._transport.session.positions.wanted("events")

    def readiness(self) -> Readiness:
        """Check whether Waypost is ready; :class:`UnavailableError` if not."""
        call = Call("GET", "/readyz", anonymous=True)
        return cast("Readiness", self._transport.request(call))

    def close(self) -> None:
        """Close its connections; feeds and subscriptions in progress end."""
        session = self._transport.session
        session.is_closed = True
        for answer in list(session.streams):
            wake(answer)
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Waypost:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _sign_in(self, password: Password) -> Token:
        session = self.auth.login(password.email, password.password)
        return Token(session["access_token"], session["expires_in"])
