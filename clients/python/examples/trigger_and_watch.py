"""Starts a run and watches it.

WAYPOST_URL and WAYPOST_KEY name the system and a key with the scopes workflows:trigger,
workflows:write and events:read.
"""

import os

from waypost import LiveEvent, Waypost
from waypost.models import WorkflowDefinition

GREET: WorkflowDefinition = {
    "name": "Greet",
    "status": "ACTIVE",
    "steps": [
        {"id": "start", "type": "TRIGGER", "next": ["notify"]},
        {
            "id": "notify",
            "type": "NOTIFY",
            "event": "hello",
            "data": {"greeting": "Hello, {{ trigger.name }}!"},
        },
    ],
}


def main() -> None:
    with Waypost(os.environ["WAYPOST_URL"], os.environ["WAYPOST_KEY"]) as waypost:
        waypost.workflows.put("greet", GREET)
        with waypost.subscribe("runs", after=waypost.position) as runs:
            run_id = waypost.workflows.trigger("greet", {"name": "Ada"})["runId"]
            for item in runs:
                if isinstance(item, LiveEvent) and item.data.get("runId") == run_id:
                    print(item.type)
                    if item.type in {"run.succeeded", "run.failed", "run.cancelled"}:
                        break


if __name__ == "__main__":
    main()
