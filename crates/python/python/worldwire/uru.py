"""Uru: a headless client for shards, with asyncio, and state descriptors.

    async with Client("127.0.0.1", keys="server.ini") as client:
        login = await client.log_in("ann@example.org", "secret")
        await client.set_player(login.players[0].id)
        print((await client.request("VaultNodeFetch", {"nodeId": login.players[0].id})).fields)
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, AsyncIterator, Dict, List, Mapping, Optional, Type, TypeVar

from ._errors import Error
from ._native import Context, StateCatalog, uru_login
from ._types import Paths
from .connection import Connection, Event, Service

__all__ = ["Client", "Link", "Login", "Player", "Refused", "StateCatalog"]

PORT = 14617
"""The default port of a shard."""
BUILD = 918
"""The build of today's clients."""

_Link = TypeVar("_Link", bound="Link")


class Refused(Error):
    """The server refused a request. `result` is the reason, such as "AuthenticationFailed"."""

    def __init__(self, request: str, result: object) -> None:
        super().__init__(f"{request}: the server answers {result}")
        self.result = result


@dataclass
class Player:
    """A player of an account. The ID is also that of its vault node."""

    id: int
    name: str
    shape: str
    explorer: int


@dataclass
class Login:
    """The result of a login."""

    account: str
    players: List[Player] = field(default_factory=lambda: [])


