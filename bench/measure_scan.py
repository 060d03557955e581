"""Filtered scans of .tatami files compared with Parquet, by arrow-rs and by DuckDB, in one run, as ratios; and the speed of conversion.

    cargo build --release --manifest-path bench/Cargo.toml --no-default-features --features tatami --bins
    cargo build --release -p tercet-cli --bin tatami
    python bench/measure_scan.py --bins bench/target/release --tatami target/release/tatami --dir DIR \\
        --lineitem LINEITEM.parquet [--record FILE.json] [--other-load TEXT]

Needs the Python package duckdb; LINEITEM.parquet comes from `tpchgen-cli parquet -s 1 --tables=lineitem`. Each side opens its file, runs the query and
keeps the result in memory; arrow-rs and Tercet alternate in one process, DuckDB follows with the same rows in the same Parquet file. Numbers are medians.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import duckdb

OTHERS = "l_orderkey,l_partkey,l_quantity,l_extendedprice,l_shipdate,l_comment"
# Amounts are whole cents, dates days since 1970. The order of the rows is that of l_orderkey.
SCANS = [
    ("0.01 %, clustered rows", "l_orderkey", 3_000_000, 3_000_600, OTHERS, 2.0),
    ("0.01 %, scattered rows", "l_partkey", 100_000, 100_019, OTHERS, 2.0),
    ("10 %, scattered rows", "l_quantity", 100, 500, OTHERS, 1.0),
    ("10 %, clustered rows", "l_orderkey", 1_000_000, 1_600_000, OTHERS, 1.0),
]
COUNTS = [
    ("count that zones answer", "l_orderkey", 1, 6_000_000, 10.0),
    ("count of half, one row group is looked at", "l_orderkey", 1, 3_000_000, 10.0),
    ("count of scattered rows", "l_quantity", 100, 500, None),
]


def run(*args):
    done = subprocess.run(list(map(str, args)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, args))}: {done.stderr.strip()}")
    return done


def duck(query, path, threads, repeat):
    """Seconds of each run; a new connection each time, so that nothing is known of the file."""
    seconds = []
    for _ in range(repeat):
        connection = duckdb.connect(config={"threads": threads})
        start = time.perf_counter()
        connection.sql(query.format(path=path)).to_arrow_table() if "count" not in query else connection.execute(
            query.format(path=path)
        ).fetchall()
        seconds.append(time.perf_counter() - start)
        connection.close()
    return seconds


def main():
    parser = argparse.ArgumentParser()
    for name in ("--bins", "--tatami", "--dir", "--lineitem"):
        parser.add_argument(name, required=True)
    parser.add_argument("--record")
    parser.add_argument("--other-load", default="")
    parser.add_argument("--repeat", type=int, default=21)
    options = parser.parse_args()
    stem = os.path.join(options.dir, "lineitem")
    if not os.path.exists(f"{stem}.tatami"):
        run(os.path.join(options.bins, "tatami"), "make", "lineitem", options.lineitem, stem)
    rows = []

    def add(what, threads, aim, ours, arrow, other, found):
        medians = [statistics.median(each) for each in (ours, arrow, other)]
        ratios = [medians[1] / medians[0], medians[2] / medians[0]]
        met = aim is None or min(ratios) >= aim
        rows.append(dict(what=what, threads=threads, ours_s=medians[0], arrow_rs_s=medians[1], duckdb_s=medians[2],
                         ratio_arrow_rs=ratios[0], ratio_duckdb=ratios[1], aim=aim, met=met, answer=found, runs=len(ours)))
        goal = "" if aim is None else f"aim {aim} {'met' if met else 'MISSED'}"
        print(f"{what:44} {threads} thread(s) {medians[0]:9.6f} s  arrow-rs {ratios[0]:7.2f} x  DuckDB {ratios[1]:7.2f} x  {goal}", flush=True)

    binary = os.path.join(options.bins, "scan")
    for threads in (1, 2):
        for what, column, low, high, columns, aim in SCANS:
            done = run(binary, "rows", stem, "--column", column, "--low", low, "--high", high, "--columns", columns,
                       "--threads", threads, "--repeat", options.repeat)
            result = json.loads(done.stdout.splitlines()[-1])
            query = f"SELECT {columns} FROM '{{path}}' WHERE {column} BETWEEN {low} AND {high}"
            other = duck(query, f"{stem}.parquet", threads, options.repeat)
            add(what, threads, aim, result["ours"], result["peer"], other, done.stderr.strip())
        for what, column, low, high, aim in COUNTS:
            for how, args in (("", []), (", arrow-rs by values", ["--by-values"])):
                done = run(binary, "count", stem, "--column", column, "--low", low, "--high", high, "--threads", threads,
                           "--repeat", options.repeat, *args)
                result = json.loads(done.stdout.splitlines()[-1])
                query = f"SELECT count(*) FROM '{{path}}' WHERE {column} BETWEEN {low} AND {high}"
                other = duck(query, f"{stem}.parquet", threads, options.repeat)
                add(what + how, threads, aim if args else None, result["ours"], result["peer"], other, done.stderr.strip())
    for source, target in (("parquet", "tatami"), ("tatami", "parquet"), ("tatami", "arrow"), ("tatami", "csv"), ("tatami", "jsonl")):
        given = options.lineitem if source == "parquet" else os.path.join(options.dir, "converted.tatami")
        made = os.path.join(options.dir, f"converted.{target}" if target == "tatami" else f"out.{target}")
        start = time.perf_counter()
        run(options.tatami, "convert", given, made, "--force", "--no-progress")
        seconds = time.perf_counter() - start
        sizes = os.path.getsize(given), os.path.getsize(made)
        rows.append(dict(what=f"convert {source} to {target}", seconds=seconds, input_bytes=sizes[0], output_bytes=sizes[1],
                         rows_per_s=6_001_215 / seconds))
        print(f"convert {source} to {target}: {seconds:.1f} s, {6_001_215 / seconds / 1e6:.2f} million rows/s, {sizes[0]} -> {sizes[1]} bytes")
        if target != "tatami":
            os.remove(made)
    if options.record:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        machine = dict(system=platform.system(), machine=platform.machine(), cores=os.cpu_count())
        with open("/proc/cpuinfo") as info:
            machine["cpu"] = next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
        record = dict(date=time.strftime("%Y-%m-%d"), commit=commit, machine=machine, duckdb=duckdb.__version__, arrow_rs="59.3.2",
                      other_load=options.other_load, load=os.getloadavg(), rows=rows)
        with open(options.record, "w") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
