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

SECOND_ORDER = ["grid_second_order", "grid_second_order_no_SPD", "grid_second_order_SPD1", "grid_second_order_SPD3"]
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
    cases = itertools.product([1, 2], GRIDS, PACKINGS + SECOND_ORDER, [False, True], ["smooth", "constant", "tiny", "large"])
    for edition, grid, packing, bitmap, kind in cases:
        # Edition 2 has complex packing in place of second-order packing.
        if packing not in (["grid_simple", "grid_ieee", *SECOND_ORDER] if edition == 1 else PACKINGS):
            continue
        if kind != "smooth" and grid != "regular_ll":
            continue
        if packing in ("grid_jpeg", "grid_png") and grid.startswith("reduced"):
            continue
        # ecCodes does not read its own message.
        if packing == "grid_png" and kind == "constant":
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
                if packing in SECOND_ORDER and kind != "constant":
                    assert eccodes.codes_get(message, "packingType") == packing, (packing, eccodes.codes_get(message, "packingType"))
                elif packing != "grid_ieee" and eccodes.codes_get(message, "bitsPerValue") != bits:
                    eccodes.codes_set(message, "bitsPerValue", bits)
                    eccodes.codes_set_values(message, data)
                put(message, path, "wb")
            except eccodes.CodesInternalError:
                continue
            finally:
                eccodes.codes_release(message)

            def run():
                if packing == "grid_jpeg" and bits > 22:
                    # Images are decoded as float32: refused rather than rounded.
                    return check.convert(path, directory / "out.tet", "-f", code=7)
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


def sections(data):
    """The starts of the sections of a message of edition 1 without a bitmap, and its end."""
    starts = [8]
    for _ in range(3):
        starts.append(starts[-1] + int.from_bytes(data[starts[-1]:starts[-1] + 3], "big"))
    return starts


def with_section4(data, section):
    """A message of edition 1 with another data section; the length of the section is set."""
    start = sections(data)[2]
    section = bytes(section) + bytes(len(section) % 2)
    message = bytearray(data[:start] + len(section).to_bytes(3, "big") + section[3:] + b"7777")
    message[4:7] = len(message).to_bytes(3, "big")
    return bytes(message)


def bits(numbers, width):
    """Numbers of a width, filled up to whole bytes."""
    text = "".join(f"{number:0{width}b}" for number in numbers) if width else ""
    return bytes(int(text[at:at + 8].ljust(8, "0"), 2) for at in range(0, len(text), 8))


