"""What differs between clients with and without `async` beyond a translation of words."""

from __future__ import annotations

import asyncio
import inspect
import ssl
from collections.abc import Awaitable
from typing import TypeVar

import httpx
from websockets.asyncio.client import ClientConnection, connect

T = TypeVar("T")
Lock = asyncio.Lock
__all__ = ["ClientConnection", "Lock", "called", "open_socket", "received", "wake"]


async def called(answer: Awaitable[T] | T) -> T:
    """Return the result of a user's function, which may be `async`."""
    return await answer if inspect.isawaitable(answer) else answer


async def open_socket(url: str, timeout: float, tls: ssl.SSLContext | None) -> ClientConnection:
    """Connect, through the proxy from the environment, as requests do."""
    return await connect(url, open_timeout=timeout, max_size=16 * 1024 * 1024, ssl=tls)


async def received(socket: ClientConnection, timeout: float | None) -> str | bytes | None:
    """Wait for a frame; None if none arrives in time."""
    try:
        return await asyncio.wait_for(socket.recv(), timeout)
    except asyncio.TimeoutError:
        return None


def wake(answer: httpx.Response) -> None:
    """End a response that is being read: closing its connection does."""
