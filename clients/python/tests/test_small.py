"""What keeps the library small, in step with the documents, and hard to misuse."""

from __future__ import annotations

import ast
import asyncio
import importlib
import json
import pickle
import re
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from playing import FakeClock, cases
from scripted import Scripted
from scripted_socket import ScriptedSocket
from waypost import (
    AsyncWaypost,
    BadRequestError,
    ConnectionFailedError,
    GoneError,
    InvalidArgumentError,
    Password,
    Settings,
    Snapshot,
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


def test_importing_takes_little_beyond_its_dependencies() -> None:
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


@pytest.mark.parametrize(
    "text", ["10:00:00Z", "10:00:00.5Z", "10:00:00.123456789Z", "12:00:00+02:00"]
)
def test_times_of_all_forms_can_be_queued(text: str) -> None:
    with Waypost("http://127.0.0.1:9", "wp_test") as waypost:
        waypost.location_queue().add(1, 2, recorded_at=f"2026-11-22T{text}")


def test_a_time_that_is_none_is_not_queued() -> None:
    with Waypost("http://127.0.0.1:9", "wp_test") as waypost:
        with pytest.raises(InvalidArgumentError, match="recorded_at"):
            waypost.location_queue().add(1, 2, recorded_at="yesterday")


def test_what_the_readme_shows_is_python_and_names_what_there_is() -> None:
    text = (HERE / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) > 10
    for block in blocks:
        tree = compile(
            block, "README.md", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        )
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        for node in imports:
            module = importlib.import_module(node.module or "")
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []
    with Waypost("http://127.0.0.1:9", "wp_test") as waypost:
        for resources, methods in re.findall(
            r"^\| (`[a-z_` ]+`) \| (`.*`) \|$", text, re.MULTILINE
        ):
            for resource in resources.replace("`", "").split():
                of = getattr(waypost, resource)
                for method in methods.replace("`", "").split():
                    assert callable(getattr(of, method)), f"{resource}.{method}"


def test_certificates_of_ones_own_are_believed_by_requests_and_sockets(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-keyout",
            key,
            "-out",
            certificate,
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ],
        check=True,
        capture_output=True,
    )
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate, key)
    believed = ssl.create_default_context(cafile=str(certificate))
    script = cases("sockets")[0]["connections"]
    with (
        ScriptedSocket(script, ours) as server,
        Waypost(server.url, "wp_test", tls=believed) as waypost,
    ):
        assert isinstance(next(waypost.subscribe("runs")), Snapshot)
        # No script is left: the server says so, over a trusted connection.
        with pytest.raises(GoneError):
            waypost.readiness()
    with ScriptedSocket([], ours) as server:
        with Waypost(server.url, settings=Settings(max_retries=0)) as waypost:
            with pytest.raises(ConnectionFailedError, match="certificate"):
                waypost.readiness()


@pytest.mark.parametrize("payload", [{"n": float("nan")}, {"n": object()}, {"n": "\ud800"}])
def test_what_is_no_json_is_not_sent(payload: dict[str, object]) -> None:
    with Waypost("http://127.0.0.1:9", "wp_test") as waypost:
        with pytest.raises(InvalidArgumentError, match="JSON"):
            waypost.workflows.trigger("w", payload)


def test_an_import_that_is_stopped_yields_what_was_done_before() -> None:
    lines = '{"line":1,"id":"a","status":"created"}\n{"line":2,"error":"rate limit exceeded"}\n'
    step = {
        "request": {"method": "POST", "path": "/api/v1/records/leads"},
        "answer": {"status": 200, "text": lines},
    }
    with Scripted([step]) as server, Waypost(server.url, "wp_test") as waypost:
        outcomes = waypost.leads.import_records([{"name": "a"}] * 3)
        assert [next(outcomes).line, next(outcomes).line] == [1, 2]
        with pytest.raises(ConnectionFailedError, match="behind record 2"):
            next(outcomes)


def test_a_feed_may_be_silent_and_ends_with_its_client() -> None:
    step = {
        "request": {"method": "GET", "path": "/api/v1/events"},
        "answer": {"status": 200, "text": ":\n\n", "hold": True},
    }
    with Scripted([step]) as server:
        settings = Settings(attempt_timeout=0.2)
        with Waypost(server.url, "wp_test", settings=settings) as waypost:
            feed = waypost.events.follow()
            events: list[object] = []
            reader = threading.Thread(target=lambda: events.extend(feed))
            reader.start()
            reader.join(1)
            assert reader.is_alive()
        # A reader that waits for more gets none once the client is closed.
        reader.join(10)
        assert not reader.is_alive()
        server.check()


def test_an_async_feed_ends_with_its_client() -> None:
    step = {
        "request": {"method": "GET", "path": "/api/v1/events"},
        "answer": {"status": 200, "text": ":\n\n", "hold": True},
    }

    async def work(url: str) -> None:
        async with AsyncWaypost(url, "wp_test") as waypost:

            async def listen() -> list[object]:
                return [event async for event in waypost.events.follow()]

            listening = asyncio.create_task(listen())
            done, _ = await asyncio.wait([listening], timeout=0.3)
            assert not done
        assert await asyncio.wait_for(listening, 10) == []

    with Scripted([step]) as server:
        asyncio.run(work(server.url))
        server.check()


def test_the_cause_goes_along_with_commands_alone() -> None:
    def step(method: str, path: str, cause: object, body: object) -> dict[str, object]:
        request = {"method": method, "path": path, "headers": {"waypost-cause": cause}}
        return {"request": request, "answer": {"status": 200, "body": body}}

    absent = {"absent": True}
    exchange = [
        step("POST", "/api/v1/workflows/w/trigger", "c-1", {"runId": "r-1"}),
        step("GET", "/api/v1/runs/r-1", absent, {}),
        step("POST", "/api/v1/workflows/w/trigger", absent, {"runId": "r-2"}),
    ]
    with Scripted(exchange) as server, Waypost(server.url, "wp_test") as waypost:
        caused = waypost.with_cause("c-1")
        caused.workflows.trigger("w")
        caused.runs.get("r-1")
        waypost.workflows.trigger("w")
        server.check()
