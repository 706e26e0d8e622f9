"""The building blocks of classes that `worldwire codegen python` generates."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Type, TypeVar

__all__ = ["Fields", "Message", "Vec3", "absent", "group", "items", "named", "record"]

_Value = TypeVar("_Value")
_Self = TypeVar("_Self", bound="Fields")


class Fields:
    """Named values, as attributes of a dataclass."""

    @classmethod
    def of(cls: Type[_Self], values: Mapping[str, Any]) -> _Self:
        """The fields of a message, such as `message.fields`, as an object of this class.

        Fields that the message lacks keep their defaults.
        """
        made = cls()
        for one in fields(made):  # type: ignore[arg-type]
            wire = one.metadata.get("name", one.name)
            if wire in values:
                setattr(made, one.name, _read(one.metadata.get("of"), values[wire]))
        return made

    def to_dict(self) -> Dict[str, Any]:
        """The values under their names in messages, to be encoded or sent."""
        values = ((one, getattr(self, one.name)) for one in fields(self))  # type: ignore[arg-type]
        return {
            one.metadata.get("name", one.name): _write(value)
            for one, value in values
            if value is not None or not one.metadata.get("absent")
        }


class Message(Fields):
    """The fields of a message."""

    NAME: ClassVar[str]
    """Its name, as in filters."""
    VERSION: ClassVar[Optional[int]] = None
    """For TERA: the version of its definition."""


@dataclass
class Vec3(Fields):
    """A position or direction."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


def named(name: str, default: _Value) -> _Value:
    """A field whose name is not a valid Python name."""
    made: _Value = field(default=default, metadata={"name": name})
    return made


def items(of: Optional[Type[Fields]], name: Optional[str] = None) -> List[Any]:
    """A list; `of` is the class of its elements, or None for plain values."""
    made: List[Any] = field(default_factory=_no_items, metadata=_metadata(of, name))
    return made


def group(of: Type[_Self], name: Optional[str] = None) -> _Self:
    """An object of another class."""
    made: _Self = field(default_factory=of, metadata=_metadata(of, name))
    return made


def absent(name: Optional[str] = None) -> Any:
    """An optional value. None means that it is absent."""
    return field(default=None, metadata={**_metadata(None, name), "absent": True})


def record(name: Optional[str] = None) -> Dict[str, Any]:
    """A few values without a class of their own."""
    made: Dict[str, Any] = field(default_factory=_no_values, metadata=_metadata(None, name))
    return made


def _no_items() -> List[Any]:
    return []


def _no_values() -> Dict[str, Any]:
    return {}


def _metadata(of: Optional[Type[Fields]], name: Optional[str]) -> Dict[str, Any]:
    own = {} if name is None else {"name": name}
    return {**own, "of": of}


def _read(of: Optional[Type[Fields]], value: Any) -> Any:
    # Type checkers would treat the items of a narrowed value as unknown.
    items: Any = value
    if isinstance(value, list):
        return [_read(of, item) for item in items]
    if isinstance(value, Mapping):
        return dict(items) if of is None else of.of(items)
    return items


def _write(value: Any) -> Any:
    items: Any = value
    if isinstance(value, Fields):
        return value.to_dict()
    if isinstance(value, list):
        return [_write(item) for item in items]
    return items
