"""Messages of .tgm files compared with the reference package, in one run, as ratios.

    cargo build --release --manifest-path bench/Cargo.toml --no-default-features --bin tgm
    python bench/measure_tgm.py --bin bench/target/release/tgm --dir DIR [--record FILE.json]

Needs numpy and tensogram (interop/requirements.txt). DIR needs about 500 MB. Baselines are measured between runs of Tercet,
so that both see the same machine.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time

import numpy as np
import tensogram

from measure_tet import Table, alternating, run_tercet, timed

VALUES = 16 << 20
BYTES = VALUES * 8


def raw(table, binary, directory):
    for name, label in (("one.tgm", "with hash"), ("plain.tgm", "hash off")):
        path = os.path.join(directory, name)
        with open(path, "rb") as source:
            data = source.read()
        verify = name == "one.tgm"
        more = [] if verify else ["--no-verify"]
        works = {
            "reference": lambda: timed(lambda: tensogram.decode(data, verify_hash=verify)),
            "new": lambda: run_tercet(binary, "decode", path, "--new", *more)["seconds"],
            "warm": lambda: run_tercet(binary, "decode", path, *more)["seconds"],
            "memcpy": lambda: run_tercet(binary, "memcpy", BYTES)["seconds"],
        }
        taken = alternating(works)
        goal = 4.0 if verify else None
        table.add(f"decode 16 Mi f64, {label}, into new memory", taken["new"], taken["reference"], "tensogram", goal, BYTES)
        goal = 0.5 if verify else 0.9
        table.add(f"decode 16 Mi f64, {label}, into a warm buffer", taken["warm"], taken["memcpy"], "memcpy, warm", goal, BYTES)
    array = np.frombuffer(data[-BYTES - 400 : -400], dtype="<f8", count=VALUES).copy()
    descriptor = {"type": "ntensor", "shape": [VALUES], "dtype": "float64", "byte_order": "little"}
    for hash, label in (("xxh3", "with hash"), (None, "hash off")):
        more = [] if hash else ["--no-hash"]
        works = {
            "reference": lambda: timed(lambda: tensogram.encode({}, [(descriptor, array)], hash=hash, allow_nan=True, allow_inf=True)),
            "new": lambda: run_tercet(binary, "encode", VALUES, "--new", *more)["seconds"],
            "warm": lambda: run_tercet(binary, "encode", VALUES, *more)["seconds"],
            "memcpy": lambda: run_tercet(binary, "memcpy", BYTES)["seconds"],
        }
        taken = alternating(works)
        goal = 4.0 if hash else None
        table.add(f"encode 16 Mi f64, {label}, into new memory", taken["new"], taken["reference"], "tensogram", goal, BYTES)
        table.add(f"encode 16 Mi f64, {label}, into a warm buffer", taken["warm"], taken["memcpy"], "memcpy, warm", None, BYTES)


def many(table, binary, directory):
    path = os.path.join(directory, "small.tgm")

    def reference_scan():
        with tensogram.TensogramFile.open(path) as handle:
            return len(handle)

    def reference_metadata():
        with tensogram.TensogramFile.open(path) as handle:
            for index in range(len(handle)):
                handle.file_decode_metadata(index)

    works = {
        "reference": lambda: timed(reference_scan),
        "ours": lambda: run_tercet(binary, "scan", path)["seconds"],
        "mapped": lambda: run_tercet(binary, "scan", path, "--mmap")["seconds"],
    }
    taken = alternating(works)
    table.add("find 100,000 small messages", taken["ours"], taken["reference"], "tensogram", 5.0)
    table.add("find 100,000 small messages, mapped", taken["mapped"], taken["reference"], "tensogram", None)
    works = {
        "reference": lambda: timed(reference_metadata, 1),
        "one": lambda: run_tercet(binary, "metadata", path, "--repeat", 2)["seconds"],
        "two": lambda: run_tercet(binary, "metadata", path, "--threads", 2, "--repeat", 2)["seconds"],
        "mapped": lambda: run_tercet(binary, "metadata", path, "--mmap", "--threads", 2, "--repeat", 2)["seconds"],
    }
    taken = alternating(works, rounds=3)
    base = "tensogram, unchecked"
    table.add("metadata of 100,000 small messages, checked, 1 thread", taken["one"], taken["reference"], base, None)
    table.add("the same, 2 threads", taken["two"], taken["reference"], base, 5.0)
    table.add("the same, 2 threads, mapped", taken["mapped"], taken["reference"], base, None)


def random_access(table, binary, directory):
    """Reading a message takes as long in a file of 100,000 as in one of 1,000."""
    few, all_ = os.path.join(directory, "few"), os.path.join(directory, "small.tgm")
    os.makedirs(few, exist_ok=True)
    subprocess.run([binary, "small", few, "1000"], check=True)
    count = 20_000
    works = {
        "few": lambda: run_tercet(binary, "random", os.path.join(few, "small.tgm"), count)["seconds"],
        "all": lambda: run_tercet(binary, "random", all_, count)["seconds"],
    }
    taken = alternating(works)
    table.add("20,000 random messages of 100,000", taken["all"], taken["few"], "of 1,000", None)


def resync(table, binary, directory):
    junk = 64 << 20
    path = os.path.join(directory, "junk.tgm")
    # The reference takes a second for each megabyte: its rate is measured on two.
    with open(path, "rb") as source:
        whole = source.read()
    message = len(whole) - junk
    small = os.path.join(directory, "junk-small.tgm")
    with open(small, "wb") as out:
        out.write(whole[: message // 2] + whole[message // 2 : message // 2 + (2 << 20)] + whole[-(message // 2) :])

    def reference_scan():
        with tensogram.TensogramFile.open(small) as handle:
            return len(handle)

    works = {
        "reference": lambda: timed(reference_scan, 1),
        "ours": lambda: run_tercet(binary, "scan", path)["seconds"],
    }
    taken = alternating(works, rounds=3)
    table.add("through 64 MiB of junk", taken["ours"], taken["reference"] * 32, "tensogram, 32 x 2 MiB", 100.0, junk)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--record")
    options = parser.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    for args in (["make", options.dir, VALUES], ["small", options.dir, 100_000], ["junk", options.dir, 64 << 20]):
        subprocess.run([options.bin, *map(str, args)], check=True)
    table = Table()
    raw(table, options.bin, options.dir)
    many(table, options.bin, options.dir)
    random_access(table, options.bin, options.dir)
    resync(table, options.bin, options.dir)
    if options.record:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        machine = dict(cpu=platform.processor() or platform.machine(), cores=os.cpu_count(), python=platform.python_version())
        record = dict(commit=commit, machine=machine, numpy=np.__version__, rows=table.rows, when=time.strftime("%Y-%m-%d"))
        with open(options.record, "w") as out:
            json.dump(record, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    sys.exit(main())
