"""Latency from the last byte of a message to its output line: `tgm tail` on a file and on a pipe.

    cargo build --release
    python bench/measure_tail.py --bin target/release/tgm --dir DIR [--messages 400] [--record FILE.json]

Each message is written but for its last byte; the clock starts when that is written and stops when the line
about the message was read. Between two messages there is a pause of random length, so that the looks at the file come at
any moment of it.
"""

import argparse
import json
import os
import platform
import random
import struct
import subprocess
import time


def save(path, values):
    """A NumPy file of float64 values."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({values},), }}"
    head = head.ljust(117) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        out.write(struct.pack(f"<{values}d", *range(values)))


def percentile(values, part):
    """The quantile of a list of values."""
    values = sorted(values)
    return values[max(0, -(-len(values) * part // 100) - 1)]


def measure(binary, arguments, grow, message, count):
    """Seconds from the last byte to the line, for each message; `grow` writes bytes."""
    command = [binary, "tail", *arguments, "--json", "--until-count", str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as tail:
        lines = os.fdopen(os.dup(tail.stdout.fileno()), "rb", buffering=1 << 16)
        taken = []
        for number in range(count):
            grow(tail, message[:-1])
            time.sleep(random.uniform(0.01, 0.05))
            grow(tail, message[-1:])
            start = time.perf_counter()
            line = json.loads(lines.readline())
            taken.append(time.perf_counter() - start)
            assert line["message"] == number and line["length"] == len(message), line
        tail.stdin.close()
        assert tail.wait() == 0
    return taken


def rows(binary, directory, count):
    array, one = os.path.join(directory, "array.npy"), os.path.join(directory, "one.tgm")
    for values, name in ((1000, "8 kB"), (125_000, "1 MB")):
        save(array, values)
        subprocess.run([binary, "create", one, "--force", "--from", f"a={array}"], check=True, stdout=subprocess.DEVNULL)
        with open(one, "rb") as source:
            message = source.read()
        for interval in (None, "0.001"):
            path = os.path.join(directory, "grows.tgm")
            with open(path, "wb", buffering=0) as file:

                def grow(_, piece):
                    file.write(piece)

                args = [path] + (["--interval", interval] if interval else [])
                taken = measure(binary, args, grow, message, count)
            os.remove(path)
            yield f"a file, looked at every {interval or '0.02'} s, messages of {name}", taken

        def feed(tail, piece):
            view = memoryview(piece)
            while view:
                view = view[tail.stdin.write(view) :]

        yield f"a pipe, messages of {name}", measure(binary, ["-"], feed, message, count)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--messages", type=int, default=400)
    parser.add_argument("--record")
    options = parser.parse_args()
    assert options.messages >= 200, "too few for a 99th percentile"
    os.makedirs(options.dir, exist_ok=True)
    table = []
    for name, taken in rows(options.bin, options.dir, options.messages):
        row = dict(name=name, messages=len(taken), p50_ms=1e3 * percentile(taken, 50), p99_ms=1e3 * percentile(taken, 99), max_ms=1e3 * max(taken))
        print("{name:60s} {messages:5d} messages  p50 {p50_ms:8.3f} ms  p99 {p99_ms:8.3f} ms  max {max_ms:8.3f} ms".format(**row), flush=True)
        table.append(row)
    if options.record:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        machine = dict(cpu=platform.processor() or platform.machine(), cores=os.cpu_count(), python=platform.python_version())
        record = dict(commit=commit, machine=machine, rows=table, when=time.strftime("%Y-%m-%d"))
        with open(options.record, "w") as out:
            json.dump(record, out, indent=1)


if __name__ == "__main__":
    main()
