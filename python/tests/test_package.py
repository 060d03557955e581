"""What is installed: metadata, files, import time, the text in notebooks."""

import importlib.metadata
import pathlib
import re
import subprocess
import sys
import tomllib

import numpy as np
import pytest

import tercet

PROJECT = tomllib.loads((pathlib.Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_entry_points_are_those_of_the_project():
    found = importlib.metadata.distribution("tercet").entry_points
    declared = {(group, name, value) for group, points in PROJECT["entry-points"].items() for name, value in points.items()}
    assert {(point.group, point.name, point.value) for point in found} == declared
    for point in found:
        assert point.load() is not None


def test_versions_agree():
    assert importlib.metadata.version("tercet") == tercet.__version__


def test_the_package_is_typed():
    package = pathlib.Path(tercet.__file__).parent
    assert (package / "py.typed").exists() and (package / "_lib.pyi").exists()


IMPORT = """
import sys, time
before = set(sys.modules)
start = time.perf_counter()
import tercet
print(time.perf_counter() - start)
print(*sorted(set(sys.modules) - before))
"""


def test_import_is_fast():
    def once():
        done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
        seconds, modules = done.stdout.splitlines()
        # NumPy and the native module are imported at first use.
        assert set(modules.split()) <= {"tercet", "__future__"}
        return float(seconds)

    assert min(once() for _ in range(3)) < 0.06


def test_public_names_are_found():
    assert set(tercet.__all__) <= set(dir(tercet))
    for name in tercet.__all__:
        assert getattr(tercet, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        tercet.opne  # type: ignore[attr-defined]


def test_only_numpy_is_needed(tmp_path):
    # Everything else is hidden; what needs it says so.
    code = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyarrow", "xarray", "dask", "polars", "pandas", "duckdb", "ml_dtypes", "tqdm"):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
import numpy as np
import tercet
tercet.write({str(tmp_path / "a.tet")!r}, {{"x": np.arange(6.0).reshape(2, 3)}})
assert tercet.open({str(tmp_path / "a.tet")!r})["x"].mean("dim_0").values.tolist() == [1.5, 2.5, 3.5]
tercet.write({str(tmp_path / "a.tgm")!r}, [({{"step": 1}}, {{"x": np.arange(3)}})])
assert tercet.open({str(tmp_path / "a.tgm")!r})[0]["x"].to_numpy().tolist() == [0, 1, 2]
table = tercet.open({str(tmp_path / "a.tgm")!r}).table()
tercet.write({str(tmp_path / "a.tatami")!r}, table)
assert tercet.open({str(tmp_path / "a.tatami")!r}).scan(where="step = 1").count() == 1
try:
    tercet.open({str(tmp_path / "a.tatami")!r}).scan().to_arrow()
except ModuleNotFoundError as error:
    print(error.name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "pyarrow", done.stderr


def test_names_of_files_are_escaped_in_notebooks(tmp_path):
    pa = pytest.importorskip("pyarrow")
    name = "<script>x&y"
    tercet.write(tmp_path / "a.tet", {name: np.arange(3)}, dims={name: ["<b>"]}, attrs={name: {"units": "<i>"}})
    tercet.write(tmp_path / "a.tgm", [({"key": name}, {name: np.arange(3)})])
    tercet.write(tmp_path / "a.tatami", pa.table({name: [1]}))
    tet, tgm = tercet.open(tmp_path / "a.tet"), tercet.open(tmp_path / "a.tgm")
    shown = [tet, tet[name], tet[name].mean(), tgm, tgm[0], tgm[0][name], tercet.open(tmp_path / "a.tatami")]
    for one in shown:
        html = one._repr_html_()
        assert set(re.findall(r"<(?!/)([^>]*)>", html)) <= {"div", "b", "ul", "li", "code"}, html
        assert html.count("<b>") == 1 and ("&lt;script&gt;" in html or isinstance(one, tercet.Array))
        assert repr(one)
