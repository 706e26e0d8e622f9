"""Hooks, with the tests acting as the proxy."""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List

import pytest

from worldwire.hooks import Conversation, Hooks, Message

BOT = """
import asyncio
from worldwire.hooks import closed, hook, opened

@opened
def greet(conversation):
    print("printed", conversation.client)
    conversation.send("client", "file.PingReply", {"pingTimeMs": 9})

@hook("file.BuildIdReply", order=10, side="server")
def build(message):
    message.fields["buildId"] += 1
    message.add("server", "file.PingRequest", {"pingTimeMs": 5})
    return message.fields

@hook("file.Ping*", fields=False, bytes=True)
async def ping(message):
    await asyncio.sleep(0)
    return message.bytes[::-1]

@hook("auth.*", order=float("-inf"), silenced=None)
def fails(message):
    raise ValueError("on purpose")

@closed
async def later(conversation):
    conversation.send("server", bytes=b"\\x01")
"""

OPENED = {"type": "opened", "conversation": 1, "family": "uru", "client": "a:1", "server": "b:2"}


def message(id: str, name: str, subscriptions: List[str], **more: Any) -> Dict[str, Any]:
    line = {"type": "message", "id": id, "conversation": 1, "family": "uru", "from": "server"}
    return {**line, "name": name, "subscriptions": subscriptions, "flags": [], "time": 1.0, **more}


def test_a_file_is_run_as_a_hook(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(BOT)
    lines: List[Dict[str, Any]] = [
        {"type": "welcome", "version": 1},
        OPENED,
        message("1.1", "file.BuildIdReply", ["1"], fields={"buildId": 7}),
        message("1.2", "file.PingReply", ["2"], fields={}, bytes="0102"),
        message("1.3", "auth.PingReply", ["3"], fields={}),
    ]
    command = [sys.executable, "-m", "worldwire.hooks", str(tmp_path / "bot.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdin and child.stdout and child.stderr
        hello = json.loads(child.stdout.readline())
        child.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        child.stdin.flush()
        # The hold, its answer and four others.
        said = [json.loads(child.stdout.readline()) for _ in range(6)]
        child.stdin.write(b'{"type": "closed", "conversation": 1}\n')
        child.stdin.flush()
        last = json.loads(child.stdout.readline())
        child.stdin.close()
        assert child.stdout.read() == b"" and child.wait() == 0
        assert child.stderr.read() == b"printed a:1\n", "what hooks print is no answer"
    assert hello["name"] == "bot.py" and hello["version"] == 1
    first, second, third = hello["subscriptions"]
    assert (first["filter"], first["order"], first["from"]) == ("file.BuildIdReply", 10, "server")
    assert (second["fields"], second["bytes"]) == (False, True)
    assert (third["order"], third["silenced"]) == ("-Infinity", None)
    sent = {"to": "client", "name": "file.PingReply", "fields": {"pingTimeMs": 9}}
    assert said[0] == {"type": "add", "conversation": 1, "messages": [sent]}
    added = {"to": "server", "name": "file.PingRequest", "fields": {"pingTimeMs": 5}}
    build = {"do": "replace", "fields": {"buildId": 8}, "add": [added]}
    assert said[1] == {"type": "answer", "id": "1.1", **build}
    assert said[2] == {"type": "answer", "id": "1.2", "do": "hold"}
    assert (said[3]["type"], said[3]["level"]) == ("log", "error")
    assert said[3]["text"] == "fails failed: ValueError: on purpose, at bot.py:23"
    assert said[4] == {"type": "answer", "id": "1.3", "do": "pass"}
    assert said[5] == {"type": "answer", "id": "1.2", "do": "replace", "bytes": "0201"}
    assert last["messages"] == [{"to": "server", "bytes": "01"}]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no Unix sockets")
def test_hooks_connect_to_a_socket(tmp_path: Path) -> None:
    hooks = Hooks("test")
    seen: List[str] = []

    @hooks.hook()
    def first(message: Message) -> bool:
        seen.append(repr(message))
        return bool(message.fields["number"] != 2)

    @hooks.hook()
    def second(message: Message) -> object:
        return 3 if message.fields["number"] == 3 else None

    @hooks.opened
    def open(conversation: Conversation) -> None:
        seen.append(repr(conversation))

    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        thread = threading.Thread(target=hooks.run, args=(path,))
        thread.start()
        peer, _ = listener.accept()
        with peer, peer.makefile("rwb") as lines:
            assert json.loads(lines.readline())["name"] == "test"
            for line in [OPENED] + [
                message(f"1.{number}", "file.X", ["1", "2"], fields={"number": number})
                for number in (1, 2, 3)
            ]:
                lines.write(json.dumps(line).encode() + b"\n")
            lines.flush()
            said = [json.loads(lines.readline()) for _ in range(4)]
        thread.join()
    actions = [line.get("do", line.get("text")) for line in said]
    problem = "second failed: TypeError: a hook returns None, a bool, fields or bytes, not int"
    assert actions[:2] == ["forward", "drop"] and actions[3] == "forward"
    assert actions[2].startswith(problem), actions
    assert seen[:2] == ["<conversation 1 of uru, a:1 to b:2>", "<file.X from server: number>"]
