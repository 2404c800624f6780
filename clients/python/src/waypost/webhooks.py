"""Verification of webhooks by Standard Webhooks. Needs nothing but Python.

from waypost.webhooks import WebhookError, verify

delivery = verify(request_body_bytes, request_headers, "whsec_…")
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

__all__ = ["Delivery", "Headers", "WebhookError", "verify"]

_PREFIX = "whsec_"
Reason = Literal["secret", "header", "time", "signature", "body"]


class Headers(Protocol):
    """A dictionary, or its equivalent in a web framework."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Return names and values."""
        ...


class WebhookError(Exception):
    """A delivery that must not be trusted. Answer it with 400.

    Attributes:
        reason: ``secret`` (no usable one), ``header`` (missing), ``time`` (too old, too far ahead,
            not a number), ``signature`` (none matches), ``body`` (signed, but not a JSON object).

    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


@dataclass(frozen=True)
class Delivery:
    """A verified delivery."""

    id: str
    """The same for every attempt and replay: store it to do nothing twice."""
    type: str
    timestamp: str
    """When it happened."""
    data: Any
    position: str | None
    """Its position in the log."""
    cause: str | None
    """Pass it on with :meth:`Waypost.with_cause` if you call Waypost because of this."""
    body: Mapping[str, Any]
    """All of it."""


def verify(
    body: bytes | str,
    headers: Headers,
    secrets: str | Iterable[str],
    *,
    tolerance: float = 300.0,
    now: float | None = None,
) -> Delivery:
    """Verify a delivery and read it.

    Args:
        body: The request's body, byte for byte as received.
        headers: The request's headers, their names in any case.
        secrets: The endpoint's secret; several during a rotation.
        tolerance: How far its time may be from now, in seconds.
        now: Seconds since 1970; the current time unless given.

    Raises:
        WebhookError: It must not be trusted.

    """
    raw = body.encode() if isinstance(body, str) else body
    keys = _keys([secrets] if isinstance(secrets, str) else secrets)
    given = {name.lower(): value for name, value in headers.items()}
    message_id, moment, signatures = (
        _header(given, f"webhook-{name}") for name in ("id", "timestamp", "signature")
    )
    _check_time(moment, tolerance, time.time() if now is None else now)
    signed = f"{message_id}.{moment}.".encode() + raw
    expected = [hmac.new(key, signed, hashlib.sha256).digest() for key in keys]
    # Every pair is compared, so that the time it takes reveals nothing.
    fitting = [hmac.compare_digest(one, two) for one in _given(signatures) for two in expected]
    if not any(fitting):
        raise WebhookError("signature", "no signature fits a secret that is known here")
    return _read(message_id, raw, given.get("waypost-cause"))


def _keys(secrets: Iterable[str]) -> list[bytes]:
    keys = []
    for secret in secrets:
        try:
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not key:
            raise WebhookError("secret", "a secret has the form whsec_<base64>")
        keys.append(key)
    if not keys:
        raise WebhookError("secret", "there is no secret to verify by")
    return keys


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if value is None:
        raise WebhookError("header", f"{name} is missing")
    return value


def _check_time(moment: str, tolerance: float, now: float) -> None:
    if not (moment.isascii() and moment.isdigit()):
        raise WebhookError("time", "webhook-timestamp is no number of seconds")
    if abs(now - int(moment)) > tolerance:
        raise WebhookError("time", "webhook-timestamp is too far from now")


def _given(signatures: str) -> list[bytes]:
    found = []
    for signature in signatures.split(" "):
        version, _, text = signature.partition(",")
        if version == "v1":
            try:
                found.append(base64.b64decode(text, validate=True))
            except (binascii.Error, ValueError):
                continue
    return found


def _read(message_id: str, raw: bytes, cause: str | None) -> Delivery:
    try:
        parsed = json.loads(raw)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise WebhookError("body", "the body is no JSON object")
    return Delivery(
        id=message_id,
        type=str(parsed.get("type", "")),
        timestamp=str(parsed.get("timestamp", "")),
        data=parsed.get("data"),
        position=parsed.get("position"),
        cause=cause,
        body=parsed,
    )
