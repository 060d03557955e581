"""Reads and writes of .tet files compared with numpy and the reference package, in one run, as ratios.

    cargo build --release --manifest-path bench/Cargo.toml
    python bench/measure_tet.py --bin bench/target/release/tet --dir DIR [--side 16384] [--record FILE.json]

Needs numpy and tet-py (interop/requirements.txt). DIR needs about 10 GB. Baselines are measured in this process
between runs of Tercet, so that both see the same machine.
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


def run_tercet(binary, *args):
    text = subprocess.run([binary, *map(str, args)], check=True, capture_output=True, text=True).stdout
    return json.loads(text.splitlines()[-1])


def seconds(result):
    return statistics.median(result["seconds"])


def alternating(works, rounds=4):
    """Medians of several functions run in turn, so that all of them see the same machine."""
    taken = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            taken[name].extend(work())
    return {name: statistics.median(list_) for name, list_ in taken.items()}


def timed(work, repeat=3):
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, ours_s, base_s, base, target, bytes_=None):
        ratio = base_s / ours_s
        speed = f"{bytes_ / ours_s / 1e9:.2f} GB/s" if bytes_ else ""
        met = "" if target is None else ("met" if ratio >= target else "missed")
        self.rows.append(
            dict(what=what, ours_s=ours_s, baseline=base, baseline_s=base_s, ratio=ratio, target=target, speed=speed)
        )
        goal = "" if target is None else f">= {target:.2f} {met}"
        print(f"{what:58} {ours_s:9.4f} s  {base:22} {base_s:9.4f} s  {ratio:6.2f} x {goal:14} {speed}", flush=True)

    def share(self, what, with_s, without_s, most):
        cost = with_s / without_s - 1
        met = "" if most is None else f"< {most:.0%} {'met' if cost < most else 'missed'}"
        self.rows.append(dict(what=what, ours_s=with_s, baseline="without", baseline_s=without_s, cost=cost, most=most))
        print(f"{what:58} {with_s:9.4f} s  {'without':22} {without_s:9.4f} s  {cost:+6.1%} {met}", flush=True)


def plain_array(directory, side):
    """The array as plain bytes, for numpy to map."""
    path = os.path.join(directory, "plain.f32")
    if not os.path.exists(path):
        with open(os.path.join(directory, "rows.tet"), "rb") as source, open(path + ".part", "wb") as out:
            head = source.read(32)
            start = int.from_bytes(head[16:24], "little") + int.from_bytes(head[24:32], "little")
            source.seek(start)
            left = side * side * 4
            while left:
                piece = source.read(min(left, 1 << 24))
                out.write(piece)
                left -= len(piece)
        os.rename(path + ".part", path)
    return np.memmap(path, "<f4", mode="r", shape=(side, side))


def our_reads(binary, path, how, threads):
    read = ["read", path, how, "--threads", threads, "--repeat", 3]
    return {
        "checked": lambda: run_tercet(binary, *read)["seconds"],
        "unchecked": lambda: run_tercet(binary, *read, "--no-verify")["seconds"],
    }


def reads(table, binary, directory, side):
    plain = plain_array(directory, side)
    total = plain.nbytes
    warm = np.ones(plain.shape, plain.dtype)
    np.copyto(warm, plain)
    ways = {
        "--into": ("into a warm buffer", "np.copyto(mmap)", lambda: timed(lambda: np.copyto(warm, plain))),
        "--new": ("into new memory", "np.array(mmap)", lambda: timed(lambda: np.array(plain))),
    }
    targets = {("rows", "--into"): 0.8, ("tiles", "--into"): 0.5, ("rows", "--new"): 1.0, ("tiles", "--new"): 1.0}
    for name in ("rows", "tiles"):
        path = os.path.join(directory, f"{name}.tet")
        for how, (label, base, numpy) in ways.items():
            for threads in (1, 2):
                taken = alternating({"numpy": numpy, **our_reads(binary, path, how, threads)})
                for mode in ("checked", "unchecked"):
                    what = f"{name}: {label}, {threads} thread(s), {mode}"
                    table.add(what, taken[mode], taken["numpy"], base, targets[name, how], total)
                most = 0.10 if how == "--new" else None
                table.share(f"{name}: checking, {label}, {threads} thread(s)", taken["checked"], taken["unchecked"], most)


def compressed(table, binary, directory):
    path = os.path.join(directory, "zstd.tet")
    total = run_tercet(binary, "bare", path, "--threads", 2, "--repeat", 1)["bytes"]
    for threads in (1, 2):
        bare = lambda: run_tercet(binary, "bare", path, "--threads", threads, "--repeat", 3)["seconds"]
        taken = alternating({"bare": bare, **our_reads(binary, path, "--into", threads)})
        for mode in ("checked", "unchecked"):
            what = f"zstd: into a warm buffer, {threads} thread(s), {mode}"
            goal = 0.9 if threads == 2 else None
            table.add(what, taken[mode], taken["bare"], f"bare zstd, {threads} thread(s)", goal, total)
        table.share(f"zstd: checking, {threads} thread(s)", taken["checked"], taken["unchecked"], 0.05)


def reference(table, binary, directory):
    import tet

    for name in ("rows", "tiles", "zstd"):
        path = os.path.join(directory, f"{name}.tet")
        handle = tet.open(path)
        # The reference returns its memory map where it can: copied, so that both own their array.
        own = lambda array: array if array.flags.owndata else np.array(array)
        works = {"reference": lambda: timed(lambda: own(handle.read_numpy("a")), 1)}
        works |= our_reads(binary, path, "--new", 2)
        taken = alternating(works, rounds=3)
        table.add(f"{name}: into new memory, 2 threads, checked", taken["checked"], taken["reference"], "tet-py dense read", None)


def opening(table, binary, directory):
    taken = {}
    for count in (1_000, 1_000_000):
        path = os.path.join(directory, f"chunks-{count}.tet")
        if not os.path.exists(path):
            subprocess.run([binary, "chunks", path, str(count)], check=True)
        taken[count] = seconds(run_tercet(binary, "open", path))
    table.add("open and read one chunk of 1,000,000", taken[1_000_000], taken[1_000], "of 1,000 chunks", 0.5)


def bounded(table, binary, directory):
    """Anonymous memory of a write and of an extract, as a limit enforced by the kernel."""
    chunk = 1 << 20
    limit = 256 * (1 << 20) + 2 * 2 * chunk
    size = 4 << 30
    path, out = os.path.join(directory, "large.tet"), os.path.join(directory, "large.raw")
    for args in (["bounded-write", path, size, limit], ["bounded-extract", path, out, limit]):
        subprocess.run([binary, *map(str, args)], check=True, capture_output=True)
        table.rows.append(dict(what=f"{args[0]} of {size} bytes", limit=limit, ok=True))
        print(f"{args[0]} of {size >> 30} GiB under RLIMIT_DATA {limit >> 20} MiB: done", flush=True)
    os.remove(out)
    os.remove(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--side", type=int, default=16384)
    parser.add_argument("--record")
    parser.add_argument("--only", nargs="*", default=["reads", "compressed", "reference", "opening", "bounded"])
    options = parser.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    if not os.path.exists(os.path.join(options.dir, "zstd.tet")):
        subprocess.run([options.bin, "make", options.dir, "--side", str(options.side)], check=True)
    table = Table()
    if "reads" in options.only:
        reads(table, options.bin, options.dir, options.side)
    if "compressed" in options.only:
        compressed(table, options.bin, options.dir)
    if "reference" in options.only:
        reference(table, options.bin, options.dir)
    if "opening" in options.only:
        opening(table, options.bin, options.dir)
    if "bounded" in options.only:
        bounded(table, options.bin, options.dir)
    if options.record:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        machine = dict(system=platform.system(), machine=platform.machine(), cores=os.cpu_count())
        try:
            with open("/proc/cpuinfo") as info:
                machine["cpu"] = next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
        except OSError:
            pass
        record = dict(
            date=time.strftime("%Y-%m-%d"), commit=commit, machine=machine, numpy=np.__version__, side=options.side,
            rows=table.rows,
        )
        with open(options.record, "w") as out:
            json.dump(record, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    sys.exit(main())
