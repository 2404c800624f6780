"""docs/reference/api.md from docs/openapi.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterator

HEAD = """\
# The API

Written from `/openapi.json` by `scripts/check-reference --write`; a running Waypost shows the same at `/docs/reference/api`, with a form to try each request. Sockets, webhooks and feeds are described in [events](events.md) and in `/asyncapi.json`.

- Base address: `http://127.0.0.1:8080` with `make run`. Bodies are JSON in UTF-8.
- **Keys** go into `Authorization: Bearer wp_…`; the business data API also takes `X-Api-Key`. A scope in the tables below is what the key needs; `admin` passes every check.
- **Access tokens** (people) go into the same header.
- **Lists** answer `{data, total, page, limit}`, with `Link: rel="next"` for those who walk the whole list.
- **Errors** are `{"error": "<message>"}`, see [errors](errors.md). **Limits**: `RateLimit` and `RateLimit-Policy` on every answer, `Retry-After` on a 429.
- **Retries**: POST commands take an `Idempotency-Key` (24 hours). The same key with the same body gets the first answer again, and another body is refused (409, on the trigger 400). Of lines and rows, the first MiB of the body (unpacked) decides this, before any is written; every later line is compared by itself, and one that differs gets an error as its line of answer. If a client pauses for a second before it has sent that much, as one that waits for answers does, or takes more than ten seconds for it, each of its lines is compared by itself.
- **Read your own writes**: send the `Waypost-Position` of an answer as `Waypost-Min-Position` with a read. The read waits until it includes that write.
"""


def resolve(root: Any, node: Any) -> Any:
    while isinstance(node, dict) and "$ref" in node:
        found = root
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def kind(root: Any, schema: Any) -> str:
    """A schema in a word or two."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        plain = resolve(root, schema)
        if plain.get("type") == "string" and "enum" not in plain:
            return "string"
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " \\| ".join(f"`{one}`" for one in schema["enum"])
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            return " or ".join(dict.fromkeys(kind(root, one) for one in schema[choice]))
    named = schema.get("type", "any")
    if isinstance(named, list):
        named = " or ".join(named)
    if schema.get("type") == "array":
        return f"array of {kind(root, schema.get('items', {}))}"
    return f"{named} ({schema['format']})" if "format" in schema else str(named)


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|") if text else ""


def bounds(schema: Any) -> str:
    names = {"minimum": "from {}", "exclusiveMinimum": "above {}", "maximum": "to {}", "minLength": "at least {} characters",
             "maxLength": "at most {} characters", "minItems": "at least {}", "maxItems": "at most {}",
             "default": "default `{}`"}
    limits = [text.format(json.dumps(schema[name]) if name == "default" else schema[name])
            for name, text in names.items() if schema.get(name) is not None]
    return f" ({', '.join(limits).replace('at least 1 characters', 'not empty')})" if limits else ""


def fields(root: Any, schema: Any) -> Iterator[str]:
    schema = resolve(root, schema)
    required = schema.get("required", [])
    yield "| Field | Type | |\n|---|---|---|"
    for name, field in schema.get("properties", {}).items():
        text = field.get("description") or resolve(root, field).get("description", "")
        must = "" if name not in required else "Required. "
        yield f"| `{name}` | {kind(root, field)} | {must}{cell(text)}{bounds(field)} |"


def content(root: Any, one: Any) -> str:
    types = []
    for media, what in one.get("content", {}).items():
        schema = what.get("schema", {})
        shape = kind(root, schema) if schema.get("$ref") or "oneOf" in schema else inline(root, schema)
        types.append(f"`{media}`" + (f" {shape}" if shape else ""))
    return ", ".join(types)


def inline(root: Any, schema: Any) -> str:
    """An object that has no name, by its fields."""
    fields = [f"{name}: {kind(root, field)}" if "](#" in kind(root, field) else name
              for name, field in schema.get("properties", {}).items()]
    return "{" + ", ".join(fields) + "}" if fields else ""


def operation(root: Any, method: str, path: str, one: Any) -> Iterator[str]:
    yield f"### {one['summary']}\n\n`{method.upper()} {path}`"
    security = one.get("security") or [{}]
    who = "nothing" if not security[0] else "an API key" if "apiKey" in security[0] else "an access token"
    scope = f" with the scope `{one['x-scope']}`" if one.get("x-scope") else ""
    yield f"\nNeeds {who}{scope}. `operationId`: `{one['operationId']}`."
    if one.get("description"):
        yield "\n" + one["description"]
    given = [resolve(root, parameter) for parameter in one.get("parameters", [])]
    if given:
        yield "\n| Parameter | In | Type | |\n|---|---|---|---|"
        for parameter in given:
            must = "Required. " if parameter.get("required") and parameter["in"] != "path" else ""
            yield (f"| `{parameter['name']}` | {parameter['in']} | {kind(root, parameter['schema'])} | "
                   f"{must}{cell(parameter.get('description', ''))}{bounds(parameter['schema'])} |")
    if one.get("requestBody"):
        yield "\nBody: " + content(root, one["requestBody"])
    yield "\n| Status | |\n|---|---|"
    usual = []
    for status, answer in one["responses"].items():
        if "$ref" in answer:
            usual.append(status)
            continue
        body = content(root, answer) if status < "400" else ""
        yield f"| {status} | {cell(answer['description'])}{' ' + body if body else ''} |"
    if usual:
        yield f"| {', '.join(usual)} | [Errors](errors.md#statuses) |"


def written(checkout: Path) -> str:
    """The page."""
    root = json.loads((checkout / "docs/openapi.json").read_text())
    lines = [HEAD]
    for tag in root["tags"]:
        lines += [f"## {tag['name']}\n", tag["description"] + "\n"]
        for path, methods in root["paths"].items():
            for method, one in methods.items():
                if one["tags"][0] == tag["name"]:
                    lines += [*operation(root, method, path, one), ""]
    lines += ["## Objects\n"]
    for name, schema in root["components"]["schemas"].items():
        lines += [f"### {name}\n"]
        if schema.get("description"):
            lines += [schema["description"] + "\n"]
        if schema.get("properties"):
            lines += [*fields(root, schema), ""]
        else:
            lines += [kind(root, schema) + "\n"]
    return "\n".join(lines).rstrip() + "\n"
