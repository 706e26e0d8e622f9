"""Uru: a headless client for shards, with asyncio, and state descriptors.

    async with Client("127.0.0.1", keys="server.ini") as client:
        login = await client.log_in("ann@example.org", "secret")
        await client.set_player(login.players[0].id)
        print((await client.request("VaultNodeFetch", {"nodeId": login.players[0].id})).fields)
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Dict, List, Mapping, Optional

from ._errors import Refused
from ._link import Inbox, checked
from ._link import Link as _Link
from ._native import Context, StateCatalog, uru_login
from ._types import Paths
from .connection import Connection, Event, Service

__all__ = ["Client", "Link", "Login", "Player", "Refused", "StateCatalog"]

PORT = 14617
"""The default port of a shard."""
BUILD = 918
"""The build of today's clients."""


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


class Link(_Link):
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
        super().__init__(host, port, patience)
        self.service: Service = service
        self._keys = keys
        self._build = build
        self._context = context
        self._transactions: Dict[int, Inbox] = {}
        self._number = 1

    def _connect(self) -> Connection:
        return Connection.uru(
            "client",
            service=self.service,
            keys=self._keys,
            build=self._build,
            context=self._context,
        )

    async def replies(
        self, name: str, fields: Optional[Mapping[str, Any]] = None
    ) -> AsyncIterator[Event]:
        """Send a request, and yield its replies. Stop iterating after the last one."""
        number, self._number = self._number, self._number + 1
        inbox: Inbox = asyncio.Queue()
        self._transactions[number] = inbox
        try:
            self.send(name, {**(fields or {}), "transId": number})
            while True:
                yield await self._next(name, inbox)
        finally:
            del self._transactions[number]

    async def request(self, name: str, fields: Optional[Mapping[str, Any]] = None) -> Event:
        """Send a request, and return its first reply.

        Raises `Refused` if the reply has a `result` other than "Success".
        """
        async for reply in self.replies(name, fields):
            return checked(name, reply, "result")
        raise ConnectionError(self._why)

    def _receive(self, event: Event) -> None:
        # The connection sends pings by itself.
        if event.kind != "message" or event.name == "PingReply":
            return
        number = event.fields.get("transId")
        inbox = self._transactions.get(number) if isinstance(number, int) else None
        if inbox is not None:
            self._put(inbox, event)
        else:
            self._deliver(event)

    def _inboxes(self) -> List[Inbox]:
        return [*super()._inboxes(), *self._transactions.values()]


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
