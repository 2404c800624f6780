"""Credentials: a key, or a token that is renewed.

Made by scripts/unasync.py.
"""

from __future__ import annotations

from collections.abc import Callable

from .._credentials import Held, Password, Token, hold
from .._settings import Clock
from ._sio import Lock, called

CredentialSource = str | Password | Callable[[], "Token | str | Token | str"]


class Credential:
    """Provides the current token, and requests the next one once, however many want it."""

    def __init__(
        self,
        source: CredentialSource | None,
        sign_in: Callable[[Password], Token],
        clock: Clock,
    ) -> None:
        self._source = source
        self._sign_in = sign_in
        self._clock = clock
        self._lock = Lock()
        self._held = Held(source, None) if isinstance(source, str) else None

    @property
    def is_renewable(self) -> bool:
        """Whether another token may follow this one."""
        return self._source is not None and not isinstance(self._source, str)

    def token(self) -> str | None:
        """Return the current one; None if there is none."""
        held = self._held
        if self._source is None or (held is not None and not self._is_due(held)):
            return held.value if held else None
        return self.renewed(held.value if held else None)

    def renewed(self, refused: str | None) -> str:
        """Return another one than that which was rejected or is about to expire."""
        with self._lock:
            held = self._held
            # Another caller may have been faster.
            if held is None or held.value == refused:
                self._held = held = hold(self._ask(), self._clock.monotonic())
            return held.value

    def renewal_in(self) -> float | None:
        """Return in how many seconds to renew the current one; None: when it is rejected."""
        if self._held is None or self._held.renew_at is None:
            return None
        return max(0.0, self._held.renew_at - self._clock.monotonic())

    def _ask(self) -> Token | str:
        source = self._source
        if isinstance(source, Password):
            return self._sign_in(source)
        if source is None or isinstance(source, str):
            return source or ""
        return called(source())

    def _is_due(self, held: Held) -> bool:
        return held.renew_at is not None and self._clock.monotonic() >= held.renew_at
