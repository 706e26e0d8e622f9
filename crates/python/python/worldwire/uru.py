"""Uru: a headless asyncio client for shards, and state descriptors.

    async with Client("127.0.0.1", keys="server.ini") as client:
        login = await client.log_in("ann@example.org", "secret")
        await client.set_player(login.players[0].id)
        print((await client.request("VaultNodeFetch", {"nodeId": login.players[0].id})).fields)
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Dict, List, Mapping, Optional

from ._errors import Error, Refused
from ._link import Inbox, checked
from ._link import Link as _Link
from ._native import Context, Record, StateCatalog, uru_login
from ._types import KeySources
from .connection import Connection, Event, Service

__all__ = ["Age", "Chat", "Client", "Link", "Login", "Player", "Refused", "StateCatalog"]

PORT = 14617
"""The default port of a shard."""
BUILD = 918
"""The build of current clients."""


@dataclass
class Player:
    """A player of an account. The ID is also its vault node's ID."""

    id: int
    name: str
    shape: str
    explorer: int


@dataclass
class Login:
    """The result of a login."""

    account: str
    players: List[Player] = field(default_factory=lambda: [])


@dataclass
class Chat:
    """What a player said."""

    player: int
    """The player's ID, as the server knows it."""
    name: str
    text: str
    is_private: bool


