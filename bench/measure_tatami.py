"""Writing and reading .tatami files compared with Parquet (arrow-rs), in one run, as ratios.

    cargo build --release --manifest-path bench/Cargo.toml --no-default-features --features tatami --bin tatami
    python bench/measure_tatami.py --bin bench/target/release/tatami --dir DIR \\
        --documents HTML --lineitem LINEITEM.parquet --strings STRINGS [--record FILE.json] [--other-load TEXT]

HTML is the directory html/ of Debian's package rust-doc; LINEITEM.parquet comes from `tpchgen-cli parquet -s 1
--tables=lineitem`; STRINGS is a directory of text files, one value on each line. DIR needs about 3 GB. The program runs
both sides in turn in one process, after it has compared their results; times are medians.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

MIB = 1 << 20
# Our files for single rows have pages of few rows where rows are large, and short runs of blobs. Files that are scanned keep the
# writer's defaults, except for the blob runs of the documents, which are long.
FOR_LOOKUPS = {"documents": ["--page-rows", 128, "--run-bytes", MIB], "lineitem": ["--page-rows", 4096]}
FOR_SCANS = {"documents": ["--run-bytes", 16 * MIB]}
LINEITEM = (
    "l_orderkey,l_partkey,l_suppkey,l_linenumber,l_quantity,l_extendedprice,l_discount,l_tax,l_returnflag,l_linestatus,"
    "l_shipdate,l_commitdate,l_receiptdate,l_shipinstruct,l_shipmode,l_comment"
)


def run(binary, *args):
    done = subprocess.run([binary, *map(str, args)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, args))}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


class Table:
    def __init__(self, binary):
        self.binary = binary
        self.rows = []

    def times(self, what, aim, *args):
        """Median time of the peer divided by that of Tercet: above 1 Tercet is faster."""
        result = run(self.binary, *args)
        ours, peer = statistics.median(result["ours"]), statistics.median(result["peer"])
        ratio = peer / ours
        self.rows.append(dict(what=what, ours_s=ours, peer_s=peer, ratio=ratio, aim=aim, runs=len(result["ours"])))
        self.show(what, f"{ours:10.6f} s {peer:10.6f} s", ratio, aim, aim is None or ratio >= aim)

    def sizes(self, what, aim, made):
        for name, key in (("", "peer_bytes"), (", pages of as many rows", "peer_same_pages_bytes")):
            ratio = made["ours_bytes"] / made[key]
            goal = aim if key == "peer_bytes" else None
            self.rows.append(
                dict(what=f"{what}: bytes, ours / Parquet{name}", ours_bytes=made["ours_bytes"], peer_bytes=made[key],
                     ratio=ratio, at_most=goal, our_columns=made["our_columns"])
            )
            sizes = f"{made['ours_bytes']:10} B {made[key]:10} B"
            self.show(f"{what}: bytes{name}", sizes, ratio, goal, goal is None or ratio <= goal)

    @staticmethod
    def show(what, numbers, ratio, aim, met):
        goal = "" if aim is None else f"aim {aim} {'met' if met else 'MISSED'}"
        print(f"{what:66} {numbers} {ratio:8.3f} {goal}", flush=True)


def sizes(table, inputs, directory):
    aims = {"documents": 0.85, "lineitem": 1.0}
    for case, path in inputs.items():
        kind = case if case in aims else "strings"
        files = [("", FOR_SCANS.get(case, []), case)]
        if case in FOR_SCANS:
            files.append((".default", [], f"{case}, default runs"))
        if case in FOR_LOOKUPS:
            files.append((".lookup", FOR_LOOKUPS[case], f"{case}, for single rows"))
        for name, args, what in files:
            made = run(table.binary, "make", kind, path, os.path.join(directory, case + name), *args)
            table.sizes(what, None if name else aims.get(case), made)


def writes(table, inputs):
    for case, path in inputs.items():
        kind = case if case in FOR_LOOKUPS else "strings"
        for threads in (1, 2):
            repeat = 3 if kind != "strings" else 9
            args = ["write", kind, path, "--threads", threads, "--repeat", repeat]
            table.times(f"{case}: write, {threads} thread(s)", 1.0, *args, *FOR_SCANS.get(case, []))
            if case in FOR_SCANS:
                table.times(f"{case}: write, default runs, {threads} thread(s)", None, *args)


def scans(table, inputs, directory):
    numeric = ("lineitem", "l_quantity,l_extendedprice,l_discount", "three numeric columns")
    strings = [("lineitem", "l_comment", "l_comment"), ("lineitem", "l_shipmode", "l_shipmode")]
    strings += [("documents", "url", "url"), ("documents", "digest", "digest")]
    strings += [(case, "text", "text") for case in inputs if case not in FOR_LOOKUPS]
    for case, columns, what in [numeric, *strings]:
        stem = os.path.join(directory, case)
        for threads in (1, 2):
            args = ["scan", stem, "--columns", columns, "--threads", threads]
            if case != "lineitem":
                args += ["--repeat", 101]
            table.times(f"{case}: scan of {what}, {threads} thread(s)", 1.0, *args)
            if what != numeric[2]:
                table.times(f"{case}: the same, peer with views, {threads} thread(s)", None, *args, "--views")


def points(table, directory):
    documents, lineitem = (os.path.join(directory, f"{case}.lookup") for case in ("documents", "lineitem"))
    rest = ",".join(LINEITEM.split(",")[1:])
    for stem, name, key, columns in (
        (documents, "documents", "url", "title,status,timestamp,digest"),
        (lineitem, "lineitem", "l_orderkey", rest),
    ):
        for pages, same in (("", []), (", pages of as many rows", ["--same"])):
            aim = None if same else 20.0
            table.times(f"{name}: row number of a key{pages}", aim, "find", stem, "--columns", key, *same)
            fetch = ["fetch", stem, "--columns", f"{key},{columns}", *same]
            table.times(f"{name}: row of a key{pages}", aim, *fetch)
            table.times(f"{name}: row of a key, peer by row filter{pages}", None, *fetch, "--filter")
    default = os.path.join(directory, "documents.default")
    takes = [
        (default, "documents, defaults: 100 rows with the blob", "url,title,body,status,timestamp,digest", None),
        (documents, "documents: 100 rows without the blob", "url,title,status,timestamp,digest", 10.0),
        (documents, "documents: 100 rows with the blob", "url,title,body,status,timestamp,digest", 2.0),
        (lineitem, "lineitem: 100 rows", LINEITEM, 10.0),
    ]
    for stem, what, columns, aim in takes:
        for threads in (1, 2):
            for pages, same in (("", []), (", pages of as many rows", ["--same"])):
                args = ["take", stem, "--columns", columns, "--threads", threads, *same]
                table.times(f"{what}, {threads} thread(s){pages}", None if same else aim, *args)


def wide(table, directory):
    stem = os.path.join(directory, "wide")
    made = run(table.binary, "make", "wide", "-", stem)
    table.sizes("10,000 columns of 1,000 rows", None, made)
    args = ["open", stem, "--columns", "column_05000"]
    table.times("10,000 columns: open, read one", 5.0, *args)


def bounded(table, directory, gigabytes):
    path, limit = os.path.join(directory, "bounded.tatami"), 512 * MIB
    result = run(table.binary, "bounded", path, int(gigabytes * 1e9), limit)
    table.rows.append(dict(what="rows through the writer under RLIMIT_DATA", ok=True, **result))
    print(f"{result['raw_bytes'] / 1e9:.1f} GB of rows under {limit // MIB} MiB: {result['seconds']:.0f} s", flush=True)
    os.remove(path)


def record(table, options):
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    machine = dict(system=platform.system(), machine=platform.machine(), cores=os.cpu_count())
    try:
        with open("/proc/cpuinfo") as info:
            machine["cpu"] = next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
    except OSError:
        pass
    made = dict(
        date=time.strftime("%Y-%m-%d"), commit=commit, machine=machine, other_load=options.other_load,
        load=os.getloadavg(), for_scans=FOR_SCANS, for_lookups=FOR_LOOKUPS, rows=table.rows,
    )
    with open(options.record, "w") as out:
        json.dump(made, out, indent=1)
        out.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--documents", required=True)
    parser.add_argument("--lineitem", required=True)
    parser.add_argument("--strings", required=True)
    parser.add_argument("--record")
    parser.add_argument("--other-load", help="what else ran on the machine", default="nothing")
    parser.add_argument("--gigabytes", type=float, default=4.3)
    parser.add_argument("--only", nargs="*", default=["sizes", "writes", "scans", "points", "wide", "bounded"])
    options = parser.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    inputs = dict(documents=options.documents, lineitem=options.lineitem)
    for name in sorted(os.listdir(options.strings)):
        inputs[os.path.splitext(name)[0]] = os.path.join(options.strings, name)
    table = Table(options.bin)
    parts = dict(
        sizes=lambda: sizes(table, inputs, options.dir), writes=lambda: writes(table, inputs),
        scans=lambda: scans(table, inputs, options.dir), points=lambda: points(table, options.dir),
        wide=lambda: wide(table, options.dir), bounded=lambda: bounded(table, options.dir, options.gigabytes),
    )
    for name in options.only:
        parts[name]()
        if options.record:
            record(table, options)


if __name__ == "__main__":
    sys.exit(main())
