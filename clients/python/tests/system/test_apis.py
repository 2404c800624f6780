"""The three APIs and more, on a running Waypost."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import System, eventually

from waypost import (
    UNSET,
    AsyncWaypost,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    RateLimitedError,
    UnauthorizedError,
    Waypost,
)
from waypost.webhooks import Delivery, WebhookError, verify


def test_a_run_is_started_and_read(system: System, greeting: Any) -> None:
    with system.client() as waypost:
        assert waypost.workflows.put("greet", greeting) == {"workflowId": "greet", "version": 1}
        run_id = waypost.workflows.trigger("greet", {"n": 7})["runId"]
        # Without an explicit wait: the read waits for what was written.
        assert waypost.runs.get(run_id)["triggerPayload"]["n"] == 7
        eventually(lambda: waypost.runs.get(run_id)["state"] == "SUCCEEDED", "the run to succeed")
        assert [run["runId"] for run in waypost.workflows.runs("greet")] == [run_id]
        assert [one["status"] for one in waypost.workflows.list()] == ["ACTIVE"]


def test_the_same_key_starts_one_run(system: System, greeting: Any) -> None:
    with system.client() as waypost:
        waypost.workflows.put("greet", greeting)
        first = waypost.workflows.trigger("greet", {"n": 1}, idempotency_key="mine")
        again = waypost.workflows.trigger("greet", {"n": 1}, idempotency_key="mine")
        assert first == again
        with pytest.raises(BadRequestError, match="Idempotency-Key"):
            waypost.workflows.trigger("greet", {"n": 2}, idempotency_key="mine")
        assert len(list(waypost.workflows.runs("greet"))) == 1


def test_a_run_that_waits_is_cancelled_and_retried(system: System) -> None:
    steps: Any = [
        {"id": "start", "type": "TRIGGER", "next": ["wait"]},
        {"id": "wait", "type": "DELAY", "seconds": 3600},
    ]
    with system.client() as waypost:
        waypost.workflows.put("slow", {"name": "Slow", "status": "ACTIVE", "steps": steps})
        run_id = waypost.workflows.trigger("slow")["runId"]
        waypost.runs.cancel(run_id)
        eventually(
            lambda: waypost.runs.get(run_id)["state"] == "CANCELLED", "the run to be cancelled"
        )
        waypost.runs.retry(run_id)
        eventually(lambda: waypost.runs.get(run_id)["state"] == "WAITING", "the run to wait again")


def test_every_read_sees_what_was_written_before_it(system: System) -> None:
    with system.client() as waypost:
        for number in range(20):
            waypost.contacts.put("c-1", {"firstName": f"Zoë {number}"})
            assert waypost.contacts.get("c-1")["firstName"] == f"Zoë {number}"
            assert f"Zoë {number}".encode() in waypost.contacts.export()
        waypost.contacts.delete("c-1")
        with pytest.raises(NotFoundError):
            waypost.contacts.get("c-1")


def test_another_process_reads_behind_a_position(system: System) -> None:
    organization = system.organization()
    with Waypost(system.url, organization["key"]) as writer:
        with Waypost(system.url, organization["key"]) as reader:
            writer.leads.create({"id": "l-1", "name": "Ada"})
            assert reader.leads.get("l-1", min_position=writer.position)["name"] == "Ada"


def test_a_list_is_walked_while_others_write_to_it(system: System) -> None:
    with system.client() as waypost:
        orders = [
            {"id": f"o-{number:03}", "orderNumber": f"WP-{number}", "status": "ACTIVE", "amount": 1}
            for number in range(45)
        ]
        assert all(one.status == "created" for one in waypost.orders.import_records(orders))  # type: ignore[arg-type]
        seen: list[str] = []
        for order in waypost.orders.list(status="ACTIVE", limit=10):
            if len(seen) == 15:
                waypost.orders.create(
                    {"id": "new", "orderNumber": "WP-N", "status": "ACTIVE", "amount": 2}
                )
            seen.append(order["id"])
        assert sorted(set(seen) - {"new"}) == [one["id"] for one in orders]
        assert len(seen) == len(set(seen))
        page = waypost.orders.page(page=2, limit=40)
        assert (page.total, len(page), page.page) == (46, 6, 2)
        assert len(waypost.orders.list(limit=5).collect(12)) == 12
        assert waypost.analytics.get()["totalOrders"] == 46


def test_many_records_are_imported_with_an_outcome_each(system: System) -> None:
    records: list[Any] = [{"id": f"l-{number}", "name": f"Lead {number}"} for number in range(2500)]
    records[1200] = {"id": "bad", "score": "high"}
    with system.client() as waypost:
        outcomes = list(waypost.leads.import_records(records))
        assert [one.line for one in outcomes] == list(range(1, 2501))
        assert [one.line for one in outcomes if one.error] == [1201]
        assert "name" in (outcomes[1200].error or "")
        assert waypost.leads.page(limit=1).total == 2499
        again = {one.status for one in waypost.leads.import_records(records[:100])}
        assert again == {"unchanged"}


@pytest.mark.parametrize(
    ("format", "begins"), [("csv", b"id,"), ("excel", b"PK"), ("pdf", b"%PDF")]
)
def test_an_export_is_saved_with_its_progress(
    system: System, tmp_path: Path, format: str, begins: bytes
) -> None:
    with system.client() as waypost:
        records: Any = ({"id": f"c-{number}", "name": f"Acme {number}"} for number in range(500))
        list(waypost.companies.import_records(records))
        sizes: list[int] = []
        path = tmp_path / "companies"
        exported = waypost.companies.export(format, to=path, progress=sizes.append)
        assert path.read_bytes().startswith(begins)
        assert sizes == sorted(sizes)
        assert sizes[-1] == exported.size == path.stat().st_size
        assert (exported.filename or "").startswith("companies-")
        assert list(tmp_path.iterdir()) == [path]
        file = io.BytesIO()
        assert waypost.companies.export(to=file).size == len(file.getvalue())
        with waypost.companies.stream_export("crm") as stream:
            assert b"".join(stream.iter_bytes()).startswith(b"Company name")


def test_what_is_refused_says_why(system: System) -> None:
    organization = system.organization()
    with Waypost(system.url, organization["key"]) as waypost:
        key = waypost.keys.create("reader", ["read:orders"])["key"]
        with pytest.raises(BadRequestError, match="limit") as bad:
            waypost.orders.page(limit=101)
        assert bad.value.status == 400
        assert len(bad.value.trace_id or "") == 32
        waypost.leads.create({"id": "l-1", "name": "Ada"})
        with pytest.raises(ConflictError):
            waypost.leads.create({"id": "l-1", "name": "Ada"})
        names = {one["name"]: one["keyId"] for one in waypost.keys.list()}
        with Waypost(system.url, key) as reader:
            eventually(lambda: knows(reader), "the key to be known")
            with pytest.raises(ForbiddenError, match="read:leads"):
                reader.leads.page()
            waypost.keys.revoke(names["reader"])
            eventually(lambda: not knows(reader), "the key to be revoked")


def knows(client: Waypost) -> bool:
    try:
        client.orders.page(limit=1)
    except UnauthorizedError:
        return False
    return True


def test_the_limit_of_a_key_is_reported(system: System) -> None:
    organization = system.organization()
    key = system.post("/key", {"orgId": organization["orgId"], "rateLimit": 2})["key"]
    with Waypost(system.url, key) as waypost:
        for _ in range(2):
            list(waypost.workflows.list())
        with pytest.raises(RateLimitedError) as refused:
            list(waypost.workflows.list())
        assert 0 < (refused.value.retry_after or 0) <= 3604


class Receiver:
    """An endpoint that keeps what it receives."""

    def __init__(self) -> None:
        self.received: list[tuple[bytes, dict[str, str]]] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                received.append((body, dict(self.headers)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hooks"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next(self) -> tuple[bytes, dict[str, str]]:
        eventually(lambda: self.received, "a delivery")
        return self.received.pop(0)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()


def test_deliveries_are_verified_also_while_the_secret_changes(
    system: System, receiver: Receiver
) -> None:
    with system.client() as waypost:
        hook = waypost.webhooks.create(receiver.url, ["lead.*"], description="ours")
        waypost.leads.create({"id": "l-1", "name": "Zoë"})
        body, headers = receiver.next()
        delivery: Delivery = verify(body, headers, hook["secret"])
        assert (delivery.type, delivery.data["name"]) == ("lead.created", "Zoë")
        assert delivery.cause
        waypost.with_cause(delivery.cause).leads.create({"id": "l-2", "name": "Ada"})
        events = list(waypost.events.read(types=["lead.created"]))
        assert events[1]["correlationId"] == (events[0]["correlationId"] or events[0]["id"])
        receiver.next()
        with pytest.raises(WebhookError, match="signature"):
            verify(body.replace(b"l-1", b"l-2"), headers, hook["secret"])
        changed = waypost.webhooks.rotate_secret(hook["id"])["secret"]
        waypost.webhooks.test(hook["id"])
        body, headers = receiver.next()
        assert verify(body, headers, changed).type == "webhook.test"
        assert verify(body, headers, hook["secret"]).type == "webhook.test"
        eventually(lambda: delivered(waypost, hook["id"]) == ["SUCCEEDED"] * 3, "the deliveries")
        assert waypost.webhooks.replay(hook["id"], delivery_id=delivery.id) == {"replayed": 1}
        body, headers = receiver.next()
        assert verify(body, headers, changed).id == delivery.id


def delivered(waypost: Waypost, hook: str) -> list[str]:
    return [one["status"] for one in waypost.webhooks.deliveries(hook)]


def test_an_endpoint_is_changed_only_where_something_is_given(system: System) -> None:
    with system.client() as waypost:
        hook = waypost.webhooks.create("https://example.org/h", ["run.*"], description="ours")
        waypost.webhooks.update(hook["id"], status="DISABLED", url=UNSET)
        now = waypost.webhooks.get(hook["id"])
        assert (now["status"], now["description"], now["events"]) == ("DISABLED", "ours", ["run.*"])
        waypost.webhooks.update(hook["id"], description=None)
        assert waypost.webhooks.get(hook["id"])["description"] is None
        waypost.webhooks.delete(hook["id"])
        assert list(waypost.webhooks.list()) == []


def test_persons_see_each_other_in_a_circle(system: System) -> None:
    with system.person(name="Ada") as ada, system.person(name="Grace") as grace:
        circle = ada.circles.create("Family")["id"]
        grace.circles.join(ada.circles.invite(circle)["code"])
        place = ada.circles.add_place(circle, "Harbour", 53.55, 9.99, 200)
        assert [one["id"] for one in ada.circles.places(circle)] == [place["id"]]
        at = datetime.now(timezone.utc) - timedelta(minutes=1)
        grace.location.update(53.55, 9.99, accuracy=12, recorded_at=at)
        grace.location.update_many([{"lat": 53.56, "lng": 9.98}])
        assert [one["lat"] for one in grace.location.latest()] == [53.56]
        eventually(ada.location.latest, "Grace's position")
        history = grace.location.history(from_=at, limit=10)
        assert [one["lat"] for one in history] == [53.56, 53.55]
        alert = grace.sos.trigger(message="help")
        assert [one["name"] for one in alert["audience"]] == ["Ada"]
        assert ada.sos.acknowledge(alert["sos_id"])["status"] == "acknowledged"
        assert ada.sos.resolve(alert["sos_id"])["status"] == "resolved"
        grace.location.pause(datetime.now(timezone.utc) + timedelta(hours=1))
        grace.location.resume()
        ada.circles.remove_place(circle, place["id"])
        grace.circles.leave(circle)
        circles = list(ada.circles.list(min_position=grace.position))
        assert [one["name"] for one in circles[0]["members"]] == ["Ada"]


def test_a_person_signs_in_by_a_code(system: System) -> None:
    phone = "+4915112345678"
    with system.person(phone=phone) as person, Waypost(system.url) as anybody:
        anybody.auth.send_code(phone)
        person.auth.verify_code(phone, newest_code(system, phone))
        anybody.auth.send_code(phone)
        session = anybody.auth.verify_code(phone, newest_code(system, phone))
    with Waypost(system.url, session["access_token"]) as waypost:
        assert waypost.location.latest() == []
        session = waypost.auth.change_password("a long password", "a longer password")
    with Waypost(system.url, session["access_token"]) as waypost:
        waypost.auth.logout()
        with pytest.raises(UnauthorizedError):
            waypost.location.latest()


def newest_code(system: System, phone: str) -> str:
    sent = eventually(lambda: system.get("/codes?phone=" + phone.replace("+", "%2B")), "a code")
    return str(sent[-1]["code"])


def test_an_organization_sees_who_joined_its_circle(system: System) -> None:
    with system.client() as waypost, system.person(name="Ada") as ada:
        circle = waypost.organization_circles.create("Drivers")["id"]
        ada.circles.join(waypost.organization_circles.invite(circle)["code"])
        ada.location.update(53.55, 9.99)
        fixes = eventually(lambda: list(waypost.locations.read(limit=1)), "the position")
        assert fixes[0]["data"]["lat"] == 53.55
        joined = eventually(lambda: list(waypost.events.read(types=["circle.*"])), "the joining")
        assert [one["type"] for one in joined] == ["circle.member_joined"]


def test_the_async_client_does_many_things_at_once(system: System) -> None:
    async def work() -> None:
        key = system.organization()["key"]
        async with AsyncWaypost(system.url, key) as waypost:
            writes = (
                waypost.clients.create({"id": f"k-{number}", "name": "Ada"})
                for number in range(300)
            )
            await asyncio.gather(*writes)
            # Responses came in any order; the read waits for the newest of all positions.
            assert (await waypost.clients.page(limit=1)).total == 300
            assert len([one async for one in waypost.clients.list(limit=70)]) == 300

    asyncio.run(work())


def test_two_thousand_calls_leave_nothing_behind(system: System) -> None:
    def held() -> tuple[int, int]:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * 4, len(list(Path("/proc/self/fd").iterdir()))

    with system.client() as waypost:
        for _ in range(200):
            waypost.leads.put("l", {"name": "Ada"})
        before = held()
        for _ in range(1900):
            waypost.leads.put("l", {"name": "Ada"})
        for _ in range(100):
            # Abandoned in the middle.
            next(waypost.events.read(types=["lead.*"]))
        after = held()
    assert after[0] - before[0] < 4096
    assert after[1] - before[1] <= 2