def second_order(check, directory):
    """Forms of second-order packing that ecCodes reads but does not write, and data that are refused."""
    def written(name, grid="regular_ll", edit=None, packing="grid_second_order", bitmap=False):
        path = directory / f"second_order_{name}.grib"
        message = handle(1, grid)
        data = field(eccodes.codes_get(message, "numberOfDataPoints"), 5)
        if bitmap:
            eccodes.codes_set_key_vals(message, "bitmapPresent=1,missingValue=1e34")
            data[::5] = 1e34
        eccodes.codes_set_values(message, data)
        eccodes.codes_set(message, "packingType", packing)
        put(message, path, "wb")
        eccodes.codes_release(message)
        if edit:
            path.write_bytes(edit(path.read_bytes()))
        return path

    def same_values(path):
        def run():
            [(values, step, _, _)] = decoded(path)
            found = ours(check, path, directory)
            [array] = [array for name, array in found.items() if array.size == values.size and "itude" not in name]
            compare(array, values, 0, path.name)

        return run

    def flagged(set_flags):
        def edit(data):
            data = bytearray(data)
            # The bitmap is a section too.
            start = sections(data)[3 if data[15] & 0x40 else 2]
            set_flags(data, start)
            return bytes(data)

        return edit

    def alternating(data, start):
        data[start + 13] |= 0x04

    for bitmap in [False, True]:
        path = written(f"alternating_{bitmap}", edit=flagged(alternating), bitmap=bitmap)
        check.case(f"second order: alternating rows{' bitmap' if bitmap else ''}", same_values(path))

    def turned(grid, bitmap):
        """ecCodes crashes with alternating rows of Gaussian grids: its values of the other message, with every second row reversed."""
        def run():
            plain = written("plain", grid, bitmap=bitmap)
            path = written("turned", grid, flagged(alternating), bitmap=bitmap)
            [(values, _, _, points)] = decoded(plain)
            starts = np.flatnonzero(np.diff(points[0], prepend=np.nan))
            rows = [row[::-1] if number % 2 else row for number, row in enumerate(np.split(values, starts[1:]))]
            found = ours(check, path, directory)
            [array] = [array for name, array in found.items() if array.size == values.size and "itude" not in name]
            compare(array, np.concatenate(rows), 0, path.name)

        return run

    for grid, bitmap in itertools.product(["regular_gg", "reduced_gg"], [False, True]):
        check.case(f"second order: alternating rows, {grid}{' bitmap' if bitmap else ''}", turned(grid, bitmap))

    rng = np.random.default_rng(4)
    lengths = [30, 1, 99, 200, 300]
    starts = np.concatenate([[1] + [0] * (length - 1) for length in lengths])
    for name, widths in [("general", [4, 0, 11, 7, 1]), ("constant width", [9] * 5)]:
        def edit(data):
            """Groups that a secondary bitmap marks."""
            old = data[sections(data)[2]:]
            flags = 0x20 | (0x10 if name == "general" else 0)
            given = bytes(widths if name == "general" else widths[:1])
            references = bits(rng.integers(0, 1 << 13, 5), 13)
            bitmap = bits(starts, 1)
            values = "".join(f"{rng.integers(0, 1 << width):0{width}b}" for width, length in zip(widths, lengths) if width for _ in range(length))
            values = bits([int(bit) for bit in values], 1)
            first = 22 + len(given) + len(bitmap)
            head = bytes([0, 0, 0, 0x50]) + old[4:10] + bytes([13]) + first.to_bytes(2, "big") + bytes([flags])
            head += (first + len(references)).to_bytes(2, "big") + (5).to_bytes(2, "big") + (630).to_bytes(2, "big") + bytes(1)
            return with_section4(data, head + given + bitmap + references + values)

        path = written(name.replace(" ", "_"), edit=edit, packing="grid_simple")
        check.case(f"second order: {name}", same_values(path))

    def matrix(data, start):
        data[start + 3] |= 0x10

    def row_by_row(data, start):
        data[start + 13] = 0x10

    for name, packing, flag in [("matrix", "grid_simple", matrix), ("row by row", "grid_second_order", row_by_row)]:
        path = written(name.replace(" ", "_"), edit=flagged(flag), packing=packing)
        check.case(f"second order: {name} is refused", lambda path=path: check.convert(path, directory / "out.tet", "-f", code=4))


def scanning(check, directory):
    """Grids in every order of points: the values of each place are those of ecCodes."""
    for edition, (i, j, columns, alternating) in itertools.product([1, 2], itertools.product([0, 1], repeat=4)):
        # Programs do not agree on alternating columns; we refuse them.
        if columns and alternating:
            continue
        path = directory / "scan.grib"
        message = handle(edition, "regular_ll")
        try:
            if i:
                eccodes.codes_set_key_vals(message, "longitudeOfFirstGridPointInDegrees=29,longitudeOfLastGridPointInDegrees=0")
            if j:
                eccodes.codes_set_key_vals(message, "latitudeOfFirstGridPointInDegrees=40,latitudeOfLastGridPointInDegrees=60")
            eccodes.codes_set_key_vals(message, f"iScansNegatively={i},jScansPositively={j},jPointsAreConsecutive={columns}")
            if edition == 2:
                eccodes.codes_set(message, "alternativeRowScanning", alternating)
            elif alternating:
                continue
            eccodes.codes_set(message, "shortName", "t")
            eccodes.codes_set_values(message, field(630, 3))
            put(message, path, "wb")
            # Latitude, longitude and value of each point; ecCodes has the places of alternating rows after it has turned them round.
            if edition == 2 and alternating:
                eccodes.codes_set(message, "swapScanningAlternativeRows", 1)
            places = eccodes.codes_get_array(message, "latLonValues").reshape(-1, 3)
        finally:
            eccodes.codes_release(message)

        def run():
            [(_, step, _, _)] = decoded(path)
            found = ours(check, path, directory)
            latitudes, longitudes = np.meshgrid(found["latitude"], found["longitude"], indexing="ij")
            ours_by_place = {(round(a, 3), round(b, 3)): value for a, b, value in
                             zip(latitudes.ravel(), longitudes.ravel(), found["t"].astype("f8").ravel())}
            theirs = {(round(a, 3), round(b, 3)): value for a, b, value in places}
            assert ours_by_place.keys() == theirs.keys(), "places"
            assert max(abs(theirs[place] - value) for place, value in ours_by_place.items()) <= step / 2

        check.case(f"grib{edition} scanning {i}{j}{columns}{alternating}", run)


