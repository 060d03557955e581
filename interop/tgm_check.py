"""Compares Tercet with the reference implementation of `.tgm`, in both directions.

usage: tgm_check.py --files DIR --reader PROGRAM

The directory comes from `make_tgm`, the reader is `read_tgm`. The reference's package scans, decodes and
validates every Tercet file; Tercet reads messages written by the reference's package, and re-encodes them byte for byte.

The last line is `N passed, N failed, N skipped`.
"""

import argparse
import collections
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import tensogram

DTYPES = {
    "float16": "<f2", "bfloat16": "<u2", "float32": "<f4", "float64": "<f8", "complex64": "<c8", "complex128": "<c16",
    "int8": "<i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "uint8": "<u1", "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "bitmask": None,
}
UNITS = {"complex64": 4, "complex128": 8}


class Tally:
    """Counts results and prints failures at once."""

    def __init__(self):
        self.counts = collections.Counter()

    def check(self, file, what, ok, why=""):
        self.counts["passed" if ok else "failed"] += 1
        if not ok:
            print(f"failed: {file}: {what}: {why}")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def without_reserved(entries):
    return [{key: value for key, value in entry.items() if key != "_reserved_"} for entry in entries]


def check_reference_reader(tally, directory):
    """Reads Tercet files with the reference."""
    with open(os.path.join(directory, "manifest.json")) as text:
        manifest = json.load(text)
    for listed in manifest:
        file = listed["file"]
        with open(os.path.join(directory, file), "rb") as source:
            data = source.read()
        spans = tensogram.scan(data)
        tally.check(file, "scan", len(spans) == len(listed["messages"]), spans)
        with tensogram.TensogramFile.open(os.path.join(directory, file)) as handle:
            tally.check(file, "count", len(handle) == len(listed["messages"]), len(handle))
        for (start, length), expected in zip(spans, listed["messages"]):
            check_message(tally, file, data[start : start + length], expected)


def check_message(tally, file, message, expected):
    metadata, objects = tensogram.decode(message, verify_hash=expected["hashed"] and len(expected["objects"]) > 0)
    base = without_reserved(metadata.base)
    tally.check(file, "base", base == expected["base"], f"{base} {expected['base']}")
    tally.check(file, "extra", dict(metadata.extra) == expected["extra"], metadata.extra)
    tally.check(file, "number of objects", len(objects) == len(expected["objects"]), len(objects))
    for (descriptor, array), listed in zip(objects, expected["objects"]):
        tally.check(file, "dtype", descriptor.dtype == listed["dtype"], descriptor.dtype)
        tally.check(file, "shape", list(descriptor.shape) == listed["shape"], descriptor.shape)
        tally.check(file, "byte order", descriptor.byte_order == listed["byte_order"], descriptor.byte_order)
        found = sha256(np.ascontiguousarray(array).tobytes())
        tally.check(file, f"values of {listed['dtype']}", found == listed["sha256"], array)
    for level in ("default", "full"):
        report = tensogram.validate(message, level=level, check_canonical=True)
        errors = [issue for issue in report["issues"] if issue["severity"] == "error"]
        tally.check(file, f"validate {level}", not errors, errors)
        odd = [issue for issue in report["issues"] if issue["code"] not in ("flag_mismatch", "no_hash_available")]
        tally.check(file, f"warnings of validate {level}", not odd, odd)
    verified = report["hash_verified"]
    tally.check(file, "hash_verified", verified == (expected["hashed"] and bool(expected["objects"])), verified)


