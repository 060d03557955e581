"""Queries of .tet files compared with numpy on a memory map and the reference package, in one run, as ratios.

    cargo build --release --manifest-path bench/Cargo.toml
    python bench/measure_query.py --bin bench/target/release/query --dir DIR [--record FILE.json]

Needs numpy and tet-py (interop/requirements.txt). DIR needs about 10 GB. Statistics are off unless a row states otherwise:
every byte is read, and verified unless a row states otherwise. numpy works on one thread.
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

from measure_tet import Table, alternating, run_tercet, timed

SMALL, LARGE = 7168, 23552


def plain(directory, side):
    """The array as plain bytes, for numpy to map."""
    path = os.path.join(directory, "plain.f32")
    if not os.path.exists(path):
        rows = (1 << 18) // side
        with open(os.path.join(directory, "raw.tet"), "rb") as source, open(path + ".part", "wb") as out:
            head = source.read(32)
            source.seek(int.from_bytes(head[16:24], "little") + int.from_bytes(head[24:32], "little"))
            left = side * side * 4
            while left:
                piece = source.read(min(left, 1 << 24))
                out.write(piece)
                left -= len(piece)
        assert rows > 0
        os.rename(path + ".part", path)
    return np.memmap(path, "<f4", mode="r", shape=(side, side))


def query(binary, path, document, threads, *more, repeat=3):
    args = ["run", path, json.dumps({"dataset": "a", **document}), "--threads", threads, "--repeat", repeat, *more]
    return run_tercet(binary, *args)["seconds"]


def compare_numpy(table, binary, path, what, document, numpy, target, bytes_, rounds=3, repeat=3):
    for threads in (1, 2):
        works = {
            "numpy": lambda: timed(numpy, repeat),
            "checked": lambda: query(binary, path, document, threads, repeat=repeat),
            "unchecked": lambda: query(binary, path, document, threads, "--no-verify", repeat=repeat),
        }
        taken = alternating(works, rounds=rounds)
        for mode in ("checked", "unchecked"):
            goal = target if threads == 2 else None
            table.add(f"{what}, {threads} thread(s), {mode}", taken[mode], taken["numpy"], "numpy, mapped", goal, bytes_)


def compare_reference(table, binary, path, what, document, target, rounds=1):
    import tet

    handle = tet.open(path)
    text = json.dumps({"dataset": "a", **document})
    works = {
        "reference": lambda: timed(lambda: handle.execute(text, preview=0), 1),
        "ours": lambda: query(binary, path, document, 2, repeat=1),
    }
    taken = alternating(works, rounds=rounds)
    table.add(f"{what}, 2 threads, checked", taken["ours"], taken["reference"], "tet-py", target, None)


def array_of(directory, side, size):
    print(f"-- {side} x {side} f32, {side * side * 4 / 1e6:.0f} MB", flush=True)
    return plain(directory, side)


def folds(table, binary, directory, side, size):
    array = array_of(directory, side, size)
    total = array.nbytes
    at = lambda name: os.path.join(directory, name)
    mean = lambda: array.mean()
    compare_numpy(table, binary, at("raw.tet"), f"{size}: full mean, raw", {"mean": []}, mean, 1.5, total)
    compare_numpy(table, binary, at("tiles.tet"), f"{size}: full mean, 512x512 tiles", {"mean": []}, mean, 1.5, total)
    compare_numpy(
        table, binary, at("tiles.tet"), f"{size}: mean over axis 0, tiles", {"mean": 0}, lambda: array.mean(axis=0), 1.0, total
    )
    compare_numpy(
        table, binary, at("tiles.tet"), f"{size}: mean over axis 1, tiles", {"mean": 1}, lambda: array.mean(axis=1), None, total
    )
    compare_numpy(table, binary, at("tiles.tet"), f"{size}: std, tiles", {"std": []}, lambda: array.std(), None, total)
    compare_numpy(table, binary, at("tiles.tet"), f"{size}: max, tiles", {"max": []}, lambda: array.max(), None, total)
    bare = os.path.join(os.path.dirname(binary), "tet")
    for mode in ((), ("--no-verify",)):
        works = {
            "bare": lambda: run_tercet(bare, "bare", at("zstd.tet"), "--threads", 2, "--repeat", 3)["seconds"],
            "ours": lambda: query(binary, at("zstd.tet"), {"mean": []}, 2, *mode),
        }
        taken = alternating(works)
        label = "unchecked" if mode else "checked"
        table.add(f"{size}: full mean, zstd, 2 threads, {label}", taken["ours"], taken["bare"], "bare zstd, 2 threads", 0.9, total)


def whole_arrays(table, binary, directory, side, size):
    array = array_of(directory, side, size)
    total = array.nbytes
    at = lambda name: os.path.join(directory, name)
    zscore = {"transform": {"method": "zscore"}, "write": "ram"}
    work = lambda: (array - array.mean()) / array.std()
    compare_numpy(table, binary, at("tiles.tet"), f"{size}: zscore, tiles", zscore, work, 2.0, total, rounds=2, repeat=2)
    median = lambda: np.median(array, axis=0)
    compare_numpy(
        table, binary, at("tiles.tet"), f"{size}: median over axis 0, tiles", {"median": 0}, median, 1.0, total, rounds=2, repeat=1
    )
    along = {"transform": {"method": "zscore", "axis": 0}, "write": "ram"}
    compare_reference(table, binary, at("tiles.tet"), f"{size}: zscore along axis 0", along, 10.0)
    rolling = {"mean": [], "window": {"axis": 0, "size": 24, "mode": "rolling"}}
    compare_reference(table, binary, at("tiles.tet"), f"{size}: rolling mean of 24 rows", rolling, 20.0)
    for name in ("raw", "tiles", "zstd"):
        compare_reference(table, binary, at(f"{name}.tet"), f"{size}: full mean, {name}", {"mean": []}, None)
    compare_reference(table, binary, at("tiles.tet"), f"{size}: mean over axis 0, tiles", {"mean": 0}, None)


def dtypes(table, binary, directory):
    at = lambda name: os.path.join(directory, f"{name}.tet")
    names = ("f32", "f64", "i32", "f16", "u8")
    for threads in (1, 2):
        works = {name: (lambda name=name: query(binary, at(name), {"mean": []}, threads)) for name in names}
        taken = alternating(works)
        total = os.path.getsize(at("f32"))
        for name in names[1:]:
            table.add(f"mean of {name}, {threads} thread(s), checked", taken[name], taken["f32"], "f32, per byte", 0.6, total)


def statistics_and_memory(table, binary, directory, side):
    path = os.path.join(directory, "tiles.tet")
    document = json.dumps({"dataset": "a", "mean": []})
    run = subprocess.run(
        [binary, "run", path, document, "--stats", "--repeat", "3"], check=True, capture_output=True, text=True
    )
    print("full mean by statistics:", run.stderr.strip(), statistics.median(json.loads(run.stdout)["seconds"]), "s", flush=True)
    table.rows.append(dict(what="full mean by statistics", read=run.stderr.strip()))
    limit = (256 + 4 * 1 + 8) << 20
    for document in ({"mean": []}, {"mean": 0}, {"std": 0}, {"median": []}, {"max": 1}):
        args = ["run", path, json.dumps({"dataset": "a", **document}), "--repeat", "1", "--limit", str(limit)]
        done = subprocess.run([binary, *args], capture_output=True, text=True)
        label = "done" if done.returncode == 0 else "FAILED " + done.stderr[-200:]
        print(f"{document} under {limit >> 20} MiB of anonymous memory: {label}", flush=True)
        table.rows.append(dict(what=f"{document} under {limit} bytes of anonymous memory", outcome=label))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--record")
    parser.add_argument("--small-only", action="store_true")
    options = parser.parse_args()
    table = Table()
    for side, size in ((SMALL, "small"), (LARGE, "large"))[: 1 if options.small_only else 2]:
        directory = os.path.join(options.dir, str(side))
        if not os.path.exists(os.path.join(directory, "zstd.tet")):
            os.makedirs(directory, exist_ok=True)
            subprocess.run([options.bin, "make", directory, str(side)], check=True)
        folds(table, options.bin, directory, side, size)
        if size == "small":
            whole_arrays(table, options.bin, directory, side, size)
        if size == "large" or options.small_only:
            statistics_and_memory(table, options.bin, directory, side)
    directory = os.path.join(options.dir, "dtypes")
    if not os.path.exists(os.path.join(directory, "u8.tet")):
        os.makedirs(directory, exist_ok=True)
        subprocess.run([options.bin, "dtypes", directory, str(200 << 20)], check=True)
    dtypes(table, options.bin, directory)
    if options.record:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        machine = dict(cpu=platform.processor() or platform.machine(), cores=os.cpu_count(), python=platform.python_version())
        record = dict(commit=commit, machine=machine, numpy=np.__version__, rows=table.rows, when=time.strftime("%Y-%m-%d"))
        with open(options.record, "w") as out:
            json.dump(record, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    sys.exit(main())
