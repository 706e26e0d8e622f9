"""KI: type lists and objects."""

import random
from pathlib import Path

import pytest

import worldwire
from worldwire.ki import TypeList


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
