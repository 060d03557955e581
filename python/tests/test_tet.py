"""Arrays."""

import pickle
from typing import Any

import numpy as np
import pytest

import tercet


def test_indexing_is_that_of_numpy(weather):
    path, values = weather
    t2m = tercet.open(path)["t2m"]
    keys = [
        np.s_[...],
        np.s_[0],
        np.s_[-1],
        np.s_[1:3],
        np.s_[:, 1],
        np.s_[..., ::2],
        np.s_[::-1, :, 4],
        np.s_[1, 2, 3],
        np.s_[[3, 0, 3]],
        np.s_[:, [2, 0]],
        np.s_[1, :, [4, 0, 1]],
        np.s_[np.array([True, False, True, False])],
        np.s_[0:0],
        np.s_[-3:-1, 0, ...],
    ]
    for key in keys:
        expected = values[key]
        found = t2m[key]
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, expected, err_msg=str(key))


@pytest.mark.parametrize("key", [(0, 0, 0, 0), 4, -5, [9], (slice(None), [True, False])])
def test_invalid_indices_are_errors(weather, key):
    t2m = tercet.open(weather[0])["t2m"]
    with pytest.raises((IndexError, tercet.RequestError)):
        t2m[key]


def test_selections_by_label(weather):
    path, values = weather
    t2m = tercet.open(path)["t2m"]
    np.testing.assert_array_equal(t2m.sel(lat=50).to_numpy(), values[:, 1])
    np.testing.assert_array_equal(t2m.sel(lat=slice(60, 50)).to_numpy(), values[:, :2])
    np.testing.assert_array_equal(t2m.sel(time="2024-06-01T12").to_numpy(), values[2])
    np.testing.assert_array_equal(t2m.sel(lat=52, method="nearest").to_numpy(), values[:, 1])
    assert t2m.sel(lat=50).dims == ("time", "lon")
    with pytest.raises(tercet.RequestError, match="lat"):
        t2m.sel(lat=12)
    with pytest.raises(KeyError, match="did you mean 'lat'"):
        t2m.sel(lap=12)


def test_reductions_match_numpy(weather):
    path, values = weather
    t2m = tercet.open(path)["t2m"]
    operations: dict[str, Any] = {
        "sum": np.sum,
        "mean": np.mean,
        "min": np.min,
        "max": np.max,
        "std": np.std,
        "var": np.var,
        "median": np.median,
    }
    for name, expected in operations.items():
        for over, axis in {None: None, "time": 0, ("lat", "lon"): (1, 2), -1: 2}.items():
            result = getattr(t2m, name)(over)
            np.testing.assert_allclose(result.values, expected(values.astype(float), axis=axis), rtol=1e-12)
    both = t2m.reduce(["mean", "max"], "time")
    assert list(both) == ["mean", "max"]
    assert both["mean"].dims == ("lat", "lon")
    assert both["mean"].attrs["units"] == "K"


def test_results_have_coordinates(weather):
    t2m = tercet.open(weather[0])["t2m"]
    mean = t2m.mean("lon")
    assert mean.dims == ("time", "lat")
    np.testing.assert_array_equal(mean.coords["lat"], [60, 50, 40])
    assert mean.coords["time"][1] == np.datetime64("2024-06-01T06")
    months = t2m.mean(group_by="time.hour")
    assert months.shape == (4, 3, 5)
    rolled = t2m.mean(rolling={"time": 2})
    assert rolled.shape == (3, 3, 5)
    weighted = t2m.mean(["lat", "lon"], weights="cos(lat)")
    assert weighted.shape == (4,)


def test_missing_values_are_skipped_and_counted(weather):
    packed = tercet.open(weather[0])["packed"]
    mean = packed.mean()
    assert mean.item() == pytest.approx(17 / 5 / 2)
    assert mean.skipped == 1
    assert packed.mean(raw=True).item() == pytest.approx((17 - 999) / 6)
    decoded = packed.to_numpy(decode=True)
    assert np.isnan(decoded[1, 0]) and decoded[1, 1] == 2.5
    assert packed.to_numpy()[1, 0] == -999


def test_matrices(tmp_path):
    values = np.random.default_rng(3).normal(size=(30, 4))
    arrays = {"t": values, "lat": np.arange(4.0)}
    tercet.write(tmp_path / "a.tet", arrays, dims={"t": ["time", "lat"], "lat": ["lat"]})
    t = tercet.open(tmp_path / "a.tet")["t"]
    found = t.covariance("time")
    assert found.dims == ("lat", "lat_2") and found.coords["lat"].tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(t.correlation("time").to_xarray().values, np.corrcoef(values.T))
    # As variances: of the population.
    np.testing.assert_allclose(found.values, np.cov(values.T, bias=True))
    np.testing.assert_allclose(np.diag(found.values), t.var("time").values)
    with pytest.raises(tercet.RequestError, match="2 axes"):
        tercet.open(tmp_path / "a.tet")["lat"].covariance("lat")


