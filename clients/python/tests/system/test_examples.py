"""The examples run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import System, eventually

from waypost import Waypost

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str, place: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
        env={**os.environ, **variables},
        cwd=place,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_is_watched(system: System, tmp_path: Path) -> None:
    key = system.organization()["key"]
    output = run("trigger_and_watch", tmp_path, WAYPOST_URL=system.url, WAYPOST_KEY=key)
    assert output.splitlines()[0] == "workflow.triggered"
    assert output.splitlines()[-1] == "run.succeeded"


def test_contacts_are_imported_and_exported(system: System, tmp_path: Path) -> None:
    key = system.organization()["key"]
    output = run("import_and_export", tmp_path, WAYPOST_URL=system.url, WAYPOST_KEY=key)
    assert "refused: 0" in output
    assert (tmp_path / "contacts.xlsx").read_bytes().startswith(b"PK")


def test_events_are_followed_from_where_it_stopped(system: System, tmp_path: Path) -> None:
    key = system.organization()["key"]
    with Waypost(system.url, key) as waypost:
        waypost.leads.create({"id": "l-0", "name": "Ada"})
        (tmp_path / "follow_events.position").write_text(waypost.position or "")
        for number in (1, 2, 3):
            waypost.leads.create({"id": f"l-{number}", "name": "Ada"})
    variables = {"WAYPOST_URL": system.url, "WAYPOST_KEY": key}
    first = run("follow_events", tmp_path, "2", **variables)
    second = run("follow_events", tmp_path, "1", **variables)
    subjects = [line.split()[-1] for line in (first + second).splitlines()]
    assert subjects == ["lead/l-1", "lead/l-2", "lead/l-3"]


def test_webhooks_are_received(system: System) -> None:
    from processes import free_port

    port = free_port()
    with system.client() as waypost:
        hook = waypost.webhooks.create(f"http://127.0.0.1:{port}/", ["lead.*"])
        variables = {"WEBHOOK_SECRET": hook["secret"], "PORT": str(port)}
        with subprocess.Popen(
            [sys.executable, str(EXAMPLES / "receive_webhooks.py")],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            text=True,
        ) as receiver:
            waypost.leads.create({"id": "l-1", "name": "Ada"})
            assert receiver.stdout is not None
            assert receiver.stdout.readline().startswith("lead.created {")
            receiver.kill()


def test_a_phone_is_tracked(system: System, tmp_path: Path) -> None:
    account = system.post("/account")
    output = run(
        "track_a_phone",
        tmp_path,
        WAYPOST_URL=system.url,
        WAYPOST_EMAIL=account["email"],
        WAYPOST_PASSWORD=account["password"],
    )
    assert output == "sent 3, waiting 0, parked 0\n"
    with Waypost(system.url, account["access_token"]) as waypost:
        eventually(lambda: len(waypost.location.history()) == 3, "the walk")
