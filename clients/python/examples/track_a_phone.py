"""Sends positions as a phone would: kept in a file while offline, in arrays, within the limit.

WAYPOST_URL names the system, WAYPOST_EMAIL and WAYPOST_PASSWORD an account.
"""

import os

from waypost import Password, Waypost

WALK = [(53.5511, 9.9937), (53.5520, 9.9921), (53.5533, 9.9902)]


def main() -> None:
    who = Password(os.environ["WAYPOST_EMAIL"], os.environ["WAYPOST_PASSWORD"])
    with Waypost(os.environ["WAYPOST_URL"], who) as waypost:
        queue = waypost.location_queue("fixes.sqlite")
        for lat, lng in WALK:
            queue.add(lat, lng, accuracy=12)
        result = queue.flush()
        print(f"sent {result.sent}, waiting {result.waiting}, parked {result.parked}")
        queue.close()


if __name__ == "__main__":
    main()
