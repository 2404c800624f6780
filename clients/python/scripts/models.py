"""Writes src/waypost/models.py from docs/openapi.json; --check reports whether it is stale."""

from __future__ import annotations

import ast
import json
import keyword
import sys
import textwrap
from pathlib import Path
from typing import Any

from formatting import formatted

HERE = Path(__file__).resolve().parents[1]
DOCUMENT = HERE.parents[1] / "docs" / "openapi.json"
OUTPUT = HERE / "src" / "waypost" / "models.py"
# Requests: their enumerations are closed, so that a type checker finds a typing error. Those of
# responses are open, since a newer server may add values.
SENT = {
    "WorkflowDefinition",
    "TriggerStep",
    "HttpStep",
    "NotifyStep",
    "ConditionStep",
    "DelayStep",
    "WaitForEventStep",
    "RecordStep",
    "CompanyRecord",
    "DealRecord",
    "ContactRecord",
    "OrderRecord",
    "LeadRecord",
    "ClientRecord",
    "Fix",
}
STEPS = [name for name in sorted(SENT) if name.endswith("Step")]
# Expressed by method arguments instead, or not the response of a method.
LEFT_OUT = {
    "Error",
    "KeyRequest",
    "WebhookRequest",
    "WebhookChange",
    "ReplayRequest",
    "Registration",
    "SignIn",
    "CodeRequest",
    "Verification",
    "PasswordChange",
    "Pause",
    "CircleRequest",
    "JoinRequest",
    "PlaceRequest",
    "Call",
}
# Responses that have no name in the document, by their operation.
ANSWERS = {
    "triggerWorkflow": "StartedRun",
    "replayWebhook": "Replayed",
    "rotateWebhookSecret": "RotatedSecret",
    "testWebhook": "TestDelivery",
    "sendCode": "SentCode",
    "inviteToCircle": "Invite",
    "inviteToCircleOfOrganization": "OrganizationInvite",
    "joinCircle": "JoinedCircle",
    "addPlace": "NewPlace",
    "triggerSos": "Alert",
    "acknowledgeSos": "AlertStatus",
}
HEADER = '''"""What is sent and answered, as dictionaries with types. Made by scripts/models.py."""

from __future__ import annotations

from typing import Any, Literal, TypedDict
'''


class Models:
    """The classes that have been written so far."""

    def __init__(self, schemas: dict[str, Any]) -> None:
        self.schemas = schemas
        self.written: dict[str, str] = {}

    def write(self, name: str, schema: dict[str, Any], sent: bool) -> None:
        """Write one object's class, after those that it consists of."""
        if name in self.written:
            return
        required = set(schema.get("required", []))
        must: list[tuple[str, str, str]] = []
        may: list[tuple[str, str, str]] = []
        for field, of in schema.get("properties", {}).items():
            kind = self.kind(of, name + field[0].upper() + field[1:], sent)
            (must if field in required else may).append((field, kind, of.get("description", "")))
        doc = schema.get("description", "")
        if any(keyword.iskeyword(field) for field, _, _ in must + may):
            text = _functional(name, must, may, sent)
        elif must and may:
            base = _class(f"_{name}", "TypedDict", must, "", sent)
            text = base + "\n\n\n" + _class(name, f"_{name}, total=False", may, doc, sent)
        else:
            total = "TypedDict" if must or not may else "TypedDict, total=False"
            text = _class(name, total, must or may, doc, sent)
        self.written[name] = text

    def kind(self, schema: dict[str, Any], name: str, sent: bool) -> str:
        """Return the type of a value; writes the class of an object under this name."""
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            self.write(name, self.schemas[name], name in SENT)
            return name
        choices = schema.get("oneOf") or schema.get("anyOf")
        if choices:
            kinds = [self.kind(one, _nth(name, one, nth), sent) for nth, one in enumerate(choices)]
            return " | ".join(dict.fromkeys(sorted(kinds, key=lambda kind: kind == "None")))
        if "const" in schema:
            return f"Literal[{json.dumps(schema['const'])}]"
        if "enum" in schema:
            values = [value for value in schema["enum"] if value is not None]
            null = " | None" if None in schema["enum"] else ""
            literal = f"Literal[{', '.join(map(json.dumps, values))}]"
            return literal + ("" if sent else " | str") + null
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return " | ".join(self.plain(kind, schema, name, sent) for kind in kinds) or "Any"

    def plain(self, kind: str, schema: dict[str, Any], name: str, sent: bool) -> str:
        """Return the type of a value of one JSON type."""
        match kind:
            case "array":
                one = name if name.endswith("eries") else name.removesuffix("s")
                inner = self.kind(schema.get("items", {}), one, sent)
                return f"list[{inner}]"
            case "object" if schema.get("properties"):
                self.write(name, schema, sent)
                return name
            case "object":
                more = schema.get("additionalProperties")
                inner = self.kind(more, name, sent) if isinstance(more, dict) else "Any"
                return f"dict[str, {inner}]"
        names = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
        return names.get(kind, "None")


