"""A WebSocket server that plays a script for each connection."""

from __future__ import annotations

import http
import json
import ssl
import threading
from typing import Any
from urllib.parse import urlsplit

from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve


class ScriptedSocket:
    """Plays `connections`, in order, and reports differences from them."""

    def __init__(
        self, connections: list[list[dict[str, Any]]], tls: ssl.SSLContext | None = None
    ) -> None:
        self._tls = tls
        self._scripts = connections
        self.differences: list[str] = []
        self.begun = 0
        self.ended = threading.Semaphore(0)
        self._server: Server

    def __enter__(self) -> ScriptedSocket:
        self._server = serve(self._play, "127.0.0.1", 0, process_request=self._greet, ssl=self._tls)
        self.url = (
            f"http{'s' if self._tls else ''}://127.0.0.1:{self._server.socket.getsockname()[1]}"
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()

    def check(self) -> None:
        """Fails if anything differed, or a connection was not made."""
        assert not self.differences, self.differences
        assert self.begun == len(self._scripts), f"{self.begun} connections"

    def _greet(self, connection: ServerConnection, request: Request) -> Response | None:
        self.begun += 1
        if self.begun > len(self._scripts):
            self.differences.append("one connection too many")
            return _response(http.HTTPStatus.GONE)
        script = self._scripts[self.begun - 1]
        first = script[0] if script else {}
        if "handshake" in first:
            self._look(first["handshake"], request)
            script = script[1:]
        if "refuse" in first:
            return _response(http.HTTPStatus(first["refuse"]))
        connection.script = script  # type: ignore[attr-defined]
        return None

    def _look(self, expected: dict[str, Any], request: Request) -> None:
        parts = urlsplit(request.path)
        if parts.path != expected["path"] or parts.query or "authorization" in request.headers:
            self.differences.append(f"handshake {request.path} {request.headers}")

    def _play(self, connection: ServerConnection) -> None:
        bound = {}
        try:
            for step in connection.script:  # type: ignore[attr-defined]
                if "client" in step:
                    frame = json.loads(connection.recv(timeout=5))
                    if step["client"].get("id") == "$s":
                        bound["$s"] = frame.get("id")
                    expected = _filled(step["client"], bound)
                    if frame != expected:
                        self.differences.append(f"frame {frame}, not {expected}")
                elif "server" in step:
                    connection.send(json.dumps(_filled(step["server"], bound)))
                elif "text" in step:
                    connection.send(step["text"])
                elif "close" in step:
                    connection.close(step["close"], step.get("reason", ""))
                elif "cut" in step:
                    connection.close_socket()
                    return
            for frame in connection:
                self.differences.append(f"frame {frame!r} that is not in the script")
        except ConnectionClosed:
            pass
        except TimeoutError:
            self.differences.append("a frame of the script did not come")
        finally:
            self.ended.release()


def _filled(frame: dict[str, Any], bound: dict[str, Any]) -> dict[str, Any]:
    return {
        name: bound.get(value, value) if isinstance(value, str) else value
        for name, value in frame.items()
    }


def _response(status: http.HTTPStatus) -> Response:
    return Response(status.value, status.phrase, Headers(), b"")
