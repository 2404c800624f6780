"""docs/reference/events.md from docs/asyncapi.json and the recorded samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .api import cell, kind, resolve

HEAD = """\
# Events

Everything that happens is an event. Events reach you in three forms, all with the same `data`:

| | How | Selected by |
|---|---|---|
| Feed | `GET /api/v1/events` (NDJSON, or server-sent events with `Accept: text/event-stream`); positions at `GET /api/v1/locations` | `types=run.*,lead.created` |
| WebSocket | `/ws`, channels `locations`, `places`, `sos`, `runs`, `events` | channel |
| Webhook | POST to your endpoint, signed after [Standard Webhooks](../how-to/verify-webhooks.md) | `events` of the endpoint |

A line of the feed:

```json
{"position":"e3ef6428b-495","id":"01a205b4-2151-7227-959d-00cbb06fa771","type":"lead.created","version":1,"time":"2026-11-23T00:00:20.817722Z","subject":"lead/lead-1","correlationId":null,"causationId":null,"data":{"id":"lead-1","name":"Björn Horváth"}}
```

| Field | |
|---|---|
| `position` | Its place in the log. Opaque; give it as `after` to continue after it |
| `id` | The event's own id. The same wherever you meet the event, so use it to recognise duplicates |
| `type`, `version` | What happened, and the version of the form of `data` |
| `time` | When, in UTC |
| `subject` | What it is about |
| `correlationId` | Shared by everything that follows from one request |
| `causationId` | The id of the event that led to this one; where a request did, that request's id; `null` where neither did |
| `data` | As described below |

A webhook's body is `{"type", "timestamp", "data", "position"}`. The event's id is not in it; its `webhook-id` header is unique per delivery and stays the same over attempts and replays. A pattern ends in `*`: `run.*`.

The JSON Schema of every version of every type is in `schemas/json`. A published version never changes, see [add an event version](../how-to/add-an-event-version.md). The tables and examples below are written by `scripts/check-reference --write` from `/asyncapi.json` and the recorded samples that every release must still be able to read. `custom.<name>` is what a NOTIFY step writes, with `data` as the workflow gives it.
"""

ORDER = ["workflow", "run", "lead", "client", "order", "company", "deal", "contact", "location",
         "place", "sos", "circle", "key", "webhook", "custom"]


def sample(checkout: Path, title: str, shown: set[str]) -> str | None:
    path = checkout / "schemas/samples" / f"{title}.json"
    if not path.exists():
        return None
    first = json.loads(path.read_text())["samples"][0]
    if not isinstance(first, dict) or any("sealed" in json.dumps(value).lower() for value in first.values()):
        return None
    # A sample is as stored in the log; some of that is never exposed.
    if shown and not set(first) <= shown:
        return None
    return json.dumps(first, ensure_ascii=False)


def shape_of(root: Any, field: Any) -> str:
    """The type of a field; the examples show objects within it."""
    plain = resolve(root, field)
    choices = plain.get("oneOf") or plain.get("anyOf") or []
    words = [one["const"] for one in choices if "const" in one]
    if words:
        return " \\| ".join(f"`{word}`" for word in words)
    kinds = dict.fromkeys(shape_of(root, one) for one in choices)
    if kinds:
        return " or ".join(kinds)
    if plain.get("type") == "array":
        return f"array of {shape_of(root, plain.get('items', {}))}"
    return kind(root, plain)


def described(checkout: Path, root: Any, schema: Any) -> list[str]:
    # The published schema has its own definitions; in the document those of all types share names.
    own = checkout / "schemas/json" / f"{schema.get('title')}.json"
    published = json.loads(own.read_text()) if own.exists() else root
    lines = ["| Field | Type | |", "|---|---|---|"]
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        text = field.get("description") or resolve(root, field).get("description", "")
        own_field = published.get("properties", {}).get(name)
        shape = shape_of(published, own_field) if own_field else shape_of(root, field)
        may = "" if name in required else " May be absent."
        lines.append(f"| `{name}` | {shape} | {cell(text)}{may} |")
    return lines


def written(checkout: Path) -> str:
    """The page."""
    root = json.loads((checkout / "docs/asyncapi.json").read_text())
    schemas = root["components"]["schemas"]
    types = [name for name in schemas if "." in name and name.split(".")[0] in ORDER]
    types.sort(key=lambda name: ORDER.index(name.split(".")[0]))
    lines = [HEAD]
    for name in types:
        schema = schemas[name]
        lines += [f"## {name}\n", cell(schema.get("description", "")) + "\n"]
        if schema.get("properties"):
            lines += [*described(checkout, root, schema), ""]
        example = sample(checkout, schema.get("title", ""), set(schema.get("properties", {})))
        if example:
            lines += [f"```json\n{example}\n```\n"]
    return "\n".join(lines).rstrip() + "\n"
