"""Statistics of captures."""

from __future__ import annotations

import json
from typing import Dict, List, Optional, TypedDict, Union, cast

from ._errors import CaptureError
from ._native import open, totals
from ._types import Family, KeySources, Path, Paths, Readable


class Amount(TypedDict):
    """The number of messages and their total bytes."""

    messages: int
    bytes: int


class CapturedBytes(TypedDict):
    """Captured bytes by sender, and those in unrecognised conversations."""

    client: int
    server: int
    unrecognised: int


class NameStats(TypedDict):
    """The messages with one name: the numbers that client and server sent, and their total bytes."""

    family: Family
    name: str
    client: int
    server: int
    bytes: int


class ReplyStats(TypedDict):
    """Seconds between requests with one name and their replies."""

    request: str
    count: int
    median: float
    p95: float
    longest: float


class Stats(TypedDict):
    """A capture's statistics, with the keys of `worldwire stats --json`."""

    conversations: int
    recognised: int
    families: Dict[Family, int]
    captured: CapturedBytes
    first: Optional[float]
    last: Optional[float]
    gaps: int
    messages: int
    bytes: int
    client: Amount
    server: Amount
    problems: int
    undefined: Amount
    incomplete: Amount
    names: List[NameStats]
    others: Amount
    interval: float
    intervals: List[List[int]]
    replies: List[ReplyStats]
    unanswered: int


def stats(
    source: Union[Path, bytes, bytearray, Readable],
    *,
    keys: Optional[KeySources] = None,
    data: Optional[Paths] = None,
    filter: Optional[str] = None,
    family: Optional[Family] = None,
    stream: Optional[int] = None,
) -> Stats:
    """Read a capture to its end and return what `worldwire stats --json` prints.

    The arguments are those of `open`. Problems are counted as well as messages. If the capture
    cannot be read to its end, the `CaptureError` has the statistics up to that point as `partial`.
    """
    capture = open(
        source, keys=keys, data=data, filter=filter, family=family, stream=stream, notes=True
    )
    text, error = totals(capture)
    sums = cast(Stats, json.loads(text))
    if isinstance(error, CaptureError):
        error.partial = sums
    if error is not None:
        raise error
    return sums
