"""Compares output with a document, ids, times and numbers aside."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

# Numbers whose value matters; others are only compared by kind.
EXACT = {"status", "version", "workflowVersion", "imported", "rejected", "line", "page", "limit",
         "replayed", "differences", "removed"}
KINDS = {
    "http_date": r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
                 r" \d{4} \d\d:\d\d:\d\d GMT",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z",
    "date": r"\d{4}-\d\d-\d\d",
    "month": r"\d{4}-\d\d",
    "key": r"wp_[0-9A-Za-z]{40,}",
    "secret": r"whsec_[0-9A-Za-z+/=]+",
    "message": r"msg_[0-9a-z]+",
    "token": r"eyJ[\w.-]+",
    "traceparent": r"00-[0-9a-f]{32}-[0-9a-f]{16}-\d\d",
    "uuid": r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    "position": r"[0-9a-z]{6,}-\d+",
    "hex": r"[0-9a-f]{32}",
}
ANY_KIND = re.compile("|".join(f"(?P<{name}>\\b{kind})" for name, kind in KINDS.items()))


class Wrong(Exception):
    """A document that is wrong."""


@dataclass
class Ids:
    """The ids of the text, and those of the running system that replace them."""

    known: dict[str, str] = field(default_factory=dict)

    def put(self, text: str) -> str:
        for written in sorted(self.known, key=len, reverse=True):
            text = text.replace(written, self.known[written])
        return text

    def learn(self, written: str, given: str) -> None:
        if written != given and len(written) >= 8:
            self.known.setdefault(written, given)


def kind_of(text: str) -> str | None:
    found = ANY_KIND.fullmatch(text)
    return found.lastgroup if found else None


def alike(written: str, given: str, ids: Ids) -> bool:
    """Whether a line of text says the same, ids, times and numbers aside."""
    if ids.put(written) == given:
        return True
    parts, at = [], 0
    groups: list[str] = []
    for found in re.finditer(ANY_KIND.pattern + r"|(?P<any>…)|(?P<number>\d+(?:\.\d+)?)|(?P<space>\s+)",
                             written):
        parts.append(re.escape(written[at:found.start()]))
        at = found.end()
        name = found.lastgroup or "any"
        groups.append(found[0])
        parts.append({"any": "(.*?)", "number": r"(\d+(?:\.\d+)?)", "space": r"(\s+)"}.get(name)
                     or f"({KINDS[name]})")
    parts.append(re.escape(written[at:]))
    fit = re.fullmatch("".join(parts), given)
    if fit is None:
        return False
    for word, actual in zip(groups, fit.groups()):
        if kind_of(word):
            ids.learn(word, actual)
    return True


def same(written: Any, given: Any, at: str, ids: Ids) -> None:
    """Raises if one value does not have the other's shape."""
    name = at.rpartition(".")[2]
    if isinstance(written, dict) and isinstance(given, dict):
        if set(written) != set(given):
            raise Wrong(f"{at or 'it'} has {sorted(given)}, not {sorted(written)}")
        for key in written:
            same(written[key], given[key], f"{at}.{key}", ids)
    elif isinstance(written, list) and isinstance(given, list):
        if bool(written) != bool(given):
            raise Wrong(f"{at} has {len(given)} items")
        for nth, item in enumerate(given):
            same(written[nth] if len(written) == len(given) else written[0], item, f"{at}[{nth}]", ids)
    elif isinstance(written, str) and isinstance(given, str):
        if name == "code":
            ids.learn(written, given)
        elif not alike(written, given, ids):
            raise Wrong(f"{at} is {given!r}, not like {written!r}")
    elif isinstance(written, bool) or isinstance(given, bool) or written is None or given is None:
        if written is not given:
            raise Wrong(f"{at} is {given!r}, not {written!r}")
    elif isinstance(written, (int, float)) and isinstance(given, (int, float)):
        if name in EXACT and written != given:
            raise Wrong(f"{at} is {given!r}, not {written!r}")
        ids.learn(str(written), str(given))
    else:
        raise Wrong(f"{at} is {given!r}, not like {written!r}")


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def hold(written: str, given: str, ids: Ids) -> None:
    """Raises if the output is not what is written."""
    whole, actual = parsed(written), parsed(given)
    if isinstance(whole, (dict, list)):
        if actual is None:
            raise Wrong("it is no JSON")
        return same(whole, actual, "", ids)
    lines = [line.rstrip() for line in written.strip().splitlines()]
    printed = [line.rstrip() for line in given.strip().splitlines()]
    open_end = bool(lines) and lines[-1] == "…"
    if open_end:
        lines.pop()
    if len(lines) != len(printed) and not (open_end and len(printed) >= len(lines)):
        raise Wrong(f"it has {len(printed)} lines, not {len(lines)}")
    for nth, (line, actual_line) in enumerate(zip(lines, printed), start=1):
        value, actual = parsed(line), parsed(actual_line)
        if isinstance(value, (dict, list)) and isinstance(actual, (dict, list)):
            same(value, actual, f"line {nth} ", ids)
        elif not alike(line, actual_line, ids):
            raise Wrong(f"line {nth} is\n    {actual_line}\n  not like\n    {line}")
