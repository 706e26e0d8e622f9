"""Connections as state machines without I/O.

    connection = Connection.uru("client", service="auth", keys="server.ini")
    connection.send("ClientRegisterRequest", {"buildId": 918})
    while (data := connection.transmit()) is not None:
        socket.sendall(data)
    connection.receive(socket.recv(65536))
    for event in connection.events():
        print(event.name, event.fields)

Bytes and time go in, events and bytes come out, so the same object works with sockets, asyncio, threads
and tests. After each call that passes something in, take the `events` and send what `transmit` returns
until it returns None. Call `timeout` at the time that `next_timeout` returns.
"""

from __future__ import annotations

import time
from typing import Any, List, Literal, Mapping, Optional, Tuple, Union

from ._errors import DecodeError, Error
from ._native import Context, Machine, Record
from ._types import Family, KeySources, Side

__all__ = ["Connection", "Event"]

Kind = Literal["message", "setup", "news", "gap", "fault", "closed"]
Service = Literal["gatekeeper", "auth", "game", "file"]


class Event:
    """Something that happened on a connection."""

    def __init__(
        self, kind: Kind, side: Optional[Side], codec: Optional[str], data: bytes, text: str
    ) -> None:
        self.kind: Kind = kind
        """"message"; "setup" for a step of connection setup; "news" for events specific to the family, such
        as an established session; "fault" for bytes that cannot be read; or "closed", always the last."""
        self.side: Optional[Side] = side
        """The sender."""
        self.codec = codec
        """The codec of `bytes`, for a message."""
        self.bytes = data
        """The decrypted message without its frame."""
        self.text = text
        """What happened, if it is not a message."""
        self._value: Any = None
        self._error: Optional[DecodeError] = None
        self._context: Optional[Context] = None

    @property
    def name(self) -> str:
        """The name of a message: "AcctLoginReply", "LOGIN.MSG_CHARACTERLIST", "LoadWorld"."""
        value = self._decoded()
        if not isinstance(value, Record):
            return ""
        if self.codec == "ki.dml":
            return f"{value.service}.{value.order}"
        # TERA messages and MxO RPC messages have an opcode, a number that may have no name.
        name = value.get("name", value.get("opcode", ""))
        return name if isinstance(name, str) else hex(name)

    @property
    def fields(self) -> Record:
        """The fields of a message, decoded when they are first read.

        Raises `DecodeError` if they do not match the message's definition.
        """
        value = self._decoded()
        if self._error is not None:
            raise self._error
        fields = value.get("fields") if isinstance(value, Record) else None
        if isinstance(fields, Record):
            return fields
        if isinstance(value, Record):
            return value
        raise Error(f"a {self.kind} has no fields")

    def _decoded(self) -> Any:
        if self._value is None and self.codec is not None and self._context is not None:
            side: Side = self.side or "client"
            try:
                self._value = self._context.decode(self.codec, self.bytes, side=side)
            except DecodeError as error:
                # The decoded part usually includes the name.
                self._value, self._error = error.partial, error
        return self._value

    def __repr__(self) -> str:
        if self.kind == "message":
            return f"<{self.codec} from {self.side}: {self.name}>"
        return f"<{self.kind}: {self.text}>"


