"""Finding messages with and without an index, on disk and on a loopback server that counts requests.

    cargo build --release --manifest-path bench/Cargo.toml --no-default-features --bin index
    cargo build --release
    python bench/measure_index.py --bin bench/target/release/index --tgm target/release/tgm --dir DIR [--record FILE.json]

DIR needs about 1 GB.
"""

import argparse
import http.server
import json
import os
import platform
import re
import statistics
import struct
import subprocess
import threading
import time

RUNS = 5


def save(path, values):
    """A NumPy file of float64 values."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({values},), }}".ljust(117) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        out.write(struct.pack(f"<{values}d", *range(values)))


class Server(http.server.ThreadingHTTPServer):
    """Serves a directory with range requests, on the loopback address."""

    daemon_threads = True

    def __init__(self, directory):
        super().__init__(("127.0.0.1", 0), Handler)
        self.directory, self.requests, self.sent = directory, 0, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, with_body):
        with open(os.path.join(self.server.directory, os.path.basename(self.path)), "rb") as source:
            source.seek(0, 2)
            size = source.tell()
            found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            start, end = (int(found[1]), min(int(found[2] or size - 1), size - 1) + 1) if found else (0, size)
            source.seek(start)
            body = source.read(end - start)
        self.server.requests += 1
        self.send_response(206 if found else 200)
        if found:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 16 Nov 2026 00:00:00 GMT")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.server.sent += len(body)
            self.wfile.write(body)

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def log_message(self, *_):
        pass


def select(binary, path, clause, how):
    out = subprocess.run([binary, "select", path, clause, how], check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def nearby(options):
    """A key that few of a million messages have, and one that many have."""
    path = os.path.join(options.dir, "million.tgm")
    subprocess.run([options.bin, "make", path, str(options.messages)], check=True)
    for clause in ("mars.step=1234", "mars.param=133"):
        taken = {"scan": [], "index": []}
        for _ in range(RUNS):
            for how, seconds in taken.items():
                found = select(options.bin, path, clause, how)
                seconds.append(found["seconds"])
                count = found["found"]
        scan, index = (statistics.median(taken[how]) for how in ("scan", "index"))
        yield dict(name=f"{clause}: {count} of {options.messages} messages", scan_s=scan, index_s=index, ratio=scan / index)
    os.remove(path)


def at_a_server(options):
    """One object of 8 MB out of 1,000 messages of which this one is large."""
    array, small = os.path.join(options.dir, "large.npy"), os.path.join(options.dir, "small.npy")
    save(array, 1_000_000)
    save(small, 4000)
    path = os.path.join(options.dir, "thousand.tgm")
    pieces = []
    for name, size in ((small, "small"), (array, "large")):
        one = os.path.join(options.dir, "one.tgm")
        subprocess.run([options.tgm, "create", one, "--force", "--from", f"a={name}", "--meta", f"size={size}"], check=True, stdout=subprocess.DEVNULL)
        with open(one, "rb") as source:
            pieces.append(source.read())
    with open(path, "wb") as out:
        out.write(pieces[0] * 500 + pieces[1] + pieces[0] * 499)
    server = Server(options.dir)
    result = os.path.join(options.dir, "result.npy")
    for what in ("no index", "index"):
        if what == "index":
            subprocess.run([options.tgm, "index", path], check=True, stdout=subprocess.DEVNULL)
        for verb, args in (("count the messages", ["info"]), ("one object of 8,000,000 bytes", ["extract", "500", "-o", result, "--force"])):
            server.requests = server.sent = 0
            start = time.perf_counter()
            subprocess.run([options.tgm, args[0], server.url("thousand.tgm"), *args[1:]], check=True, stdout=subprocess.DEVNULL)
            yield dict(name=f"1,000 messages, {what}: {verb}", requests=server.requests, bytes=server.sent, seconds=time.perf_counter() - start)
    with open(array, "rb") as wanted, open(result, "rb") as found:
        assert wanted.read()[-8_000_000:] == found.read()[-8_000_000:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", help="without it only requests and bytes at a server are counted")
    parser.add_argument("--tgm", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--record")
    options = parser.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    table = []
    for part in (nearby, at_a_server) if options.bin else (at_a_server,):
        for row in part(options):
            table.append(row)
            print(json.dumps(row), flush=True)
    if options.record:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        machine = dict(cpu=platform.processor() or platform.machine(), cores=os.cpu_count(), python=platform.python_version())
        with open(options.record, "w") as out:
            json.dump(dict(commit=commit, machine=machine, rows=table, when=time.strftime("%Y-%m-%d")), out, indent=1)


if __name__ == "__main__":
    main()