def cubes(check, directory):
    """Fields of several times, steps, levels and members in any order, one of them missing."""
    for edition in [1, 2]:
        path = directory / f"cube{edition}.grib"
        path.unlink(missing_ok=True)
        rng = np.random.default_rng(edition)
        places = list(itertools.product([20240101, 20240102], [0, 6], [1000, 850, 500], ["t", "u"]))
        missing = (20240102, 6, 850, "u")
        order = rng.permutation(len(places))
        for number in order:
            date, step, level, name = places[number]
            if places[number] == missing:
                continue
            message = handle(edition, "regular_ll")
            eccodes.codes_set_key_vals(message, f"dataDate={date},dataTime=1200,step={step},level={level},shortName={name}")
            eccodes.codes_set_values(message, field(630, int(number)))
            put(message, path)
            eccodes.codes_release(message)

        def run():
            theirs = {(keys["dataDate"], keys["step"], keys["level"], keys["shortName"]): (values, step)
                      for values, step, keys, _ in decoded(path)}
            found = ours(check, path, directory)
            assert found["t"].shape == found["u"].shape == (2, 2, 3, 21, 30), found["t"].shape
            assert found["step"].tolist() == [0, 6] and found["isobaricInhPa"].tolist() == [1000, 850, 500]
            assert found["time"].tolist() == [1704110400, 1704196800], found["time"]
            for a, b, c in itertools.product(range(2), range(2), range(3)):
                for name in ["t", "u"]:
                    key = ([20240101, 20240102][a], [0, 6][b], [1000, 850, 500][c], name)
                    if key == missing:
                        assert np.isnan(found[name][a, b, c]).all()
                    else:
                        compare(found[name][a, b, c], theirs[key][0], theirs[key][1], str(key))
            report = check.convert(path, directory / "cube.nc", "-f")
            [note] = [item["detail"] for item in report["fidelity"]["items"] if item["name"] == "u"]
            assert note.startswith("1 of 12 fields are not in the file"), note

        check.case(f"grib{edition} cube", run)

        def keys():
            import xarray
            check.convert(path, directory / "cube.nc4", "-f")
            with xarray.open_dataset(directory / "cube.nc4") as ours:
                assert ours["t"].dims == ("time", "step", "isobaricInhPa", "latitude", "longitude")
                assert ours["t"].attrs["GRIB_shortName"] == "t" and ours["t"].attrs["units"] == "K"
                assert ours["t"].attrs["standard_name"] == "air_temperature" and ours["t"].attrs["long_name"] == "Temperature"
                assert str(ours["time"].values[0]).startswith("2024-01-01T12:00"), ours["time"]
                assert "valid_time" in ours.coords and ours["valid_time"].dims == ("time", "step")

        check.case(f"grib{edition} in xarray", keys)

        def mars():
            tgm, catalog = directory / "mars.tgm", directory / "mars.tatami"
            check.convert(path, tgm, "-f")
            with open(path, "rb") as file:
                while (message := eccodes.codes_grib_new_from_file(file)) is not None:
                    wanted = [f"mars.{key}={eccodes.codes_get_string(message, key)}" for key in ["date", "time", "step", "levtype", "levelist"]]
                    wanted.append(f"mars.param={eccodes.codes_get_string(message, 'shortName')}")
                    listed = subprocess.run([check.tercet, "tgm", "ls", "-w", ",".join(wanted), str(tgm), "--json"], capture_output=True, text=True)
                    assert listed.returncode == 0 and len(listed.stdout.splitlines()) == 1, (wanted, listed)
                    eccodes.codes_release(message)
            made = subprocess.run([check.tercet, "catalog", str(tgm), "-o", str(catalog), "--force"], capture_output=True, text=True)
            assert made.returncode == 0, made
            found = subprocess.run([check.tercet, "find", str(catalog), "--where", "param = 't' and levelist = 850 and step = 6", "--json"], capture_output=True, text=True)
            assert len(json.loads(found.stdout)) == 2, found

        check.case(f"grib{edition} MARS keys", mars)


