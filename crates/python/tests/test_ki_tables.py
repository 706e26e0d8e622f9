"""KI: many files and objects of archives at once."""

import json
import random
import re
import warnings
from pathlib import Path
from typing import Any, Dict, List

import pytest

import worldwire
from worldwire.ki import Archive, GameObject, ObjectError, TypeList

POINTS = "m_snacks[0].m_points"


@pytest.fixture
def types(samples: Path) -> TypeList:
    return TypeList(samples / "ki-types.json")


@pytest.fixture
def pet(samples: Path, types: TypeList) -> GameObject:
    return types.decode((samples / "ki-pet.xml").read_bytes())


def pets(path: Path, pet: GameObject, count: int) -> Archive:
    files: Dict[str, bytes] = {}
    for number in range(count):
        pet["m_name"], pet[POINTS] = f"Pet {number}", number % 32
        files[f"Pets/{number:05}.xml"] = pet.encode()
    Archive.create(path, files)
    return Archive(path)


def test_files_are_selected_by_pattern(tmp_path: Path) -> None:
    draw = random.Random(20260101)
    parts = ["a", "b", "ab", "a.xml", "b.xml", ".xml", "c.txt", "xml"]
    names = {"/".join(draw.choices(parts, k=draw.randrange(1, 5))) for _ in range(300)}
    path = tmp_path / "many.wad"
    Archive.create(path, {name: name.encode() for name in names})
    archive = Archive(path)
    patterns = {
        "**": ".*",
        "a/**": "a/.*",
        "**/*.xml": r"(.*/)?[^/]*\.xml",
        "a/**/*.xml": r"a/(.*/)?[^/]*\.xml",
        "ab/b/**/*ml": r"ab/b/(.*/)?[^/]*ml",
        "a*/**/*.xml": r"a[^/]*/(.*/)?[^/]*\.xml",
        "a/*.xml": r"a/[^/]*\.xml",
        "a/*": "a/[^/]*",
        "{a,b}/**": "(a|b)/.*",
        "?.xml": r"[^/]\.xml",
        "a/b": "a/b",
        "a**": "a[^/]*",
        "absent/**": "absent/.*",
    }
    for pattern, expression in patterns.items():
        expected = [name for name in archive if re.fullmatch(expression, name)]
        assert archive.search(pattern) == expected, pattern
        contents = {name: name.encode() for name in expected}
        assert archive.read(pattern) == contents
        # An archive that has not listed its names.
        assert list(Archive(path).files(pattern)) == list(contents.items())
    assert dict(archive.files()) == dict(archive)
    some = draw.sample(archive.keys(), 20)
    assert [name for name, _ in archive.files(some)] == list(archive.read(some)) == some
    for files in ("[", ["absent"]):
        with pytest.raises((KeyError, ValueError)):
            archive.files(files)
    with pytest.raises(TypeError):
        archive.read(3)  # type: ignore[arg-type]


def test_files_are_read_in_parts(tmp_path: Path) -> None:
    draw = random.Random(20260101)
    contents = {f"{number:05}": draw.randbytes(draw.randrange(40)) for number in range(3_000)}
    path = tmp_path / "many.wad"
    Archive.create(path, contents)
    files = Archive(path).files()
    assert next(files) == ("00000", contents["00000"])
    assert dict(files) == {name: data for name, data in contents.items() if name != "00000"}
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    files = Archive(path).files()
    # The last part has the damaged file.
    assert len([next(files) for _ in range(2_000)]) == 2_000
    with pytest.raises(worldwire.DecodeError, match="02999"):
        list(files)
    # Of two files with the same name, the first one is read.
    path.write_bytes(path.read_bytes().replace(b"00001", b"00000"))
    assert [name for name, _ in Archive(path).files("0000?")][:2] == ["00000", "00002"]


def test_tables_have_the_values_of_the_objects(tmp_path: Path, types: TypeList, pet: GameObject) -> None:
    archive = pets(tmp_path / "pets.wad", pet, 700)
    objects = [types.decode(data) for data in archive.values()]
    paths = ["m_name", POINTS, "m_snacks[*].m_points", "m_position.x", "m_speed", "$class", "m_rights"]
    table = archive.table("Pets/**", ["$file", *paths], types)
    assert len(table) == 700 and table.column_names == ["$file", *paths]
    assert table.column("$file") == archive.keys()
    for path in paths[:-1]:
        assert table.column(path) == [it[path] for it in objects], path
    # Lists that are not elements are shown as text.
    assert set(table.column("m_rights")) == {str(objects[0]["m_rights"]).replace("'", '"').replace(" ", "")}
    rows = list(table.rows())
    assert rows[3][:3] == (archive.keys()[3], "Pet 3", 3) and len(rows) == 700
    some = archive.keys()[5:2:-1]
    assert list(archive.table(some, [POINTS], types).rows()) == [(5,), (4,), (3,)]
    assert len(archive.table("absent/**", [POINTS], types)) == 0


