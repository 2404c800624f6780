"""Generated code, formatted as if written by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def formatted(text: str, place: Path) -> str:
    """Return a module's text as ruff formats it, with sorted imports."""
    for command in (["check", "--select", "I", "--fix", "--quiet"], ["format"]):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "ruff",
                *command,
                "--stdin-filename",
                str(place / "made.py"),
                "-",
            ],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = done.stdout
    return text