class Connection:
    """The client's or server's end of a connection. Create it with `ki`, `mxo`, `tera` or `uru`.

    Methods take the time as seconds on any clock that does not run backwards, or use their own clock.
    """

    def __init__(
        self,
        family: Family,
        side: Side,
        machine: Machine,
        codec: Optional[str],
        context: Optional[Context],
        origin: float,
    ) -> None:
        self.family: Family = family
        self.side: Side = side
        self._machine = machine
        self._codec = codec
        self._context = context or Context()
        self._origin = origin

    @classmethod
    def ki(
        cls, side: Side, *, session: int = 1, context: Optional[Context] = None
    ) -> Connection:
        """A KI connection. A server chooses the session's number.

        The context contains the message definitions; without it, only the built-in ones are used.
        """
        machine = Machine.ki(side, session, time.time(), 0.0)
        return cls("ki", side, machine, "ki.dml", context, time.monotonic())

    @classmethod
    def mxo(
        cls,
        side: Side,
        *,
        session: int,
        key: bytes,
        character: int = 0,
        context: Optional[Context] = None,
    ) -> Connection:
        """An MxO connection over UDP, with the session and key assigned by the margin server."""
        times = (time.time(), 0.0)
        machine = Machine.mxo(side, session, key, character, times)
        return cls("mxo", side, machine, "mxo.rpc", context, time.monotonic())

    @classmethod
    def tera(cls, side: Side, *, context: Optional[Context] = None) -> Connection:
        """A TERA connection. The context contains the definitions and maps."""
        return cls("tera", side, Machine.tera(side, 0.0), "tera.packet", context, time.monotonic())

    @classmethod
    def uru(
        cls,
        side: Side,
        *,
        service: Service = "auth",
        keys: Optional[KeySources] = None,
        build: Optional[int] = None,
        context: Optional[Context] = None,
    ) -> Connection:
        """An Uru connection. Without a key for the service, a client requests no encryption.

        A server learns the service from its client.
        """
        machine = Machine.uru(side, service, keys, build, 0.0)
        codec = f"uru.{service}" if side == "client" else None
        return cls("uru", side, machine, codec, context, time.monotonic())

    def receive(self, data: Union[bytes, bytearray], now: Optional[float] = None) -> None:
        """Handle bytes from the other side's stream; for MxO, a datagram."""
        self._machine.receive(data, self._now(now))

    def receive_end(self, now: Optional[float] = None) -> None:
        """Handle the end of the other side's stream."""
        self._machine.receive_end(self._now(now))

    def timeout(self, now: Optional[float] = None) -> None:
        """Handle deadlines that have passed."""
        self._machine.timeout(self._now(now))

    @property
    def next_timeout(self) -> Optional[float]:
        """The time at which to call `timeout`, on the connection's clock."""
        return self._machine.next_timeout()

    def wait_time(self) -> Optional[float]:
        """The seconds until `timeout` must be called, on the connection's own clock."""
        due = self._machine.next_timeout()
        return None if due is None else max(0.0, due - self._now(None))

    def transmit(self) -> Optional[bytes]:
        """The next bytes to send; for MxO, one datagram. None if there is nothing to send."""
        return self._machine.transmit()

    def events(self) -> List[Event]:
        """What has happened since the last call."""
        events = [Event(*event) for event in self._machine.events()]
        for event in events:
            event._context = self._context  # pyright: ignore[reportPrivateUsage]
            if event.codec is not None and self._codec is None:
                self._codec = event.codec
        return events

    def send(self, name: str, fields: Optional[Mapping[str, Any]] = None) -> None:
        """Queue a message, given its name and fields as in `worldwire dissect --json`.

        For KI, the name is SERVICE.MESSAGE.
        """
        value: Any = {"name": name, "fields": fields or {}}
        if self.family == "ki":
            service, _, order = name.partition(".")
            value = {"service": service, "order": order, "fields": fields or {}}
        elif self._codec in ("mxo.rpc", "tera.packet"):
            value = {"opcode": name, "fields": fields or {}}
        if self._codec is None:
            raise Error("the client has not requested a service yet")
        self.send_bytes(self._context.encode(self._codec, value, side=self.side))

    def send_bytes(self, data: Union[bytes, bytearray]) -> None:
        """Queue an encoded message, without a frame. For MxO, an RPC message with its length."""
        self._machine.send(data)

    def set_key(self, key: bytes) -> None:
        """From now on, encrypt everything on an MxO connection to a margin server."""
        self._machine.set_key(key)

    def close(self) -> None:
        """End the connection. Queued bytes can still be sent."""
        self._machine.close()

    @property
    def session(self) -> Optional[Tuple[int, int, int]]:
        """A KI session: its ID, and the seconds and milliseconds of its offer. Login secrets depend on it."""
        return self._machine.ki_session()

    @property
    def closing_hint(self) -> Optional[str]:
        """A likely cause, if the connection ends now: an Uru client's keys may be those of another shard."""
        return self._machine.closing_hint()

    @property
    def is_established(self) -> bool:
        """Whether setup is complete. Messages queued earlier are sent then."""
        return self._machine.is_established

    @property
    def is_closed(self) -> bool:
        """Whether it has ended."""
        return self._machine.is_closed

    @property
    def queued_bytes(self) -> int:
        """The number of bytes waiting to be sent; use it for backpressure."""
        return self._machine.queued_bytes

    def _now(self, now: Optional[float]) -> float:
        return time.monotonic() - self._origin if now is None else now
