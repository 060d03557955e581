"""A slow model of `.tet` queries: which values belong to which output element, and what transforms make of them.

Follows `docs/spec/tet-query.md`. Axes of a selection have roles:

    ("reduced",)                 all positions belong to one output element
    ("kept",)                    each position has its own
    ("groups", numbers, count)   the group of each position
    ("windows", starts, size)    windows of positions; some may be outside the axis
"""

import decimal
import itertools
import math
from fractions import Fraction

import numpy as np

import tet_exact
from tet_exact import ROUND, TINY, Expected, Values, root, ulp

METHODS = ["center", "zscore", "scale", "minmax", "l1", "l2", "log1p", "sqrt", "softmax"]
# Indices of elements with an impossible divisor that are listed.
LISTED = 256


def find_labels(coords, names, shape):
    """The labels of each axis: by its name, by its number, or the only coordinate of its length."""
    found = []
    for axis, extent in enumerate(shape):
        fitting = {key: own for key, own in coords.items() if len(own) == extent}
        only = next(iter(fitting.values())) if len(fitting) == 1 else None
        found.append(fitting.get(names[axis]) or fitting.get(str(axis)) or only)
    return found


def own_labels(coords, names, shape):
    """The labels of each axis in the typed interface: by its name, by its number, or the only coordinate of its length, unless that is
    named like another axis."""
    found = []
    for axis, extent in enumerate(shape):
        fitting = {key: own for key, own in coords.items() if len(own) == extent}
        others = {key for other, name in enumerate(names) if other != axis for key in (name, str(other))}
        only = None
        if len(fitting) == 1:
            [(key, own)] = fitting.items()
            only = None if key in others else own
        found.append(fitting.get(names[axis]) or fitting.get(str(axis)) or only)
    return found


