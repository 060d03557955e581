"""Search segments compared with tantivy, in one run, as ratios.

    cargo build --release --manifest-path bench/Cargo.toml --no-default-features --features search --bin search
    cargo build --release
    python bench/measure_search.py --bin bench/target/release/search --tatami target/release/tatami --dir DIR \\
        --documents HTML [--record FILE.json] [--other-load TEXT]

HTML is the directory html/ of Debian's package rust-doc. DIR needs about 4 GB. Both sides index the same terms (those of Tercet, through
a tokenizer for tantivy), keep the same four fields (compressed with zstd, level 3) and have one segment without positions.
Queries run in turn, in one process; the time of a query is its median, and p50 and p99 are over all queries.
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

DATA_LIMIT = 512 << 20


def run(*arguments, limit=None):
    def lower():
        if limit:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    start = time.monotonic()
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, preexec_fn=lower)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr.strip()}")
    out = json.loads(done.stdout[done.stdout.index("{"):])
    out["wall_s"] = time.monotonic() - start
    return out


def rows_of(name, report):
    ours, peer = report["ours"], report["peer"]
    built = statistics.median(ours["seconds"])
    one, two = (statistics.median(peer[key]) for key in ("seconds_one_thread", "seconds_two_threads_and_merge"))
    yield dict(what=f"{name}: build, tantivy's better time / ours", ours=built, peer=min(one, two),
               ratio=min(one, two) / built, at_least=1)
    for what, key in (("inverted region", "inverted_bytes"), ("whole file", "bytes")):
        yield dict(what=f"{name}: {what}, bytes, ours / tantivy", ours=ours[key], peer=peer[key],
                   ratio=ours[key] / peer[key], at_most=1)
    for kind in report["queries"]:
        for part in ("p50_us", "p99_us"):
            for side, label in (("ours", "b = 0.75"), ("format", "b = 0, ours only")):
                row = dict(what=f"{name}: {kind['kind']}, {part[:3]}, {label}, µs, ours / tantivy",
                           ours=kind[side][part], peer=kind["peer"][part], ratio=kind[side][part] / kind["peer"][part])
                if side == "ours":
                    row["at_most"] = 1
                yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--bin", "--tatami", "--dir"):
        parser.add_argument(name, required=True)
    parser.add_argument("--documents")
    parser.add_argument("--zipf", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--big-bytes", type=int, default=2 << 30)
    parser.add_argument("--record")
    parser.add_argument("--other-load", help="what else the machine does")
    args = parser.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    rows, raw = [], {}

    def corpus(name, *arguments):
        raw[name] = run(args.bin, "run", *arguments, "--dir", args.dir, "--repeat", args.repeat)
        for row in rows_of(name, raw[name]):
            rows.append(row)
            goal = row.get("at_most", row.get("at_least"))
            met = goal is None or (row["ratio"] <= goal if "at_most" in row else row["ratio"] >= goal)
            print(f"{row['what']:70} {row['ours']:14.2f} {row['peer']:14.2f} {row['ratio']:7.3f} {'' if met else 'missed'}",
                  flush=True)

    if args.documents:
        pages = os.path.join(args.dir, "pages.tatami")
        run(args.tatami, "index", args.documents, "-o", pages, "--force", "--json")
        corpus("rust-doc", "--corpus", pages, "--documents", 32_000)
    corpus("Zipf", "--corpus", "zipf", "--documents", args.zipf)
    if args.big_bytes:
        big = os.path.join(args.dir, "big.tatami")
        report = run(args.bin, "bounded", "--bytes", args.big_bytes, "--out", big, limit=DATA_LIMIT)
        raw["bounded"] = dict(data_limit=DATA_LIMIT, **report)
        print(f"indexed {report['text_bytes']} bytes of text within {DATA_LIMIT >> 20} MiB in {report['wall_s']:.0f} s")
    if args.record:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        machine = dict(cpus=os.cpu_count(), machine=platform.machine(), system=platform.release())
        with open(args.record, "w") as out:
            json.dump(dict(commit=commit, machine=machine, other_load=args.other_load, rows=rows, raw=raw), out, indent=1)


if __name__ == "__main__":
    main()
