"""What differs between clients with and without `async` beyond a translation of words."""

from __future__ import annotations

import socket as sockets
import ssl
import threading
from contextlib import suppress
from typing import TypeVar

import httpx
from websockets.sync.client import ClientConnection, connect

T = TypeVar("T")
Lock = threading.Lock
__all__ = ["ClientConnection", "Lock", "called", "open_socket", "received", "wake"]


def called(answer: T) -> T:
    """Return the result of a user's function."""
    return answer


def open_socket(url: str, timeout: float, tls: ssl.SSLContext | None) -> ClientConnection:
    """Connect, through the proxy from the environment, as requests do."""
    connecting = connect(url, open_timeout=timeout, max_size=16 * 1024 * 1024, ssl=tls)
    # Newer releases connect only this way; we then have to close it.
    connection: ClientConnection = connecting.__enter__()
    return connection


def received(socket: ClientConnection, timeout: float | None) -> str | bytes | None:
    """Wait for a frame; None if none arrives in time."""
    try:
        return socket.recv(timeout=timeout)
    except TimeoutError:
        return None


def wake(answer: httpx.Response) -> None:
    """End a response that another thread reads: closing its connection would not wake that one."""
    stream = answer.extensions.get("network_stream")
    connection = stream.get_extra_info("socket") if stream is not None else None
    if connection is not None:
        with suppress(OSError):
            connection.shutdown(sockets.SHUT_RDWR)
