"""The annotations of the package, and the use of it in these tests."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import tercet

TESTS = pathlib.Path(__file__).parent
CONFIG = TESTS.parent / "pyproject.toml"
INSTALLED = pathlib.Path(tercet.__file__).parents[1]


def mypy(*arguments):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--config-file", str(CONFIG), "--cache-dir", "/dev/null", *arguments]
    done = subprocess.run(command, cwd=INSTALLED, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_annotations_are_strict():
    mypy("-p", "tercet")


def test_tests_use_the_package_as_annotated():
    # Tests have no annotations of their own.
    mypy("--allow-untyped-defs", "--allow-untyped-calls", "--allow-incomplete-defs", "--allow-untyped-decorators", str(TESTS))


def test_the_stub_is_that_of_the_native_module(tmp_path):
    pytest.importorskip("mypy")
    allowed = tmp_path / "allowed"
    # PyO3 adds the list of names; the slot is a method from Python 3.12 on.
    allowed.write_text("tercet._lib.__all__\n(tercet._lib.Buffer.__buffer__)?\n")
    command = [sys.executable, "-m", "mypy.stubtest", "--allowlist", str(allowed), "--ignore-unused-allowlist", "--mypy-config-file", str(CONFIG), "--ignore-disjoint-bases", "tercet._lib"]
    done = subprocess.run(command, cwd=INSTALLED, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright():
    # With the tests, which use the package as it is annotated.
    pyright = os.environ.get("PYRIGHT") or shutil.which("pyright")
    if pyright is None:
        pytest.skip("no pyright: npm install -g pyright")
    done = subprocess.run(
        [pyright, "--project", str(CONFIG), "--pythonpath", sys.executable, str(INSTALLED / "tercet"), str(TESTS)],
        cwd=INSTALLED, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
