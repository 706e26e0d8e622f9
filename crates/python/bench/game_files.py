"""Generates files like those of a client: a type list, a list of all templates and an archive.

The number of classes, properties, enumerations and files, and the size of the list, are those of a real
client; the number of templates is of the same order. The contents are made up. Objects are encoded as in
a client's files.
"""

from __future__ import annotations

import json
import random
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from worldwire.ki import Archive

MANIFEST = "TemplateManifest.xml"
SEED = 20260101
WORDS = (
    "Ash Ember Frost Gale Moss Thorn Tower Gate Wolf Raven Crown Blade Staff Robe Boots Ring Deck Pet "
    "Mount House Spell Quest Zone Door Chest Boss Minion Aura Charm Ward Storm Myth Life Death Balance"
).split()
STEMS = "count level rank value speed delay range chance offset limit order index weight bonus".split()


@dataclass(frozen=True)
class Sizes:
    """How much to generate."""

    entries: int
    classes: int
    enums: int
    templates: int
    files: int


# Those of a client, and those of a test.
REAL = Sizes(entries=6_981, classes=2_205, enums=140, templates=100_000, files=173_088)
SMALL = Sizes(entries=30, classes=10, enums=2, templates=20, files=40)


def generate(folder: Path, sizes: Sizes) -> None:
    """Writes types.json, TemplateManifest.xml and Root.wad."""
    draw = random.Random(SEED)
    classes = type_list(draw, sizes)
    listed = {"version": 2, "classes": {str(it["hash"]): it for it in classes}}
    (folder / "types.json").write_text(json.dumps(listed, indent=1))
    objects = Objects(draw, classes)
    names = [f"ObjectData/{path}.xml" for path in paths(draw, sizes.templates)]
    manifest = template_manifest(draw, names)
    (folder / MANIFEST).write_bytes(manifest)
    files = {MANIFEST: manifest, **dict(archived(draw, sizes.files - 1, names, objects))}
    Archive.create(folder / "Root.wad", files, level=6)


def type_list(draw: random.Random, sizes: Sizes) -> List[Dict[str, Any]]:
    """Classes that inherit and repeat properties, enumerations, and entries for other types."""
    enums = [
        {
            "name": f"enum {draw.choice(WORDS)}Kind{number}",
            "options": {f"{word.upper()}_{number}": at for at, word in enumerate(draw.sample(WORDS, 6))},
        }
        for number in range(sizes.enums)
    ]
    location = [own("m_filename", "std::string"), own("m_id", "unsigned int")]
    each = own("m_serializedTemplates", "class TemplateLocation*", container="List")
    made = [entry("class TemplateLocation", location), entry("class TemplateManifest", [each])]
    plain = ["int", "unsigned int", "float", "bool", "std::string", "gid", "class Color"]
    inherited: List[List[Dict[str, Any]]] = [[]]
    for number in range(sizes.classes - len(made)):
        properties = list(draw.choice(inherited))
        for turn in range(draw.randint(3, 8)):
            name = f"m_{draw.choice(STEMS)}{draw.choice(WORDS)}{number}_{turn}"
            kind = draw.random()
            if kind < 0.05 and enums:
                enum = draw.choice(enums)
                properties.append(own(name, enum["name"], enum_options=enum["options"], flags=0x20001F))
            elif kind < 0.14 and number > 2:
                other = f"class {draw.choice(made)['name'].split()[1]}*"
                properties.append(own(name, other, container=draw.choice(["Static", "List"])))
            else:
                properties.append(own(name, draw.choice(plain)))
        if len(properties) < 24:
            inherited.append(properties)
        made.append(entry(f"class {draw.choice(WORDS)}{draw.choice(WORDS)}{number}", properties))
    made += [entry(it["name"], []) for it in enums]
    # Pointers to classes have entries of their own.
    targets = [it["name"] for it in made[: sizes.classes]]
    forms = [f"{name}*" for name in targets]
    forms += [f"class SharedPointer<{name}>" for name in targets]
    forms += [f"class std::vector<{name}>" for name in targets]
    made += [entry(name, []) for name in forms[: sizes.entries - len(made)]]
    return made


def own(name: str, of: str, container: str = "Static", flags: int = 31, **more: Any) -> Dict[str, Any]:
    return {
        "name": name,
        "type": of,
        "container": container,
        "dynamic": container != "Static",
        "flags": flags,
        "hash": property_hash(of, name),
        "pointer": of.endswith("*"),
        "singleton": False,
        **more,
    }


def entry(name: str, properties: List[Dict[str, Any]]) -> Dict[str, Any]:
    placed = {
        it["name"]: {
            **{key: value for key, value in it.items() if key != "name"},
            "id": number,
            "offset": 72 + 8 * number,
        }
        for number, it in enumerate(properties)
    }
    bases = ["PropertyClass"] if properties else []
    about = {"name": name, "bases": bases, "hash": string_id(name), "singleton": False}
    return {**about, "properties": placed}


