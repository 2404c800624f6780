"""Credentials: what is common to clients with and without `async`."""

from __future__ import annotations

from dataclasses import dataclass, field

_EARLY_S = 60.0
_EARLY_SHARE = 0.2


@dataclass(frozen=True)
class Token:
    """An access token, and how long it is valid."""

    value: str = field(repr=False)
    seconds: float | None = None
    """From now on; None if unknown: it then counts as valid until it is rejected."""


@dataclass(frozen=True)
class Password:
    """Signs in with e-mail and password, and again before the token expires."""

    email: str
    password: str = field(repr=False)


@dataclass
class Held:
    """A token in use."""

    value: str
    renew_at: float | None
    """On the monotonic clock; None: when it is rejected."""


def hold(token: Token | str, now: float) -> Held:
    """Note when to renew a token: when a fifth of its lifetime is left, a minute at most."""
    if isinstance(token, str):
        return Held(token, None)
    if token.seconds is None:
        return Held(token.value, None)
    early = min(_EARLY_S, token.seconds * _EARLY_SHARE)
    return Held(token.value, now + token.seconds - early)
