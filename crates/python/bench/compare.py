"""Compare the package with katsuba, scapy and the program: python bench/compare.py [PROGRAM]

Needs `pip install katsuba scapy`. Each pair is measured alternately in one run. The fastest of several
rounds is reported, and in brackets the ratios of the rounds: minimum, median, maximum. Times are CPU
time of all threads and processes, so other work on the machine matters less, followed by elapsed time.
Files are generated from samples/ and removed afterwards.
"""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List

import katsuba.op
import katsuba.wad
import scapy.utils
from scapy.layers.inet import TCP  # noqa: F401  (scapy dissects only layers that are imported)
from timing import measure

import worldwire
from worldwire.ki import Archive, TypeList

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
CAPTURE_BYTES = 50_000_000
CLASSES = 2_400
FILES = 4_000
PARTS = 20_000
POINTS = "m_snacks[0].m_points"


def logins(path: Path) -> int:
    """Repeats the packets of the sample login, each time from different addresses. Returns their number."""
    packets = list(scapy.utils.RawPcapNgReader(str(SAMPLES / "uru-login.pcapng")))
    frames = [bytearray(data) for data, _ in packets]
    # The position of the client's address: the server's IPv4 address ends with 1.
    places = [26 if frame[29] != 1 else 30 for frame in frames]
    size = sum(16 + len(frame) for frame in frames)
    turns = CAPTURE_BYTES // size + 1
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for turn in range(turns):
            for number, frame in enumerate(frames):
                # The client has a different address in each round; checksums are not checked.
                at, address = places[number], bytes([10, turn >> 16, turn >> 8 & 255, turn & 255])
                frame[at : at + 4] = address
                file.write(struct.pack("<IIII", 1767225600 + turn, number, len(frame), len(frame)))
                file.write(frame)
    return turns * len(frames)


def compare_captures(folder: Path) -> None:
    path, keys = folder / "logins.pcap", SAMPLES / "uru-keys.toml"
    packets = logins(path)

    def ours() -> int:
        return sum(len(it.fields.to_dict()) >= 0 for it in worldwire.open(path, keys=keys))

    def theirs() -> int:
        return sum(1 for _ in scapy.utils.PcapReader(str(path)))

    print(f"{path.stat().st_size / 1e6:.0f} MB, {packets} packets, {ours()} messages")
    if len(sys.argv) > 1:
        command = [sys.argv[1], "dissect", str(path), "--json", "--quiet", f"--keys={keys}"]

        def program() -> None:
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)

        measure("login capture, all fields; the program with --json", ours, program)
    measure("login capture, all fields; scapy, packets without fields", ours, theirs)


def compare_archives(folder: Path) -> None:
    pet = (SAMPLES / "ki-pet.xml").read_bytes()
    path = folder / "pets.wad"
    Archive.create(path, {f"Pets/{number}.xml": pet for number in range(FILES)})
    types = TypeList(SAMPLES / "ki-types.json")
    options = katsuba.op.SerializerOptions()
    options.flags |= katsuba.op.STATEFUL_FLAGS
    options.shallow = False
    # katsuba wants the version first; this sample has it last.
    flat = folder / "types.json"
    flat.write_text(json.dumps(json.loads((SAMPLES / "ki-types.json").read_text())["classes"]))
    listed = katsuba.op.TypeList.open(flat)
    serializer = katsuba.op.Serializer(options, listed)

    def read_ours() -> int:
        return sum(len(data) for name, data in Archive(path).files("Pets/**"))

    def read_theirs() -> int:
        archive = katsuba.wad.Archive.mmap(path)
        return sum(len(archive[name]) for name in archive.iter_glob("Pets/**"))

    assert read_ours() == read_theirs() == FILES * len(pet)
    measure(f"{FILES} files of an archive", read_ours, read_theirs, 5)

    def decode_ours() -> int:
        return sum(Archive(path).table("Pets/**", [POINTS], types).column(POINTS))

    def decode_theirs() -> int:
        archive = katsuba.wad.Archive.mmap(path)
        names = archive.iter_glob("Pets/**")
        pets = (archive.deserialize(name, serializer) for name in names)
        return sum(pet["m_snacks"][0]["m_points"] for pet in pets)

    assert decode_ours() == decode_theirs()
    measure(f"{FILES} objects of an archive", decode_ours, decode_theirs, 5)

    # Like the game's list of all templates: one large object in an archive.
    large = types.decode(pet)
    part = large["m_snacks[0]"]
    large["m_snacks"] = [{**part, "m_points": number % 32} for number in range(PARTS)]
    listing = folder / "listing.wad"
    Archive.create(listing, {"Listing.xml": large.encode()})

    def list_ours() -> int:
        columns = ["m_snacks[*].m_templateID", "m_snacks[*].m_points"]
        ((ids, points),) = Archive(listing).table("Listing.xml", columns, types).rows()
        return sum(map(max, ids, points))

    def list_theirs() -> int:
        found = katsuba.wad.Archive.mmap(listing).deserialize("Listing.xml", serializer)
        return sum(max(part["m_templateID"], part["m_points"]) for part in found["m_snacks"])

    assert list_ours() == list_theirs()
    measure(f"an object with {PARTS} parts, two values of each", list_ours, list_theirs)
    measure("a type list", lambda: TypeList(flat), lambda: katsuba.op.TypeList.open(flat), 50)


def type_list() -> Dict[str, Any]:
    """A list in which classes repeat inherited properties, as in a client's list."""
    draw = random.Random(20260101)
    known = json.loads((SAMPLES / "ki-types.json").read_text())["classes"]
    pattern = [it for one in known.values() for it in one["properties"].values()]
    classes: Dict[str, Any] = {}
    inherited: List[Dict[str, Any]] = [{}]
    for number in range(CLASSES):
        properties = dict(draw.choice(inherited))
        for own in draw.sample(pattern, 3):
            place = {"id": len(properties), "offset": 72 + 8 * len(properties)}
            properties[f"m_own{number}_{len(properties)}"] = {**own, **place}
        if len(properties) < 20:
            inherited.append(properties)
        about = {"name": f"class Made{number}", "bases": ["PropertyClass"], "hash": number}
        classes[str(number)] = {**about, "properties": properties, "singleton": False}
    return classes


def compare_lists(folder: Path) -> None:
    classes, ours, theirs = type_list(), folder / "ours.json", folder / "theirs.json"
    ours.write_text(json.dumps({"version": 2, "classes": classes}))
    theirs.write_text(json.dumps(classes))
    measure(
        f"a type list of {CLASSES} classes, {ours.stat().st_size / 1e6:.1f} MB",
        lambda: TypeList(ours),
        lambda: katsuba.op.TypeList.open(theirs),
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        compare_lists(Path(folder))
        compare_archives(Path(folder))
        compare_captures(Path(folder))


if __name__ == "__main__":
    main()
