"""Writes src/waypost/_sync from src/waypost/_async; --check reports whether it is stale."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from formatting import formatted

SOURCE = Path(__file__).resolve().parents[1] / "src" / "waypost" / "_async"
OUTPUT = SOURCE.parent / "_sync"
# Written by hand, once for each.
BY_HAND = {"_aio.py", "_sio.py"}
WORDS = [
    (r"\basync (def|for|with)\b", r"\1"),
    (r"``async (for|with)``", r"``\1``"),
    (r"\bawait ", ""),
    (r"\bAwaitable\[([^\[\]]*(?:\[[^\[\]]*\])?[^\[\]]*)\]", r"\1"),
    (r", Awaitable\b|\bAwaitable, ", ""),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsyncGenerator\b", "Generator"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\baclosing\b", "closing"),
    (r"\bhttpx\.AsyncClient\b", "httpx.Client"),
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\b__a(iter|enter|exit|next)__", r"__\1__"),
    (r"\ba(close|read|iter_bytes|sleep)\b", r"\1"),
    (r"\b_aio\b", "_sio"),
    (r"\b_async\b", "_sync"),
]


def translate(text: str) -> str:
    """Return a module without `async`."""
    for word, instead in WORDS:
        text = re.sub(word, instead, text)
    header = '"""'
    start = text.index(header) + len(header)
    end = text.index('"""', start)
    return f"{text[:end].rstrip()}\n\nMade by scripts/unasync.py.\n{text[end:]}"


def main() -> int:
    stale = False
    for source in sorted(SOURCE.glob("*.py")):
        if source.name in BY_HAND:
            continue
        output, text = OUTPUT / source.name, formatted(translate(source.read_text()), SOURCE)
        if "--check" in sys.argv:
            stale |= not output.exists() or output.read_text() != text
        else:
            output.write_text(text)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
