"""Subscriptions over `/ws`, across any number of connections.

Made by scripts/unasync.py.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from types import TracebackType

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from .._errors import ApiError, ConnectionFailedError, SocketClosedError, error_of
from .._live import Channel, Place, SubscriptionItem, auth, read
from .._version import log
from ._sio import ClientConnection, open_socket, received
from ._transport import Transport

_LONGEST_WAIT_S = 20.0
_TOKEN_CODES = {3500, 3501}
_LAST_CODES = range(3500, 4000)
_AGAIN = {408, 429}


class Subscription:
    """A channel's events, without gaps or duplicates across disconnects.

    Iterate over it; leave its ``with`` block or call :meth:`close` to end it.
    """

    def __init__(self, transport: Transport, channel: Channel, after: str | None) -> None:
        self._transport = transport
        self._place = Place(channel, after)
        self._socket: ClientConnection | None = None
        self._is_closed = False
        self._is_ready = False
        self._is_renewed = False
        self._items = self._receive()

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> SubscriptionItem:
        return self._items.__next__()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it; a reader that waits for its next item gets none."""
        self._is_closed = True
        self._hang_up()
        # If a reader waits for its next item, it ends there.
        with suppress(RuntimeError, ValueError):
            self._items.close()

    def _receive(self) -> Generator[SubscriptionItem, None]:
        session, settings, attempts = self._transport.session, self._transport.settings, 0
        while not self._is_closed and not session.is_closed:
            self._is_ready = False
            try:
                url = "ws" + session.base.removeprefix("http") + "/ws"
                self._socket = open_socket(url, settings.attempt_timeout, session.tls)
                for item in self._converse(self._socket):
                    yield item
            except ConnectionClosed as closed:
                if self._is_renewable(closed):
                    continue
            except InvalidStatus as refused:
                status = refused.response.status_code
                if status < 500 and status not in _AGAIN:
                    body = (refused.response.body or b"").decode(errors="replace")
                    raise error_of(
                        status, body, trace_id=None, retry_after=None, position=None
                    ) from None
            except ApiError as refused_token:
                if refused_token.status < 500 and refused_token.status not in _AGAIN:
                    raise
            except (OSError, TimeoutError, InvalidHandshake, ConnectionFailedError):
                pass
            finally:
                self._hang_up()
            if not self._is_closed:
                attempts = 0 if self._is_ready else attempts
                wait = settings.backoff(attempts, _LONGEST_WAIT_S)
                log.info("The socket broke off and is opened again in %.1f s", wait)
                settings.clock.sleep(wait)
                attempts += 1

    def _converse(self, socket: ClientConnection) -> Generator[SubscriptionItem, None]:
        credential = self._transport.session.credential
        sent_token: str | None = None
        while True:
            # Renewed when it is time, by this or another call of the client, whichever is first.
            token = credential.token() or ""
            if token != sent_token:
                socket.send(auth(token))
                sent_token = token
            text = received(socket, credential.renewal_in() if self._is_ready else None)
            if text is None:
                continue
            frame = read(text)
            if frame.get("type") == "ready":
                if not self._is_ready:
                    self._is_ready, self._is_renewed = True, False
                    socket.send(self._place.subscribe())
                continue
            item = self._place.take(frame)
            if item is not None:
                yield item

    def _is_renewable(self, closed: ConnectionClosed) -> bool:
        """Whether another token may help; raises if nothing does."""
        if self._is_closed or closed.rcvd is None or closed.rcvd.code not in _LAST_CODES:
            return False
        credential = self._transport.session.credential
        is_about_token = closed.rcvd.code in _TOKEN_CODES and credential.is_renewable
        if not is_about_token or self._is_renewed:
            raise SocketClosedError(closed.rcvd.code, closed.rcvd.reason) from None
        self._is_renewed = True
        credential.renewed(credential.token())
        return True

    def _hang_up(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()
