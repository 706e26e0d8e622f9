"""Statistics of captures."""

import json
import subprocess
from pathlib import Path
from typing import Dict

import pytest
from test_captures import CAPTURES, program

import worldwire

FILTERS = [None, "from == server", "any contains \"a\""]


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize(("name", "needs"), CAPTURES)
def test_stats_are_those_of_the_program(
    root: Path, samples: Path, name: str, needs: Dict[str, str], filter: str
) -> None:
    options = [f"--{key}={samples / value}" for key, value in needs.items()]
    options += [f"--filter={filter}"] if filter else []
    command = [str(program(root)), "stats", str(samples / name), "--json", "--quiet", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    paths = {key: samples / value for key, value in needs.items()}
    stats = worldwire.stats(samples / name, filter=filter, **paths)  # type: ignore[arg-type]
    assert stats == json.loads(done.stdout)
    assert stats["messages"] > 0 and stats["conversations"] > 0


def test_one_conversation_is_counted(samples: Path) -> None:
    capture, keys = samples / "uru-login.pcapng", samples / "uru-keys.toml"
    whole = worldwire.stats(capture, keys=keys)
    parts = [worldwire.stats(capture, keys=keys, stream=stream) for stream in range(4)]
    assert [part["conversations"] for part in parts] == [1] * 4
    assert sum(part["messages"] for part in parts) == whole["messages"]
    assert whole["families"] == {"uru": 4}
    assert worldwire.stats(capture, keys=keys, stream=4)["conversations"] == 0


def test_problems_are_counted(samples: Path) -> None:
    # Without keys, nothing can be decrypted.
    assert worldwire.stats(samples / "uru-login.pcapng")["problems"] > 0


def test_damage_keeps_the_sums(samples: Path) -> None:
    whole = (samples / "tera-login.pcapng").read_bytes()
    expected = worldwire.stats(whole)
    with pytest.raises(worldwire.CaptureError) as caught:
        worldwire.stats(whole[:-5])
    partial = caught.value.partial
    assert 0 < partial["messages"] <= expected["messages"] and partial["conversations"] == 1
