"""The client."""

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
from ._aio import wake
from ._automation import (
    AsyncKeys,
    AsyncOrganizationCircles,
    AsyncRuns,
    AsyncWebhooks,
    AsyncWorkflows,
)
from ._business import (
    AsyncBusinessAnalytics,
    AsyncClients,
    AsyncCompanies,
    AsyncContacts,
    AsyncDeals,
    AsyncLeads,
    AsyncOrders,
)
from ._credential import AsyncCredential, AsyncCredentialSource
from ._feeds import AsyncFeed
from ._people import AsyncAuth, AsyncCircles, AsyncLocation, AsyncSos
from ._queue import AsyncLocationQueue
from ._sockets import AsyncSubscription
from ._transport import AsyncSession, AsyncTransport


class AsyncWaypost:
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
        credential: AsyncCredentialSource | None = None,
        *,
        settings: Settings | None = None,
        tls: ssl.SSLContext | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise InvalidArgumentError(f"{url!r} is no address such as https://waypost.example")
        if parts.query or parts.fragment:
            raise InvalidArgumentError("the address holds no query")
        settings = settings or Settings()
        self._owned = None if http is not None else httpx.AsyncClient(verify=tls or True)
        session = AsyncSession(
            base=url.rstrip("/"),
            http=http or cast("httpx.AsyncClient", self._owned),
            tls=tls,
            credential=AsyncCredential(credential, self._sign_in, settings.clock),
        )
        self._begin(AsyncTransport(session, settings))

    def _begin(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self.workflows = AsyncWorkflows(transport)
        self.runs = AsyncRuns(transport)
        self.companies = AsyncCompanies(transport)
        self.deals = AsyncDeals(transport)
        self.contacts = AsyncContacts(transport)
        self.orders = AsyncOrders(transport)
        self.leads = AsyncLeads(transport)
        self.clients = AsyncClients(transport)
        self.analytics = AsyncBusinessAnalytics(transport)
        self.keys = AsyncKeys(transport)
        self.webhooks = AsyncWebhooks(transport)
        self.organization_circles = AsyncOrganizationCircles(transport)
        self.events = AsyncFeed(transport, "/api/v1/events")
        self.locations = AsyncFeed(transport, "/api/v1/locations")
        self.auth = AsyncAuth(transport)
        self.location = AsyncLocation(transport)
        self.circles = AsyncCircles(transport)
        self.sos = AsyncSos(transport)

    def with_settings(
        self,
        *,
        max_retries: int | None = None,
        timeout: float | None = None,
        attempt_timeout: float | None = None,
        max_retry_after: float | None = None,
        read_your_writes: bool | None = None,
    ) -> AsyncWaypost:
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
        return self._like(AsyncTransport(self._transport.session, settings, self._transport.cause))

    def with_cause(self, cause: str | None) -> AsyncWaypost:
        """Return a client whose commands pass on their cause.

        Args:
            cause: The `Waypost-Cause` of the webhook or HTTP step that you respond to. Workflows
                that trigger each other that way then end.

        """
        transport = self._transport
        return self._like(AsyncTransport(transport.session, transport.settings, cause))

    def _like(self, transport: AsyncTransport) -> AsyncWaypost:
        other = object.__new__(type(self))
        other._owned = None
        other._begin(transport)
        return other

    def subscribe(self, channel: Channel, *, after: str | None = None) -> AsyncSubscription:
        """Subscribe to a channel's live events.

        Args:
            channel: ``runs``, ``events``, ``locations``, ``places`` or ``sos``; the first two
                for keys only.
            after: The position to resume after; None: a snapshot comes first.

        """
        return AsyncSubscription(self._transport, channel, after)

    def location_queue(
        self, path: str | None = None, *, batch: int = 100, capacity: int = 10_000
    ) -> AsyncLocationQueue:
        """Open a queue of fixes that survives disconnects and, in a file, restarts.

        Args:
            path: The file; None: in memory.
            batch: How many are sent at once, 1 to 100.
            capacity: How many may wait; beyond that, the oldest are dropped.

        """
        return AsyncLocationQueue(self._transport, path, batch, capacity)

    @property
    def position(self) -> str | None:
        """The newest position that this client's commands returned.

        Pass it to another process, whose ``min_position`` then waits for what was written here.
        """
        return self._transport.session.positions.wanted("events")

    async def readiness(self) -> Readiness:
        """Check whether Waypost is ready; :class:`UnavailableError` if not."""
        call = Call("GET", "/readyz", anonymous=True)
        return cast("Readiness", await self._transport.request(call))

    async def aclose(self) -> None:
        """Close its connections; feeds and subscriptions in progress end."""
        session = self._transport.session
        session.is_closed = True
        for answer in list(session.streams):
            wake(answer)
        if self._owned is not None:
            await self._owned.aclose()

    async def __aenter__(self) -> AsyncWaypost:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _sign_in(self, password: Password) -> Token:
        session = await self.auth.login(password.email, password.password)
        return Token(session["access_token"], session["expires_in"])
