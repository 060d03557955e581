"""Sources, views, outputs, progress, pickling, threads and memory."""

import gc
import io
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tercet


class Counting(io.BytesIO):
    """A file that counts the bytes that are read."""

    def __init__(self, data):
        super().__init__(data)
        self.total = 0

    def read(self, size: int | None = -1):
        data = super().read(size)
        self.total += len(data)
        return data


@pytest.fixture
def large(tmp_path):
    values = np.arange(64 * 128 * 64, dtype=np.float32).reshape(64, 128, 64)
    path = tmp_path / "large.tet"
    tercet.write(path, {"x": values}, dims={"x": ["time", "y", "z"]}, chunks={"x": [1, 128, 64]}, zstd=False)
    return path, values


def test_file_objects_are_read_by_ranges(large):
    path, values = large
    file = Counting(path.read_bytes())
    opened = tercet.open(file)
    np.testing.assert_array_equal(opened["x"][3], values[3])
    assert file.total < len(file.getvalue()) / 8
    with open(path, "rb") as real:
        np.testing.assert_array_equal(tercet.open(real)["x"].to_numpy(), values)


def test_files_without_positions_are_read_whole(large):
    path, values = large

    class Pipe(io.BytesIO):
        def seekable(self):
            return False

        def seek(self, *_):
            raise OSError("not seekable")

    np.testing.assert_array_equal(tercet.open(Pipe(path.read_bytes()))["x"][1], values[1])


def test_text_files_and_short_files_are_errors(large):
    path, _ = large
    with open(path, "r", encoding="latin-1") as text, pytest.raises(tercet.Error, match="rb"):
        tercet.open(text)

    class Short(io.BytesIO):
        def read(self, size: int | None = -1):
            return super().read(size)[:-1]

    with pytest.raises((tercet.Error, OSError)):
        tercet.open(Short(path.read_bytes()))["x"].to_numpy()
    with pytest.raises(TypeError):
        tercet.open(7)


def test_fsspec_files(large):
    fsspec = pytest.importorskip("fsspec")
    path, values = large
    fs = fsspec.filesystem("memory")
    with fs.open("/large.tet", "wb") as out:
        out.write(path.read_bytes())
    for file in (fsspec.open("memory://large.tet"), fs.open("/large.tet")):
        opened = tercet.open(file)
        np.testing.assert_array_equal(opened["x"][5:7], values[5:7])
        again = pickle.loads(pickle.dumps(opened))
        np.testing.assert_array_equal(again["x"][0], values[0])


def test_stores_with_the_obspec_protocol(large):
    obstore = pytest.importorskip("obstore")
    path, values = large
    store = obstore.store.LocalStore(str(path.parent))
    opened = tercet.open(store, "large.tet")
    np.testing.assert_array_equal(opened["x"][9, 3], values[9, 3])
    again = pickle.loads(pickle.dumps(opened["x"].isel(time=2)))
    np.testing.assert_array_equal(again.to_numpy(), values[2])
    with pytest.raises(TypeError, match="obspec"):
        tercet.open(object(), "large.tet")


def test_errors_of_python_sources_are_os_errors(large):
    path, _ = large

    class Failing(io.BytesIO):
        broken = False

        def read(self, size: int | None = -1):
            if self.broken:
                raise ConnectionError("the network is gone")
            return super().read(size)

    file = Failing(path.read_bytes())
    opened = tercet.open(file)
    file.broken = True
    with pytest.raises(tercet.TercetOSError, match="the network is gone"):
        opened["x"].to_numpy()


