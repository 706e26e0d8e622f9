"""The native part of worldwire. Import its contents from `worldwire`."""

import builtins
from types import TracebackType
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union, final

from typing_extensions import Self

from ._types import Family, KeyContents, KeySources, ObjectError, Path, Paths, Readable, Side

__version__: str

@final
class Record(Mapping[str, Any]):
    """Decoded, named values. Each becomes a Python object when you read it.

    `record["name"]`, `record.name`, `record["ages[3].filename"]`. A value is None, a bool, int,
    float, str or bytes, a list, or another record. An enumeration is the name of its value, or a
    number if the value has no name. Flags are a list of names.
    """

    def __getitem__(self, name: str, /) -> Any: ...
    def __getattr__(self, name: str, /) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __dir__(self) -> List[str]: ...
    def keys(self) -> List[str]:  # type: ignore[override]
        """The field names."""
    def values(self) -> List[Any]:  # type: ignore[override]
        """The field values."""
    def items(self) -> List[Tuple[str, Any]]:  # type: ignore[override]
        """The field names and values."""
    def get(self, name: str, default: Any = None) -> Any:
        """The value of a field or path, or `default` if there is none."""
    def to_dict(self) -> Any:
        """All values as plain dictionaries and lists."""

@final
class Message:
    """A message or, if the capture was opened with `notes=True`, a note."""

    @property
    def name(self) -> str:
        """The dotted name: `auth.AcctLoginRequest`."""
    @property
    def family(self) -> Family:
        """The family."""
    @property
    def side(self) -> Side:
        """The sender."""
    @property
    def stream(self) -> int:
        """The conversation, counted from 0."""
    @property
    def packet(self) -> Optional[int]:
        """The packet that completed the message, counted from 1."""
    @property
    def time(self) -> float:
        """When the message was complete, in seconds since 1970-01-01 00:00 UTC."""
    @property
    def time_ns(self) -> int:
        """The same time in nanoseconds, exact."""
    @property
    def elapsed(self) -> float:
        """Seconds since the first packet of the capture."""
    @property
    def src(self) -> Optional[str]:
        """The sender's address."""
    @property
    def srcport(self) -> Optional[int]:
        """The sender's port."""
    @property
    def dst(self) -> Optional[str]:
        """The recipient's address."""
    @property
    def dstport(self) -> Optional[int]:
        """The recipient's port."""
    @property
    def fields(self) -> Record:
        """The fields. For a note, `fields.what` is its text."""
    @property
    def bytes(self) -> builtins.bytes:
        """The decrypted bytes, with the frame around them."""
    @property
    def body(self) -> builtins.bytes:
        """The decrypted bytes without the frame."""
    @property
    def position(self) -> Tuple[int, int]:
        """The start and end (exclusive) in the sender's stream, in bytes."""
    @property
    def error(self) -> Optional[str]:
        """Why the message could not be decoded completely; otherwise None."""
    @property
    def hint(self) -> Optional[str]:
        """If the message is shown as bytes, wholly or in part: what is missing, and what to pass as `data`."""
    @property
    def is_note(self) -> bool:
        """Whether this is a note about the conversation rather than a message."""
    def json(self, *, safe: bool = False) -> str:
        """The line that `worldwire dissect --json` writes.

        With `safe`, integers of more than 53 bits are strings.
        """
    def range(self, path: str) -> Tuple[int, int]:
        """The start and end (exclusive) of a field in `body`. Write its path as in filters.

        For a field inside a compressed part, the range is that of the whole part.
        """
    def encode(self, changes: Optional[Mapping[str, Any]] = None) -> builtins.bytes:
        """The bytes of the message without the frame, with new values for some fields.

        The keys of `changes` are field paths, as in filters. Without changes, the result is `body`.
        """

