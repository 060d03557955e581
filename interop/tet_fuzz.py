"""Compares random `.tet` queries with NumPy and exact rationals.

usage: tet_fuzz.py --driver PROGRAM [--cases N] [--seed N] [--case N]

The driver is `query_tet`. Every case is one array, written to two files with other chunks, codecs and checksums, and one
query that runs on both with one thread and with two. A failure prints the seed and the number of its case; `--seed`
and `--case` repeat it alone.

Exact results are computed here, from the values alone. Ours must be at least as close to them as NumPy's in float64, or
within a few units in the last place; `tet_exact.py` has the bounds. The errors of all sums, means, norms and variances
together must not exceed those of NumPy.

The last line is `N passed, N failed, N skipped`.
"""

import argparse
import collections
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
from fractions import Fraction

import numpy as np

import tet_exact
import tet_model
from tet_cases import DTYPES, TYPED, Case

# Seconds until a request counts as hanging.
PATIENCE = 120
# Members of an answer that depend on the machine, on the number of threads or on the file.
VOLATILE = {"host_available_ram_bytes", "memory_budget_bytes", "fold_parallel", "spill_f32_path"}
# Errors of results near the least float are not relative to the result.
SMALLEST = Fraction(1, 2**900)
INTEGERS = {"arg_min": "operation_argmin_index", "arg_max": "operation_argmax_index"}
STATISTICS = {
    "center": ["mean"],
    "zscore": ["mean", "std"],
    "scale": ["std"],
    "minmax": ["min", "max"],
    "l1": ["norm_l1"],
    "l2": ["norm_l2"],
    "log1p": ["min"],
    "sqrt": ["min"],
    "softmax": ["max"],
}


