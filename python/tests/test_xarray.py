"""xarray and Dask."""

import pickle

import numpy as np
import pytest

import tercet

xr = pytest.importorskip("xarray")


def test_open_dataset(weather):
    path, values = weather
    for opened in (xr.open_dataset(path), xr.open_dataset(path, engine="tercet")):
        assert opened["t2m"].dims == ("time", "lat", "lon")
        np.testing.assert_array_equal(opened["t2m"].values, values)
        np.testing.assert_array_equal(opened["lat"].values, [60, 50, 40])
        assert opened["time"].values[1] == np.datetime64("2024-06-01T06")
        assert opened["t2m"].attrs["units"] == "K"
        assert opened["t2m"].sel(lat=50, time="2024-06-01T12").shape == (5,)


def test_values_are_decoded(weather):
    packed = xr.open_dataset(weather[0])["packed"]
    assert np.isnan(packed.values[1, 0]) and packed.values[1, 1] == 2.5
    raw = xr.open_dataset(weather[0], mask_and_scale=False)["packed"]
    assert raw.values[1, 0] == -999


def test_selections_are_lazy(weather, monkeypatch):
    path, values = weather
    reads = []
    original = tercet.Dataset.to_numpy

    def counted(self, **options):
        reads.append((self.name, self.shape))
        return original(self, **options)

    monkeypatch.setattr(tercet.Dataset, "to_numpy", counted)
    opened = xr.open_dataset(path)
    reads.clear()
    part = opened["t2m"].isel(time=1, lon=slice(0, 2))
    assert not reads
    np.testing.assert_array_equal(part.values, values[1, :, :2])
    assert reads == [("t2m", (3, 2))]


def test_dask_chunks_are_the_stored_ones(weather):
    pytest.importorskip("dask")
    path, values = weather
    opened = xr.open_dataset(path, chunks={})
    assert opened["t2m"].chunks == ((2, 2), (3,), (5,))
    np.testing.assert_allclose(opened["t2m"].mean("time").compute(), values.mean(0))
    again = pickle.loads(pickle.dumps(xr.open_dataset(path)))
    np.testing.assert_array_equal(again["t2m"].values, values)


def test_datasets_round_trip(tmp_path):
    made = xr.Dataset(
        {
            "t": (("time", "x"), np.random.default_rng(0).normal(size=(3, 4)), {"units": "K"}),
            "n": (("x",), np.arange(4)),
        },
        coords={"time": np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "datetime64[ns]"), "x": [1.0, 2.0, 3.0, 4.0]},
    )
    path = tmp_path / "a.tet"
    tercet.write(path, made)
    found = xr.open_dataset(path)
    xr.testing.assert_equal(found.load(), made)
    assert found["t"].attrs["units"] == "K"


def test_records_of_convert(tmp_path):
    pytest.importorskip("netCDF4")
    made = xr.Dataset(
        {
            "t": (("time", "x"), np.arange(6, dtype=np.float32).reshape(3, 2), {"units": "K", "flags": np.array([1, 2], np.int16)}),
            "small": ("x", np.array([-128, 127], np.int8)),
            "mask": (("x",), np.array([True, False])),
            "level": ((), np.float64(850), {"units": "hPa"}),
        },
        coords={
            "time": ("time", np.array(["2024-01-01", "2024-01-02", "2024-01-05"], "datetime64[ns]")),
            "height": ("x", [2.0, 10.0]),
            "reference": np.datetime64("2024-01-01", "ns"),
        },
        attrs={"title": "everything", "version": 3, "bounds": np.array([0.5, 1.5]), "empty": "", "long": "y" * 5000},
    )
    made.to_netcdf(tmp_path / "a.nc", engine="netcdf4", unlimited_dims=["time"])
    expected = xr.open_dataset(tmp_path / "a.nc", engine="netcdf4").load()
    tercet.convert(tmp_path / "a.nc", tmp_path / "a.tet")
    found = xr.open_dataset(tmp_path / "a.tet")
    assert found.encoding["unlimited_dims"] == {"time"}
    xr.testing.assert_identical(found.load(), expected)
    for name in ("small", "mask", "level", "t"):
        assert found[name].dtype == expected[name].dtype
    np.testing.assert_array_equal(xr.open_dataset(tmp_path / "a.tet")["t"].isel(x=[1], time=0).values, [1])


