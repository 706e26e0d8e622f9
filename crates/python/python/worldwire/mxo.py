"""The Matrix Online: a headless asyncio client for logins and the world.

    login = await log_in("127.0.0.1", "neo", "secret", public_key="pubkey.dat")
    async with Margin("127.0.0.1", login) as margin:
        character = await margin.create_character("Thomas")
        async with World("127.0.0.1", margin.session, character) as world:
            world.say("Hello!")
            async for event in world:
                print(event.name)
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._errors import Refused
from ._link import MAX_WAITING, Link
from ._native import AuthLogin, Context, Machine, MarginLogin, Ticket
from ._types import Path
from .connection import Connection, Event

__all__ = ["Character", "Login", "Margin", "Refused", "Session", "World", "log_in"]

AUTH_PORT = 11000
"""The default port of an auth server."""
PORT = 10000
"""The default port of margin servers and worlds."""

Report = Tuple[str, bytes, int, str]
"""A report from a margin server: its kind, bytes, a number, and a status."""
_CREATE_CHARACTER = 12
_LOOKS = (
    "skinTone body unknown1 hair hairColor tattoo head facialDetail hat eyewear shirt gloves "
    "outerwear pants unknown2 footwear profession"
).split()


@dataclass(frozen=True)
class Character:
    """A character of an account."""

    id: int
    name: str
    world: int
    """Its world's number."""


@dataclass(frozen=True)
class Login:
    """The result of a login to an auth server."""

    characters: List[Character]
    worlds: Dict[int, str]
    """The names of the worlds, by number."""
    ticket: Ticket
    """The certificate, which a margin server requires. It expires after ten minutes."""


@dataclass(frozen=True)
class Session:
    """A session assigned by a margin server."""

    id: int
    key: bytes


async def log_in(
    host: str,
    account: str,
    password: str,
    *,
    port: int = AUTH_PORT,
    public_key: Optional[Path] = None,
    patience: float = 30.0,
) -> Login:
    """Log in to an auth server. Raises `Refused` if the account or password is wrong.

    `public_key` is the server's `pubkey.dat`. Without it, any server is trusted.
    """
    async with _Auth(host, port, AuthLogin(account, password, public_key), patience) as auth:
        return await auth.outcome()


class _Auth(Link):
    """A connection to an auth server."""

    def __init__(self, host: str, port: int, login: AuthLogin, patience: float) -> None:
        super().__init__(host, port, patience)
        self._login = login
        self._outcome: Optional[Login] = None
        self._refusal: Optional[str] = None
        self._over = asyncio.Event()

    def _connect(self) -> Connection:
        connection = _login_connection("auth")
        # The client speaks first.
        self._work(connection)
        return connection

    async def outcome(self) -> Login:
        try:
            await asyncio.wait_for(self._over.wait(), self.patience)
        except asyncio.TimeoutError:
            raise ConnectionError(f"login: no response within {self.patience} s") from None
        if self._outcome is not None:
            return self._outcome
        if self._refusal is not None:
            raise Refused("login", self._refusal)
        raise ConnectionError(f"login: {self._why}")

    def _receive(self, event: Event) -> None:
        if event.kind == "message":
            self._login.receive(event.bytes)
            self._work(self._usable("the login"))
        elif event.kind == "closed":
            self._over.set()

    def _work(self, connection: Connection) -> None:
        while (message := self._login.poll()) is not None:
            connection.send_bytes(message)
        outcome = self._login.outcome()
        if outcome is not None:
            ticket, self._refusal = outcome
            if ticket is not None:
                characters = [Character(*it) for it in ticket.characters]
                self._outcome = Login(characters, dict(ticket.worlds), ticket)
            self._over.set()


