"""Connections: both ends in one process, without a transport and over asyncio."""

import asyncio
import random
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import pytest

import worldwire
from worldwire import Connection, Event
from worldwire.keys import Keys
from worldwire.uru import Age, Chat, Client, Player, Refused


def exchange(one: Connection, other: Connection) -> Tuple[List[Event], List[Event]]:
    """Passes on what both sides send until neither sends anything. Returns their events."""
    seen: Tuple[List[Event], List[Event]] = ([], [])
    moved = True
    while moved:
        moved = False
        for index, (source, target) in enumerate([(one, other), (other, one)]):
            while (data := source.transmit()) is not None:
                target.receive(data)
                moved = True
            seen[1 - index].extend(target.events())
    return seen


def names(events: List[Event]) -> List[str]:
    return [event.name for event in events if event.kind == "message"]


def test_uru_talks_in_both_directions() -> None:
    client = Connection.uru("client", service="auth", build=918)
    server = Connection.uru("server")
    with pytest.raises(worldwire.Error, match="has not requested a service"):
        server.send("PingReply", {})
    client.send("ClientRegisterRequest", {"buildId": 918})
    _, at_server = exchange(client, server)
    assert client.is_established and server.is_established
    assert "ClientRegisterRequest" in names(at_server)
    server.send("ClientRegisterReply", {"serverChallenge": 7})
    at_client, _ = exchange(client, server)
    reply = next(event for event in at_client if event.name == "ClientRegisterReply")
    assert reply.fields.serverChallenge == 7 and reply.side == "server"
    assert repr(reply) == "<uru.auth from server: ClientRegisterReply>"
    with pytest.raises(worldwire.EncodeError):
        client.send("ClientRegisterReply", {"serverChallenge": 7})
    client.close()
    last = client.events()[-1]
    assert (last.kind, last.text) == ("closed", "closed by this side") and client.is_closed
    with pytest.raises(worldwire.Error):
        last.fields


def test_tera_exchanges_keys_and_packets(samples: Path) -> None:
    context = worldwire.Context(data=samples / "tera")
    client, server = Connection.tera("client", context=context), Connection.tera("server")
    exchange(client, server)
    assert client.is_established and server.is_established
    client.send_bytes(b"\x05\x00\x01\x00\x07")
    _, at_server = exchange(client, server)
    assert [event.bytes for event in at_server if event.kind == "message"] == [
        b"\x05\x00\x01\x00\x07"
    ]


def test_ki_offers_a_session() -> None:
    client, server = Connection.ki("client"), Connection.ki("server", session=9)
    exchange(client, server)
    assert client.is_established and server.is_established
    client.send_bytes(bytes([7, 27, 4, 0]))
    _, at_server = exchange(client, server)
    (message,) = [event for event in at_server if event.kind == "message"]
    assert message.codec == "ki.dml" and message.bytes == bytes([7, 27, 4, 0])


def test_mxo_delivers_rpc_messages() -> None:
    key = bytes(range(16))
    client = Connection.mxo("client", session=3, key=key, character=5)
    server = Connection.mxo("server", session=3, key=key)
    exchange(client, server)
    client.send_bytes(b"\x03\x80\x01\x02")
    _, at_server = exchange(client, server)
    messages = [event for event in at_server if event.kind == "message"]
    assert [(event.codec, event.bytes) for event in messages] == [("mxo.rpc", b"\x03\x80\x01\x02")]


MAKERS: List[Callable[[], Connection]] = [
    lambda: Connection.ki("client"),
    lambda: Connection.ki("server"),
    lambda: Connection.mxo("client", session=1, key=b"k" * 16),
    lambda: Connection.mxo("server", session=1, key=b"k" * 16),
    lambda: Connection.tera("client"),
    lambda: Connection.tera("server"),
    lambda: Connection.uru("client", service="file"),
    lambda: Connection.uru("server"),
]


def test_hostile_bytes_do_no_harm() -> None:
    draw = random.Random(20260101)
    for make in MAKERS:
        for _ in range(40):
            connection, now = make(), 0.0
            for _ in range(8):
                now += draw.random() * 20
                connection.receive(draw.randbytes(draw.randrange(200)), now)
                connection.timeout(now)
                for event in connection.events():
                    assert repr(event.kind) and event.bytes is not None
                while connection.transmit() is not None:
                    pass
            connection.receive_end(now)
            connection.close()
            assert connection.is_closed
    with pytest.raises(ValueError):
        Connection.uru("client").receive(b"", -1.0)
    with pytest.raises(ValueError, match="service must be"):
        Connection.uru("client", service="other")  # type: ignore[arg-type]


class Shard:
    """A server with one account."""

    def __init__(self) -> None:
        self.connection = Connection.uru("server")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self.connection
        while data := await reader.read(65536):
            connection.receive(data)
            for event in connection.events():
                if event.kind == "message":
                    self.answer(event)
            while (answer := connection.transmit()) is not None:
                writer.write(answer)
        writer.close()

    def answer(self, event: Event) -> None:
        reply: Callable[[str, Dict[str, Any]], None] = self.connection.send
        number = event.fields.get("transId")
        done = {"transId": number, "result": "Success"}
        if event.name == "ClientRegisterRequest":
            reply("ClientRegisterReply", {"serverChallenge": 5})
        elif event.name == "AcctLoginRequest":
            if event.fields.accountName != "ann@example.org":
                result = {**LOGIN, **done, "result": "AuthenticationFailed"}
                return reply("AcctLoginReply", result)
            player = {"playerId": 8, "playerName": "Ann", "avatarShape": "female", "explorer": 1}
            reply("AcctPlayerInfo", {"transId": number, **player})
            reply("AcctLoginReply", {**LOGIN, **done})
        elif event.name == "AcctSetPlayerRequest":
            reply("ServerAddr", {"serverAddress": "192.0.2.1", "token": LOGIN["accountId"]})
            reply("AcctSetPlayerReply", done)


