"""docs/reference/workflow.schema.json from the definition in docs/openapi.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

STEPS = ["TriggerStep", "HttpStep", "NotifyStep", "ConditionStep", "DelayStep",
         "WaitForEventStep", "RecordStep"]


def inside(node: Any) -> Any:
    """The same with references that stay within the schema."""
    if isinstance(node, dict):
        return {key: inside(value.replace("#/components/schemas/", "#/$defs/")
                            if key == "$ref" else value) for key, value in node.items()}
    return [inside(one) for one in node] if isinstance(node, list) else node


def written(checkout: Path) -> str:
    """The schema."""
    known = json.loads((checkout / "docs/openapi.json").read_text())["components"]["schemas"]
    definition = inside(known["WorkflowDefinition"])
    # Editors write the schema's address into the file that they check.
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A workflow of Waypost",
        **definition,
        "$defs": {name: inside(known[name]) for name in STEPS},
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
