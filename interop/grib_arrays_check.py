"""GRIB files: every packing and grid made by ecCodes is converted with `tercet convert` and compared with what ecCodes decodes; GRIB files of ours
are opened by ecCodes."""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import eccodes
import numpy as np

from array_check import Check

PACKINGS = ["grid_simple", "grid_complex", "grid_complex_spatial_differencing", "grid_ccsds", "grid_jpeg", "grid_png", "grid_ieee"]
GRIDS = ["regular_ll", "regular_gg", "reduced_gg", "reduced_ll"]


def handle(edition, grid, level="pl"):
    """A message of a sample with a grid."""
    if grid == "regular_ll":
        message = eccodes.codes_grib_new_from_samples(f"regular_ll_{level}_grib{edition}")
        eccodes.codes_set_key_vals(message, "Ni=30,Nj=21,latitudeOfFirstGridPointInDegrees=60,latitudeOfLastGridPointInDegrees=40,"
                                   "longitudeOfFirstGridPointInDegrees=0,longitudeOfLastGridPointInDegrees=29,"
                                   "iDirectionIncrementInDegrees=1,jDirectionIncrementInDegrees=1")
        eccodes.codes_set_values(message, np.zeros(630))
    elif grid == "regular_gg":
        message = eccodes.codes_grib_new_from_samples(f"regular_gg_{level}_grib{edition}")
    elif grid == "reduced_gg":
        message = eccodes.codes_grib_new_from_samples(f"reduced_gg_{level}_32_grib{edition}")
    else:
        message = eccodes.codes_grib_new_from_samples(f"reduced_ll_sfc_grib{edition}")
    return message


def field(count, seed, kind="smooth"):
    rng = np.random.default_rng(seed)
    values = 250 + 30 * np.sin(np.arange(count) / 40) + rng.standard_normal(count)
    if kind == "constant":
        values[:] = 273.15
    if kind == "tiny":
        values = values * 1e-9
    if kind == "large":
        values = values * 1e6 - 1e8
    return values


def put(message, path, mode="ab"):
    with open(path, mode) as file:
        eccodes.codes_write(message, file)


def decoded(path):
    """The values of every message as ecCodes decodes them, missing ones as NaN, and the size of a packing step."""
    result = []
    with open(path, "rb") as file:
        while (message := eccodes.codes_grib_new_from_file(file)) is not None:
            eccodes.codes_set(message, "missingValue", 1e34)
            values = eccodes.codes_get_values(message)
            values[values == 1e34] = np.nan
            step = 0.0
            if eccodes.codes_is_defined(message, "binaryScaleFactor"):
                step = 2.0 ** eccodes.codes_get(message, "binaryScaleFactor") * 10.0 ** -eccodes.codes_get(message, "decimalScaleFactor")
            keys = {key: eccodes.codes_get(message, key) for key in ["shortName", "level", "step", "dataDate", "dataTime"]
                    if eccodes.codes_is_defined(message, key)}
            points = None
            if eccodes.codes_is_defined(message, "latitudes"):
                points = eccodes.codes_get_array(message, "latitudes"), eccodes.codes_get_array(message, "longitudes")
            result.append((values, step, keys, points))
            eccodes.codes_release(message)
    return result


def ours(check, path, directory, *options, code=0):
    """The variables of our conversion, through a .tet file."""
    tet, out = directory / "out.tet", directory / "out.npz"
    check.convert(path, tet, "-f", *options, code=code)
    check.convert(tet, out, "-f")
    with np.load(out) as arrays:
        return {name: arrays[name] for name in arrays.files}


def compare(found, expected, step, what):
    found, expected = np.asarray(found, "f8").reshape(-1), np.asarray(expected).reshape(-1)
    assert found.shape == expected.shape, f"{what}: {found.shape} {expected.shape}"
    assert (np.isnan(found) == np.isnan(expected)).all(), f"{what}: other values are missing"
    good = ~np.isnan(found)
    if good.any():
        error = np.abs(found - expected)[good].max()
        bound = max(step / 2, np.abs(expected[good]).max() * 1e-15)
        assert error <= bound, f"{what}: error {error}, packing step {step}"


def same_longitudes(found, expected, what):
    difference = np.abs((np.asarray(found) - np.asarray(expected) + 180) % 360 - 180)
    assert difference.max() < 2e-3, f"{what}: longitudes differ by {difference.max()}"


def packings(check, directory):
    cases = itertools.product([1, 2], GRIDS, PACKINGS, [False, True], ["smooth", "constant", "tiny", "large"])
    for edition, grid, packing, bitmap, kind in cases:
        if edition == 1 and packing != "grid_simple":
            continue
        if kind != "smooth" and grid != "regular_ll":
            continue
        if packing in ("grid_jpeg", "grid_png") and grid.startswith("reduced"):
            continue
        for bits in [1, 7, 8, 12, 16, 20, 24] if kind == "smooth" and grid == "regular_ll" and packing != "grid_ieee" else [16]:
            name = f"grib{edition} {grid} {packing} {bits} bits {kind}{' bitmap' if bitmap else ''}"
            path = directory / f"p{edition}_{grid}_{packing}_{bits}_{kind}_{bitmap}.grib"
            message = handle(edition, grid, "sfc" if grid == "reduced_ll" else "pl")
            count = eccodes.codes_get(message, "numberOfDataPoints")
            data = field(count, 1, kind)
            try:
                if bitmap:
                    eccodes.codes_set(message, "bitmapPresent", 1)
                    eccodes.codes_set(message, "missingValue", 1e34)
                    data[::7] = 1e34
                if packing != "grid_ieee":
                    eccodes.codes_set(message, "bitsPerValue", bits)
                eccodes.codes_set_values(message, data)
                eccodes.codes_set(message, "packingType", packing)
                if packing != "grid_ieee" and eccodes.codes_get(message, "bitsPerValue") != bits:
                    eccodes.codes_set(message, "bitsPerValue", bits)
                    eccodes.codes_set_values(message, data)
                put(message, path, "wb")
            except eccodes.CodesInternalError:
                continue
            finally:
                eccodes.codes_release(message)

            def run():
                [(values, step, keys, points)] = decoded(path)
                found = ours(check, path, directory)
                data = {name: array for name, array in found.items() if array.size == count and "itude" not in name}
                [array] = data.values()
                compare(array, values, step, "values")
                if grid.startswith("reduced"):
                    assert np.abs(found["latitude"] - points[0]).max() < 1e-3, "latitudes"
                    same_longitudes(found["longitude"], points[1], "points")
                else:
                    assert np.abs(np.repeat(found["latitude"], found["longitude"].size) - points[0]).max() < 1e-3, "latitudes"
                    same_longitudes(np.tile(found["longitude"], found["latitude"].size), points[1], "points")

            check.case(name, run)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tercet", required=True)
    parser.add_argument("--keep", help="directory for the files")
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    check = Check(args.tercet)
    stages = [packings]
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(args.keep or temporary)
        for stage in stages:
            if not args.only or stage.__name__ in args.only:
                stage(check, directory)
    print(f"{check.passed} passed, {check.failed} failed, 0 skipped")
    sys.exit(check.failed > 0)


if __name__ == "__main__":
    main()
