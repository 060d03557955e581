"""Random arrays, files and queries for `tet_fuzz.py`."""

import json
import math

import numpy as np

import tet_model

DTYPES = {
    "f16": "<f2",
    "f32": "<f4",
    "f64": "<f8",
    "i16": "<i2",
    "i32": "<i4",
    "i64": "<i8",
    "u8": "|u1",
    "u16": "<u2",
    "u32": "<u4",
    "u64": "<u8",
}
FLOATS = ["f16", "f32", "f64"]
FOLDS = [
    *["sum", "mean", "min", "max", "count", "var", "std", "product", "norm_l1", "norm_l2"],
    *["all_finite", "any_nan", "any_inf", "nan_count", "inf_count", "nan_mean", "nan_std"],
    *["null_count", "arg_min", "arg_max", "median", "quantile"],
]
# Operations that one call of the typed interface can combine.
TYPED = [op for op in FOLDS if op not in ("null_count", "quantile")]
# A dataset of this size with small raw chunks and no statistics is read as one span.
SCANNED = 1 << 20
# Most elements in the windows of one query.
WINDOWED = 60_000


def values(rng, dtype, count):
    """Random values of an element type, and the name of their distribution."""
    numpy = np.dtype(DTYPES[dtype])
    draw = np.random.default_rng(rng.getrandbits(64))
    if numpy.kind in "iu":
        limits = np.iinfo(numpy)
        kind = rng.choice(["small", "any", "limits", "high", "constant"])
        if kind == "small":
            low = max(-6, limits.min)
            return kind, draw.integers(low, low + 12, count).astype(numpy)
        if kind == "any":
            return kind, draw.integers(limits.min, limits.max, count, dtype=numpy, endpoint=True)
        if kind == "high":
            return kind, draw.integers(limits.max - 20, limits.max, count, dtype=numpy, endpoint=True)
        if kind == "constant":
            return kind, np.full(count, rng.choice([limits.min, limits.max, 0, 7]), numpy)
        table = [limits.min, limits.min + 1, 0, 1, limits.max - 1, limits.max, limits.max // 3]
        return kind, draw.choice(np.array(table, numpy), count)
    info = np.finfo(numpy)
    kind = rng.choice(["quarters", "normal", "far", "wide", "special", "subnormal", "constant", "huge"])
    with np.errstate(over="ignore"):
        if kind == "quarters":
            found = draw.integers(-8, 20, count) / 4
        elif kind == "normal":
            found = draw.standard_normal(count)
        elif kind == "far":
            # The mean is far from zero, compared with the deviation.
            mean = 2.0 ** rng.randint(2, info.maxexp - 3) if dtype != "f64" else rng.choice([1e3, 1e9, 1e15])
            found = mean * (1 + draw.standard_normal(count) * float(info.eps) * rng.choice([2, 50, 1000]))
        elif kind in ("wide", "huge"):
            reach = info.maxexp - 1
            low = -reach if kind == "wide" else reach - 4
            found = np.ldexp(draw.uniform(-1, 1, count), draw.integers(low, reach, count, endpoint=True))
        elif kind == "subnormal":
            found = draw.integers(-50, 50, count) * float(info.smallest_subnormal)
        elif kind == "constant":
            found = np.full(count, rng.choice([0.0, -0.0, 0.1, 1e3, -2.75, float(info.max)]))
        else:
            table = [0.0, -0.0, 1.0, -2.5, float(info.tiny), float(info.smallest_subnormal), math.nan, math.inf]
            table += [-math.inf, float(info.max), -float(info.max)] if rng.random() < 0.6 else []
            found = np.where(draw.random(count) < rng.choice([0.05, 0.5]), draw.choice(table, count), found_plain(draw, count))
        return kind, found.astype(numpy)


def found_plain(draw, count):
    return draw.integers(-40, 40, count) / 8


class Case:
    """One array in two files, and one query with all that is needed to compute its result."""

    def __init__(self, rng):
        self.rng = rng
        kinds = ["fold"] * 60 + ["histogram"] * 8 + ["matrix"] * 6 + ["transform"] * 16 + ["dense"] * 10
        self.kind = rng.choice(kinds)
        self.dtype = rng.choice(FLOATS if self.kind == "transform" else list(DTYPES))
        self.draw_shape()
        count = math.prod(self.shape)
        self.distribution, flat = values(rng, self.dtype, count)
        self.array = flat.reshape(self.shape)
        self.draw_metadata()
        self.document = {}
        self.draw_selection()
        self.selected = self.array[tuple(slice(*one) for one in self.slices)]
        self.conditions, self.label = {}, None
        if self.kind != "matrix":
            self.draw_filters()
        self.kept = self.mask()
        self.roles, self.pad, self.min_count, self.axes = None, None, None, []
        self.operation, self.argument = None, None
        getattr(self, f"draw_{self.kind}")()
        self.draw_execution()

    # The array and its files.

    def draw_shape(self):
        rng = self.rng
        size = rng.random()
        self.scanned = self.kind == "fold" and size < 0.02
        if self.kind == "matrix":
            self.shape = [rng.randint(1, 40), rng.randint(1, 40)]
            return
        if self.scanned:
            items = SCANNED // np.dtype(DTYPES[self.dtype]).itemsize + rng.randint(0, 5000)
            self.shape = [items] if rng.random() < 0.5 else [items // 64 + 1, 64]
            return
        if size < 0.1:
            rank = rng.randint(1, 3)
            most = {1: 20_000, 2: 150, 3: 28}[rank] if self.kind == "fold" else {1: 1500, 2: 40, 3: 12}[rank]
            self.shape = [rng.randint(1, most) for _ in range(rank)]
            return
        rank = rng.randint(1, 8)
        most = {1: 300, 2: 24, 3: 10, 4: 6, 5: 5, 6: 4, 7: 3, 8: 3}[rank]
        self.shape = [rng.randint(1, most) for _ in range(rank)]

    def chunk_shape(self):
        rng = self.rng
        while True:
            kind = rng.choice(["any", "any", "any", "whole", "rows", "larger"])
            if kind == "any":
                chunk = [rng.randint(1, n) for n in self.shape]
            elif kind == "rows":
                chunk = [1] + self.shape[1:] if len(self.shape) > 1 else [rng.randint(1, self.shape[0])]
            else:
                chunk = [n + (kind == "larger") * rng.randint(0, 3) for n in self.shape]
            if math.prod(-(-n // c) for n, c in zip(self.shape, chunk)) <= 3000:
                return chunk

    def files(self):
        """Two descriptions of files for the driver, without their paths."""
        return [self.file(number) for number in range(2)]

    def file(self, number):
        rng = self.rng
        checksums = rng.random() < 0.7
        described = {
            "dtype": self.dtype,
            "shape": self.shape,
            "chunk_shape": self.chunk_shape(),
            "zstd": rng.choice([None, None, 1, 3]),
            "attrs": self.attrs,
            "dim_names": self.names if self.names[0] else [],
            "labels": self.coords,
            "interop": rng.random() < 0.15 and max(self.shape) <= 64,
            "checksums": checksums,
            "statistics": rng.random() < 0.7,
            "zone_maps": rng.random() < 0.2,
            "budget": rng.choice([0, 0, 0, 1, 5000]),
        }
        if any(len(own) > 64 for own in self.coords.values()):
            described["checksums"], described["interop"] = True, False
        if described["interop"]:
            described["checksums"] = described["statistics"] = False
        if self.scanned and number == 0:
            items = 4096 // np.dtype(DTYPES[self.dtype]).itemsize * 2
            described["chunk_shape"] = [items] if len(self.shape) == 1 else [items // 64, 64]
            described.update(zstd=None, statistics=False, interop=False)
        return described

    def draw_metadata(self):
        rng = self.rng
        rank = len(self.shape)
        named = rng.random() < 0.6
        self.names = [f"axis_{n}" if named else None for n in range(rank)]
        self.coords = {}
        for axis, extent in enumerate(self.shape):
            if extent <= 200 and rng.random() < 0.5:
                few = rng.random() < 0.6
                labels = [rng.choice("abcd") if few else f"p{n}" for n in range(extent)]
                self.coords[self.names[axis] or str(axis)] = labels
        self.labels = tet_model.find_labels(self.coords, self.names, self.shape)
        self.attrs = {"units": "K"} if rng.random() < 0.3 else {}
        self.fill = None
        if rng.random() < 0.5:
            key = rng.choice(["_FillValue", "missing_value", "fill_value"])
            text = self.fill_text()
            self.attrs[key] = text
            self.fill = tet_model.parse(text)

    def fill_text(self):
        if self.rng.random() < 0.2:
            return self.rng.choice(["-999", "1e20", "0", "0.1", "nan", "5"])
        return repr(self.element())

    def element(self):
        """An element of the array, as a Python number."""
        found = self.array.ravel()[self.rng.randrange(self.array.size)].item()
        return found

    # The parts of the query.

    def token(self, axis):
        forms = [axis, str(axis)] + ([self.names[axis]] * 2 if self.names[axis] else [])
        return self.rng.choice(forms)

    def axis_list(self, axes):
        tokens = [self.token(axis) for axis in axes]
        self.rng.shuffle(tokens)
        form = self.rng.random()
        if len(tokens) == 1 and form < 0.3:
            return tokens[0]
        if form < 0.5:
            return {self.rng.choice(["axis", "axes"]): tokens}
        return tokens

    def draw_selection(self):
        rng = self.rng
        self.slices = [(0, n, 1) for n in self.shape]
        if rng.random() < 0.35:
            return
        document = []
        for axis, n in enumerate(self.shape):
            start, stop, step = 0, n, 1
            own = {}
            if rng.random() < 0.5:
                start = rng.randint(0, n - 1)
                stop = rng.randint(start + 1, n)
                own = {"start": start, "stop": stop}
                if stop == n and rng.random() < 0.5:
                    del own["stop"]
                labels = self.labels[axis]
                if labels and rng.random() < 0.7:
                    first = labels.index(labels[start])
                    if first < stop:
                        start = first
                        own = own | {"start_label": labels[start]}
                        del own["start"]
                    if stop < n and labels.index(labels[stop]) > start:
                        stop = labels.index(labels[stop])
                        own = own | {"stop_label": labels[stop]}
                        del own["stop"]
            if rng.random() < 0.4:
                step = rng.choice([1, 2, 2, 3, 5, n, n + 7])
                own["step"] = step
            if rng.random() < 0.1:
                own.setdefault("step", None)
            document.append(own)
            self.slices[axis] = (start, stop, step)
        self.document["selection"] = document

    def number(self):
        """A number to compare with elements."""
        rng = self.rng
        found = self.element()
        kind = rng.random()
        if isinstance(found, float):
            if not math.isfinite(found):
                return rng.choice([0, 0.1, 1, -1.5])
            if kind < 0.1 and math.isfinite(found * 2):
                return found + abs(found) * 1e-9
            if kind < 0.2:
                return int(found)
            return found
        if kind < 0.15:
            return found + rng.choice([-0.5, 0.5])
        if kind < 0.25:
            return float(found)
        return min(max(found + rng.choice([0, 0, 0, -1, 1]), -(2**63)), 2**64 - 1)

    def draw_filters(self):
        rng = self.rng
        if rng.random() < 0.35:
            self.conditions = self.draw_conditions()
            self.document["filter"] = self.conditions
        labelled = [axis for axis, own in enumerate(self.labels) if own]
        if labelled and rng.random() < 0.15:
            axis = rng.choice(labelled)
            self.label = (axis, rng.choice(self.labels[axis]))
            self.document["label_filter"] = {"axis": self.token(axis), "eq": self.label[1]}

    def draw_conditions(self):
        rng = self.rng
        if rng.random() < 0.25:
            return {rng.choice(["is_null", "is_not_null"]): True}
        if rng.random() < 0.5:
            found = {rng.choice(["eq", "ne", "lt", "le", "gt", "ge"]): self.number()}
        else:
            low, high = sorted([self.number(), self.number()])
            if low == high:
                found = {"ge": low, "le": high}
            else:
                found = {rng.choice(["gt", "ge"]): low, rng.choice(["lt", "le"]): high}
            if rng.random() < 0.3:
                found["ne"] = self.number()
        if rng.random() < 0.2:
            found["is_not_null"] = True
        return found

    def fill_value(self):
        return None if self.fill is None else tet_model.convert(self.fill, self.array.dtype)

    def mask(self):
        kept = np.ones(self.selected.shape, bool)
        if self.conditions:
            kept &= tet_model.passes(self.selected, self.conditions, self.fill_value())
        if self.label:
            axis, label = self.label
            own = np.array(self.labels[axis])[slice(*self.slices[axis])] == label
            kept &= own.reshape([-1 if other == axis else 1 for other in range(kept.ndim)])
        return kept

    def some_axes(self):
        """Axes to reduce: none for all, never all of them."""
        rank = len(self.shape)
        if rank == 1 or self.rng.random() < 0.3:
            return []
        return sorted(self.rng.sample(range(rank), self.rng.randint(1, rank - 1)))

    def plain_roles(self, axes):
        rank = len(self.shape)
        return [("reduced",) if not axes or axis in axes else ("kept",) for axis in range(rank)]

    # Kinds of queries.

    def draw_fold(self):
        rng = self.rng
        self.operation = rng.choice(FOLDS)
        extra = rng.choice(["none", "none", "positions", "labels", "bins", "rolling", "rolling"])
        if self.scanned:
            extra = "none"
        self.axes = self.some_axes()
        self.roles = self.plain_roles(self.axes)
        self.groups = []
        if extra in ("positions", "labels"):
            self.draw_groups(extra == "labels")
        elif extra in ("bins", "rolling"):
            self.draw_window(extra == "rolling")
        listed = self.axis_list(self.axes)
        value = listed
        if self.operation == "quantile":
            self.argument = rng.choice([0, 1, 0.5, 0.25, 0.9, rng.random()])
            value = {"q": self.argument, rng.choice(["axis", "axes"]): self.plain(listed)}
        if self.operation == "null_count":
            self.argument = self.fill
            if self.fill is None or rng.random() < 0.5:
                self.argument = self.number()
                fill = repr(self.argument) if rng.random() < 0.3 else self.argument
                value = {"fill": fill, rng.choice(["axis", "axes"]): self.plain(listed)}
            self.argument = tet_model.convert(self.argument, self.array.dtype)
        self.document[self.operation] = value

    @staticmethod
    def plain(listed):
        """Axes that are a member of an object already."""
        return next(iter(listed.values())) if isinstance(listed, dict) else listed

    def draw_groups(self, by_labels):
        rng = self.rng
        rank = len(self.shape)
        possible = [axis for axis in range(rank) if self.labels[axis]] if by_labels else list(range(rank))
        if rank == 1 or not possible:
            return
        groups = rng.sample(possible, rng.randint(1, min(len(possible), rank - 1)))
        others = [axis for axis in range(rank) if axis not in groups]
        self.axes = others if rng.random() < 0.3 else []
        self.roles = [("reduced",)] * rank
        for axis in groups:
            if by_labels:
                own = self.labels[axis][slice(*self.slices[axis])]
                seen = list(dict.fromkeys(own))
                self.roles[axis] = ("groups", [seen.index(label) for label in own], len(seen))
            else:
                self.roles[axis] = ("kept",)
        tokens = [self.token(axis) for axis in groups]
        self.document["group_by"] = {"by": "labels", "axes": tokens} if by_labels else tokens
        self.groups = groups if by_labels else []

    def draw_window(self, rolling):
        rng = self.rng
        rank = len(self.shape)
        axis = rng.randrange(rank)
        extent = self.selected.shape[axis]
        others = [other for other in range(rank) if other != axis]
        also = rng.sample(others, rng.randint(0, len(others))) if rng.random() < 0.4 else []
        size = rng.randint(1, min(extent, rng.choice([3, 10, 1000])))
        if rolling and self.selected.size * size > WINDOWED:
            size = max(1, WINDOWED // self.selected.size)
        window = {"axis": self.token(axis), "size": size, "mode": "rolling" if rolling else "bins"}
        pads = ["none", "none", "0"] + (["nan"] if self.dtype in FLOATS else [])
        if self.fill is not None and self.fill_value() is not None:
            pads.append("fill")
        pad = rng.choice(pads)
        if pad != "none" or rng.random() < 0.3:
            window["pad"] = pad
        self.pad = {"none": None, "0": 0, "nan": math.nan, "fill": self.fill_value()}[pad]
        end = rng.random() < 0.4 and (not rolling or pad != "none")
        if end or rng.random() < 0.2:
            window["align"] = "end" if end else "start"
        step = rng.choice([1, 1, 1, 2, 3, size]) if rolling else 1
        if rolling and (step > 1 or rng.random() < 0.3):
            window["step"] = step
        self.min_count = 1
        if rng.random() < 0.4:
            self.min_count = window["min_count"] = rng.randint(1, size)
        if not rolling:
            bins = -(-extent // size)
            starts = [extent - (bins - n) * size if end else n * size for n in range(bins)]
        elif self.pad is None:
            starts = list(range(0, extent - size + 1, step))
        else:
            starts = list(range(0, extent, step) if end else range(1 - size, extent - size + 1, step))
        self.axes = [axis, *also] if also or rng.random() < 0.5 else []
        self.roles = [("reduced",) if other in also else ("kept",) for other in range(rank)]
        self.roles[axis] = ("windows", starts, size)
        self.document["window"] = window
        self.window = (axis, size, step if rolling else 0, self.min_count)

    def draw_histogram(self):
        rng = self.rng
        self.operation = "histogram"
        self.axes = self.some_axes()
        self.roles = self.plain_roles(self.axes)
        bins, limits = rng.choice([1, 2, 7, 10, 64]), None
        value = {"bins": bins, "axes": self.plain(self.axis_list(self.axes))}
        if rng.random() < 0.4:
            low, high = sorted([float(self.number()), float(self.number())])
            if low < high and math.isfinite(high - low):
                limits = (low, high)
                value |= {"min": low, "max": high}
        elif rng.random() < 0.2:
            value |= {"min": None, "max": None}
        self.argument = (bins, limits)
        self.document["histogram"] = value

    def draw_matrix(self):
        self.operation = self.rng.choice(["covariance", "correlation"])
        self.axes = [self.rng.randrange(2)]
        self.document[self.operation] = self.axis_list(self.axes)

    def draw_transform(self):
        rng = self.rng
        self.operation = "transform"
        self.argument = rng.choice(tet_model.METHODS)
        self.axes = self.some_axes()
        value = {"method": self.argument}
        if self.axes or rng.random() < 0.5:
            value["axis"] = self.plain(self.axis_list(self.axes))
        self.document["transform"] = value
        self.target = rng.choice([None, "ram", "spill", "switch", "sidecar"])
        if self.target == "sidecar":
            stamp = rng.random() < 0.5
            self.document["write"] = {"target": "sidecar"} | ({} if stamp else {"timestamp": False})
        if self.target in ("spill", "sidecar") and (self.target == "spill" or rng.random() < 0.5):
            self.document["write"] = {"target": self.target, "path": "output." + self.target}
        elif self.target in ("ram", "switch"):
            self.document["write"] = self.target if rng.random() < 0.5 else {"target": self.target}

    def draw_dense(self):
        self.spill = self.rng.random() < 0.5
        if self.spill:
            self.document["spill"] = "selection.bin"

    def draw_execution(self):
        rng = self.rng
        execution = {}
        budget = rng.choice([None, None, 1, 100, 4096, 1 << 20, 1 << 30])
        if self.operation in ("median", "quantile") and self.selected.size > 2000:
            # Too little memory means one pass per digit and output element.
            budget = rng.choice([1 << 20, 1 << 30])
        if budget is not None:
            execution["memory_budget_bytes"] = budget
        elif rng.random() < 0.2:
            execution["memory_budget_percent"] = rng.choice([1, 12.5, 100])
        if rng.random() < 0.2:
            execution["fold_parallel"] = rng.random() < 0.5
        if rng.random() < 0.1:
            execution["device"] = rng.choice(["cpu", "auto", "cuda:0", "metal"])
        if execution:
            self.document["execution"] = execution
        self.budget = budget
        # More values than a window of preview shows, and none.
        self.preview = rng.choice([0, 1, 64, 10_000]) if self.operation or getattr(self, "spill", False) else 10_000

    def text(self):
        """The document as JSON or TOML, flat or as a pipeline; and whether it is TOML."""
        rng = self.rng
        document = {"dataset": "values"} | self.document
        if rng.random() < 0.25 and "label_filter" not in document:
            document = pipeline(document)
        items = list(document.items())
        rng.shuffle(items)
        if rng.random() < 0.2 and not has_null(document):
            return "".join(f"{key} = {toml(value)}\n" for key, value in items), True
        return json.dumps(dict(items)), False


def pipeline(document):
    """The same query as steps."""
    rest, steps = dict(document), []
    if "selection" in rest:
        steps.append({"select": rest.pop("selection")})
    if "filter" in rest:
        steps.append({"filter": rest.pop("filter")})
    operations = [key for key in rest if key in [*FOLDS, "histogram", "covariance", "correlation", "transform"]]
    for key in operations:
        steps.append({name: rest.pop(name) for name in (key, "group_by", "window") if name in rest})
    for key in ("spill", "write"):
        if key in rest:
            steps.append({key: rest.pop(key)})
    return rest | {"pipeline": steps} if steps else document


def has_null(value):
    if isinstance(value, dict):
        return any(has_null(one) for one in value.values())
    if isinstance(value, list):
        return any(has_null(one) for one in value)
    # Integers of TOML have 64 bits with a sign.
    return value is None or (isinstance(value, int) and not -(2**63) <= value < 2**63)


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(one) for one in value) + "]"
    return json.dumps(value)
