"""Growth of search segments with the number of documents: build, local searches, and requests and bytes of remote ones.

    cargo build --release
    python bench/measure_search_growth.py --tatami target/release/tatami --dir DIR [--documents 10000 100000 1000000] [--record FILE.json]

The documents are random words with a Zipf distribution, about 600 bytes each; the seed is fixed. The exponent of a row is that of the power law
fitted to its values: 0 is independent of the number of documents, 1 proportional. The remote file is on a range server in this process, on the
loopback interface. A million documents need about 2 GB in DIR.
"""

import argparse
import http.server
import json
import math
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import threading
import time

VOCABULARY = 200_000
SYLLABLES = ["ka", "to", "ri", "mo", "ne", "lu", "sha", "qui", "dor", "vel", "fo", "pe", "zan", "bri", "ume", "ost"]
REPEAT = 7


def word(number):
    out = ""
    while True:
        out += SYLLABLES[number % 16]
        number //= 16
        if not number:
            return out


def write_documents(path, count):
    choose = random.Random(1)
    text = lambda words: " ".join(
        word(min(int(math.exp(math.log(VOCABULARY + 1) * choose.random())) - 1, VOCABULARY - 1)) for _ in range(words))
    with open(path, "w") as out:
        for number in range(count):
            document = dict(id=f"d{number:07}", url=f"u/{number}", title=text(4), text=text(1 + choose.randrange(200)))
            out.write(json.dumps(document) + "\n")


class RangeServer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    path_on_disk = None
    requests = []

    def log_message(self, *arguments):
        pass

    def answer(self, with_body):
        length = os.path.getsize(self.path_on_disk)
        found = re.match(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if not found:
            first, last = 0, length - 1
            self.send_response(200)
        else:
            if found[1]:
                first, last = int(found[1]), min(length - 1, int(found[2] or length - 1))
            else:
                first, last = max(0, length - int(found[2])), length - 1
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{length}")
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"1"')
        self.end_headers()
        RangeServer.requests.append(last - first + 1 if with_body else 0)
        if with_body:
            with open(self.path_on_disk, "rb") as file:
                file.seek(first)
                self.wfile.write(file.read(last - first + 1))

    def do_GET(self):
        self.answer(True)

    def do_HEAD(self):
        self.answer(False)


def run(*arguments):
    """Wall time, CPU time and peak memory of a command."""
    start = time.monotonic()
    process = subprocess.Popen(list(map(str, arguments)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    message = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code > 1:
        sys.exit(f"{' '.join(map(str, arguments))}: {message.strip()}")
    return dict(wall_s=time.monotonic() - start, cpu_s=usage.ru_utime + usage.ru_stime, peak_kib=usage.ru_maxrss)


def measured(args, count):
    source, segment = (os.path.join(args.dir, f"growth-{count}.{extension}") for extension in ("jsonl", "tatami"))
    write_documents(source, count)
    built = run(args.tatami, "index", source, "-o", segment, "--analyzer", "standard", "--force")
    out = {"build, CPU s": built["cpu_s"], "build, peak KiB": built["peak_kib"], "file, bytes": os.path.getsize(segment)}
    os.remove(source)
    kinds = [
        ("frequent word", [word(5)], []),
        ("rare word", [word(150_000)], []),
        ("frequent word, one hit, no snippet, not counted", [word(5)], ["-n", "1", "--snippet-bytes", "0", "--count", "off"]),
        ("missing word", ["xyzzyq"], []),
    ]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), RangeServer)
    RangeServer.path_on_disk = segment
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/segment.tatami"
    for name, query, options in kinds:
        runs = [run(args.tatami, "search", segment, *query, *options) for _ in range(REPEAT)]
        out[f"{name}: CPU ms"] = 1000 * statistics.median(one["cpu_s"] for one in runs)
        out[f"{name}: peak KiB"] = statistics.median(one["peak_kib"] for one in runs)
        RangeServer.requests.clear()
        run(args.tatami, "search", url, *query, *options)
        out[f"{name}: remote requests"] = len(RangeServer.requests)
        out[f"{name}: remote bytes"] = sum(RangeServer.requests)
    server.shutdown()
    os.remove(segment)
    return out


def exponent(counts, values):
    """The slope of the line through the logarithms."""
    x, y = [math.log(count) for count in counts], [math.log(max(value, 1e-9)) for value in values]
    return statistics.linear_regression(x, y).slope if len(x) > 1 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--tatami", "--dir"):
        parser.add_argument(name, required=True)
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--record")
    parser.add_argument("--other-load", help="what else the machine does")
    args = parser.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    results = [measured(args, count) for count in args.documents]
    rows = []
    for what in results[0]:
        values = [result[what] for result in results]
        rows.append(dict(what=what, values=values, exponent=exponent(args.documents, values)))
        slope = "" if rows[-1]["exponent"] is None else f"{rows[-1]['exponent']:6.2f}"
        print(f"{what:62}", *(f"{value:14.1f}" for value in values), slope, flush=True)
    if args.record:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        machine = dict(cpus=os.cpu_count(), machine=platform.machine(), system=platform.release())
        with open(args.record, "w") as out:
            record = dict(commit=commit, machine=machine, other_load=args.other_load, documents=args.documents, rows=rows)
            json.dump(record, out, indent=1)


if __name__ == "__main__":
    main()
