"""Captures: messages, filters, live input."""

import io
import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any, Dict, List, Tuple, cast

import pytest

import worldwire

# Every sample with what it needs, as arguments for the program and for `open`.
CAPTURES: List[Tuple[str, Dict[str, str]]] = [
    ("uru-login.pcapng", {"keys": "uru-keys.toml"}),
    ("uru-age.pcapng", {"keys": "uru-keys.toml", "data": "sdl"}),
    ("uru-games.pcapng", {"keys": "uru-keys.toml"}),
    ("ki-login.pcapng", {"keys": "ki-keys.toml", "data": "ki-messages"}),
    ("ki-server.pcapng", {"keys": "ki-keys.toml", "data": "ki-messages"}),
    ("tera-login.pcapng", {"data": "tera"}),
    ("mxo-world.pcapng", {"keys": "mxo-keys.toml"}),
    ("mxo-crowd.pcapng", {"keys": "mxo-crowd-keys.toml"}),
]


def opened(samples: Path, name: str, needs: Dict[str, str], **more: Any) -> worldwire.Capture:
    paths = {key: samples / value for key, value in needs.items()}
    return worldwire.open(samples / name, **paths, **more)  # type: ignore[arg-type]


def program(root: Path) -> Path:
    path = Path(os.environ.get("WORLDWIRE_PROGRAM", root / "target" / "debug" / "worldwire"))
    if not path.is_file():
        pytest.skip(f"{path} is not built")
    return path