def test_files_show_what_they_contain(tmp_path):
    path = tmp_path / "a.tet"
    tercet.write(path, {"t": np.zeros((100, 100)), "x": np.zeros(2)}, file_attrs={"title": "zeros\nand more", "run": 3})
    shown = repr(tercet.open(path))
    assert "80.0 kB of values" in shown and "times the file" in shown and "verified on read" in shown
    assert "title: zeros and more" in shown and "run: 3" in shown and "(dim_0: 100, dim_1: 100) float64" in shown
    assert "title: zeros and more" in tercet.open(path)._repr_html_()
    assert "opened with verify=False" in repr(tercet.open(path, verify=False))
    tercet.write_tgm(tmp_path / "a.tgm", [({"step": 0}, {"t": np.zeros(3)})])
    size = (tmp_path / "a.tgm").stat().st_size
    assert f"1 message; {size} bytes" in repr(tercet.open(tmp_path / "a.tgm"))
    pa = pytest.importorskip("pyarrow")
    tercet.write(tmp_path / "a.tatami", pa.table({"url": ["a"], "status": [200]}))
    assert "columns: url (string), status (int64)" in repr(tercet.open(tmp_path / "a.tatami"))


def test_filters_and_positions(weather):
    path, values = weather
    t2m = tercet.open(path)["t2m"]
    assert t2m.count(where="value > 300").item() == (values > 300).sum()
    with pytest.raises(tercet.RequestError, match="filter"):
        t2m.count(where="value >")
    with pytest.raises(tercet.RequestError, match="mean"):
        t2m.reduce("meen")
    assert t2m.argmax("time").values.tolist() == np.argmax(values, axis=0).tolist()


def test_arrays_own_their_memory(weather):
    path, values = weather
    with tercet.open(path) as file:
        array = file["t2m"].to_numpy()
    del file
    array += 1
    np.testing.assert_array_equal(array, values + 1)


def test_files_are_mappings(weather):
    file = tercet.open(weather[0])
    assert list(file) == ["t2m", "lat", "time", "packed"] and len(file) == 4
    assert "t2m" in file and "t2n" not in file
    with pytest.raises(KeyError, match="did you mean 't2m'"):
        file["t2n"]
    assert "t2m" in repr(file) and "t2m" in file._repr_html_()
    assert file.summary()["format"] if "format" in file.summary() else file.summary()


def test_closed_files_are_errors(weather):
    file = tercet.open(weather[0])
    dataset = file["t2m"]
    file.close()
    with pytest.raises(ValueError, match="closed"):
        dataset.to_numpy()


def test_pickling_reopens(weather):
    path, values = weather
    file = tercet.open(path)
    again = pickle.loads(pickle.dumps(file["t2m"].isel(time=1)))
    np.testing.assert_array_equal(again.to_numpy(), values[1])
    with pytest.raises(TypeError, match="bytes"):
        pickle.dumps(tercet.open(path.read_bytes()))


def test_damage_is_an_error_with_its_place(weather, tmp_path):
    path, values = weather
    data = bytearray(path.read_bytes())
    where = data.index(values.tobytes()[:16])
    data[where + 3] ^= 1
    damaged = tmp_path / "damaged.tet"
    damaged.write_bytes(data)
    with pytest.raises(tercet.CorruptError, match="damaged") as caught:
        tercet.open(damaged)["t2m"].to_numpy()
    assert caught.value.file == str(damaged)
    assert caught.value.span is not None
    start, end = caught.value.span
    assert start <= where < end
    assert tercet.verify(damaged) and not tercet.verify(path)
    assert caught.value.region and caught.value.region in str(caught.value) and caught.value.field is None
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is tercet.CorruptError and again.span == (start, end) and again.region == caught.value.region
    data[4] = 99
    damaged.write_bytes(data)
    with pytest.raises(tercet.Error) as malformed:
        tercet.open(damaged)["t2m"].to_numpy()
    assert malformed.value.region and malformed.value.field
    assert f"{malformed.value.region} › {malformed.value.field}" in str(malformed.value)
    with pytest.raises(tercet.RequestError) as request:
        tercet.open(path)["t2m"].sel(lat=12)
    assert request.value.region is None and request.value.field is None


