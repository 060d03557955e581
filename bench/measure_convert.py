"""Conversions to .tet beside xarray doing the same work, rechunking, memory, and catalogs: wall time, CPU time, peak memory.

    cargo build --release
    python bench/measure_convert.py --bin target/release/tercet --dir DIR [--large] [--only NAME,…] [--record FILE.json]

Needs numpy, xarray, netCDF4, zarr, dask, eccodes and tensogram. The inputs are written to DIR once: a field of 512 × 512 × 1024
float32 (1 GiB) with 16 significant bits, as NetCDF-4 (zlib 1 with shuffle), as Zarr (zstd 3) and as GRIB 2 (CCSDS, 16 bits); with
`--large` also a NetCDF-4 file of 4 GiB, of which only memory is measured; and 100,000 messages in one .tgm file. All programs
read from a warm page cache and write compressed chunks of the same shape (zstd 3); runs alternate. Our conversion is measured
with `--no-verify`, which is the same work, and with the verification that it does by default. There is no xarray engine for
GRIB without further packages: its peer decodes the messages by ecCodes.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from datetime import date

import numpy as np

STEPS, ROWS, COLUMNS = 512, 512, 1024
CHUNK = (8, 256, 512)
MESSAGES = 100_000

PEERS = {
    "netcdf": "import xarray as xr; xr.open_dataset({input!r}, engine='netcdf4', chunks={{'time': 8}})"
    ".to_zarr({output!r}, mode='w', consolidated=True, encoding=ENCODING)",
    "zarr": "import xarray as xr; xr.open_zarr({input!r}).to_zarr({output!r}, mode='w', encoding=ENCODING)",
    "grib": """
import eccodes, numpy as np, zarr
store = zarr.create_array({output!r}, shape=({steps}, {rows}, {columns}), chunks={chunk}, dtype='f4', overwrite=True,
                          compressors=zarr.codecs.ZstdCodec(level=3))
part = []
at = 0
with open({input!r}, 'rb') as file:
    while (message := eccodes.codes_grib_new_from_file(file)) is not None:
        part.append(eccodes.codes_get_values(message).astype('f4').reshape({rows}, {columns}))
        eccodes.codes_release(message)
        if len(part) == {chunk}[0]:
            store[at:at + len(part)] = np.stack(part)
            at += len(part)
            part = []
""",
    "rechunk": "import xarray as xr; xr.open_zarr({input!r}).chunk({{'time': {steps}, 'lat': 32, 'lon': 32}})"
    ".to_zarr({output!r}, mode='w', encoding={{'t': {{'chunks': ({steps}, 32, 32)}}}})",
}


def run(command):
    """Wall time, CPU time, peak memory in bytes, output."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{command}: {err}")
    return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024, "out": out}


def python(code, **values):
    prelude = f"import zarr; ENCODING = {{'t': {{'chunks': {CHUNK}, 'compressors': zarr.codecs.ZstdCodec(level=3)}}}}\n"
    return [sys.executable, "-W", "ignore", "-c", prelude + code.format(steps=STEPS, rows=ROWS, columns=COLUMNS, chunk=CHUNK, **values)]


def field(step):
    """A smooth field with noise, of values with 16 significant bits."""
    rng = np.random.default_rng(step)
    y, x = np.ogrid[0:ROWS, 0:COLUMNS]
    smooth = 280 + 20 * np.cos(y / ROWS * np.pi) + 5 * np.sin(x / 50 + step / 20)
    values = smooth + rng.normal(0, 0.05, (ROWS, COLUMNS))
    return (np.round(values * 64) / 64).astype("f4")


def make_netcdf(path, steps):
    from netCDF4 import Dataset

    with Dataset(path + ".part", "w") as data:
        for name, extent in (("time", steps), ("lat", ROWS), ("lon", COLUMNS)):
            data.createDimension(name, extent)
        for name, values in (("lat", np.linspace(90, -90, ROWS)), ("lon", np.arange(COLUMNS) * 360 / COLUMNS)):
            data.createVariable(name, "f8", (name,))[:] = values
        hours = data.createVariable("time", "i4", ("time",))
        hours.units = "hours since 2024-01-01"
        hours[:] = np.arange(steps)
        variable = data.createVariable("t", "f4", ("time", "lat", "lon"), zlib=True, complevel=1, chunksizes=CHUNK)
        variable.units = "K"
        for start in range(0, steps, CHUNK[0]):
            variable[start : start + CHUNK[0]] = np.stack([field((start + n) % STEPS) for n in range(CHUNK[0])])
    os.rename(path + ".part", path)


def make_grib(path):
    import eccodes

    with open(path + ".part", "wb") as file:
        for step in range(STEPS):
            message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
            for key, value in (
                ("Ni", COLUMNS), ("Nj", ROWS),
                ("latitudeOfFirstGridPointInDegrees", 90), ("latitudeOfLastGridPointInDegrees", -90),
                ("longitudeOfFirstGridPointInDegrees", 0), ("longitudeOfLastGridPointInDegrees", 360 - 360 / COLUMNS),
                ("iDirectionIncrementInDegrees", 360 / COLUMNS), ("jDirectionIncrementInDegrees", 180 / (ROWS - 1)),
                ("dataDate", 20240101), ("stepUnits", "h"), ("step", step),
                ("shortName", "2t"), ("packingType", "grid_ccsds"), ("bitsPerValue", 16),
            ):
                eccodes.codes_set(message, key, value)
            eccodes.codes_set_values(message, field(step).astype("f8").ravel())
            eccodes.codes_write(message, file)
            eccodes.codes_release(message)
    os.rename(path + ".part", path)


