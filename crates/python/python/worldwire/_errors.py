"""Exceptions and warnings."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Type


class Error(Exception):
    """Something that worldwire cannot read, decode or encode.

    `path` is the field or file that the error is about, `offset` its byte position in the input (in a
    filter, its character position), and `hint` advice on what to do. Each is None if unknown. The
    text of the exception contains all of them.
    """

    def __init__(
        self,
        message: str,
        path: Optional[str] = None,
        offset: Optional[int] = None,
        hint: Optional[str] = None,
    ) -> None:
        super().__init__(message, path, offset, hint)
        self.message = message
        self.path = path
        self.offset = offset
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class CaptureError(Error):
    """A capture cannot be read any further. All messages before the damage have been returned.

    If `stats` raises it, `partial` contains what was counted before the damage.
    """

    partial: Any = None


class DecodeError(Error):
    """Bytes cannot be decoded. `partial` contains what was decoded before the error."""

    partial: Any = None


class DefinitionsError(Error):
    """Definitions given as `data` contain an error, or a path contains no definitions."""


class EncodeError(Error):
    """A value cannot be encoded."""


class FilterError(Error):
    """A filter has an error or names something that does not exist."""


class KeysError(Error):
    """A key file cannot be used."""


class LimitError(Error):
    """The input exceeds one of the limits that protect against hostile input."""


class Refused(Error):
    """The server refused a request. `result` is the reason, such as "AuthenticationFailed"."""

    def __init__(self, request: str, result: object) -> None:
        super().__init__(f"{request}: the server answers {result}")
        self.result = result


class WorldwireWarning(UserWarning):
    """Unusual input that was accepted, such as a name in a filter that is in no definition."""


class DefinitionsWarning(WorldwireWarning):
    """A message is shown as bytes, wholly or in part, because a definition is missing.

    Each capture causes at most one such warning for each kind of definition. `Message.hint` has the
    same text for every message.
    """


_PACKAGE = os.path.dirname(__file__)


def warn(text: str, category: Type[WorldwireWarning]) -> None:
    """Warn about the line of the user's program that called this package."""
    import warnings

    level, frame = 1, sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, level)
