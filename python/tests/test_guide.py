"""The blocks of the guide run in order."""

import pathlib
import re

import pytest

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "python.md"


def test_guide(tmp_path, monkeypatch):
    pytest.importorskip("dask")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.M | re.S)
    assert len(blocks) > 6
    scope: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{GUIDE.name} block {number}", "exec"), scope)