class Driver:
    """The program that writes files and runs queries."""

    def __init__(self, program):
        self.program = program
        self.process = None

    def ask(self, kind, **request):
        if self.process is None:
            environment = os.environ | {"RAYON_NUM_THREADS": "2"}
            self.process = subprocess.Popen(
                [self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
        watchdog = threading.Timer(PATIENCE, self.process.kill)
        watchdog.start()
        try:
            self.process.stdin.write(json.dumps({kind: request}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            watchdog.cancel()
        if not line:
            self.process.wait()
            code, self.process = self.process.returncode, None
            return {"error": f"the driver ended with code {code}", "ended": True}
        return json.loads(line)

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def floats(value):
    return np.frombuffer(bytes.fromhex(value["f64"]), "<f8").tolist()


class Errors:
    """Sums of errors, ours and NumPy's, by operation."""

    def __init__(self):
        self.ours, self.numpy, self.count = (collections.Counter() for _ in range(3))

    def add(self, operation, expected, found):
        if not expected.unit or not math.isfinite(found) or not math.isfinite(expected.numpy):
            return
        if expected.unit < SMALLEST:
            return
        self.count[operation] += 1
        for sums, one in ((self.ours, found), (self.numpy, expected.numpy)):
            # One result that is all wrong must not hide all others.
            sums[operation] += float(min(expected.distance(one) / expected.unit / tet_exact.ROUND, 16))

    def complaints(self):
        for operation, count in sorted(self.count.items()):
            ours, numpy = self.ours[operation] / count, self.numpy[operation] / count
            print(f"mean error of {operation}: {ours:.3f}, NumPy {numpy:.3f} (units of 2^-53, {count} results)")
            # Below one unit, chance decides.
            if ours > max(numpy, 1):
                yield f"the errors of {operation} exceed those of NumPy: {ours:.3f}, not {numpy:.3f}"


class Check:
    """Runs one case and collects what is wrong."""

    def __init__(self, case, driver, directory, errors):
        self.case, self.driver, self.directory, self.errors = case, driver, directory, errors
        self.complaints = []
        self.text, self.toml = case.text()

    def complain(self, where, what):
        if len(self.complaints) < 5:
            self.complaints.append(f"{where}: {what}")

    def run(self):
        case = self.case
        raw = os.path.join(self.directory, "values.bin")
        case.array.tofile(raw)
        self.expect()
        for number, file in enumerate(case.files()):
            path = os.path.join(self.directory, f"file{number}.tet")
            written = self.driver.ask("write", path=path, values=raw, **file)
            if "error" in written:
                self.complain(f"file {file}", written["error"])
                continue
            statistics = case.rng.random() < 0.7
            where = f"chunks {file['chunk_shape']}, " + ", ".join(
                f"{key} {file[key]}" for key in ("zstd", "interop", "checksums", "statistics", "zone_maps", "budget")
            )
            where += f", using statistics {statistics}"
            self.query(path, file, statistics, where)
            if case.kind == "fold" and self.is_typed() and case.rng.random() < 0.4:
                self.typed(path, statistics, where)

    # Expected results.

    def expect(self):
        case = self.case
        self.results = None
        if case.kind == "fold":
            self.cells = list(tet_model.cells(case.selected, case.kept, case.roles, case.pad))
            self.results = [self.result(case.operation, cell) for cell in self.cells]
        elif case.kind == "histogram":
            cells = tet_model.cells(case.selected, case.kept, case.roles, None)
            self.results = [tet_exact.histogram(tet_exact.Values(cell.values, None), *case.argument) for cell in cells]
        elif case.kind == "matrix":
            table = case.selected if case.axes == [1] else case.selected.T
            if table.dtype.kind in "iu" or np.isfinite(table).all():
                self.results = tet_exact.matrix(list(table), case.operation == "correlation")
        elif case.kind == "transform":
            self.results = tet_model.transformed(case.argument, case.selected, case.kept, case.axes)

    def result(self, operation, cell, typed=False):
        case = self.case
        # The typed interface counts in every window; queries answer as the reference does.
        counted = typed and operation in tet_exact.COUNTS | tet_exact.FLAGS
        if case.min_count is not None and cell.real < case.min_count and not counted:
            return tet_exact.Expected(math.nan) if operation not in tet_exact.FLAGS | tet_exact.POSITIONS else None
        if operation in tet_exact.POSITIONS:
            return tet_model.position(operation, cell)
        fill = case.argument if operation == "null_count" else None
        return tet_exact.evaluate(operation, case.argument, tet_exact.Values(cell.values, fill))

    def must_fail(self, file):
        """Whether the query must be refused on this file."""
        case = self.case
        masked = bool(case.conditions or case.label)
        if case.kind == "dense":
            return masked and case.array.dtype.kind in "iu" and case.fill_value() is None
        if case.kind == "matrix":
            return self.results is None
        if case.kind == "transform" and case.target == "ram":
            budget = case.budget or file["budget"]
            return bool(budget) and case.selected.nbytes > budget
        return False

    # Queries.

    def query(self, path, file, statistics, where):
        answers = []
        for parallel in (False, True):
            answer = self.driver.ask(
                "query",
                path=path,
                text=self.text,
                toml=self.toml,
                statistics=statistics,
                parallel=parallel,
                preview=self.case.preview,
            )
            if "error" in answer:
                if answer.get("ended") or not self.must_fail(file):
                    self.complain(where, answer["error"])
                    return
                continue
            if self.must_fail(file):
                self.complain(where, "answered, but must be refused")
                return
            self.collect_output(answer, where)
            answers.append(answer)
        if not answers:
            return
        one, two = ({**answer, "results": stable(answer["results"])} for answer in answers)
        if self.case.operation in ("median", "quantile"):
            # The number of passes depends on the memory of a thread.
            one["bytes_read"] = two["bytes_read"]
        if one != two:
            changed = [key for key in one["results"] if one["results"][key] != two["results"].get(key)]
            changed += [key for key in one if key != "results" and one[key] != two[key]]
            self.complain(where, f"one thread and two threads differ: {changed}")
        getattr(self, f"check_{self.case.kind}")(answers[0], where)

    def collect_output(self, answer, where):
        """Reads and deletes the file that a query wrote."""
        path = answer["results"].get("spill_f32_path")
        answer["output"] = None
        if path is None:
            return
        case = self.case
        if case.kind == "transform" and case.target == "sidecar":
            read = self.driver.ask("read", path=path)
            answer["output"] = read.get("values", read.get("error"))
            labels = tet_model.own_labels(case.coords, case.names, case.shape)
            selected = [own and own[slice(*one)] for own, one in zip(labels, case.slices)]
            coords = {case.names[axis] or str(axis): own for axis, own in enumerate(selected) if own}
            labels = tet_model.own_labels(coords, case.names, case.selected.shape)
            wanted = (f"values-{case.argument}", case.dtype, list(case.selected.shape), labels)
            found = tuple(read.get(key) for key in ("name", "dtype", "shape", "labels"))
            if found != wanted:
                self.complain(where, f"sidecar {found}, not {wanted}")
        else:
            with open(path, "rb") as file:
                answer["output"] = file.read().hex()
        os.remove(path)

    def check_elements(self, results, where):
        wanted = int(self.case.kept.sum())
        if results["operation_element_count"] != wanted:
            self.complain(where, f"{results['operation_element_count']} elements, not {wanted}")

    def check_preview(self, answer, wanted, where):
        """`wanted` is the array of which a preview shows the start."""
        count = min(self.case.preview, wanted.size)
        found = bytes.fromhex(answer["preview"] or "")
        if not same(np.frombuffer(found, wanted.dtype), wanted.ravel()[:count]):
            self.complain(where, "the preview differs")

    def check_shape(self, results, where, roles):
        wanted = tet_model.output_shape(roles, self.case.selected.shape)
        if results["operation_reduced_shape"] != wanted:
            self.complain(where, f"shape {results['operation_reduced_shape']}, not {wanted}")
        return wanted

    def check_fold(self, answer, where):
        case, results = self.case, answer["results"]
        self.check_elements(results, where)
        self.check_preview(answer, case.selected, where)
        operation = case.operation
        if all(role == ("reduced",) for role in case.roles):
            if operation == "count":
                return
            found = results[INTEGERS.get(operation, f"operation_{operation}")]
            found = floats(found) if isinstance(found, dict) else [found]
        else:
            shape = self.check_shape(results, where, case.roles)
            found = results["operation_reduced_" + operation.replace("arg_", "arg")]
            found = floats(found) if isinstance(found, dict) else found
            windows = [len(role[1]) for role in case.roles if role[0] == "windows"]
            if windows and results["window_count"] != windows[0]:
                self.complain(where, f"{results['window_count']} windows, not {windows[0]}")
            if "group_by" in case.document and results["group_count"] != math.prod(shape):
                self.complain(where, f"{results['group_count']} groups, not {math.prod(shape)}")
        self.compare(operation, found, self.results, where)

    def compare(self, operation, found, wanted, where):
        if len(found) != len(wanted):
            self.complain(where, f"{len(found)} results of {operation}, not {len(wanted)}")
            return
        for number, (one, expected) in enumerate(zip(found, wanted)):
            if isinstance(expected, tet_exact.Expected):
                if not expected.agrees(one):
                    self.complain(where, f"{operation}[{number}] is {one!r}, not {expected!r}")
                self.errors.add(operation, expected, one)
            elif one is not expected and one != expected:
                self.complain(where, f"{operation}[{number}] is {one!r}, not {expected!r}")

    def check_histogram(self, answer, where):
        case, results = self.case, answer["results"]
        self.check_elements(results, where)
        self.check_preview(answer, case.selected, where)
        wanted = np.concatenate([counts for counts, _ in self.results])
        if case.axes:
            self.check_shape(results, where, case.roles)
            found = floats(results["operation_reduced_histogram_counts"])
        else:
            found = floats(results["operation_histogram_counts"])
            edges = results["operation_histogram_edges"]
            edges = None if edges is None else np.array(floats(edges))
            if (edges is None) != (self.results[0][1] is None) or not np.array_equal(edges, self.results[0][1]):
                self.complain(where, f"edges {edges}, not {self.results[0][1]}")
        if found != wanted.tolist():
            self.complain(where, f"counts {found}, not {wanted.tolist()}")

    def check_matrix(self, answer, where):
        case, results = self.case, answer["results"]
        self.check_elements(results, where)
        self.check_preview(answer, case.selected, where)
        order = case.selected.shape[1 - case.axes[0]]
        if results[f"operation_{case.operation}_order"] != order:
            self.complain(where, "the order differs")
        self.compare(case.operation, floats(results[f"operation_{case.operation}"]), self.results, where)

    def check_transform(self, answer, where):
        case, results = self.case, answer["results"]
        expected, statistics, bad = self.results
        self.check_elements(results, where)
        digits = answer["output"] or answer["tensor"]
        if digits is None and answer["strategy"] == "transform_spill":
            # A temporary file that is deleted: the preview is all there is.
            digits = answer["preview"] or ""
            expected = expected[: case.preview]
        found = np.frombuffer(bytes.fromhex(digits), case.array.dtype)
        if len(found) != len(expected):
            self.complain(where, f"{len(found)} elements, not {len(expected)}")
            return
        self.check_preview(answer, found, where)
        inputs = case.selected.ravel()
        for number, (one, wanted) in enumerate(zip(found.tolist(), expected)):
            if wanted is None:
                if found[number].tobytes() != inputs[number].tobytes():
                    self.complain(where, f"element {number}: {one!r}, not {inputs[number]!r}")
            elif not wanted.agrees(one):
                self.complain(where, f"{case.argument} of element {number}, {inputs[number]!r}, is {one!r}, not {wanted!r}")
        if bad is not None:
            listed = (results.get("transform_div_by_zero_count", 0), results.get("transform_div_by_zero_indices", []))
            if listed != (len(bad), bad[: tet_model.LISTED]):
                self.complain(where, f"impossible divisors {listed}, not {len(bad)} of {bad[:20]}")
        for name in STATISTICS[case.argument]:
            member = results[f"operation_{'reduced_' if case.axes else ''}{name}"]
            wanted = [tet_exact.evaluate(name, None, one.cell) for one in statistics]
            for one, expected in zip(statistics, wanted):
                # Differences from the mean are beyond float64.
                if not math.isfinite(one.divisor):
                    expected.numpy = math.nan
                # A mean beside a variance is updated block by block.
                expected.slack *= 2
            self.compare(name, floats(member), wanted, where)

    def check_dense(self, answer, where):
        case = self.case
        values = case.selected.copy()
        blank = math.nan if values.dtype.kind == "f" else case.fill_value()
        if not case.kept.all():
            values[~case.kept] = blank
        self.check_preview(answer, values, where)
        if case.spill:
            found = np.frombuffer(bytes.fromhex(answer["output"]), values.dtype)
            if not same(found, values.ravel()):
                self.complain(where, "the file differs")

    # The typed interface.

    def is_typed(self):
        case = self.case
        aligned = case.document.get("window", {}).get("align") == "end"
        labels = tet_model.own_labels(case.coords, case.names, case.shape)
        axes = [*case.groups, *([case.label[0]] if case.label else [])]
        return case.pad is None and not aligned and all(labels[axis] for axis in axes)

    def typed(self, path, statistics, where):
        case = self.case
        operations = case.rng.sample(TYPED, case.rng.randint(1, 4))
        axes = [axis for axis, role in enumerate(case.roles) if role[0] in ("reduced", "windows")]
        request = {
            "path": path,
            "slices": case.slices,
            "label": case.label,
            "filter": {key: "0" if number is True else repr(number) for key, number in case.conditions.items()},
            "axes": axes,
            "groups": case.groups,
            "window": case.window if "window" in case.document else None,
            "ops": operations,
            "statistics": statistics,
            "budget": case.budget,
        }
        answers = [self.driver.ask("reduce", parallel=parallel, **request) for parallel in (False, True)]
        where = f"typed, {where}"
        for answer in answers:
            if "error" in answer:
                self.complain(where, answer["error"])
                return
        if answers[0] != answers[1]:
            self.complain(where, "one thread and two threads differ")
        for operation, (elements, shape, dtype, digits) in zip(operations, answers[0]["results"]):
            if elements != int(case.kept.sum()):
                self.complain(where, f"{elements} elements of {operation}, not {int(case.kept.sum())}")
            if shape != tet_model.output_shape(case.roles, case.selected.shape):
                self.complain(where, f"shape {shape} of {operation}")
            name = DTYPES[{"float64": "f64", "int64": "i64"}.get(dtype, dtype)]
            found = np.frombuffer(bytes.fromhex(digits), name).tolist()
            wanted = [self.result(operation, cell, typed=True) for cell in self.cells]
            if operation in tet_exact.FLAGS:
                wanted = [tet_exact.Expected(math.nan if one is None else float(one)) for one in wanted]
            if operation in tet_exact.POSITIONS:
                wanted = [-1 if one is None else one for one in wanted]
            if operation in ("min", "max", *tet_exact.POSITIONS):
                # Stored values are not skipped: NaN has no order.
                missing = -1 if operation in tet_exact.POSITIONS else tet_exact.Expected(math.nan)
                wanted = [missing if has_nan(cell.values) else one for cell, one in zip(self.cells, wanted)]
            self.compare(operation, found, wanted, where)


def has_nan(values):
    values = np.asarray(values)
    return values.dtype.kind == "f" and bool(np.isnan(values).any())


def stable(results):
    return {key: value for key, value in results.items() if key not in VOLATILE}


def same(one, two):
    """Equality of arrays; NaN is equal to NaN, with any bits."""
    return one.shape == two.shape and bool(np.all((one == two) | ((one != one) & (two != two))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--case", type=int, help="run only the case of this number")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.cases} cases", flush=True)
    driver, errors = Driver(options.driver), Errors()
    failed = 0
    numbers = range(options.cases) if options.case is None else [options.case]
    with tempfile.TemporaryDirectory(prefix="tercet-fuzz-") as directory:
        for number in numbers:
            case = Case(random.Random(f"{options.seed}:{number}"))
            check = Check(case, driver, directory, errors)
            check.run()
            if check.complaints:
                failed += 1
                print(f"failed: --seed {options.seed} --case {number}")
                print(f"  {case.dtype} {case.shape}, {case.distribution} values, attributes {case.attrs}")
                print(f"  {check.text.strip()}")
                for complaint in check.complaints:
                    print(f"  {complaint}")
    driver.close()
    passed = len(numbers) - failed
    if options.case is None:
        for complaint in errors.complaints():
            failed += 1
            print(f"failed: {complaint}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
