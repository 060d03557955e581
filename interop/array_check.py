"""Array files of other programs: NetCDF, HDF5 and Zarr files made by their own libraries are converted with `tercet convert`, read back by those
libraries, and compared bit for bit."""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import netCDF4
import numpy as np

NUMBERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
CLASSIC = ["i1", "i2", "i4", "f4", "f8"]
CALENDARS = ["standard", "proleptic_gregorian", "noleap", "360_day", "julian", "all_leap"]


class Check:
    def __init__(self, tercet):
        self.tercet, self.passed, self.failed = tercet, 0, 0

    def convert(self, source, target, *options, code=0):
        run = subprocess.run([self.tercet, "convert", str(source), str(target), "--json", *options],
                             capture_output=True, text=True)
        if run.returncode != code:
            raise AssertionError(f"exit code {run.returncode}: {run.stderr.strip()[:400]} {run.stdout[:400]}")
        return json.loads(run.stdout) if run.stdout else None

    def case(self, name, work):
        try:
            work()
            self.passed += 1
        except Exception as error:
            self.failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {str(error)[:600]}")


def values(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return (rng.standard_normal(shape) * 1000).astype(dtype)


def same(left, right, what):
    left, right = np.asarray(left), np.asarray(right)
    assert left.shape == right.shape, f"{what}: shape {left.shape} {right.shape}"
    assert left.dtype.newbyteorder("=") == right.dtype.newbyteorder("="), f"{what}: {left.dtype} {right.dtype}"
    if left.dtype.kind in "OUST":
        assert left.tolist() == right.tolist(), what
    else:
        native = left.dtype.newbyteorder("=")
        assert left.astype(native).tobytes() == right.astype(native).tobytes(), f"{what}: values differ"


def same_attr(left, right, what):
    if isinstance(left, str) or isinstance(right, str):
        assert left == right, f"{what}: {left!r} {right!r}"
    else:
        same(np.atleast_1d(left), np.atleast_1d(right), what)


def same_netcdf(left, right, unlimited=True):
    """Compares two NetCDF files: dimensions, variables, attributes with types, stored values."""
    with netCDF4.Dataset(left) as a, netCDF4.Dataset(right) as b:
        a.set_auto_maskandscale(False), b.set_auto_maskandscale(False)
        assert sorted(a.ncattrs()) == sorted(b.ncattrs()), (a.ncattrs(), b.ncattrs())
        for key in a.ncattrs():
            same_attr(a.getncattr(key), b.getncattr(key), key)
        assert list(a.dimensions) == list(b.dimensions), (list(a.dimensions), list(b.dimensions))
        for name, dim in a.dimensions.items():
            assert len(dim) == len(b.dimensions[name]), name
            if unlimited:
                assert dim.isunlimited() == b.dimensions[name].isunlimited(), name
        assert sorted(a.variables) == sorted(b.variables), (list(a.variables), list(b.variables))
        for name, variable in a.variables.items():
            other = b.variables[name]
            assert variable.dimensions == other.dimensions, name
            same(variable[...], other[...], name)
            assert sorted(variable.ncattrs()) == sorted(other.ncattrs()), (name, variable.ncattrs(), other.ncattrs())
            for key in variable.ncattrs():
                same_attr(variable.getncattr(key), other.getncattr(key), f"{name}:{key}")


def fill_netcdf(path, format, types, layout, calendar):
    options = {"contiguous": {}, "zlib": {"zlib": True, "shuffle": True}, "chunks": {"chunksizes": (2, 3, 4)},
               "fletcher": {"zlib": True, "fletcher32": True}}[layout]
    with netCDF4.Dataset(path, "w", format=format) as file:
        file.set_auto_maskandscale(False)
        file.title, file.numbers = "Temperatur über Köln", np.array([1, -2, 3], "i2")
        file.scalar, file.empty = np.float32(0.1), ""
        file.history = "a long history " * 300
        for name, size in [("time", None), ("lat", 5), ("lon", 7), ("nv", 2), ("strlen", 6), ("unused", 3)]:
            file.createDimension(name, size)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar, time.bounds = "hours since 1900-01-01", calendar, "time_bnds"
        time[:] = np.arange(4) * 6.0
        file.createVariable("time_bnds", "f8", ("time", "nv"))[:] = values("f8", (4, 2))
        file.createVariable("lat", "f4", ("lat",))[:] = np.linspace(60, 40, 5)
        file.createVariable("lon", "f4", ("lon",))[:] = np.linspace(0, 6, 7)
        crs = file.createVariable("crs", "i4", ())
        crs.grid_mapping_name, crs.semi_major_axis = "latitude_longitude", 6378137.0
        crs[...] = 7
        names = file.createVariable("names", "S1", ("lat", "strlen"))
        names[:] = np.array([list("abc   "), list("def   ")] + [list("ghijkl")] * 3, "S1")
        for number, dtype in enumerate(types):
            variable = file.createVariable("v_" + dtype, dtype, ("time", "lat", "lon"), **options)
            variable.set_auto_maskandscale(False)
            variable.long_name, variable.grid_mapping = "variable " + dtype, "crs"
            variable.valid_min = np.array(0, dtype)
            variable[:] = values(dtype, (4, 5, 7), number)
        packed = file.createVariable("packed", "i2", ("time", "lat", "lon"), fill_value=-32767, **options)
        packed.set_auto_maskandscale(False)
        packed.scale_factor, packed.add_offset, packed.units = np.float32(0.01), np.float32(273.15), "K"
        data = values("i2", (4, 5, 7), 99)
        data[0, 0, :3] = -32767
        packed[:] = data


def netcdf(check, directory):
    formats = {"NETCDF3_CLASSIC": CLASSIC, "NETCDF3_64BIT_OFFSET": CLASSIC, "NETCDF3_64BIT_DATA": NUMBERS,
               "NETCDF4": NUMBERS, "NETCDF4_CLASSIC": CLASSIC}
    cases = [(format, layout, CALENDARS[number % len(CALENDARS)]) for number, (format, layout) in enumerate(
        itertools.chain(itertools.product(["NETCDF4", "NETCDF4_CLASSIC"], ["contiguous", "zlib", "chunks", "fletcher"]),
                        [(format, "contiguous") for format in list(formats)[:3]]))]
    for format, layout, calendar in cases:
        stem = f"{format}_{layout}"
        source, tet, back = (directory / f"{stem}{suffix}" for suffix in (".nc", ".tet", "_back.nc"))
        fill_netcdf(source, format, formats[format], layout, calendar)

        def round_trip():
            report = check.convert(source, tet, "--strict")
            assert report["changed"] == report["not_carried"] == 0 and report["verified"]
            check.convert(tet, back)
            same_netcdf(source, back)

        def unpacked():
            check.convert(source, directory / f"{stem}_u.nc", "--unpack", "--var", "packed", "--isel", "time=1..3")
            with netCDF4.Dataset(source) as a, netCDF4.Dataset(directory / f"{stem}_u.nc") as b:
                left, right = a["packed"][1:3].filled(np.nan).astype("f4"), np.ma.filled(b["packed"][:], np.nan)
                assert right.dtype == np.float32 and np.allclose(left, right, rtol=1e-6, atol=1e-4, equal_nan=True)
                assert set(b.variables) == {"packed", "time", "lat", "lon", "time_bnds"}, list(b.variables)

        check.case(f"{stem}: to .tet and back", round_trip)
        check.case(f"{stem}: --unpack", unpacked)
    source, back = directory / "NETCDF3_CLASSIC_contiguous.nc", directory / "bytes.nc"

    def bytes_equal():
        check.convert(directory / "NETCDF3_CLASSIC_contiguous.tet", back, "--to", "nc3")
        same_netcdf(source, back)

    check.case("NetCDF classic from .tet", bytes_equal)


def netcdf4_output(check, directory):
    """NetCDF-4 and HDF5 files of ours, opened by netCDF4, h5netcdf, xarray and h5py."""
    import h5py
    import xarray
    for stem in ["NETCDF4_zlib", "NETCDF4_contiguous", "NETCDF3_64BIT_OFFSET_contiguous", "NETCDF3_64BIT_DATA_contiguous"]:
        source, four, five = directory / f"{stem}.nc", directory / f"{stem}_out.nc4", directory / f"{stem}_out.h5"

        def written():
            report = check.convert(source, four, "--strict")
            assert report["verified"] and report["output_format"] == "NetCDF-4"
            same_netcdf(source, four)
            with netCDF4.Dataset(four) as file:
                assert file.data_model == "NETCDF4", file.data_model

        def through_tet():
            check.convert(source, directory / f"{stem}_4.tet", "-f", "--strict")
            check.convert(directory / f"{stem}_4.tet", directory / f"{stem}_4.nc4", "-f", "--strict")
            same_netcdf(source, directory / f"{stem}_4.nc4")

        def in_xarray():
            for engine in ["netcdf4", "h5netcdf"]:
                with xarray.open_dataset(source) as left, xarray.open_dataset(four, engine=engine) as right:
                    for name in left.variables:
                        if left[name].dtype.kind not in "OSU":
                            np.testing.assert_array_equal(left[name].values, right[name].values, err_msg=f"{engine} {name}")
                        assert left[name].dims == right[name].dims, (engine, name)
                    assert right["packed"].attrs["units"] == "K"

        def in_h5py():
            check.convert(source, five, "--strict")
            with netCDF4.Dataset(source) as left, h5py.File(five) as right:
                left.set_auto_maskandscale(False)
                for name, variable in left.variables.items():
                    same(variable[...], right[name][...], name)
                    assert [dim[0].name for dim in right[name].dims if len(dim)] == ["/" + dim for dim in variable.dimensions] or name in left.dimensions, name
                assert right["packed"].attrs["units"] in (b"K", "K") and right.attrs["title"] in ("Temperatur über Köln", "Temperatur über Köln".encode())
                assert right["v_f4"].compression == "gzip" or right["v_f4"].size < 1024

        check.case(f"{stem}: NetCDF-4 output", written)
        check.case(f"{stem}: NetCDF-4 output from .tet", through_tet)
        check.case(f"{stem}: NetCDF-4 output in xarray", in_xarray)
        check.case(f"{stem}: HDF5 output in h5py", in_h5py)

    def types():
        source = directory / "types.npz"
        data = {name: values(name, (40, 50), 2) for name in NUMBERS + ["?"]} | {"c16": values("f8", (40, 50)).astype("c16")}
        np.savez(source, **data)
        check.convert(source, directory / "types.h5", "--strict")
        with h5py.File(directory / "types.h5") as file:
            for name, expected in data.items():
                same(file[name][...], expected, name)
                assert file[name].chunks is None or file[name].compression == "gzip", name

    def strings_and_groups():
        source, target = directory / "groups.nc", directory / "groups_out.nc4"
        check.convert(source, target, "--strict")
        with netCDF4.Dataset(target) as file:
            assert file["station"][:].tolist() == ["Köln", "", "a longer name"]
            same(file["model/run/v"][:].data, values("f4", (4, 3)), "v")
            assert file["model/run"].source == "test" and file["model/run/v"].dimensions == ("y", "x")

    check.case("types in HDF5 output", types)
    check.case("strings and groups in NetCDF-4 output", strings_and_groups)


def groups(check, directory):
    source, tet = directory / "groups.nc", directory / "groups.tet"
    with netCDF4.Dataset(source, "w") as file:
        file.createDimension("x", 3)
        group = file.createGroup("model/run")
        group.createDimension("y", 4)
        group.source = "test"
        group.createVariable("v", "f4", ("y", "x"))[:] = values("f4", (4, 3))
        names = file.createVariable("station", str, ("x",))
        names[:] = np.array(["Köln", "", "a longer name"], object)

    def run():
        report = check.convert(source, tet)
        assert any(item["name"] == "station" for item in report["fidelity"]["items"])
        check.convert(tet, directory / "groups_back.nc")
        with netCDF4.Dataset(directory / "groups_back.nc") as file:
            same(file["model_run_v"][:].data, values("f4", (4, 3)), "v")
            assert file.getncattr("model_run_source") == "test"
            assert file["station"][:].tolist() == ["Köln", "", "a longer name"], file["station"][:]

    check.case("groups and strings", run)


def csv(check, directory):
    """Matrices in text files."""
    data = values("f8", (12, 5), 4)
    cases = {"plain.csv": (",", "", data), "tabs.tsv": ("\t", "", data), "semicolons.csv": (";", "", data),
             "header.csv": (",", "a,b,c,d,e", data), "integers.csv": (",", "", (data * 10).astype("i8"))}
    for name, (delimiter, header, expected) in cases.items():
        def run():
            np.savetxt(directory / name, expected, delimiter=delimiter, header=header, comments="", fmt="%d" if expected.dtype.kind == "i" else "%.17g")
            check.convert(directory / name, directory / "matrix.npy", "-f", "--strict" if not header else "--no-verify")
            same(np.load(directory / "matrix.npy"), expected, name)

        check.case(f"matrix {name}", run)


def hdf5(check, directory):
    import h5py
    kinds = {"plain": {}, "gzip": {"chunks": (3, 4), "compression": "gzip", "shuffle": True, "fletcher32": True},
             "lzf": {"chunks": (3, 4), "compression": "lzf"}, "odd": {"chunks": (7, 2)},
             "scaleoffset": {"chunks": (3, 4), "scaleoffset": 0}}
    for version in ["earliest", "latest"]:
        for kind, options in kinds.items():
            for dtype in [">f8", "<f4", "i2", ">u4", "u8", "f2", "c8", "c16", "?"]:
                if kind == "scaleoffset" and np.dtype(dtype).kind not in "iu":
                    continue
                name = f"h5_{version}_{kind}_{np.dtype(dtype).name}"
                source, tet = directory / f"{name}.h5", directory / f"{name}.tet"
                data = values("f8", (10, 9), 3).astype(dtype) if np.dtype(dtype).kind in "fc" else values(np.dtype(dtype).newbyteorder("="), (10, 9)).astype(dtype)
                if kind == "scaleoffset":
                    data = (data % 1000).astype(dtype)
                with h5py.File(source, "w", libver=version) as file:
                    file.create_dataset("g/v", data=data, **options).attrs["units"] = "K"
                    file["n"] = np.float64(3.5)

                def run():
                    report = check.convert(source, tet, "--strict")
                    assert report["verified"]
                    out = directory / f"{name}_back.npz"
                    check.convert(tet, out)
                    with np.load(out) as back:
                        same(back["g/v"], data, name)
                        same(back["n"], np.float64(3.5), "scalar")

                check.case(name, run)


def hdf5_filters(check, directory):
    """Filters that the netCDF4 library has as plugins. One that is not supported does not stop the other variables."""
    # The Blosc plugin does not write what it cannot compress.
    data = np.round(values("f4", (64, 50), 9) / 500).astype("f4")
    for name in ["zstd", "blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_zlib", "blosc_zstd", "bzip2"]:
        source = directory / f"filter_{name}.nc"
        with netCDF4.Dataset(source, "w") as file:
            file.createDimension("y", 64), file.createDimension("x", 50)
            options = {"blosc_shuffle": 2 if name == "blosc_lz4" else 1} if name.startswith("blosc") else {"shuffle": True}
            file.createVariable("v", "f4", ("y", "x"), compression=name, chunksizes=(30, 50), **options)[:] = data
            file.createVariable("plain", "f4", ("y",))[:] = data[:, 0]

        def run():
            out = directory / "filter.npz"
            report = check.convert(source, out, "-f", code=1 if name == "bzip2" else 0)
            with np.load(out) as back:
                same(back["plain"], data[:, 0], "plain")
                if name == "bzip2":
                    assert "v" not in back
                else:
                    same(back["v"], data, name)
            if name == "bzip2":
                plan = check.convert(source, directory / "none.npz", "--plan", code=1)
                for found in [report, plan]:
                    [item] = [item for item in found["fidelity"]["items"] if item["name"] == "v"]
                    assert item["fate"] == "not_carried" and "bzip2 (307)" in item["detail"], item

        check.case(f"HDF5 filter {name}", run)


def zarr_stores(check, directory):
    import zarr
    from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ZstdCodec
    import numcodecs
    v3 = {"none": None, "zstd": [ZstdCodec()], "gzip": [GzipCodec()], "blosc": [BloscCodec(cname="lz4", shuffle="bitshuffle")],
          "blosc_zstd": [BloscCodec(cname="zstd", shuffle="shuffle")], "crc": [ZstdCodec(), Crc32cCodec()]}
    v2 = {"none": None, "zlib": numcodecs.Zlib(), "gzip": numcodecs.GZip(), "zstd": numcodecs.Zstd(), "lz4": numcodecs.LZ4(),
          "blosc": numcodecs.Blosc(cname="lz4"), "blosclz": numcodecs.Blosc(cname="blosclz", shuffle=2)}
    cases = [(3, name, codec, shards, store) for name, codec in v3.items() for shards in [None, (8, 12)] for store in ["dir", "zip"]]
    cases += [(2, name, codec, None, store) for name, codec in v2.items() for store in ["dir", "zip"]]
    for version, kind, codec, shards, store in cases:
        name = f"zarr{version}_{kind}{'_sharded' if shards else ''}_{store}"
        source = directory / (name + (".zarr.zip" if store == "zip" else ".zarr"))
        target = zarr.storage.ZipStore(source, mode="w") if store == "zip" else str(source)
        root = zarr.create_group(target, zarr_format=version, attributes={"title": "test", "list": [1, 2.5], "none": None})
        data = {}
        for dtype in ["f4", "f8", "i2", "u8", "bool", "c8", "i1"]:
            data[dtype] = values("f4", (10, 13), 5).astype(dtype) if dtype in ("c8",) else values(dtype, (10, 13), 5)
            options = {"compressors": codec} if version == 3 else {"compressors": codec}
            if shards:
                options["shards"] = shards
            dims = {"dimension_names": ["y", "x"]} if version == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["y", "x"]}}
            array = root.create_array(f"g/{dtype}", shape=(10, 13), chunks=(4, 6), dtype=dtype, fill_value=0, **options, **dims)
            array[:8] = data[dtype][:8]
            data[dtype][8:] = 0
            array.attrs["units"] = "K"
        if store == "zip":
            target.close()

        def run():
            tet, back = directory / f"{name}.tet", directory / f"{name}_back.zarr"
            check.convert(source, tet, "--strict")
            check.convert(tet, back, "--strict")
            group = zarr.open_group(str(back), mode="r", use_consolidated=True)
            assert dict(group.attrs) == {"title": "test", "list": [1, 2.5], "none": None}, dict(group.attrs)
            for dtype, expected in data.items():
                array = group[f"g/{dtype}"]
                same(array[...], expected, f"{name} {dtype}")
                assert array.metadata.dimension_names == ("y", "x") and array.attrs["units"] == "K"

        check.case(name, run)


