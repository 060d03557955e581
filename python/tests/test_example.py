"""What a user does first: paths, URLs, computations, tables, search, writing; over files as they are in practice."""

import http.server
import os
import pathlib
import re
import shutil
import subprocess
import threading
from typing import Any

import numpy as np
import pytest

import tercet

for package in ("dask", "duckdb", "pyarrow", "xarray"):
    pytest.importorskip(package)

EXAMPLE = """
import duckdb
import tercet, xarray as xr
ds  = xr.open_dataset("era5.tet", chunks={})            # lazy, Dask chunks = stored chunks, verified on read
ds  = xr.open_dataset("https://host/run.tgm")           # messages merged into a hypercube
tet = tercet.open("era5.tet"); tet["t2m"].sel(level=850).mean("time")      # computed in Rust, GIL released
msg = tercet.open("run.tgm")[3]; msg["t2m"].to_numpy()
tab = tercet.open("crawl.tatami").scan(columns=["url","status","host"], where="status >= 400").to_arrow()
duckdb.sql("select host, count(*) from tab group by 1")                     # through the Arrow stream, no copy of the file
hits = tercet.open("docs.tatami").search("memory safety", k=10)             # hits with scores, snippets; hits.to_arrow()
tercet.write("out.tet", ds, zstd=3, max_error={"t2m": 0.01}); tercet.convert("in.nc", "out.tet")
"""


#: Files and numbers of bytes that were served.
REQUESTS: list[tuple[str, int]] = []


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Files of a directory, with ranges, as every object store serves them."""

    def log_message(self, format, *args):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, with_body):
        path = pathlib.Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        start, end = 0, len(data)
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if match and match[1]:
            start, end = int(match[1]), min(len(data), int(match[2] or len(data)) + 1)
        elif match:
            start = max(0, len(data) - int(match[2]))
        self.send_response(206 if match else 200)
        if match:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{path.stat().st_mtime_ns:x}-{len(data):x}"')
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        if with_body:
            REQUESTS.append((path.name, end - start))
            self.wfile.write(data[start:end])


@pytest.fixture
def served(tmp_path):
    """A directory, and its URL on loopback."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: Ranges(*args, directory=str(tmp_path)))
    REQUESTS.clear()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", REQUESTS
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def files(tmp_path, monkeypatch, golden):
    import pyarrow as pa
    import xarray as xr

    monkeypatch.chdir(tmp_path)
    t2m = (250 + np.arange(6 * 2 * 4 * 5, dtype=np.float32) / 8).reshape(6, 2, 4, 5)
    tercet.write(
        "era5.tet",
        {"t2m": t2m, "level": np.array([500, 850]), "time": np.arange(6)},
        dims={"t2m": ["time", "level", "lat", "lon"], "level": ["level"], "time": ["time"]},
        attrs={"t2m": {"units": "K"}, "time": {"units": "hours since 2024-06-01"}},
        chunks={"t2m": [2, 1, 4, 5], "level": [2], "time": [6]},
    )
    tercet.write("run.tgm", [({"step": step}, {"t2m": t2m[step, 0]}) for step in range(6)])
    statuses = [200, 404, 500, 301] * 5
    hosts = [f"host-{number % 3}" for number in range(20)]
    urls = [f"https://{host}/{number}" for number, host in enumerate(hosts)]
    tercet.write("crawl.tatami", pa.table({"url": urls, "status": statuses, "host": hosts}))
    xr.Dataset({"t2m": (("time", "x"), t2m[:, 0, 0])}).to_netcdf("in.nc")
    documents = pathlib.Path("docs")
    documents.mkdir()
    (documents / "borrow.txt").write_text("The borrow checker makes memory safety a matter of types.")
    (documents / "collector.txt").write_text("A collector frees what no one owns.")
    program = os.environ.get("TERCET_PROGRAM")
    if program is not None:
        subprocess.run([program, "index", "docs", "-o", "docs.tatami"], check=True, capture_output=True)
    else:
        shutil.copy(golden / "tatami" / "seg_full.tatami", "docs.tatami")
    return t2m


def test_every_line_of_the_example_runs(files, served):
    url, requests = served
    scope: dict[str, Any] = {}
    for line in EXAMPLE.replace("https://host", url).strip().splitlines():
        if line.startswith("tercet.write"):
            # The second half writes the same file again.
            first, second = line.split("; ")
            exec(first, scope)
            written = tercet.open("out.tet")["t2m"].to_numpy()
            assert np.abs(written - files[:, 0]).max() <= 0.01
            with pytest.raises(tercet.Error, match="exists"):
                exec(second, scope)
            os.remove("out.tet")
            exec(second, scope)
            continue
        exec(line, scope)
        if 'chunks={}' in line:
            assert scope["ds"]["t2m"].chunks == ((2, 2, 2), (1, 1), (4,), (5,))
            np.testing.assert_array_equal(scope["ds"]["t2m"].values, files)
    assert dict(scope["ds"]["t2m"].sizes) == {"step": 6, "dim_0": 4, "dim_1": 5}
    np.testing.assert_array_equal(scope["ds"]["t2m"].values, files[:, 0])
    assert {name for name, _ in requests} == {"run.tgm"}
    mean = scope["tet"]["t2m"].sel(level=850).mean("time")
    np.testing.assert_allclose(mean.values, files[:, 1].mean(0))
    np.testing.assert_array_equal(scope["msg"]["t2m"].to_numpy(), files[3, 0])
    tab = scope["tab"]  # noqa: F841: DuckDB finds it by name
    rows = scope["duckdb"].sql("select host, count(*) from tab group by 1 order by 1").fetchall()
    assert rows == [("host-0", 3), ("host-1", 3), ("host-2", 4)]
    assert scope["hits"].to_arrow().num_rows == len(scope["hits"])
    if "TERCET_PROGRAM" in os.environ:
        [hit] = scope["hits"]
        assert hit.score > 0 and "memory safety" in hit.snippet and hit.marks
        assert scope["hits"].to_arrow()["url"].to_pylist() == ["borrow.txt"]
    np.testing.assert_array_equal(tercet.open("out.tet")["t2m"].to_numpy(), files[:, 0, 0])


def test_urls_are_read_by_ranges(files, served, tmp_path):
    url, requests = served
    values = np.arange(64 * 4096, dtype=np.float32).reshape(64, 4096)
    tercet.write("large.tet", {"x": values}, chunks=[1, 4096], zstd=False)
    with tercet.open(f"{url}/large.tet") as file:
        np.testing.assert_array_equal(file["x"][7], values[7])
    assert sum(length for _, length in requests) < values.nbytes / 4
    with pytest.raises(tercet.NotFoundError, match="404"):
        tercet.open(f"{url}/missing.tet")
