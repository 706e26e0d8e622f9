#!/usr/bin/env python3
"""Compares the ObjectProperty decoder with katsuba, on the same data, in one run.

    pip install katsuba==0.4.0
    python3 crates/ki/benches/object_peer.py

Small objects are decoded one by one into fully readable values, in a single thread. One object of
33 MB becomes JSON; katsuba cannot write JSON, so Python's json module writes its values. Memory is
the peak of a process that does nothing else.
"""

import importlib.util
import json
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import time

ROUNDS = 5


def peer(what, folder):
    """One measurement of katsuba, in a separate process."""
    from katsuba.op import LazyList, LazyObject, Serializer, SerializerOptions, TypeList

    types = TypeList.open(folder / "types.json")
    options = SerializerOptions()
    options.shallow = what != "deep"
    options.property_mask = 0x18
    serializer = Serializer(options, types)
    best = float("inf")
    if what == "large to JSON":

        def plain(value):
            if isinstance(value, LazyObject):
                return {"$class": types.name_for(value.type_hash)} | {
                    name: plain(inner) for name, inner in value.items()
                }
            if isinstance(value, LazyList):
                return [plain(inner) for inner in value]
            if hasattr(value, "x"):
                return {"x": value.x, "y": value.y, "z": value.z}
            if isinstance(value, bytes):
                return value.decode()
            return value

        # Python is slow at this, so it is measured once.
        start = time.perf_counter()
        data = (folder / "large.bin").read_bytes()
        root = serializer.deserialize(data)
        decoded = time.perf_counter() - start
        with open(folder / "theirs.json", "w") as file:
            json.dump(plain(root), file)
        best = time.perf_counter() - start
        extra = {"decode_seconds": decoded}
    else:
        data = (folder / f"{what}.bin").read_bytes()
        objects, at = [], 0
        while at < len(data):
            (length,) = struct.unpack_from("<I", data, at)
            objects.append(data[at + 4 : at + 4 + length])
            at += 4 + length
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for one in objects:
                serializer.deserialize(one)
            best = min(best, time.perf_counter() - start)
        extra = {"objects": len(objects)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"what": what, "seconds": best, "peak": peak} | extra))


def lines(command):
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {line["what"]: line for line in found}


def main():
    if len(sys.argv) == 3:
        return peer(sys.argv[1], pathlib.Path(sys.argv[2]))
    if importlib.util.find_spec("katsuba") is None:
        sys.exit("katsuba is not there: pip install katsuba==0.4.0")
    ours_command = ["cargo", "bench", "-q", "-p", "worldwire-ki", "--bench", "object_peer", "--"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*ours_command, "write", folder], check=True)
        ours = lines([*ours_command, "time", folder])
        theirs = {}
        for what in ["shallow", "deep", "large to JSON"]:
            theirs |= lines([sys.executable, __file__, what, folder])
        small = json.loads((pathlib.Path(folder) / "ours.json").read_text())
        other = json.loads((pathlib.Path(folder) / "theirs.json").read_text())
        assert small == other, "both say the same"
    for what in ["shallow", "deep"]:
        rates = [side[what]["objects"] / side[what]["seconds"] for side in (ours, theirs)]
        print(
            f"{what}: {rates[0] / 1e6:.2f} million objects/s, katsuba {rates[1] / 1e6:.2f}: "
            f"{rates[0] / rates[1]:.1f}x"
        )
    us, them = ours["large to JSON"], theirs["large to JSON"]
    print(
        f"one object of {us['bytes'] / 1e6:.0f} MB to JSON: {us['seconds']:.2f} s with "
        f"{us['peak'] / 1e6:.0f} MB, katsuba {them['seconds']:.2f} s "
        f"({them['decode_seconds']:.2f} s without the JSON) with {them['peak'] / 1e6:.0f} MB: "
        f"{them['seconds'] / us['seconds']:.1f}x faster ({them['decode_seconds'] / us['seconds']:.1f}x), "
        f"{us['peak'] / them['peak']:.2f} of the memory"
    )


if __name__ == "__main__":
    main()
