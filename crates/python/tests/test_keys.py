"""Keys as objects."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

import worldwire
from worldwire.keys import Keys, KiAccount, KiStream, MxoSession, UruServer, UruSession

FILES = ["uru-keys.toml", "ki-keys.toml", "ki-server-keys.toml", "mxo-keys.toml", "mxo-crowd-keys.toml"]


def test_files_become_objects_and_back(samples: Path, tmp_path: Path) -> None:
    keys = Keys.load([samples / name for name in FILES])
    assert list(keys.servers) == ["gatekeeper", "auth", "game"] and keys.droid is not None
    assert keys.droid.hex() == "31415926535897932384626433832795"
    assert [it.user for it in keys.ki_accounts] == ["Merle", "merle"]
    assert {it.id for it in keys.mxo_sessions} == {1, 0x1F2E3D4C}, "the same key, twice"
    keys.ki_streams.append(KiStream(1419, bytes(range(16)), bytes(16)))
    keys.uru_sessions.append(UruSession("auth", bytes(7), bytes(range(7))))
    keys.ki_accounts.append(KiAccount('"\x7f\n', ck2="c2VjcmV0"))
    path = tmp_path / "all.toml"
    keys.save(path)
    assert Keys.load(path) == Keys.parse(path.read_text()) == keys
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    # Objects and files can be mixed.
    assert Keys.load([keys, samples / "uru-keys.toml"]).servers == keys.servers
    for secret in (keys.servers["auth"].a, keys.droid, keys.mxo_sessions[0].key):
        assert repr(secret) not in repr(keys)


def test_objects_decrypt_captures(samples: Path) -> None:
    path, keys = samples / "uru-login.pcapng", Keys.load(samples / "uru-keys.toml")
    names = [message.name for message in worldwire.open(path, keys=keys)]
    assert names == [message.name for message in worldwire.open(path, keys=samples / "uru-keys.toml")]
    assert "auth.AcctLoginRequest" in names
    only_public = [message.name for message in worldwire.open(path, keys=keys.public())]
    assert "auth.AcctLoginRequest" not in only_public
    assert Keys().to_toml() == "" and list(worldwire.open(path, keys=Keys()))


def test_new_keys_work(samples: Path) -> None:
    key = UruServer.generate("auth")
    assert key.a is not None and key.public().a is None
    keys = Keys({"auth": key})
    client = worldwire.Connection.uru("client", keys=keys.public())
    server = worldwire.Connection.uru("server", keys=keys)
    for _ in range(3):
        for source, target in [(client, server), (server, client)]:
            while (data := source.transmit()) is not None:
                target.receive(data)
            target.events()
    assert client.is_established and server.is_established


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (Keys({"auth": UruServer(bytes(64), bytes(64))}), "the key of the auth server: .* 0 bits"),
        (Keys({"auth": UruServer(b"1", bytes(64))}), "n of the auth server must have 64 bytes, not 1"),
        (Keys(droid=b"1"), "the droid key must have 16 bytes, not 1"),
        (Keys(uru_sessions=[UruSession("mail", bytes(7), bytes(7))]), 'unknown service "mail"'),
        (Keys(ki_streams=[KiStream(0, bytes(16), bytes(16))]), "from 1 to 65535"),
        (Keys(ki_accounts=[KiAccount("ann")]), "either password_hash or ck2"),
        (Keys(ki_accounts=[KiAccount("ann", password_hash="x")]), "a SHA-512 hash in base64"),
        (Keys(mxo_sessions=[MxoSession(None, b"")]), "must have 16 bytes, not 0"),
    ],
)
def test_mistakes_are_reported(keys: Keys, problem: str, tmp_path: Path) -> None:
    with pytest.raises(worldwire.KeysError, match=problem):
        keys.save(tmp_path / "keys.toml")
    with pytest.raises(worldwire.KeysError, match=problem):
        worldwire.Context(keys=keys)
    assert list(tmp_path.iterdir()) == []


def test_a_secret_must_fit_its_public_value(samples: Path) -> None:
    keys = Keys.load(samples / "uru-keys.toml")
    game, auth = keys.servers["game"], keys.servers["auth"]
    keys.servers["game"] = replace(game, a=auth.a)
    with pytest.raises(worldwire.KeysError, match="the game server: .* not g\\^a mod n"):
        keys.to_toml()
    with pytest.raises(worldwire.KeysError):
        Keys.parse("not a key file")
    with pytest.raises(FileNotFoundError):
        Keys.load(samples / "no-keys.toml")
