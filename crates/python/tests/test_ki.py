"""KI: type lists and objects."""

import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import worldwire
from worldwire.ki import Archive, TypeList


def test_objects_are_read_changed_and_encoded(samples: Path) -> None:
    types = TypeList(samples / "ki-types.json")
    data = (samples / "ki-pet.xml").read_bytes()
    pet = types.decode(data)
    assert repr(pet) == "<class MadeUpPet>"
    assert pet["m_snacks[0].m_points"] == 25 and pet["m_snacks[1]"] is None
    assert pet.to_dict()["$class"] == "class MadeUpPet"
    assert pet.encode() == data
    pet["m_snacks[0].m_points"] = 7
    pet["m_name"] = "Ember"
    del pet["m_snacks[1]"]
    again = types.decode(pet.encode())
    assert again["m_snacks"] == [pet["m_snacks[0]"]] and again["m_snacks[0].m_points"] == 7
    assert again["m_name"] == "Ember" and again.json() == pet.json()


def test_objects_list_their_properties(samples: Path) -> None:
    types = TypeList(samples / "ki-types.json")
    assert repr(types) == f"<type list, {len(types)} classes>"
    pet = types.decode((samples / "ki-pet.xml").read_bytes())
    assert list(pet) == pet.keys() and len(pet) == len(types.properties("class MadeUpPet"))
    assert sorted(pet) == sorted(types.properties("class MadeUpPet"))
    assert "m_name" in pet and "m_snacks[0].m_points" in pet
    number: object = 3
    assert "m_absent" not in pet and "" not in pet and number not in pet
    with pytest.raises(KeyError, match="did you mean `m_name`"):
        pet["m_nam"]


def test_a_path_leads_to_every_element(samples: Path) -> None:
    types = TypeList(samples / "ki-types.json")
    pet = types.decode((samples / "ki-pet.xml").read_bytes())
    # The second snack is null.
    assert pet["m_snacks[*].m_points"] == [25] and pet["m_snacks[*]"] == pet["m_snacks"]
    pet["m_snacks"] = [{**pet["m_snacks[0]"], "m_points": number} for number in range(30)]
    assert pet["m_snacks[*].m_points"] == [part["m_points"] for part in pet["m_snacks"]]
    assert pet["m_snacks[*].m_absent"] == []
    for path in ("m_absent[*].m_points", "m_name[*]", "[*]"):
        with pytest.raises(KeyError):
            pet[path]


def test_a_list_has_rows(samples: Path) -> None:
    types = TypeList(samples / "ki-types.json")
    pet = types.decode((samples / "ki-pet.xml").read_bytes())
    # The second snack is null.
    first, second = pet.rows("m_snacks", ["m_points", "$class"])
    assert first == (25, "class MadeUpSnack") and second == (None, None)
    part = pet["m_snacks[0]"]
    # More than are created at once.
    pet["m_snacks"] = [{**part, "m_points": at % 32, "m_templateID": at} for at in range(1_500)]
    rows = pet.rows("m_snacks", ["m_templateID", "m_points", "m_isLiked"])
    pet["m_snacks[1400].m_points"] = 5
    assert list(rows) == [(at, at % 32, part["m_isLiked"]) for at in range(1_500)]
    assert list(pet.rows("m_snacks", ["m_points"]))[1_400] == (5,)
    assert pet["m_snacks[*].m_points"] == [points for (points,) in pet.rows("m_snacks", ["m_points"])]
    assert list(pet.rows("m_tricks", [""]))[:1] == [(trick,) for trick in pet["m_tricks"]][:1]
    # A part of a value, and a property of another class.
    assert {x for (x,) in pet.rows("m_snacks", ["m_position.x"])} == {None}
    pet["m_snacks"] = []
    assert list(pet.rows("m_snacks", ["m_points"])) == []
    for path in ("m_absent", "m_name", ""):
        with pytest.raises(KeyError):
            pet.rows(path, ["m_points"])
    pet["m_snacks"] = [part]
    with pytest.raises(KeyError, match="did you mean `m_points`"):
        pet.rows("m_snacks", ["m_point"])


