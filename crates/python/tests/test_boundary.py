"""Everything in the native part, called with random arguments: it returns or raises an `Exception`.

A panic would be a `PanicException`, which is not an `Exception`, and a crash would end the interpreter.
"""

import random
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

import worldwire
import worldwire._native as native
from worldwire.ki import Archive, TypeList

CALLS = 60
# Methods that Python calls itself.
SPECIAL = "arrow_c_stream contains delitem dir eq exit getattr getitem iter len next repr setattr setitem"


class Failing:
    """Raises an exception on any use."""

    def fail(self, *_: object) -> Any:
        raise RuntimeError("on purpose")

    __bytes__ = __contains__ = __eq__ = __float__ = __fspath__ = __getitem__ = __hash__ = fail
    __index__ = __iter__ = __len__ = __repr__ = __str__ = items = keys = read = read1 = fail


class Changing(Dict[str, Any]):
    """Changes while it is read."""

    def items(self) -> Any:
        for name in list(self):
            self.clear()
            yield name, self

    def __iter__(self) -> Iterator[str]:
        return iter(["fields", "x" * len(self)])


class Number(int):
    """A number that cannot be converted."""

    def __index__(self) -> int:
        raise RuntimeError("on purpose")


def values(samples: Path) -> List[Any]:
    endless: List[Any] = []
    endless.append(endless)
    pet = (samples / "ki-pet.xml").read_bytes()
    found: List[Any] = [None, True, 0, 1, -1, 255, 2**16, 2**31, 2**32 - 1, 2**64 - 1, 2**64, Number(3)]
    found += [0.0, -0.5, 1.0, 1e9, 1.8e19, 1e300, float("nan"), float("inf")]
    found += ["", "x", "\0", "\ud800", "\U0001f600" * 50, "a.b[3]", "m_snacks[*].m_points", "m_name"]
    found += ["client", "server", "auth", "uru.auth", "ki.dml", "S_CHAT", "elapsed", "**", "[" * 500]
    found += [b"", b"\0" * 16, b"\xff" * 300, pet, bytearray(pet), memoryview(pet), samples / "absent"]
    found += [(), [], {}, set(), (0.0, 1.0), (1, 2, 3), ["elapsed", "name"], [pet, pet[:9]]]
    found += [{"x": None}, {"transId": 2**40}, {"name": "PingRequest", "fields": {"transId": 1}}]
    found += [{"a.xml": b"x" * 90}, endless, Changing(fields=1), Failing(), object(), int, len]
    return found + [iter([b"x"]), range(9)]


def objects(samples: Path) -> Dict[str, Callable[[], Any]]:
    """Functions that create an object of each class."""
    login, keys = samples / "uru-login.pcapng", samples / "uru-keys.toml"
    pet = (samples / "ki-pet.xml").read_bytes()

    def capture() -> native.Capture:
        return worldwire.open(login, keys=keys)

    def ticketless() -> native.AuthLogin:
        return native.AuthLogin("neo", "secret", None)

    return {
        "Capture": capture,
        "Message": lambda: next(capture()),
        "Record": lambda: next(capture()).fields,
        "Table": lambda: capture().table(["elapsed", "name", "transId"]),
        "Context": worldwire.Context,
        "TeraCatalog": lambda: native.TeraCatalog(samples / "tera"),
        "StateCatalog": lambda: native.StateCatalog(samples / "sdl"),
        "Archive": lambda: Archive(samples / "ki-zone.wad"),
        "TypeList": lambda: TypeList(samples / "ki-types.json"),
        "GameObject": lambda: TypeList(samples / "ki-types.json").decode(pet),
        "AuthLogin": ticketless,
        "ki": lambda: native.Machine.ki("client", 0, 0.0, 0.0),
        "ki server": lambda: native.Machine.ki("server", 7, 0.0, 0.0),
        "mxo": lambda: native.Machine.mxo("client", 1, bytes(16), 5, (0.0, 0.0)),
        "mxo server": lambda: native.Machine.mxo("server", 1, bytes(16), 5, (0.0, 0.0)),
        "mxo_login": lambda: native.Machine.mxo_login("client", "auth", 0.0, 0.0),
        "mxo_login server": lambda: native.Machine.mxo_login("server", "margin", 0.0, 0.0),
        "tera": lambda: native.Machine.tera("client", 0.0),
        "tera server": lambda: native.Machine.tera("server", 0.0),
        "uru": lambda: native.Machine.uru("client", "auth", None, 918, 0.0),
        "uru server": lambda: native.Machine.uru("server", "auth", None, None, 0.0),
    }


def returns(call: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    """Whether a call returns; otherwise it raises an `Exception`."""
    try:
        call(*arguments, **named)
    except Exception:
        return False
    return True


def members(of: object) -> List[str]:
    return [name for name in dir(type(of)) if name[0] != "_" or name.strip("_") in SPECIAL.split()]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files with odd names may be written, and odd names in filters cause warnings."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_functions_and_classes_take_anything(samples: Path) -> None:
    draw, odd = random.Random(20260101), values(samples)
    makers: Dict[str, Any] = {name: it for name, it in vars(native).items() if callable(it)}
    for holder in (native.Machine, native.Archive):
        static = [name for name in vars(holder) if isinstance(vars(holder)[name], staticmethod)]
        makers.update({name: getattr(holder, name) for name in static})
    assert {"open", "codecs", "Context", "GameObject", "mxo_login", "create"} <= makers.keys()
    names = ["keys", "data", "filter", "family", "stream", "notes", "side", "level", "lenient"]
    returned = 0
    for make in makers.values():
        for turn in range(CALLS):
            arguments = draw.choices(odd, k=draw.randrange(7))
            named = {draw.choice(names): draw.choice(odd)} if turn % 3 == 0 else {}
            returned += returns(make, *arguments, **named)
    assert returned > 0


def test_methods_take_anything(samples: Path) -> None:
    draw, odd = random.Random(20260101), values(samples)
    for name, make in objects(samples).items():
        subject, returned = make(), 0
        for _ in range(CALLS):
            # Calls change the object, so not every call gets a new one.
            subject = make() if draw.random() < 0.1 else subject
            member = draw.choice(members(subject))
            try:
                method = getattr(subject, member)
            except Exception:
                continue
            if callable(method):
                returned += returns(method, *draw.choices(odd, k=draw.randrange(4)))
        assert returned > 0, name


def test_every_class_is_covered(samples: Path) -> None:
    covered = {type(make()).__name__ for make in objects(samples).values()}
    classes = {name for name, it in vars(native).items() if isinstance(it, type)}
    # Only logins to a server create these.
    assert classes - covered == {"Ticket", "MarginLogin"}
