"""Writes a thousand contacts and saves all of them as a workbook, with progress.

WAYPOST_URL and WAYPOST_KEY name the system and a key with the scopes records:write and
export:contacts:read.
"""

import os
from collections.abc import Iterator

from waypost import Waypost
from waypost.models import ContactRecord


def contacts() -> Iterator[ContactRecord]:
    for number in range(1000):
        yield {"id": f"example-{number}", "firstName": f"Contact {number}"}


def main() -> None:
    with Waypost(os.environ["WAYPOST_URL"], os.environ["WAYPOST_KEY"]) as waypost:
        refused = [one for one in waypost.contacts.import_records(contacts()) if one.error]
        print(f"refused: {len(refused)}")
        exported = waypost.contacts.export(
            "excel",
            to="contacts.xlsx",
            progress=lambda size: print(f"\r{size // 1024} KiB", end=""),
        )
        print(f"\ncontacts.xlsx: {exported.size} bytes")


if __name__ == "__main__":
    main()
