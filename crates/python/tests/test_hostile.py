"""Hostile input raises exceptions and never ends the interpreter."""

import random
from pathlib import Path
from typing import Literal, Tuple

import pytest

import worldwire
from worldwire._native import AuthLogin, ki_character, ki_login, ki_secret


def test_files_that_are_no_captures_are_refused(samples: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        worldwire.open(tmp_path / "absent.pcapng")
    with pytest.raises(IsADirectoryError):
        worldwire.open(tmp_path)
    with pytest.raises(worldwire.CaptureError, match="not a pcap"):
        list(worldwire.open(samples / "uru-keys.toml"))
    with pytest.raises(worldwire.CaptureError, match="empty"):
        list(worldwire.open(b""))
    with pytest.raises(TypeError, match="a capture must be"):
        worldwire.open(3)  # type: ignore[arg-type]
    with pytest.raises(worldwire.KeysError, match="not a key file|no keys"):
        worldwire.open(samples / "uru-login.pcapng", keys=samples / "ki-types.json")


def test_a_truncated_capture_returns_what_it_has(samples: Path) -> None:
    file = (samples / "uru-login.pcapng").read_bytes()
    keys = samples / "uru-keys.toml"
    whole = len(list(worldwire.open(file, keys=keys)))
    capture, count = worldwire.open(file[:-100], keys=keys), 0
    with pytest.raises(worldwire.CaptureError) as caught:
        for _ in capture:
            count += 1
    assert 0 < count <= whole and caught.value.offset
    assert list(capture) == []


def test_a_source_that_fails_is_reported() -> None:
    class Broken:
        def read(self, size: int) -> bytes:
            raise RuntimeError("on purpose")

    class Text:
        def read(self, size: int) -> str:
            return "text"

    with pytest.raises(worldwire.CaptureError, match="on purpose"):
        list(worldwire.open(Broken()))
    with pytest.raises(worldwire.CaptureError, match="bytearray"):
        list(worldwire.open(Text()))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["uru-login", "ki-login", "tera-login", "mxo-world"])
def test_damaged_captures_do_no_harm(samples: Path, name: str) -> None:
    draw = random.Random(20260101)
    file = (samples / f"{name}.pcapng").read_bytes()
    for _ in range(20):
        damaged = bytearray(file)
        for _ in range(draw.randrange(1, 40)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        try:
            for message in worldwire.open(damaged, notes=True):
                read_all(message)
        except worldwire.Error:
            pass


def read_all(message: worldwire.Message) -> None:
    message.fields.to_dict()
    message.json(safe=True)
    assert repr(message) and repr(message.fields) and message.fields != {"absent": 3}
    for name in message.fields:
        start, end = message.range(name) if plain(name) else (0, 0)
        assert 0 <= start <= end <= len(message.body)
    try:
        message.encode()
    except worldwire.Error:
        pass


def plain(name: str) -> bool:
    return bool(name) and "." not in name and "[" not in name


SIDES: Tuple[Literal["client"], Literal["server"]] = ("client", "server")


def test_random_bytes_do_no_harm() -> None:
    draw = random.Random(20260101)
    for name, _ in worldwire.codecs():
        for _ in range(30):
            data = draw.randbytes(draw.randrange(60))
            for side in SIDES:
                try:
                    value = worldwire.decode(name, data, side=side)
                    worldwire.encode(name, value, side=side)
                except worldwire.Error:
                    pass


def test_odd_values_do_no_harm() -> None:
    values: list[object] = [None, True, 1.5, float("nan"), "\ud800", b"x", [], {}, {1: 2}, object()]
    values += [{"name": value} for value in values]
    values += [{"name": "ClientRegisterRequest", "fields": value} for value in values]
    for name, _ in worldwire.codecs():
        for value in values:
            try:
                worldwire.encode(name, value)
            except worldwire.Error:
                pass


def test_paths_never_fail_in_other_ways(samples: Path) -> None:
    message = next(worldwire.open(samples / "uru-login.pcapng", keys=samples / "uru-keys.toml"))
    for path in ["", ".", "[", "[]", "[0]", "a[", "a[b]", "a..b", "fields", "fields.", "x" * 10_000]:
        assert message.fields.get(path) is None
        with pytest.raises(KeyError):
            message.range(path)
        with pytest.raises(worldwire.Error):
            message.encode({path: 1})


def test_damaged_logins_do_no_harm() -> None:
    draw = random.Random(20260101)
    session = (1, 1767225600, 5)
    for _ in range(300):
        data = draw.randbytes(draw.randrange(300))
        secret = ki_secret(data, session)
        assert secret is None or secret.isascii()
        try:
            ki_character(data)
        except worldwire.DecodeError:
            pass
        login = AuthLogin("neo", "secret", None)
        assert login.poll() is not None and login.poll() is None
        # The opcodes of an auth server, and an unknown one.
        login.receive(bytes([draw.choice([7, 9, 11, 13])]) + data)
        outcome = login.outcome()
        assert outcome is None or outcome[0] is None
    for account in ("", "x" * 5_000, "\u20ac", "\U0001f600"):
        AuthLogin(account, account, None).receive(b"\x07")
        assert ki_secret(ki_login(account, account, session), session) is None
