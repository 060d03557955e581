"""Random calls of `tet-py`, or of a module with its names; one line of JSON for the outcome of each, with what NumPy computes.

    python calls_tet.py MODULE COUNT DIRECTORY
"""

import importlib
import json
import math
import pathlib
import random
import sys

import numpy as np

REDUCTIONS = ["sum", "mean", "min", "max", "var", "std", "norm_l1", "norm_l2", "median", "count", "numel"]
REDUCTIONS += ["arg_min", "arg_max", "all_finite", "any_nan", "any_inf", "nan_count", "inf_count", "nan_mean", "nan_std"]
METHODS = ["zscore", "minmax", "l1", "l2", "center", "scale", "log1p", "sqrt", "softmax"]
SIZES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "i16": np.int16}


def number(value):
    """Floats to 6 digits: sums are added in another order."""
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.6g}") if abs(value) > 1e-6 else 0.0
    return value


def plain(value):
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        kept = [number(float(one)) for one in value.ravel()[:40]]
        return [str(value.dtype), list(value.shape), [str(one) for one in kept]]
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if type(value).__name__ == "QueryResult":
        names = ["scalar", "reduced", "reduced_shape", "matrix", "matrix_order", "histogram_counts", "histogram_edges"]
        return [plain(getattr(value, name)) for name in [*names, "preview_samples", "preview_truncated"]]
    if type(value).__name__ == "Dataset":
        return [value.name, value.shape, value.dtype, value.chunk_shape, value.dim_names, value.ndim]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return number(value)


def outcome(call):
    try:
        return ["ok", plain(call())]
    except Exception as error:
        return ["error", type(error).__name__]


def by_numpy(op, array, axes):
    """What NumPy computes, as the value or the reduced values of a result."""
    name: str = {"count": "size", "numel": "size", "arg_min": "argmin", "arg_max": "argmax"}.get(op, op or "")
    wide = array.astype(np.float64)
    if op in ("nan_mean", "nan_std"):
        wide = np.where(np.isfinite(wide), wide, np.nan)
    functions = {
        "norm_l1": lambda axis: np.abs(wide).sum(axis),
        "norm_l2": lambda axis: np.sqrt((wide**2).sum(axis)),
        "all_finite": lambda axis: np.isfinite(wide).all(axis),
        "any_nan": lambda axis: np.isnan(wide).any(axis),
        "any_inf": lambda axis: np.isinf(wide).any(axis),
        "nan_count": lambda axis: np.isnan(wide).sum(axis),
        "inf_count": lambda axis: np.isinf(wide).sum(axis),
        "nan_mean": lambda axis: np.nanmean(wide, axis),
        "nan_std": lambda axis: np.nanstd(wide, axis),
        "median": lambda axis: np.median(wide, axis),
        "size": lambda axis: np.ones(wide.shape).sum(axis),
    }
    found = functions[name](axes) if name in functions else getattr(wide, name)(axes)
    found = np.asarray(found)
    return plain(found.item()) if axes is None else [plain(one) for one in found.ravel()]


