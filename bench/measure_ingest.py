"""CSV, JSONL and Parquet into .tatami, and .tatami into Parquet, beside DuckDB: wall time, CPU time, peak memory.

    cargo build --release
    python bench/measure_ingest.py --bin target/release/tatami --dir DIR [--rows 6000000] [--threads 2] [--record FILE.json]

Needs DuckDB. The table has the columns and distributions of TPC-H `lineitem`; 6,000,000 rows are 750 MB of CSV. Both programs
write zstd and read from a warm page cache; runs alternate. DuckDB runs in a process of its own, as `COPY … TO … (FORMAT parquet, COMPRESSION zstd)`.
The rows of the outputs are counted, and their sums compared.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from datetime import date

import duckdb

WORDS = (
    "furiously quickly carefully blithely slyly regular express final special pending ironic bold even silent unusual "
    "accounts deposits requests packages instructions theodolites foxes ideas pinto beans dependencies excuses platelets "
    "sleep haggle nag use boost detect integrate cajole wake among across above against along the of after about"
).split()

LINEITEM = """
    SELECT (i // 4) * 8 + i % 4 + 1 AS l_orderkey,
        1 + floor(random() * 200000)::BIGINT AS l_partkey, 1 + floor(random() * 10000)::BIGINT AS l_suppkey,
        i % 7 + 1 AS l_linenumber, 1 + floor(random() * 50)::BIGINT AS l_quantity,
        (90000 + floor(random() * 10404950)::BIGINT) / 100.0 AS l_extendedprice,
        floor(random() * 11)::BIGINT / 100.0 AS l_discount, floor(random() * 9)::BIGINT / 100.0 AS l_tax,
        ['A', 'N', 'R'][1 + floor(random() * 3)::INT] AS l_returnflag,
        ['F', 'O'][1 + floor(random() * 2)::INT] AS l_linestatus,
        DATE '1992-01-02' + floor(random() * 2526)::INT AS l_shipdate,
        DATE '1992-01-31' + floor(random() * 2466)::INT AS l_commitdate,
        DATE '1992-01-04' + floor(random() * 2554)::INT AS l_receiptdate,
        ['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'][1 + floor(random() * 4)::INT] AS l_shipinstruct,
        ['TRUCK', 'MAIL', 'REG AIR', 'AIR', 'FOB', 'RAIL', 'SHIP'][1 + floor(random() * 7)::INT] AS l_shipmode,
        list_aggregate([w[1 + floor(random() * len(w))::INT] FOR k IN range(2 + (i * 7919) % 4)], 'string_agg', ' ') AS l_comment
    FROM range(0, {rows}) AS t(i), (SELECT {words} AS w)
"""

PEER = "import duckdb; c = duckdb.connect(); c.execute('SET threads={threads}; SET preserve_insertion_order=true'); c.execute({sql!r})"


def make(directory, rows):
    """Writes the table in every input format, once."""
    paths = {kind: os.path.join(directory, f"lineitem-{rows}.{kind}") for kind in ("csv", "jsonl", "parquet")}
    if not all(map(os.path.exists, paths.values())):
        connection = duckdb.connect()
        connection.execute("SELECT setseed(0.5)")
        words = "[" + ", ".join(f"'{word}'" for word in WORDS) + "]"
        connection.execute(f"COPY ({LINEITEM.format(rows=rows, words=words)}) TO '{paths['parquet']}' (FORMAT parquet, COMPRESSION zstd)")
        connection.execute(f"COPY '{paths['parquet']}' TO '{paths['csv']}' (HEADER)")
        connection.execute(f"COPY '{paths['parquet']}' TO '{paths['jsonl']}' (FORMAT json)")
    for path in paths.values():
        with open(path, "rb") as file:
            while file.read(1 << 24):
                pass
    return paths


def run(command, limit=None):
    """Wall time, CPU time and peak memory of a process."""
    def limited():
        if limit:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=limited)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit {process.returncode}: {command}")
    return {"wall_s": wall, "cpu_s": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1000}


def median(runs):
    return {key: round(statistics.median(run[key] for run in runs), 3) for key in runs[0]}


def sums(path):
    """The number of rows and the sums of numeric columns."""
    sql = "SELECT count(*), sum(l_orderkey), sum(l_partkey), round(sum(l_extendedprice), 2), min(l_shipdate)::VARCHAR, sum(length(l_comment)) FROM '{}'"
    return duckdb.sql(sql.format(path)).fetchall()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", help="one input: csv, jsonl, parquet or tatami")
    parser.add_argument("--record")
    args = parser.parse_args()
    paths = make(args.dir, args.rows)
    expected = sums(paths["parquet"])
    tatami, back, theirs = (os.path.join(args.dir, name) for name in ("ours.tatami", "ours.parquet", "theirs.parquet"))
    readers = {"csv": "read_csv('{}')", "jsonl": "read_json('{}', format='newline_delimited')", "parquet": "'{}'"}
    rows = []
    for kind in ("csv", "jsonl", "parquet", "tatami"):
        if args.only not in (None, kind):
            continue
        if kind == "tatami":
            ours = [args.bin, "convert", tatami, back, "--force", "--threads", str(args.threads)]
            read, size = readers["parquet"].format(paths["parquet"]), os.path.getsize(tatami)
        else:
            ours = [args.bin, "create", tatami, "--from", paths[kind], "--force", "--threads", str(args.threads)]
            read, size = readers[kind].format(paths[kind]), os.path.getsize(paths[kind])
        sql = f"COPY (FROM {read}) TO '{theirs}' (FORMAT parquet, COMPRESSION zstd)"
        peer = [sys.executable, "-c", PEER.format(threads=args.threads, sql=sql)]
        mine, other = [], []
        for _ in range(args.runs):
            mine.append(run(ours))
            other.append(run(peer))
        if kind != "tatami":
            subprocess.run([args.bin, "convert", tatami, back, "--force", "-q"], check=True)
        assert sums(back) == expected == sums(theirs), (kind, sums(back), expected, sums(theirs))
        ours_median, peer_median = median(mine), median(other)
        row = {
            "input": kind, "input_bytes": size, "tercet": ours_median, "duckdb": peer_median,
            "tercet_bytes": os.path.getsize(back if kind == "tatami" else tatami), "duckdb_bytes": os.path.getsize(theirs),
            "wall_ratio": round(ours_median["wall_s"] / peer_median["wall_s"], 3),
            "cpu_ratio": round(ours_median["cpu_s"] / peer_median["cpu_s"], 3),
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    if args.record:
        commit = subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip()
        record = {
            "date": str(date.today()), "commit": commit, "machine": platform.processor() or platform.machine(),
            "cores": os.cpu_count(), "threads": args.threads, "duckdb": duckdb.__version__,
            "rows": args.rows, "load_before": os.getloadavg()[2], "measured": rows,
        }
        with open(args.record, "w") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
