"""Generated classes. The module in this file is what `worldwire codegen python` writes."""

from dataclasses import dataclass
from typing import Any, ClassVar, Dict, List, Optional

from worldwire.typed import Fields, Message, Vec3, absent, group, items, named, record


@dataclass
class SPartyV2Members(Fields):
    """`members` of `S_PARTY`."""

    gameId: int = 0
    loc: Vec3 = group(Vec3)
    buffs: List[int] = items(None)


@dataclass
class SPartyV2(Message):
    """`S_PARTY`, version 2."""

    NAME: ClassVar[str] = "tera.S_PARTY"
    VERSION: ClassVar[Optional[int]] = 2
    members: List[SPartyV2Members] = items(SPartyV2Members)
    class_: str = named("class", "")
    skill: Dict[str, Any] = record()
    copy: Optional[int] = None
    more: Optional[int] = absent()


def test_fields_become_objects_and_back() -> None:
    values: Dict[str, Any] = {
        "members": [{"gameId": 4, "loc": {"x": 1.5, "y": 0.0, "z": 2.0}, "buffs": [1, 2]}],
        "class": "archer",
        "skill": {"id": 3},
        "copy": None,
    }
    party = SPartyV2.of(values)
    assert party.members[0].loc == Vec3(1.5, 0.0, 2.0) and party.class_ == "archer"
    assert party.to_dict() == values
    assert SPartyV2.of({**values, "more": 5}).to_dict() == {**values, "more": 5}
    assert SPartyV2.of({"class": "x", "unknown": 1}) == SPartyV2(class_="x")
    assert SPartyV2().members is not SPartyV2().members
