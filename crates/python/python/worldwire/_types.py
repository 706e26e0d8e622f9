"""Types of arguments."""

from os import PathLike
from typing import Literal, Protocol, Sequence, Union

Path = Union[str, "PathLike[str]"]
Paths = Union[Path, Sequence[Path]]
Side = Literal["client", "server"]
Family = Literal["ki", "mxo", "tera", "uru"]


class Readable(Protocol):
    """A file opened in binary mode, or anything else that returns bytes."""

    def read(self, size: int, /) -> bytes: ...
