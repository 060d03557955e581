"""Pipelines of .tgm objects compared with the reference package, in one run, as ratios.

    cargo build --release --manifest-path bench/Cargo.toml --no-default-features --bin pipeline
    python bench/measure_pipeline.py --bin bench/target/release/pipeline --dir DIR [--grids DIR] [--record FILE.json]

Needs numpy and tensogram (interop/requirements.txt). DIR needs about 1 GB. GRIDS are .npy files. The reference is
measured between runs of Tercet, so that both see the same machine. Tercet verifies hashes on reading, the reference does
not, unless the row states otherwise. Sizes are those of whole messages.
"""

import argparse
import glob
import json
import os
import platform
import subprocess
import sys

import numpy as np
import tensogram

from measure_tet import Table, alternating, run_tercet, timed

VALUES = 16 << 20
IN_RANGE = 4 << 20


def smooth(count):
    """A smooth field with noise in its low digits, like measured data."""
    x = np.arange(count, dtype=np.float64)
    noise = np.random.default_rng(1).standard_normal(count)
    return 280.0 + 15.0 * np.sin(x * 0.002) + 8.0 * np.cos(x * 0.0003) + 0.02 * noise


def packing(bits):
    return {"encoding": "simple_packing", "sp_bits_per_value": bits}


SZIP = {"compression": "szip", "szip_rsi": 128, "szip_block_size": 16, "szip_flags": 8}
SHUFFLE = {"filter": "shuffle", "shuffle_element_size": 8}

# Pipeline, and the target ratios of encoding and decoding on one and on two threads.
PIPELINES = {
    "packing 16": (packing(16), (4, 4), (6, 6)),
    "packing 24": (packing(24), (4, 4), (6, 6)),
    "packing 32": (packing(32), (4, 4), (6, 6)),
    "packing 13": (packing(13), (None, None), (None, None)),
    "packing 24 + szip": (packing(24) | SZIP, (2, 2), (2, 3.5)),
    "zstd": ({"compression": "zstd"}, (1.2, 1.2), (1.2, 1.2)),
    "shuffle + zstd": (SHUFFLE | {"compression": "zstd"}, (1.2, 1.2), (1.2, 1.2)),
    "lz4": ({"compression": "lz4"}, (1.2, 1.2), (1.2, 1.2)),
    "shuffle + lz4": (SHUFFLE | {"compression": "lz4"}, (1.2, 1.2), (1.2, 1.2)),
    "blosc2": ({"compression": "blosc2"}, (1.2, 1.2), (1.2, 1.2)),
    "packing 16 + zstd": (packing(16) | {"compression": "zstd"}, (1.2, 1.2), (1.2, 1.2)),
    "zfp rate 16": ({"compression": "zfp", "zfp_mode": "fixed_rate", "zfp_rate": 16.0}, (None, None), (None, None)),
    "zfp tolerance 0.01": (
        {"compression": "zfp", "zfp_mode": "fixed_accuracy", "zfp_tolerance": 0.01}, (None, None), (None, None)),
}