def everything():
    times = np.array(["2024-01-01", "2024-01-02", "2024-01-05"], "datetime64[ns]")
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    attrs = {"units": "K", "flags": np.array([1, 2], np.int16), "level": 850, "factor": np.float32(0.1), "empty": ""}
    return xr.Dataset(
        {
            "t": (("time", "x"), values, attrs),
            "small": ("x", np.array([-128, 127], np.int8)),
            "mask": (("x",), np.array([True, False])),
            "wave": (("time", "x"), values + 1j * values.astype(np.complex64)),
            "phase": ((), np.complex128(1 + 2j)),
            "level": ((), np.float64(850), {"units": "hPa"}),
            "name": ("x", np.array(["Zürich", ""], object), {"long_name": "name of the station"}),
            "code": ("x", np.array([b"a", b"bcd"])),
            "title": ((), "one string"),
            "since": ("x", np.array([3, 4], "timedelta64[h]").astype("timedelta64[ns]")),
            "plain": ("dim_0", np.arange(3)),
        },
        coords={
            "time": ("time", times),
            "height": ("x", [2.0, 10.0]),
            "lat2d": (("time", "x"), values + 40),
            "reference": np.datetime64("2024-01-01", "ns"),
            "x": ("x", ["10", "20"], {"long_name": "station"}),
        },
        attrs={
            "title": "everything", "version": 3, "bounds": np.array([0.5, 1.5]), "ratio": np.float32(0.1), "empty": "",
            "long": "y" * 5000, "none": np.nan, "tags": ["a", "b"], "ok": True, "nested": {"a": [1, None]},
        },
    )


def check_everything(found, made):
    xr.testing.assert_identical(found, made)
    for name in made.variables:
        # Strings of any type are equal to each other.
        if made[name].dtype.kind not in "OUS":
            assert found[name].dtype == made[name].dtype, name
    assert type(found.attrs["ratio"]) is np.float32 and found["t"].attrs["flags"].dtype == np.int16
    assert found["t"].attrs["level"] == 850 and found.attrs["version"] == 3


def test_everything_of_a_dataset_is_kept(tmp_path):
    import tercet.xarray

    made = everything()
    made.encoding["unlimited_dims"] = {"time"}
    tercet.write(tmp_path / "a.tet", made)
    found = xr.open_dataset(tmp_path / "a.tet")
    assert found.encoding["unlimited_dims"] == {"time"}
    check_everything(found.load(), made)
    # Once more, from what was read.
    found.tercet.to_tet(tmp_path / "b.tet")
    check_everything(xr.open_dataset(tmp_path / "b.tet").load(), made)
    made.isel(time=0, x=1).tercet.to_tet(tmp_path / "point.tet")
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "point.tet").load(), made.isel(time=0, x=1))
    # The values are readable without the record, and the attributes visible.
    file = tercet.open(tmp_path / "a.tet")
    assert file["small"].to_numpy().tolist() == [-128, 127] and file["wave"].shape == (3, 2, 2)
    assert file["t"].attrs["level"] == "850" and file.summary()["metadata"]["file"]["attrs"]["version"] == 3
    assert file["t"].sel(x="20").dims == ("time",)


def test_everything_is_converted(tmp_path):
    pytest.importorskip("netCDF4")
    made = everything()
    made = made.drop_vars(["wave", "phase"])
    for name in ("ok", "nested", "none"):
        del made.attrs[name]
    tercet.write(tmp_path / "a.tet", made)
    report = tercet.convert(tmp_path / "a.tet", tmp_path / "a.nc")
    assert not [one for one in report if one["fate"] == "lost"], report
    found = xr.open_dataset(tmp_path / "a.nc", engine="netcdf4").load()
    for name in ("t", "small", "mask", "level", "title", "name", "lat2d", "time"):
        np.testing.assert_array_equal(found[name].values, made[name].values)
    assert found.attrs["version"] == 3 and found["t"].attrs["flags"].dtype == np.int16


