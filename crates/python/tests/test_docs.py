"""The examples in the documentation print the documented output."""

import contextlib
import io
import re
from pathlib import Path

import pytest

BLOCKS = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize("name", ["docs/python.md", "crates/python/README.md"])
def test_examples(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Plots need it and must not open a window.
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(root)
    blocks = BLOCKS.findall((root / name).read_text())
    assert blocks
    # Later examples use the names of earlier ones.
    names: dict[str, object] = {}
    for code, expected in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, name, "exec"), names)
        assert printed.getvalue() == expected, code