@final
class Capture(Iterator[Message]):
    """The messages of a capture, in capture order. You can iterate over it once."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Message: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        type: Optional[Type[BaseException]] = None,
        value: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
        /,
    ) -> None: ...
    def table(self, columns: Sequence[str]) -> Table:
        """The values of these fields and metadata as columns, one row for each message.

        Reads the capture to its end. The columns are those of `worldwire dissect --fields`.
        """
    def to_numpy(self, columns: Sequence[str]) -> Dict[str, Any]:
        """The same values as NumPy arrays, by name."""
    def close(self) -> None:
        """Stop reading. This ends the iteration."""

@final
class Table:
    """Columns of values, one row for each message or object, for anything that reads Arrow's C streams."""

    @property
    def column_names(self) -> List[str]:
        """The names of the columns."""
    @property
    def errors(self) -> List[ObjectError]:
        """For an archive's objects: why some could not be decoded, and the irregularities of others.

        They are in the order of the rows. For messages, the list is empty.
        """
    def __len__(self) -> int: ...
    def column(self, name: str) -> List[Any]:
        """The values of a column; None where one is missing. Times are nanoseconds since 1970."""
    def rows(self) -> Iterator[Tuple[Any, ...]]:
        """The values of each row, in the order of the columns."""
    def to_numpy(self) -> Dict[str, Any]:
        """A NumPy array for each column, by name.

        If a message lacks the field, columns of whole numbers and booleans become masked arrays. In
        other columns, its value is NaN, NaT or None.
        """
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

def totals(capture: Capture) -> Tuple[str, Optional[BaseException]]:
    """A capture's statistics as JSON, and the exception if it cannot be read completely."""

@final
class Context:
    """Keys and definitions for decoding and encoding, read once."""

    def __new__(cls, *, keys: Optional[KeySources] = None, data: Optional[Paths] = None) -> Self: ...
    def decode(self, codec: str, data: Union[bytes, bytearray], *, side: Side = "client") -> Any:
        """Decode a single message or file."""
    def encode(self, codec: str, value: Any, *, side: Side = "client") -> bytes:
        """Encode a single message or file: the inverse of `decode`."""

def codecs() -> List[Tuple[str, str]]:
    """The names of all codecs, each with a one-line description."""

def open(
    source: Union[Path, bytes, bytearray, Readable],
    *,
    keys: Optional[KeySources] = None,
    data: Optional[Paths] = None,
    filter: Optional[str] = None,
    family: Optional[Family] = None,
    stream: Optional[int] = None,
    notes: bool = False,
    follow: bool = False,
) -> Capture:
    """Open a capture. Iterate over the result to read its messages.

    source: the path of a pcap or pcapng file, plain or gzipped; the bytes of such a file; or an
        object whose `read` method returns bytes, such as tcpdump's standard output.
    keys: key files. Without them, keys stored in the capture are used.
    data: definitions: files and folders with KI message XML and type lists, TERA definitions and
        maps, SDL files, MxO tables.
    filter: only messages that match, in the filter language of `worldwire dissect --filter`.
    family: read every conversation as this family.
    stream: only messages of this conversation, counted from 0.
    notes: also return notes: new conversations, gaps, and problems such as missing keys.
    follow: at the end of a file that is still being written, wait for more.
    """

@final
class TeraCatalog:
    """The TERA definitions and maps in the given files."""

    def __new__(cls, data: Paths) -> Self: ...
    def names(self) -> List[str]:
        """The names of all messages with definitions."""
    def versions(self, name: str) -> List[int]:
        """The versions of a message's definition, from the oldest to the newest."""
    def fields(self, name: str, version: Optional[int] = None) -> List[Tuple[int, str, str]]:
        """The fields of a definition: depth, name and type. The default version is the newest.

        Nested fields follow the field that contains them.
        """
    def revisions(self) -> List[int]:
        """The revisions whose opcodes are known."""
    def opcodes(self, revision: int) -> Dict[str, int]:
        """The opcodes of a revision, by name."""
    def system_messages(self, version: str) -> Dict[str, int]:
        """The numbers of system messages, by name, for a revision or a patch such as `"92.04"`."""

@final
class StateCatalog:
    """The Uru state descriptors in the given SDL files."""

    def __new__(cls, data: Paths) -> Self: ...
    def names(self) -> List[str]:
        """The names of all descriptors."""
    def versions(self, name: str) -> List[int]:
        """The versions of a descriptor, from the oldest to the newest."""
    def variables(
        self, name: str, version: Optional[int] = None
    ) -> List[Tuple[str, str, Optional[int]]]:
        """The variables of a descriptor: name, type, and number of values, or None if it varies.

        The default version is the newest.
        """

