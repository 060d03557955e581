"""Writing arrays of Dask with its schedulers."""

import threading

import numpy as np
import pytest

import tercet

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
xr = pytest.importorskip("xarray")
import tercet.xarray  # noqa: E402


@pytest.fixture
def ds():
    rng = np.random.default_rng(3)
    base = da.from_array(rng.normal(280, 10, (10, 7, 9)).astype(np.float32), chunks=(4, 7, 4))
    counts = da.from_array(rng.integers(0, 9, (10, 7)), chunks=(5, 3))
    return xr.Dataset(
        {"t": (("time", "y", "x"), base + 1), "anomaly": (("time", "y", "x"), base - base.mean(0)), "n": (("time", "y"), counts)},
        coords={"time": np.arange(10), "place": ("y", np.arange(7.0))},
    )


@pytest.mark.parametrize("scheduler", ["threads", "synchronous", "processes"])
@pytest.mark.parametrize("options", [{}, {"zstd": 1}, {"zstd": False}, {"max_error": {"t": 0.1}}, {"keep_bits": {"anomaly": 9}}])
def test_schedulers_write_the_same_values(tmp_path, ds, scheduler, options):
    with dask.config.set(scheduler=scheduler):
        ds.tercet.to_tet(tmp_path / "made.tet", **options)
    ds.compute().tercet.to_tet(tmp_path / "expected.tet", chunks={"time": 4, "x": 4}, **options)
    assert tercet.verify(tmp_path / "made.tet") == []
    made, expected = tercet.open(tmp_path / "made.tet"), tercet.open(tmp_path / "expected.tet")
    assert list(made) == list(expected)
    assert made["t"].chunks == (4, 7, 4) and made["n"].chunks == (5, 3)
    for name in expected:
        np.testing.assert_array_equal(made[name].to_numpy(), expected[name].to_numpy())
        assert made[name].attrs == expected[name].attrs
    if "max_error" in options:
        assert 0 < np.abs(made["t"].to_numpy() - ds["t"].values).max() <= 0.1


def test_threads_write_at_the_same_time(tmp_path):
    names = set()
    meeting = threading.Barrier(2, timeout=30)

    def meet(block):
        names.add(threading.current_thread().name)
        meeting.wait()
        return block

    # Two blocks after the first one, which decides the compression, meet in two threads.
    data = da.zeros((2, 3), chunks=(1, 3)).map_blocks(meet, dtype=float, meta=np.zeros((0, 0)))
    with dask.config.set(scheduler="threads", num_workers=2):
        tercet.write(tmp_path / "a.tet", {"x": data}, zstd=3)
    assert len(names) == 2
    assert tercet.open(tmp_path / "a.tet")["x"].shape == (2, 3)


def test_shared_blocks_are_computed_once(tmp_path):
    seen = []

    def count(block):
        seen.append(block.shape)
        return block

    base = da.ones((6, 4), chunks=(2, 4)).map_blocks(count, dtype=float, meta=np.zeros((0, 0)))
    both = {"a": base + 1, "b": base * 3}
    tercet.write(tmp_path / "a.tet", both, zstd=False)
    assert len(seen) == 3
    assert (tercet.open(tmp_path / "a.tet")["b"].to_numpy() == 3).all()


def test_a_failing_block_leaves_no_file(tmp_path):
    def fail(block, block_info=None):
        if block_info is not None and block_info[0]["chunk-location"] == (3,):
            raise RuntimeError("no data")
        return block

    data = da.zeros(8, chunks=2).map_blocks(fail, dtype=float, meta=np.zeros(0))
    (tmp_path / "old.tet").write_bytes(b"old")
    with pytest.raises(RuntimeError, match="no data"):
        tercet.write(tmp_path / "old.tet", {"x": data}, overwrite=True)
    assert (tmp_path / "old.tet").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["old.tet"]


def test_unaligned_chunks_name_the_fix(tmp_path):
    data = da.zeros((10, 4), chunks=((3, 4, 3), 4))
    with pytest.raises(tercet.RequestError, match=r"array.rechunk\(\{0: 3\}\)"):
        tercet.write(tmp_path / "a.tet", {"x": data})
    tercet.write(tmp_path / "a.tet", {"x": data.rechunk({0: 3})})
    ds = xr.Dataset({"x": (("time", "y"), data)})
    with pytest.raises(tercet.RequestError, match=r"ds.chunk\(\{'time': 4\}\)"):
        ds.tercet.to_tet(tmp_path / "b.tet", chunks={"time": 4})
    ds.chunk({"time": 4}).tercet.to_tet(tmp_path / "b.tet", chunks={"time": 2})
    assert tercet.open(tmp_path / "b.tet")["x"].chunks == (2, 4)


def test_masked_arrays_are_refused(tmp_path):
    masked = np.ma.masked_greater(np.arange(4.0), 2)
    with pytest.raises(tercet.RequestError, match="filled"):
        tercet.write(tmp_path / "a.tet", {"x": masked})
    with pytest.raises(tercet.RequestError, match="filled"):
        tercet.write(tmp_path / "a.tet", {"x": da.from_array(masked, chunks=2)})
    assert not (tmp_path / "a.tet").exists()


def test_a_cluster_encodes_and_the_caller_writes(tmp_path, ds):
    distributed = pytest.importorskip("distributed")
    options = dict(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1")
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        ds.tercet.to_tet(tmp_path / "now.tet", max_error={"t": 0.1})
        later = ds.tercet.to_tet(tmp_path / "later.tet", compute=False)
        later.compute()
        with pytest.raises(ZeroDivisionError):
            broken = ds["n"].data.map_blocks(lambda block: 1 // 0, dtype=int, meta=np.zeros((0, 0), int))
            tercet.write(tmp_path / "broken.tet", {"n": broken}, zstd=3)
    ds = ds.compute()
    for name, bound in (("now", 0.1), ("later", 0)):
        assert tercet.verify(tmp_path / f"{name}.tet") == []
        found = tercet.open(tmp_path / f"{name}.tet")
        assert np.abs(found["t"].to_numpy() - ds["t"].values).max() <= bound
        np.testing.assert_array_equal(found["anomaly"].to_numpy(), ds["anomaly"].values)
        np.testing.assert_array_equal(found["n"].to_numpy(), ds["n"].values)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["later.tet", "now.tet"]
