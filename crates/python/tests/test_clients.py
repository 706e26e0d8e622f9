"""The clients for KI and The Matrix Online, with the program's servers. Skipped if it is not built."""

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Iterator, List

import pytest
from test_connections import exchange, names
from test_program import Running
from test_program import program as program  # the fixture

import worldwire
from worldwire import Connection, Context, Event, mxo
from worldwire.ki import Client, Refused


def serve(program: Path, folder: Path, words: List[str], family: str, account: str) -> Running:
    running = Running([str(program), "serve", *words, "--no-status"], folder)
    (folder / "password").write_text("secret\n")
    add = [str(program), family, "account", "add", account, "--password-file", "password"]
    subprocess.run(add, cwd=folder, check=True, capture_output=True)
    return running


@pytest.fixture
def login_server(program: Path, tmp_path: Path) -> Iterator[int]:
    words = ["ki", "login", "--listen", "127.0.0.1:0"]
    running = serve(program, tmp_path, words, "ki", "merle")
    found = re.search(r"connect to 127\.0\.0\.1:(\d+)", running.said)
    assert found, running.said
    yield int(found[1])
    running.stop()


def test_a_ki_client_enters_a_zone(login_server: int) -> None:
    async def play() -> None:
        async with Client("127.0.0.1", login_server) as client:
            login = await client.log_in("merle", "secret")
            await client.wait_until_admitted()
            assert await client.characters() == []
        async with Client("127.0.0.1", login_server) as client:
            await client.validate(login)
            await client.wait_until_admitted()
            await client.create_character("Merle", "Fire")
            (character,) = await client.characters()
            assert (character.name, character.blob[:4]) == ("Merle", b"L\x8fn\x11")
            zone = await client.select_character(character.id)
        async with Client(zone.host, zone.port) as client:
            assert await client.enter(zone) == zone.zone
        async with Client("127.0.0.1", login_server) as client:
            await client.validate(login)
            await client.wait_until_admitted()
            await client.delete_character(character.id)
            assert await client.characters() == []

    asyncio.run(play())


def test_a_ki_client_is_refused(login_server: int) -> None:
    async def play() -> None:
        async with Client("127.0.0.1", login_server) as client:
            with pytest.raises(Refused, match="AuthenFailed") as caught:
                await client.log_in("merle", "wrong")
            assert caught.value.result == "AuthenFailed"
            with pytest.raises(Refused, match="MSG_REQUESTCHARACTERLIST"):
                await client.characters()
        with pytest.raises(ConnectionError, match="it is not open|closed"):
            await client.characters()

    asyncio.run(play())


def test_a_silent_server_is_given_up() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def play() -> None:
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            with pytest.raises(ConnectionError, match="did not offer a session"):
                await Client("127.0.0.1", port, patience=0.05).open()
            login = mxo.log_in("127.0.0.1", "neo", "secret", port=port, patience=0.05)
            with pytest.raises(ConnectionError, match="no response within 0.05 s"):
                await login
            world = mxo.World("127.0.0.1", mxo.Session(1, bytes(16)), 1, port, patience=0.05)
            with pytest.raises((ConnectionError, OSError)):
                await world.open()

    asyncio.run(play())


class Servers:
    """The three servers of MxO: their ports, and the public key."""

    def __init__(self, running: Running, folder: Path) -> None:
        found = re.search(r"auth on \S+:(\d+), margin on \S+:(\d+), .* UDP \S+:(\d+)", running.said)
        assert found, running.said
        self.auth, self.margin, self.world = map(int, found.groups())
        self.public_key = folder / "mxo" / "pubkey.dat"


@pytest.fixture
def servers(program: Path, tmp_path: Path) -> Iterator[Servers]:
    listen = [f"--{name}-listen=127.0.0.1:0" for name in ("auth", "margin", "game")]
    running = serve(program, tmp_path, ["mxo", "mxo", *listen], "mxo", "neo")
    yield Servers(running, tmp_path)
    running.stop()


def test_mxo_clients_talk_in_the_world(servers: Servers) -> None:
    async def heard(world: mxo.World, name: str) -> Event:
        async for event in world:
            if event.name == name:
                return event
        raise AssertionError(name)

    async def play() -> None:
        login = await mxo.log_in(
            "127.0.0.1", "neo", "secret", port=servers.auth, public_key=servers.public_key
        )
        assert login.characters == [] and list(login.worlds.values()) == ["Reality"]
        async with mxo.Margin("127.0.0.1", login, servers.margin) as margin:
            character = await margin.create_character("Thomas", {"description": "A hacker."})
            async with mxo.World(
                "127.0.0.1", margin.session, character, servers.world
            ) as world:
                world.say("Hello!")
                loaded = await asyncio.wait_for(heard(world, "LoadWorld"), 20)
                assert loaded.codec == "mxo.rpc" and loaded.fields.keys()
                async for event in world:
                    if event.codec == "mxo.objects":
                        assert len(event.bytes) > 3
                        break
        again = await mxo.log_in("127.0.0.1", "neo", "secret", port=servers.auth)
        assert [it.name for it in again.characters] == ["Thomas"]
        async with mxo.Margin("127.0.0.1", again, servers.margin) as margin:
            await margin.delete_character(again.characters[0].id)

    asyncio.run(play())


def test_an_mxo_client_is_refused(servers: Servers) -> None:
    async def play() -> None:
        with pytest.raises(Refused, match="WrongPassword"):
            await mxo.log_in("127.0.0.1", "neo", "wrong", port=servers.auth)
        login = await mxo.log_in("127.0.0.1", "neo", "secret", port=servers.auth)
        async with mxo.Margin("127.0.0.1", login, servers.margin) as margin:
            with pytest.raises(Refused, match="InvalidName"):
                await margin.create_character("1 bad name")
            with pytest.raises(Refused):
                await margin.load_character(4711)

    asyncio.run(play())


def test_names_of_messages_are_those_that_send_takes(samples: Path) -> None:
    client, server = Connection.ki("client"), Connection.ki("server")
    exchange(client, server)
    client.send("LOGIN.MSG_REQUESTCHARACTERLIST")
    assert names(exchange(client, server)[1]) == ["LOGIN.MSG_REQUESTCHARACTERLIST"]
    key = bytes(range(16))
    client = Connection.mxo("client", session=3, key=key, character=5)
    server = Connection.mxo("server", session=3, key=key)
    exchange(client, server)
    client.send("Chat", {"scope": "Area", "reserved": 0, "text": "Hello!"})
    assert names(exchange(client, server)[1]) == ["Chat"]
    assert client.session is None
    context = Context(data=samples / "tera")
    client = Connection.tera("client", context=context)
    server = Connection.tera("server", context=context)
    exchange(client, server)
    client.send("C_CHAT", {"channel": 0, "message": "Hello!"})
    assert names(exchange(client, server)[1]) == ["C_CHAT"]


def test_a_damaged_message_still_has_a_name() -> None:
    client, server = Connection.ki("client"), Connection.ki("server")
    exchange(client, server)
    # A queue position of two bytes instead of eight.
    server.send_bytes(bytes([7, 20, 6, 0, 1, 2]))
    (event,) = [event for event in exchange(client, server)[0] if event.kind == "message"]
    assert event.name == "LOGIN.MSG_USER_ADMIT_IND"
    for _ in range(2):
        with pytest.raises(worldwire.DecodeError, match="Status"):
            event.fields