def carried(check, directory):
    """Chunks that both sides compress with Zstandard are stored as they are, and read by the libraries of both."""
    import tensogram
    import tet
    import zarr
    from zarr.codecs import ZstdCodec
    import numcodecs
    for version in [2, 3]:
        source = directory / f"carried{version}.zarr"
        data = values("f4", (3, 300, 256), 3).round(1)
        root = zarr.create_group(str(source), zarr_format=version)
        codec = ZstdCodec(level=11, checksum=True) if version == 3 else numcodecs.Zstd(level=11)
        dims = {"dimension_names": ["time", "y", "x"]} if version == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["time", "y", "x"]}}
        array = root.create_array("t", shape=data.shape, chunks=(1, 256, 256), dtype="f4", compressors=codec, **dims)
        array[...] = data
        stored = (source / ("t/c/1/0/0" if version == 3 else "t/1.0.0")).read_bytes()

        def run():
            cube, back = directory / f"carried{version}.tet", directory / f"carried{version}_back.zarr"
            check.convert(source, cube, "--strict")
            check.convert(cube, back, "--strict")
            assert (back / "t/c/1/0/0").read_bytes() == stored, "the chunk was encoded again"
            same(zarr.open_group(str(back), mode="r")["t"][...], data, "back")
            same(tet.open(str(cube)).read_numpy("t"), data, "tet-py")

        check.case(f"carried zarr{version}", run)

    def messages():
        source, target, back = directory / "maps.zarr", directory / "maps.tgm", directory / "maps_back.zarr"
        data = values("f4", (3, 256, 256), 4).round(1)
        array = zarr.create_group(str(source)).create_array("t", shape=data.shape, chunks=(1, 256, 256), dtype="f4",
                                                            compressors=ZstdCodec(level=11), dimension_names=["time", "y", "x"])
        array[...] = data
        check.convert(source, target, "--strict")
        with tensogram.TensogramFile.open(str(target)) as file:
            for number in range(3):
                _, objects = file.decode_message(number)
                assert (objects[0][0].compression, objects[0][0].filter) == ("zstd", "none")
                same(objects[0][1], data[number], "tensogram")
        check.convert(target, back, "--strict")
        for number in range(3):
            assert (back / f"t/c/{number}/0/0").read_bytes() == (source / f"t/c/{number}/0/0").read_bytes()

    check.case("carried messages", messages)


