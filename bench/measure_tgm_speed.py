"""Operations on .tgm files and messages compared with the reference package, in one run, as ratios.

    cargo build --release -p tercet-tgm --example speed
    python bench/measure_tgm_speed.py --bin target/release/examples/speed --dir DIR [--record FILE.json]

Needs numpy and tensogram (interop/requirements.txt). DIR needs about 3 GB; the file of 5 GB is sparse. Tercet and the
reference run in turn; times are the shortest of all rounds, because other programs use the machine. Tercet verifies hashes
on reading, the reference does not unless a row states otherwise.
"""

import argparse
import json
import os
import platform
import subprocess
import time

import numpy as np
import tensogram

ROUNDS = 5


def ours(binary, row, repeat, *args):
    text = subprocess.run([binary, row, str(repeat), *map(str, args)], check=True, capture_output=True, text=True).stdout
    return json.loads(text.splitlines()[-1])["seconds"]


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, ours_s, peer_s, target, peer="tensogram"):
        ratio = peer_s / ours_s
        self.rows.append(dict(what=what, ours_s=ours_s, peer=peer, peer_s=peer_s, ratio=ratio, target=target))
        met = "" if target is None else f">= {target} {'met' if ratio >= target else 'missed'}"
        print(f"{what:62} {ours_s:10.6f} s  {peer:10} {peer_s:10.6f} s  {ratio:7.2f} x {met}", flush=True)

    def share(self, what, with_s, without_s, most):
        cost = with_s / without_s - 1
        self.rows.append(dict(what=what, with_s=with_s, without_s=without_s, cost=cost, most=most))
        print(f"{what:62} {with_s:10.6f} s  without    {without_s:10.6f} s  {cost:+7.1%} <= {most:.0%} "
              f"{'met' if cost <= most else 'missed'}", flush=True)


def in_turn(first, second, rounds=ROUNDS):
    """The shortest times of two functions that run in turn."""
    taken = ([], [])
    for _ in range(rounds):
        taken[0].extend(first())
        taken[1].extend(second())
    return min(taken[0]), min(taken[1])


def smooth(count):
    x = np.arange(count, dtype=np.float64)
    noise = np.random.default_rng(1).standard_normal(count)
    return 280.0 + 15.0 * np.sin(x * 0.002) + 8.0 * np.cos(x * 0.0003) + 0.02 * noise


def plain(shape, dtype, **more):
    return dict(type="ntensor", shape=shape, dtype=dtype, byte_order="little", **more)


def append(table, binary, path):
    values = np.ones(1000, dtype=np.float32)

    def reference():
        if os.path.exists(path + ".ref"):
            os.remove(path + ".ref")
        file = tensogram.TensogramFile.create(path + ".ref")
        descriptor = plain([1000], "float32")
        start = time.perf_counter()
        for _ in range(10):
            for _ in range(100):
                file.append({}, [(descriptor, values)])
            with open(path + ".ref", "rb+") as opened:
                os.fsync(opened.fileno())
        return [time.perf_counter() - start]

    # Most of the time is that of the disk, and differs from round to round.
    first, second = in_turn(lambda: ours(binary, "append", 1, path, 1000, 100), reference, 40)
    table.add("append 1,000 messages of 4 kB, synced every 100", first, second, 1)


def metadata(table, binary, path):
    values = np.arange(4, dtype=np.float32)
    if not os.path.exists(path):
        write_small(path, values)

    def reference():
        def work():
            with open(path, "rb") as opened:
                buffer = opened.read()
            for start, length in tensogram.scan(buffer):
                tensogram.decode_metadata(buffer[start:start + length])
        return [timed(work)]

    for threads, target in [(1, None), (2, 5)]:
        first, second = in_turn(lambda: ours(binary, "metadata", 1, path, threads), reference, 3)
        table.add(f"metadata of 100,000 small messages, {threads} thread(s)", first, second, target)


def write_small(path, values):
    with open(path, "wb") as file:
        for step in range(100_000):
            mars = dict(param=["2t", "msl", "10u"][step % 3], step=step, date="20261118", **{"class": "od"})
            message = tensogram.encode({"base": [{"mars": mars}]}, [(plain([4], "float32"), values)])
            file.write(message)