def main(module, count, directory):
    t = importlib.import_module(module)
    rng = random.Random()
    root = pathlib.Path(directory)
    path = root / "calls.tet"
    values = np.random.default_rng(7)
    arrays = {}
    expected = None
    writer = t.TetWriter.create(path)
    writer.push_history_event("create", "test")
    for name, dtype in SIZES.items():
        array = (values.standard_normal((5, 4, 3)) * 20 + 60).astype(dtype)
        arrays[name] = array
        coords = {"time": [f"t{i}" for i in range(5)]}
        writer.write_dataset(name, array, chunk_shape=(2, 4, 2), dim_names=["time", "lat", "lon"], coords=coords)
    holes = values.standard_normal((6, 4))
    holes[1, 2], holes[3, 0], holes[5, 1] = np.nan, np.inf, -np.inf
    writer.write_dataset("holes", holes, attrs={"_FillValue": "-999"})
    arrays |= {"holes": holes, "flat": values.standard_normal((6, 4)).astype(np.float32)}
    writer.write_dataset("flat", arrays["flat"])
    writer.commit()
    file = t.open(path)

    def dataset():
        return rng.choice([*SIZES, "flat", "flat", "holes"]) if rng.random() < 0.95 else "nope"

    def axes():
        choice = rng.random()
        if choice < 0.4:
            return {}
        if choice < 0.7:
            return {"axis": rng.choice([0, 1, 2, -1, "time", "lat", "lon", "level", 5])}
        if choice < 0.72:
            return {"axis": 0, "axes": [1]}
        return {"axes": rng.sample([0, 1, "lon"], rng.randint(1, 2))}

    def selection(name):
        if rng.random() < 0.4:
            return None
        rank = 2 if name in ("flat", "holes") else 3
        if rng.random() < 0.1:
            rank += 1
        made = []
        for _ in range(rank):
            start = rng.choice([None, 0, 1])
            stop = rng.choice([None, 2, 3, 9])
            made.append(t.axis_slice(start, stop, rng.choice([None, 1, 2])))
        return t.selection_slices(*made)

    def labels():
        return file.read_numpy("f32", [t.axis_slice(start_label="t1", stop_label=rng.choice(["t3", "t9"])), {}, {}])

    def read():
        name = dataset()
        return np.array(file.read_numpy(name, selection(name)))

    def expect(op, name, given):
        nonlocal expected
        names = ["time", "lat", "lon"]
        try:
            over = given.get("axes", [given["axis"]] if "axis" in given else [])
            over = tuple(names.index(one) if isinstance(one, str) else one for one in over)
            expected = by_numpy(op, arrays[name], over or None)
        except Exception:
            expected = None

    def reduce():
        op, name, given = rng.choice(REDUCTIONS), dataset(), axes()
        expect(op, name, given)
        return getattr(file, op)(name, **given)

    def quantile():
        nonlocal expected
        name, q, given = rng.choice(["flat", "f32", "i64"]), rng.choice([0.0, 0.25, 0.5, 1.0, 1.5]), axes()
        if not given and q <= 1:
            expected = plain(float(np.quantile(arrays[name].astype(np.float64), q)))
        return file.quantile(name, q, **given)

    def transform():
        name = rng.choice(["f32", "f64", "flat", "i32"])
        call = getattr(file.transform.to_numpy, rng.choice(METHODS))
        return call(name, **axes(), selection=selection(name))

    def query():
        name = dataset()
        op, over = rng.choice(["mean", "sum", "max", "mode", "min"]), rng.choice([[], [0], [1]])
        document = {"dataset": name, op: over}
        if rng.random() < 0.5:
            document["selection"] = selection(name) or []
        elif op != "mode":
            expect(op, name, {"axes": over})
        if rng.random() < 0.3:
            return file.execute(json.dumps(document))
        return file.execute(document, preview=rng.choice([None, 3]))

    def write():
        target = root / f"new{rng.randint(0, 9)}.tet"
        array = np.arange(12, dtype=rng.choice(list(SIZES.values()))).reshape(3, 4)
        made = t.write_dataset(target, "x", array, chunk_shape=rng.choice([None, (2, 2), (3, 4)]), dim_names=["a", "b"])
        with t.open(made) as opened:
            return [opened["x"], np.array(opened.read_numpy("x")), opened.dataset_names, opened.generation]

    def append():
        target = root / "grown.tet"
        t.write_dataset(target, "x", np.arange(3.0))
        more = t.TetWriter.open_append(target)
        more.write_dataset("y", np.arange(4, dtype=np.float32))
        more.commit()
        opened = t.open(target)
        return [opened.dataset_names, np.array(opened.read_numpy("x")), np.array(opened.read_numpy("y"))]

    def matrix():
        return getattr(file, rng.choice(["covariance", "correlation"]))(rng.choice(["flat", "f32"]), rng.choice([0, 1, "x"]))

    def histogram():
        ends = rng.choice([{}, {"min": -1.0, "max": 1.0}])
        return file.histogram(rng.choice(["flat", "f64", "i32"]), rng.choice([1, 4, 10]), **ends)

    def spill():
        made = file.read_spill("f32", path=root / f"spill{rng.randint(0, 10**9)}.bin", selection=selection("f32"))
        return made.to_numpy()

    kinds = [
        read,
        read,
        labels,
        reduce,
        reduce,
        reduce,
        reduce,
        transform,
        query,
        query,
        write,
        append,
        matrix,
        histogram,
        spill,
        quantile,
        lambda: file.null_count("holes", fill=rng.choice([None, -999.0, 1.0])),
        lambda: file.dataset(rng.choice([0, 1, -1, 99, "f32", "nope"])),
        lambda: list(file.iter_datasets()),
        lambda: file.dataset(rng.choice(list(SIZES))).axis_index(rng.choice([0, -1, 7, "lat", "zz"])),
        lambda: t.build_query("a", **rng.choice([{"mean": []}, {"mode": []}, {"mean": [], "sum": []}])),
        lambda: [sorted(t.QUERY_OP_KEYS), sorted(t.REDUCTION_OPS.items()), t.full_selection(2)],
        lambda: sorted(file.summary()),
        lambda: t.open(rng.choice([root / "missing.tet", path])).dataset_names,
        lambda: file.plan_only({"dataset": dataset()})["catalog"]["shape"],
    ]
    for place in range(count):
        rng.seed(place)
        expected = None
        kind = kinds[place % len(kinds)]
        found = outcome(kind)
        print(json.dumps({"call": kind.__name__, "outcome": found, "numpy": expected}, sort_keys=True, default=str))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
