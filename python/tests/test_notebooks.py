"""The notebooks run from the first cell to the last."""

import ast
import json
import pathlib
import warnings

import pytest

DIRECTORY = pathlib.Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(DIRECTORY.glob("*.ipynb"))


def run(code, scope, name):
    """Runs a cell. Its last expression is displayed, as in a notebook."""
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), scope)
    if last is not None:
        shown = eval(compile(ast.Expression(last.value), name, "eval"), scope)
        repr(shown)
        html = getattr(shown, "_repr_html_", None)
        assert html is None or html()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook(path, tmp_path, monkeypatch):
    for package in ("dask", "duckdb", "pandas", "polars", "pyarrow", "xarray"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    scope: dict[str, object] = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                assert cell["outputs"] == [], "notebooks are stored without outputs"
                run("".join(cell["source"]), scope, f"{path.name} cell {number}")


def test_all_notebooks_are_here():
    assert len(NOTEBOOKS) == 5
