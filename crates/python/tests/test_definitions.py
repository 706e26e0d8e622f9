"""Definitions from files, folders and archives."""

import shutil
from pathlib import Path

import pytest

import worldwire
from worldwire.ki import Archive

XML = "MadeUpMessages.xml"
# An order of the service that the sample file defines.
MESSAGE = {"service": "MADEUP", "order": "MSG_WEATHER", "fields": {"Sky": "rain"}}


@pytest.fixture
def archive(samples: Path, tmp_path: Path) -> Path:
    path = tmp_path / "game" / "Root.wad"
    path.parent.mkdir()
    content = (samples / "ki-messages" / XML).read_bytes()
    files = {f"Messages/{XML}": content, "Other.xml": b"<Other/>", "readme.txt": b"none"}
    Archive.create(path, files)
    return path


def weather(data: Path) -> bytes:
    return worldwire.Context(data=data).encode("ki.dml", MESSAGE)


def test_archives_are_read_like_folders(samples: Path, archive: Path) -> None:
    expected = weather(samples / "ki-messages")
    # The archive, one file in it, and a directory with archives.
    for data in (archive, archive / "Messages" / XML, archive.parent):
        assert weather(data) == expected
    decoded = worldwire.Context(data=archive).decode("ki.dml", expected)
    assert decoded.fields.Sky == "rain"
    capture = worldwire.open(
        samples / "ki-login.pcapng", keys=samples / "ki-keys.toml", data=archive
    )
    assert len(list(capture)) > 10


def test_a_folder_with_definitions_does_not_need_its_archives(
    samples: Path, archive: Path
) -> None:
    shutil.copy(samples / "ki-messages" / XML, archive.parent)
    archive.write_bytes(b"KIWAD damaged")
    assert weather(archive.parent)


def test_archives_without_definitions_are_refused(archive: Path, tmp_path: Path) -> None:
    other = tmp_path / "Other.wad"
    Archive.create(other, {"Other.xml": b"<Other/>"})
    for data in (other, other / "Other.xml"):
        with pytest.raises(worldwire.DefinitionsError, match="contains no definitions") as caught:
            weather(data)
        assert caught.value.path == str(data)
        assert caught.value.hint is not None and "archives" in caught.value.hint
    with pytest.raises(worldwire.DefinitionsError, match=f"did you mean `Messages/{XML}`"):
        weather(archive / "Messages" / "MadeUpMessage.xml")
    archive.write_bytes(archive.read_bytes()[:40])
    with pytest.raises(worldwire.DecodeError):
        weather(archive)
    with pytest.raises(FileNotFoundError):
        weather(tmp_path / "absent" / XML)
