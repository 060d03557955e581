"""Sizes of .tet files with bit rounding beside plain zstd, on real fields; the bound is checked for every value.

    cargo build
    python bench/measure_smaller.py --bin target/debug/tet --data DIR [--record FILE.json]

Needs numpy. DIR holds `era_interim_u_f32.npy` and `era_interim_z_f64.npy`. Only sizes and errors are measured, so any build will do.
"""

import argparse
import json
import os
import subprocess
import tempfile
from datetime import date

import numpy as np

# Errors around the precision of the packed integers that the fields were made of, and coarser.
FIELDS = {
    "era_interim_u_f32.npy": ("m s-1", [0.001, 0.01, 0.05, 0.1, 0.5]),
    "era_interim_z_f64.npy": ("m2 s-2", [0.1, 1, 5, 10, 50]),
}
CHUNK = "1,1,241,480"


def run(*args):
    return subprocess.run([*map(str, args)], check=True, capture_output=True).stdout


def measure(tet, path, options, directory):
    """The stored bytes with some options, and the largest error of every value as numpy sees it."""
    out = os.path.join(directory, "out.tet")
    report = json.loads(run(tet, "create", out, "--from", f"a={path}", "--chunk", CHUNK, "--force", "--json", *options))
    npy = os.path.join(directory, "out.npy")
    run(tet, "extract", out, "a", "-o", npy, "--force")
    before, after = np.load(path), np.load(npy)
    assert before.dtype == after.dtype and before.shape == after.shape
    error = float(np.max(np.abs(before.astype("f8") - after.astype("f8"))))
    return report["datasets"][0]["stored_bytes"], error


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--record")
    args = parser.parse_args()
    commit = run("git", "rev-parse", "HEAD").decode().strip()
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for name, (units, errors) in FIELDS.items():
            path = os.path.join(args.data, name)
            cases = [("raw", None, ["--raw"]), ("zstd 3", None, ["--zstd", "3"]), ("zstd 19", None, ["--zstd", "19"])]
            cases += [(f"max error {error}", error, ["--max-error", str(error)]) for error in errors]
            cases += [(f"{bits} mantissa bits", None, ["--keep-bits", str(bits)]) for bits in (10, 7)]
            sizes = {}
            for case, bound, options in cases:
                size, error = measure(args.bin, path, options, directory)
                sizes[case] = size
                assert bound is None or error <= bound, (name, case, error)
                assert case[:4] not in ("raw", "zstd") or error == 0, (name, case, error)
                rows.append({
                    "field": name, "units": units, "case": case, "bytes": size, "max_abs_error": error,
                    "of_raw": round(size / sizes["raw"], 4), "of_zstd_3": round(size / sizes.get("zstd 3", size), 4),
                })
                print(json.dumps(rows[-1]))
    if args.record:
        record = {"date": str(date.today()), "commit": commit, "chunk": CHUNK, "numpy": np.__version__, "rows": rows}
        with open(args.record, "w", encoding="utf-8") as file:
            file.write(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
