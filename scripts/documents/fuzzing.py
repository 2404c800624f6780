"""Rules for valid requests that the document cannot state, for schemathesis."""

import json
from typing import Any

import schemathesis

# Only a server issues these, each its own; only what was read can meet a precondition.
GIVEN = {
    "query": ("cursor", "after"),
    "headers": ("waypost-min-position", "last-event-id", "if-match", "if-none-match"),
}
IN_FUTURE = {"createKey": ("expiresAt",), "pauseSharing": ("until",)}
LATER = "2031-12-31T23:59:59Z"


@schemathesis.serializer("application/x-ndjson")
def as_lines(_context: Any, value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.encode("utf-8", "replace") if isinstance(value, str) else json.dumps(value).encode()


def whole(value: Any) -> Any:
    """Without the decimals that JSON Schema allows in an integer: in money they are a mistake."""
    if isinstance(value, dict):
        return {name: whole(one) for name, one in value.items()}
    if isinstance(value, list):
        return [whole(one) for one in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
    return int(value) if is_whole else value


@schemathesis.hook
def map_case(_context: Any, case: Any) -> Any:
    if is_wrong(case):
        return case
    for place, names in GIVEN.items():
        given = getattr(case, place) or {}
        for name in [one for one in given if one.lower() in names]:
            del given[name]
    fitting(operation_of(case), case.query or {})
    if operation_of(case) == "triggerWorkflow" and case.headers:
        case.headers.pop("Idempotency-Key", None)  # a reused key is 400 here
    if case.media_type == "text/csv" and isinstance(case.body, str) and not case.body.startswith("id"):
        case.body = "id\r\n" + case.body  # unknown columns fail the whole file
    if isinstance(case.body, (dict, list)):
        # A step built from an earlier response has an object where lines are expected.
        is_lines = case.media_type == "application/x-ndjson"
        case.body = '{"id":"1"}' if is_lines else corrected(operation_of(case), whole(case.body))
    return case


def fitting(operation: str, query: Any) -> None:
    """Parameters valid only together, and names of time zones."""
    if operation == "getAnalytics" and query:
        query.update({"from": "2026-01-31", "to": "2026-03-31"})
        query.update({name: "Europe/Berlin" for name in query if name == "timezone"})
    if query.get("format") == "crm":
        query.pop("updatedSince", None)  # rows without ids cannot show deletions


@schemathesis.hook
def before_call(context: Any, case: Any, _arguments: Any) -> None:
    """Examples come straight from the document."""
    map_case(context, case)


def corrected(operation: str, body: Any) -> Any:
    if isinstance(body, list):
        return [corrected(operation, one) for one in body]
    if not isinstance(body, dict):
        return body
    for field in IN_FUTURE.get(operation, ()):
        if body.get(field) is not None:
            body[field] = LATER
    if operation.startswith("put"):
        body.pop("id", None)  # it is in the path
    if operation in ("updateLocation", "triggerSos"):
        body.pop("recorded_at", None)  # no more than five minutes ahead
    if operation == "triggerSos" and (body.get("lat") is None) != (body.get("lng") is None):
        body = {name: one for name, one in body.items() if name not in ("lat", "lng")}
    if operation == "replayWebhook" and "after" in body:
        body = {"failed": True}
    return body


def is_wrong(case: Any) -> bool:
    return case.meta is not None and case.meta.generation.mode.is_negative


def operation_of(case: Any) -> str:
    return case.operation.definition.raw.get("operationId", "")


@schemathesis.hook
def filter_case(_context: Any, case: Any) -> bool:
    """No schema says how a workflow's steps connect, nor which lines are records."""
    if case.media_type == "application/x-ndjson":
        return isinstance(case.body, (str, bytes)) and not is_wrong(case)
    return is_wrong(case) or operation_of(case) != "putWorkflow"