class Link(_Link):
    """A connection to a shard's service. Iterate over it to receive messages that answer no request."""

    def __init__(
        self,
        host: str,
        port: int = PORT,
        *,
        service: Service = "auth",
        keys: Optional[KeySources] = None,
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
        """Send a request and yield its replies. Stop iterating after the last one."""
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
        """Send a request and return its first reply.

        Raises `Refused` if the reply has a `result` other than "Success".
        """
        async for reply in self.replies(name, fields):
            return checked(name, reply, "result")
        raise ConnectionError(self._why)

    def _receive(self, event: Event) -> None:
        # The connection sends pings itself.
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
    """A connection to a shard's auth service: logins, players, the vault."""

    _login = Login("")
    """The last login."""
    _player = 0
    """The selected player."""

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
            # For historical reasons, all clients treat the second result as a success.
            if fields["result"] not in ("Success", "VaultNodeNotFound"):
                raise Refused("AcctLoginRequest", fields["result"])
            self._login = Login(str(fields["accountId"]), players)
            return self._login
        raise ConnectionError(self._why)

    async def create_player(self, name: str, shape: str = "female") -> Player:
        """Create a player. The shape is "male" or "female"."""
        request = {"playerName": name, "avatarShape": shape, "friendInvite": ""}
        fields = (await self.request("PlayerCreateRequest", request)).fields
        shape, explorer = fields["avatarShape"], fields["explorer"]
        player = Player(fields["playerId"], fields["playerName"], shape, explorer)
        self._login.players.append(player)
        return player

    async def set_player(self, player: int) -> None:
        """Select a player; 0 for none."""
        await self.request("AcctSetPlayerRequest", {"playerId": player})
        self._player = player

    async def public_ages(self, age: str) -> List[Dict[str, Any]]:
        """The public instances of an age, such as "city": "instanceId", "userDefinedName" and more."""
        reply = await self.request("GetPublicAgeList", {"ageFilename": age})
        return [instance.to_dict() for instance in reply.fields["ages"]]

    async def age(self, age: str, instance: Optional[str] = None) -> Age:
        """Find an age by its file name and instance ID. Enter it with `async with`.

        Without an ID, this is the first public instance. Select a player first.
        """
        if instance is None:
            public = await self.public_ages(age)
            if not public:
                raise Refused("GetPublicAgeList", "AgeNotFound")
            instance = str(public[0]["instanceId"])
        request = {"ageName": age, "ageInstanceId": instance}
        # As with logins, all clients treat the second result as a success.
        async for reply in self.replies("AgeRequest", request):
            if reply.fields["result"] not in ("Success", "VaultNodeNotFound"):
                raise Refused("AgeRequest", reply.fields["result"])
            player = [it for it in self._login.players if it.id == self._player]
            who = player[0] if player else Player(self._player, "", "", 0)
            host, server = str(reply.fields["gameServerAddress"]), reply.fields["ageMcpId"]
            return Age(self, host, server, self._login.account, who)
        raise ConnectionError(self._why)


class Age(Link):
    """A player in an age. Iterate over it to receive all messages, or over `chat`.

    The player has no avatar, so others see only the name. Close this before its client.
    """

    def __init__(
        self, client: Client, host: str, server: int, account: str, player: Player
    ) -> None:
        super().__init__(
            host,
            client.port,
            service="game",
            keys=client._keys,
            build=client._build,
            context=client._context,
            patience=client.patience,
        )
        self.player = player
        """The player."""
        self.members: Dict[int, str] = {}
        """The other players in the age: their IDs and names."""
        self._join = {"ageMcpId": server, "accountId": account, "playerId": player.id}

    async def open(self) -> None:
        """Enter the age. Raises `Refused` if the server refuses."""
        await super().open()
        try:
            await self.request("JoinAgeRequest", self._join)
        except BaseException:
            await self.close()
            raise
        self.send_net("plNetMsgMembersListReq", {}, "IsSystemMessage")
        state = {"rooms": list[object]()}
        self.send_net("plNetMsgGameStateRequest", state, "IsSystemMessage", "InitialAgeStateRequest")

    def say(self, text: str) -> None:
        """Say something to everyone in the age."""
        self.send_net("plNetMsgGameMessage", self._chat(text, []))

    def whisper(self, player: int, text: str) -> None:
        """Say something to one player in the age."""
        fields = {**self._chat(text, ["Private"]), "receivers": [player]}
        self.send_net("plNetMsgGameMessageDirected", fields)

    def send_net(self, name: str, fields: Mapping[str, Any], *flags: str) -> None:
        """Send a net message, with fields as `worldwire dissect --json` shows them."""
        now = time.time_ns()
        head = {
            "class": name,
            "flags": ["HasTimeSent", "HasPlayerID", "NeedsReliableSend", *flags],
            "timeSent": {"seconds": now // 10**9, "microseconds": now // 1000 % 10**6},
            "playerId": self.player.id,
        }
        self.send("PropagateBuffer", {"type": name, "buffer": {"message": {**head, **fields}}})

    async def chat(self) -> AsyncIterator[Chat]:
        """Yields what others say, until `close`. Other messages are dropped.

        Raises `ConnectionError` if the connection ends in any other way.
        """
        async for event in self:
            message = _net_message(event)
            said, player = message.get("stream.payload"), message.get("playerId")
            if not isinstance(said, Record) or player in (None, self.player.id):
                continue
            if said.get("class") == "pfKIMsg" and said["command"] in (0, "HACKChatMsg"):
                yield Chat(player, str(said["user"]), str(said["text"]), "Private" in said["flags"])

    def _chat(self, text: str, flags: List[str]) -> Dict[str, Any]:
        payload = {
            "class": "pfKIMsg",
            "sender": None,
            "receivers": list[object](),
            "timestamp": 0.0,
            "bcastFlags": ["NetPropagate", "LocalPropagate"],
            "command": "HACKChatMsg",
            "user": self.player.name,
            "playerId": self.player.id,
            "text": text,
            "flags": flags,
            "delay": 0.0,
            "value": 0,
        }
        stream = {"uncompressedLength": 0, "compression": "None", "payload": payload}
        return {"stream": stream, "hasDeliveryTime": False}

    def _receive(self, event: Event) -> None:
        if event.kind == "message" and event.name == "PropagateBuffer":
            message = _net_message(event)
            if "members" in message:
                self.members.clear()
            # A list, or one player who joined or left.
            more: List[Any] = message.get("members") or [message.get("member")]
            for who in (member["client"] for member in more if member is not None):
                player: int = who.get("playerId", self.player.id)
                if not message.get("wasAdded", True):
                    self.members.pop(player, None)
                elif player != self.player.id:
                    self.members[player] = str(who.get("playerName", ""))
        super()._receive(event)


def _net_message(event: Event) -> Mapping[str, Any]:
    """The net message in an event; empty if it is another message or cannot be decoded."""
    try:
        found = event.fields.get("buffer.message")
    except Error:
        return {}
    return found if isinstance(found, Record) else {}
