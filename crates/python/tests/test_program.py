"""The package together with the program: a shard, and a proxy with a hook. Skipped if it is not built."""

import asyncio
import re
import runpy
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Type

import pytest

import worldwire
from worldwire.typed import Message
from worldwire.uru import Age, Chat, Client, Refused

CONNECT = bytes.fromhex(
    "101f00000000002800000002000000219848ea356cd04b9daebb17c585e6800c0000009603000000000000"
)

BOT = """
from worldwire.hooks import hook

@hook("file.BuildIdRequest")
def build(message):
    message.fields["transId"] += 1000
    if message.fields["transId"] == 1003:
        return False
    if message.fields["transId"] == 1002:
        message.add("server", "file.BuildIdRequest", {"transId": 7})
    return message.fields
"""


@pytest.fixture
def program(root: Path) -> Path:
    path = root / "target" / "debug" / ("worldwire.exe" if sys.platform == "win32" else "worldwire")
    if not path.exists():
        pytest.skip("the program is not built")
    return path


class Running:
    """A running command, up to the line that says how to stop it."""

    def __init__(self, words: List[str], folder: Path) -> None:
        self.child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            text=True,
        )
        assert self.child.stdout
        self.said = ""
        for line in self.child.stdout:
            self.said += line
            if "Ctrl-C" in line:
                return
        raise AssertionError(self.said)

    def port(self) -> int:
        found = re.search(r"connect to 127\.0\.0\.1:(\d+)", self.said)
        assert found, self.said
        return int(found[1])

    def stop(self) -> str:
        self.child.terminate()
        assert self.child.stdout
        rest = self.child.stdout.read()
        self.child.wait()
        return rest


@pytest.fixture
def shard(program: Path, tmp_path: Path) -> Iterator[Running]:
    words = [str(program), "serve", "uru", "shard", "--listen", "127.0.0.1:0", "--no-status"]
    running = Running(words, tmp_path)
    (tmp_path / "password").write_text("secret\n")
    account = ["uru", "account", "add", "ann@example.org", "--password-file", "password"]
    subprocess.run([str(program), *account], cwd=tmp_path, check=True, capture_output=True)
    keys = [line for line in running.said.splitlines() if line.startswith("Server.")]
    (tmp_path / "server.ini").write_text("\n".join(keys))
    yield running
    running.stop()


def test_a_client_plays_on_a_shard(shard: Running, tmp_path: Path) -> None:
    keys = tmp_path / "server.ini"

    async def play() -> None:
        async with Client("127.0.0.1", shard.port(), keys=keys) as client:
            login = await client.log_in("ann@example.org", "secret")
            assert login.players == []
            player = await client.create_player("Ann")
            await client.set_player(player.id)
            node = (await client.request("VaultNodeFetch", {"nodeId": player.id})).fields.node
            assert (node.PlayerName, node.NodeId) == ("Ann", player.id)
            with pytest.raises(Refused, match="PlayerNotFound"):
                await client.set_player(1)
        async with Client("127.0.0.1", shard.port(), keys=keys) as client:
            with pytest.raises(Refused) as caught:
                await client.log_in("ann@example.org", "wrong")
            assert caught.value.result == "AuthenticationFailed"

    asyncio.run(play())


def test_players_chat_in_an_age(shard: Running, tmp_path: Path) -> None:
    keys, port = tmp_path / "server.ini", shard.port()

    async def first(age: Age) -> Chat:
        async for said in age.chat():
            return said
        raise AssertionError("the connection has ended")

    async def sees(age: Age, members: Dict[int, str]) -> None:
        # Chat can arrive before the list of members.
        async def until() -> None:
            while age.members != members:
                await asyncio.sleep(0.01)

        await asyncio.wait_for(until(), 10)

    async def play() -> None:
        async with Client("127.0.0.1", port, keys=keys) as a, Client(
            "127.0.0.1", port, keys=keys
        ) as b:
            for client, name in ((a, "Ann"), (b, "Bob")):
                await client.log_in("ann@example.org", "secret")
                await client.set_player((await client.create_player(name)).id)
            with pytest.raises(Refused, match="AgeNotFound"):
                await a.age("nowhere")
            async with await a.age("city") as ann, await b.age("city") as bob:
                ann.say("Shorah!")
                said = await first(bob)
                assert said == Chat(ann.player.id, "Ann", "Shorah!", False)
                await sees(bob, {ann.player.id: "Ann"})
                bob.whisper(said.player, "Shorah b'shem")
                assert await first(ann) == Chat(bob.player.id, "Bob", "Shorah b'shem", True)
                await sees(ann, {bob.player.id: "Bob"})

    asyncio.run(play())


CAPTURES = [
    ("uru", "uru-login.pcapng", "uru-keys.toml"),
    ("uru", "uru-age.pcapng", "uru-keys.toml"),
    ("mxo", "mxo-login.pcapng", "mxo-login-keys.toml"),
]


def test_generated_classes_hold_the_messages_of_captures(
    program: Path, samples: Path, tmp_path: Path
) -> None:
    paths = {family: tmp_path / f"{family}_messages.py" for family in ("uru", "mxo")}
    classes: Dict[str, Type[Message]] = {}
    for family, path in paths.items():
        command = [str(program), "codegen", "python", family, "-o", str(path)]
        subprocess.run(command, check=True, capture_output=True)
        names = runpy.run_path(str(path)).values()
        found = [it for it in names if isinstance(it, type) and issubclass(it, Message)]
        classes.update({it.NAME: it for it in found if it is not Message})
    seen = 0
    for _, capture, keys in CAPTURES:
        for message in worldwire.open(samples / capture, keys=samples / keys):
            kind = classes.get(message.name)
            if kind is not None:
                # MxO login messages have an opcode next to their fields.
                inner = message.fields.get("fields")
                made = kind.of(message.fields if inner is None else inner)
                changes = made.to_dict()
                if inner is not None:
                    changes = {"fields": {**message.fields.to_dict(), "fields": changes}}
                assert message.encode(changes) == message.body, message
                assert kind.of(made.to_dict()) == made
                seen += 1
    assert seen > 50
    say = classes["Chat"].of({"scope": "Area", "reserved": 0, "text": "Hello!"})
    value = {"opcode": say.NAME, "fields": say.to_dict()}
    encoded = worldwire.encode("mxo.rpc", value)
    assert worldwire.decode("mxo.rpc", encoded).fields.text == "Hello!"
    pytest.importorskip("mypy")
    check = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    checked = subprocess.run([*check, *map(str, paths.values())], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_a_function_changes_messages_of_a_proxy(program: Path, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(BOT)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        to = f"127.0.0.1:{listener.getsockname()[1]}"
        hook = f'"{sys.executable}" -m worldwire.hooks bot.py'
        words = ["proxy", "uru", "--to", to, "--listen", "127.0.0.1:0", "--hook", hook]
        proxy = Running([str(program), *words], tmp_path)
        with socket.create_connection(("127.0.0.1", proxy.port())) as client:
            client.sendall(CONNECT)
            server, _ = listener.accept()
            server.settimeout(30)
            with server, server.makefile("rb") as received:
                assert received.read(len(CONNECT)) == CONNECT
                requests = [struct.pack("<III", 12, 10, number) for number in (1, 2, 3, 4)]
                client.sendall(b"".join(requests))
                numbers = [struct.unpack("<III", received.read(12))[2] for _ in range(4)]
        log = proxy.stop()
    assert numbers == [1001, 7, 1002, 1004], log
    assert "error" not in log.lower(), log
