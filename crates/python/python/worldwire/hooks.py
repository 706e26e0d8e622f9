"""Hooks: functions that see and change the messages of `worldwire proxy`.

    from worldwire.hooks import hook

    @hook("tera.S_CHAT", order=10)
    def shout(message):
        message.fields["message"] = message.fields["message"].upper()
        return message.fields

`worldwire proxy tera --hook bot.py` runs a file with such functions. To connect to a proxy started
with `--hook-socket` instead, call `run("127.0.0.1:7900")`.
"""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import asyncio
import inspect
import io
import json
import os
import runpy
import socket
import sys
import threading
import traceback
from typing import (
    Any,
    Awaitable,
    BinaryIO,
    Callable,
    Coroutine,
    Dict,
    List,
    Mapping,
    Optional,
    Set,
    TypeVar,
    Union,
    cast,
)

from ._types import Side

__all__ = ["Conversation", "Hooks", "Message", "hook", "opened", "closed", "run"]

Answer = Union[None, bool, bytes, Mapping[str, Any]]
"""What a hook returns.

None leaves the message as it is, False drops it, and True forwards it even if an earlier hook dropped
it. Other fields or bytes replace it.
"""

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Conversation:
    """A client's connection through the proxy."""

    def __init__(self, send: Callable[[Mapping[str, Any]], None], line: Mapping[str, Any]) -> None:
        self._send = send
        self.number: int = line["conversation"]
        self.family: str = line["family"]
        self.client: Optional[str] = line.get("client")
        self.server: Optional[str] = line.get("server")

    def send(
        self,
        to: Side,
        name: str = "",
        fields: Optional[Mapping[str, Any]] = None,
        *,
        bytes: Optional[bytes] = None,
    ) -> None:
        """Send a message to a side immediately, given its name and fields or its bytes without a frame.

        If the message cannot be encoded, the proxy logs an error.
        """
        messages = [_addition(to, name, fields, bytes)]
        self._send({"type": "add", "conversation": self.number, "messages": messages})

    def __repr__(self) -> str:
        return f"<conversation {self.number} of {self.family}, {self.client} to {self.server}>"


class Message:
    """A message on its way through the proxy."""

    def __init__(self, conversation: Conversation, line: Mapping[str, Any]) -> None:
        self.conversation = conversation
        self.name: str = line["name"]
        self.family: str = line["family"]
        self.side: Side = line["from"]
        self.time: float = line["time"]
        self.fields: Dict[str, Any] = line["fields"]
        self.flags: List[str] = line["flags"]
        digits: Optional[str] = line.get("bytes")
        self.bytes: Optional[bytes] = None if digits is None else bytes.fromhex(digits)
        self._id: str = line["id"]
        self._added: List[Dict[str, Any]] = []

    def add(
        self,
        to: Side,
        name: str = "",
        fields: Optional[Mapping[str, Any]] = None,
        *,
        bytes: Optional[bytes] = None,
    ) -> None:
        """Send another message to a side immediately before this one."""
        self._added.append(_addition(to, name, fields, bytes))

    def __repr__(self) -> str:
        return f"<{self.name} from {self.side}: {', '.join(self.fields)}>"


