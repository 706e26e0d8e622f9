"""Columns for NumPy and Arrow."""

from pathlib import Path
from typing import Any, Dict

import pytest

import worldwire
from worldwire.ki import Archive, TypeList

np: Any = pytest.importorskip("numpy")
pa: Any = pytest.importorskip("pyarrow")


def opened(samples: Path, **more: Any) -> worldwire.Capture:
    keys = samples / "uru-keys.toml"
    return worldwire.open(samples / "uru-login.pcapng", keys=keys, **more)


def test_columns_are_the_values_of_the_messages(samples: Path) -> None:
    messages = [m for m in opened(samples) if "transId" in m.fields]
    columns = opened(samples).to_numpy(["elapsed", "date", "name", "transId", "stream"])
    assert list(columns) == ["elapsed", "date", "name", "transId", "stream"]
    assert columns["elapsed"].tolist() == [m.elapsed for m in messages]
    assert columns["date"].astype("int64").tolist() == [m.time_ns for m in messages]
    assert columns["name"].tolist() == [m.name for m in messages]
    assert columns["transId"].tolist() == [m.fields.transId for m in messages]
    assert columns["stream"].tolist() == [m.stream for m in messages]
    assert columns["transId"].dtype == np.int64 and columns["elapsed"].dtype == np.float64


def test_missing_values_are_masked(samples: Path) -> None:
    needs: Dict[str, Any] = {"filter": "auth.* or gatekeeper.*"}
    columns = opened(samples, **needs).to_numpy(["transId", "clientChallenge", "result"])
    challenge = columns["clientChallenge"]
    assert isinstance(challenge, np.ma.MaskedArray)
    assert challenge.compressed().tolist() == [195911405]
    assert not isinstance(columns["transId"], np.ma.MaskedArray)
    assert columns["result"].tolist().count(None) > 10
    columns["transId"][0] = 5


def test_arrow_reads_the_same_values(samples: Path) -> None:
    names = ["elapsed", "transId", "result", "AcctLoginRequest.challengeHash", "clientChallenge"]
    table = opened(samples).table(names)
    assert table.column_names == names and len(table) > 20
    arrow = pa.table(table)
    assert [str(kind) for kind in arrow.schema.types] == [
        "double",
        "int64",
        "string",
        "binary",
        "int64",
    ]
    columns = table.to_numpy()
    assert arrow["result"].to_pylist() == columns["result"].tolist()
    assert arrow["elapsed"].to_pylist() == columns["elapsed"].tolist()
    assert arrow["clientChallenge"].drop_null().to_pylist() == [195911405]
    login = next(opened(samples, filter="auth.AcctLoginRequest"))
    hashes = arrow["AcctLoginRequest.challengeHash"].drop_null().to_pylist()
    assert hashes == [login.fields.challengeHash]
    # A table can be read more than once.
    assert pa.table(table).equals(arrow)


def test_other_columns_are_the_text_of_tables(samples: Path) -> None:
    columns = opened(samples, filter="auth.AcctLoginReply").to_numpy(["src", "accountFlags"])
    assert columns["src"].tolist() == ["192.0.2.1"]
    assert columns["accountFlags"].tolist() == ['["User"]']
    nothing = opened(samples, filter="auth.* and elapsed < 0").table(["elapsed"])
    assert len(nothing) == 0 and pa.table(nothing).num_rows == 0


def test_columns_are_checked(samples: Path) -> None:
    with pytest.raises(worldwire.FilterError):
        opened(samples).table(["transId =="])
    with pytest.raises(worldwire.FilterError, match="did you mean"):
        opened(samples).table(["AcctLoginRequest.acountName"])
    capture = opened(samples)
    next(capture)
    with pytest.raises(RuntimeError, match="open it again"):
        capture.table(["transId"])
    with pytest.raises(TypeError):
        opened(samples).table("transId")


def test_columns_can_have_lists(samples: Path, tmp_path: Path) -> None:
    pet = (samples / "ki-pet.xml").read_bytes()
    path = tmp_path / "pets.wad"
    Archive.create(path, {"a": pet, "b": pet})
    columns = ["$file", "m_snacks[*].m_points", "m_snacks[0].m_points"]
    table = Archive(path).table("*", columns, TypeList(samples / "ki-types.json"))
    arrays, arrow = table.to_numpy(), pa.table(table)
    lists = arrays["m_snacks[*].m_points"]
    assert lists.shape == (2,) and lists.tolist() == [[25], [25]]
    assert arrow["m_snacks[*].m_points"].to_pylist() == [[25], [25]]
    assert [str(kind) for kind in arrow.schema.types] == ["string", "list<item: int64>", "int64"]
    assert arrays["m_snacks[0].m_points"].sum() == 50
    assert list(table.rows()) == [("a", [25], 25), ("b", [25], 25)]


def test_rows_and_columns_are_those_of_arrow(samples: Path) -> None:
    table = opened(samples).table(["date", "elapsed", "name", "transId", "challengeHash"])
    arrow = pa.table(table)
    for name in table.column_names[1:]:
        assert table.column(name) == arrow[name].to_pylist()
    assert table.column("date") == arrow["date"].cast("int64").to_pylist()
    assert list(table.rows()) == list(zip(*map(table.column, table.column_names)))