class Objects:
    """Encodes objects of a type list's classes, as files hold them."""

    def __init__(self, draw: random.Random, classes: List[Dict[str, Any]]) -> None:
        self._draw = draw
        self._by_name = {it["name"]: it for it in classes}
        self._usual = [it for it in classes if len(it["properties"]) > 3]

    def file(self) -> bytes:
        # Flags: stored in the file, short lengths, enumerations by name.
        data, _ = self._object(self._draw.choice(self._usual), 0)
        return b"BINd" + struct.pack("<I", 7) + data

    def _object(self, of: Dict[str, Any], depth: int) -> Tuple[bytes, int]:
        """An object and its size in bits, which need not be a whole number of bytes."""
        parts, total, padding = [], 32, 0
        for it in of["properties"].values():
            value, bits = self._value(it, depth)
            size = padding + 64 + bits
            parts.append(struct.pack("<II", size, it["hash"]) + value)
            total, padding = total + size, -bits % 8
        return struct.pack("<II", of["hash"], total) + b"".join(parts), 32 + total

    def _value(self, it: Dict[str, Any], depth: int) -> Tuple[bytes, int]:
        """A value and its size in bits."""
        draw, of = self._draw, it["type"]
        if of == "bool":
            return bytes([draw.randint(0, 1)]), 1
        if of.endswith("*"):
            target = self._by_name.get(of[:-1])
            count = draw.randint(0, 2) if it["dynamic"] else 1
            data = packed_length(count) if it["dynamic"] else b""
            bits = 8 * len(data)
            for _ in range(count):
                inside = (bytes(4), 32)
                if target and depth < 2:
                    inside = self._object(target, depth + 1)
                bits = 8 * len(data) + inside[1]
                data += inside[0]
            return data, bits
        data = self._bytes(it)
        return data, 8 * len(data)

    def _bytes(self, it: Dict[str, Any]) -> bytes:
        draw, of = self._draw, it["type"]
        if "enum_options" in it:
            return packed_text(draw.choice(list(it["enum_options"])).encode())
        if of == "std::string":
            return packed_text("".join(draw.choices(WORDS, k=draw.randint(0, 4))).encode())
        if of == "float":
            return struct.pack("<f", draw.randint(0, 400) / 4)
        if of == "gid":
            return struct.pack("<Q", draw.getrandbits(57))
        return struct.pack("<I", draw.choice([0, 0, 0, 1, draw.randint(0, 100_000)]))


def template_manifest(draw: random.Random, names: List[str]) -> bytes:
    filename, number = own("m_filename", "std::string"), own("m_id", "unsigned int")
    each = own("m_serializedTemplates", "class TemplateLocation*", container="List")
    location = string_id("class TemplateLocation")
    parts, at = [], 100
    for name in names:
        at += draw.randint(1, 12)
        path = packed_text(name.encode())
        path = struct.pack("<II", 8 * (8 + len(path)), filename["hash"]) + path
        parts.append(whole_object(location, path + struct.pack("<III", 96, number["hash"], at)))
    value = packed_length(len(parts)) + b"".join(parts)
    value = struct.pack("<II", 8 * (8 + len(value)), each["hash"]) + value
    return b"BINd" + struct.pack("<I", 7) + whole_object(string_id("class TemplateManifest"), value)


def string_id(value: str) -> int:
    """The hash of a class's name, and of a type in a property's hash."""
    total, shift = 0, 0
    for byte in value.encode():
        total ^= (byte - 32) << shift
        total ^= (byte - 32) >> (32 - shift) if shift > 24 else 0
        total, shift = total & 0xFFFF_FFFF, (shift + 5) % 32
    return total if total < 1 << 31 else (1 << 32) - total


def property_hash(of: str, name: str) -> int:
    total = 5381
    for byte in name.encode():
        total = (total * 33 + byte) & 0xFFFF_FFFF
    return (string_id(of) + (total & 0x7FFF_FFFF)) & 0xFFFF_FFFF


def whole_object(tag: int, properties: bytes) -> bytes:
    return struct.pack("<II", tag, 8 * (4 + len(properties))) + properties


def packed_text(value: bytes) -> bytes:
    return packed_length(len(value)) + value


def packed_length(length: int) -> bytes:
    return bytes([length << 1]) if length < 0x80 else struct.pack("<I", length << 1 | 1)


def paths(draw: random.Random, count: int) -> Iterator[str]:
    for number in range(count):
        folder = "/".join(draw.sample(WORDS, draw.randint(1, 3)))
        yield f"{folder}/{draw.choice(WORDS)}-{draw.choice(WORDS)}-{number:06}"


def archived(
    draw: random.Random, count: int, names: List[str], objects: Objects
) -> Iterator[Tuple[str, bytes]]:
    """Nine of ten files are objects; of the others, half are sounds, which are not compressed."""
    others = count // 10
    own = names[: count - others]
    more = [f"StateData/{path}.xml" for path in paths(draw, count - others - len(own))]
    usual = [objects.file() for _ in range(min(len(own) + len(more), 3_000))]
    for number, name in enumerate(own + more):
        yield name, usual[number % len(usual)]
    for number, path in enumerate(paths(draw, others)):
        size = min(int(draw.lognormvariate(8.8, 1.0)), 400_000)
        if number % 2:
            yield f"Sound/{path}.ogg", draw.randbytes(size)
        else:
            yield f"Locale/{path}.lang", " ".join(draw.choices(WORDS, k=size // 4)).encode("utf-16")
