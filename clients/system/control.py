"""The system's HTTP interface while it runs."""

from __future__ import annotations

import json
import secrets
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from processes import Nats, Waypost, until

PASSWORD = "a long password"
NO_LIMIT = 1_000_000


class Control:
    """The HTTP interface on the loopback."""

    def __init__(self, waypost: Waypost, nats: Nats) -> None:
        self.waypost, self.nats = waypost, nats
        control = self

        class Handler(_Handler):
            outer = control

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def serve(self) -> None:
        """Serves from now on, and prints its address on stdout."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        print(json.dumps(self.info()), flush=True)

    def close(self) -> None:
        """Stops serving."""
        self._server.server_close()

    def info(self) -> dict[str, Any]:
        """The addresses."""
        return {"control": self.url, "url": self.waypost.url}

    def organization(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Creates an organization and a key that works already."""
        name = asked.pop("name", "Test & Söhne")
        org_id = self.waypost.run(["org", "create", "--name", name])["orgId"]
        return {"orgId": org_id, **self.key({"orgId": org_id, **asked})}

    def key(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Creates a key of an organization."""
        made = self._make_key(asked, asked.get("rateLimit", NO_LIMIT))
        # Keys become known in their order: a later one shows that this one is, and spares it a
        # request that would count.
        probe = self._make_key(asked, NO_LIMIT) if "rateLimit" in asked else made
        until(lambda: self._known(probe["key"]), "the key to be known")
        return {"url": self.waypost.url, **made}

    def _make_key(self, asked: dict[str, Any], limit: int) -> dict[str, Any]:
        arguments = ["key", "create", "--org", asked["orgId"], "--name", "test"]
        for scope in asked.get("scopes", ["admin"]):
            arguments += ["--scope", scope]
        made: dict[str, Any] = self.waypost.run([*arguments, "--rate-limit", str(limit)])
        return made

    def account(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Creates a person's account, of a tier that no test exhausts unless one is named."""
        email = asked.get("email") or f"{secrets.token_hex(8)}@example.com"
        body = {"name": asked.get("name", "Grace Hopper"), "email": email, "password": PASSWORD}
        if "phone" in asked:
            body["phone"] = asked["phone"]
        request = urllib.request.Request(
            f"{self.waypost.url}/auth/register", json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            session = json.load(answer)
        if asked.get("tier") != "free":
            limits = [str(asked.get(name, NO_LIMIT)) for name in ("requests", "locations")]
            self.waypost.run(["account", "tier", email, asked.get("tier", "enterprise"),
                              "--requests", limits[0], "--locations", limits[1]])
            until(lambda: self._requests(session["access_token"]) == limits[0],
                  "the tier to be known")
        return {"url": self.waypost.url, "email": email, "password": PASSWORD, **session}

    def _requests(self, token: str) -> str:
        request = urllib.request.Request(
            f"{self.waypost.url}/circles", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request) as answer:
            # "requests";q=1000000;w=3600
            return str(answer.headers["RateLimit-Policy"]).split("q=")[1].split(";")[0]

    def codes(self, phone: str) -> list[Any]:
        """The one-time codes that were sent to a phone, oldest first."""
        outbox = self.waypost.home / "outbox" / "sms.ndjson"
        lines = outbox.read_text().splitlines() if outbox.exists() else []
        return [sent for sent in map(json.loads, lines) if sent["phone"] == phone]

    def _known(self, key: str) -> bool:
        # 403 or 404 for a known key, 401 for another.
        request = urllib.request.Request(
            f"{self.waypost.url}/api/v1/runs/nothing", headers={"Authorization": f"Bearer {key}"})
        try:
            urllib.request.urlopen(request).close()
        except urllib.error.HTTPError as refusal:
            return refusal.code != 401
        return True


class _Handler(BaseHTTPRequestHandler):
    outer: Control
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._answer(json.loads(self.rfile.read(length) or b"{}"))

    def do_OPTIONS(self) -> None:
        self._send(204, None)

    def _answer(self, asked: dict[str, Any]) -> None:
        try:
            self._send(200, self._do(asked))
        except KeyError as missing:
            self._send(404, {"error": f"{missing} is not known, or missing"})
        except Exception as error:
            print(f"{self.path}: {error}", file=sys.stderr)
            self._send(500, {"error": str(error)})

    def _do(self, asked: dict[str, Any]) -> Any:
        outer, where = self.outer, urlsplit(self.path)
        match f"{self.command} {where.path}":
            case "GET /":
                return outer.info()
            case "GET /log":
                return {"log": outer.waypost.log()}
            case "GET /codes":
                return outer.codes(parse_qs(where.query)["phone"][0])
            case "POST /organization":
                return outer.organization(asked)
            case "POST /key":
                return outer.key(asked)
            case "POST /account":
                return outer.account(asked)
            case "POST /command":
                return outer.waypost.run(asked["arguments"], asked.get("stdin", ""))
            case "POST /waypost/start":
                outer.waypost.start(asked.get("settings"))
            case "POST /waypost/kill":
                outer.waypost.kill()
            case "POST /waypost/stop":
                outer.waypost.stop()
            case "POST /nats/stop":
                outer.nats.stop()
            case "POST /nats/start":
                outer.nats.start()
            case "POST /nats/hold":
                outer.nats.hold()
            case "POST /nats/release":
                outer.nats.release()
            case other:
                raise KeyError(other)
        return outer.info()

    def _send(self, status: int, body: Any) -> None:
        payload = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        # Tests in a browser send requests from a page of another origin.
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Headers", "*")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:
        pass
