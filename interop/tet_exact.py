"""Exact results of `.tet` operations, and how far a result may be from them.

The values of one output element are integers times a power of two, so that sums, means, variances and products are exact
rationals. A result passes if it is at least as close to the exact one as NumPy's result in float64, or within a few
units in the last place.
"""

import math
from fractions import Fraction

import numpy as np

# Unit roundoff of float64.
ROUND = Fraction(1, 2**53)
TINY = Fraction(1, 2**1074)
LARGEST = Fraction(float(np.finfo(np.float64).max))
COUNTS = {"count", "nan_count", "inf_count", "null_count"}
FLAGS = {"all_finite", "any_nan", "any_inf"}
POSITIONS = {"arg_min", "arg_max"}


def ulp(value):
    """The unit in the last place of a rational, as float64."""
    try:
        return Fraction(math.ulp(float(value)))
    except OverflowError:
        return Fraction(math.ulp(float(LARGEST)))


def root(value):
    """The square root of a rational, to about 200 bits."""
    if value <= 0:
        return Fraction(0)
    shift = max(0, 400 - value.numerator.bit_length() + value.denominator.bit_length())
    shift += shift % 2
    return Fraction(math.isqrt((value.numerator << shift) // value.denominator), 1 << (shift // 2))


class Values:
    """The values of one output element."""

    def __init__(self, values, fill):
        """`values` is an array of the element type of the file."""
        self.values = values
        self.fill = fill
        self.whole = values.dtype.kind in "iu"
        with np.errstate(over="ignore"):
            self.floats = values.astype(np.float64)
        self.has_nan = not self.whole and bool(np.isnan(self.floats).any())
        self.integers, self.shift = None, 0

    def finite(self):
        return self.whole or bool(np.isfinite(self.floats).all())

    def without_nan(self):
        return self if not self.has_nan else Values(self.values[~np.isnan(self.floats)], self.fill)

    def exact(self):
        """The values as integers; they are divided by two to the power of `shift`."""
        if self.integers is None:
            if self.whole:
                self.integers = [int(value) for value in self.values]
            else:
                digits, exponents = np.frexp(self.floats)
                digits = np.ldexp(digits, 53).astype(np.int64).tolist()
                exponents = (exponents.astype(np.int64) - 53).tolist()
                used = [e for d, e in zip(digits, exponents) if d]
                least = min(used, default=0)
                self.shift = -least
                self.integers = [d << (e - least) if d else 0 for d, e in zip(digits, exponents)]
        return self.integers

    def scaled(self, number, power=1):
        shift = self.shift * power
        return Fraction(number, 1 << shift) if shift >= 0 else Fraction(number << -shift)

    def sum(self):
        return self.scaled(sum(self.exact()))

    def magnitude(self):
        return self.scaled(sum(abs(value) for value in self.exact()))

    def squares(self):
        return self.scaled(sum(value * value for value in self.exact()), 2)

    def variance(self):
        n, total = len(self.values), sum(self.exact())
        squares = sum(value * value for value in self.integers)
        return self.scaled(n * squares - total * total, 2) / (n * n)

    def product(self):
        return self.scaled(math.prod(self.exact()), len(self.values))


class Expected:
    """An exact result, NumPy's result, and how far ours may be from the first."""

    def __init__(self, exact, numpy=None, slack=Fraction(0), unit=None):
        self.exact, self.slack = exact, slack
        self.numpy = None if numpy is None else float(numpy)
        # The scale of errors, for the comparison of all errors with those of NumPy.
        self.unit = unit

    def distance(self, found):
        return abs(Fraction(found) - self.exact)

    def agrees(self, found):
        if not isinstance(self.exact, Fraction):
            exact = float(self.exact)
            # A finite sum beyond float64 may meet an infinity, in NumPy as well.
            either = math.isinf(exact) and self.numpy is not None and math.isnan(self.numpy)
            return found == exact or (math.isnan(found) and (either or math.isnan(exact)))
        if not math.isfinite(found):
            # Beyond float64, or computed from squares beyond float64 as in NumPy.
            overflows = self.numpy is not None and not math.isfinite(self.numpy)
            return overflows or abs(self.exact) > LARGEST * (1 - ROUND)
        error = self.distance(found)
        if error <= self.slack:
            return True
        return self.numpy is not None and math.isfinite(self.numpy) and error <= self.distance(self.numpy)

    def __repr__(self):
        try:
            exact = repr(float(self.exact))
        except OverflowError:
            exact = "beyond float64"
        return f"{exact} (NumPy {self.numpy!r})"


def infinite(values):
    """The sum of values that are not all finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.sum(values[~np.isfinite(values)]))


def evaluate(operation, argument, cell):
    """The expected result of an operation other than a histogram; `None` for null."""
    n = len(cell.values)
    if operation in COUNTS | FLAGS:
        return counted(operation, cell)
    if operation in ("nan_mean", "nan_std"):
        return evaluate(operation[4:], argument, cell.without_nan())
    if operation in ("min", "max"):
        rest = cell.without_nan()
        if not len(rest.values):
            return Expected(math.nan)
        best = min(rest.values.tolist()) if operation == "min" else max(rest.values.tolist())
        return Expected(float(best))
    if n == 0:
        return Expected({"sum": 0.0, "product": 1.0, "norm_l1": 0.0, "norm_l2": 0.0}.get(operation, math.nan))
    if operation in ("median", "quantile"):
        return quantile(cell, 0.5 if operation == "median" else argument)
    with np.errstate(all="ignore"):
        return folded(operation, cell, n)


def counted(operation, cell):
    floats = cell.floats
    if operation == "count":
        return Expected(float(len(floats)))
    if operation == "null_count":
        if cell.fill is None:
            return Expected(0.0)
        is_nan = isinstance(cell.fill, float) and math.isnan(cell.fill)
        return Expected(float(np.isnan(floats).sum() if is_nan else sum(v == cell.fill for v in cell.values.tolist())))
    nans, infinities = int(np.isnan(floats).sum()), int(np.isinf(floats).sum())
    if operation in ("nan_count", "inf_count"):
        return Expected(float(nans if operation == "nan_count" else infinities))
    return {"all_finite": nans + infinities == 0, "any_nan": nans > 0, "any_inf": infinities > 0}[operation]


def folded(operation, cell, n):
    floats = cell.floats
    if operation == "product":
        numpy = np.prod(floats)
        if not cell.finite() or not np.all(floats):
            # Not a number if a zero meets an infinity.
            return Expected(float(np.prod(np.sign(floats) * np.where(np.isinf(floats), np.inf, 1.0))))
        exact = cell.product()
        roundings = 2 * n if cell.whole else n
        return Expected(exact, numpy, roundings * ROUND * abs(exact) + TINY)
    if not cell.finite():
        if operation in ("var", "std"):
            return Expected(math.nan)
        terms = np.abs(floats) if operation in ("norm_l1", "norm_l2") else floats
        return Expected(infinite(terms), math.nan if np.isinf(np.sum(np.abs(floats[np.isfinite(floats)]))) else 0)
    # The order of additions decides whether a sum is beyond float64 on the way.
    overflows = np.isinf(np.sum(np.abs(floats)))
    if operation == "sum":
        exact, numpy = cell.sum(), math.nan if overflows else np.sum(floats)
        return Expected(exact, numpy, rounded(exact, cell, cell.magnitude()), cell.magnitude())
    if operation == "mean":
        exact, numpy = cell.sum() / n, math.nan if overflows else np.mean(floats)
        scale = cell.magnitude() / n
        return Expected(exact, numpy, ulp(exact) + (0 if cell.whole else summing(n) * scale), scale)
    if operation == "norm_l1":
        exact, numpy = cell.magnitude(), np.sum(np.abs(floats))
        return Expected(exact, numpy, rounded(exact, cell, exact), exact)
    if operation == "norm_l2":
        exact = root(cell.squares())
        lost = min(n * TINY / exact, root(n * TINY)) if exact else 0
        return Expected(exact, np.sqrt(np.sum(floats * floats)), ulp(exact) + 2 * summing(n) * exact + lost, exact)
    exact = cell.variance()
    slack = VARIANCE + math.isqrt(n) * ROUND
    if operation == "var":
        return Expected(exact, np.var(floats), slack * exact + 2 * TINY, exact)
    exact = root(exact)
    # The square of a tiny difference is a multiple of the least float.
    lost = min(2 * TINY / exact, root(2 * TINY)) if exact else 0
    return Expected(exact, np.std(floats), slack * exact + lost, exact)


# Errors of variances, as a multiple of the variance. They grow with the square root of the number of values, as do NumPy's
# along all axes but the last.
VARIANCE = 16 * ROUND


def summing(n):
    """At most 256 values are added without compensation; those of equal values have errors of the same sign."""
    return (2 + min(n, 256) // 8) * ROUND


def rounded(exact, cell, magnitude):
    """Sums of integers are rounded once; those of floats have a small error besides."""
    try:
        once = abs(Fraction(float(exact)) - exact)
    except OverflowError:
        once = Fraction(0)
    return once if cell.whole else ulp(exact) + summing(len(cell.values)) * magnitude


def quantile(cell, q):
    if cell.has_nan:
        return Expected(math.nan)
    ordered = sorted(cell.values.tolist())
    position = Fraction(q) * (len(ordered) - 1)
    low = int(position)
    fraction = position - low
    first, second = ordered[low], ordered[min(low + 1, len(ordered) - 1)]
    # The position is rounded to float64, and so is each of three operations.
    turn = (len(ordered) * ROUND * 2) if fraction else 0
    if fraction == 0 or first == second:
        return Expected(Fraction(first), slack=ulp(Fraction(first))) if abs(first) < math.inf else Expected(first)
    if not (abs(first) < math.inf and abs(second) < math.inf):
        return Expected(math.nan if -first == second else first + second)
    first, second = Fraction(first), Fraction(second)
    exact = first + (second - first) * fraction
    with np.errstate(all="ignore"):
        numpy = np.quantile(cell.floats, q)
    slack = 3 * ROUND * max(abs(first), abs(second)) + turn * (second - first) + 2 * TINY
    return Expected(exact, numpy, slack)


def histogram(cell, bins, limits):
    """Counts and edges, by the formula of the format in float64; edges are `None` without a finite value."""
    floats = cell.without_nan().floats
    finite = floats[np.isfinite(floats)]
    if limits is None and not len(finite):
        counts = np.zeros(bins)
        counts[0], counts[-1] = np.sum(floats == -np.inf), 0
        counts[-1] += np.sum(floats == np.inf)
        return counts, None
    low, high = limits or (float(finite.min()), float(finite.max()))
    with np.errstate(all="ignore"):
        span = high - low
        width = span / bins if math.isfinite(span) else high / bins - low / bins
        if span < np.finfo(np.float64).eps:
            places = np.where(floats == np.inf, bins - 1, 0)
            edges = [low] + [high] * bins
        else:
            places = np.clip(np.floor((floats - low) / width), 0, bins - 1)
            edges = [low + i * width for i in range(bins)] + [high]
    return np.bincount(places.astype(np.int64), minlength=bins).astype(np.float64), np.array(edges)


def matrix(columns, correlation):
    """Covariances or correlations of columns of float64 or integers, row by row."""
    exact = [Values(column, None) for column in columns]
    n = len(columns[0])
    shift = max((one.exact() and one.shift) or one.shift for one in exact)
    rows = [[value << (shift - one.shift) for value in one.exact()] for one in exact]
    sums = [sum(row) for row in rows]
    with np.errstate(all="ignore"):
        floats = np.array([one.floats for one in exact])
        numpy = np.atleast_2d(np.corrcoef(floats) if correlation else np.cov(floats, ddof=0))
    products = {}
    for i, a in enumerate(rows):
        for j in range(i, len(rows)):
            dot = sum(x * y for x, y in zip(a, rows[j]))
            products[i, j] = products[j, i] = n * dot - sums[i] * sums[j]
    scale = Fraction(1, n * n) / (Fraction(2) ** (2 * shift))
    found = []
    for i in range(len(rows)):
        for j in range(len(rows)):
            spread = root(Fraction(products[i, i] * products[j, j]))
            if not correlation:
                exact = products[i, j] * scale
                found.append(Expected(exact, numpy[i, j], (8 + math.isqrt(n)) * ROUND * spread * scale + TINY, spread * scale))
            elif i == j or spread == 0:
                found.append(Expected(1.0 if i == j else 0.0))
            else:
                expected = Expected(Fraction(products[i, j]) / spread, numpy[i, j], 16 * ROUND, Fraction(1))
                if not math.isfinite(expected.numpy):
                    # Constant in float64: no correlation. Otherwise beyond float64.
                    expected.slack = abs(expected.exact)
                found.append(expected)
    return found