class Measurement:
    def __init__(self, binary, directory, table):
        self.binary, self.directory, self.table = binary, directory, table
        self.sizes = []

    def path(self, name):
        return os.path.join(self.directory, name)

    def both(self, what, array, pipeline, encode_goals, decode_goals, threads=(1, 2), rounds=4):
        values = self.path("values.bin")
        array.tofile(values)
        descriptor = {"type": "ntensor", "shape": [array.size], "dtype": str(array.dtype), "byte_order": "little"}
        descriptor |= pipeline
        text, file = json.dumps(descriptor), self.path("tercet.tgm")
        masked = ["--allow"] if not np.isfinite(array).all() else []
        allow = {"allow_nan": True, "allow_inf": True} if masked else {}
        reference_descriptor = dict(descriptor)
        size = run_tercet(self.binary, "encode", values, text, "--out", file, "--repeat", 1, *masked)["bytes"]
        if masked and "encoding" in pipeline:
            with open(file, "rb") as source:
                reference_descriptor |= {
                    key: value
                    for key, value in tensogram.decode_descriptors(source.read())[1][0].params.items()
                    if key.startswith("sp_")
                }
        message = bytes(tensogram.encode({}, [(reference_descriptor, array)], **allow))
        self.sizes.append(dict(what=what, ours=size, theirs=len(message), ratio=size / len(message)))
        print(f"{what:58} {size} bytes, reference {len(message)}: {size / len(message):.4f}", flush=True)
        for count, encode_goal, decode_goal in zip(threads, encode_goals, decode_goals):
            label = f"{count} thread{'s' if count > 1 else ''}"
            one = ["--threads", count, "--repeat", 3]
            works = {
                "ours": lambda: run_tercet(self.binary, "encode", values, text, *one, *masked)["seconds"],
                "reference": lambda: timed(lambda: tensogram.encode({}, [(reference_descriptor, array)], threads=count, **allow), 2),
            }
            taken = alternating(works, rounds)
            self.table.add(f"{what}, encode, {label}", taken["ours"], taken["reference"], "tensogram", encode_goal, array.nbytes)
            works = {
                "ours": lambda: run_tercet(self.binary, "decode", file, *one)["seconds"],
                "warm": lambda: run_tercet(self.binary, "decode", file, "--warm", *one)["seconds"],
                "reference": lambda: timed(lambda: tensogram.decode(message, threads=count), 2),
            }
            taken = alternating(works, rounds)
            self.table.add(f"{what}, decode, {label}", taken["ours"], taken["reference"], "tensogram", decode_goal, array.nbytes)
            self.table.add(f"{what}, decode into a warm buffer, {label}", taken["warm"], taken["reference"], "tensogram", None, array.nbytes)

    def masks(self, array):
        """The cost of masks of 5 % NaN, compared with the same array with zeros in their positions, which is what is stored. Gaps make
        data harder to compress, so the array without NaN is measured too."""
        is_nan = np.random.default_rng(2).random(array.size) < 0.05
        kinds = {"whole": array, "zeros": np.where(is_nan, 0.0, array), "holed": np.where(is_nan, np.nan, array)}
        for kind, values in kinds.items():
            values.tofile(self.path(f"{kind}.bin"))
        for name in ("packing 16", "packing 24 + szip", "shuffle + zstd", "blosc2"):
            text = json.dumps({"shape": [array.size], "dtype": "float64"} | PIPELINES[name][0])
            for kind in kinds:
                more = ["--allow"] if kind == "holed" else []
                run_tercet(self.binary, "encode", self.path(f"{kind}.bin"), text, "--out", self.path(f"{kind}.tgm"), "--repeat", 1, *more)
            for count in (1, 2):
                one = ["--threads", count, "--repeat", 3]
                for verb in ("encode", "decode"):
                    def work(kind):
                        if verb == "decode":
                            return lambda: run_tercet(self.binary, "decode", self.path(f"{kind}.tgm"), *one)["seconds"]
                        more = ["--allow"] if kind == "holed" else []
                        return lambda: run_tercet(self.binary, "encode", self.path(f"{kind}.bin"), text, *more, *one)["seconds"]

                    taken = alternating({kind: work(kind) for kind in kinds})
                    label = f"5 % NaN, {name}, {verb}, {count} thread{'s' if count > 1 else ''}"
                    self.table.share(f"{label}, compared with zeros", taken["holed"], taken["zeros"], 0.25)
                    self.table.share(f"{label}, compared with no masked values", taken["holed"], taken["whole"], None)

    def ranges(self, array):
        """Ten values out of four million."""
        start, count = array.size // 2 + 17, 10
        array.tofile(self.path("values.bin"))
        pipelines = {
            "none": ({}, 1),
            "packing 24": (packing(24), 1),
            "packing 24 + szip": (packing(24) | SZIP, 1),
            "blosc2": ({"compression": "blosc2"}, 1),
            "zfp rate 16": (PIPELINES["zfp rate 16"][0], 20),
        }
        for name, (pipeline, goal) in pipelines.items():
            descriptor = {"type": "ntensor", "shape": [array.size], "dtype": "float64", "byte_order": "little"} | pipeline
            reference_path = self.path("reference.tgm")
            with open(reference_path, "wb") as out:
                out.write(tensogram.encode({}, [(descriptor, array)]))

            def reference_range():
                with tensogram.TensogramFile.open(reference_path) as handle:
                    handle.file_decode_range(0, 0, [(start, count)])

            def our_range(*more):
                return lambda: run_tercet(self.binary, "range", reference_path, start, count, "--repeat", 10, *more)["seconds"]

            works = {
                "reference": lambda: timed(reference_range, 5),
                "checked": our_range(),
                "unchecked": our_range("--no-verify"),
                "known": our_range("--known"),
                "mapped": our_range("--mmap"),
                "mapped, unchecked": our_range("--mmap", "--no-verify"),
            }
            taken = alternating(works)
            for label in works:
                if label != "reference":
                    self.table.add(f"10 of 4 Mi values, {name}, {label}", taken[label], taken["reference"], "tensogram, unchecked", goal)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--grids")
    parser.add_argument("--only", help="pipelines whose name contains this")
    parser.add_argument("--record")
    options = parser.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    table = Table()
    measurement = Measurement(options.bin, options.dir, table)
    array = smooth(VALUES)
    for name, (pipeline, encode_goals, decode_goals) in PIPELINES.items():
        if not options.only or options.only in name:
            measurement.both(f"16 Mi f64, {name}", array, pipeline, encode_goals, decode_goals)
    if not options.only or options.only == "masks":
        measurement.masks(array)
    if not options.only or options.only == "ranges":
        measurement.ranges(smooth(IN_RANGE))
    for path in sorted(glob.glob(os.path.join(options.grids, "*.npy"))) if options.grids else []:
        grid = np.load(path).astype(np.float64).ravel()
        for name, (pipeline, _, _) in PIPELINES.items():
            if not options.only or options.only in name:
                label = f"{os.path.splitext(os.path.basename(path))[0]}, {name}"
                measurement.both(label, grid, pipeline, (None, None), (None, None), rounds=2)
    if options.record:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        about = dict(commit=commit, machine=platform.machine(), cores=os.cpu_count(), tensogram=tensogram.__version__)
        with open(options.record, "w") as out:
            json.dump(dict(about=about, rows=table.rows, sizes=measurement.sizes), out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
