"""Companies, deals, contacts, orders, leads and clients.

Made by scripts/unasync.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import islice
from typing import Any, Generic, Literal, TypeVar, cast

from .._calls import Call, segment, written
from .._errors import ConnectionFailedError
from .._outcomes import ImportOutcome
from .._pages import Page
from .._settings import UNSET, Unset
from ..models import (
    Analytics,
    Client,
    ClientRecord,
    CompanyRecord,
    ContactRecord,
    DealRecord,
    Lead,
    LeadRecord,
    Order,
    OrderRecord,
    RecordId,
    StoredClient,
    StoredCompany,
    StoredContact,
    StoredDeal,
    StoredLead,
    StoredOrder,
)
from ._exports import Exports
from ._lists import Listing, read_page
from ._transport import Transport

In = TypeVar("In")
Stored = TypeVar("Stored")
Listed = TypeVar("Listed")


class Records(Generic[In, Stored]):
    """Records of one kind. Needs the scope ``records:write``."""

    _kind: str

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._path = f"/api/v1/records/{self._kind}"

    def create(self, record: In, *, idempotency_key: str | None = None) -> RecordId:
        """Create a record, under its ``id`` or a new one."""
        call = Call("POST", self._path, body=record, key=True, idempotency_key=idempotency_key)
        return cast("RecordId", self._transport.request(call))

    def put(self, id: str, record: In) -> RecordId:
        """Create a record or replace it as a whole: a field that is absent becomes empty."""
        call = Call("PUT", f"{self._path}/{segment(id)}", body=record)
        return cast("RecordId", self._transport.request(call))

    def get(self, id: str, *, min_position: str | Unset | None = UNSET) -> Stored:
        """Read a record."""
        path = f"{self._path}/{segment(id)}"
        call = Call("GET", path, waits="events", min_position=min_position)
        return cast("Stored", self._transport.request(call))

    def delete(self, id: str) -> None:
        """Delete a record."""
        self._transport.request(Call("DELETE", f"{self._path}/{segment(id)}"))

    def import_records(
        self, records: Iterable[In], *, batch: int = 1000
    ) -> Iterator[ImportOutcome]:
        """Create or replace many records, and yield an outcome for each, in their order.

        Any number: they are read and sent ``batch`` at a time. Nothing is sent before the
        first outcome is requested, and each batch only once, whatever breaks in between.
        """
        rest, sent = iter(records), 0
        while lines := [written(record) + b"\n" for record in islice(rest, batch)]:
            outcomes = self._send(lines)
            for outcome in outcomes:
                yield ImportOutcome(
                    line=outcome["line"] + sent,
                    id=outcome.get("id"),
                    status=outcome.get("status"),
                    error=outcome.get("error"),
                )
            if len(outcomes) < len(lines):
                raise ConnectionFailedError(
                    f"Waypost stopped behind record {sent + len(outcomes)}: "
                    "send that one, if it was refused, and those behind it again"
                )
            sent += len(lines)

    def _send(self, lines: list[bytes]) -> list[dict[str, Any]]:
        call = Call(
            "POST", self._path, lines=b"".join(lines), accept="application/x-ndjson", key=True
        )
        _, _, content = self._transport.fetch(call)
        return [json.loads(line) for line in content.split(b"\n") if line]


def _narrowed(
    created_from: str | None,
    created_before: str | None,
    status: str | None = None,
    city: str | None = None,
    is_active: bool | None = None,
) -> dict[str, Any]:
    return {
        "createdFrom": created_from,
        "createdBefore": created_before,
        "status": status,
        "city": city,
        "isActive": is_active,
    }


class _AsyncListed(Records[In, Stored], Generic[In, Stored, Listed]):
    """Records that are also business data: 100 requests per key and minute."""

    def list(
        self,
        *,
        q: str | None = None,
        sort: str | None = None,
        created_from: str | None = None,
        created_before: str | None = None,
        status: str | None = None,
        city: str | None = None,
        is_active: bool | None = None,
        limit: int | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> Listing[Listed]:
        """List all, the newest first, fetched by cursor.

        Args:
            q: A part of a name, e-mail address or number.
            sort: ``createdAt``, ``name``, ``email``, ``status`` of leads, ``city`` or ``isActive``
                of clients; descending with ``-`` before it.
            created_from: Only those created at this time or later: RFC 3339, or a date.
            created_before: Only those created before this time.
            status: Only leads with this status.
            city: Only clients of this city.
            is_active: Only clients that are active, or that are not.
            limit: How many on a page, 1 to 100; 20 unless given.
            min_position: Waits until this position is seen, in place of this client's own.

        """
        query = {"q": q, "sort": sort, "limit": limit}
        query |= _narrowed(created_from, created_before, status, city, is_active)
        return Listing(self._transport, self._listing(query, min_position))

    def page(
        self,
        *,
        page: int | None = None,
        limit: int | None = None,
        q: str | None = None,
        sort: str | None = None,
        created_from: str | None = None,
        created_before: str | None = None,
        status: str | None = None,
        city: str | None = None,
        is_active: bool | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> Page[Listed]:
        """Read one page, from 1, with the total count."""
        query = {"q": q, "sort": sort, "limit": limit, "page": page}
        query |= _narrowed(created_from, created_before, status, city, is_active)
        return read_page(self._transport, self._listing(query, min_position))

    def _listing(self, query: dict[str, Any], min_position: str | Unset | None) -> Call:
        path = f"/api/v1/{self._kind}"
        return Call("GET", path, query=query, waits="events", min_position=min_position)


class Companies(Exports, Records[CompanyRecord, StoredCompany]):
    """Companies: written singly or in bulk, exported as a whole."""

    _kind = "companies"


class Deals(Exports, Records[DealRecord, StoredDeal]):
    """Deals: written singly or in bulk, exported as a whole."""

    _kind = "deals"


class Contacts(Exports, Records[ContactRecord, StoredContact]):
    """Contacts: written singly or in bulk, exported as a whole."""

    _kind = "contacts"


class Leads(_AsyncListed[LeadRecord, StoredLead, Lead]):
    """Leads. Listing needs the scope ``read:leads``."""

    _kind = "leads"


class Clients(_AsyncListed[ClientRecord, StoredClient, Client]):
    """Clients. Listing needs the scope ``read:clients``."""

    _kind = "clients"


class Orders(Records[OrderRecord, StoredOrder]):
    """Orders. Listing needs the scope ``read:orders``."""

    _kind = "orders"

    def list(
        self,
        *,
        status: str | None = None,
        q: str | None = None,
        sort: str | None = None,
        created_from: str | None = None,
        created_before: str | None = None,
        limit: int | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> Listing[Order]:
        """List all, the newest first, fetched by cursor.

        Args:
            status: ``PAYMENT_PENDING``, ``ACTIVE``, ``COMPLETED`` or ``CANCELLED``.
            q: A part of a name, e-mail address or number.
            sort: ``createdAt``, ``name``, ``email``, ``number``, ``amount`` or ``status``;
                descending with ``-`` before it.
            created_from: Only those created at this time or later: RFC 3339, or a date.
            created_before: Only those created before this time.
            limit: How many on a page, 1 to 100; 20 unless given.
            min_position: Waits until this position is seen, in place of this client's own.

        """
        query = {"q": q, "sort": sort, "limit": limit}
        query |= _narrowed(created_from, created_before, status)
        return Listing(self._transport, self._listing(query, min_position))

    def page(
        self,
        *,
        page: int | None = None,
        limit: int | None = None,
        status: str | None = None,
        q: str | None = None,
        sort: str | None = None,
        created_from: str | None = None,
        created_before: str | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> Page[Order]:
        """Read one page, from 1, with the total count."""
        query = {"q": q, "sort": sort, "limit": limit, "page": page}
        query |= _narrowed(created_from, created_before, status)
        return read_page(self._transport, self._listing(query, min_position))

    def _listing(self, query: dict[str, Any], min_position: str | Unset | None) -> Call:
        path = "/api/v1/orders"
        return Call("GET", path, query=query, waits="events", min_position=min_position)


class BusinessAnalytics:
    """Business analytics. Needs the scope ``read:analytics``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(
        self,
        *,
        from_: date | str | None = None,
        to: date | str | None = None,
        by: Literal["day", "week", "month"] | None = None,
        timezone: str | None = None,
        group_by: str | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> Analytics:
        """Summarize everything, or a span of days with a series.

        Args:
            from_: The first day; requires ``to``.
            to: The last day.
            by: The step of the series.
            timezone: The days' time zone, such as ``Europe/Berlin``; UTC unless given.
            group_by: ``status``, ``plan``, ``source`` or ``city``: divides each step by its values.
            min_position: Waits until this position is seen, in place of this client's own.

        """
        query = {"from": from_, "to": to, "by": by, "timezone": timezone, "groupBy": group_by}
        call = Call(
            "GET", "/api/v1/analytics", query=query, waits="events", min_position=min_position
        )
        return cast("Analytics", self._transport.request(call))