def parse(text):
    """The number in an attribute: an integer, or a float."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def convert(number, dtype):
    """A number as a value of an element type; `None` if there is no such value."""
    if dtype.kind in "iu":
        if isinstance(number, float):
            if not number.is_integer():
                return None
            number = int(number)
        limits = np.iinfo(dtype)
        return number if limits.min <= number <= limits.max else None
    if isinstance(number, float) and not math.isfinite(number):
        return number
    try:
        near = float(number)
    except OverflowError:
        return None
    with np.errstate(over="ignore"):
        near = dtype.type(near)
    if isinstance(number, int) and np.isfinite(near):
        # The conversion to float64 may have rounded once already.
        around = [near, np.nextafter(near, dtype.type(-np.inf)), np.nextafter(near, dtype.type(np.inf))]
        even = {float(one): int(one.view(f"<u{dtype.itemsize}")) % 2 for one in around}
        around = [float(one) for one in around if np.isfinite(one)]
        near = min(around, key=lambda one: (abs(Fraction(one) - number), even[one]))
    return float(near) if np.isfinite(near) else None


def passes(values, conditions, fill):
    """Which elements pass a filter. `fill` is the fill value of the dataset, as a value of its type."""
    dtype = values.dtype
    tests = {
        "lt": lambda x, y: x < y,
        "le": lambda x, y: x <= y,
        "gt": lambda x, y: x > y,
        "ge": lambda x, y: x >= y,
    }
    compared = any(key in conditions for key in ("eq", *tests))
    equal = convert(conditions["eq"], dtype) if "eq" in conditions else None
    barred = convert(conditions["ne"], dtype) if "ne" in conditions else None

    def one(x):
        if x != x or (fill is not None and x == fill):
            return not compared and "is_not_null" not in conditions
        if "is_null" in conditions or ("eq" in conditions and (equal is None or x != equal)):
            return False
        if barred is not None and x == barred:
            return False
        # Python compares integers with floats exactly.
        return all(test(x, conditions[key]) for key, test in tests.items() if key in conditions)

    flat = [one(x) for x in values.ravel().tolist()]
    return np.array(flat, dtype=bool).reshape(values.shape)


def output_shape(roles, shape):
    sizes = {"kept": lambda role, n: n, "groups": lambda role, n: role[2], "windows": lambda role, n: len(role[1])}
    return [sizes[role[0]](role, n) for role, n in zip(roles, shape) if role[0] != "reduced"]


class Cell:
    """The values of one output element, in the order of their indices among the reduced positions."""

    def __init__(self, values, indices, real):
        self.values, self.indices, self.real = values, indices, real


def cells(values, kept, roles, pad):
    """All output elements, row-major. `kept` marks the elements that pass the filters, `pad` is a value or `None`."""
    choices = []
    for role, n in zip(roles, values.shape):
        if role[0] == "reduced":
            choices.append([(np.arange(n), np.arange(n), n)])
        elif role[0] == "kept":
            choices.append([(np.array([p]), np.zeros(1, np.int64), 1) for p in range(n)])
        elif role[0] == "groups":
            members = [np.flatnonzero(np.array(role[1]) == group) for group in range(role[2])]
            choices.append([(own, np.zeros(len(own), np.int64), 1) for own in members])
        else:
            offsets = np.arange(role[2])
            choices.append([(start + offsets, offsets, role[2]) for start in role[1]])
    for chosen in itertools.product(*choices):
        inside = [(own >= 0) & (own < n) for (own, _, _), n in zip(chosen, values.shape)]
        grid = np.ix_(*[np.where(ok, own, 0) for (own, _, _), ok in zip(chosen, inside)])
        indices = np.zeros((), np.int64)
        outside = np.zeros((), bool)
        for axis, ((_, own, extent), ok) in enumerate(zip(chosen, inside)):
            line = [1] * len(chosen)
            line[axis] = -1
            indices = indices * extent + own.reshape(line)
            outside = outside | ~ok.reshape(line)
        block, there = values[grid], kept[grid] & ~outside
        indices, outside = np.broadcast_to(indices, block.shape), np.broadcast_to(outside, block.shape)
        found, at = block[there], indices[there]
        real = len(found)
        if pad is not None and outside.any():
            found = np.concatenate([found, np.full(int(outside.sum()), pad, values.dtype)])
            at = np.concatenate([at, indices[outside]])
        order = np.argsort(at, kind="stable")
        yield Cell(found[order], at[order], real)


def position(operation, cell):
    """The expected result of `arg_min` and `arg_max`; `None` without a value."""
    found = [(x, i) for x, i in zip(cell.values.tolist(), cell.indices.tolist()) if x == x]
    if not found:
        return None
    best = (min if operation == "arg_min" else max)(x for x, _ in found)
    return min(i for x, i in found if x == best)


def decimals(number):
    return decimal.Decimal(number.numerator) / decimal.Decimal(number.denominator)


class Transform:
    """The statistics of a transform for one output element, and its formula."""

    def __init__(self, method, values, fill):
        """`values` are those that pass the filters."""
        self.method = method
        self.cell = Values(values, fill)
        with np.errstate(all="ignore"):
            self.measure()

    def measure(self):
        cell, method = self.cell, self.method
        rest = cell.without_nan().floats
        floats, n = cell.floats, len(cell.floats)
        least, most = (float(rest.min()), float(rest.max())) if len(rest) else (math.nan, math.nan)
        self.shift, self.divisor = 0.0, 1.0
        if method in ("center", "zscore"):
            self.shift = float(np.mean(floats)) if n else math.nan
        if method in ("zscore", "scale"):
            self.divisor = float(np.std(floats)) if n else math.nan
        if method in ("minmax", "log1p", "sqrt"):
            self.shift = least
        if method == "minmax":
            self.divisor = most - least
        if method == "l1":
            self.divisor = float(np.sum(np.abs(floats)))
        if method == "l2":
            self.divisor = float(np.sqrt(np.sum(floats * floats)))
        if method == "softmax":
            self.shift = most
            finite = rest[np.isfinite(rest)]
            self.divisor = float(np.sum(np.exp(finite - most))) if math.isfinite(most) else 0.0
        self.exact = cell.finite() and n > 0
        if method == "softmax":
            self.exact = math.isfinite(most)
            if self.exact:
                terms = [decimals(Fraction(x) - Fraction(most)).exp() for x in finite.tolist()]
                self.total = sum(terms)
        elif method in ("minmax", "log1p", "sqrt"):
            self.exact = math.isfinite(least) and (method != "minmax" or math.isfinite(most))
        elif self.exact:
            n = len(floats)
            self.mean = cell.sum() / n
            self.error = ulp(self.mean) + tet_exact.summing(n) * cell.magnitude() / n
            self.norm = cell.magnitude() if method == "l1" else root(cell.squares())
            self.std = root(cell.variance())
        self.least, self.most = least, most

    def impossible(self):
        """Whether the divisor is 0 or not finite; `None` if that depends on rounding."""
        if self.method in ("center", "log1p", "sqrt"):
            return False
        bad = not math.isfinite(self.divisor) or self.divisor == 0
        if not self.exact or self.method in ("minmax", "softmax"):
            return bad
        exact = self.std if self.method in ("zscore", "scale") else self.norm
        if exact == 0:
            return True
        # Squares of tiny and of huge values may be beyond float64, in NumPy or in Tercet.
        edge = exact < 2**-500 or exact > 2**500 or self.divisor == 0
        return None if edge and self.method != "l1" else bad

    def expected(self, x, dtype):
        """The expected element for a finite input that passes the filters."""
        with np.errstate(all="ignore"):
            numpy = dtype.type(self.formula(np.float64(x)))
        bad = self.impossible()
        if bad:
            return Expected(math.nan)
        if not self.exact:
            return Expected(float(numpy))
        exact, slack = self.value(Fraction(float(x)))
        expected = Expected(exact, math.nan if bad is None else numpy, slack + step(exact, dtype))
        if abs(exact) > Fraction(float(np.finfo(dtype).max)):
            expected.numpy = math.inf
        return expected

    def formula(self, x):
        if self.method == "log1p":
            return np.log1p(x - self.shift)
        if self.method == "sqrt":
            return np.sqrt(x - self.shift)
        if self.method == "softmax":
            return np.exp(x - self.shift) / self.divisor
        return (x - self.shift) / self.divisor

    def value(self, x):
        """The exact value, and the error of an evaluation in float64."""
        method = self.method
        if method in ("center", "zscore"):
            shifted = x - self.mean
            slack = self.error + ulp(shifted)
            if method == "center":
                return shifted, slack
            value = shifted / self.std
            return value, slack / self.std + abs(value) * 8 * ROUND
        if method == "scale":
            return x / self.std, abs(x / self.std) * 8 * ROUND
        if method in ("l1", "l2"):
            return x / self.norm, abs(x / self.norm) * 4 * ROUND
        least = Fraction(self.most if method == "softmax" else self.least)
        shifted = x - least
        if method == "minmax":
            value = shifted / (Fraction(self.most) - least)
            return value, 4 * ROUND * value
        if method == "sqrt":
            return root(shifted), 3 * ROUND * root(shifted)
        if method == "log1p":
            value = Fraction((1 + decimals(shifted)).ln())
            return value, 4 * ROUND * value + ROUND * min(shifted, 1)
        value = Fraction(decimals(shifted).exp() / self.total)
        terms = len(self.cell.floats) // 8
        return value, (8 + terms + 2 * abs(shifted)) * ROUND * value + 2 * TINY


def step(exact, dtype):
    """The distance of neighbours of a rational in an element type; for float64 the formula has rounded already."""
    if dtype.itemsize == 8:
        return Fraction(0)
    try:
        near = abs(dtype.type(float(exact)))
    except OverflowError:
        return Fraction(0)
    with np.errstate(all="ignore"):
        return Fraction(float(np.spacing(near))) * Fraction(51, 100) if np.isfinite(near) else Fraction(0)


def transformed(method, values, kept, axes):
    """Expected elements, row-major: `None` for an input that passes unchanged, NaN for one that fails the filter.

    Returns them with the statistics of each output element and the indices of elements with an impossible divisor, or
    `None` for the latter if rounding decides.
    """
    decimal.getcontext().prec = 60
    roles = [("reduced",) if not axes or axis in axes else ("kept",) for axis in range(values.ndim)]
    shape = output_shape(roles, values.shape)
    statistics = [Transform(method, cell.values, None) for cell in cells(values, kept, roles, None)]
    table = np.arange(len(statistics)).reshape(shape or [1])
    expected, bad = [], []
    for number, (at, x) in enumerate(np.ndenumerate(values)):
        if not kept[at]:
            expected.append(Expected(math.nan))
        elif not np.isfinite(x):
            expected.append(None)
        else:
            own = tuple(at[axis] for axis in range(values.ndim) if axes and axis not in axes)
            one = statistics[table[own or (0,)]]
            expected.append(one.expected(x, values.dtype))
            if one.impossible() is None:
                bad = None
            elif one.impossible() and bad is not None:
                bad.append(number)
    return expected, statistics, bad