LOGIN: Dict[str, Any] = {
    "accountId": "00000000-0000-0000-0000-000000000001",
    "accountFlags": [],
    "billingType": 1,
    "encryptionKey": [0, 0, 0, 0],
}


def test_an_uru_client_logs_in() -> None:
    async def play() -> None:
        server = await asyncio.start_server(lambda r, w: Shard().serve(r, w), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            async with Client("127.0.0.1", port, patience=20) as client:
                login = await client.log_in("ann@example.org", "secret")
                assert [(it.id, it.name) for it in login.players] == [(8, "Ann")]
                await client.set_player(8)
                async for unasked in client:
                    assert unasked.name == "ServerAddr"
                    break
            async with Client("127.0.0.1", port, patience=20) as client:
                with pytest.raises(Refused, match="AuthenticationFailed"):
                    await client.log_in("bob@example.org", "secret")
            with pytest.raises(ConnectionError, match="closed"):
                await client.request("AcctSetPlayerRequest", {"playerId": 1})

    asyncio.run(play())


class GameServer:
    """A server for one player in an age, who hears a chat message. Then it may end the connection."""

    def __init__(self, ends: bool) -> None:
        self.connection = Connection.uru("server")
        self.ends = ends

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self.connection
        asked = 0
        # After joining, the client asks for the members and for the state.
        while asked < 2 and (data := await reader.read(65536)):
            connection.receive(data)
            for event in connection.events():
                if event.kind == "message" and event.name == "JoinAgeRequest":
                    done = {"transId": event.fields.transId, "result": "Success"}
                    connection.send("JoinAgeReply", done)
                asked += event.name == "PropagateBuffer"
            while (answer := connection.transmit()) is not None:
                writer.write(answer)
        connection.send("PropagateBuffer", chat("Shorah!"))
        while (answer := connection.transmit()) is not None:
            writer.write(answer)
        await writer.drain()
        if not self.ends:
            await reader.read()
        writer.close()


class Speaker(Age):
    """Another player, who is not connected."""

    said: Mapping[str, Any] = {}

    def send(self, name: str, fields: Optional[Mapping[str, Any]] = None) -> None:
        self.said = fields or {}


def chat(text: str) -> Mapping[str, Any]:
    """What another player says, as fields."""
    speaker = Speaker(Client("127.0.0.1"), "127.0.0.1", 1, "", Player(9, "Bob", "male", 1))
    speaker.say(text)
    return speaker.said


@pytest.mark.parametrize("ends", [True, False])
def test_chat_ends_with_an_error_unless_it_is_closed(ends: bool) -> None:
    async def play() -> None:
        game = GameServer(ends)
        server = await asyncio.start_server(game.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = Client("127.0.0.1", port, patience=20)
        account = str(LOGIN["accountId"])
        async with server:
            age = Age(client, "127.0.0.1", 1, account, Player(8, "Ann", "female", 1))
            heard: List[Chat] = []

            async def listen() -> None:
                async for said in age.chat():
                    heard.append(said)
                    if not ends:
                        asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(age.close()))

            async with age:
                for _ in range(2):
                    # Later iterations end in the same way.
                    if ends:
                        error = "the connection has ended: closed by the other side"
                        with pytest.raises(ConnectionError, match=error):
                            await asyncio.wait_for(listen(), 20)
                    else:
                        await asyncio.wait_for(listen(), 20)
            assert heard == [Chat(9, "Bob", "Shorah!", False)]

    asyncio.run(play())


class EncryptedServer:
    """A server with keys. It ends the connection if it cannot read a message."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection.uru("server", keys=self.keys)
        while not connection.is_closed and (data := await reader.read(65536)):
            connection.receive(data)
            for event in connection.events():
                if event.kind == "message" and event.name == "ClientRegisterRequest":
                    connection.send("ClientRegisterReply", {"serverChallenge": 5})
            while (answer := connection.transmit()) is not None:
                writer.write(answer)
        writer.close()


def test_keys_of_another_shard_are_suspected() -> None:
    one, other = Keys.generate(), Keys.generate()

    async def register(keys: Keys) -> Event:
        server = await asyncio.start_server(EncryptedServer(one).serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, Client("127.0.0.1", port, keys=keys, patience=3) as client:
            return await client.wait_for(
                "ClientRegisterReply", "ClientRegisterRequest", {"buildId": 918}
            )

    assert asyncio.run(register(one.public())).fields.serverChallenge == 5
    # Each side reads noise, which may be no message at all, or the beginning of a long one.
    with pytest.raises(ConnectionError, match="(may be those of )?another shard"):
        asyncio.run(register(other.public()))


def test_a_connection_knows_a_likely_cause_of_its_end() -> None:
    keys = Keys.generate()
    client = Connection.uru("client", keys=keys.public())
    server = Connection.uru("server", keys=keys)
    assert client.closing_hint is None
    client.send("ClientRegisterRequest", {"buildId": 918})
    exchange(client, server)
    assert client.is_established
    hint = client.closing_hint
    assert hint is not None and hint.startswith("the keys may be those of another shard: check ")
    server.send("ClientRegisterReply", {"serverChallenge": 7})
    exchange(client, server)
    assert client.closing_hint is None and server.closing_hint is None
    plain = Connection.uru("client")
    exchange(plain, Connection.uru("server"))
    assert plain.is_established and plain.closing_hint is None