def test_everything_of_dask_is_kept(tmp_path):
    pytest.importorskip("dask")
    import tercet.xarray  # noqa: F401

    made = everything()
    chunked = made.chunk({"time": 2})
    chunked.tercet.to_tet(tmp_path / "a.tet")
    check_everything(xr.open_dataset(tmp_path / "a.tet").load(), made)
    assert tercet.open(tmp_path / "a.tet")["wave"].chunks == (2, 2, 2)


def test_what_cannot_be_stored_is_refused(tmp_path):
    import tercet.xarray

    path = tmp_path / "a.tet"
    for made, message in [
        (xr.Dataset({"s": ("x", np.array(["a", None], object))}), "missing or mixed strings"),
        (xr.Dataset({"s": ("x", ["a\0b"])}), "NUL"),
        (xr.Dataset({"s": ("x", ["ä"], {}, {"_Encoding": "ascii"})}), "'ascii' codec can't encode"),
        (xr.Dataset({3: ("x", [1.0])}), "not 3"),
        (xr.Dataset({"t": ("x", [1.0])}, attrs={"made": np.datetime64("2024-01-01")}), "attribute 'made'"),
        (xr.Dataset({"t": ("x", [1.0], {"object": object()})}), "attribute 'object'"),
    ]:
        with pytest.raises(tercet.RequestError, match=message):
            tercet.write(path, made)
    with pytest.raises(tercet.RequestError, match="'city' holds strings"):
        xr.Dataset({"t": ("city", [1.0])}, coords={"city": ["Bonn"]}).tercet.to_tgm(tmp_path / "a.tgm")
    assert not list(tmp_path.iterdir())


def test_attributes_of_a_dataset_are_keys_of_the_message(tmp_path):
    import tercet.xarray  # noqa: F401

    made = xr.Dataset({"t": ("x", [1.0, 2.0])}, coords={"lat2d": ("x", [3.0, 4.0])}, attrs={"step": 6, "run": "a"})
    made.tercet.to_tgm(tmp_path / "a.tgm", metadata={"run": "b"})
    assert tercet.open(tmp_path / "a.tgm")[0].metadata == {"step": 6, "run": "b"}
    assert "lat2d" in xr.open_dataset(tmp_path / "a.tgm", engine="tercet").coords


def test_urls_are_left_to_tercet():
    engines = xr.backends.plugins.list_engines()
    for name in ("https://host/run.tgm", "https://host/era5.tet?x=1"):
        assert xr.backends.plugins.guess_engine(name) == "tercet"
    netcdf = engines.get("netcdf4")
    assert netcdf is None or netcdf.guess_can_open("https://host/data.nc")


def test_sources_are_guessed(weather):
    import io

    path, values = weather
    data = path.read_bytes()
    for source in (io.BytesIO(data), open(path, "rb"), data):
        np.testing.assert_array_equal(xr.open_dataset(source)["t2m"].values, values)


def test_string_coordinates_become_labels(tmp_path):
    made = xr.Dataset({"t": (("city",), [1.0, 2.0])}, coords={"city": ["Bonn", "Ulm"]})
    path = tmp_path / "a.tet"
    tercet.write(path, made)
    assert xr.open_dataset(path)["t"].sel(city="Ulm").item() == 2.0


def test_messages(tmp_path):
    path = tmp_path / "a.tgm"
    tercet.write_tgm(path, [({"step": 1}, {"t": np.ones((2, 3))}), ({"step": 2}, {"t": np.zeros((2, 3))})])
    assert xr.open_dataset(path, engine="tercet", message=1)["t"].sum() == 0
    merged = xr.open_dataset(path, engine="tercet")["t"]
    assert merged.dims[0] == "step" and merged.shape == (2, 2, 3)


def test_results_become_data_arrays(weather):
    mean = tercet.open(weather[0])["t2m"].mean("time").to_xarray()
    assert mean.dims == ("lat", "lon") and mean.attrs["units"] == "K"
    np.testing.assert_array_equal(mean["lat"], [60, 50, 40])


def test_groups_are_a_tree(tmp_path):
    path = tmp_path / "groups.tet"
    tercet.write(
        path,
        {"lat": np.array([1.0, 2.0]), "surface/t2m": np.ones((2, 3)), "upper/air/u": np.zeros(2)},
        dims={"lat": ["lat"], "surface/t2m": ["lat", "lon"], "upper/air/u": ["lat"]},
    )
    tree = xr.open_datatree(path, engine="tercet")
    assert tree["surface"]["t2m"].shape == (2, 3)
    assert tree["upper/air"]["u"].dims == ("lat",)
    assert xr.open_dataset(path, group="surface")["t2m"].sum() == 6
    with pytest.raises(KeyError):
        xr.open_dataset(path, group="ocean")


