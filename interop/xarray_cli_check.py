"""Compares selections, reductions and result files of the `tet` command with xarray.

usage: xarray_cli_check.py --tet PROGRAM [--selections N] [--seed N]

One array, packed and with missing values, is stored with its coordinates. xarray decodes the same values. The last line is
`N passed, N failed, N skipped`.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd
import xarray as xr

SEASONS = ["DJF", "MAM", "JJA", "SON"]


class Check:
    """Runs commands and compares their results."""

    def __init__(self, tet):
        self.tet, self.passed, self.failed = tet, 0, 0

    def run(self, *args):
        return subprocess.run([self.tet, *args], capture_output=True, text=True)

    def ok(self, *args):
        result = self.run(*args)
        if result.returncode != 0:
            raise RuntimeError(f"{args}: {result.stderr}")
        return result.stdout

    def json(self, *args):
        return json.loads(self.ok(*args, "--json"))

    def check(self, name, passes, detail=""):
        if passes:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {name} {detail}")

    def same(self, name, found, expected, tolerance=1e-9):
        expected = np.asarray(expected, dtype="f8")
        values = np.array(found["values"], dtype="f8")
        passes = values.shape == expected.shape and np.allclose(
            values, expected, rtol=tolerance, atol=tolerance, equal_nan=True
        )
        self.check(name, passes, f"{values.shape} {expected.shape}")


def make(check):
    """Writes `w.tet`, and returns its array as xarray decodes it, and the stored values."""
    rng = np.random.default_rng(1)
    time = pd.date_range("2022-11-15T06:00", periods=900, freq="17h")
    lat, lon = np.linspace(88, -88, 23).astype("f4"), np.arange(0, 360, 20.0)
    stored = rng.integers(-3000, 3000, (900, 23, 18)).astype("i2")
    stored[rng.random(stored.shape) < 0.1] = -32767
    hours = ((time - pd.Timestamp("1900-01-01")) / pd.Timedelta("1h")).to_numpy("f8")
    for name, array in {"t": stored, "time": hours, "lat": lat, "lon": lon}.items():
        np.save(f"{name}.npy", array)
    attributes = ["t:_FillValue=-32767", "t:scale_factor=0.01", "t:add_offset=273.15", "t:units=K"]
    attributes.append("time:units=hours since 1900-01-01")
    args = ["create", "w.tet", "--chunk", "t:100,10,18"]
    args += [part for name in ("t", "time", "lat", "lon") for part in ("--from", f"{name}={name}.npy")]
    args += [part for name in ("time", "lat", "lon") for part in ("--dims", f"{name}:{name}")]
    args += ["--dims", "t:time,lat,lon"]
    args += [part for attribute in attributes for part in ("--attr", attribute)]
    check.ok(*args)
    encoding = {"_FillValue": np.int16(-32767), "scale_factor": 0.01, "add_offset": 273.15}
    variables = {"t": (("time", "lat", "lon"), stored, encoding)}
    dataset = xr.Dataset(variables, coords={"time": time, "lat": lat, "lon": lon})
    return xr.decode_cf(dataset).t.astype("f8"), stored


def reductions(check, x):
    weights = np.cos(np.deg2rad(x.lat.astype("f8")))
    for op in ("mean", "sum", "std", "var"):
        for over in ((), ("lat",), ("lat", "lon")):
            args = ["--over", ",".join(over)] if over else []
            found = check.json(op, "w.tet", "t", "--weights", "cos(lat)", *args)
            check.same(f"weighted {op} {over}", found, getattr(x.weighted(weights), op)(over or None))
    for part in ("month", "season", "year", "day", "hour"):
        order = (lambda found: found.sel(season=SEASONS)) if part == "season" else (lambda found: found)
        for op in ("mean", "max", "std", "count", "median"):
            expected = order(getattr(x.groupby(f"time.{part}"), op)())
            found = check.json(op, "w.tet", "t", "--group-by", f"time.{part}")
            check.same(f"group {part} {op}", found, expected)
            labels = found["coords"][part] == expected[part].values.tolist()
            check.check(f"group {part} {op} names", labels and found["dims"] == list(expected.dims))
        found = check.json("mean", "w.tet", "t", "--group-by", f"time.{part}", "--over", "lat,lon")
        check.same(f"group {part} over all", found, order(x.groupby(f"time.{part}").mean(...)))
    for op in ("mean", "max", "sum", "std"):
        expected = getattr(x.rolling(time=24, min_periods=1), op)().isel(time=slice(23, None))
        found = check.json(op, "w.tet", "t", "--rolling", "time=24")
        check.same(f"rolling {op}", found, expected, 1e-8)
        check.check(f"rolling {op} labels", found["coords"]["time"][0] == str(expected.time.values[0])[:19])
    for op in ("mean", "sum", "min", "max", "std", "var", "median", "count"):
        check.same(op, check.json(op, "w.tet", "t"), getattr(x, op)())
        check.same(f"{op} time", check.json(op, "w.tet", "t", "--over", "time"), getattr(x, op)("time"))
    for q in (0.1, 0.5, 0.93):
        found = check.json("quantile", "w.tet", "t", "--q", str(q), "--over", "time")
        check.same(f"quantile {q}", found, x.quantile(q, "time"))
    found = check.json("mean", "w.tet", "t", "--where", "value > 260 and value <= 280.5", "--over", "lat")
    check.same("where", found, x.where((x > 260) & (x <= 280.5)).mean("lat"))
    for over in ("time", "lat"):
        centered = x - x.mean(over)
        check.same(f"center {over}", check.json("transform", "w.tet", "t", "center", "--over", over), centered)
        found = check.json("transform", "w.tet", "t", "zscore", "--over", over)
        check.same(f"zscore {over}", found, centered / x.std(over))
    found = check.json("argmax", "w.tet", "t", "--over", "time")
    check.check("argmax", (np.array(found["indices"]["time"]) == x.argmax("time").values).all())
    times = np.array(found["values"]["time"], dtype="M8[ns]")
    check.check("argmax times", (times == x.idxmax("time").values).all())


def files(check, x, stored):
    check.ok("argmin", "w.tet", "t", "--over", "lat", "-o", "a.npy")
    check.check("argmin.npy", np.allclose(np.load("a.npy"), x.idxmin("lat")))
    check.ok("mean", "w.tet", "t", "--over", "lon", "--sel", "lat=60..0", "-o", "m.csv")
    table, expected = pd.read_csv("m.csv"), x.sel(lat=slice(60, 0)).mean("lon").to_series()
    check.check("mean.csv", list(table.columns) == ["time", "lat", "mean"] and np.allclose(table["mean"], expected))
    times = pd.to_datetime(table.time) == expected.index.get_level_values(0)
    check.check("mean.csv coordinates", times.all() and np.allclose(table.lat, expected.index.get_level_values(1)))
    check.ok("mean", "w.tet", "t", "--over", "lon", "--ops", "max,argmax", "-o", "m.tet")
    found = check.json("mean", "m.tet", "t_mean", "--sel", "time=2023")
    check.same("mean.tet", found, x.mean("lon").sel(time="2023").mean())
    check.ok("extract", "w.tet", "t", "--sel", "lat=60..0", "--decode", "-o", "d.npy")
    check.check("decoded", np.allclose(np.load("d.npy"), x.sel(lat=slice(60, 0)), equal_nan=True))
    check.ok("extract", "w.tet", "t", "--isel", "time=::-1", "--isel", "lat=3", "-o", "r.npy")
    check.check("reversed", (np.load("r.npy") == stored[::-1, 3]).all())


def selection(rng, x):
    """Options for a random selection, and what xarray selects; `None` if it selects nothing."""
    args, found = [], x
    lat = x.lat.values
    kind = rng.choice(["range", "open", "one", "nearest", "position", "positions", "none"])
    low, high = sorted(rng.uniform(-95, 95) for _ in range(2))
    if kind == "range":
        args += ["--sel", f"lat={high!r}..{low!r}"]
        found = found.sel(lat=slice(high, low))
    elif kind == "open":
        args += ["--sel", f"lat={high!r}.."]
        found = found.sel(lat=slice(high, None))
    elif kind == "one":
        value = rng.choice(lat)
        args += ["--sel", f"lat={value}"]
        found = found.sel(lat=value)
    elif kind == "nearest":
        args += ["--sel", f"lat=~{low!r}"]
        found = found.sel(lat=low, method="nearest")
    elif kind == "position":
        position = rng.randrange(-len(lat), len(lat))
        args += ["--isel", f"lat={position}"]
        found = found.isel(lat=position)
    elif kind == "positions":
        start, stop, step = rng.randrange(len(lat)), rng.randrange(len(lat) + 1), rng.randrange(1, 4)
        args += ["--isel", f"lat={start}:{stop}:{step}"]
        found = found.isel(lat=slice(start, stop, step))
    times = x.indexes["time"]
    day = lambda: rng.choice(times).strftime(rng.choice(["%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H"]))  # noqa: E731
    kind = rng.choice(["one", "range", "from", "none"])
    # xarray raises an error for a time that selects nothing.
    try:
        if kind == "one":
            text = day()
            args += ["--sel", f"time={text}"]
            found = found.sel(time=slice(text, text))
        elif kind == "range":
            start, stop = day(), day()
            args += ["--sel", f"time={start}..{stop}"]
            found = found.sel(time=slice(start, stop))
        elif kind == "from":
            text = day()
            args += ["--sel", f"time={text}.."]
            found = found.sel(time=slice(text, None))
    except KeyError:
        return args, None
    return args, found if found.size else None


def selections(check, x, count, seed):
    rng = random.Random(seed)
    for number in range(count):
        args, expected = selection(rng, x)
        result = check.run("sum", "w.tet", "t", "--over", "lon", "--ops", "count", "--json", *args)
        name = f"selection {number} of seed {seed}: {args}"
        if expected is None:
            check.check(name, result.returncode == 8, result.stderr)
            continue
        if result.returncode != 0:
            check.check(name, False, result.stderr)
            continue
        sums, counts = json.loads(result.stdout)
        expected = expected.sum("lon"), expected.count("lon")
        # A time that is one position is no dimension of ours.
        shapes = [tuple(one for one in part.shape if one != 1) for part in expected]
        arrays = [np.array(part["values"], dtype="f8") for part in (sums, counts)]
        passes = all(
            array.squeeze().shape == shape and np.allclose(array.squeeze(), part.values.squeeze(), equal_nan=True)
            for array, shape, part in zip(arrays, shapes, expected)
        )
        check.check(name, passes, f"{arrays[0].shape} {expected[0].shape}")


def entry(option, text):
    """A selection as an entry of a query document."""
    if option == "--sel":
        return text
    parts = text.split(":")
    if len(parts) == 1:
        return {"position": int(text)}
    return dict(zip(("start", "stop", "step"), map(int, parts)))


def documents(check, x, count, seed):
    """The same selections in documents: results, dimensions and coordinates are equal."""
    rng = random.Random(seed)
    for number in range(count):
        args, expected = selection(rng, x)
        pairs = [(option, *text.split("=", 1)) for option, text in zip(args[::2], args[1::2])]
        axes = {axis: entry(option, text) for option, axis, text in pairs}
        op, key = rng.choice([("sum", "sum"), ("median", "median"), ("argmax", "arg_max")])
        query = {"dataset": "t", key: ["time", "lon"], "selection": axes, "filter": {"ge": 260.5}}
        result = check.run("query", json.dumps(query), "-t", "w.tet", "-x", "--json")
        name = f"document {number} of seed {seed}: {query}"
        command = [op, "w.tet", "t", "--over", "time,lon", "--where", "value >= 260.5", *args, "--json"]
        if expected is None:
            check.check(name, result.returncode == 8, result.stderr)
            continue
        check.check(name, result.stdout == check.ok(*command), result.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tet", required=True)
    parser.add_argument("--selections", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20261118)
    args = parser.parse_args()
    check = Check(os.path.abspath(args.tet))
    with tempfile.TemporaryDirectory(prefix="tercet-xarray-") as directory:
        os.chdir(directory)
        x, stored = make(check)
        reductions(check, x)
        files(check, x, stored)
        selections(check, x, args.selections, args.seed)
        documents(check, x, args.selections // 2, args.seed)
        os.chdir("/")
    print(f"{check.passed} passed, {check.failed} failed, 0 skipped")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
