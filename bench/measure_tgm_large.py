"""Commands on a .tgm file of 642 messages and 5.4 GB: time, memory, and requests over HTTP.

    cargo build --release
    python bench/measure_tgm_large.py --bin target/release/tercet --dir DIR [--record FILE.json]

Needs numpy and tensogram (interop/requirements.txt), which writes the messages. The file is sparse: payloads are holes. Each
command runs five times; the shortest times and the largest memory are recorded.
"""

import argparse
import http.server
import json
import multiprocessing
import os
import platform
import subprocess
import threading
import time

MESSAGES = 642
ELEMENTS = 1 << 20
ROUNDS = 5
EDGE = 4096


def write(path, small):
    """Messages of zeros; only their first and last bytes are written."""
    import numpy as np
    import tensogram

    np.save(small, np.ones(100))
    values = np.zeros(ELEMENTS)
    descriptor = dict(type="ntensor", shape=[ELEMENTS], dtype="float64", byte_order="little")
    with open(path, "wb") as file:
        for step in range(MESSAGES):
            base = dict(mars=dict(param=["2t", "msl"][step % 2], step=step), name="t2m")
            message = tensogram.encode({"base": [base]}, [(descriptor, values)])
            start = file.tell()
            file.write(message[:EDGE])
            file.seek(start + len(message) - EDGE)
            file.write(message[-EDGE:])


def run(program, args, directory):
    """Elapsed and processor seconds, and peak memory in MiB."""
    started = time.perf_counter()
    child = subprocess.Popen([program, "tgm", *args], cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    elapsed = time.perf_counter() - started
    assert child.returncode == 0, (args, error)
    return elapsed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


class Server(http.server.BaseHTTPRequestHandler):
    """Serves ranges of one file and counts requests and bytes."""

    protocol_version = "HTTP/1.1"
    path_of_file = None
    requests = 0
    bytes = 0
    lock = threading.Lock()

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, has_body):
        # Not an index file beside it.
        if not self.path.endswith(".tgm"):
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        length = os.path.getsize(self.path_of_file)
        start, end = 0, length
        wanted = self.headers.get("Range")
        if wanted:
            first, last = wanted.removeprefix("bytes=").split("-")
            start = int(first) if first else length - int(last)
            end = min(int(last) + 1 if first and last else length, length)
        with Server.lock:
            Server.requests += 1
            Server.bytes += (end - start) if has_body else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(end - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"1"')
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{length}")
        self.end_headers()
        if has_body:
            with open(self.path_of_file, "rb") as file:
                file.seek(start)
                self.wfile.write(file.read(end - start))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--record")
    args = parser.parse_args()
    program, directory = os.path.abspath(args.bin), os.path.abspath(args.dir)
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "large.tgm")
    # In another process: the memory of this one counts for the commands that it starts.
    writer = multiprocessing.Process(target=write, args=(path, os.path.join(directory, "small.npy")))
    writer.start()
    writer.join()
    length = os.path.getsize(path)
    rows = []

    def measure(what, index, command, reset=None):
        found = []
        for _ in range(ROUNDS):
            found.append(run(program, command, directory))
            if reset:
                reset()
        elapsed, processor, memory = min(f[0] for f in found), min(f[1] for f in found), max(f[2] for f in found)
        rows.append(dict(what=what, index=index, seconds=elapsed, processor=processor, memory_mib=memory))
        print(f"{what:34} {'index' if index else 'no index':9} {elapsed:8.4f} s  {processor:8.4f} s of processor  {memory:6.1f} MiB", flush=True)

    def cut():
        os.truncate(path, length)

    out = ["-o", "out.npy", "--force"]
    select = ["-w", "mars.step=300"]
    append = ["create", "large.tgm", "--append", "--from", "t2m=small.npy", "--meta", "mars.step=9999"]
    for index in [False, True]:
        if index:
            run(program, ["index", "large.tgm"], directory)
        with open(path, "rb") as file:
            file.seek(length)
            indexed = file.read()

        def restore():
            cut()
            if indexed:
                with open(path, "ab") as file:
                    file.write(indexed)

        measure("info", index, ["info", "large.tgm"])
        measure("ls -w mars.step=300", index, ["ls", *select, "large.tgm"])
        measure("extract -w mars.step=300 -s 0:10", index, ["extract", "large.tgm", *select, "-s", "0:10", *out])
        measure("extract 300 -s 0:10", index, ["extract", "large.tgm", "300", "-s", "0:10", *out])
        measure("create --append", index, append, restore)
    cut()
    measure("index", False, ["index", "large.tgm"], cut)
    measure("index --index-file", False, ["index", "large.tgm", "--index-file"],
            lambda: os.remove(path + ".idx"))

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Server.path_of_file = path
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/large.tgm"
    for index in [False, True]:
        if index:
            run(program, ["index", "large.tgm"], directory)
        for what, command in [
            ("info", ["info", url]),
            ("ls -w mars.step=300", ["ls", *select, url]),
            ("extract -w mars.step=300 -s 0:10", ["extract", url, *select, "-s", "0:10", *out]),
            ("extract 300 -s 0:10", ["extract", url, "300", "-s", "0:10", *out]),
        ]:
            Server.requests = Server.bytes = 0
            run(program, command, directory)
            rows.append(dict(what=what, index=index, requests=Server.requests, bytes=Server.bytes))
            print(f"{what:34} {'index' if index else 'no index':9} {Server.requests} requests, {Server.bytes} bytes", flush=True)
    server.shutdown()
    cut()
    if args.record:
        record = dict(machine=platform.platform(), cores=os.cpu_count(), load=os.getloadavg(), file_bytes=length, rows=rows)
        with open(args.record, "w") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