def mixed(check, directory):
    """One file with ensembles, several levels, grids and steps, accumulations, masks and fields that cannot be read."""
    for edition in [1, 2]:
        path = directory / f"mixed{edition}.grib"
        path.unlink(missing_ok=True)
        number = 0

        def add(level, grid, keys, mask=False):
            nonlocal number
            message = handle(edition, grid, level)
            data = field(eccodes.codes_get(message, "numberOfDataPoints"), number)
            number += 1
            eccodes.codes_set_key_vals(message, keys)
            if mask:
                eccodes.codes_set_key_vals(message, "bitmapPresent=1,missingValue=1e34")
                data[::5] = 1e34
            eccodes.codes_set_values(message, data)
            put(message, path)
            eccodes.codes_release(message)

        members = list(itertools.product([0, 1, 2], [0, 6], [1000, 500]))
        ensemble = "productDefinitionTemplateNumber=1,numberOfForecastsInEnsemble=3," if edition == 2 else "localDefinitionNumber=1,totalNumber=3,"
        for member, step, level in members:
            add("pl", "regular_ll", f"{ensemble}perturbationNumber={member},step={step},level={level},shortName=u", mask=member == 1)
        for step in [0, 6, 12]:
            add("sfc", "regular_ll", f"step={step},shortName=2t")
        for step in [6, 12]:
            add("sfc", "regular_gg", f"stepType=accum,stepRange=0-{step},shortName=tp")
        add("pl", "reduced_gg", "step=0,level=850,shortName=t")
        add("pl", "regular_ll", "step=0,level=850,shortName=t")
        spectral = eccodes.codes_grib_new_from_samples(f"sh_pl_grib{edition}")
        put(spectral, path)
        eccodes.codes_release(spectral)
        path.write_bytes(b"a header before the first message" + path.read_bytes() + b"GRIB and then nothing")

        def run():
            report = json.loads(subprocess.run([check.tercet, "convert", str(path), str(directory / "mixed.npz"), "-f", "--json"],
                                               capture_output=True, text=True).stdout)
            lost = [item for item in report["fidelity"]["items"] if item["fate"] == "not_carried" and item["subject"] == "variable"]
            assert lost, report["fidelity"]["items"]
            with np.load(directory / "mixed.npz") as found:
                found = {name: found[name] for name in found.files}
            fields = {}
            for values, step, keys, _ in decoded_some(path):
                fields.setdefault(keys["shortName"], []).append((values, step))
            [u] = [array for array in found.values() if array.ndim >= 4 and array.size == 12 * 630]
            u = u.reshape(-1, 630)
            for values, step in fields["u"]:
                assert any((np.isnan(values) == np.isnan(row)).all() and np.nanmax(np.abs(values - row)) <= max(step / 2, 1e-4) for row in u), "u"
            for name, count in [("2t", 3), ("tp", 2), ("t", 1)]:
                for values, step in fields[name]:
                    rows = [row for array in found.values() if array.size % values.size == 0 for row in array.reshape(-1, values.size).astype("f8")]
                    assert any(np.nanmax(np.abs(values - row)) <= max(step / 2, 1e-4) for row in rows if not np.isnan(row).any()), name

        check.case(f"grib{edition} mixed fields", run)


def split(check, directory):
    """One message for each field, for every kind of levels."""
    kinds = {"hybrid": [1, 2, 3], "theta": [300, 320], "sigma": [1, 0], "isobaricInhPa": [1000, 500], "heightAboveGround": [2, 10], "potentialVorticity": [1500, 2000],
             "soil": [1, 2], "oceanModel": [1, 2], "generalVertical": [1, 2], "depthBelowSea": [5, 10]}
    for kind, levels in kinds.items():
        path = directory / f"split_{kind}.grib"
        path.unlink(missing_ok=True)
        for level, step in itertools.product(levels, [0, 6]):
            message = handle(2, "regular_ll")
            eccodes.codes_set_key_vals(message, f"typeOfLevel={kind},level={level},step={step},discipline=0,parameterCategory=0,parameterNumber=0")
            eccodes.codes_set_values(message, field(630, level + step))
            put(message, path)
            eccodes.codes_release(message)

        def run():
            tgm = directory / "split.tgm"
            for command in [["tgm", "convert-grib", path, "-o", tgm, "--split", "--force"], ["convert", path, tgm, "--force"]]:
                done = subprocess.run([check.tercet, *map(str, command)], capture_output=True, text=True)
                assert done.returncode == 0, done
                import tensogram
                with tensogram.TensogramFile.open(str(tgm)) as file:
                    shapes = [tuple(descriptor.shape) for number in range(file.message_count()) for descriptor, _ in file.decode_message(number)[1]]
                assert shapes.count((21, 30)) == 2 * len(levels), shapes
            subprocess.run([check.tercet, "diff", str(path), str(tgm)], check=True, capture_output=True)

        check.case(f"one message per field: {kind}", run)


