"""Read captures, messages and files from preserved online worlds.

    for message in worldwire.open("evening.pcapng", keys="keys.toml"):
        print(message.time, message.name, message.fields)
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ._errors import (
    CaptureError,
    DecodeError,
    DefinitionsError,
    DefinitionsWarning,
    EncodeError,
    Error,
    FilterError,
    KeysError,
    LimitError,
    Refused,
    WorldwireWarning,
)
from ._native import Capture, Context, Message, Record, Table, __version__, codecs, open
from ._stats import Stats, stats
from ._types import Side
from .connection import Connection, Event

__all__ = [
    "Capture",
    "CaptureError",
    "Connection",
    "Context",
    "DecodeError",
    "DefinitionsError",
    "DefinitionsWarning",
    "EncodeError",
    "Error",
    "Event",
    "FilterError",
    "KeysError",
    "LimitError",
    "Message",
    "Record",
    "Refused",
    "Stats",
    "Table",
    "WorldwireWarning",
    "__version__",
    "codecs",
    "decode",
    "encode",
    "open",
    "stats",
]

def decode(codec: str, data: bytes, *, side: Side = "client") -> Any:
    """Decode a single message or file. `codecs()` lists the codecs.

    This uses only the built-in definitions. A `Context` also takes keys and your own definitions.
    """
    return _built_in().decode(codec, data, side=side)


def encode(codec: str, value: Any, *, side: Side = "client") -> bytes:
    """Encode a single message or file: the inverse of `decode`."""
    return _built_in().encode(codec, value, side=side)


@lru_cache(maxsize=None)
def _built_in() -> Context:
    return Context()
