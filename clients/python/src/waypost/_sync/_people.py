"""People's accounts, positions, circles and SOS.

Made by scripts/unasync.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

from .._calls import Call, moment, segment
from .._outcomes import AcceptedFix
from .._settings import UNSET, Unset
from ..models import (
    Alert,
    AlertStatus,
    Circle,
    Fix,
    Invite,
    JoinedCircle,
    NewCircle,
    NewPlace,
    OpenCall,
    Place,
    Position,
    SentCode,
    Session,
    Trail,
)
from ._automation import _AsyncResource
from ._lists import Listing

# Inside a class with a method of that name, `list` is not a type.
Places = list[Place]


class Auth(_AsyncResource):
    """People's accounts."""

    def register(
        self,
        name: str,
        email: str,
        password: str,
        *,
        phone: str | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """Register an account and sign in.

        Args:
            name: The person's name.
            email: An address that has no account yet.
            password: 8 characters or more.
            phone: In E.164, such as ``+4915112345678``; it is held once it is verified.
            idempotency_key: Your own key.

        """
        body = {"name": name, "email": email, "password": password}
        if phone is not None:
            body["phone"] = phone
        return cast("Session", self._anonymous("/auth/register", body, idempotency_key))

    def login(self, email: str, password: str, *, idempotency_key: str | None = None) -> Session:
        """Sign in with e-mail address and password."""
        body = {"email": email, "password": password}
        return cast("Session", self._anonymous("/auth/login", body, idempotency_key))

    def send_code(self, phone: str, *, idempotency_key: str | None = None) -> SentCode:
        """Send a one-time code to a phone; the response is the same whether it is known or not."""
        body = {"phone": phone}
        return cast("SentCode", self._anonymous("/auth/otp/send", body, idempotency_key))

    def verify_code(self, phone: str, code: str, *, idempotency_key: str | None = None) -> Session:
        """Sign in with a code; for a client with a token: attach the phone to its account."""
        body = {"phone": phone, "code": code}
        return cast("Session", self._post("/auth/otp/verify", body, idempotency_key))

    def logout(self, *, idempotency_key: str | None = None) -> None:
        """Revoke the token."""
        self._post("/auth/logout", idempotency_key=idempotency_key)

    def change_password(self, old: str, new: str, *, idempotency_key: str | None = None) -> Session:
        """Change the password, which revokes all other tokens."""
        body = {"old": old, "new": new}
        return cast("Session", self._post("/auth/password", body, idempotency_key))

    def export(self, *, min_position: str | Unset | None = UNSET) -> dict[str, Any]:
        """Read all data stored about this person."""
        return cast("dict[str, Any]", self._get("/auth/export", min_position))

    def delete(self, password: str, *, idempotency_key: str | None = None) -> None:
        """Delete this person: account, positions, and everything else."""
        self._post("/auth/delete", {"password": password}, idempotency_key)

    def _anonymous(self, path: str, body: Any, idempotency_key: str | None) -> Any:
        call = Call(
            "POST", path, body=body, key=True, idempotency_key=idempotency_key, anonymous=True
        )
        return self._transport.request(call)


class Location(_AsyncResource):
    """Positions of this person and of those who share a circle with them."""

    def update(
        self,
        lat: float,
        lng: float,
        *,
        accuracy: float | None = None,
        speed: float | None = None,
        place_name: str | None = None,
        battery: float | None = None,
        recorded_at: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> AcceptedFix:
        """Report where this person is, or was.

        Args:
            lat: Latitude, -90 to 90.
            lng: Longitude, -180 to 180.
            accuracy: In metres.
            speed: In metres a second.
            place_name: For people, up to 200 characters.
            battery: 0 to 100.
            recorded_at: The time; now unless given. Each instant has one fix.
            idempotency_key: Your own key.

        """
        given: dict[str, Any] = {
            "lat": lat,
            "lng": lng,
            "accuracy": accuracy,
            "speed": speed,
            "place_name": place_name,
            "battery": battery,
            "recorded_at": None if recorded_at is None else moment(recorded_at),
        }
        fix = {name: value for name, value in given.items() if value is not None}
        return cast("AcceptedFix", self._send(fix, idempotency_key))

    def update_many(
        self, fixes: Iterable[Fix], *, idempotency_key: str | None = None
    ) -> list[AcceptedFix]:
        """Send 1 to 100 fixes, all or none."""
        answer = self._send(list(fixes), idempotency_key)
        return cast("list[AcceptedFix]", answer["accepted"])

    def pause(self, until: datetime | str, *, idempotency_key: str | None = None) -> None:
        """Hide this person until then."""
        self._post("/location/pause", {"until": moment(until)}, idempotency_key)

    def resume(self, *, idempotency_key: str | None = None) -> None:
        """Show this person again."""
        self._post("/location/resume", idempotency_key=idempotency_key)

    def latest(self, *, min_position: str | Unset | None = UNSET) -> list[Position]:
        """Read the newest position of everybody whom this person may see."""
        call = Call("GET", "/location/latest", waits="fixes", min_position=min_position)
        answer = self._transport.request(call)
        return cast("list[Position]", answer["data"])

    def trails(self, *, min_position: str | Unset | None = UNSET) -> list[Trail]:
        """Read where everybody whom this person may see went within the last hour."""
        call = Call("GET", "/location/trails", waits="fixes", min_position=min_position)
        answer = self._transport.request(call)
        return cast("list[Trail]", answer["data"])

    def history(
        self,
        *,
        user_id: int | None = None,
        from_: datetime | str | None = None,
        to: datetime | str | None = None,
        limit: int | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> list[Position]:
        """Read positions, the newest first.

        Args:
            user_id: Whose; this person's unless given.
            from_: Not before.
            to: Not after.
            limit: How many at most, 1 to 1000; 100 unless given.
            min_position: Waits until this position is seen, in place of this client's own.

        """
        query = {
            "user_id": user_id,
            "from": None if from_ is None else moment(from_),
            "to": None if to is None else moment(to),
            "limit": limit,
        }
        call = Call(
            "GET", "/location/history", query=query, waits="fixes", min_position=min_position
        )
        answer = self._transport.request(call)
        return cast("list[Position]", answer["data"])

    def _send(self, body: Any, idempotency_key: str | None) -> Any:
        call = Call(
            "POST",
            "/location/update",
            body=body,
            key=True,
            idempotency_key=idempotency_key,
            writes="fixes",
        )
        return self._transport.request(call)


class Circles(_AsyncResource):
    """People who see each other's positions, and the places watched for them."""

    def create(self, name: str, *, idempotency_key: str | None = None) -> NewCircle:
        """Create a circle with this person in it."""
        return cast("NewCircle", self._post("/circles", {"name": name}, idempotency_key))

    def list(
        self,
        *,
        q: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
        min_position: str | Unset | None = UNSET,
    ) -> Listing[Circle]:
        """List the circles that this person is in.

        Args:
            q: A part of a name.
            sort: ``createdAt`` or ``name``; ``-`` before it descends. Newest first unless given.
            limit: How many on a page, 1 to 100; 20 unless given.
            min_position: Waits until this position is seen, in place of this client's own.

        """
        query = {"q": q, "sort": sort, "limit": limit}
        return self._list("/circles", query, min_position)

    def invite(self, id: str, *, idempotency_key: str | None = None) -> Invite:
        """Create a code for another person to join."""
        path = f"/circles/{segment(id)}/invites"
        return cast("Invite", self._post(path, idempotency_key=idempotency_key))

    def join(self, code: str, *, idempotency_key: str | None = None) -> JoinedCircle:
        """Join with a code."""
        answer = self._post("/circles/join", {"code": code}, idempotency_key)
        return cast("JoinedCircle", answer)

    def leave(self, id: str) -> None:
        """Leave a circle: from then on nobody in it sees this person."""
        self._transport.request(Call("DELETE", f"/circles/{segment(id)}/members/me"))

    def add_place(
        self,
        id: str,
        name: str,
        lat: float,
        lng: float,
        radius_m: float,
        *,
        idempotency_key: str | None = None,
    ) -> NewPlace:
        """Watch a place for a circle; its radius is 10 to 100,000 metres."""
        body = {"name": name, "lat": lat, "lng": lng, "radius_m": radius_m}
        path = f"/circles/{segment(id)}/places"
        return cast("NewPlace", self._post(path, body, idempotency_key))

    def places(self, id: str, *, min_position: str | Unset | None = UNSET) -> Places:
        """List a circle's places."""
        answer = self._get(f"/circles/{segment(id)}/places", min_position)
        return cast("Places", answer["data"])

    def remove_place(self, id: str, place_id: str) -> None:
        """Stop watching a place."""
        path = f"/circles/{segment(id)}/places/{segment(place_id)}"
        self._transport.request(Call("DELETE", path))


class Sos(_AsyncResource):
    """SOS calls; no rate limit applies to them."""

    def trigger(
        self,
        *,
        lat: float | None = None,
        lng: float | None = None,
        message: str | None = None,
        recorded_at: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> Alert:
        """Trigger an SOS; returns who is alerted. All is optional; ``lat`` requires ``lng``."""
        given: dict[str, Any] = {
            "lat": lat,
            "lng": lng,
            "message": message,
            "recorded_at": None if recorded_at is None else moment(recorded_at),
        }
        body = {name: value for name, value in given.items() if value is not None}
        return cast("Alert", self._post("/sos/trigger", body or UNSET, idempotency_key))

    def open(self, *, min_position: str | Unset | None = UNSET) -> list[OpenCall]:
        """List the open calls of this person and of those who alerted them, newest first."""
        return cast("list[OpenCall]", (self._get("/sos", min_position))["data"])

    def acknowledge(self, id: str, *, idempotency_key: str | None = None) -> AlertStatus:
        """Report that somebody takes care of it."""
        path = f"/sos/{segment(id)}/acknowledge"
        return cast("AlertStatus", self._post(path, idempotency_key=idempotency_key))

    def resolve(self, id: str, *, idempotency_key: str | None = None) -> AlertStatus:
        """Mark it as over."""
        path = f"/sos/{segment(id)}/resolve"
        return cast("AlertStatus", self._post(path, idempotency_key=idempotency_key))
