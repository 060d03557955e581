"""Compares missing values, packing, coordinates and selections of `.tet` files with xarray.

usage: xarray_check.py --driver PROGRAM [--selections N] [--seed N]

The driver is `select_tet`. The table below has attributes of the CF conventions; decoded values and reductions must be those
of `xarray.decode_cf`. xarray does not know `valid_min`, `valid_max` and `valid_range`: for these rows values out of range
are removed here first, and the result is compared with netCDF4, which knows them. Random selections by label and by
position must give the values that `sel` and `isel` give. An empty selection is an error here and an empty array in
xarray; both count as equal.

The last line is `N passed, N failed, N skipped`.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import warnings

import netCDF4
import numpy as np
import pandas as pd
import xarray as xr

NAN = math.nan

# Name, element type, stored values, attributes.
CF = [
    ("plain floats", "f4", [1, 2, 3, 4.5], {}),
    ("NaN", "f4", [1, NAN, 3, NAN], {}),
    ("all missing", "f8", [NAN, NAN, NAN], {}),
    ("fill of floats", "f4", [1, 2, 3, -999], {"_FillValue": -999.0}),
    ("missing_value", "f4", [1, -999, 3, -999], {"missing_value": -999.0}),
    ("fill and missing_value", "f8", [1, -999, 3, -998], {"_FillValue": -999.0, "missing_value": -998.0}),
    ("fill and NaN", "f4", [1, NAN, 3, -999], {"_FillValue": -999.0}),
    ("fill NaN", "f8", [1, NAN, 3], {"_FillValue": NAN}),
    ("fill of integers", "i2", [1, 2, -32768, 4], {"_FillValue": -32768}),
    ("fill of long integers", "i8", [1, 2, -1, 4], {"_FillValue": -1}),
    ("fill of unsigned integers", "u1", [0, 255, 7], {"_FillValue": 255}),
    ("fill zero", "i4", [0, 1, 2], {"_FillValue": 0}),
    ("large fill", "f4", [1, 9.96921e36, 3], {"_FillValue": float(np.float32(9.96921e36))}),
    ("scale", "i2", [-5, 0, 5, 100], {"scale_factor": 0.01}),
    ("offset", "i2", [-5, 0, 5, 100], {"add_offset": 273.15}),
    ("scale and offset", "i2", [-5, 0, 5, 100], {"scale_factor": 0.01, "add_offset": 273.15}),
    ("packed with fill", "i2", [-5, -32767, 5], {"scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -32767}),
    ("packed bytes", "u1", [0, 255, 128], {"scale_factor": 2.0, "add_offset": -1.0, "_FillValue": 255}),
    ("packed floats", "f4", [1, 2.5, NAN], {"scale_factor": 10.0}),
    ("packed doubles", "f8", [1, 2.5, -1e300], {"scale_factor": -2.0, "_FillValue": -1e300}),
    ("valid_range", "f4", [-1, 0, 50, 100, 101], {"valid_range": [0.0, 100.0]}),
    ("valid_min", "i2", [-1, 0, 50], {"valid_min": 0}),
    ("valid_max", "i2", [-1, 0, 50, 51], {"valid_max": 50}),
    ("valid range of packed values", "i2", [-1, 0, 50, 51], {"valid_range": [0, 50], "scale_factor": 0.1}),
    ("valid range and fill", "i4", [-1, 0, 7, 50], {"valid_min": 0, "_FillValue": 7, "add_offset": 0.5}),
]

# Element type, stored values, units, calendar.
TIMES = [
    ("i8", [0, 6, 12, 366 * 24], "hours since 2024-01-01", "standard"),
    ("i4", [0, 1, 59, 60], "days since 2024-01-01 06:00", "proleptic_gregorian"),
    ("i4", [0, 58, 59, 365], "days since 2023-01-01", "noleap"),
    ("i4", [0, 59, 360, 719], "days since 2000-01-01", "360_day"),
    ("f8", [0, 0.5, 1.25, 31], "days since 1970-01-01", "standard"),
    ("i8", [0, 86400, 1_700_000_000], "seconds since 1970-01-01", "gregorian"),
    ("i4", [0, 60, 1439], "minutes since 1999-12-31 00:00:00", "julian"),
    ("i4", [0, 59, 60, 366], "days since 2001-01-01", "all_leap"),
]


class Driver:
    """The program that writes files and selects from them."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, kind, **request):
        self.process.stdin.write(json.dumps({kind: request}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the driver ended with code {self.process.wait()}")
        return json.loads(line)


def array(answer):
    """The tensor of an answer."""
    return np.frombuffer(bytes.fromhex(answer["values"]), np.dtype(answer["dtype"])).reshape(answer["shape"])


def dataset(name, values, dims, attrs=None, labels=None):
    values = np.ascontiguousarray(values)
    return {
        "name": name,
        "dtype": values.dtype.name,
        "shape": list(values.shape),
        "values": values.astype(values.dtype.newbyteorder("<")).tobytes().hex(),
        "dims": list(dims),
        "attrs": {key: attribute(value) for key, value in (attrs or {}).items()},
        "labels": labels or {},
    }


def attribute(value):
    """The text of an attribute, which in `.tet` files is a string."""
    if isinstance(value, list):
        return ", ".join(attribute(number) for number in value)
    return value if isinstance(value, str) else repr(value)


def same(ours, theirs, exact):
    ours, theirs = np.asarray(ours, "f8"), np.asarray(theirs, "f8")
    if ours.shape != theirs.shape:
        return False
    if exact:
        return np.array_equal(ours, theirs, equal_nan=True)
    return np.allclose(ours, theirs, rtol=1e-6, atol=0, equal_nan=True)


class Checks:
    """All comparisons."""

    def __init__(self, driver, directory):
        self.driver, self.directory = driver, directory
        self.path = os.path.join(directory, "a.tet")
        self.passed = self.failed = 0

    def check(self, what, ok, detail=""):
        self.passed += bool(ok)
        self.failed += not ok
        if not ok:
            print(f"failed: {what}: {detail}")

    def cf(self, name, dtype, values, attrs):
        stored = np.array(values, dtype)
        self.driver.ask("write", path=self.path, datasets=[dataset("a", stored, ["x"], attrs)])
        # Scale and offset are doubles, other attributes have the type of the stored values.
        typed = {key: value if key in ("scale_factor", "add_offset") else np.array(value, dtype) for key, value in attrs.items()}
        known = {key: value for key, value in typed.items() if not key.startswith("valid")}
        source = xr.Dataset({"a": ("x", stored, known)})
        with warnings.catch_warnings():
            # Several fill values are unusual.
            warnings.simplefilter("ignore")
            expected = xr.decode_cf(source)["a"].astype("f8" if "scale_factor" in attrs or "add_offset" in attrs else None)
            if "scale_factor" in attrs or "add_offset" in attrs:
                # xarray may decode to float32, which rounds.
                wide = stored.astype("f8")
                for key in ("_FillValue", "missing_value"):
                    if key in known:
                        wide[stored == known[key]] = NAN
                exact = wide * attrs.get("scale_factor", 1.0) + attrs.get("add_offset", 0.0)
                self.check(f"{name}: formula", same(exact, expected, False), f"{exact}, {expected.values}")
                expected = expected.copy(data=exact)
        low, high = typed.get("valid_range", (typed.get("valid_min"), typed.get("valid_max")))
        if low is not None:
            expected = expected.where(stored >= low)
        if high is not None:
            expected = expected.where(stored <= high)
        self.check(f"{name}: netCDF4", same(self.by_netcdf(stored, typed), expected.values, False), f"{expected.values}")
        answer = self.driver.ask("select", path=self.path, dataset="a", decode=True)
        self.check(f"{name}: decoded", same(array(answer), expected.values, True), f"{array(answer)}, {expected.values}")
        answer = self.driver.ask("select", path=self.path, dataset="a")
        found = array(answer)
        self.check(f"{name}: stored", found.dtype == stored.dtype and np.array_equal(found, stored, equal_nan=stored.dtype.kind == "f"))
        ops = ["sum", "mean", "min", "max", "count", "std", "var", "median", "product"]
        answer = self.driver.ask("reduce", path=self.path, dataset="a", ops=ops)
        wide = expected.astype("f8")
        self.check(f"{name}: skipped", answer["skipped"] == int(wide.isnull().sum()), answer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for op, result in zip(ops, answer["results"]):
                method = {"product": "prod"}.get(op, op)
                theirs = getattr(wide, method)().values
                ours = array(result).astype("f8")
                self.check(f"{name}: {op}", np.allclose(ours, theirs, rtol=1e-12, atol=1e-300, equal_nan=True), f"{ours}, {theirs}")
            answer = self.driver.ask("reduce", path=self.path, dataset="a", ops=["mean"], skipna=False)
            theirs = wide.mean(skipna=False).values
            ours = array(answer["results"][0])
            self.check(f"{name}: skipna=False", np.allclose(ours, theirs, rtol=1e-12, equal_nan=True), f"{ours}, {theirs}")
            answer = self.driver.ask("reduce", path=self.path, dataset="a", ops=["max"], raw=True)
            ours, theirs = float(array(answer["results"][0])), stored.astype("f8").max()
            self.check(f"{name}: raw", np.array_equal(ours, theirs, equal_nan=True), f"{ours}, {theirs}")

    def by_netcdf(self, stored, attrs):
        """Decoded values of netCDF4, with NaN for masked ones."""
        file = netCDF4.Dataset("memory", "w", diskless=True)
        try:
            file.createDimension("x", len(stored))
            fill = attrs.get("_FillValue", False)
            variable = file.createVariable("a", stored.dtype, ("x",), fill_value=fill)
            variable.set_auto_maskandscale(False)
            variable.setncatts({key: value for key, value in attrs.items() if key != "_FillValue"})
            variable[:] = stored
            variable.set_auto_maskandscale(True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return np.ma.filled(np.ma.asarray(variable[:]).astype("f8"), NAN)
        finally:
            file.close()

    def times(self, dtype, values, units, calendar):
        name = f"{units}, {calendar}"
        stored = np.array(values, dtype)
        attrs = {"units": units, "calendar": calendar}
        data = np.arange(len(stored), dtype="f8")
        files = [dataset("a", data, ["time"]), dataset("time", stored, ["time"], attrs)]
        self.driver.ask("write", path=self.path, datasets=files)
        source = xr.Dataset({"a": ("time", data)}, coords={"time": ("time", stored, attrs)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decoded = xr.decode_cf(source, decode_times=xr.coders.CFDatetimeCoder(use_cftime=True))
        theirs = [time.isoformat() for time in decoded["time"].values]
        ours = self.driver.ask("coordinates", path=self.path, dataset="a")["labels"][0]
        self.check(f"{name}: labels", [full(time) for time in ours] == [full(time) for time in theirs], f"{ours}, {theirs}")
        for position, time in enumerate(theirs):
            answer = self.driver.ask("select", path=self.path, dataset="a", steps=[["time", {"label": time}]])
            self.check(f"{name}: {time}", "error" not in answer and array(answer).tolist() == data[position], answer)
        for part in ("year", "month", "season", "day", "hour"):
            answer = self.driver.ask("reduce", path=self.path, dataset="a", ops=["mean"], group=["time", part])
            grouped = decoded["a"].groupby(f"time.{part}").mean()
            found = dict(zip(answer["labels"][0], array(answer["results"][0])))
            expected = {str(key): value for key, value in zip(grouped[part].values, grouped.values)}
            self.check(f"{name}: by {part}", found == expected, f"{found}, {expected}")

    def selections(self, count, seed):
        random.seed(seed)
        np.random.seed(seed)
        lat = np.linspace(90, -90, 13).astype("f4")
        lon = np.sort(np.random.uniform(0, 360, 17))
        level = np.array([1000, 850, 700, 500, 300], "i4")
        time = pd.date_range("2023-11-29", periods=150, freq="13h")
        mixed = np.array([3.0, 1.0, 2.0, 7.0, 5.0])
        names = ["oslo", "lima", "rome", "bern", "kyiv", "accra"]
        grids = [
            {"time": time, "lat": lat},
            {"level": level, "lon": lon},
            {"mixed": mixed, "city": names},
            {"lat": lat, "lon": lon, "level": level},
        ]
        for number in range(count):
            grid = grids[number % len(grids)]
            path = os.path.join(self.directory, f"{'-'.join(grid)}.tet")
            shape = [len(values) for values in grid.values()]
            data = np.arange(math.prod(shape), dtype="f4").reshape(shape)
            if not os.path.exists(path):
                self.write_grid(path, grid, data)
            source = xr.DataArray(data, dims=list(grid), coords=grid)
            axes = random.sample(list(grid), random.randint(1, len(grid)))
            steps = [(axis, *self.selection(axis, grid[axis])) for axis in axes]
            self.compare(number, path, source, steps)

    def write_grid(self, path, grid, data):
        files, labels = [], {}
        for axis, values in grid.items():
            if axis == "city":
                labels[axis] = list(values)
            elif axis == "time":
                hours = ((values - pd.Timestamp("2023-01-01")) // pd.Timedelta("1h")).to_numpy("i8")
                files.append(dataset(axis, hours, [axis], {"units": "hours since 2023-01-01"}))
            else:
                files.append(dataset(axis, values, [axis]))
        files.append(dataset("a", data, list(grid), labels=labels))
        self.driver.ask("write", path=path, datasets=files)

    @staticmethod
    def selection(axis, values):
        """A random selection of an axis: the request of the driver, and a function of xarray."""
        count = len(values)
        kind = random.choice(["label", "range", "nearest", "positions", "position"])
        if kind == "position":
            position = random.randrange(-count, count)
            return {"positions": str(position)}, lambda a: a.isel({axis: position})
        if kind == "positions":
            start, stop = sorted(random.sample(range(count + 1), 2))
            step = random.choice([1, 1, 2, 3])
            if random.random() < 0.3:
                start, stop, step = stop - 1, (start - 1 if start else None), -step
            text = f"{start}:{'' if stop is None else stop}:{step}"
            return {"positions": text}, lambda a: a.isel({axis: slice(start, stop, step)})
        if axis == "city":
            one, other = (random.choice(list(values) + ["rom"]) for _ in range(2))
            if kind == "range":
                return {"range": [one, other]}, lambda a: a.sel({axis: slice(one, other)})
            return {"label": one}, lambda a: a.sel({axis: one})
        if axis == "time":
            stamps = [values[random.randrange(count)] + random.choice([0, 0, 5]) * pd.Timedelta("1h") for _ in range(2)]
            text = [stamp.strftime(random.choice(["%Y-%m-%dT%H:%M", "%Y-%m-%d", "%Y-%m", "%Y"])) for stamp in stamps]
            if kind == "range":
                if random.random() < 0.7:
                    text.sort()
                one, other = random.choice([(text[0], text[1]), (text[0], None), (None, text[1])])
                return {"range": [one, other]}, lambda a: a.sel({axis: slice(one, other)})
            if kind == "nearest":
                stamp, hours = stamps[0], random.choice([None, 2, 7])
                request = {"nearest": [stamp.strftime("%Y-%m-%dT%H:%M"), hours and hours * 3600]}
                tolerance = hours and pd.Timedelta(hours, "h")
                return request, lambda a: a.sel({axis: stamp}, method="nearest", tolerance=tolerance)
            if len(text[0]) > 10:
                return {"label": text[0]}, lambda a: a.sel({axis: stamps[0].floor("min")})
            return {"label": text[0]}, lambda a: a.sel({axis: text[0]})
        exact = [values[random.randrange(count)].item() for _ in range(2)]
        between = [number + random.choice([0, 0, 0.25, -3]) for number in exact]
        if kind == "range":
            one, other = random.choice([exact, between])
            one, other = random.choice([(one, other), (other, one), (one, None), (None, other)])
            text = [None if bound is None else repr(bound) for bound in (one, other)]
            return {"range": text}, lambda a: a.sel({axis: slice(one, other)})
        one = random.choice(between)
        # xarray has no nearest label among unsorted ones.
        if kind == "nearest" and axis != "mixed":
            tolerance = random.choice([None, 0.1, 20])
            return {"nearest": [repr(one), tolerance]}, lambda a: a.sel({axis: one}, method="nearest", tolerance=tolerance)
        return {"label": repr(one)}, lambda a: a.sel({axis: one})

    def compare(self, number, path, source, steps):
        request = [[axis, step] for axis, step, _ in steps]
        answer = self.driver.ask("select", path=path, dataset="a", steps=request)
        try:
            expected = source
            for _, _, select in steps:
                expected = select(expected)
            expected = expected.values
        except (KeyError, IndexError, ValueError) as error:
            expected = error
        if isinstance(expected, Exception) or expected.size == 0:
            self.check(f"selection {number} {request}", "error" in answer, f"{answer}, xarray: {expected!r}")
            return
        ok = "error" not in answer and np.array_equal(array(answer), expected)
        self.check(f"selection {number} {request}", ok, f"{answer.get('error') or array(answer)}, xarray: {expected}")


def full(time):
    """An ISO time with seconds."""
    time = time.replace(" ", "T").removesuffix("Z")
    if "T" not in time:
        time += "T00:00"
    return time if time.count(":") == 2 else time + ":00"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--selections", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20261118)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tercet-xarray-") as directory:
        checks = Checks(Driver(options.driver), directory)
        for row in CF:
            checks.cf(*row)
        for row in TIMES:
            checks.times(*row)
        checks.selections(options.selections, options.seed)
    print(f"{checks.passed} passed, {checks.failed} failed, 0 skipped")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
