"""Connections driven by asyncio: the parts that all clients share."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from types import TracebackType
from typing import (
    Any,
    AsyncIterator,
    Dict,
    Generator,
    List,
    Mapping,
    Optional,
    Protocol,
    Tuple,
    Type,
    TypeVar,
    Union,
)

from ._errors import Error, Refused
from .connection import Connection, Event

_Link = TypeVar("_Link", bound="Link")

Inbox = asyncio.Queue[Optional[Event]]
"""Messages for a waiting caller. None means that no more will arrive."""

MAX_WAITING = 1 << 16
"""The maximum number of messages that wait in an inbox. Beyond that, the oldest are lost."""


class Link:
    """A connection to a server. Iterate over it to receive messages that no other call is waiting for.

    Iteration ends after `close`. If the connection ends in any other way, it raises `ConnectionError`.
    """

    _is_datagrams = False
    """Whether it uses UDP."""

    def __init__(self, host: str, port: int, patience: float) -> None:
        self.host = host
        self.port = port
        self.patience = patience
        """The time that the server has to answer, in seconds."""
        self._connection: Optional[Connection] = None
        self._running: Optional[asyncio.Task[None]] = None
        self._wake = asyncio.Event()
        self._ready = asyncio.Event()
        self._named: Dict[str, Inbox] = {}
        self._unasked: Inbox = asyncio.Queue()
        self._why = "it is not open"
        self._is_closing = False
        self._has_fault = False

    def _connect(self) -> Connection:
        """The client's end of a new connection."""
        raise NotImplementedError

    def _receive(self, event: Event) -> None:
        """Handle an event."""
        self._deliver(event)

    async def open(self) -> None:
        """Connect."""
        connection = self._connect()
        wire: _Wire = _Datagrams() if self._is_datagrams else _Stream()
        await wire.open(self.host, self.port)
        self._connection = connection
        self._running = asyncio.create_task(self._run(connection, wire))

    async def close(self) -> None:
        """Disconnect."""
        if self._connection is not None and not self._connection.is_closed:
            self._is_closing = True
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
        # Other iterations end too, now or later.
        self._unasked.put_nowait(None)
        if not self._is_closing:
            raise ConnectionError(f"the connection has ended: {self._why}")

    def send(self, name: str, fields: Optional[Mapping[str, Any]] = None) -> None:
        """Send a message without waiting for an answer."""
        self._usable(name).send(name, fields)
        self._wake.set()

    def _usable(self, purpose: str) -> Connection:
        if self._connection is None or self._connection.is_closed:
            raise ConnectionError(f"{purpose} cannot be sent: {self._why}")
        return self._connection

    async def _set_up(self, what: str) -> None:
        """Wait until the connection is established. `what` names the step that the server must take."""
        try:
            await asyncio.wait_for(self._ready.wait(), self.patience)
        except asyncio.TimeoutError:
            await self.close()
            raise ConnectionError(f"the server did not {what} within {self.patience} s") from None
        if self._connection is None or not self._connection.is_established:
            raise ConnectionError(f"the server did not {what}: {self._why}")

    @contextmanager
    def _listening(self, *names: str) -> Generator[Inbox, None, None]:
        """An inbox for messages with these names."""
        inbox: Inbox = asyncio.Queue()
        self._named.update(dict.fromkeys(names, inbox))
        try:
            yield inbox
        finally:
            for name in names:
                if self._named.get(name) is inbox:
                    del self._named[name]

    async def _next(self, request: str, inbox: Inbox) -> Event:
        """Wait for the next message in an inbox."""
        try:
            event = await asyncio.wait_for(inbox.get(), self.patience)
        except asyncio.TimeoutError:
            message = f"{request}: no response within {self.patience} s{self._hint()}"
            raise ConnectionError(message) from None
        if event is None:
            raise ConnectionError(f"{request}: {self._why}")
        return event

    def _hint(self) -> str:
        """A likely cause, if the connection has ended or the server does not answer."""
        hint = None if self._connection is None else self._connection.closing_hint
        return "" if hint is None else f"; {hint}"

    async def wait_for(
        self, name: str, request: str, fields: Optional[Mapping[str, Any]] = None
    ) -> Event:
        """Send a message and return the next one that arrives with the given name."""
        with self._listening(name) as inbox:
            self.send(request, fields)
            return await self._next(request, inbox)

    def _deliver(self, event: Event) -> None:
        """Pass a message to the caller that is waiting for it."""
        if event.kind == "message":
            self._put(self._named.get(event.name, self._unasked), event)

    def _put(self, inbox: Inbox, event: Event) -> None:
        if inbox.qsize() >= MAX_WAITING:
            inbox.get_nowait()
        inbox.put_nowait(event)

    def _inboxes(self) -> List[Inbox]:
        return [*self._named.values(), self._unasked]

    async def _run(self, connection: Connection, wire: _Wire) -> None:
        reading: asyncio.Future[bytes] = asyncio.ensure_future(wire.read())
        try:
            while True:
                while (data := connection.transmit()) is not None:
                    wire.write(data)
                if connection.is_established:
                    self._ready.set()
                if connection.is_closed:
                    break
                await wire.drain()
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
                        reading = asyncio.ensure_future(wire.read())
                    else:
                        connection.receive_end()
                        # Nothing more will arrive.
                        reading = asyncio.get_running_loop().create_future()
                if not done:
                    connection.timeout()
                for event in connection.events():
                    if event.kind == "fault":
                        self._why, self._has_fault = event.text, True
                    elif event.kind == "closed" and not self._has_fault:
                        self._why = event.text + ("" if self._is_closing else self._hint())
                    self._receive(event)
        except (Error, OSError) as error:
            self._why = f"{error}{self._hint()}"
            connection.close()
        finally:
            reading.cancel()
            # Wakes up all waiting callers.
            self._ready.set()
            for inbox in self._inboxes():
                inbox.put_nowait(None)
            wire.close()


class _Wire(Protocol):
    """A transport to a server."""

    async def open(self, host: str, port: int) -> None: ...
    async def read(self) -> bytes:
        """The next bytes, or a datagram. An empty result means the end."""
        ...

    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None: ...
    def close(self) -> None: ...


class _Stream:
    """TCP."""

    async def open(self, host: str, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection(host, port)

    async def read(self) -> bytes:
        return await self._reader.read(1 << 16)

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    async def drain(self) -> None:
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    """UDP."""

    def __init__(self) -> None:
        # As with a socket, datagrams are lost if nobody reads them.
        self._queue: asyncio.Queue[Union[bytes, Exception]] = asyncio.Queue(4096)

    async def open(self, host: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        made = await loop.create_datagram_endpoint(lambda: self, remote_addr=(host, port))
        self._transport: asyncio.DatagramTransport = made[0]

    def datagram_received(self, data: bytes, addr: Tuple[Any, ...]) -> None:
        # An empty one would look like the end.
        if data and not self._queue.full():
            self._queue.put_nowait(data)

    def error_received(self, exc: Exception) -> None:
        if not self._queue.full():
            self._queue.put_nowait(exc)

    async def read(self) -> bytes:
        received = await self._queue.get()
        if isinstance(received, Exception):
            raise received
        return received

    def write(self, data: bytes) -> None:
        self._transport.sendto(data)

    async def drain(self) -> None:
        pass

    def close(self) -> None:
        self._transport.close()


def checked(request: str, event: Event, field: str) -> Event:
    """The event. Raises `Refused` if the field says why the request was refused."""
    result = event.fields.get(field, "Success")
    if result not in ("Success", 0):
        raise Refused(request, result)
    return event
