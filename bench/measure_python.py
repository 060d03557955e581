"""The Python package beside xarray's other backends, the tensogram package, pyarrow and DuckDB, in one run, as ratios.

    cargo xtask wheel --out dist && pip install dist/tercet-*.whl -r interop/requirements.txt
    python bench/measure_python.py --dir DIR [--days 365] [--only arrays open messages tables] [--record FILE.json]

DIR needs about 4 GB. Peers are measured between runs of Tercet, so that all see the same machine; files are in the page cache.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import warnings

import numpy as np

from measure_tet import Table, alternating, timed

#: 370 MB of float32 for a year.
LAT, LON = 361, 720
CHUNK = (10, LAT, LON)


def once(path, make):
    """Makes a file or directory unless it exists, complete or not at all."""
    if not os.path.exists(path):
        stem, extension = os.path.splitext(path)
        made = f"{stem}-new{extension}"
        shutil.rmtree(made, ignore_errors=True)
        if os.path.isfile(made):
            os.remove(made)
        make(made)
        os.rename(made, path)
    return path


def fields(days):
    """Temperatures in hundredths of a degree: they compress to about a third."""
    rng = np.random.default_rng(7)
    lat = np.linspace(-1, 1, LAT, dtype=np.float32)[:, None]
    lon = np.linspace(0, 6.28, LON, dtype=np.float32)
    made = np.empty((days, LAT, LON), np.float32)
    for day in range(days):
        base = 300 - 45 * lat**2 + 5 * np.sin(lon + day / 9) * lat
        noise = rng.normal(0, 0.4, (LAT, LON)).astype(np.float32)
        made[day] = np.round((base + noise) * 100) / 100
    return made


def arrays_files(directory, days):
    import tercet
    import xarray as xr

    paths = {name: os.path.join(directory, name) for name in ("raw.tet", "zstd.tet", "zstd.zarr", "raw.nc", "plain.npy")}
    if not all(os.path.exists(path) for path in paths.values()):
        values = fields(days)
        ds = xr.Dataset({"t2m": (("time", "lat", "lon"), values)})
        chunks = {"t2m": CHUNK}
        names = {"t2m": ["time", "lat", "lon"]}
        once(paths["raw.tet"], lambda path: tercet.write(path, {"t2m": values}, dims=names, chunks=chunks, zstd=False))
        once(paths["zstd.tet"], lambda path: tercet.write(path, {"t2m": values}, dims=names, chunks=chunks, zstd=3))

        def zarr(path):
            from zarr.codecs import ZstdCodec

            ds.to_zarr(path, zarr_format=3, consolidated=False, encoding={"t2m": {"chunks": CHUNK, "compressors": [ZstdCodec(level=3)]}})

        once(paths["zstd.zarr"], zarr)
        encoding = {"t2m": {"chunksizes": CHUNK, "zlib": False, "_FillValue": None}}
        once(paths["raw.nc"], lambda path: ds.to_netcdf(path, engine="h5netcdf", encoding=encoding))
        once(paths["plain.npy"], lambda path: np.save(path, values))
    for name, path in paths.items():
        size = os.path.getsize(path)
        if os.path.isdir(path):
            size = sum(os.path.getsize(os.path.join(at, file)) for at, _, files in os.walk(path) for file in files)
        print(f"{name:10} {size / 1e6:9.1f} MB", flush=True)
    return paths


def arrays(table, directory, days):
    import dask.array
    import tercet
    import xarray as xr

    paths = arrays_files(directory, days)
    dims = ("time", "lat", "lon")

    def memmap(chunks):
        values = np.load(paths["plain.npy"], mmap_mode="r")
        data = values if chunks is None else dask.array.from_array(values, chunks=CHUNK)
        return xr.Dataset({"t2m": (dims, data)})

    def opened(name, engine, chunks):
        return xr.open_dataset(paths[name], engine=engine, chunks=chunks, **({"consolidated": False} if engine == "zarr" else {}))

    peers = {
        "Zarr v3, zstd": lambda chunks: opened("zstd.zarr", "zarr", chunks),
        "NetCDF-4, raw, h5netcdf": lambda chunks: opened("raw.nc", "h5netcdf", chunks),
        "numpy.memmap": memmap,
    }
    ours = {
        ".tet, zstd": lambda chunks: opened("zstd.tet", "tercet", chunks),
        ".tet, raw": lambda chunks: opened("raw.tet", "tercet", chunks),
    }
    total = days * LAT * LON * 4
    compute = {
        "mean over time, Dask": ({}, lambda ds: ds["t2m"].mean("time").compute(), total),
        "mean over time, no Dask": (None, lambda ds: ds["t2m"].mean("time").compute(), total),
        "max over lat and lon, Dask": ({}, lambda ds: ds["t2m"].max(("lat", "lon")).compute(), total),
        "one day": (None, lambda ds: ds["t2m"].isel(time=days // 2).load(), None),
        "time series of one point": (None, lambda ds: ds["t2m"].isel(lat=100, lon=200).load(), None),
        "box of 60 days, 100×100": (None, lambda ds: ds["t2m"].isel(time=slice(30, 90), lat=slice(50, 150), lon=slice(50, 150)).load(), None),
        "every tenth day": (None, lambda ds: ds["t2m"].isel(time=slice(None, None, 10)).load(), None),
        "all values": (None, lambda ds: ds["t2m"].load(), total),
    }
    for what, (chunks, work, size) in compute.items():


        def result(make):
            values = work(make(chunks)).values
            # Values of a memory map are read now, as those of the others.
            return np.array(values) if make is memmap else values

        works = {name: lambda make=make: timed(lambda: result(make), 2) for name, make in {**ours, **peers}.items()}
        taken = alternating(works, rounds=3)
        best = min(peers, key=lambda name: taken[name])
        for name in ours:
            # The target is 1.5 × the best of all peers.
            for peer in peers:
                table.add(f"{what}: {name}", taken[name], taken[peer], peer, 1.5 if peer == best else None, size)
    # The same by the package itself, without xarray.
    for name in ("zstd.tet", "raw.tet"):
        values = np.load(paths["plain.npy"], mmap_mode="r")
        works = {
            "ours": lambda: timed(lambda: tercet.open(paths[name])["t2m"].mean("time").to_xarray()),
            "numpy": lambda: timed(lambda: values.mean(0, dtype=np.float64)),
            "float": lambda: timed(lambda: values.mean(0)),
            "xarray": lambda: timed(lambda: memmap(None)["t2m"].mean("time")),
        }
        taken = alternating(works, rounds=3)
        table.add(f"tercet.open(…).mean('time'): {name}", taken["ours"], taken["numpy"], "memmap.mean(0, float64)", None, total)
        table.add(f"tercet.open(…).mean('time'): {name}", taken["ours"], taken["float"], "memmap.mean(0)", None, total)
        table.add(f"tercet.open(…).mean('time'): {name}", taken["ours"], taken["xarray"], "xarray over memmap", None, total)


def opening(table, directory, days):
    import tercet
    import xarray as xr

    values = np.zeros((10_000, 64), np.float32)
    tet = once(
        os.path.join(directory, "many.tet"),
        lambda path: tercet.write(path, {"x": values}, dims={"x": ["t", "y"]}, chunks={"x": [1, 64]}, zstd=False),
    )
    zarr = once(
        os.path.join(directory, "many.zarr"),
        lambda path: xr.Dataset({"x": (("t", "y"), values)}).to_zarr(
            path, zarr_format=3, consolidated=True, encoding={"x": {"chunks": (1, 64)}}
        ),
    )
    for chunks, label in ((None, "xr.open_dataset"), ({}, "xr.open_dataset(chunks={})")):
        works = {
            "ours": lambda: timed(lambda: xr.open_dataset(tet, chunks=chunks), 5),
            "zarr": lambda: timed(lambda: xr.open_dataset(zarr, engine="zarr", chunks=chunks), 5),
        }
        taken = alternating(works, rounds=3)
        goal = 5.0 if chunks is None else None
        table.add(f"{label}, 10,000 chunks", taken["ours"], taken["zarr"], "Zarr v3, consolidated", goal)
    works = {
        "ours": lambda: timed(lambda: tercet.open(tet)["x"], 5),
        "zarr": lambda: timed(lambda: __import__("zarr").open_group(zarr, mode="r")["x"], 5),
    }
    taken = alternating(works, rounds=3)
    table.add("tercet.open, 10,000 chunks", taken["ours"], taken["zarr"], "zarr.open_group", 5.0)


def messages(table, directory, days):
    import tensogram
    import tercet

    rng = np.random.default_rng(5)
    smooth = (np.sin(np.linspace(0, 50, 1 << 22)) * 20 + 280 + rng.normal(0, 0.05, 1 << 22)).reshape(2048, 2048)
    pipelines = {
        "raw": dict(compression="none"),
        "zstd": dict(compression="zstd"),
        "shuffle+zstd": dict(compression="zstd", filter="shuffle", params={"shuffle_element_size": 8}),
        "lz4": dict(compression="lz4"),
        "packing 16 bits+szip": None,
    }
    for name, options in pipelines.items():
        path = os.path.join(directory, f"messages-{name.replace(' ', '-')}.tgm")

        def make(path, name=name, options=options):
            if options is not None:
                tercet.write_tgm(path, [({"step": step}, {"t": smooth + step}) for step in range(4)], **options)
                return
            with open(path, "wb") as out:
                for step in range(4):
                    packing = tensogram.compute_packing_params((smooth + step).ravel(), 16, 0)
                    descriptor = {"type": "ntensor", "shape": [2048, 2048], "dtype": "float64", "encoding": "simple_packing",
                                  "compression": "szip", "szip_rsi": 128, "szip_block_size": 16, "szip_flags": 8, **packing}
                    out.write(tensogram.encode({"step": step}, [(descriptor, smooth + step)]))

        once(path, make)

        def ours():
            return [message[0].to_numpy() for message in tercet.open(path)]

        def reference(verify):
            with tensogram.TensogramFile.open(path) as file:
                return [file.decode_message(number, verify_hash=verify).objects[0][1] for number in range(len(file))]

        for mine, theirs in zip(ours(), reference(True)):
            np.testing.assert_array_equal(mine, theirs)
        works = {
            "ours": lambda: timed(ours, 2),
            "verified": lambda: timed(lambda: reference(True), 2),
            "unverified": lambda: timed(lambda: reference(False), 2),
        }
        taken = alternating(works, rounds=3)
        size = 4 * smooth.nbytes
        table.add(f"decode 4 messages of 32 MiB: {name}", taken["ours"], taken["verified"], "tensogram, verified", 5.0, size)
        table.add(f"decode 4 messages of 32 MiB: {name}", taken["ours"], taken["unverified"], "tensogram, unverified", None, size)
    small = os.path.join(directory, "messages-small.tgm")
    once(small, lambda path: tercet.write_tgm(path, [({"step": step}, {"t": smooth[:32, :32]}) for step in range(2000)]))

    def ours():
        return sum(message[0].to_numpy()[0, 0] for message in tercet.open(small))

    def reference():
        with tensogram.TensogramFile.open(small) as file:
            return sum(file.decode_message(number, verify_hash=True).objects[0][1][0, 0] for number in range(len(file)))

    assert ours() == reference()
    taken = alternating({"ours": lambda: timed(ours, 1), "reference": lambda: timed(reference, 1)}, rounds=3)
    table.add("decode 2,000 messages of 8 KiB", taken["ours"], taken["reference"], "tensogram, verified", 5.0)


def tables(table, directory, days):
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq
    import tercet

    rng = np.random.default_rng(11)
    count = 3_000_000
    hosts = np.array([f"host-{number}.example.org" for number in range(5000)])
    made = None

    def rows():
        nonlocal made
        if made is None:
            made = pa.table(
                {
                    "id": np.arange(count),
                    "status": rng.choice([200, 200, 200, 301, 404, 500], count).astype(np.int32),
                    "host": pa.array(hosts[rng.integers(0, 5000, count)]),
                    "path": pa.array([f"/pages/{one:x}" for one in rng.integers(0, 1 << 40, count).tolist()]),
                    "seconds": rng.exponential(0.2, count),
                    "bytes": rng.integers(0, 1 << 20, count),
                }
            )
        return made

    tatami = once(os.path.join(directory, "crawl.tatami"), lambda path: tercet.write(path, rows()))
    parquet = once(os.path.join(directory, "crawl.parquet"), lambda path: pq.write_table(rows(), path, compression="zstd"))
    print(f"crawl: .tatami {os.path.getsize(tatami) / 1e6:.1f} MB, Parquet {os.path.getsize(parquet) / 1e6:.1f} MB", flush=True)
    for columns in (None, ["id", "bytes"], ["host"], ["path"], ["seconds"]):
        works = {
            "ours": lambda: timed(lambda: tercet.open(tatami).scan(columns).to_arrow(), 1),
            "parquet": lambda: timed(lambda: pq.read_table(parquet, columns=columns), 1),
        }
        taken = alternating(works)
        label = "all columns" if columns is None else ", ".join(columns)
        table.add(f"scan().to_arrow(): {label}", taken["ours"], taken["parquet"], "pyarrow.parquet.read_table", 1.0)
    queries = {
        "id between 1,500,000 and 1,500,999": "select sum(bytes), max(path) from {} where id >= 1500000 and id < 1501000",
        "host = one of 5,000": "select count(*), sum(bytes) from {} where host = 'host-77.example.org'",
        "status = 500 and id < 100,000": "select count(*), avg(seconds) from {} where status = 500 and id < 100000",
        "no filter, group by host": "select host, count(*) as n from {} group by 1 order by n desc, host limit 5",
    }
    connection = duckdb.connect()
    for what, query in queries.items():

        def ours():
            dataset = tercet.open(tatami).to_dataset()
            connection.register("dataset", dataset)
            return connection.sql(query.format("dataset")).fetchall()

        def theirs():
            return connection.sql(query.format(f"read_parquet('{parquet}')")).fetchall()

        assert str(ours())[:12] == str(theirs())[:12], (ours(), theirs())
        taken = alternating({"ours": lambda: timed(ours, 2), "parquet": lambda: timed(theirs, 2)})
        goal = None if what.startswith("no filter") else 1.0
        table.add(f"DuckDB: {what}", taken["ours"], taken["parquet"], "DuckDB over Parquet", goal)


def importing(table, directory, days):
    """`import tercet` and `import numpy` in processes of their own."""

    def taken(code):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return [time.perf_counter() - start]

    times = alternating({"ours": lambda: taken("import tercet"), "numpy": lambda: taken("import numpy")}, rounds=9)
    table.add("python -c 'import tercet'", times["ours"], times["numpy"], "import numpy", None)


PARTS = {"arrays": arrays, "open": opening, "messages": messages, "tables": tables, "import": importing}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--record")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.makedirs(options.dir, exist_ok=True)
    table = Table()
    for name in options.only:
        PARTS[name](table, options.dir, options.days)
    if options.record:
        import tercet

        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        machine = dict(system=platform.system(), machine=platform.machine(), cores=os.cpu_count(), python=platform.python_version())
        record = dict(date=time.strftime("%Y-%m-%d"), commit=commit, version=tercet.__version__, machine=machine, rows=table.rows)
        with open(options.record, "w") as out:
            json.dump(record, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    sys.exit(main())