def test_out_and_dtype(large):
    path, values = large
    x = tercet.open(path)["x"]
    out = np.empty_like(values)
    assert x.to_numpy(out=out) is out
    np.testing.assert_array_equal(out, values)
    wide = np.empty(values.shape, np.float64)
    np.testing.assert_array_equal(x.to_numpy(out=wide), values)
    strided = np.empty((64, 128, 128), np.float32)[:, :, ::2]
    np.testing.assert_array_equal(x.to_numpy(out=strided), values)
    part = np.empty((128,), np.float32)
    np.testing.assert_array_equal(x.isel(time=3, z=-1).to_numpy(out=part), values[3, :, -1])
    assert x.to_numpy(dtype=np.float64).dtype == np.float64
    assert np.asarray(x, dtype=np.int64).dtype == np.int64
    with pytest.raises(tercet.RequestError, match="shape"):
        x.to_numpy(out=np.empty(3, np.float32))
    with pytest.raises(TypeError):
        x.to_numpy(out=np.empty(values.shape, np.int8))
    read_only = np.zeros_like(values)
    read_only.flags.writeable = False
    with pytest.raises(ValueError):
        x.to_numpy(out=read_only)


def test_views_of_mapped_files(tmp_path):
    values = np.arange(1000, dtype=np.float64).reshape(10, 100)
    path = tmp_path / "a.tet"
    tercet.write(path, {"one": values, "two": values}, chunks={"one": [10, 100], "two": [5, 100]}, zstd=False)
    file = tercet.open(path, mmap=True)
    view = file["one"].view()
    np.testing.assert_array_equal(view, values)
    assert not view.flags.writeable and not view.flags.owndata
    with pytest.raises(ValueError):
        view[0, 0] = 1
    del file
    gc.collect()
    np.testing.assert_array_equal(view, values)
    with pytest.raises(tercet.RequestError, match="several"):
        tercet.open(path, mmap=True)["two"].view()
    with pytest.raises(tercet.RequestError, match="mmap=True"):
        tercet.open(path)["one"].view()


def test_outputs_of_messages(tmp_path):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    path = tmp_path / "a.tgm"
    nan = values.copy()
    nan[0, 0] = np.nan
    tercet.write_tgm(path, [({"step": 1}, {"x": values, "nan": nan})])
    [message] = tercet.open(path)
    out = np.empty((2, 3), np.float32)
    assert message["x"].to_numpy(out=out) is out
    np.testing.assert_array_equal(out, values)
    wide = np.empty((2, 3))
    np.testing.assert_array_equal(message["nan"].to_numpy(out=wide), nan)
    assert message["x"].to_numpy(dtype=np.int16).dtype == np.int16
    with pytest.raises(tercet.RequestError, match="shape"):
        message["x"].to_numpy(out=np.empty(6, np.float32))


def test_messages_can_be_pickled(tmp_path):
    path = tmp_path / "a.tgm"
    tercet.write_tgm(path, [({"step": step}, {"x": np.full(3, step)}) for step in range(4)])
    file = tercet.open(path)
    message, one = pickle.loads(pickle.dumps((file[2], file[3]["x"])))
    assert message.metadata == {"step": 2} and one.to_numpy().tolist() == [3, 3, 3]
    with pytest.raises(TypeError, match="bytes"):
        pickle.dumps(tercet.open(path.read_bytes())[0])


def test_a_view_of_damaged_bytes_is_an_error(tmp_path):
    values = np.arange(100, dtype=np.float64)
    path = tmp_path / "a.tet"
    tercet.write(path, {"x": values}, zstd=False)
    data = bytearray(path.read_bytes())
    data[data.index(values.tobytes()) + 80] ^= 4
    path.write_bytes(data)
    with pytest.raises(tercet.CorruptError):
        tercet.open(path, mmap=True)["x"].view()


