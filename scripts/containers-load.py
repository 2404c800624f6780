"""Loads Waypost while its containers are killed, and checks that everything acknowledged is there.

Reads the address and a key of scope `admin` from WAYPOST_URL and WAYPOST_KEY. Writes contacts and
triggers runs, each sent under an Idempotency-Key until it is acknowledged. On SIGTERM, it checks
that every one of them is there, once.
"""

import csv
import io
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

URL, KEY = os.environ["WAYPOST_URL"], os.environ["WAYPOST_KEY"]
WORKFLOW = {
    "name": "containers",
    "status": "ACTIVE",
    "steps": [
        {"id": "start", "type": "TRIGGER", "next": ["tell"]},
        {"id": "tell", "type": "NOTIFY", "event": "told"},
    ],
}
# Seconds for the read models and the runs to settle.
REST = 120

over = threading.Event()
contacts: list[str] = []
runs: list[str] = []
refused: dict[str, int] = {}
unexpected: list[str] = []


def ask(method: str, path: str, body: object = None, once: str | None = None) -> bytes:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    if once:
        headers["Idempotency-Key"] = once
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read()


def until_told(path: str, body: object, once: str) -> dict:
    """Retries a request until it is acknowledged."""
    while True:
        try:
            return json.loads(ask("POST", path, body, once))
        except urllib.error.HTTPError as error:
            if error.code not in (429, 500, 502, 503, 504):
                unexpected.append(f"{path}: {error.code} {error.read().decode()}")
                sys.exit()  # this thread
            why = str(error.code)
        except (OSError, ValueError) as error:
            why = type(error).__name__
        refused[why] = refused.get(why, 0) + 1
        time.sleep(0.1)


def write(name: str) -> None:
    nth = 0
    while not over.is_set():
        nth += 1
        contact = {"id": f"{name}-{nth}", "email": f"{name}-{nth}@example.org"}
        until_told("/api/v1/records/contacts", contact, f"{name}-{nth}")
        contacts.append(contact["id"])
        time.sleep(0.02)


def trigger(name: str) -> None:
    nth = 0
    while not over.is_set():
        nth += 1
        told = until_told("/api/v1/workflows/containers/trigger", {"nth": nth}, f"{name}-{nth}")
        runs.append(told["runId"])
        time.sleep(0.02)


def exported() -> list[str]:
    rows = csv.reader(io.StringIO(ask("GET", "/api/export/contacts").decode()))
    return [row[0] for row in list(rows)[1:]]


def succeeded() -> int:
    found = ask("GET", "/api/v1/workflows/containers/runs?state=SUCCEEDED&limit=1")
    return json.loads(found)["total"]


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    ask("PUT", "/api/v1/workflows/containers", WORKFLOW)
    workers = [threading.Thread(target=write, args=(f"c{nth}",)) for nth in range(3)]
    workers += [threading.Thread(target=trigger, args=(f"t{nth}",)) for nth in range(3)]
    for worker in workers:
        worker.start()
    over.wait()
    for worker in workers:
        worker.join()
    deadline = time.monotonic() + REST
    while succeeded() < len(runs) or len(exported()) < len(contacts):
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    rows, ended = exported(), succeeded()
    told = {"contacts": len(contacts), "runs": len(runs), "refused meanwhile": refused}
    print(json.dumps(told))
    if unexpected:
        sys.exit(f"error: {unexpected}")
    if sorted(rows) != sorted(contacts) or ended != len(runs) or len(set(runs)) != len(runs):
        sys.exit(f"error: {len(rows)} contacts and {ended} ended runs are there")


main()