def test_clients_are_imported_when_they_are_used() -> None:
    program = """
import sys
before = set(sys.modules)
import worldwire
from worldwire.ki import Archive, TypeList
new = set(sys.modules) - before
assert not new & {"asyncio", "typing", "json", "collections", "dataclasses", "re"}, sorted(new)
import worldwire.ki
for module in (worldwire, worldwire.ki):
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert not hasattr(module, "absent")
assert worldwire.connection.Connection is worldwire.Connection
assert "asyncio" in sys.modules
"""
    # Without the site's own start files, which can import anything.
    paths = f"import sys; sys.path[:] = {sys.path!r}\n"
    subprocess.run([sys.executable, "-S", "-c", paths + program], check=True)


def test_mistakes_are_reported(samples: Path) -> None:
    types = TypeList([samples / "ki-types.json"])
    assert len(types) > 2 and "class MadeUpPet" in types and "class Absent" not in types
    assert "m_snacks" in types.properties("class MadeUpPet")
    with pytest.raises(KeyError, match="did you mean `class MadeUpPet`"):
        types.properties("class MadeUpPett")
    pet = types.decode((samples / "ki-pet.xml").read_bytes())
    with pytest.raises(KeyError, match="no `m_absent`"):
        pet["m_absent"]
    before = pet.json()
    with pytest.raises(worldwire.EncodeError) as caught:
        pet["m_snacks[0].m_points"] = "many"
    assert caught.value.path == "m_snacks[0].m_points" and pet.json() == before
    with pytest.raises(worldwire.DecodeError):
        types.decode(b"BINd")
    with pytest.raises(worldwire.DefinitionsError):
        TypeList(samples / "ki-pet.xml")


def test_damaged_objects_do_no_harm(samples: Path) -> None:
    types = TypeList(samples / "ki-types.json")
    data = (samples / "ki-pet.xml").read_bytes()
    draw = random.Random(20260101)
    for turn in range(300):
        damaged = bytearray(data)
        for _ in range(draw.randrange(1, 8)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        try:
            pet = types.decode(damaged, lenient=turn % 2 == 0)
            assert pet.to_dict() == types.decode(pet.encode(), lenient=turn % 2 == 0).to_dict()
        except worldwire.Error:
            pass


def test_archives_are_searched_read_and_updated(samples: Path, tmp_path: Path) -> None:
    archive = Archive(samples / "ki-zone.wad")
    assert len(archive) == len(list(archive)) == len(archive.keys()) > 1
    name = archive.keys()[0]
    assert name in archive and "absent" not in archive
    assert archive.size(name) == len(archive[name])
    everything = archive.read(archive.keys())
    assert everything == {name: archive[name] for name in archive}
    assert archive.search("**") == archive.keys() and archive.search("absent*") == []
    changed = tmp_path / "changed.wad"
    archive.update(changed, {name: b"changed" * 100, "new/file.txt": b"new"})
    again = Archive(changed)
    assert again[name] == b"changed" * 100 and again["new/file.txt"] == b"new"
    assert again.search("new/*") == ["new/file.txt"] and again.search("*.txt") == []
    rest = [other for other in archive if other != name]
    assert again.read(rest) == archive.read(rest)
    again.update(changed, {name: None})
    assert name not in Archive(changed)
    Archive.create(changed, {"a": b"x" * 1000, "b": b""}, level=12)
    own = Archive(changed)
    assert isinstance(own, Mapping) and own.get("absent") is None and own.get("b") == b""
    assert own.values() == [b"x" * 1000, b""]
    assert dict(own.items()) == {"a": b"x" * 1000, "b": b""}


def test_of_two_files_with_one_name_the_first_is_read(tmp_path: Path) -> None:
    path = tmp_path / "twice.wad"
    Archive.create(path, {"a.txt": b"first", "b.txt": b"second", "c.txt": b"third"})
    path.write_bytes(path.read_bytes().replace(b"b.txt", b"a.txt"))
    archive = Archive(path)
    assert archive.keys() == archive.search("**") == ["a.txt", "c.txt"] and len(archive) == 2
    assert archive["a.txt"] == b"first" and archive.read(["c.txt", "a.txt"])["a.txt"] == b"first"
    with pytest.raises(worldwire.EncodeError, match="several files `a.txt`"):
        archive.update(tmp_path / "new.wad", {})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_many_files_are_read_on_all_cores_and_in_forked_processes(tmp_path: Path) -> None:
    draw = random.Random(20260101)
    files = {f"{number:03}.bin": draw.randbytes(draw.randrange(20_000)) for number in range(200)}
    path = tmp_path / "large.wad"
    Archive.create(path, files)
    code = """
import os, sys
from worldwire.ki import Archive
archive = Archive(sys.argv[1])
names = archive.keys()[::-1]
before = archive.read(names)
child = os.fork()
same = archive.read(names) == before and list(before) == names
if child == 0:
    os._exit(0 if same else 1)
print(same, os.waitpid(child, 0)[1], sum(map(len, before.values())))
"""
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60)
    assert done.stdout == f"True 0 {sum(map(len, files.values()))}\n"
    archive = Archive(path)
    assert archive.read(archive.keys()) == files