@final
class Archive(Mapping[str, builtins.bytes]):
    """An open archive: a mapping from file names to contents."""

    def __new__(cls, path: Path) -> Self: ...
    def __getitem__(self, name: str, /) -> builtins.bytes: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: object, /) -> bool: ...
    def keys(self) -> List[str]:  # type: ignore[override]
        """The file names, in archive order."""
    def values(self) -> List[builtins.bytes]:  # type: ignore[override]
        """The file contents, in archive order."""
    def items(self) -> List[Tuple[str, builtins.bytes]]:  # type: ignore[override]
        """The file names and contents."""
    def get(self, name: str, default: Any = None) -> Any:
        """The contents of a file, or `default` if no file has this name."""
    def search(self, pattern: str) -> List[str]:
        """The names that match a pattern.

        `*` and `?` match within a directory; `**` matches any number of directories.
        """
    def read(self, files: Union[str, Sequence[str]]) -> Dict[str, builtins.bytes]:
        """The contents of several files by name, read on all cores.

        `files` is a pattern, as for `search`, or a list of names.
        """
    def files(
        self, files: Union[str, Sequence[str], None] = None
    ) -> Iterator[Tuple[str, builtins.bytes]]:
        """The names and contents of several files, read as the iterator advances.

        `files` is a pattern, as for `search`, or a list of names; without it, all files.
        """
    def table(
        self,
        files: Union[str, Sequence[str]],
        columns: Sequence[str],
        types: TypeList,
        *,
        lenient: bool = False,
    ) -> Table:
        """The values at paths of many objects: one row for each file, decoded on all cores.

        Columns are paths, as for `GameObject`; `"$file"`, the name of the file; and `"$error"`, why
        its object could not be decoded. A path with `[*]` yields a column of lists. Values that
        no path needs are neither decoded nor checked, unless `lenient` is set. An object that cannot
        be decoded has no values. Without the column `"$error"`, a warning reports how many there are.
        With `lenient`, a value that does not match its property is None; `errors` lists all of these.
        """
    def size(self, name: str) -> int:
        """The size of a file in bytes."""
    def update(
        self, path: Path, changes: Mapping[str, Optional[builtins.bytes]], *, level: int = 8
    ) -> None:
        """Write an archive with new contents for the given files. None removes a file.

        All other files are copied as they are stored. `path` can be this archive's own path: to read
        the changes, open it again. `level` is the compression level, from 1 (fast) to 12 (small).
        """
    @staticmethod
    def create(path: Path, files: Mapping[str, builtins.bytes], *, level: int = 8) -> None:
        """Write an archive of these files."""

@final
class Machine:
    """A connection of any family, without I/O. `worldwire.Connection` documents it."""

    @staticmethod
    def ki(side: Side, session_id: int, epoch: float, now: float) -> Machine: ...
    @staticmethod
    def mxo(
        side: Side, session_id: int, key: builtins.bytes, character: int, times: Tuple[float, float]
    ) -> Machine: ...
    @staticmethod
    def mxo_login(side: Side, channel: str, epoch: float, now: float) -> Machine: ...
    @staticmethod
    def tera(side: Side, now: float) -> Machine: ...
    @staticmethod
    def uru(
        side: Side, service: str, keys: Optional[KeySources], build: Optional[int], now: float
    ) -> Machine: ...
    def receive(self, data: Union[builtins.bytes, bytearray], now: float) -> None: ...
    def receive_end(self, now: float) -> None: ...
    def timeout(self, now: float) -> None: ...
    def next_timeout(self) -> Optional[float]: ...
    def transmit(self) -> Optional[builtins.bytes]: ...
    def events(self) -> List[Tuple[Any, Any, Optional[str], builtins.bytes, str]]: ...
    def send(self, data: Union[builtins.bytes, bytearray]) -> None: ...
    def set_key(self, key: builtins.bytes) -> None: ...
    def ki_session(self) -> Optional[Tuple[int, int, int]]: ...
    def closing_hint(self) -> Optional[str]: ...
    def close(self) -> None: ...
    @property
    def is_established(self) -> bool: ...
    @property
    def is_closed(self) -> bool: ...
    @property
    def queued_bytes(self) -> int: ...

