"""What keeps the library small, in step with the documents, and hard to misuse."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from playing import FakeClock
from scripted import Scripted
from waypost import (
    BadRequestError,
    ConnectionFailedError,
    InvalidArgumentError,
    Password,
    Settings,
    Waypost,
)

HERE = Path(__file__).resolve().parents[1]
IMPORT = """
import json, resource, sys, time
import httpx, websockets.sync.client, websockets.asyncio.client, sqlite3
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.process_time()
import waypost
print(json.dumps({
    "seconds": time.process_time() - begin,
    "kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before,
    "modules": [name for name in sys.modules if name.split(".")[0] in {"requests", "pydantic"}],
}))
"""


def test_importing_takes_little_beyond_what_it_stands_on() -> None:
    tries = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", IMPORT], capture_output=True, check=True, text=True
        )
        tries.append(json.loads(done.stdout))
    assert min(one["seconds"] for one in tries) < 0.25
    assert min(one["kib"] for one in tries) < 12 * 1024
    assert tries[0]["modules"] == []


def test_it_installs_from_its_folder_with_its_types(tmp_path: Path) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--disable-pip-version-check",
            "--target",
            str(tmp_path),
            str(HERE),
        ],
        check=True,
    )
    assert (tmp_path / "waypost" / "py.typed").is_file()
    done = subprocess.run(
        [sys.executable, "-c", "import waypost; print(waypost.__file__, waypost.__version__)"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == f"{tmp_path}/waypost/__init__.py 0.1.0\n"


@pytest.mark.parametrize("script", ["models", "unasync"])
def test_made_code_is_up_to_date(script: str) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "scripts" / f"{script}.py"), "--check"], check=False
    )
    assert done.returncode == 0, f"run scripts/{script}.py"


def test_the_cases_agree_with_the_documents() -> None:
    check = HERE.parent / "cases" / "check"
    done = subprocess.run([sys.executable, str(check)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("wrong", ["", ".", ".."])
def test_an_id_that_would_name_something_else_is_not_sent(wrong: str) -> None:
    with Waypost("http://127.0.0.1:9", "wp_test") as waypost:
        with pytest.raises(InvalidArgumentError):
            waypost.companies.delete(wrong)


@pytest.mark.parametrize("url", ["", "waypost.example", "ftp://x", "http://x/?a=b"])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(InvalidArgumentError):
        Waypost(url)


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(Password("ada@example.com", "secret"))


def test_an_error_can_cross_processes() -> None:
    error = BadRequestError(400, "no", body="{}", trace_id="t", retry_after=1.5, position="e-1")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert str(copy) == str(error) == "400: no (trace t)"
    assert (copy.body, copy.retry_after, copy.position) == ("{}", 1.5, "e-1")


def test_a_saved_export_that_breaks_off_leaves_no_file(tmp_path: Path) -> None:
    broken = {
        "request": {"method": "GET", "path": "/api/export/deals"},
        "answer": {"status": 200, "text": "id\n", "cut": True},
    }
    with Scripted([broken, broken]) as server:
        settings = Settings(max_retries=1, clock=FakeClock())
        with Waypost(server.url, "wp_test", settings=settings) as waypost:
            with pytest.raises(ConnectionFailedError):
                waypost.deals.export(to=tmp_path / "deals.csv")
        server.check()
    assert list(tmp_path.iterdir()) == []


def test_a_saved_export_begins_anew_after_a_break(tmp_path: Path) -> None:
    request = {"method": "GET", "path": "/api/export/deals"}
    exchange = [
        {"request": request, "answer": {"status": 200, "text": "id\nold", "cut": True}},
        {"request": request, "answer": {"status": 200, "text": "id\nd-1\n"}},
    ]
    with Scripted(exchange) as server:
        settings = Settings(clock=FakeClock())
        with Waypost(server.url, "wp_test", settings=settings) as waypost:
            waypost.deals.export(to=tmp_path / "deals.csv")
        server.check()
    assert (tmp_path / "deals.csv").read_text() == "id\nd-1\n"


def test_settings_can_differ_on_one_connection_and_one_position() -> None:
    trigger = {"method": "POST", "path": "/api/v1/workflows/w/trigger"}
    read = {
        "method": "GET",
        "path": "/api/v1/runs/r-1",
        "headers": {"waypost-min-position": "e1-7"},
    }
    exchange = [
        {
            "request": trigger,
            "answer": {
                "status": 202,
                "headers": {"waypost-position": "e1-7"},
                "body": {"runId": "r-1"},
            },
        },
        {"request": read, "answer": {"status": 503, "body": {"error": "away"}}},
    ]
    with Scripted(exchange) as server, Waypost(server.url, "wp_test") as waypost:
        waypost.workflows.trigger("w")
        with pytest.raises(Exception, match="away"):
            waypost.with_settings(max_retries=0).runs.get("r-1")
        server.check()