def _nth(name: str, schema: dict[str, Any], nth: int) -> str:
    # The choices of a field are distinguished by their required fields.
    required = schema.get("required", [])
    return f"{name}{required[0].capitalize()}" if len(required) == 1 else name + str(nth or "")


def _class(name: str, base: str, fields: list[tuple[str, str, str]], doc: str, sent: bool) -> str:
    lines = [f"class {name}({base}):", f'    """{_sentence(name, doc, sent)}"""', ""]
    for field, kind, description in fields:
        lines.append(_wrapped(f"    {field}: ", kind))
        if description:
            lines += textwrap.wrap(
                f'"""{description}"""', 96, initial_indent="    ", subsequent_indent="    "
            )
    return "\n".join(lines)


def _wrapped(start: str, kind: str) -> str:
    if len(start + kind) <= 100 or "[" not in kind:
        return start + kind
    opening, rest = kind.split("[", 1)
    inner, closing = rest.rsplit("]", 1)
    lines = textwrap.wrap(inner, 90, break_on_hyphens=False)
    body = "\n".join("        " + line for line in lines)
    return f"{start}{opening}[\n{body}\n    ]{closing}"


def _functional(
    name: str, must: list[tuple[str, str, str]], may: list[tuple[str, str, str]], sent: bool
) -> str:
    # Python keywords cannot be attributes of a class.
    def fields(given: list[tuple[str, str, str]]) -> str:
        return ", ".join(f'"{field}": {kind!r}' for field, kind, _ in given)

    base = f'_{name} = TypedDict("_{name}", {{{fields(must)}}})'
    words = [one for one in may if keyword.iskeyword(one[0])]
    plain = [one for one in may if not keyword.iskeyword(one[0])]
    more = f'_{name}Words = TypedDict("_{name}Words", {{{fields(words)}}}, total=False)'
    return f"{base}\n{more}\n\n\n" + _class(
        name, f"_{name}, _{name}Words, total=False", plain, "", sent
    )


def _sentence(name: str, doc: str, sent: bool) -> str:
    words = "".join(f" {one.lower()}" if one.isupper() else one for one in name.strip("_"))[1:]
    if name.startswith("_"):
        return f"What every {words} has."
    article = "An" if words[0] in "aeio" else "A"
    return doc or f"{article} {words}, as it is {'sent' if sent else 'answered'}."


def render() -> str:
    """Return the whole module."""
    document = json.loads(DOCUMENT.read_text())
    models = Models(document["components"]["schemas"])
    for name, schema in models.schemas.items():
        if name not in LEFT_OUT:
            models.write(name, schema, name in SENT)
    for methods in document["paths"].values():
        for operation in methods.values():
            answer = ANSWERS.get(operation["operationId"])
            if answer:
                models.write(answer, _success(operation), sent=False)
    scopes = models.schemas["KeyRequest"]["properties"]["scopes"]["items"]["enum"]
    more = "Step = (\n    " + "\n    | ".join(STEPS) + '\n)\n"""A step of a workflow."""\n'
    body = "\n\n\n".join(models.written.values())
    names = ",\n    ".join(map(json.dumps, scopes))
    return f'{HEADER}\n\n{body}\n\nScope = Literal[\n    {names},\n]\n"""What a key may do."""\n\n{more}'


def _success(operation: dict[str, Any]) -> dict[str, Any]:
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            schema: dict[str, Any] = answer["content"]["application/json"]["schema"]
            return schema
    raise KeyError(operation["operationId"])


def shape(text: str) -> str:
    """Return a module's code without descriptions, so that rewording one makes no difference."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            node.body = [one for one in node.body if not _is_text(one)]
    return ast.dump(tree)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def main() -> int:
    text = formatted(render(), OUTPUT.parent)
    if "--check" in sys.argv:
        return 0 if shape(OUTPUT.read_text()) == shape(text) else 1
    OUTPUT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
