"""The programs of the benchmark that compares the package with katsuba."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from worldwire.ki import Archive, TypeList


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(__file__).resolve().parents[1] / "bench" / "game_files.py"
    spec = importlib.util.spec_from_file_location("game_files", path)
    assert spec is not None and spec.loader is not None
    # Typed as Any, because the benchmark is not part of the package.
    game_files: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = game_files
    spec.loader.exec_module(game_files)
    folder = tmp_path_factory.mktemp("game")
    game_files.generate(folder, game_files.SMALL)
    return folder


def output(root: Path, folder: Path, name: str) -> str:
    program = root / "crates/python/bench/examples" / name
    run = [sys.executable, str(program)]
    return subprocess.run(run, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_the_examples_print_what_the_files_contain(root: Path, folder: Path) -> None:
    types, archive = TypeList(folder / "types.json"), Archive(folder / "Root.wad")
    manifest = types.decode(archive["TemplateManifest.xml"])
    templates = manifest["m_serializedTemplates"]
    lines = [f"Template {it['m_id']} at {it['m_filename']}" for it in templates]
    assert len(lines) == 20
    assert output(root, folder, "worldwire_templates.py").splitlines() == lines
    assert output(root, folder, "worldwire_archive.py") == "40 files in archive!\n"


def test_generated_objects_are_valid(folder: Path) -> None:
    types, archive = TypeList(folder / "types.json"), Archive(folder / "Root.wad")
    names = archive.search("ObjectData/**/*.xml")
    assert len(names) == 20
    for data in archive.read(names).values():
        assert len(types.decode(data)) > 3


def test_the_guide_shows_the_examples(root: Path) -> None:
    guide = (root / "docs/python.md").read_text()
    for name in ("worldwire_templates.py", "worldwire_archive.py"):
        assert (root / "crates/python/bench/examples" / name).read_text() in guide, name
