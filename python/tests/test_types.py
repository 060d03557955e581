"""The annotations of the package."""

import pathlib
import subprocess
import sys

import pytest

import tercet


def test_annotations_are_strict():
    pytest.importorskip("mypy")
    config = pathlib.Path(__file__).parents[1] / "pyproject.toml"
    installed = pathlib.Path(tercet.__file__).parents[1]
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir", "/dev/null", "-p", "tercet"]
    done = subprocess.run(command, cwd=installed, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stub_has_every_native_name():
    stub = (pathlib.Path(tercet.__file__).parent / "_lib.pyi").read_text()
    names = [name for name in dir(tercet._lib) if not name.startswith("_")]
    assert [name for name in names if f"def {name}(" not in stub and f"class {name}:" not in stub] == []