def decoded_some(path):
    """Like `decoded`, for files with bytes between messages and fields without points."""
    result = []
    with open(path, "rb") as file:
        while True:
            try:
                message = eccodes.codes_grib_new_from_file(file)
            except eccodes.CodesInternalError:
                break
            if message is None:
                break
            if eccodes.codes_get(message, "gridType") != "sh":
                eccodes.codes_set(message, "missingValue", 1e34)
                values = eccodes.codes_get_values(message)
                values[values == 1e34] = np.nan
                step = 2.0 ** eccodes.codes_get(message, "binaryScaleFactor") * 10.0 ** -eccodes.codes_get(message, "decimalScaleFactor")
                result.append((values, step, {"shortName": eccodes.codes_get(message, "shortName")}, None))
            eccodes.codes_release(message)
    return result


def names(check, directory):
    """Parameters have the names and units of ecCodes."""
    cases = ["2t", "10u", "10v", "msl", "sp", "lsm", "skt", "2d", "z", "t", "q", "r", "u", "v", "w", "gh", "vo", "d", "pv", "ci"]
    for edition, name in itertools.product([1, 2], cases):
        path = directory / "name.grib"
        message = handle(edition, "regular_ll", "pl" if name in ("z", "t", "q", "r", "u", "v", "w", "gh", "vo", "d", "pv") else "sfc")
        try:
            eccodes.codes_set(message, "shortName", name)
            wanted = {key: eccodes.codes_get_string(message, key) for key in ["shortName", "units", "name", "cfVarName"]}
            put(message, path, "wb")
        except eccodes.CodesInternalError:
            continue
        finally:
            eccodes.codes_release(message)

        def run():
            import xarray
            check.convert(path, directory / "name.nc4", "-f")
            with xarray.open_dataset(directory / "name.nc4") as ours:
                variable = ours[wanted["cfVarName"]]
                found = {"shortName": variable.attrs["GRIB_shortName"], "units": variable.attrs["units"], "name": variable.attrs["long_name"]}
                assert all(found[key] == wanted[key] for key in found), (found, wanted)

        check.case(f"grib{edition} parameter {name}", run)


