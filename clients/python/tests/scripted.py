"""An HTTP server that plays a script and reports how requests differ from it."""

from __future__ import annotations

import json
import re
import socket
import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Scripted:
    """Answers requests in the order of an exchange; `strict` also checks bodies and queries."""

    exchange: list[dict[str, Any]]
    strict: bool = False
    differences: list[str] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)
    played: int = 0

    def __enter__(self) -> Scripted:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for connection in self._open:
            connection.close()

    def check(self) -> None:
        """Fails if anything differed, or part of the script was not requested."""
        assert not self.differences, self.differences
        assert self.played == len(self.exchange), f"{self.played} of {len(self.exchange)} requests"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            request = _read(connection)
            if request is None:
                return
            with self._lock:
                number, self.played = self.played, self.played + 1
                if number >= len(self.exchange):
                    self.differences.append(f"one too many: {request.method} {request.path}")
                    connection.close()
                    return
                step = self.exchange[number]
                found = self._differences(step["request"], request)
                self.differences += [f"request {number + 1}: {one}" for one in found]
            if _answer(connection, step["answer"]):
                connection.shutdown(socket.SHUT_RDWR)
                connection.close()
        except OSError as error:
            self.differences.append(f"connection: {error}")

    def _differences(self, expected: dict[str, Any], request: Request) -> list[str]:
        found = []
        if (request.method, request.path) != (expected["method"], expected["path"]):
            found.append(f"{request.method} {request.path}")
        if "query" in expected or self.strict:
            query = expected.get("query", {})
            if request.query != query:
                found.append(f"query {request.query}, not {query}")
        for name, wanted in expected.get("headers", {}).items():
            value = request.headers.get(name)
            if not self._fits(wanted, value):
                found.append(f"{name}: {value!r}, not {wanted}")
        if "body" in expected:
            body = json.loads(request.body) if request.body else None
            if not same(body, expected["body"]):
                found.append(f"body {body}, not {expected['body']}")
        elif "lines" in expected:
            lines = [json.loads(line) for line in request.body.splitlines()]
            if lines != expected["lines"]:
                found.append(f"lines {lines}")
        elif self.strict and request.body:
            found.append(f"body {request.body!r}")
        return found

    def _fits(self, wanted: Any, value: str | None) -> bool:
        if isinstance(wanted, str):
            return value == wanted
        ((kind, what),) = wanted.items() if len(wanted) == 1 else (("bind", wanted["bind"]),)
        if kind == "absent" or value is None:
            return kind == "absent" and value is None
        match kind:
            case "contains":
                return what in value
            case "matches":
                return re.search(what, value) is not None
            case "bind":
                self.bound[what] = value
                return re.search(wanted.get("matches", ""), value) is not None
            case "same":
                return value == self.bound.get(what)
            case "not":
                return value != self.bound.get(what)
        return kind == "present"


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, where a time may be written in several ways."""
    if isinstance(one, str) and isinstance(other, str):
        return one == other or _instant(one) == _instant(other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return bool(one == other)


def _instant(text: str) -> str:
    return re.sub(r"\.(\d*?)0*Z$", lambda found: f".{found[1]}Z" if found[1] else "Z", text)


def _read(connection: socket.socket) -> Request | None:
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(65536)
        if not piece:
            return None
        head += piece
    head, _, body = head.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    length = int(headers.get("content-length", 0))
    while len(body) < length:
        body += connection.recv(65536)
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Request(method, parts.path, query, headers, body)


def _answer(connection: socket.socket, answer: dict[str, Any]) -> bool:
    """Sends an answer; returns whether to close the connection then."""
    if answer.get("hang"):
        return False
    if "status" not in answer:
        return True
    headers = {"connection": "close", **answer.get("headers", {})}
    body = answer.get("text", "").encode()
    if "body" in answer:
        body = json.dumps(answer["body"]).encode()
        headers.setdefault("content-type", "application/json")
    is_open = answer.get("cut") or answer.get("hold")
    if is_open and "content-length" not in headers:
        headers["transfer-encoding"] = "chunked"
        body = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
    elif answer["status"] != 204:
        headers.setdefault("content-length", str(len(body)))
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    connection.sendall(f"HTTP/1.1 {answer['status']} Scripted\r\n{head}\r\n".encode() + body)
    return not answer.get("hold")