def test_a_few_files_are_found_without_listing_all(tmp_path: Path) -> None:
    path, contents = tmp_path / "many.wad", {f"{at:03}.txt": bytes([at]) for at in range(200)}
    Archive.create(path, contents)
    for name in ("000.txt", "117.txt", "199.txt"):
        archive = Archive(path)
        assert name in archive and archive[name] == contents[name] and archive.size(name) == 1
        assert len(archive) == 200 and archive.get("200.txt") is None and "" not in archive
        assert archive.read([name]) == {name: contents[name]}
        assert list(archive) == list(contents) and archive[name] == contents[name]


def test_mistakes_with_archives_are_reported(samples: Path, tmp_path: Path) -> None:
    archive = Archive(samples / "ki-zone.wad")
    name = archive.keys()[0]
    with pytest.raises(KeyError, match="did you mean"):
        archive[name + "x"]
    with pytest.raises(KeyError):
        archive.update(tmp_path / "a.wad", {"absent": None})
    with pytest.raises(FileNotFoundError):
        Archive(tmp_path / "absent.wad")
    with pytest.raises(worldwire.DecodeError, match="KIWAD"):
        Archive(samples / "ki-types.json")
    with pytest.raises(ValueError):
        archive.search("[")
    with pytest.raises(worldwire.Error):
        Archive.create(tmp_path / "a.wad", {"": b""})
    with pytest.raises(worldwire.Error):
        Archive.create(tmp_path / "a.wad", {"a": b""}, level=13)
    assert list(tmp_path.iterdir()) == [], "nothing is left of files that could not be written"


def test_damaged_archives_do_no_harm(samples: Path, tmp_path: Path) -> None:
    data = (samples / "ki-zone.wad").read_bytes()
    draw = random.Random(20260101)
    path = tmp_path / "damaged.wad"
    for _ in range(200):
        damaged = bytearray(data)
        for _ in range(draw.randrange(1, 8)):
            damaged[draw.randrange(min(len(damaged), 2000))] = draw.randrange(256)
        path.write_bytes(damaged[: draw.randrange(len(damaged) * 2)])
        try:
            archive = Archive(path)
            for name in archive:
                try:
                    assert len(archive[name]) == archive.size(name)
                except worldwire.Error:
                    pass
            archive.update(tmp_path / "copy.wad", {})
        except worldwire.Error:
            pass


def test_many_objects_are_decoded_at_once(samples: Path) -> None:
    types = TypeList(samples / "ki-types.json")
    data = (samples / "ki-pet.xml").read_bytes()
    pets = types.decode_all(data for _ in range(3_000))
    assert len(pets) == 3_000 and {pet["m_snacks[0].m_points"] for pet in pets} == {25}
    assert pets[-1].to_dict() == types.decode(data).to_dict()
    with pytest.raises(worldwire.DecodeError):
        types.decode_all([data, data[:10]])
    with pytest.raises(TypeError):
        types.decode_all(["text"])  # type: ignore[list-item]


def test_contents_are_bytes(samples: Path, tmp_path: Path) -> None:
    pet = TypeList(samples / "ki-types.json").decode((samples / "ki-pet.xml").read_bytes())
    path = tmp_path / "new.wad"
    contents: list[Any] = [(pet, "not GameObject; call its `encode`"), ("text", "not str"), (3, "int")]
    for content, expected in contents:
        with pytest.raises(TypeError, match=expected):
            Archive.create(path, {"a.xml": content})
    Archive.create(path, {"a.xml": b"a", "b.xml": b"b"})
    assert Archive(path)["a.xml"] == b"a"