def output(check, directory):
    """GRIB files of ours, read by ecCodes."""
    import netCDF4
    for grid, (precision, options) in itertools.product(["ll", "gg", "up"], {
            "ieee": [], "ccsds": ["--max-error", "0.01"], "simple": ["--max-error", "0.01", "--packing", "simple"],
            "bits": ["--bits", "20"], "few": ["--bits", "3", "--packing", "simple"]}.items()):
        source, target = directory / f"w_{grid}.nc", directory / f"w_{grid}_{precision}.grib2"
        rng = np.random.default_rng(7)
        latitudes = {"ll": np.linspace(60, 40, 41), "up": np.linspace(-10, 10, 41),
                     "gg": np.degrees(np.arcsin(np.polynomial.legendre.leggauss(48)[0]))[::-1]}[grid]
        data = 280 + rng.standard_normal((2, 3, latitudes.size, 36)).astype("f4")
        data[0, 1, 2, 5:9] = np.nan
        with netCDF4.Dataset(source, "w") as file:
            for name, size in [("time", 2), ("level", 3), ("lat", latitudes.size), ("lon", 36)]:
                file.createDimension(name, size)
            time = file.createVariable("time", "f8", ("time",))
            time.units, time[:] = "hours since 2024-06-01", [0, 12]
            level = file.createVariable("level", "f8", ("level",))
            level.units, level[:] = "hPa", [1000, 850, 2.5]
            lat, lon = file.createVariable("lat", "f8", ("lat",)), file.createVariable("lon", "f8", ("lon",))
            lat.units, lon.units, lat[:], lon[:] = "degrees_north", "degrees_east", latitudes, np.arange(36) * 10.0
            variable = file.createVariable("t", "f4", ("time", "level", "lat", "lon"), fill_value=np.float32(-999))
            variable.units = "K"
            variable[:] = np.where(np.isnan(data), -999, data)

        def run():
            report = check.convert(source, target, "-f", *options)
            assert report["verified"]
            [item] = [item for item in report["fidelity"]["items"] if item["name"] == "t"]
            bound = {"ieee": 0, "ccsds": 0.01, "simple": 0.01, "bits": 1e-4, "few": 2}[precision]
            messages = decoded(target)
            assert len(messages) == 6
            for number, (values, step, keys, points) in enumerate(messages):
                expected = data[number // 3, number % 3].ravel()
                assert (np.isnan(values) == np.isnan(expected)).all()
                assert np.nanmax(np.abs(values - expected)) <= bound
                assert keys["shortName"] == "t" and keys["dataDate"] == 20240601 and keys["dataTime"] == [0, 1200][number // 3], keys
                assert np.abs(points[0].reshape(latitudes.size, 36)[:, 0] - latitudes).max() < 1e-3
                same_longitudes(points[1].reshape(latitudes.size, 36)[0], np.arange(36) * 10.0, "longitudes")
            assert precision == "ieee" or item["max_error"] <= bound

        check.case(f"written {grid} {precision}", run)


def round_trips(check, directory):
    """GRIB to .tet to GRIB: the same values and keys."""
    for edition in [1, 2]:
        path = directory / f"cube{edition}.grib"

        def run():
            check.convert(path, directory / "trip.tet", "-f")
            check.convert(directory / "trip.tet", directory / "trip.grib2", "-f")
            key = lambda entry: tuple(str(entry[2][key]) for key in ["shortName", "dataDate", "dataTime", "step", "level"])
            left = {key(entry): entry for entry in decoded(path)}
            right = {key(entry): entry for entry in decoded(directory / "trip.grib2")}
            assert left.keys() <= right.keys() and len(right) == len(left) + 1, (left.keys() ^ right.keys())
            for name, entry in left.items():
                compare(right[name][0], entry[0], entry[1], str(name))

        check.case(f"grib{edition} round trip", run)


def hostile(check, directory):
    """Damaged files: an error or values, never a crash."""
    rng = np.random.default_rng(1)
    for path in sorted(directory.glob("p[12]_regular_ll_*_16_smooth_True.grib")) + sorted(directory.glob("p2_reduced_gg_grid_simple*")):
        data = path.read_bytes()

        def run():
            for number in range(10):
                damaged = bytearray(data)
                if number < 3:
                    damaged = damaged[: rng.integers(0, len(damaged))]
                else:
                    for place in rng.integers(0, len(damaged) if number % 2 else min(len(damaged), 250), 2):
                        damaged[place] = rng.integers(0, 256)
                target = directory / "damaged.grib"
                target.write_bytes(damaged)
                run = subprocess.run([check.tercet, "convert", str(target), str(directory / "damaged.tet"), "-f", "--max-memory", "1GiB"],
                                     capture_output=True, text=True, timeout=60)
                assert 0 <= run.returncode <= 8 and "the reader of this format failed" not in run.stderr, (number, run.returncode, run.stderr[-300:])

        check.case(f"damaged {path.name}", run)


def real(check, directory):
    # A directory with real data, which is not part of the project.
    path = pathlib.Path(os.environ.get("TERCET_DATA", "../shared/data")) / "grid/era5uk.grib"
    if not path.exists():
        return

    def run():
        found = ours(check, path, directory)
        for number, (values, step, keys, points) in enumerate(decoded(path)):
            compare(found["t2m"][number], values, step, str(number))

    check.case("ERA5", run)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tercet", required=True)
    parser.add_argument("--keep", help="directory for the files")
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    check = Check(args.tercet)
    stages = [packings, second_order, scanning, cubes, mixed, split, names, output, round_trips, hostile, real]
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(args.keep or temporary)
        for stage in stages:
            if not args.only or stage.__name__ in args.only:
                stage(check, directory)
    print(f"{check.passed} passed, {check.failed} failed, 0 skipped")
    sys.exit(check.failed > 0)


if __name__ == "__main__":
    main()