def test_missing_and_foreign_files_are_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        tercet.open(tmp_path / "none.tet")
    text = tmp_path / "text.tet"
    text.write_text("no container")
    with pytest.raises(tercet.MalformedError):
        tercet.open(text)


@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "big"])
def test_arrays_round_trip(tmp_path, dtype, layout):
    values = np.arange(24).reshape(4, 6).astype(dtype)
    stored = {
        "C": values,
        "F": np.asfortranarray(values),
        "strided": np.repeat(values, 2, axis=1)[:, ::2],
        "big": values.astype(values.dtype.newbyteorder(">")),
    }[layout]
    path = tmp_path / "a.tet"
    tercet.write(path, {"a": stored}, zstd=layout == "C")
    found = tercet.open(path)["a"].to_numpy()
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


def test_scalars_are_refused(tmp_path):
    with pytest.raises(tercet.RequestError, match="1 to 8"):
        tercet.write(tmp_path / "a.tet", {"one": np.float64(3.5)})


def test_attributes_have_types(tmp_path):
    path = tmp_path / "a.tet"
    attrs = {"units": "K", "level": 850, "_FillValue": -1, "note": "x" * 2000, "scale_factor": 0}
    tercet.write(path, {"a": np.zeros(3, np.int16)}, attrs={"a": attrs}, file_attrs={"title": "weather", "run": 3})
    # The long one is not visible to other programs, nor is a factor of 0, with which queries would fail.
    assert tercet.open(path)["a"].attrs == {"units": "K", "level": "850", "_FillValue": "-1"}
    metadata = tercet.open(path).summary()["metadata"]
    assert metadata["file"]["attrs"] == {"title": "weather", "run": 3}
    records = {one[0]: one[1:] for one in metadata["datasets"]["a"]["typed"]["attrs"]}
    assert records["level"] == ["i64", "850"] and records["_FillValue"] == ["i16", "-1"]
    assert records["note"] == ["string", "x" * 2000, "only here"]
    assert tercet.open(path)["a"].count().item() == 3
    plain = tmp_path / "plain.tet"
    tercet.write(plain, {"a": np.zeros(3)}, attrs={"a": {"units": "K"}})
    assert tercet.open(plain).summary()["metadata"]["datasets"] == {"a": {"attrs": {"units": "K"}}}


def test_existing_files_are_kept(tmp_path):
    path = tmp_path / "a.tet"
    tercet.write(path, {"a": np.zeros(3)})
    with pytest.raises(FileExistsError) as caught:
        tercet.write(path, {"a": np.ones(3)})
    assert isinstance(caught.value, tercet.RequestError) and isinstance(caught.value, tercet.TercetOSError)
    assert tercet.open(path)["a"][0] == 0
    tercet.write(path, {"a": np.ones(3)}, overwrite=True)
    assert tercet.open(path)["a"][0] == 1


def test_strings_and_objects_are_refused(tmp_path):
    with pytest.raises(tercet.RequestError, match="cannot be stored"):
        tercet.write(tmp_path / "a.tet", {"a": np.array(["x"])})
    with pytest.raises(tercet.RequestError, match="cannot infer the format"):
        tercet.write(tmp_path / "a.nc", {"a": np.zeros(3)})
    assert not list(tmp_path.iterdir())


def test_rounding_keeps_its_bound(tmp_path):
    values = np.random.default_rng(1).normal(280, 10, (50, 60)).astype(np.float32)
    path = tmp_path / "a.tet"
    tercet.write(path, {"a": values}, max_error=0.01)
    assert np.abs(tercet.open(path)["a"].to_numpy() - values).max() <= 0.01
    assert path.stat().st_size < values.nbytes * 0.8


def test_golden_files(golden):
    for path in sorted((golden / "tet").glob("dtype_*.tet")):
        file = tercet.open(path)
        for name in file:
            array = file[name].to_numpy()
            assert array.shape == file[name].shape


def test_threads_share_a_file(weather):
    from concurrent.futures import ThreadPoolExecutor

    path, values = weather
    dataset = tercet.open(path)["t2m"]
    with ThreadPoolExecutor(8) as pool:
        means = list(pool.map(lambda step: dataset.isel(time=step % 4).mean().item(), range(64)))
    np.testing.assert_allclose(means, [values[step % 4].mean() for step in range(64)])


def test_interrupts_stop_computations(tmp_path):
    import signal
    import threading

    path = tmp_path / "a.tet"
    values = np.random.default_rng(0).normal(size=(64, 250_000))
    tercet.write(path, {"a": values}, zstd=False)
    dataset = tercet.open(path)["a"]
    # A process in the background of a shell ignores interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.15, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in range(200):
                dataset.median(0)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
