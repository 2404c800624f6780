"""Workflows, runs, keys, webhooks and circles of an organization."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, cast

from .._calls import Call, moment, segment
from .._errors import InvalidArgumentError
from .._settings import UNSET, Unset
from ..models import (
    ChangedWebhook,
    Delivery,
    Key,
    NewCircle,
    NewKey,
    NewWebhook,
    OrganizationInvite,
    Replayed,
    RotatedSecret,
    Run,
    SavedWorkflow,
    Scope,
    StartedRun,
    TestDelivery,
    Webhook,
    Workflow,
    WorkflowDefinition,
    WorkflowSummary,
)
from ._lists import AsyncListing
from ._transport import AsyncTransport


class _AsyncResource:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def _get(self, path: str, min_position: str | Unset | None) -> Any:
        call = Call("GET", path, waits="events", min_position=min_position)
        return await self._transport.request(call)

    async def _post(self, path: str, body: Any = UNSET, idempotency_key: str | None = None) -> Any:
        call = Call("POST", path, body=body, key=True, idempotency_key=idempotency_key)
        return await self._transport.request(call)

    def _list(
        self, path: str, query: dict[str, Any], min_position: str | Unset | None
    ) -> AsyncListing[Any]:
        call = Call("GET", path, query=query, waits="events", min_position=min_position)
        return AsyncListing(self._transport, call)


class AsyncWorkflows(_AsyncResource):
    """Workflow definitions."""

    async def trigger(
        self,
        workflow_id: str,
        payload: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> StartedRun:
        """Start a run. Needs the scope ``workflows:trigger``.

        Args:
            workflow_id: Which workflow; it must be ``ACTIVE``.
            payload: Available to its steps as ``trigger``; None: nothing.
            idempotency_key: Your own: the same key and payload start one run in 24 hours.

        """
        call = Call(
            "POST",
            f"/api/v1/workflows/{segment(workflow_id)}/trigger",
            body=UNSET if payload is None else payload,
            key=True,
            idempotency_key=idempotency_key,
            retry_failed=True,
        )
        return cast("StartedRun", await self._transport.request(call))

    async def put(self, workflow_id: str, definition: WorkflowDefinition) -> SavedWorkflow:
        """Save a workflow, as a new version if there is one already. Needs ``workflows:write``."""
        call = Call("PUT", f"/api/v1/workflows/{segment(workflow_id)}", body=definition)
        return cast("SavedWorkflow", await self._transport.request(call))

    async def get(self, workflow_id: str, *, min_position: str | Unset | None = UNSET) -> Workflow:
        """Read a workflow with its steps. Needs ``workflows:read``."""
        path = f"/api/v1/workflows/{segment(workflow_id)}"
        return cast("Workflow", await self._get(path, min_position))

    def list(
        self,
        *,
        q: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> AsyncListing[WorkflowSummary]:
        """List workflows. Needs ``workflows:read``.

        Args:
            q: A part of a name or of an id.
            sort: ``createdAt`` or ``name``; ``-`` before it descends. Newest first unless given.
            limit: How many on a page, 1 to 100; 20 unless given.
            min_position: Waits until this position is seen, in place of this client's own.

        """
        query = {"q": q, "sort": sort, "limit": limit}
        return self._list("/api/v1/workflows", query, min_position)

    def runs(
        self,
        workflow_id: str,
        *,
        state: str | None = None,
        limit: int | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> AsyncListing[Run]:
        """List a workflow's runs, the newest first. Needs ``workflows:read``.

        Args:
            workflow_id: Which workflow.
            state: ``QUEUED``, ``RUNNING``, ``WAITING``, ``SUCCEEDED``, ``FAILED``, ``CANCELLED``.
            limit: How many on a page, 1 to 100; 20 unless given.
            min_position: Waits until this position is seen, in place of this client's own.

        """
        path = f"/api/v1/workflows/{segment(workflow_id)}/runs"
        return self._list(path, {"state": state, "limit": limit}, min_position)


class AsyncRuns(_AsyncResource):
    """Runs of workflows."""

    async def get(self, run_id: str, *, min_position: str | Unset | None = UNSET) -> Run:
        """Read a run with its steps and attempts. Needs ``workflows:read``."""
        return cast("Run", await self._get(f"/api/v1/runs/{segment(run_id)}", min_position))

    async def cancel(self, run_id: str, *, idempotency_key: str | None = None) -> StartedRun:
        """Cancel a run. Needs ``workflows:write``."""
        path = f"/api/v1/runs/{segment(run_id)}/cancel"
        return cast("StartedRun", await self._post(path, idempotency_key=idempotency_key))

    async def retry(self, run_id: str, *, idempotency_key: str | None = None) -> StartedRun:
        """Retry a run that failed or was cancelled, from where it stopped."""
        path = f"/api/v1/runs/{segment(run_id)}/retry"
        return cast("StartedRun", await self._post(path, idempotency_key=idempotency_key))


class AsyncKeys(_AsyncResource):
    """API keys. Needs the scope ``keys:manage``."""

    async def create(
        self,
        name: str,
        scopes: Iterable[Scope],
        *,
        rate_limit: int | None = None,
        expires_at: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> NewKey:
        """Create a key. It is shown only here.

        Args:
            name: What it is for.
            scopes: What it may do: no more than the key that creates it.
            rate_limit: Requests in any hour; 1000 or the creating key's own unless given.
            expires_at: When it stops working; with the creating key unless given.
            idempotency_key: Your own key.

        """
        body: dict[str, Any] = {"name": name, "scopes": list(scopes)}
        if rate_limit is not None:
            body["rateLimit"] = rate_limit
        if expires_at is not None:
            body["expiresAt"] = moment(expires_at)
        return cast("NewKey", await self._post("/api/v1/keys", body, idempotency_key))

    def list(
        self,
        *,
        q: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> AsyncListing[Key]:
        """List keys.

        Args:
            q: A part of a name or of an id.
            sort: ``createdAt`` or ``name``; ``-`` before it descends. Newest first unless given.
            limit: How many on a page, 1 to 100; 20 unless given.
            min_position: Waits until this position is seen, in place of this client's own.

        """
        query = {"q": q, "sort": sort, "limit": limit}
        return self._list("/api/v1/keys", query, min_position)

    async def revoke(self, key_id: str, *, given: bool | None = None) -> None:
        """Revoke a key; with ``given`` also the keys that it created, directly or not."""
        path = f"/api/v1/keys/{segment(key_id)}"
        await self._transport.request(Call("DELETE", path, query={"given": given}))


class AsyncWebhooks(_AsyncResource):
    """Endpoints that receive events. Needs the scope ``webhooks:manage``."""

    async def create(
        self,
        url: str,
        events: Iterable[str] | None = None,
        *,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> NewWebhook:
        """Register an endpoint. Its secret is shown only here and on rotation.

        Args:
            url: Where deliveries are sent.
            events: Which, such as ``run.*`` or ``sos.triggered``; None: all.
            description: For people.
            idempotency_key: Your own key.

        """
        body: dict[str, Any] = {"url": url}
        if events is not None:
            body["events"] = list(events)
        if description is not None:
            body["description"] = description
        return cast("NewWebhook", await self._post("/api/v1/webhooks", body, idempotency_key))

    def list(
        self,
        *,
        q: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> AsyncListing[Webhook]:
        """List endpoints.

        Args:
            q: A part of an address, a description or an id.
            sort: ``createdAt``; ``-`` before it descends. Newest first unless given.
            limit: How many on a page, 1 to 100; 20 unless given.
            min_position: Waits until this position is seen, in place of this client's own.

        """
        query = {"q": q, "sort": sort, "limit": limit}
        return self._list("/api/v1/webhooks", query, min_position)

    async def get(self, id: str, *, min_position: str | Unset | None = UNSET) -> Webhook:
        """Read an endpoint."""
        return cast("Webhook", await self._get(f"/api/v1/webhooks/{segment(id)}", min_position))

    async def update(
        self,
        id: str,
        *,
        url: str | Unset = UNSET,
        events: Iterable[str] | Unset | None = UNSET,
        description: str | Unset | None = UNSET,
        status: Literal["ENABLED", "DISABLED"] | Unset = UNSET,
    ) -> ChangedWebhook:
        """Update the given fields; None clears one, an omitted one stays as it is."""
        given = {"url": url, "events": events, "description": description, "status": status}
        body = {name: value for name, value in given.items() if not isinstance(value, Unset)}
        if not isinstance(events, Unset) and events is not None:
            body["events"] = list(events)
        call = Call("PATCH", f"/api/v1/webhooks/{segment(id)}", body=body)
        return cast("ChangedWebhook", await self._transport.request(call))

    async def delete(self, id: str) -> None:
        """Remove an endpoint."""
        await self._transport.request(Call("DELETE", f"/api/v1/webhooks/{segment(id)}"))

    def deliveries(
        self,
        id: str,
        *,
        q: str | None = None,
        limit: int | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> AsyncListing[Delivery]:
        """List deliveries with their attempts, the newest first.

        Args:
            id: Which endpoint.
            q: A part of an event type, or the whole id of an event or a delivery.
            limit: How many on a page, 1 to 100; 20 unless given.
            min_position: Waits until this position is seen, in place of this client's own.

        """
        path = f"/api/v1/webhooks/{segment(id)}/deliveries"
        return self._list(path, {"q": q, "limit": limit}, min_position)

    async def replay(
        self,
        id: str,
        *,
        delivery_id: str | None = None,
        after: str | None = None,
        failed: bool = False,
        idempotency_key: str | None = None,
    ) -> Replayed:
        """Replay deliveries, under the same ``webhook-id``. Takes exactly one of the three.

        Args:
            id: Which endpoint.
            delivery_id: This one delivery.
            after: All that the endpoint wants after this position.
            failed: All with status ``FAILED``.
            idempotency_key: Your own key.

        """
        body: dict[str, Any] = {"deliveryId": delivery_id, "after": after, "failed": failed or None}
        body = {name: value for name, value in body.items() if value is not None}
        if len(body) != 1:
            raise InvalidArgumentError("give one of delivery_id, after and failed")
        path = f"/api/v1/webhooks/{segment(id)}/replay"
        return cast("Replayed", await self._post(path, body, idempotency_key))

    async def rotate_secret(self, id: str, *, idempotency_key: str | None = None) -> RotatedSecret:
        """Rotate the secret; the old one also signs for 24 hours."""
        path = f"/api/v1/webhooks/{segment(id)}/rotate-secret"
        return cast("RotatedSecret", await self._post(path, idempotency_key=idempotency_key))

    async def test(self, id: str, *, idempotency_key: str | None = None) -> TestDelivery:
        """Send a ``webhook.test`` to this endpoint alone."""
        path = f"/api/v1/webhooks/{segment(id)}/test"
        return cast("TestDelivery", await self._post(path, idempotency_key=idempotency_key))


class AsyncOrganizationCircles(_AsyncResource):
    """Circles whose members agree to be seen by the organization. Needs ``circles:manage``."""

    async def create(self, name: str, *, idempotency_key: str | None = None) -> NewCircle:
        """Create a circle."""
        body = {"name": name}
        return cast("NewCircle", await self._post("/api/v1/circles", body, idempotency_key))

    async def invite(self, id: str, *, idempotency_key: str | None = None) -> OrganizationInvite:
        """Create a code for a person to join."""
        path = f"/api/v1/circles/{segment(id)}/invites"
        return cast("OrganizationInvite", await self._post(path, idempotency_key=idempotency_key))