def xarray_zarr(check, directory):
    import xarray
    with xarray.open_dataset(directory / "NETCDF4_zlib.nc", decode_cf=False) as source:
        source = source.load()
    check.convert(directory / "NETCDF4_zlib.nc", directory / "x.zarr")

    def run():
        with xarray.open_dataset(directory / "NETCDF4_zlib.nc") as left, xarray.open_zarr(directory / "x.zarr") as right:
            for name in ["packed", "v_f4", "v_i2", "lat", "time", "crs"]:
                assert left[name].dims == right[name].dims, name
                # xarray unpacks float32 with attributes of NetCDF, float64 with those of JSON.
                tolerance = {"rtol": 1e-6, "atol": 1e-3} if name == "packed" else {"rtol": 0, "atol": 0}
                if left[name].dtype.kind == "M":
                    assert (left[name].values == right[name].values).all(), name
                else:
                    np.testing.assert_allclose(left[name].values, right[name].values, **tolerance, err_msg=name)
            assert left["packed"].attrs["units"] == right["packed"].attrs["units"]

    check.case("xarray opens our Zarr store", run)


def hostile(check, directory):
    """Damaged files: an error or the right values, never a crash."""
    rng = np.random.default_rng(1)
    for source in ["NETCDF3_64BIT_DATA_contiguous.nc", "NETCDF4_zlib.nc", "h5_latest_gzip_float32.h5", "zarr3_zstd_dir.tet",
                   "zarr3_zstd_zip.zarr.zip", "zarr2_blosc_zip.zarr.zip", "zarr3_zstd_sharded_zip.zarr.zip", "maps.tgm", "carried3.tet"]:
        data = (directory / source).read_bytes()

        def run():
            for number in range(12):
                damaged = bytearray(data)
                if number < 4:
                    damaged = damaged[: rng.integers(0, len(damaged))]
                else:
                    for place in rng.integers(0, min(len(damaged), 4000), 3):
                        damaged[place] = rng.integers(0, 256)
                path = directory / "damaged"
                path.write_bytes(damaged)
                run = subprocess.run([check.tercet, "convert", str(path), str(directory / "damaged.tet"), "-f", "--max-memory", "1GiB"],
                                     capture_output=True, text=True, timeout=60)
                assert 0 <= run.returncode <= 8, (number, run.returncode, run.stderr[-300:])

        check.case(f"damaged {source}", run)