class Hooks:
    """A set of functions. This module's `hook`, `opened` and `closed` use a default set."""

    def __init__(self, name: Optional[str] = None) -> None:
        self.name = name
        self._functions: Dict[str, Callable[[Message], Any]] = {}
        self._subscriptions: List[Dict[str, Any]] = []
        self._opened: List[Callable[[Conversation], Any]] = []
        self._closed: List[Callable[[Conversation], Any]] = []

    def hook(
        self,
        filter: Optional[str] = None,
        *,
        order: float = 0,
        side: Optional[Side] = None,
        fields: bool = True,
        bytes: bool = False,
        modified: Optional[bool] = None,
        silenced: Optional[bool] = False,
        fake: Optional[bool] = False,
    ) -> Callable[[_Function], _Function]:
        """Call a function with each matching message. The function returns an `Answer`.

        filter: selects messages, in the filter language of `worldwire dissect`.
        order: the function's position among all hooks.
        side: only messages from the client or the server.
        fields, bytes: whether the function needs them.
        modified, silenced, fake: if true, only messages that were changed, dropped or added; if
            false, only others; if None, both.

        While an `async` function waits, all later messages from the same side wait too.
        """

        def add(function: _Function) -> _Function:
            id = str(len(self._functions) + 1)
            subscription: Dict[str, Any] = {
                "id": id,
                "order": order if abs(order) != float("inf") else f"{'-' * (order < 0)}Infinity",
                "fields": fields,
                "bytes": bytes,
                "modified": modified,
                "silenced": silenced,
                "fake": fake,
            }
            if filter is not None:
                subscription["filter"] = filter
            if side is not None:
                subscription["from"] = side
            self._functions[id] = function
            self._subscriptions.append(subscription)
            return function

        return add

    def opened(self, function: _Function) -> _Function:
        """Call a function with each new `Conversation` and with those that already exist."""
        self._opened.append(function)
        return function

    def closed(self, function: _Function) -> _Function:
        """Call a function with each `Conversation` that ends."""
        self._closed.append(function)
        return function

    def run(self, connect: Optional[str] = None) -> None:
        """Serve a proxy until it ends.

        connect: the proxy's socket: HOST:PORT, or the path of a Unix socket. Without it, standard
            input and output are used, for a program that the proxy has started.
        """
        with _Link(connect) as link:
            asyncio.run(_Session(self, link).run())


class _Session:
    """Exchanges lines with a proxy."""

    def __init__(self, hooks: Hooks, link: _Link) -> None:
        self.hooks = hooks
        self.link = link
        self.conversations: Dict[int, Conversation] = {}
        self.tasks: Set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        lines: asyncio.Queue[Optional[List[bytes]]] = asyncio.Queue()
        name = {} if self.hooks.name is None else {"name": self.hooks.name}
        subscriptions = self.hooks._subscriptions
        self.send({"type": "hello", "version": 1, **name, "subscriptions": subscriptions})

        def put(batch: Optional[List[bytes]]) -> None:
            try:
                loop.call_soon_threadsafe(lines.put_nowait, batch)
            except RuntimeError:
                pass  # The loop has ended.

        threading.Thread(target=self.link.read, args=(put,), daemon=True).start()
        self.link.flush()
        while (batch := await lines.get()) is not None:
            for line in batch:
                self.line(json.loads(line))
            self.link.flush()
        for task in self.tasks:
            task.cancel()

    def send(self, line: Mapping[str, Any]) -> None:
        self.link.write(json.dumps(line).encode() + b"\n")

    def line(self, line: Dict[str, Any]) -> None:
        kind = line["type"]
        if kind == "message":
            self.message(line)
        elif kind == "opened":
            conversation = Conversation(self.send_now, line)
            self.conversations[conversation.number] = conversation
            for function in self.hooks._opened:
                self.call(function, conversation)
        elif kind == "closed":
            gone = self.conversations.pop(line["conversation"], None)
            for function in self.hooks._closed:
                if gone is not None:
                    self.call(function, gone)
        elif kind == "error":
            # Not sent as a log line, which may itself be the cause.
            print(line["text"], file=sys.stderr)

    def message(self, line: Dict[str, Any]) -> None:
        """Calls all functions of one order for a message. Each sees the previous one's changes."""
        conversation = self.conversations.get(line["conversation"])
        if conversation is None:
            unknown = {**line, "client": None, "server": None}
            conversation = Conversation(self.send_now, unknown)
        message = Message(conversation, line)
        functions = [self.hooks._functions[id] for id in line["subscriptions"]]
        if any(map(inspect.iscoroutinefunction, functions)):
            self.send({"type": "answer", "id": message._id, "do": "hold"})
            return self.start(self.decide_later(message, functions))
        answer: Dict[str, Any] = {"do": "pass"}
        for function in functions:
            try:
                answer = _answer(function(message), message, answer)
            except Exception as error:
                self.failed(function, error)
        self.answer(message, answer)

    async def decide_later(
        self, message: Message, functions: List[Callable[[Message], Any]]
    ) -> None:
        answer: Dict[str, Any] = {"do": "pass"}
        for function in functions:
            try:
                result = function(message)
                if inspect.isawaitable(result):
                    result = await result
                answer = _answer(result, message, answer)
            except Exception as error:
                self.failed(function, error)
        self.answer(message, answer)
        self.link.flush()

    def answer(self, message: Message, answer: Dict[str, Any]) -> None:
        if message._added:
            answer = {**answer, "add": message._added}
        self.send({"type": "answer", "id": message._id, **answer})

    def call(self, function: Callable[..., Any], argument: object) -> None:
        async def wait(result: Awaitable[Any]) -> None:
            try:
                await result
            except Exception as error:
                self.failed(function, error)
            self.link.flush()

        try:
            result = function(argument)
        except Exception as error:
            return self.failed(function, error)
        if inspect.isawaitable(result):
            self.start(wait(result))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def send_now(self, line: Mapping[str, Any]) -> None:
        self.send(line)
        self.link.flush()

    def failed(self, function: Callable[..., Any], error: Exception) -> None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        text = f"{function.__name__} failed: {type(error).__name__}: {error}, at {where}"
        self.log("error", text)

    def log(self, level: str, text: str) -> None:
        self.send({"type": "log", "level": level, "text": text})


