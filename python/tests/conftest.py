"""Fixtures, and a last line with the counts."""

import os
import pathlib

import numpy as np
import pytest

import tercet


@pytest.fixture
def weather(tmp_path):
    """Temperatures in time, lat, lon with coordinates, and packed values with a fill value."""
    values = (np.arange(4 * 3 * 5, dtype=np.float32) + 270).reshape(4, 3, 5)
    packed = np.array([[1, 2, 3], [-999, 5, 6]], dtype=np.int16)
    path = tmp_path / "weather.tet"
    tercet.write(
        path,
        {
            "t2m": values,
            "lat": np.array([60.0, 50.0, 40.0]),
            "time": np.arange(4, dtype=np.int64) * 6,
            "packed": packed,
        },
        dims={"t2m": ["time", "lat", "lon"], "lat": ["lat"], "time": ["time"], "packed": ["y", "x"]},
        attrs={
            "t2m": {"units": "K"},
            "time": {"units": "hours since 2024-06-01"},
            "packed": {"_FillValue": -999, "scale_factor": 0.5},
        },
        chunks={"t2m": [2, 3, 5], "lat": [3], "time": [4], "packed": [2, 3]},
        zstd=False,
    )
    return path, values


@pytest.fixture
def golden():
    directory = os.environ.get("TERCET_GOLDEN")
    if not directory:
        pytest.skip("no golden files")
    return pathlib.Path(directory)


_counts = {"passed": 0, "failed": 0, "skipped": 0}


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        _counts[report.outcome] += 1


def pytest_collectreport(report):
    if report.failed:
        _counts["failed"] += 1


def pytest_unconfigure(config):
    print(f"\n{_counts['passed']} passed, {_counts['failed']} failed, {_counts['skipped']} skipped")