def names(check, directory):
    """Names of members of archives never leave a directory."""
    import io
    import zipfile

    def run():
        array = io.BytesIO()
        np.save(array, np.arange(5.0))
        with zipfile.ZipFile(directory / "names.npz", "w") as archive:
            archive.writestr("../../outside.npy", array.getvalue())
        check.convert(directory / "names.npz", directory / "names.tet")
        for target in ["names.zarr", "again.npz"]:
            run = subprocess.run([check.tercet, "convert", str(directory / "names.tet"), str(directory / target)], capture_output=True, text=True)
            assert run.returncode == 8 and "outside" in run.stderr, run
            assert not (directory / target).exists()

    check.case("names that leave the directory", run)


def real(check, directory):
    # A directory with real data, which is not part of the project.
    path = pathlib.Path(os.environ.get("TERCET_DATA", "../shared/data")) / "grid/eraint_uvz.nc"
    if not path.exists():
        return

    def run():
        check.convert(path, directory / "real.tet", "--strict")
        check.convert(directory / "real.tet", directory / "real.nc", "--strict")
        same_netcdf(path, directory / "real.nc")

    check.case("ERA-Interim", run)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tercet", required=True)
    parser.add_argument("--keep", help="directory for the files")
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    check = Check(args.tercet)
    stages = [netcdf, groups, netcdf4_output, csv, hdf5, hdf5_filters, zarr_stores, carried, xarray_zarr, hostile, names, real]
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(args.keep or temporary)
        for stage in stages:
            if not args.only or stage.__name__ in args.only:
                stage(check, directory)
    print(f"{check.passed} passed, {check.failed} failed, 0 skipped")
    sys.exit(check.failed > 0)


if __name__ == "__main__":
    main()
