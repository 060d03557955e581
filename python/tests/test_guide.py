"""The blocks of the guides run in order."""

import pathlib
import re

import pytest

GUIDES = [pathlib.Path(__file__).parents[2] / "docs" / "guide" / f"{name}.md" for name in ("python", "python-xarray", "python-tables")]


@pytest.mark.parametrize("guide", GUIDES, ids=[guide.stem for guide in GUIDES])
def test_guide(guide, tmp_path, monkeypatch):
    pytest.importorskip("dask")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", guide.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) > 4
    scope: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{guide.name} block {number}", "exec"), scope)
