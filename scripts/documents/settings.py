"""The table of all settings in README.md, from docs/reference/settings.md."""

from __future__ import annotations

import re
from pathlib import Path

BEGIN = "<!-- written by scripts/check-reference from docs/reference/settings.md -->\n"
END = "<!-- the end of what is written -->\n"


def brief(meaning: str) -> str:
    """The first sentence, with links as the README needs them."""
    first = re.split(r"\. (?=[A-Z`])", meaning)[0]
    return first.replace("](../", "](docs/")


def table(reference: str) -> list[str]:
    """The lines of the table: all groups and settings in the order of the reference."""
    lines = ["| Variable | Default | Meaning |", "|---|---|---|"]
    for line in reference.splitlines():
        group = re.fullmatch(r"## (.*)", line)
        setting = re.fullmatch(r"\| `(\w+)` \| (?:(.*?) )?\| (.*) \|", line)
        if group:
            lines.append(f"| **{group[1]}** | | |")
        elif setting:
            name, default, meaning = setting.groups(default="")
            lines.append(f"| `{name}` | {default + ' ' if default else ''}| {brief(meaning)} |")
    return lines


def written(checkout: Path) -> str:
    """The README."""
    reference = (checkout / "docs/reference/settings.md").read_text()
    before, rest = (checkout / "README.md").read_text().split(BEGIN)
    after = rest.split(END)[1]
    return before + BEGIN + "\n".join(["", *table(reference), "", END]) + after