class _Link:
    """The streams to the proxy."""

    def __init__(self, connect: Optional[str]) -> None:
        self.socket: Optional[socket.socket] = None
        if connect is None:
            # Anything that hooks print must not be mistaken for answers.
            self.reader = cast(io.BufferedReader, sys.stdin.buffer)
            self.writer: BinaryIO = sys.stdout.buffer
            self.stdout = sys.stdout
            sys.stdout = sys.stderr
        else:
            self.socket = _dial(connect)
            self.reader = self.socket.makefile("rb")
            self.writer = self.socket.makefile("wb")
        self.lock = threading.Lock()
        self.queued: List[bytes] = []

    def __enter__(self) -> _Link:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.socket is not None:
            self.socket.close()
        else:
            sys.stdout = self.stdout

    def read(self, put: Callable[[Optional[List[bytes]]], None]) -> None:
        """Reads lines until the end, several at once if they have arrived."""
        rest = b""
        while True:
            try:
                chunk = self.reader.read1(1 << 16)
            except (OSError, ValueError):
                chunk = b""
            if not chunk:
                return put(None)
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            if lines:
                put(lines)

    def write(self, line: bytes) -> None:
        with self.lock:
            self.queued.append(line)

    def flush(self) -> None:
        with self.lock:
            if self.queued:
                try:
                    self.writer.write(b"".join(self.queued))
                    self.writer.flush()
                except OSError:
                    pass  # The proxy has ended; the reader will notice that.
                self.queued.clear()


def _dial(connect: str) -> socket.socket:
    host, colon, port = connect.rpartition(":")
    if colon and port.isdigit():
        return socket.create_connection((host.strip("[]"), int(port)))
    link = socket.socket(socket.AF_UNIX)
    link.connect(connect)
    return link


def _answer(result: Answer, message: Message, before: Dict[str, Any]) -> Dict[str, Any]:
    if result is None:
        return before
    if result is False:
        return {"do": "drop"}
    if result is True:
        return before if before["do"] == "replace" else {"do": "forward"}
    if isinstance(result, (bytes, bytearray)):
        message.bytes = bytes(result)
        return {"do": "replace", "bytes": result.hex()}
    try:
        message.fields = dict(result)
    except (TypeError, ValueError):
        kind = type(result).__name__
        raise TypeError(f"a hook returns None, a bool, fields or bytes, not {kind}") from None
    return {"do": "replace", "fields": message.fields}


def _addition(
    to: Side, name: str, fields: Optional[Mapping[str, Any]], content: Optional[bytes]
) -> Dict[str, Any]:
    addition: Dict[str, Any] = {"to": to}
    if name:
        addition["name"] = name
    if content is None:
        addition["fields"] = dict(fields or {})
    else:
        addition["bytes"] = content.hex()
    return addition


_default = Hooks()
hook = _default.hook
opened = _default.opened
closed = _default.closed
run = _default.run


def _main() -> None:
    path, *arguments = sys.argv[1:]
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    # The file adds its functions to the imported module, not to this one.
    from worldwire import hooks

    hooks._default.name = os.path.basename(path)
    runpy.run_path(path, run_name="__main__")
    if hooks._default._functions or hooks._default._opened or hooks._default._closed:
        hooks._default.run()


if __name__ == "__main__":
    try:
        _main()
    except KeyboardInterrupt:
        pass
