"""Argument types."""

from os import PathLike
from typing import List, Literal, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

Path = Union[str, "PathLike[str]"]
Paths = Union[Path, Sequence[Path]]
KeyContents = Tuple[
    List[Tuple[str, bytes, bytes, Optional[bytes]]],
    Optional[bytes],
    List[Tuple[str, bytes, bytes]],
    List[Tuple[Optional[int], bytes, bytes]],
    List[Tuple[Optional[str], Optional[str], Optional[str]]],
    List[Tuple[Optional[int], bytes]],
]
"""The contents of key files: Uru servers, droid key and sessions; KI streams and accounts; MxO sessions."""
Side = Literal["client", "server"]
Family = Literal["ki", "mxo", "tera", "uru"]


class KeySource(Protocol):
    """Keys as an object: `worldwire.keys.Keys`."""

    def to_toml(self) -> str: ...


KeySources = Union[Path, KeySource, Sequence[Union[Path, KeySource]]]
"""Key files, and keys as objects."""


class Readable(Protocol):
    """A file opened in binary mode, or anything else that returns bytes."""

    def read(self, size: int, /) -> bytes: ...


class ObjectError(NamedTuple):
    """What is wrong with an object in an archive. See `Table.errors`."""

    file: str
    """The name of its file."""
    path: str
    """The path to the value: `m_items[0].m_id`. Empty if it is the object itself."""
    offset: Optional[int]
    """The position in the object's data, after decompression, in bytes; None if there is none."""
    text: str
    """What is wrong, with path and offset."""
    is_decoded: bool
    """Whether the object was decoded in spite of it."""
