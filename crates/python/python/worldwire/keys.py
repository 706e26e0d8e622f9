"""Keys as objects: read key files, extract parts, and write new files.

    keys = Keys.load("keys.toml")
    keys.public().save("server-keys.toml")
    for message in worldwire.open("evening.pcapng", keys=keys):
        print(message)

TERA needs no keys: its connections exchange them unencrypted at the start.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path as _Path
from typing import Dict, List, Literal, Optional, get_args

from ._native import format_keys, load_keys, new_uru_key, parse_keys
from ._types import KeyContents, KeySources, Path

__all__ = ["Keys", "KiAccount", "KiStream", "MxoSession", "Server", "UruServer", "UruSession"]

Server = Literal["gatekeeper", "auth", "game", "csr"]
_SHARD: List[Server] = ["gatekeeper", "auth", "game"]


@dataclass(frozen=True)
class UruServer:
    """The key of one server of an Uru shard. Each number has 64 bytes, most significant first."""

    n: bytes
    """The modulus."""
    x: bytes
    """The public value. Clients need it and the modulus."""
    a: Optional[bytes] = field(default=None, repr=False)
    """The secret, if known. It decrypts all connections to the server, even recorded ones."""

    @classmethod
    def generate(cls, server: Server) -> UruServer:
        """A new key pair."""
        return cls(*new_uru_key(server))

    def public(self) -> UruServer:
        """The key without the secret."""
        return replace(self, a=None)


@dataclass(frozen=True)
class UruSession:
    """The key of one captured connection to an Uru shard."""

    service: str
    """"gatekeeper", "auth" or "game"."""
    seed: bytes
    """The 7 bytes that the server sent, which identify the connection."""
    key: bytes = field(repr=False)
    """7 bytes."""


@dataclass(frozen=True)
class KiStream:
    """The key of an encrypted KI connection."""

    session: Optional[int]
    """The session's ID; None for any session."""
    key: bytes = field(repr=False)
    """16 bytes."""
    nonce: bytes = field(repr=False)
    """The first nonce, 16 bytes."""


@dataclass(frozen=True)
class KiAccount:
    """The secret of a KI account: either the hash of its password, or the CK2 of a login."""

    user: Optional[str]
    """The account's name; None for any account."""
    password_hash: Optional[str] = field(default=None, repr=False)
    """The SHA-512 of the password, in base64."""
    ck2: Optional[str] = field(default=None, repr=False)
    """The CK2 that the server sent after the login, in base64."""


@dataclass(frozen=True)
class MxoSession:
    """The key of a Matrix Online session."""

    id: Optional[int]
    """The session's ID; None if unknown."""
    key: bytes = field(repr=False)
    """16 bytes."""


def _no_servers() -> Dict[Server, UruServer]:
    return {}


@dataclass
class Keys:
    """The keys of all families. Wherever `keys` takes a file, it also takes such an object."""

    servers: Dict[Server, UruServer] = field(default_factory=_no_servers)
    """Uru: the keys of a shard's servers."""
    droid: Optional[bytes] = field(default=None, repr=False)
    """Uru: the key of a shard's encrypted files, 16 bytes."""
    uru_sessions: List[UruSession] = field(default_factory=lambda: [])
    """Uru: the keys of captured connections."""
    ki_streams: List[KiStream] = field(default_factory=lambda: [])
    """KI: the keys of encrypted connections."""
    ki_accounts: List[KiAccount] = field(default_factory=lambda: [])
    """KI: the secrets of accounts."""
    mxo_sessions: List[MxoSession] = field(default_factory=lambda: [])
    """The Matrix Online: the keys of sessions."""

    @classmethod
    def load(cls, keys: KeySources) -> Keys:
        """Read key files, in any format that `--keys` accepts."""
        return cls._of(load_keys(keys))

    @classmethod
    def parse(cls, text: str) -> Keys:
        """Read the text of a key file."""
        return cls._of(parse_keys(text))

    @classmethod
    def generate(cls) -> Keys:
        """New keys for an Uru shard."""
        servers: Dict[Server, UruServer] = {it: UruServer.generate(it) for it in _SHARD}
        return cls(servers, secrets.token_bytes(16))

    def public(self) -> Keys:
        """Only what an Uru shard's clients need: the public parts of the servers' keys."""
        return Keys({server: key.public() for server, key in self.servers.items()})

    def to_toml(self) -> str:
        """The text of a key file. Raises `KeysError` if a key is not valid."""
        names: List[str] = list(self.servers)
        servers = [
            (name, it.n, it.x, it.a) for name, it in zip(names, self.servers.values())
        ]
        return format_keys(
            (
                servers,
                self.droid,
                [(it.service, it.seed, it.key) for it in self.uru_sessions],
                [(it.session, it.key, it.nonce) for it in self.ki_streams],
                [(it.user, it.password_hash, it.ck2) for it in self.ki_accounts],
                [(it.id, it.key) for it in self.mxo_sessions],
            )
        )

    def save(self, path: Path) -> None:
        """Write a key file that only its owner can read. An existing file is replaced atomically."""
        text, target = self.to_toml(), _Path(path)
        # The file is created with these permissions.
        handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise

    @classmethod
    def _of(cls, contents: KeyContents) -> Keys:
        servers, droid, uru, streams, accounts, mxo = contents
        known = {server: UruServer(n, x, a) for server, n, x, a in servers}
        return cls(
            {server: known[server] for server in get_args(Server) if server in known},
            droid,
            [UruSession(*it) for it in uru],
            [KiStream(*it) for it in streams],
            [KiAccount(*it) for it in accounts],
            [MxoSession(*it) for it in mxo],
        )
