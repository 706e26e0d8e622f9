"""Read captures, messages and files from preserved online worlds.

    for message in worldwire.open("evening.pcapng", keys="keys.toml"):
        print(message.time, message.name, message.fields)
"""

from __future__ import annotations

from ._lazy import attributes
from ._native import Capture, Context, Message, Record, Table, __version__, codecs, open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from ._errors import CaptureError as CaptureError
    from ._errors import DecodeError as DecodeError
    from ._errors import DefinitionsError as DefinitionsError
    from ._errors import DefinitionsWarning as DefinitionsWarning
    from ._errors import EncodeError as EncodeError
    from ._errors import Error as Error
    from ._errors import FilterError as FilterError
    from ._errors import KeysError as KeysError
    from ._errors import LimitError as LimitError
    from ._errors import Refused as Refused
    from ._errors import WorldwireWarning as WorldwireWarning
    from ._stats import Stats as Stats
    from ._stats import stats as stats
    from ._types import Side
    from .connection import Connection as Connection
    from .connection import Event as Event
else:
    __getattr__, __dir__ = attributes(
        __name__,
        {
            "_errors": [
                "CaptureError",
                "DecodeError",
                "DefinitionsError",
                "DefinitionsWarning",
                "EncodeError",
                "Error",
                "FilterError",
                "KeysError",
                "LimitError",
                "Refused",
                "WorldwireWarning",
            ],
            "_stats": ["Stats", "stats"],
            "connection": ["Connection", "Event"],
        },
    )

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


_context: Optional[Context] = None


def _built_in() -> Context:
    global _context
    if _context is None:
        _context = Context()
    return _context