def payload(dtype, shape, order, seed):
    """Values that are finite numbers in every type: bytes in the requested order, and little-endian."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == "bitmask":
        little = np.random.default_rng(seed).integers(0, 256, (count + 7) // 8, dtype=np.uint8).tobytes()
        return little, little
    width = np.dtype(DTYPES[dtype]).itemsize
    unit = UNITS.get(dtype, width)
    raw = np.random.default_rng(seed).integers(0, 256, (count * width // unit, unit), dtype=np.uint8)
    if "float" in dtype or "complex" in dtype:
        raw[:, -1] = 0x3F
    little = raw.tobytes()
    return (raw[:, ::-1].tobytes() if order == "big" else little), little


def reference_messages(directory):
    """Messages of the reference, with their expected content."""
    made = []

    def add(name, messages):
        path = os.path.join(directory, f"{name}.tgm")
        with open(path, "wb") as out:
            for data, _ in messages:
                out.write(data)
        made.append((path, [expected for _, expected in messages]))

    def objects(shape, order):
        pairs, listed = [], []
        for seed, dtype in enumerate(DTYPES):
            data, little = payload(dtype, shape, order, seed)
            pairs.append(({"type": "ntensor", "shape": list(shape), "dtype": dtype, "byte_order": order}, data))
            listed.append({"dtype": dtype, "shape": list(shape), "byte_order": order, "sha256": sha256(little)})
        return pairs, listed

    rich = {
        "base": [{"mars": {"param": "2t", "levels": [1000, 850.5, None, True]}, "größe": "温度"}],
        "source": "reference",
        "number": -(2**63),
        "tiny": 5e-324,
    }
    none = {}

    def expected(meta, listed):
        base = [dict(entry) for entry in meta.get("base", [])]
        base += [{} for _ in range(len(listed) - len(base))]
        extra = {key: value for key, value in meta.items() if key != "base"}
        return {"base": base, "extra": extra, "objects": listed}

    def stream(meta, pairs, hash, finish):
        encoder = tensogram.StreamingEncoder(meta, hash=hash)
        for descriptor, data in pairs:
            encoder.write_object(descriptor, data)
        return getattr(encoder, finish)()

    for shape in ((4, 3), (), (3, 0, 2), (13,)):
        for order in ("little", "big"):
            pairs, listed = objects(shape, order)
            label = "x".join(map(str, shape)) or "scalar"
            for hash in ("xxh3", None):
                for meta, word in ((none, "none"), (rich, "rich")):
                    name = f"{label}_{order}_{hash}_{word}"
                    holds = expected(meta, listed)
                    add(f"one_{name}", [(tensogram.encode(meta, pairs, hash=hash), holds)])
                    for finish in ("finish", "finish_backfilled"):
                        add(f"{finish}_{name}", [(stream(meta, pairs, hash, finish), holds)])
    pairs, listed = objects((2,), "little")
    for aggregate in ("none", "header", "footer", "both"):
        data = tensogram.encode(rich, pairs, aggregate_hash=aggregate)
        add(f"aggregate_{aggregate}", [(data, expected(rich, listed))])
    for count in (1, 2, 24, 250, 283, 900):
        one, listed_one = payload("uint8", (1,), "little", 1)
        descriptor = {"type": "ntensor", "shape": [1], "dtype": "uint8", "byte_order": "little"}
        item = {"dtype": "uint8", "shape": [1], "byte_order": "little", "sha256": sha256(listed_one)}
        try:
            data = tensogram.encode(none, [(descriptor, one)] * count)
        except ValueError:
            continue
        add(f"many_{count}", [(data, expected(none, [item] * count))])
    add("nothing", [(tensogram.encode(none, []), expected(none, [])), (tensogram.encode({"a": 1}, []), expected({"a": 1}, []))])
    whole = [
        (tensogram.encode(rich, pairs), expected(rich, listed)),
        (stream(rich, pairs, "xxh3", "finish"), expected(rich, listed)),
        (stream(none, pairs, None, "finish_backfilled"), expected(none, listed)),
        (tensogram.encode(none, pairs, hash=None), expected(none, listed)),
    ]
    add("mixed", whole)
    return made


def check_tercet_reader(tally, reader, directory):
    """Reads messages of the reference with Tercet."""
    made = reference_messages(directory)
    lines = "".join(path + "\n" for path, _ in made)
    output = subprocess.run([reader], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    for (path, messages), line in zip(made, output, strict=True):
        file, found = os.path.basename(path), json.loads(line)
        tally.check(file, "readable", "error" not in found, found.get("error"))
        if "error" in found:
            continue
        tally.check(file, "valid", found["valid"], found["issues"])
        tally.check(file, "messages", len(found["messages"]) == len(messages), len(found["messages"]))
        for message, expected in zip(found["messages"], messages):
            base = without_reserved(message["base"])
            tally.check(file, "base", base == expected["base"], f"{base} {expected['base']}")
            tally.check(file, "extra", message["extra"] == expected["extra"], message["extra"])
            tally.check(file, "objects", message["objects"] == expected["objects"], message["objects"])
            tally.check(file, "re-encoded", message["same_again"], "other bytes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", required=True)
    parser.add_argument("--reader", required=True)
    options = parser.parse_args()
    tally = Tally()
    check_reference_reader(tally, options.files)
    with tempfile.TemporaryDirectory() as directory:
        check_tercet_reader(tally, options.reader, directory)
    counts = tally.counts
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