class Link:
    """A connection to a service of a shard. Iterate over it for messages that answer no request."""

    def __init__(
        self,
        host: str,
        port: int = PORT,
        *,
        service: Service = "auth",
        keys: Optional[Paths] = None,
        build: int = BUILD,
        context: Optional[Context] = None,
        patience: float = 60.0,
    ) -> None:
        self.host = host
        self.port = port
        self.service: Service = service
        self.patience = patience
        """How many seconds the server may take to answer."""
        self._keys = keys
        self._build = build
        self._context = context
        self._connection: Optional[Connection] = None
        self._writer: Optional[asyncio.StreamWriter] = None
        self._running: Optional[asyncio.Task[None]] = None
        self._wake = asyncio.Event()
        self._waiting: Dict[int, asyncio.Queue[Optional[Event]]] = {}
        self._named: Dict[str, asyncio.Queue[Optional[Event]]] = {}
        self._unasked: asyncio.Queue[Optional[Event]] = asyncio.Queue()
        self._next = 1
        self._why = "it is not open"

    async def open(self) -> None:
        """Connect."""
        connection = Connection.uru(
            "client",
            service=self.service,
            keys=self._keys,
            build=self._build,
            context=self._context,
        )
        reader, self._writer = await asyncio.open_connection(self.host, self.port)
        self._connection = connection
        self._running = asyncio.create_task(self._run(connection, reader, self._writer))

    async def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
        self._wake.set()
        if self._running is not None:
            await self._running
            self._running = None

    async def __aenter__(self: _Link) -> _Link:
        await self.open()
        return self

    async def __aexit__(
        self,
        type: Optional[Type[BaseException]] = None,
        value: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
    ) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self._unasked.get()) is not None:
            yield event

    def send(self, name: str, fields: Optional[Mapping[str, Any]] = None) -> None:
        """Send a message that has no reply."""
        if self._connection is None or self._connection.is_closed:
            raise ConnectionError(f"{name} cannot be sent: {self._why}")
        self._connection.send(name, fields)
        self._wake.set()

    async def replies(
        self, name: str, fields: Optional[Mapping[str, Any]] = None
    ) -> AsyncIterator[Event]:
        """Send a request, and yield its replies. Stop to iterate after the last one."""
        number, self._next = self._next, self._next + 1
        queue: asyncio.Queue[Optional[Event]] = asyncio.Queue()
        self._waiting[number] = queue
        try:
            self.send(name, {**(fields or {}), "transId": number})
            while True:
                yield await self._answer(name, queue)
        finally:
            del self._waiting[number]

    async def request(self, name: str, fields: Optional[Mapping[str, Any]] = None) -> Event:
        """Send a request, and return its first reply.

        Raises `Refused` if the reply has a `result` other than "Success".
        """
        async for reply in self.replies(name, fields):
            return _checked(name, reply)
        raise ConnectionError(self._why)

    async def wait_for(self, name: str, request: str, fields: Mapping[str, Any]) -> Event:
        """Send a request without a transaction, and return the next message with a name."""
        queue: asyncio.Queue[Optional[Event]] = asyncio.Queue()
        self._named[name] = queue
        try:
            self.send(request, fields)
            return await self._answer(request, queue)
        finally:
            del self._named[name]

    async def _answer(self, name: str, queue: asyncio.Queue[Optional[Event]]) -> Event:
        try:
            event = await asyncio.wait_for(queue.get(), self.patience)
        except asyncio.TimeoutError:
            message = f"{name}: no answer within {self.patience} s"
            raise ConnectionError(message) from None
        if event is None:
            raise ConnectionError(f"{name}: {self._why}")
        return event

    async def _run(
        self,
        connection: Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        reading: asyncio.Future[bytes] = asyncio.ensure_future(reader.read(1 << 16))
        try:
            while True:
                while (data := connection.transmit()) is not None:
                    writer.write(data)
                if connection.is_closed:
                    break
                await writer.drain()
                waking = asyncio.create_task(self._wake.wait())
                both: List[asyncio.Future[Any]] = [reading, waking]
                done, _ = await asyncio.wait(
                    both,
                    timeout=connection.wait_time(),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waking.cancel()
                self._wake.clear()
                if reading in done:
                    received = reading.result()
                    if received:
                        connection.receive(received)
                        reading = asyncio.ensure_future(reader.read(1 << 16))
                    else:
                        connection.receive_end()
                        # Nothing more will arrive.
                        reading = asyncio.get_running_loop().create_future()
                if not done:
                    connection.timeout()
                for event in connection.events():
                    self._dispatch(event)
        except OSError as error:
            self._why = str(error)
        finally:
            reading.cancel()
            for queue in [*self._waiting.values(), *self._named.values(), self._unasked]:
                queue.put_nowait(None)
            writer.close()

    def _dispatch(self, event: Event) -> None:
        if event.kind in ("closed", "fault"):
            self._why = event.text
        # The connection sends pings by itself.
        if event.kind != "message" or event.name == "PingReply":
            return
        number = event.fields.get("transId")
        queue = self._waiting.get(number) if isinstance(number, int) else None
        queue = queue or self._named.get(event.name) or self._unasked
        queue.put_nowait(event)


class Client(Link):
    """A connection to the auth service of a shard: logins, players, the vault."""

    async def log_in(self, account: str, password: str) -> Login:
        """Log in. Raises `Refused`, for example with "AuthenticationFailed"."""
        registered = await self.wait_for(
            "ClientRegisterReply", "ClientRegisterRequest", {"buildId": self._build}
        )
        server: int = registered.fields["serverChallenge"]
        client, digest = uru_login(account, password, server)
        request = {
            "clientChallenge": client,
            "accountName": account,
            "challengeHash": digest,
            "authToken": "",
            "os": "win",
        }
        players: List[Player] = []
        async for reply in self.replies("AcctLoginRequest", request):
            fields = reply.fields
            if reply.name == "AcctPlayerInfo":
                shape, explorer = fields["avatarShape"], fields["explorer"]
                players.append(Player(fields["playerId"], fields["playerName"], shape, explorer))
                continue
            # All clients take the second one for a success, for historical reasons.
            if fields["result"] not in ("Success", "VaultNodeNotFound"):
                raise Refused("AcctLoginRequest", fields["result"])
            return Login(str(fields["accountId"]), players)
        raise ConnectionError(self._why)

    async def create_player(self, name: str, shape: str = "female") -> Player:
        """Create a player. The shape is "male" or "female"."""
        request = {"playerName": name, "avatarShape": shape, "friendInvite": ""}
        fields = (await self.request("PlayerCreateRequest", request)).fields
        shape, explorer = fields["avatarShape"], fields["explorer"]
        return Player(fields["playerId"], fields["playerName"], shape, explorer)

    async def set_player(self, player: int) -> None:
        """Choose the player to play; 0 for none."""
        await self.request("AcctSetPlayerRequest", {"playerId": player})


def _checked(name: str, reply: Event) -> Event:
    result = reply.fields.get("result", "Success")
    if result != "Success":
        raise Refused(name, result)
    return reply
