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
        {"id": "start", "type": "TRIGGER", "next": ["tell"]},
        {
            "id": "tell",
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
            for told in runs:
                if isinstance(told, LiveEvent) and told.data.get("runId") == run_id:
                    print(told.type)
                    if told.type in {"run.succeeded", "run.failed", "run.cancelled"}:
                        break


if __name__ == "__main__":
    main()