class Margin(Link):
    """A session with a margin server. When it ends, its character leaves the world."""

    def __init__(
        self, host: str, login: Login, port: int = PORT, *, patience: float = 30.0
    ) -> None:
        super().__init__(host, port, patience)
        self._login = MarginLogin(login.ticket)
        self._session: Optional[Session] = None
        self._reports: asyncio.Queue[Optional[Report]] = asyncio.Queue()
        self._asked = asyncio.Lock()

    def _connect(self) -> Connection:
        connection = _login_connection("margin")
        self._work(connection)
        return connection

    async def open(self) -> None:
        """Connect and open a session. Raises `Refused` if the server refuses."""
        await super().open()
        try:
            _, key, number, _ = await self._report("session", "opened")
        except BaseException:
            await self.close()
            raise
        self._session = Session(number, key)

    @property
    def session(self) -> Session:
        """The session."""
        if self._session is None:
            raise ConnectionError(f"no session: {self._why}")
        return self._session

    async def create_character(self, name: str, looks: Optional[Mapping[str, Any]] = None) -> int:
        """Create a character and load it. Returns its ID.

        `looks` contains fields of `CreateCharacterRequest`, such as "hair" and "description".
        """
        fields = {
            **dict.fromkeys(_LOOKS, 0),
            "offsets": [0] * 4,
            "firstName": name,
            "lastName": "",
            "description": "",
            **(looks or {}),
        }
        request = {"opcode": _CREATE_CHARACTER, "fields": fields}
        encoded = Context().encode("mxo.margin", request)
        async with self._asked:
            self._login.claim(name)
            _, _, character, _ = await self._report(name, "claimed")
            self._login.create(encoded)
            await self._loaded(name)
        return character

    async def load_character(self, character: int) -> None:
        """Load a character so that it can enter the world."""
        async with self._asked:
            self._login.load(character)
            await self._loaded(f"character {character}")

    async def delete_character(self, character: int) -> None:
        """Delete a character."""
        async with self._asked:
            self._login.delete(character)
            await self._report(f"character {character}", "deleted")

    async def _loaded(self, what: str) -> None:
        while (await self._report(what, "part", "loaded"))[0] != "loaded":
            pass

    async def _report(self, what: str, *kinds: str) -> Report:
        """The next report of one of these kinds."""
        self._work(self._usable(what))
        self._wake.set()
        while True:
            try:
                report = await asyncio.wait_for(self._reports.get(), self.patience)
            except asyncio.TimeoutError:
                raise ConnectionError(f"{what}: no response within {self.patience} s") from None
            if report is None:
                raise ConnectionError(f"{what}: {self._why}")
            kind, _, _, status = report
            if kind == "refused" or kind in kinds and status not in ("Success", ""):
                raise Refused(what, status)
            if kind in kinds:
                return report

    def _receive(self, event: Event) -> None:
        if event.kind == "message":
            self._login.receive(event.bytes)
            self._work(self._usable("the login"))
        elif event.kind == "closed":
            self._reports.put_nowait(None)

    def _work(self, connection: Connection) -> None:
        while (report := self._login.poll()) is not None:
            kind, data, _, _ = report
            if kind == "send":
                connection.send_bytes(data)
            elif kind == "key":
                connection.set_key(data)
            elif kind != "established" and self._reports.qsize() < MAX_WAITING:
                self._reports.put_nowait(report)


def _login_connection(channel: str) -> Connection:
    machine = Machine.mxo_login("client", channel, time.time(), 0.0)
    return Connection("mxo", "client", machine, f"mxo.{channel}", None, time.monotonic())


class World(Link):
    """A character in a world. Iterate over it for RPC messages and object updates."""

    _is_datagrams = True

    def __init__(
        self,
        host: str,
        session: Session,
        character: int,
        port: int = PORT,
        *,
        context: Optional[Context] = None,
        patience: float = 30.0,
    ) -> None:
        super().__init__(host, port, patience)
        self._session = session
        self._character = character
        self._context = context
        self._is_in = asyncio.Event()

    def _connect(self) -> Connection:
        return Connection.mxo(
            "client",
            session=self._session.id,
            key=self._session.key,
            character=self._character,
            context=self._context,
        )

    async def open(self) -> None:
        """Enter the world: wait until the server starts to send it."""
        await super().open()
        await self._set_up("answer")
        try:
            await asyncio.wait_for(self._is_in.wait(), self.patience)
        except asyncio.TimeoutError:
            await self.close()
            raise ConnectionError("the server did not admit the character") from None
        self._usable("the hello")

    async def close(self) -> None:
        """Leave the world."""
        connection = self._connection
        if connection is not None and connection.is_established and not connection.is_closed:
            self._is_closing = True
            connection.send_bytes(_LEAVE)
            self._wake.set()
            # UDP does not signal the end of a connection, so the server must acknowledge the message.
            for _ in range(100):
                if connection.is_closed or not connection.queued_bytes:
                    break
                await asyncio.sleep(0.02)
        await super().close()

    def say(self, text: str) -> None:
        """Say something to everyone nearby."""
        self.send("Chat", {"scope": "Area", "reserved": 0, "text": text})

    def whisper(self, name: str, text: str) -> None:
        """Say something to the player with this name."""
        self.send("Whisper", {"reserved": 0, "counter": 0, "receiver": name, "text": text})

    def _receive(self, event: Event) -> None:
        if event.codec == "mxo.objects" and len(event.bytes) > _EMPTY:
            self._is_in.set()
        if event.codec == "mxo.rpc":
            answer = _ANSWERS.get(event.name)
            if answer is not None:
                self.send(*answer)
        if event.kind == "closed":
            self._is_in.set()
        self._deliver(event)

    def _deliver(self, event: Event) -> None:
        # Object updates are decoded only if they are read.
        if event.codec == "mxo.objects":
            self._put(self._unasked, event)
        else:
            super()._deliver(event)


_EMPTY = 3
"""The size of an object section without operations."""
_LEAVE = b"\x02\xff\xff"
_ANSWERS: Dict[str, tuple[str, Dict[str, int]]] = {
    "LoadWorld": ("ReadyForSpawn", {}),
    "LeaveWorld": ("ReadyForNewWorld", {"reserved": 0}),
    "JackOutDone": ("JackOutFinished", {"reserved": 0}),
}
