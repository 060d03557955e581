"""Embeds packed Tercet payloads in GRIB 2 messages and decodes them with ecCodes.

usage: grib_check.py --files DIR --reader PROGRAM

The directory comes from `make_packed`; there is no reader. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import json
import os
import struct
import sys

import eccodes
import numpy as np


def section(number, body):
    return struct.pack(">IB", len(body) + 5, number) + body


def signed(value):
    """Sign and magnitude, as in GRIB."""
    return 0x8000 | -value if value < 0 else value


def grib(listed, payload):
    """A message of one row of points with this payload."""
    points = listed["elements"]
    identity = section(1, struct.pack(">HHBBBHBBBBBBB", 98, 0, 4, 0, 1, 2026, 11, 16, 0, 0, 0, 0, 1))
    grid = struct.pack(">BIBBH", 0, points, 0, 0, 0) + bytes([6]) + bytes(15)
    grid += struct.pack(">IIII", points, 1, 0, 0xFFFFFFFF)
    grid += struct.pack(">iIBiIIIB", 0, 0, 48, 0, 1000 * (points - 1), 1000, 1000, 0)
    product = struct.pack(">HHBBBBBHBBIBBIBBI", 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 255, 0, 0)
    data = struct.pack(">IH", points, 42 if listed["szip"] else 0)
    data += struct.pack(">fHHBB", listed["reference"], signed(int(listed["binary_scale"])), 0, listed["bits"], 0)
    if listed["szip"]:
        # Most significant byte first, three-byte samples, preprocessing.
        data += struct.pack(">BBH", 14, 32, 128)
    body = identity + section(3, grid) + section(4, product) + section(5, data)
    body += section(6, bytes([255])) + section(7, payload) + b"7777"
    return b"GRIB" + struct.pack(">HBBQ", 0, 0, 2, 16 + len(body)) + body


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", required=True)
    parser.add_argument("--reader")
    options = parser.parse_args()
    with open(os.path.join(options.files, "manifest.json")) as text:
        manifest = json.load(text)
    passed = failed = 0
    for listed in manifest:
        def read(suffix):
            with open(os.path.join(options.files, f"{listed['name']}.{suffix}"), "rb") as source:
                return source.read()

        handle = eccodes.codes_new_from_message(grib(listed, read("payload")))
        try:
            found = eccodes.codes_get_values(handle)
            expected = np.frombuffer(read("values"), dtype="<f8")
            is_same = found.tobytes() == expected.tobytes()
            why = "" if is_same else f"{found[:4]} {expected[:4]}"
        except eccodes.CodesInternalError as error:
            is_same, why = False, error
        finally:
            eccodes.codes_release(handle)
        passed, failed = passed + is_same, failed + (not is_same)
        if not is_same:
            print(f"failed: {listed['name']}: {why}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
