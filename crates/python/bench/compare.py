"""Compare the package with scapy and katsuba: python bench/compare.py

Needs `pip install katsuba scapy`. Each pair is measured in turns, in one run, and the fastest of several
rounds counts. Files are made from samples/ and removed afterwards.
"""

from __future__ import annotations

import json
import struct
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, List

import katsuba.op
import katsuba.wad
import scapy.utils
from scapy.layers.inet import TCP  # noqa: F401  (scapy dissects only layers that are imported)

import worldwire
from worldwire.ki import Archive, TypeList

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
CAPTURE_BYTES = 50_000_000
FILES = 4_000
ROUNDS = 3


def measure(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> None:
    times: List[List[float]] = [[], []]
    for _ in range(rounds):
        for index, run in enumerate([ours, theirs]):
            began = time.perf_counter()
            run()
            times[index].append(time.perf_counter() - began)
    mine, other = min(times[0]), min(times[1])
    print(f"{name}: {mine:.3f} s, {other:.3f} s, {other / mine:.1f}x")


def logins(path: Path) -> int:
    """Repeats the packets of the sample login, each time from other addresses. Returns their number."""
    packets = list(scapy.utils.RawPcapNgReader(str(SAMPLES / "uru-login.pcapng")))
    frames = [bytearray(data) for data, _ in packets]
    # Where the client's address is: among the IPv4 addresses, the server's ends with 1.
    places = [26 if frame[29] != 1 else 30 for frame in frames]
    size = sum(16 + len(frame) for frame in frames)
    turns = CAPTURE_BYTES // size + 1
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for turn in range(turns):
            for number, frame in enumerate(frames):
                # The client has another address in each turn; checksums are not checked.
                at, address = places[number], bytes([10, turn >> 16, turn >> 8 & 255, turn & 255])
                frame[at : at + 4] = address
                file.write(struct.pack("<IIII", 1767225600 + turn, number, len(frame), len(frame)))
                file.write(frame)
    return turns * len(frames)


def compare_captures(folder: Path) -> None:
    path = folder / "logins.pcap"
    packets = logins(path)

    def ours() -> int:
        keys = SAMPLES / "uru-keys.toml"
        return sum(len(it.fields.to_dict()) >= 0 for it in worldwire.open(path, keys=keys))

    def theirs() -> int:
        return sum(1 for _ in scapy.utils.PcapReader(str(path)))

    print(f"{path.stat().st_size / 1e6:.0f} MB, {packets} packets, {ours()} messages")
    measure("login capture, all fields; scapy, packets without fields", ours, theirs, 1)


def compare_archives(folder: Path) -> None:
    pet = (SAMPLES / "ki-pet.xml").read_bytes()
    path = folder / "pets.wad"
    Archive.create(path, {f"Pets/{number}.xml": pet for number in range(FILES)})
    types = TypeList(SAMPLES / "ki-types.json")
    options = katsuba.op.SerializerOptions()
    options.flags |= katsuba.op.STATEFUL_FLAGS
    options.shallow = False
    # It reads only lists without a version.
    flat = folder / "types.json"
    flat.write_text(json.dumps(json.loads((SAMPLES / "ki-types.json").read_text())["classes"]))
    listed = katsuba.op.TypeList.open(flat)
    serializer = katsuba.op.Serializer(options, listed)

    def read_ours() -> int:
        archive = Archive(path)
        return sum(map(len, archive.read(archive.search("Pets/**")).values()))

    def read_theirs() -> int:
        archive = katsuba.wad.Archive.mmap(path)
        return sum(len(archive[name]) for name in archive.iter_glob("Pets/**"))

    assert read_ours() == read_theirs() == FILES * len(pet)
    measure(f"{FILES} files of an archive", read_ours, read_theirs, ROUNDS)

    def decode_ours() -> int:
        archive = Archive(path)
        pets = types.decode_all(archive.read(archive.search("Pets/**")).values())
        return sum(pet["m_snacks[0].m_points"] for pet in pets)

    def decode_theirs() -> int:
        archive = katsuba.wad.Archive.mmap(path)
        names = archive.iter_glob("Pets/**")
        pets = (archive.deserialize(name, serializer) for name in names)
        return sum(pet["m_snacks"][0]["m_points"] for pet in pets)

    assert decode_ours() == decode_theirs()
    measure(f"{FILES} objects of an archive", decode_ours, decode_theirs, ROUNDS)
    measure(
        "a type list",
        lambda: TypeList(SAMPLES / "ki-types.json"),
        lambda: katsuba.op.TypeList.open(flat),
        50,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        compare_archives(Path(folder))
        compare_captures(Path(folder))


if __name__ == "__main__":
    main()