def make_messages(path):
    import tensogram

    rng = np.random.default_rng(0)
    names = ["t", "u", "v", "q", "z", "msl", "tp", "2t"]
    with open(path + ".part", "wb") as file:
        for number in range(MESSAGES):
            values = rng.normal(size=(16, 16)).astype("f4")
            name = names[number % len(names)]
            mars = {"param": name, "levelist": 100 * (number // 8 % 10 + 1), "step": number // 80 % 250, "number": number // 20_000,
                    "class": "od", "stream": "enfo"}
            descriptor = {"type": "ntensor", "ndim": 2, "shape": [16, 16], "strides": [16, 1], "dtype": "float32",
                          "byte_order": "little", "encoding": "none", "filter": "none", "compression": "none"}
            metadata = {"version": 3, "base": [{"mars": mars, "name": name, "long_name": f"field {name} of an ensemble forecast"}]}
            file.write(tensogram.encode(metadata, [(descriptor, values)]))
    os.rename(path + ".part", path)


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def row(name, ours, peer=None, **more):
    found = {"name": name, "ours": {key: round(median(ours, key), 3) for key in ("wall", "cpu")}, **more}
    found["ours"]["peak"] = max(run["peak"] for run in ours)
    if peer:
        found["peer"] = {key: round(median(peer, key), 3) for key in ("wall", "cpu")}
        found["peer"]["peak"] = max(run["peak"] for run in peer)
        found["ratio"] = round(found["peer"]["wall"] / found["ours"]["wall"], 2)
    print(json.dumps(found), flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--record")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="netcdf,zarr,grib,rechunk,catalog")
    parser.add_argument("--large", action="store_true", help="memory of a conversion of 4 GiB as well")
    parser.add_argument("--make", action="store_true", help="write the inputs only")
    args = parser.parse_args()
    only = args.only.split(",")
    place = lambda name: os.path.join(args.dir, name)
    inputs = {"netcdf": place("t.nc4"), "zarr": place("t.zarr"), "grib": place("t.grib2"), "rechunk": place("t.zarr")}
    messages, large = place("messages.tgm"), place("large.nc4")
    for path, make in ((inputs["netcdf"], lambda path: make_netcdf(path, STEPS)), (inputs["grib"], make_grib), (messages, make_messages)):
        if not os.path.exists(path):
            make(path)
    if not os.path.exists(inputs["zarr"]):
        run(python(PEERS["netcdf"], input=inputs["netcdf"], output=inputs["zarr"]))
    if args.large and not os.path.exists(large):
        make_netcdf(large, 4 * STEPS)
    if args.make:
        return
    rows = []
    output, theirs = place("out.tet"), place("out.zarr")
    options = ["--zstd", "3", "--chunk", "time=8", "--chunk", "lat=256", "--chunk", "lon=512"]
    for name in ("netcdf", "zarr", "grib", "rechunk"):
        if name not in only:
            continue
        chosen = options
        if name == "grib":
            chosen = ["--zstd", "3", "--chunk", "latitude=256", "--chunk", "longitude=512", "--chunk", "step=8"]
        if name == "rechunk":
            chosen = ["--zstd", "3", "--chunk", f"time={STEPS}", "--chunk", "lat=32", "--chunk", "lon=32"]
        command = [args.bin, "convert", inputs[name], output, "--force", "--no-progress", "-q", *chosen]
        ours, verified, peer = [], [], []
        for _ in range(args.runs):
            ours.append(run([*command, "--no-verify"]))
            shutil.rmtree(theirs, ignore_errors=True)
            peer.append(run(python(PEERS[name], input=inputs[name], output=theirs)))
        verified.append(run(command))
        rows.append(row(name, ours, peer, verified={key: verified[0][key] for key in ("wall", "cpu", "peak")}, bytes=os.path.getsize(output)))
    if args.large:
        rows.append(row("large", [run([args.bin, "convert", large, output, "--force", "--no-progress", "-q", *options])], bytes=4 << 30))
    if "catalog" in only:
        catalog = place("catalog.tatami")
        built = [run([args.bin, "catalog", messages, "-o", catalog, "--force", "-q"]) for _ in range(args.runs)]
        rows.append(row("catalog", built, rows_per_second=round(MESSAGES / median(built, "wall"))))
        rows.append(row("catalog without statistics", [run([args.bin, "catalog", messages, "-o", catalog, "--force", "-q", "--no-stats"])]))
        rows.append(row("refresh, unchanged", [run([args.bin, "catalog", "--refresh", messages, "-o", catalog, "-q"]) for _ in range(args.runs)]))
        for title, query in (
            ("find, one term", ["forecast"]), ("find, two terms", ["msl", "levelist=500"]),
            ("find, terms and filter", ["ensemble", "--where", "step = 24 and levelist >= 500"]),
            ("find, filter", ["--where", "step = 24 and levelist >= 500"]),
        ):
            rows.append(row(title, [run([args.bin, "find", catalog, *query, "--json"]) for _ in range(5)]))
    shutil.rmtree(theirs, ignore_errors=True)
    if args.record:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        import xarray
        import zarr

        record = {"date": str(date.today()), "commit": commit, "machine": platform.machine(), "cpus": os.cpu_count(),
                  "xarray": xarray.__version__, "zarr": zarr.__version__, "rows": rows}
        with open(args.record, "w", encoding="utf-8") as file:
            file.write(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