def steps(path, members=(1, 2)):
    messages = []
    for step in (0, 6, 12):
        for member in members:
            values = np.full((2, 3), step * 10 + member, np.float32)
            messages.append(({"step": step, "valid": f"v{step}"}, {"t": values, "lat": np.array([1.0, 2.0])}))
            messages[-1][0]["member"] = member
    tercet.write_tgm(path, messages)


def test_messages_are_merged_to_a_hypercube(tmp_path):
    path = tmp_path / "run.tgm"
    steps(path)
    ds = xr.open_dataset(path, engine="tercet", chunks={})
    assert ds["t"].dims == ("member", "step", "lat", "dim_1")
    assert ds["t"].chunksizes["step"] == (1, 1, 1)
    np.testing.assert_array_equal(ds["t"][:, :, 0, 0], [[1, 61, 121], [2, 62, 122]])
    np.testing.assert_array_equal(ds["t"].sel(step=6, member=2).values, np.full((2, 3), 62))
    np.testing.assert_array_equal(ds["t"].isel(step=[2, 0], member=1, dim_1=0).values, [[122, 122], [2, 2]])
    lazy = xr.open_dataset(path, engine="tercet")
    np.testing.assert_array_equal(lazy["t"].isel(step=1, lat=[1], dim_1=slice(0, 2)).values, [[[61, 61]], [[62, 62]]])
    assert pickle.loads(pickle.dumps(lazy))["t"].equals(lazy["t"])
    part = xr.open_dataset(path, engine="tercet", where={"step": [0, 12], "member": 1})
    np.testing.assert_array_equal(part["t"].values[:, 0, 0], [1, 121])
    assert xr.open_dataset(path, engine="tercet", where={"step": slice(6, None)})["t"].sizes["step"] == 2
    assert xr.open_dataset(path, engine="tercet", where=lambda keys: keys["member"] == 2)["t"].sizes["step"] == 3
    assert xr.open_dataset(path, engine="tercet", message=0)["t"].dims == ("lat", "dim_1")
    with pytest.raises(tercet.RequestError, match="no object matches"):
        xr.open_dataset(path, engine="tercet", where={"step": 99})


def test_small_parts_of_messages_are_decoded_as_ranges(tmp_path, monkeypatch):
    whole = []
    original = tercet.Object.to_numpy

    def to_numpy(self, **options):
        whole.append(self.number)
        return original(self, **options)

    monkeypatch.setattr(tercet.Object, "to_numpy", to_numpy)
    rng = np.random.default_rng(2)
    fields = rng.normal(size=(3, 6, 5, 7)).astype(np.float32)
    for compression in ("none", "zstd", "szip"):
        path = tmp_path / f"{compression}.tgm"
        messages = [({"step": step}, {"t": one}) for step, one in enumerate(fields)]
        params = {"szip_block_size": 8, "szip_rsi": 16, "szip_flags": 0} if compression == "szip" else {}
        tercet.write_tgm(path, messages, compression=compression, params=params)
        keys = [
            np.s_[0, 1, 2, 3], np.s_[:, 2], np.s_[1, ::2, 1], np.s_[:, :, 1:3, 2], np.s_[2, 1:3, ::-1, 1:4], np.s_[1, [3, 0], 2],
            np.s_[:, [1, 2], 1:3, 5], np.s_[0:0, 1], np.s_[:, 5, 4, [6, 0]], np.s_[1, 1:1], np.s_[..., 0],
        ]
        whole.clear()
        opened = xr.open_dataset(path, engine="tercet")["t"]
        for key in keys:
            np.testing.assert_array_equal(opened[key].values, xr.Variable(opened.dims, fields)[key].values, err_msg=str(key))
        assert not whole
        np.testing.assert_array_equal(opened[1, 1:].values, fields[1, 1:])
        np.testing.assert_array_equal(xr.open_dataset(path, engine="tercet", range_threshold=0)["t"][0, 1].values, fields[0, 1])
        assert len(whole) == 2


