"""Credentials: a key, or a token that is renewed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from .._credentials import Held, Password, Token, hold
from .._settings import Clock
from ._aio import Lock, called

AsyncCredentialSource = str | Password | Callable[[], "Awaitable[Token | str] | Token | str"]


class AsyncCredential:
    """Provides the current token, and requests the next one once, however many want it."""

    def __init__(
        self,
        source: AsyncCredentialSource | None,
        sign_in: Callable[[Password], Awaitable[Token]],
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

    async def token(self) -> str | None:
        """Return the current one; None if there is none."""
        held = self._held
        if self._source is None or (held is not None and not self._is_due(held)):
            return held.value if held else None
        return await self.renewed(held.value if held else None)

    async def renewed(self, refused: str | None) -> str:
        """Return another one than that which was rejected or is about to expire."""
        async with self._lock:
            held = self._held
            # Another caller may have been faster.
            if held is None or held.value == refused:
                self._held = held = hold(await self._ask(), self._clock.monotonic())
            return held.value

    def renewal_in(self) -> float | None:
        """Return in how many seconds to renew the current one; None: when it is rejected."""
        if self._held is None or self._held.renew_at is None:
            return None
        return max(0.0, self._held.renew_at - self._clock.monotonic())

    async def _ask(self) -> Token | str:
        source = self._source
        if isinstance(source, Password):
            return await self._sign_in(source)
        if source is None or isinstance(source, str):
            return source or ""
        return await called(source())

    def _is_due(self, held: Held) -> bool:
        return held.renew_at is not None and self._clock.monotonic() >= held.renew_at