def uru_login(account: str, password: str, challenge: int) -> Tuple[int, builtins.bytes]:
    """What an Uru client sends to log in: its own challenge, and the hash for the server's challenge."""

def ki_login(account: str, password: str, session: Tuple[int, int, int]) -> bytes:
    """The `Rec1` that a KI client sends to log in."""

def ki_secret(sealed: bytes, session: Tuple[int, int, int]) -> Optional[str]:
    """The secret in the answer's `Rec1`; None if it belongs to another session."""

def ki_proof(secret: str, session: Tuple[int, int, int]) -> str:
    """The `PassKey3` that proves the secret on another connection."""

def ki_character(blob: bytes) -> Tuple[int, str, int]:
    """The ID, name and school of a KI character."""

def ki_new_character(name: str, school: str) -> bytes:
    """A new KI character."""

@final
class AuthLogin:
    """A login to an MxO auth server, without I/O."""

    def __new__(cls, account: str, password: str, public_key: Optional[Path]) -> Self: ...
    def receive(self, data: builtins.bytes) -> None: ...
    def poll(self) -> Optional[builtins.bytes]: ...
    def outcome(self) -> Optional[Tuple[Optional[Ticket], str]]: ...

@final
class Ticket:
    """The result of a login to an MxO auth server."""

    @property
    def characters(self) -> List[Tuple[int, str, int]]:
        """The characters: ID, name, and world number."""
    @property
    def worlds(self) -> List[Tuple[int, str]]:
        """The worlds: number and name."""

@final
class MarginLogin:
    """A session with an MxO margin server, without I/O."""

    def __new__(cls, ticket: Ticket) -> Self: ...
    def receive(self, data: builtins.bytes) -> None: ...
    def poll(self) -> Optional[Tuple[str, builtins.bytes, int, str]]: ...
    def claim(self, name: str) -> None: ...
    def create(self, data: builtins.bytes) -> None: ...
    def load(self, character: int) -> None: ...
    def delete(self, character: int) -> None: ...

@final
class TypeList:
    """The classes of one or more type lists; later lists override earlier ones."""

    def __new__(cls, path: Paths) -> Self: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: str, /) -> bool: ...
    def properties(self, name: str) -> List[str]:
        """The names of a class's properties, in the order in which objects contain them."""
    def decode(self, data: Union[bytes, bytearray], *, lenient: bool = False) -> GameObject:
        """Decode an object as client files and archives store it.

        With `lenient`, values that do not match the type list are kept as bytes.
        """
    def decode_all(
        self, data: Iterable[Union[builtins.bytes, bytearray]], *, lenient: bool = False
    ) -> List[GameObject]:
        """Decode many objects, on all cores."""

@final
class GameObject:
    """A decoded object. `object["m_stats.m_health"]` reads and sets values by path.

    `object["m_items[*].m_id"]` reads a list of values and skips elements that have none.
    """

    def __getitem__(self, path: str, /) -> Any: ...
    def __setitem__(self, path: str, value: Any, /) -> None: ...
    def __delitem__(self, path: str, /) -> None: ...
    def __contains__(self, path: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def keys(self) -> List[str]:
        """The property names."""
    def rows(self, list: str, columns: Sequence[str]) -> Iterator[Tuple[Any, ...]]:
        """The values at paths of each element of a list: `object.rows("m_items", ["m_id", "m_name"])`.

        A value is None if an element has none at the path. Values are created as the iterator
        advances; later changes of the object do not affect them.
        """
    def to_dict(self) -> Any:
        """All values as plain dictionaries and lists. `$class` is an object's class."""
    def json(self) -> str:
        """The JSON that `worldwire ki op decode` writes."""
    def encode(self) -> bytes:
        """The object's bytes, with the flags and compression that it was decoded with."""

def load_keys(keys: KeySources, /) -> KeyContents: ...
def parse_keys(text: str, /) -> KeyContents: ...
def format_keys(contents: KeyContents, /) -> str: ...
def new_uru_key(server: str, /) -> Tuple[bytes, bytes, bytes]: ...