def test_the_index_of_chunks_is_not_listed(weather, monkeypatch):
    monkeypatch.setattr(tercet.TetFile, "summary", None)
    assert xr.open_dataset(weather[0])["t2m"].attrs == {"units": "K"}


def test_messages_that_are_no_hypercube_are_refused(tmp_path):
    path = tmp_path / "run.tgm"
    arrays = {"t": np.zeros(2)}
    tercet.write_tgm(path, [({"step": 0, "level": 1}, arrays), ({"step": 6, "level": 1}, arrays), ({"step": 6, "level": 2}, arrays)])
    with pytest.raises(tercet.RequestError, match="hypercube"):
        xr.open_dataset(path, engine="tercet")


def test_reads_without_blocking_the_loop(weather):
    import asyncio

    path, values = weather
    ds = xr.open_dataset(path)
    loaded = asyncio.run(ds.load_async())
    np.testing.assert_array_equal(loaded["t2m"].values, values)


def test_accessor(tmp_path, weather):
    import tercet.xarray  # noqa: F401

    ds = xr.open_dataset(weather[0])
    ds.tercet.to_tet(tmp_path / "copy.tet", zstd=3)
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "copy.tet").load().drop_encoding(), ds.load().drop_encoding())
    ds[["t2m"]].tercet.to_tgm(tmp_path / "copy.tgm", metadata={"step": 1})
    again = xr.open_dataset(tmp_path / "copy.tgm", engine="tercet")
    np.testing.assert_array_equal(again["t2m"].values, ds["t2m"].values)
    assert again["t2m"].dims == ds["t2m"].dims
    assert again["t2m"].attrs["units"] == "K"


def test_chunks_of_dask_are_written_one_by_one(tmp_path):
    import tercet.xarray  # noqa: F401

    da = pytest.importorskip("dask.array")
    values = np.arange(10 * 7 * 5, dtype=np.float64).reshape(10, 7, 5)
    ds = xr.Dataset({"x": (("t", "y", "z"), da.from_array(values, chunks=(4, 7, 2)))})
    path = tmp_path / "a.tet"
    ds.tercet.to_tet(path)
    stored = tercet.open(path)["x"]
    assert stored.chunks == (4, 7, 2)
    np.testing.assert_array_equal(stored.to_numpy(), values)
    ds.tercet.to_tet(path, chunks={"t": 2, "y": 7, "z": 1}, overwrite=True)
    assert tercet.open(path)["x"].chunks == (2, 7, 1)
    np.testing.assert_array_equal(tercet.open(path)["x"].to_numpy(), values)
    later = ds.tercet.to_tet(tmp_path / "later.tet", compute=False)
    assert not (tmp_path / "later.tet").exists()
    later.compute()
    np.testing.assert_array_equal(tercet.open(tmp_path / "later.tet")["x"].to_numpy(), values)
    with pytest.raises(tercet.RequestError, match=r"ds.chunk\(\{'t': "):
        ds.tercet.to_tet(tmp_path / "b.tet", chunks={"t": 3})
    assert not (tmp_path / "b.tet").exists()


def test_tokens_of_dask_follow_the_file(weather):
    tokenize = pytest.importorskip("dask.base").tokenize
    path, values = weather
    first = tokenize(tercet.open(path)["t2m"])
    assert tokenize(tercet.open(path)["t2m"]) == first
    assert tokenize(tercet.open(path)["t2m"].isel(time=0)) != first
    tercet.write(path, {"t2m": values + 1}, overwrite=True)
    assert tokenize(tercet.open(path)["t2m"]) != first


def test_dask_distributed(weather, tmp_path):
    import tercet.xarray  # noqa: F401

    distributed = pytest.importorskip("distributed")
    path, values = weather
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster),
    ):
        ds = xr.open_dataset(path, chunks={"time": 1})
        np.testing.assert_allclose(ds["t2m"].mean("time").compute(), values.mean(0))
        (ds[["t2m"]] + 1).tercet.to_tet(tmp_path / "plus.tet")
    np.testing.assert_array_equal(tercet.open(tmp_path / "plus.tet")["t2m"].to_numpy(), values + 1)
