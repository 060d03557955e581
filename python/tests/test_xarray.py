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


def test_string_coordinates_become_labels(tmp_path):
    made = xr.Dataset({"t": (("city",), [1.0, 2.0])}, coords={"city": ["Bonn", "Ulm"]})
    path = tmp_path / "a.tet"
    tercet.write(path, made)
    assert xr.open_dataset(path)["t"].sel(city="Ulm").item() == 2.0


def test_messages(tmp_path):
    path = tmp_path / "a.tgm"
    tercet.write_tgm(path, [({"step": 1}, {"t": np.ones((2, 3))}), ({"step": 2}, {"t": np.zeros((2, 3))})])
    assert xr.open_dataset(path, engine="tercet", message=1)["t"].sum() == 0
    assert xr.open_dataset(path)["t"].shape == (2, 3)


def test_results_become_data_arrays(weather):
    mean = tercet.open(weather[0])["t2m"].mean("time").to_xarray()
    assert mean.dims == ("lat", "lon") and mean.attrs["units"] == "K"
    np.testing.assert_array_equal(mean["lat"], [60, 50, 40])
