"""Compare katsuba's two examples with the same programs for this package: python bench/compare_examples.py

Needs `pip install katsuba`. The programs are in examples/. They run alternately as separate processes, on
generated files: a few small ones, and some as large as a client's. Their output must be the same. A
folder as an argument keeps the generated files for the next run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, List

import katsuba.op
import katsuba.wad
from game_files import MANIFEST, REAL, SMALL, generate
from timing import measure

from worldwire.ki import Archive, TypeList

EXAMPLES = Path(__file__).resolve().parent / "examples"
GLOB = "ObjectData/**/*.xml"
LIST = "m_serializedTemplates"
ROUNDS = 7


def command(*arguments: str) -> List[str]:
    return [sys.executable, *arguments]


def run_in(folder: Path, arguments: List[str]) -> Callable[[], None]:
    return lambda: subprocess.run(arguments, cwd=folder, stdout=subprocess.DEVNULL, check=True) and None


def output(folder: Path, program: Path) -> bytes:
    return subprocess.run(
        command(str(program)), cwd=folder, stdout=subprocess.PIPE, check=True
    ).stdout


def compare_programs(folder: Path, size: str) -> None:
    for example in ["templates", "archive"]:
        ours, theirs = (EXAMPLES / f"{by}_{example}.py" for by in ["worldwire", "katsuba"])
        # katsuba prints the names of files as bytes.
        plain = re.sub(rb"b'([^']*)'", rb"\1", output(folder, theirs))
        printed = output(folder, ours)
        assert printed == plain, f"{ours} and {theirs} print different output"
        programs = [run_in(folder, command(str(it))) for it in (ours, theirs)]
        lines = [sum(bool(line) for line in it.read_text().splitlines()) for it in (ours, theirs)]
        printed_lines = printed.count(b"\n")
        print(f"{example}, {size}: {lines[0]} lines of code, {lines[1]}; prints {printed_lines} lines")
        measure(f"{example}, {size}", *programs, rounds=ROUNDS)
    # Ours prints all lines at once, which makes katsuba's faster, too.
    pair = [EXAMPLES / f"{name}.py" for name in ["worldwire_templates", "katsuba_templates_at_once"]]
    programs = [run_in(folder, command(str(it))) for it in pair]
    measure(f"templates, {size}, both print at once", *programs, rounds=ROUNDS)


def compare_start(folder: Path) -> None:
    imports = ["from worldwire.ki import Archive, TypeList", "import katsuba.op, katsuba.wad"]
    ours, theirs = (run_in(folder, command("-c", it)) for it in imports)
    measure("start Python, import", ours, theirs, rounds=ROUNDS)
    nothing = run_in(folder, command("-c", "pass"))
    measure("start Python; the same", nothing, nothing, rounds=ROUNDS)


def compare_parts(folder: Path, size: str, repeat: int) -> None:
    listed, data, root = folder / "types.json", (folder / MANIFEST).read_bytes(), folder / "Root.wad"
    types, their_types = TypeList(listed), katsuba.op.TypeList.open(listed)
    options = katsuba.op.SerializerOptions()
    options.flags |= katsuba.op.STATEFUL_FLAGS
    options.shallow = False
    serializer = katsuba.op.Serializer(options, their_types)

    def our_templates() -> int:
        return sum(id for id, name in types.decode(data).rows(LIST, ["m_id", "m_filename"]))

    def their_templates() -> int:
        total = 0
        for location in serializer.deserialize(data[4:])[LIST]:
            total += location["m_id"]
            location["m_filename"]
        return total

    def our_contents(*pattern: str) -> int:
        return sum(len(data) for name, data in archive.files(*pattern))

    def their_contents(names: Any) -> int:
        return sum(len(their_archive[name]) for name in names)

    assert our_templates() == their_templates()
    open_theirs = katsuba.wad.Archive.mmap
    parts = [
        ("open the type list", lambda: TypeList(listed), lambda: katsuba.op.TypeList.open(listed)),
        ("decode the templates", lambda: types.decode(data), lambda: serializer.deserialize(data[4:])),
        ("decode them, read both values", our_templates, their_templates),
        ("open the archive, count", lambda: len(Archive(root)), lambda: len(open_theirs(root))),
    ]
    for name, ours, theirs in parts:
        measure(f"{name}, {size}", ours, theirs, repeat, ROUNDS)
    archive, their_archive = Archive(root), open_theirs(root)
    assert our_contents() == their_contents(their_archive)
    measure(f"all contents, {size}", our_contents, lambda: their_contents(their_archive), repeat, ROUNDS)
    matching = lambda: their_contents(their_archive.iter_glob(GLOB))  # noqa: E731
    assert our_contents(GLOB) == matching()
    measure(f"contents by pattern, {size}", lambda: our_contents(GLOB), matching, repeat, ROUNDS)

    def whole_ours() -> int:
        return sum(len(data) for name, data in Archive(root).files())

    def whole_theirs() -> int:
        opened = open_theirs(root)
        return sum(len(opened[name]) for name in opened)

    measure(f"open the archive, all contents, {size}", whole_ours, whole_theirs, repeat, ROUNDS)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        top = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        for size, sizes, repeat in [("small", SMALL, 50), ("real", REAL, 1)]:
            folder = top / size
            if not folder.exists():
                folder.mkdir(parents=True)
                generate(folder, sizes)
            for name in ["types.json", MANIFEST, "Root.wad"]:
                print(f"{size}: {name}, {(folder / name).stat().st_size} bytes")
            if size == "small":
                compare_start(folder)
            compare_programs(folder, size)
            compare_parts(folder, size, repeat)


if __name__ == "__main__":
    main()
