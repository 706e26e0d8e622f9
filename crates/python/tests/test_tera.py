"""The TERA client, with a server built from connections."""

import asyncio
from pathlib import Path
from typing import Any, Awaitable, Callable, List, Tuple

import pytest

import worldwire
from worldwire import Connection, Context
from worldwire.tera import Client

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def chat_server(context: Context, messages: int = 1) -> Serve:
    """Answers each line of chat. Ends the connection after this many."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection, left = Connection.tera("server", context=context), messages
        while True:
            while (data := connection.transmit()) is not None:
                writer.write(data)
            received = await reader.read(65536) if left else b""
            if not received:
                break
            connection.receive(received)
            for event in connection.events():
                if event.kind == "message" and event.name == "C_CHAT":
                    text = event.fields.message.upper()
                    reply = {"channel": 0, "gameId": 7, "authorName": "Echo", "message": text}
                    connection.send("S_CHAT", reply)
                    left -= 1
        writer.close()

    return serve


async def started(serve: Serve) -> "tuple[asyncio.Server, int]":
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


def test_a_client_sends_and_receives_named_messages(samples: Path) -> None:
    async def play() -> None:
        context = Context(data=samples / "tera")
        server, port = await started(chat_server(context, messages=2))
        async with server:
            async with Client("127.0.0.1", port, data=samples / "tera", patience=20) as client:
                said = {"channel": 0, "message": "hello"}
                reply = await client.wait_for("S_CHAT", "C_CHAT", said)
                assert reply.fields.message == "HELLO" and reply.fields.gameId == 7
                client.send("C_CHAT", {**said, "message": "bye"})
                received: List[Tuple[str, Any]] = []
                with pytest.raises(ConnectionError, match="has ended: closed by the other side"):
                    async for event in client:
                        received.append((event.name, event.fields.message))
                assert received == [("S_CHAT", "BYE")]
                with pytest.raises(ConnectionError, match="cannot be sent"):
                    client.send("C_CHAT", said)

    asyncio.run(play())


def test_mistakes_and_other_servers_are_reported(samples: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def other(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH")
        writer.close()

    async def play() -> None:
        context = Context(data=samples / "tera")
        server, port = await started(chat_server(context))
        async with server:
            async with Client("127.0.0.1", port, data=context, patience=20) as client:
                with pytest.raises(worldwire.EncodeError, match="C_CHATT"):
                    client.send("C_CHATT", {})
                with pytest.raises(worldwire.EncodeError) as caught:
                    client.send("C_CHAT", {"channel": "all", "message": ""})
                assert caught.value.path == "fields.channel"
        for serve, patience in [(silent, 0.05), (other, 20.0)]:
            server, port = await started(serve)
            async with server:
                with pytest.raises(ConnectionError, match="did not exchange keys"):
                    await Client("127.0.0.1", port, data=context, patience=patience).open()

    asyncio.run(play())