def test_dlpack(large):
    path, values = large
    x = tercet.open(path)["x"]
    np.testing.assert_array_equal(np.from_dlpack(x.isel(time=1)), values[1])
    np.testing.assert_allclose(np.from_dlpack(x.mean("time")), values.mean(0, dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_element_types_of_arrays(tmp_path, dtype):
    values = np.arange(30).reshape(5, 6).astype(dtype)
    path = tmp_path / "a.tet"
    for source in (values, values.astype(values.dtype.newbyteorder(">")), np.asfortranarray(values), values[::-1][::-1]):
        tercet.write(path, {"x": source}, chunks=[2, 3], overwrite=True)
        found = tercet.open(path)["x"].to_numpy()
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("dtype", ["int8", "complex64", "complex128", "bfloat16", "float16", "uint64"])
def test_element_types_of_messages(tmp_path, dtype):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    values = np.arange(6).reshape(2, 3).astype(dtype)
    path = tmp_path / "a.tgm"
    tercet.write_tgm(path, [({}, {"x": values})])
    found = tercet.open(path)[0]["x"].to_numpy()
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


def test_progress(large):
    path, values = large
    seen: list[int] = []
    x = tercet.open(path)["x"]
    x.to_numpy(progress=seen.append)
    assert seen and seen == sorted(seen) and seen[-1] >= values.nbytes
    tercet.verify(path, progress=seen.append)
    x.median(progress=True)
    x.to_numpy(progress=True)

    def fail(done):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        x.to_numpy(progress=fail)


def test_progress_without_tqdm(large, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    tercet.open(large[0])["x"].to_numpy(progress=True)
    assert "reading x" in capsys.readouterr().err


def test_indexing_with_masks_lists_and_new_axes(large):
    path, values = large
    x = tercet.open(path)["x"]
    mask = values[:, :, 0] % 3000 == 0
    keys = [
        np.s_[mask],
        np.s_[mask, 5],
        np.s_[[0, 5], [7, 9]],
        np.s_[[0, 5], :, [7, 9]],
        np.s_[[[0], [5]], [7, 9]],
        np.s_[None, 3, ..., None],
        np.s_[3, [1, 2], None],
        np.s_[[-1, 0], -1, ::-7],
        np.s_[[], 0],
        np.s_[np.zeros((64, 128), bool)],
        np.s_[np.int64(3), np.array([2], np.uint8)],
    ]
    for key in keys:
        found = x[key]
        np.testing.assert_array_equal(found, values[key], err_msg=str(key))
        assert found.shape == values[key].shape
    assert type(x[1, 2, 3]) is np.float32
    for key in [True, (mask[:3],), ([64],), 1.5]:
        with pytest.raises(IndexError):
            x[key]


def test_transforms(large):
    path, values = large
    x = tercet.open(path)["x"]
    found = x.isel(z=slice(0, 4)).transform("center", "time")
    assert found.dims == ("time", "y", "z")
    part = values[:, :, :4]
    np.testing.assert_allclose(found.values, part - part.mean(0, dtype=np.float64), rtol=1e-5)


def test_threads_share_a_file(large):
    path, values = large
    file = tercet.open(path)
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda at: file["x"][at], range(64)))
    np.testing.assert_array_equal(np.stack(parts), values)


def test_reads_release_the_lock(large):
    path, _ = large
    x = tercet.open(path)["x"]
    count = 0
    stop = threading.Event()

    def spin():
        nonlocal count
        while not stop.is_set():
            count += 1

    thread = threading.Thread(target=spin)
    thread.start()
    before = count
    for _ in range(20):
        x.to_numpy()
    after = count
    stop.set()
    thread.join()
    assert after > before


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np, tercet
x = tercet.open(sys.argv[1])["x"]
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        x.to_numpy(progress=lambda done: None)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="no signals")
def test_keyboard_interrupt(large):
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, str(large[0])], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "interrupted", done.stderr


def test_memory_is_released(large):
    resource = pytest.importorskip("resource")
    path, _ = large
    x = tercet.open(path)["x"]

    def used():
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    for _ in range(5):
        x.to_numpy()
    before = used()
    for _ in range(100):
        x.to_numpy()
        x.mean("time")
    # 100 copies would be 200 MB.
    assert used() - before < 50_000


