"""A headless client for KI with asyncio. Import it from `worldwire.ki`.

    async with Client("127.0.0.1") as client:
        await client.log_in("merle", "secret")
        await client.wait_until_admitted()
        for character in await client.characters():
            print(character.id)
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import List, Optional

from ._errors import Refused
from ._link import Link, checked
from ._native import (
    Context,
    ki_character,
    ki_login,
    ki_new_character,
    ki_proof,
    ki_secret,
)
from .connection import Connection, Event

__all__ = ["Character", "Client", "Login", "Zone"]

PORT = 12000
"""The default port of a login server."""


@dataclass(frozen=True)
class Login:
    """The result of a login. The secret (CK2) is sufficient for other connections."""

    user: int
    secret: str


@dataclass(frozen=True)
class Character:
    """A character of an account. `school` is the string ID of its school."""

    id: int
    name: str
    school: int
    blob: bytes


@dataclass(frozen=True)
class Zone:
    """Where a character continues after selection, on a new connection."""

    host: str
    port: int
    key: str
    user: int
    character: int
    zone: str
    zone_id: int
    location: str


class Client(Link):
    """A connection to a login or zone server. Iterate over it to receive messages that answer no request.

    The context contains message definitions; without it, only the built-in ones are used. `machine`,
    `locale` and `revision` are what the client reports about itself.
    """

    def __init__(
        self,
        host: str,
        port: int = PORT,
        *,
        machine: int = 0,
        locale: str = "English",
        revision: str = "worldwire",
        context: Optional[Context] = None,
        patience: float = 30.0,
    ) -> None:
        super().__init__(host, port, patience)
        self.machine = machine
        self.locale = locale
        self.revision = revision
        self.position: Optional[int] = None
        """The last queue position that the server reported; 0 means admitted."""
        self._context = context
        self._moved = asyncio.Event()

    def _connect(self) -> Connection:
        return Connection.ki("client", context=self._context)

    async def open(self) -> None:
        """Connect and wait for a session."""
        await super().open()
        await self._set_up("offer a session")

    async def close(self) -> None:
        """Notify the server and disconnect."""
        if self._connection is not None and not self._connection.is_closed:
            if self._connection.is_established:
                self.send("GAME.MSG_CLIENT_DISCONNECT")
        await super().close()

    async def log_in(self, account: str, password: str) -> Login:
        """Log in. Raises `Refused`, for example with "AuthenFailed"."""
        request, session = "LOGIN.MSG_USER_AUTHEN_V3", self._session(account)
        fields = {
            "Rec1": ki_login(account, password, session),
            "Version": self.revision,
            "Revision": self.revision,
            "DataRevision": self.revision,
            "MachineID": self.machine,
            "Locale": self.locale,
        }
        reply = await self.wait_for("LOGIN.MSG_USER_AUTHEN_RSP", request, fields)
        answer = checked(request, reply, "Error").fields
        sealed = answer["Rec1"]
        sealed = sealed.encode() if isinstance(sealed, str) else sealed
        # The server may have replaced the session in the meantime.
        sessions = [self._session(account), session]
        secrets = [secret for it in sessions if (secret := ki_secret(sealed, it)) is not None]
        if not secrets:
            raise ConnectionError(f"{request}: the answer belongs to another session")
        return Login(answer["UserID"], secrets[0])

    async def validate(self, login: Login) -> None:
        """Log in with the result of a login on another connection."""
        request = "LOGIN.MSG_USER_VALIDATE"
        fields = {
            "UserID": login.user,
            "PassKey3": ki_proof(login.secret, self._session(request)),
            "MachineID": self.machine,
            "Locale": self.locale,
        }
        reply = await self.wait_for("LOGIN.MSG_USER_VALIDATE_RSP", request, fields)
        checked(request, reply, "Error")

    async def wait_until_admitted(self) -> None:
        """Wait until the server admits the client. The time-out restarts whenever the queue moves."""
        while self.position != 0:
            self._usable("waiting")
            try:
                await asyncio.wait_for(self._moved.wait(), self.patience)
            except asyncio.TimeoutError:
                where = "no position" if self.position is None else f"position {self.position}"
                raise ConnectionError(f"the queue is not moving: {where}") from None
            self._moved.clear()

    async def characters(self) -> List[Character]:
        """List the account's characters."""
        request, end = "LOGIN.MSG_REQUESTCHARACTERLIST", "LOGIN.MSG_CHARACTERLIST"
        info, found = "LOGIN.MSG_CHARACTERINFO", list[Character]()
        with self._listening("LOGIN.MSG_STARTCHARACTERLIST", info, end) as inbox:
            self.send(request)
            while (event := await self._next(request, inbox)).name != end:
                if event.name == info:
                    blob = event.fields["CharacterInfo"]
                    blob = blob.encode() if isinstance(blob, str) else blob
                    found.append(Character(*ki_character(blob), blob))
            checked(request, event, "Error")
        return found

    async def create_character(self, name: str, school: str = "Fire") -> None:
        """Create a character with a default appearance. `characters` then lists it."""
        request, blob = "LOGIN.MSG_CREATECHARACTER", ki_new_character(name, school)
        answer = "LOGIN.MSG_CREATECHARACTERRESPONSE"
        checked(request, await self.wait_for(answer, request, {"CreationInfo": blob}), "ErrorCode")

    async def delete_character(self, character: int) -> None:
        """Delete a character."""
        request, answer = "LOGIN.MSG_DELETECHARACTER", "LOGIN.MSG_DELETECHARACTERRESPONSE"
        checked(request, await self.wait_for(answer, request, {"CharID": character}), "ErrorCode")

    async def select_character(self, character: int) -> Zone:
        """Select a character. The server then closes this connection; continue with `enter`."""
        request, answer = "LOGIN.MSG_SELECTCHARACTER", "LOGIN.MSG_CHARACTERSELECTED"
        with self._listening(answer) as inbox:
            self.send(request, {"CharID": character})
            while True:
                to = checked(request, await self._next(request, inbox), "Error").fields
                # Without an address, the zone is still being prepared.
                if to["IP"] or to["TCPPort"]:
                    break
        return Zone(
            to["IP"],
            to["TCPPort"],
            to["Key"],
            to["UserID"],
            to["CharID"],
            to["ZoneName"],
            to["ZoneID"],
            to["Location"],
        )

    async def enter(self, zone: Zone) -> str:
        """Enter a zone on a connection to its server. Returns the zone's name."""
        request, complete = "GAME.MSG_ATTACH", "GAME.MSG_LOGINCOMPLETE"
        fields = {
            "GameObjectID": zone.character,
            "LoginKey": zone.key,
            "UserID": zone.user,
            "CharID": zone.character,
            "ZoneName": zone.zone,
            "Location": zone.location,
            "ZoneID": zone.zone_id,
            "Locale": self.locale,
            "MachineID": self.machine,
        }
        with self._listening(complete, "GAME.MSG_ATTACHFAILED") as inbox:
            self.send(request, fields)
            event = await self._next(request, inbox)
        if event.name != complete:
            raise Refused(request, event.fields.get("Error"))
        return str(event.fields["ZoneName"])

    def _session(self, purpose: str) -> tuple[int, int, int]:
        session = self._usable(purpose).session
        if session is None:
            raise ConnectionError("the server has not offered a session yet")
        return session

    def _receive(self, event: Event) -> None:
        if event.kind == "message" and event.name == "LOGIN.MSG_USER_ADMIT_IND":
            status, position = event.fields["Status"], event.fields["PositionInQueue"]
            self.position = 0 if status == 1 else max(position, 1)
            self._moved.set()
            return
        if event.kind == "closed":
            self._moved.set()
        self._deliver(event)
