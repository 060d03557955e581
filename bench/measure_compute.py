"""Computations on .tet files compared with numpy on a memory map, in one run, as ratios.

    cargo build --release --manifest-path bench/Cargo.toml --no-default-features --features tet --bin compute
    python bench/measure_compute.py --bin bench/target/release/compute --dir DIR [--only WORDS] [--record FILE.json]

Needs numpy, with `--tiny` also tet-py (interop/requirements.txt). DIR needs about 12 GB. Arrays are 256 x 1024 x 1024 of f32 (other types: as many bytes). Checksums are
verified in every run and statistics are off, unless a row says otherwise. numpy works on one thread and on a memory map of a plain file, Tercet on
two and with positional reads, or with `--mapped` on a memory map as well; with `--cpu` both on one thread, in CPU seconds, for busy machines.
`--steps` makes smaller arrays, `--types` fewer. All files are copied by this program in writes of 4 MiB before the first run: the size of the writes
decides the size of the pages in the page cache, and with it the time of every read.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import numpy as np

GIB = 1 << 30
NUMPY_TYPES = {"f32": "<f4", "f64": "<f8", "i16": "<i2", "f16": "<f2"}
AXES = {"all": None, "0": 0, "1": 1, "2": 2, "0,1": (0, 1), "0,2": (0, 2), "1,2": (1, 2)}


class Ours:
    """A process that computes on request."""

    def __init__(self, binary):
        self.process = subprocess.Popen([binary, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def numpy_any_nan(array, axis):
    return np.isnan(array).any(axis=axis)


def reductions():
    """Name in a document, numpy's computation."""
    return {
        "sum": lambda a, axis: np.sum(a, axis=axis),
        "mean": lambda a, axis: np.mean(a, axis=axis),
        "min": lambda a, axis: np.min(a, axis=axis),
        "max": lambda a, axis: np.max(a, axis=axis),
        "var": lambda a, axis: np.var(a, axis=axis),
        "std": lambda a, axis: np.std(a, axis=axis),
        "nan_count": lambda a, axis: np.count_nonzero(np.isnan(a), axis=axis),
        "any_nan": numpy_any_nan,
        "arg_max": lambda a, axis: np.argmax(a, axis=axis),
        "product": lambda a, axis: np.prod(a, axis=axis),
    }


def rows_of(only, without):
    """(label, file, document, numpy's computation or None, target)"""
    files = ["f32-steps", "f32-tiles", "f32-columns", "f64-steps", "i16-steps", "f16-steps"]
    rows = []
    for file in files:
        for name, work in reductions().items():
            for axes, axis in AXES.items():
                if name == "arg_max" and isinstance(axis, tuple):
                    continue  # numpy has no such operation
                if name in ("any_nan", "nan_count") and file.startswith("i16"):
                    continue
                document = {name: [] if axis is None else list(axis) if isinstance(axis, tuple) else axis}
                target = 2.0 if axis is None else 1.5
                rows.append((f"{file} {name} {axes}", file, document, lambda a, w=work, x=axis: w(a, x), target))
    for file in files[:3]:
        for axis in range(3):
            rows.append((f"{file} median {axis}", file, {"median": axis}, lambda a, x=axis: np.median(a, axis=x), 5.0))
            quantile = {"quantile": {"q": 0.9, "axis": axis}}
            rows.append((f"{file} quantile {axis}", file, quantile, lambda a, x=axis: np.quantile(a, 0.9, axis=x), 5.0))
            rolling = {"mean": [], "window": {"axis": axis, "size": 24, "mode": "rolling"}}
            rows.append((f"{file} rolling mean 24 {axis}", file, rolling, lambda a, x=axis: rolled(a, x), 3.0))
        zscore = {"transform": {"method": "zscore"}, "write": "ram"}
        rows.append((f"{file} zscore all", file, zscore, lambda a: (a - a.mean()) / a.std(), 3.0))
        minmax = {"transform": {"method": "minmax"}, "write": "ram"}
        rows.append((f"{file} minmax all", file, minmax, lambda a: (a - a.min()) / (a.max() - a.min()), 3.0))
        histogram = {"histogram": {"bins": 64}}
        rows.append((f"{file} histogram 64", file, histogram, lambda a: np.histogram(a, bins=64), 3.0))
        # An eighth of the positions of one axis: an eighth of the chunks, of the rows, or of the values of each row.
        for axis in range(3):
            cut = tuple(slice(None, None, 8 if one == axis else None) for one in range(3))
            steps = ["::8" if one == axis else ":" for one in range(3)]
            stepped = {"mean": [], "selection": steps}
            rows.append((f"{file} stepped mean {axis}", file, stepped, lambda a, cut=cut: np.mean(a[cut]), 1.5))
    kept = [row for row in rows if all(word in row[0] for word in only)]
    return [row for row in kept if not any(word in row[0] for word in without)]


def rolled(array, axis):
    """Rolling mean by differences of cumulative sums in float64."""
    sums = np.cumsum(array, axis=axis, dtype=np.float64)
    later = np.take(sums, range(23, array.shape[axis]), axis=axis)
    earlier = np.take(sums, range(0, array.shape[axis] - 24), axis=axis)
    lead = [slice(None)] * 3
    lead[axis] = slice(1, None)
    later[tuple(lead)] -= earlier
    return later / 24


def reference(path):
    """The existing implementation, with an open file."""
    import tet

    handle = tet.open(path)
    return lambda document: handle.execute(json.dumps(document), preview=0)


