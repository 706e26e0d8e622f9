"""Paths of the samples."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def samples() -> Path:
    return ROOT / "samples"


@pytest.fixture
def root() -> Path:
    return ROOT
