#!/usr/bin/env python3
"""Compare the smallest pipelines within error bounds with GRIB 2 CCSDS packing by ecCodes, field by field.

    measure_max_error.py GRID_DIRECTORY PROGRAM [RECORD]

PROGRAM is the example `max_error` of tercet-tgm. The sizes are payloads: section 7 of a GRIB message without its header of 5
bytes, and the stored bytes of an object. GRIB packs a field with the fewest bits that hold the bound, with the decimal
scale 0 and with the one of the bound. Needs eccodes, netCDF4 and NumPy.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import eccodes
import numpy as np
from netCDF4 import Dataset

BOUNDS = [1.0, 0.1, 0.01, 0.001]


def fields(grid):
    """Name and two-dimensional float64 array of every field."""
    for stem in ["era_interim_u_f32", "era_interim_z_f64"]:
        array = np.load(grid / f"{stem}.npy").astype(np.float64)
        for number, field in enumerate(array.reshape(-1, *array.shape[-2:])):
            yield f"{stem}", f"{stem}-{number}", field
    with Dataset(grid / "eraint_uvz.nc") as data:
        data.set_auto_mask(False)
        for name in ["u", "v", "z"]:
            array = data[name][:].astype(np.float64)
            for number, field in enumerate(array.reshape(-1, *array.shape[-2:])):
                yield f"eraint_uvz {name}", f"nc-{name}-{number}", field
    with open(grid / "era5uk.grib", "rb") as file:
        number = 0
        while (message := eccodes.codes_grib_new_from_file(file)) is not None:
            rows, columns = (eccodes.codes_get(message, key) for key in ("Nj", "Ni"))
            yield "era5uk 2t", f"uk-{number}", eccodes.codes_get_values(message).reshape(rows, columns)
            eccodes.codes_release(message)
            number += 1


def packed(field, bits, decimal):
    """Section 7 and the largest error of a field packed in N bits."""
    message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    eccodes.codes_set(message, "Ni", field.shape[1])
    eccodes.codes_set(message, "Nj", field.shape[0])
    eccodes.codes_set(message, "packingType", "grid_ccsds")
    eccodes.codes_set(message, "decimalScaleFactor", decimal)
    eccodes.codes_set(message, "bitsPerValue", bits)
    eccodes.codes_set_values(message, field.ravel())
    error = np.abs(eccodes.codes_get_values(message) - field.ravel()).max()
    size = eccodes.codes_get(message, "section7Length") - 5
    eccodes.codes_release(message)
    return size, error


def grib(field, bound):
    """The smallest section 7 within the bound."""
    best = None
    spread = float(field.max() - field.min())
    for decimal in {0, math.ceil(-math.log10(2 * bound))}:
        steps = max(spread / (2 * bound), 1.0)
        for bits in range(max(1, int(math.log2(steps))), 33):
            size, error = packed(field, bits, decimal)
            if error <= bound:
                best = size if best is None else min(best, size)
                break
    return best


def main():
    grid, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    table = {}
    with tempfile.TemporaryDirectory() as directory:
        names, groups = [], {}
        for group, name, field in fields(grid):
            path = pathlib.Path(directory) / f"{name}.f64"
            path.write_bytes(np.ascontiguousarray(field, "<f8").tobytes())
            names.append(str(path))
            groups[str(path)] = group
            for bound in BOUNDS:
                row = table.setdefault((group, bound), {"fields": 0, "grib2_ccsds": 0, "tercet": 0, "max_abs_error": 0.0, "fields_larger": 0})
                row.setdefault("sizes", {})[str(path)] = size = grib(field, bound)
                row["fields"] += 1
                row["grib2_ccsds"] += size
        bounds = ",".join(map(str, BOUNDS))
        lines = subprocess.run([program, bounds, *names], check=True, capture_output=True, text=True).stdout.splitlines()
    for line in map(json.loads, lines):
        row = table[groups[line["file"]], line["bound"]]
        assert line["holds"], line
        row["tercet"] += line["payload"]
        row["max_abs_error"] = max(row["max_abs_error"], line["error"])
        row["fields_larger"] += line["payload"] > row["sizes"][line["file"]]
        row.setdefault("methods", {})
        row["methods"][line["method"]] = row["methods"].get(line["method"], 0) + 1
    rows = []
    for (group, bound), row in table.items():
        row.pop("sizes")
        rows.append({"data": group, "bound": bound, **row, "ratio": round(row["tercet"] / row["grib2_ccsds"], 4)})
        print(f"{group:20} {bound:6} {row['fields']:4} {row['grib2_ccsds']:10} {row['tercet']:10} {rows[-1]['ratio']:.3f} {row['fields_larger']}")
    record = {"what": __doc__.splitlines()[0], "eccodes": eccodes.codes_get_api_version(), "rows": rows}
    if len(sys.argv) > 3:
        pathlib.Path(sys.argv[3]).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