def test_reference_counts_of_buffers(large):
    x = tercet.open(large[0])["x"]
    array = x[0]
    base = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    owner = sys.getrefcount(base)
    views = [array[1:] for _ in range(5)]
    assert sys.getrefcount(base) >= owner
    del views
    gc.collect()
    assert sys.getrefcount(base) == owner


def test_convert(tmp_path, large):
    path, values = large
    kept = tercet.convert(path, tmp_path / "a.nc", isel={"time": slice(0, 2)})
    assert any(one["name"] == "x" and one["fate"] == "exact" for one in kept)
    kept = tercet.convert(tmp_path / "a.nc", tmp_path / "b.tet", max_error={"t": 0.5}, rename={"x": "t"}, zstd=3)
    found = tercet.open(tmp_path / "b.tet")["t"].to_numpy()
    assert np.abs(found - values[:2]).max() <= 0.5
    assert any(one["fate"] == "changed" for one in kept)
    with pytest.raises(tercet.Error):
        tercet.convert(path, tmp_path / "a.nc")
    with pytest.raises(tercet.RequestError, match="extension"):
        tercet.convert(path, tmp_path / "a.xyz")
    with pytest.raises(tercet.NotFoundError):
        tercet.convert(tmp_path / "missing.nc", tmp_path / "c.tet")
    planned = tercet.convert(path, tmp_path / "d.tet", plan=True)
    assert planned and not (tmp_path / "d.tet").exists()


def test_salvage_and_summary(tmp_path, large):
    path, values = large
    assert tercet.summary(path)["datasets"]
    data = bytearray(path.read_bytes())
    data[data.index(values[3].tobytes()) + 8] ^= 1
    path.write_bytes(data)
    problems = tercet.verify(path)
    assert problems and not any(one["ok"] for one in problems)
    assert all("site" in one and one["detail"] for one in problems)
    report = tercet.salvage(path, tmp_path / "saved.tet", fill=-1.0)
    assert report["complete"] is False
    saved = tercet.open(tmp_path / "saved.tet")["x"]
    np.testing.assert_array_equal(saved[4], values[4])
    assert (saved[3] == -1).all()


def test_import_is_light():
    code = "import sys, tercet; print([name for name in ('pyarrow', 'xarray', 'polars', 'pandas', 'dask', 'tqdm') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_writers_and_transforms_report_progress(tmp_path):
    seen: list[int] = []
    values = np.arange(60_000.0).reshape(300, 200)
    tercet.write_tgm(tmp_path / "a.tgm", [({}, {"t": values}), ({}, {"t": values})], progress=seen.append)
    assert seen[-1] == 2 * values.nbytes
    tercet.write_tgm(tmp_path / "a.tgm", [({}, {"t": values})], append=True, progress=seen.append)
    assert seen[-1] >= values.nbytes and len(tercet.open(tmp_path / "a.tgm")) == 3
    tercet.write(tmp_path / "a.tet", {"t": values})
    seen.clear()
    found = tercet.open(tmp_path / "a.tet")["t"].transform("zscore", 0, progress=seen.append)
    np.testing.assert_allclose(found.values, (values - values.mean(0)) / values.std(0))
    assert seen[-1] > 0
    (tmp_path / "a.csv").write_text("id,name\n" + "".join(f"{at},n{at}\n" for at in range(2000)))
    seen.clear()
    tercet.write_tatami(tmp_path / "a.tatami", tmp_path / "a.csv", progress=seen.append)
    assert seen[-1] > 0


def test_a_callback_stops_an_endless_table(tmp_path):
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"id": np.arange(1000)})

    def endless():
        while True:
            yield batch

    def stop(done: int) -> None:
        if done > 0:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        tercet.write_tatami(tmp_path / "a.tatami", pa.RecordBatchReader.from_batches(batch.schema, endless()), progress=stop)
    assert not list(tmp_path.iterdir())