@pytest.mark.parametrize(("name", "needs"), CAPTURES)
def test_messages_are_those_of_the_program(
    root: Path, samples: Path, name: str, needs: Dict[str, str]
) -> None:
    options = [f"--{key}={samples / value}" for key, value in needs.items()]
    command = [str(program(root)), "dissect", str(samples / name), "--json", "--quiet", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    expected = done.stdout.splitlines()
    messages = list(opened(samples, name, needs, notes=True))
    assert [message.json() for message in messages] == expected
    assert len(messages) > 4


@pytest.mark.parametrize(("name", "needs"), CAPTURES)
def test_fields_are_those_of_the_json(samples: Path, name: str, needs: Dict[str, str]) -> None:
    for message in opened(samples, name, needs, notes=True):
        line = json.loads(message.json())
        assert line["name"] == message.name and line["from"] == message.side
        assert line["stream"] == message.stream and line["packet"] == message.packet
        assert (line["src"], line["srcport"]) == (message.src, message.srcport)
        assert (line["dst"], line["dstport"]) == (message.dst, message.dstport)
        assert tuple(line["range"]) == message.position
        seconds, nanos = message.json().split('"time":')[1].split(",")[0].split(".")
        assert int(seconds) * 10**9 + int(nanos) == message.time_ns
        assert same(line["fields"], message.fields.to_dict()), message
        assert list(message.fields) == list(line["fields"])


def same(from_json: Any, value: Any) -> bool:
    """Whether a value equals its JSON form, in which bytes and some floats are text."""
    if isinstance(value, bytes):
        return bool(from_json == {"$hex": value.hex()})
    if isinstance(value, dict):
        fields = cast(Dict[str, Any], value)
        return from_json.keys() == fields.keys() and all(
            same(from_json[name], field) for name, field in fields.items()
        )
    if isinstance(value, list):
        items: List[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return len(from_json) == len(items) and all(map(same, from_json, items))
    if isinstance(value, float) and isinstance(from_json, float):
        return abs(from_json - value) <= 1e-6 * abs(value)
    return type(from_json) is type(value) and bool(from_json == value)


@pytest.mark.parametrize(("name", "needs"), CAPTURES)
def test_unchanged_messages_encode_to_their_bytes(
    samples: Path, name: str, needs: Dict[str, str]
) -> None:
    count = 0
    for message in opened(samples, name, needs):
        try:
            encoded = message.encode()
        except worldwire.EncodeError as error:
            assert "connection setup" in str(error), message
            continue
        # KI control messages use the codec for frames.
        is_frame = message.family == "ki" and message.name.startswith("control.")
        assert encoded == (message.bytes if is_frame else message.body), message
        assert message.body in message.bytes
        count += 1
    assert count > 3


def test_fields_are_read_by_name_attribute_and_path(samples: Path) -> None:
    needs = {"keys": "uru-keys.toml"}
    fetched = next(opened(samples, "uru-login.pcapng", needs, filter="fields.node.Text_1"))
    fields = fetched.fields
    assert fetched.name == "auth.VaultNodeFetched"
    assert fields["transId"] == fields.transId == 10
    assert fields.node.Text_1 == fields["node.Text_1"] == fields["node"]["Text_1"] == "yes"
    assert "node.Text_1" in fields and "node.Text_2" not in fields
    number: object = 3
    assert number not in fields
    assert fields.get("absent") is None and fields.get("absent", 5) == 5
    assert fields.keys() == ["transId", "result", "node"] and len(fields) == 3
    assert dict(fields)["transId"] == 10 and fields == fields.to_dict()
    assert "node" in dir(fields) and repr(fields).startswith("Record({'transId': 10,")
    with pytest.raises(KeyError, match="did you mean `transId`"):
        fields["transID"]
    with pytest.raises(AttributeError, match="did you mean `transId`"):
        fields.transID


def test_fields_are_read_only(samples: Path) -> None:
    needs = {"keys": "uru-keys.toml"}
    fields: Any = next(opened(samples, "uru-login.pcapng", needs)).fields
    with pytest.raises(TypeError, match="read-only"):
        fields["name"] = 1
    with pytest.raises(AttributeError, match="`encode` of the message"):
        fields.name = 1
    with pytest.raises(TypeError, match="read-only"):
        del fields["name"]


def test_ranges_are_positions_in_the_body(samples: Path) -> None:
    needs = {"keys": "uru-keys.toml"}
    login = next(opened(samples, "uru-login.pcapng", needs, filter="auth.AcctLoginRequest"))
    start, end = login.range("transId")
    assert int.from_bytes(login.body[start:end], "little") == login.fields.transId
    assert login.range("fields.transId") == (start, end)
    start, end = login.range("accountName")
    assert login.fields.accountName.encode("utf-16-le") in login.body[start:end]
    with pytest.raises(KeyError, match="no field `absent`"):
        login.range("absent")


def test_changed_messages_are_encoded(samples: Path) -> None:
    needs = {"keys": "uru-keys.toml"}
    login = next(opened(samples, "uru-login.pcapng", needs, filter="auth.AcctLoginRequest"))
    changed = login.encode({"accountName": "atrus@example.org", "transId": 2**32 - 1})
    decoded = worldwire.decode("uru.auth", changed)
    assert decoded["fields.accountName"] == "atrus@example.org"
    assert decoded.fields.transId == 2**32 - 1
    with pytest.raises(worldwire.EncodeError) as caught:
        login.encode({"transId": 2**32})
    assert caught.value.path is not None and "transId" in caught.value.path
    with pytest.raises(worldwire.EncodeError, match="no field `absent`"):
        login.encode({"absent": 1})
    with pytest.raises(worldwire.EncodeError):
        login.encode({"transId": object()})


def test_filters_select_and_are_checked(samples: Path) -> None:
    needs = {"keys": "uru-keys.toml"}

    def names(text: str) -> List[str]:
        return [message.name for message in opened(samples, "uru-login.pcapng", needs, filter=text)]

    assert names("auth.AcctLogin*") == ["auth.AcctLoginRequest", "auth.AcctLoginReply"]
    assert names("auth.AcctLogin* and from == server") == ["auth.AcctLoginReply"]
    with pytest.raises(worldwire.FilterError) as caught:
        names("result = 3")
    assert caught.value.offset == 7 and caught.value.hint == "did you mean `==`?"
    with pytest.raises(worldwire.FilterError, match="did you mean `AcctLoginRequest`"):
        names("AcctLoginReqest")
    with pytest.warns(worldwire.WorldwireWarning, match="no known message matches"):
        assert names("auth.Zzz*") == []


def test_live_input_is_read_as_it_arrives(samples: Path) -> None:
    needs = {"keys": "uru-keys.toml"}
    expected = [message.json() for message in opened(samples, "uru-login.pcapng", needs)]
    file = (samples / "uru-login.pcapng").read_bytes()
    keys = samples / "uru-keys.toml"
    for source in (file, bytearray(file), io.BytesIO(file)):
        assert [message.json() for message in worldwire.open(source, keys=keys)] == expected
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as pipe, os.fdopen(writer, "wb", buffering=0) as sink:
        capture = worldwire.open(pipe, keys=keys)
        sink.write(file)
        # The pipe is still open: nothing waits for its end, except the last packets of a batch.
        assert [next(capture).json() for _ in range(10)] == expected[:10]
        capture.close()
        assert list(capture) == []


def test_a_capture_can_be_closed_early(samples: Path) -> None:
    needs = {"keys": "uru-keys.toml"}
    with opened(samples, "uru-login.pcapng", needs) as capture:
        first = next(capture)
    assert list(capture) == [] and first.fields.to_dict()


def test_a_capture_is_shared_by_threads(samples: Path) -> None:
    capture = opened(samples, "uru-login.pcapng", {"keys": "uru-keys.toml"})
    found: List[str] = []

    def work() -> None:
        found.extend(message.json() for message in capture)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = opened(samples, "uru-login.pcapng", {"keys": "uru-keys.toml"})
    assert sorted(found) == sorted(message.json() for message in again)


def test_ctrl_c_stops_waiting() -> None:
    code = """
import os, signal, threading, worldwire
reader, writer = os.pipe()
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    next(worldwire.open(os.fdopen(reader, "rb")))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=30)
    assert done.stdout == "interrupted\n"


def test_missing_definitions_are_reported(samples: Path) -> None:
    with pytest.warns(worldwire.DefinitionsWarning) as caught:
        messages = list(worldwire.open(samples / "tera-login.pcapng"))
    hint = (
        "tera.24510 has no definition, so it is shown as bytes: "
        "pass definitions (.def) and the opcode map as `data`"
    )
    assert [str(it.message) for it in caught] == [hint] and caught[0].filename == __file__
    hints = {message.name: message.hint for message in messages}
    assert hints["tera.24510"] == hint and hints["tera.C_CHECK_VERSION"] is None
    assert sum(message.hint is not None for message in messages) == 13
    with pytest.warns(worldwire.DefinitionsWarning) as caught:
        messages = list(worldwire.open(samples / "ki-login.pcapng", keys=samples / "ki-keys.toml"))
    assert [str(it.message) for it in caught] == [
        "LOGIN.MSG_CHARACTERINFO.CharacterInfo is an object shown as bytes: pass a type list as `data`",
        "200.1 has no definition, so it is shown as bytes: pass this revision's message XML as `data`",
    ]
    assert {str(it.message) for it in caught} == {it.hint for it in messages} - {None}
    with pytest.warns(worldwire.DefinitionsWarning, match=r"pass descriptors \(\.sdl files\) as `data`"):
        list(opened(samples, "uru-walk.pcapng", {"keys": "uru-keys.toml"}))
    with pytest.warns(worldwire.DefinitionsWarning, match="opcode map") as caught:
        worldwire.open(samples / "tera-login.pcapng").table(["name", "payload"])
    assert len(caught) == 1 and caught[0].filename == __file__
    with pytest.warns(worldwire.DefinitionsWarning, match="tera.51042 .* pass an opcode map that names it"):
        list(opened(samples, "tera-login.pcapng", {"data": "tera"}))


def test_complete_definitions_cause_no_warning(samples: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, needs in [CAPTURES[0], CAPTURES[1], CAPTURES[6]]:
            assert all(message.hint is None for message in opened(samples, name, needs))


def test_ranges_take_the_paths_of_filters(samples: Path) -> None:
    needs = {"keys": "uru-keys.toml"}
    fetched = next(opened(samples, "uru-login.pcapng", needs, filter="Text_1 == \"yes\""))
    whole = fetched.range("fields.node.Text_1")
    assert whole == fetched.range("node.Text_1") == fetched.range("Text_1")
    assert "yes".encode("utf-16le") in fetched.body[slice(*whole)]
    with pytest.raises(KeyError, match="auth.VaultNodeFetched has no field `Text_2`"):
        fetched.range("Text_2")
    with pytest.raises(KeyError, match="no field `Text_1` here; write the full path: `node.Text_1`"):
        fetched.fields["Text_1"]
    assert "Text_1" not in fetched.fields and fetched.fields.get("Text_1") is None
    assert not hasattr(fetched.fields, "__Text_1__")
    age = {**needs, "data": "sdl"}
    members = next(opened(samples, "uru-age.pcapng", age, filter="exists(members)"))
    # A name after a list refers to all its elements. Fields nearer to the top come first.
    inside = members.range("buffer.message.members[0].client.playerId")
    assert inside == members.range("client.playerId") == members.range("members.client.playerId")
    assert members.range("playerId") == members.range("buffer.message.playerId") != inside
    listed = next(opened(samples, "uru-login.pcapng", needs, filter="file.ManifestReply"))
    paths = r"`manifest\[0\].md5` or `manifest\[1\].md5`; write the full path"
    with pytest.raises(KeyError, match=f"in file.ManifestReply, `md5` can mean {paths}"):
        listed.range("md5")