def ranges(table, binary, directory):
    values = os.path.join(directory, "range.bin")
    smooth(4 << 20).tofile(values)
    for name, target in [("szip", 2), ("packing", None), ("none", None), ("blosc2", None)]:
        path = os.path.join(directory, "range.tgm")
        ours(binary, "encode", 1, name, values, 0, path)

        def reference():
            def work():
                file = tensogram.TensogramFile.open(path)
                file.file_decode_range(0, 0, [(2 << 20, 10)])
            return [timed(work) for _ in range(3)]

        # The reference verifies no hash of a range.
        for how, least in [("verified", target), ("unverified", None)]:
            first, second = in_turn(lambda: ours(binary, "range", 3, path, how), reference)
            table.add(f"ten of 4 Mi values, first access, {how}: {name}", first, second, least)


def masks(table, binary, directory):
    values, holes = os.path.join(directory, "values.bin"), os.path.join(directory, "holes.bin")
    array = smooth(16 << 20)
    marks = np.random.default_rng(2).random(array.size) < 0.05
    filled = array.copy()
    filled[marks] = 0
    filled.tofile(values)
    array[marks] = np.nan
    array.tofile(holes)
    for name in ["packing", "szip", "zstd", "blosc2"]:
        for row in ["encode", "decode"]:
            first, second = in_turn(
                lambda: ours(binary, row, 3, name, holes, 1), lambda: ours(binary, row, 3, name, values, 1), 3)
            table.share(f"masks of 5 % NaN, {name}, {row}, one thread", first, second, 0.10)


def codecs(table, binary, directory):
    path = os.path.join(directory, "codec.bin")
    array = smooth(4 << 20)
    array.tofile(path)
    pipelines = {
        "zfp-rate": dict(compression="zfp", zfp_mode="fixed_rate", zfp_rate=16.0),
        "zfp-accuracy": dict(compression="zfp", zfp_mode="fixed_accuracy", zfp_tolerance=0.01),
        "sz3": dict(compression="sz3", sz3_error_bound_mode="abs", sz3_error_bound=0.01),
    }
    for name, pipeline in pipelines.items():
        descriptor = plain([array.size], "float64", **pipeline)
        message = tensogram.encode({}, [(descriptor, array)])
        for threads in [1, 2]:
            first, second = in_turn(
                lambda: ours(binary, "encode", 2, name, path, threads),
                lambda: [timed(lambda: tensogram.encode({}, [(descriptor, array)]))], 3)
            table.add(f"{name}, encode, {threads} thread(s)", first, second, 2)
            first, second = in_turn(
                lambda: ours(binary, "decode", 2, name, path, threads),
                lambda: [timed(lambda: tensogram.decode(message))], 3)
            table.add(f"{name}, decode, {threads} thread(s)", first, second, 2)


def scan(table, binary, path):
    """642 messages in 5 GB: sparse copies of one message whose payload is a hole."""
    elements = 1 << 20
    message = tensogram.encode({}, [(plain([elements], "float64"), np.zeros(elements))])
    head, tail = message[:4096], message[-4096:]
    with open(path, "wb") as file:
        for number in range(642):
            file.seek(number * len(message))
            file.write(head)
            file.seek((number + 1) * len(message) - len(tail))
            file.write(tail)

    def reference():
        def work():
            assert tensogram.TensogramFile.open(path).message_count() == 642
        return [timed(work) for _ in range(5)]

    first, second = in_turn(lambda: ours(binary, "scan", 5, path), reference)
    table.add(f"scan of 642 messages in {os.path.getsize(path) / 1e9:.1f} GB", first, second, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--record")
    args = parser.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    table = Table()
    path = lambda name: os.path.join(args.dir, name)
    parts = [
        lambda: scan(table, args.bin, path("five.tgm")),
        lambda: append(table, args.bin, path("append.tgm")),
        lambda: ranges(table, args.bin, args.dir),
        lambda: metadata(table, args.bin, path("small.tgm")),
        lambda: codecs(table, args.bin, args.dir),
        lambda: masks(table, args.bin, args.dir),
    ]
    for part in parts:
        part()
        if args.record:
            record = dict(machine=platform.platform(), cores=os.cpu_count(), tensogram=tensogram.__version__,
                          load=os.getloadavg(), rows=table.rows)
            with open(args.record, "w") as file:
                json.dump(record, file, indent=1)
                file.write("\n")


if __name__ == "__main__":
    main()
