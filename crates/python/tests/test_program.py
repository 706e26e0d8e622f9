"""The package together with the program: a shard, and a proxy with a hook. Skipped if it is not built."""

import asyncio
import re
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List

import pytest

from worldwire.uru import Client, Refused

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