def tiny_rows(ours, options, clock):
    """One million chunks of 64 bytes, beside the existing implementation."""
    path = os.path.join(options.dir, "tiny.tet")
    compute = reference(path)
    for name, document in (("sum", {"sum": []}), ("sum over axis 0", {"sum": 0})):
        document = {"dataset": "a", **document}
        request = dict(file=path, document=document, threads=2, repeat=options.repeat, mapped=options.mapped)
        ours.run(**request)
        mine = statistics.median(ours.run(**request)[clock])
        bare = statistics.median(ours.run(**request, verify=False)[clock])
        peer = timed(lambda: compute(document), time.process_time if options.cpu else time.perf_counter)
        row = dict(what=f"tiny {name}", mapped=options.mapped, ours_s=mine, unverified_s=bare, peer_s=peer, ratio=peer / mine, target=20.0)
        print(f"{row['what']:32} {mine:8.3f} s  unverified {bare:8.3f} s  tet-py {peer:8.3f} s  {row['ratio']:6.2f} x >= 20", flush=True)
        yield row


def copy_alike(directory):
    """Copies every file by the same writes, so that the pages of both sides are cached alike."""
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        with open(path, "rb", buffering=0) as file, open(path + ".copy", "wb", buffering=0) as out:
            while piece := file.read(4 << 20):
                out.write(piece)
            os.fsync(out.fileno())
        os.replace(path + ".copy", path)


def save(options, clock, table):
    """Writes the record after every row, so that an interrupted run keeps its rows."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    machine = dict(cpu=platform.processor() or platform.machine(), cores=os.cpu_count(), python=platform.python_version())
    record = dict(
        commit=commit, machine=machine, numpy=np.__version__, clock=clock, mib=4 * options.steps,
        rows=table, when=time.strftime("%Y-%m-%d"),
    )
    with open(options.record, "w") as out:
        json.dump(record, out, indent=1)
        out.write("\n")


def timed(work, clock):
    start = clock()
    work()
    return clock() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--record")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--without", nargs="*", default=[])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="one thread, CPU seconds of both sides")
    parser.add_argument("--steps", type=int, default=256, help="steps of 4 MiB of each array [default: 256, 1 GiB]")
    parser.add_argument("--no-numpy", action="store_true")
    parser.add_argument("--types", nargs="*", default=[], help="element types of the arrays [default: all four]")
    parser.add_argument("--make", action="store_true", help="only write the files")
    parser.add_argument("--tiny", action="store_true", help="one million tiny chunks as well, beside tet-py")
    parser.add_argument("--append", action="store_true", help="keep the rows of the record")
    parser.add_argument("--mapped", action="store_true", help="a memory map instead of positional reads, the default of the library")
    options = parser.parse_args()
    if not os.path.exists(os.path.join(options.dir, "tiny.tet")):
        os.makedirs(options.dir, exist_ok=True)
        subprocess.run([options.bin, "make", options.dir, str(options.steps), *options.types], check=True)
        copy_alike(options.dir)
    if options.make:
        return 0
    ours = Ours(options.bin)
    table = []
    if options.append and os.path.exists(options.record):
        with open(options.record) as earlier:
            table = json.load(earlier)["rows"]
    plain = os.path.join(options.dir, "plain.f32")
    clock = "cpu" if options.cpu else "wall"
    for limit in () if table else ("read", "copy", "crc"):
        taken = ours.run(limit=limit, file=plain, repeat=3)
        what = f"limit: {limit} {4 * options.steps} MiB, one thread"
        table.append(dict(what=what, ours_s=min(taken[clock])))
        print(f"{what}: {min(taken[clock]):.3f} s", flush=True)
    missed, warm = 0, None
    for label, file, document, work, target in rows_of(options.only, options.without):
        dtype = file.split("-")[0]
        side = 1024 * 4 // np.dtype(NUMPY_TYPES[dtype]).itemsize
        path = os.path.join(options.dir, f"plain.{dtype}")

        # numpy maps the file in every run: the page tables are part of the work.
        def in_numpy():
            return work(np.memmap(path, NUMPY_TYPES[dtype], mode="r", shape=(options.steps, 1024, side)))

        request = dict(
            file=os.path.join(options.dir, f"{file}.tet"), document={"dataset": "a", **document},
            threads=1 if options.cpu else 2, repeat=1, mapped=options.mapped,
        )
        # The first read of a file after others takes up to three times as long, on both sides.
        if file != warm:
            warm = file
            ours.run(**request)
            if not options.no_numpy:
                np.memmap(path, NUMPY_TYPES[dtype], mode="r").sum()
        taken, unverified, numpy = [], [], []
        slow = any(word in label for word in ("median", "quantile", "rolling"))
        for _ in range(1 if slow else options.repeat):
            taken += ours.run(**request)[clock]
            unverified += ours.run(**request, verify=False)[clock]
            if not options.no_numpy:
                numpy.append(timed(in_numpy, time.process_time if options.cpu else time.perf_counter))
        mine, bare = statistics.median(taken), statistics.median(unverified)
        base = statistics.median(numpy) if numpy else None
        ratio = base / mine if base else None
        row = dict(what=label, mapped=options.mapped, ours_s=mine, unverified_s=bare, numpy_s=base, ratio=ratio, target=target)
        table.append(row)
        if base:
            missed += ratio < target
            met = "met" if ratio >= target else "missed"
            print(f"{label:32} {mine:8.3f} s  unverified {bare:8.3f} s  numpy {base:8.3f} s  {ratio:6.2f} x >= {target} {met}", flush=True)
        else:
            print(f"{label:32} {mine:8.3f} s  unverified {bare:8.3f} s", flush=True)
        if options.record:
            save(options, clock, table)
    if options.tiny:
        table += tiny_rows(ours, options, clock)
        if options.record:
            save(options, clock, table)
    print(f"{missed} of {len(table) - 3} rows missed their target")


if __name__ == "__main__":
    sys.exit(main())
