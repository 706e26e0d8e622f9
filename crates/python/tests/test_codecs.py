"""Single messages and files."""

import json
from pathlib import Path

import pytest

import worldwire
from worldwire.tera import TeraCatalog
from worldwire.uru import StateCatalog


def test_a_message_is_decoded_and_encoded() -> None:
    data = bytes.fromhex("010096030000")
    message = worldwire.decode("uru.auth", data)
    assert message.name == "ClientRegisterRequest" and message.fields.buildId == 918
    assert worldwire.encode("uru.auth", message) == data
    fields = {"name": "ClientRegisterRequest", "fields": {"buildId": 918}}
    assert worldwire.encode("uru.auth", fields) == data


def test_a_file_is_decoded_changed_and_encoded(samples: Path) -> None:
    data = (samples / "uru-vault-node.bin").read_bytes()
    node = worldwire.decode("uru.vault-node", data)
    assert node.PlayerName == "Yeesha"
    assert worldwire.encode("uru.vault-node", node) == data
    changed = worldwire.encode("uru.vault-node", {**node, "IString64_1": "Atrus", "PlayerName": "Atrus"})
    assert worldwire.decode("uru.vault-node", changed).PlayerName == "Atrus"


def test_definitions_and_type_lists_are_used(samples: Path) -> None:
    context = worldwire.Context(data=[samples / "tera"])
    names = [name for name, _ in worldwire.codecs()]
    assert "tera.packet" in names and "ki.dml" in names
    with pytest.raises(worldwire.DefinitionsError) as caught:
        worldwire.Context(data=samples / "uru-keys.toml")
    assert caught.value.path == str(samples / "uru-keys.toml") and caught.value.hint
    assert isinstance(context, worldwire.Context)


def test_errors_have_path_offset_hint_and_what_was_decoded() -> None:
    with pytest.raises(worldwire.DecodeError) as caught:
        worldwire.decode("uru.auth", bytes.fromhex("010096"))
    error = caught.value
    assert error.path == "fields.buildId" and error.offset == 2
    assert error.partial.name == "ClientRegisterRequest"
    with pytest.raises(worldwire.DecodeError, match="did you mean \"uru.auth\"") as unknown:
        worldwire.decode("uru.auht", b"")
    assert unknown.value.hint == "did you mean \"uru.auth\"?"
    with pytest.raises(worldwire.DecodeError, match=r"worldwire.codecs\(\)"):
        worldwire.decode("something else", b"")
    with pytest.raises(ValueError, match="side must be"):
        worldwire.decode("uru.auth", b"", side="both")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        worldwire.decode("uru.auth", "text")  # type: ignore[arg-type]


def test_whole_numbers_are_exact() -> None:
    node = worldwire.encode("uru.vault-node", {"NodeId": 1, "UInt32_1": 2**32 - 1})
    assert worldwire.decode("uru.vault-node", node).UInt32_1 == 2**32 - 1
    with pytest.raises(worldwire.EncodeError, match="at most 64 bits") as caught:
        worldwire.encode("uru.vault-node", {"NodeId": 2**64})
    assert caught.value.path == "NodeId"


def test_values_that_never_end_are_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(worldwire.LimitError, match="depth"):
        worldwire.encode("uru.vault-node", {"NodeId": endless})
    wide: object = 1
    for _ in range(60):
        wide = [wide, wide]
    with pytest.raises(worldwire.LimitError, match="nodes"):
        worldwire.encode("uru.vault-node", {"NodeId": wide})


def test_records_are_mappings() -> None:
    message = worldwire.decode("uru.auth", bytes.fromhex("010096030000"))
    match_keys = {**message.fields}
    assert match_keys == {"buildId": 918}
    assert json.dumps(message.to_dict()) == '{"name": "ClientRegisterRequest", "fields": {"buildId": 918}}'


def test_definitions_are_objects(samples: Path) -> None:
    tera = TeraCatalog(samples / "tera")
    assert "S_CHAT" in tera.names() and 2 in tera.versions("S_CHAT")
    fields = tera.fields("S_CHAT", 2)
    assert fields[0] == (0, "channel", "uint32") and (0, "gm", "bool") in fields
    assert tera.fields("S_CHAT") == tera.fields("S_CHAT", tera.versions("S_CHAT")[-1])
    (revision,) = tera.revisions()
    assert tera.opcodes(revision)["C_CHECK_VERSION"] == 19900
    with pytest.raises(KeyError, match="did you mean `S_CHAT`"):
        tera.fields("S_CHATT")
    with pytest.raises(KeyError, match="it has"):
        tera.fields("S_CHAT", 99)
    with pytest.raises(KeyError):
        tera.opcodes(1)
    with pytest.raises(KeyError):
        tera.system_messages("1.0")
    states = StateCatalog(samples / "sdl")
    name = states.names()[0]
    assert states.variables(name) == states.variables(name, states.versions(name)[-1])
    assert all(kind for _, kind, _ in states.variables(name))
    with pytest.raises(KeyError):
        states.variables("absent")