def test_missing_values_and_damaged_objects_are_none(
    tmp_path: Path, samples: Path, types: TypeList, pet: GameObject
) -> None:
    data = pet.encode()
    del pet["m_name"]
    pet["m_snacks"] = []
    path = tmp_path / "some.wad"
    contents = {"a.xml": data, "b.xml": pet.encode(), "c.xml": data[:-9], "d.txt": b"text", "e.xml": data}
    Archive.create(path, contents)
    columns = [POINTS, "m_snacks[*].m_points", "m_name"]
    with pytest.warns(worldwire.WorldwireWarning, match="2 of 5 objects not decoded: c.xml: "):
        table = Archive(path).table("*", columns, types)
    assert table.column(POINTS) == [25, None, None, None, 25]
    assert table.column("m_snacks[*].m_points") == [[25], [], None, None, [25]]
    assert [name is None for name in table.column("m_name")] == [False, True, True, True, False]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        errors: List[Any] = Archive(path).table("*", ["$error"], types).column("$error")
        Archive(path).table(["a.xml"], columns, types)
    assert [error is None for error in errors] == [True, True, False, False, True]
    assert "BINd" in errors[3]
    # The archive is damaged, not the object.
    stored = path.read_bytes()
    path.write_bytes(stored.replace(data, b"x" * len(data), 1))
    error, points = zip(*Archive(path).table("*", ["$error", POINTS], types).rows())
    assert "CRC" in error[0] and points == (None, None, None, None, 25)


def test_mistakes_in_columns_are_reported(tmp_path: Path, types: TypeList, pet: GameObject) -> None:
    archive = pets(tmp_path / "pets.wad", pet, 3)
    with pytest.raises(KeyError, match="`m_nam`; did you mean `m_name`"):
        archive.table("**", ["m_nam"], types)
    with pytest.raises(KeyError, match="m_point"):
        archive.table("**", ["m_snacks[*].m_point"], types)
    for path in ("", "m_snacks[", "m_snacks[x]"):
        with pytest.raises(worldwire.FilterError):
            archive.table("**", [path], types)
    with pytest.raises(KeyError, match="did you mean `m_name`"):
        archive.table("**", ["m_name"], types).column("m_nam")
    # Properties that these objects lack, but others have.
    assert archive.table("**", ["m_templateID"], types).column("m_templateID") == [None] * 3


def test_damaged_objects_in_tables_do_no_harm(tmp_path: Path, types: TypeList, pet: GameObject) -> None:
    draw = random.Random(20260101)
    data = pet.encode()
    files: Dict[str, bytes] = {}
    for number in range(600):
        damaged = bytearray(data)
        for _ in range(draw.randrange(1, 8)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        files[f"{number:03}.xml"] = bytes(damaged)
    path = tmp_path / "damaged.wad"
    Archive.create(path, files)
    columns = ["$error", "m_name", "m_snacks[*]", "m_snacks[0].m_points", "m_position.y"]
    for lenient in (False, True):
        table = Archive(path).table("*", columns, types, lenient=lenient)
        failed = 0
        for (error, name, *_), content in zip(table.rows(), files.values()):
            if error is not None:
                failed += 1
                with pytest.raises(worldwire.Error):
                    types.decode(content, lenient=lenient)
            elif lenient:
                assert types.decode(content, lenient=True)["m_name"] == name
        assert 0 < failed < 600


def test_tables_list_what_is_wrong_with_objects(
    tmp_path: Path, samples: Path, types: TypeList, pet: GameObject
) -> None:
    # Another revision's list: a number has another size, and a property is missing.
    lists = json.loads((samples / "ki-types.json").read_text())
    lists["classes"]["1569547039"]["properties"]["m_points"]["type"] = "unsigned int"
    del lists["classes"]["1841593929"]["properties"]["m_speed"]
    (tmp_path / "other.json").write_text(json.dumps(lists))
    other = TypeList(tmp_path / "other.json")
    data = pet.encode()
    contents = {"a.xml": data, "b.txt": b"text", "c.xml": data}
    Archive.create(tmp_path / "pets.wad", contents)
    archive = Archive(tmp_path / "pets.wad")
    columns = ["m_name", POINTS, "m_snacks[*].m_points", "$error"]
    with pytest.warns(worldwire.WorldwireWarning, match="2 of 3 objects are irregular: a.xml: ") as said:
        table = archive.table("*", columns, other, lenient=True)
    assert said[0].filename == __file__
    assert table.column("m_name") == [pet["m_name"], None, pet["m_name"]]
    assert table.column(POINTS) == [None] * 3 and table.column("m_snacks[*].m_points") == [[None], None, [None]]
    errors = table.errors
    assert [(it.file, it.path, it.is_decoded) for it in errors] == [
        ("a.xml", "", True),
        ("a.xml", POINTS, True),
        ("b.txt", "magic", False),
        ("c.xml", "", True),
        ("c.xml", POINTS, True),
    ]
    unknown, short, text = errors[:3]
    assert isinstance(unknown, ObjectError) and "is not in class MadeUpPet" in unknown.text
    assert short.text.startswith(f"{POINTS} at byte ") and "wanted 4 bytes, found 1" in short.text
    assert short.offset is not None and unknown.offset is not None and 0 < unknown.offset < short.offset
    assert text.offset == 0 and table.column("$error") == [None, text.text, None]
    # Decoding an object reports the same irregularities.
    with pytest.warns(worldwire.WorldwireWarning) as notes:
        other.decode(data, lenient=True)
    assert [str(it.message) for it in notes] == [unknown.text, short.text]
    with pytest.warns(worldwire.WorldwireWarning, match="3 of 3 objects not decoded"):
        strict = archive.table("*", [POINTS], other)
    assert [it.is_decoded for it in strict.errors] == [False] * 3
    assert archive.table("*.xml", [POINTS], types).errors == []
