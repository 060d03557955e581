"""Features of array files beyond numbers: attributes of every type, strings, groups, unlimited and empty dimensions, filters, remote stores, large
outputs, hostile files. Their own libraries write them, `tercet` converts them, and their libraries read what it writes."""

import argparse
import contextlib
import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile

import netCDF4
import numpy as np

from array_check import Check, same, same_attr, same_netcdf, values


def tercet(check, *args, code=0):
    run = subprocess.run([check.tercet, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert run.returncode == code, f"exit code {run.returncode}: {run.stderr.strip()[:400]} {run.stdout[:400]}"
    return run


def write_features(path):
    """A NetCDF-4 file with most of what such files have."""
    with netCDF4.Dataset(path, "w") as file:
        file.set_auto_maskandscale(False)
        for number, dtype in enumerate(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]):
            limits = np.finfo(dtype) if dtype[0] == "f" else np.iinfo(dtype)
            file.setncattr(f"scalar_{dtype}", np.array(limits.max, dtype)[()])
            file.setncattr(f"list_{dtype}", np.array([limits.min, 0, limits.max], dtype))
        file.special = np.array([np.nan, np.inf, -np.inf, -0.0])
        file.nan = np.float32(np.nan)
        file.text, file.empty, file.lines = "Größe in m²", "", "a\nb\tc"
        file.setncattr_string("one", "a string of variable length")
        file.setncattr("strings", ["first", "", "drittes ÄÖÜ"])
        file.long = np.arange(3000.0)
        for name, size in [("time", None), ("member", None), ("lat", 3), ("lon", 4), ("none", 0), ("nothing", None), ("strlen", 5)]:
            file.createDimension(name, size)
        time = file.createVariable("time", "i8", ("time",))
        time.units, time.calendar = "days since 2000-02-29", "360_day"
        time[:] = [0, 30, 15]  # not monotonic
        lat = file.createVariable("lat", "f8", ("lat",))
        lat.units, lat[:] = "degrees_north", [10, 30, 20]
        lon = file.createVariable("lon", "f4", ("lon",))
        lon.units, lon[:] = "degrees_east", [350, 0, 10, 20]
        both = file.createVariable("both", "f4", ("time", "member", "lat"), zlib=True, fill_value=np.float32(1e20))
        both[:] = values("f4", (3, 2, 3))
        file.createVariable("scalar", "f8", ())[...] = 42.5
        file.createVariable("text", str, ())[...] = "a scalar string"
        names = file.createVariable("names", str, ("lat", "lon"))
        names[:] = np.array([[f"{i}-ä{j}" * j for j in range(4)] for i in range(3)], object)
        chars = file.createVariable("chars", "S1", ("lat", "strlen"))
        chars[:] = np.array([list("abcde"), list("fg\0\0\0"), list("\0\0\0\0\0")], "S1")
        file.createVariable("empty", "f4", ("none", "lat"))
        file.createVariable("grows", "i4", ("nothing", "lat"))
        missing = file.createVariable("missing", "i4", ("lat", "lon"))
        missing.missing_value = np.array([-1, -2], "i4")
        missing.valid_range = np.array([0, 100], "i4")
        missing.flag_values, missing.flag_meanings = np.array([0, 1], "i4"), "clear cloudy"
        missing[:] = np.arange(12).reshape(3, 4) - 2
        unsigned = file.createVariable("unsigned", "i1", ("lat",))
        unsigned.setncattr("_Unsigned", "true")
        unsigned[:] = [-1, 0, 1]
        crs = file.createVariable("crs", "i4", ())
        crs.grid_mapping_name, crs.straight_vertical_longitude_from_pole = "polar_stereographic", -45.0
        crs[...] = 0
        curved = file.createVariable("curved", "f4", ("lat", "lon"))
        curved.coordinates, curved.grid_mapping, curved.cell_methods = "lat2 lon2", "crs", "area: mean"
        curved[:] = values("f4", (3, 4))
        for name in ["lat2", "lon2"]:
            file.createVariable(name, "f8", ("lat", "lon"))[:] = values("f8", (3, 4), 5)
        square = file.createVariable("square", "f4", ("lat", "lat"))
        square[:] = values("f4", (3, 3))
        for group in ["a", "a/b", "c"]:
            made = file.createGroup(group)
            made.createDimension("x", 2 + len(group))
            made.createVariable("v", "i2", ("x", "lat"))[:] = values("i2", (2 + len(group), 3))
            made.where = group
        file.createGroup("alone").note = "a group without variables"


def netcdf_features(check, directory):
    source = directory / "features.nc"
    write_features(source)

    def strict():
        report = check.convert(source, directory / "features.nc4", "--strict")
        assert report["verified"] and report["changed"] == 0, report
        same_netcdf(source, directory / "features.nc4")
        with netCDF4.Dataset(source) as a, netCDF4.Dataset(directory / "features.nc4") as b:
            for group in ["a", "a/b", "c"]:
                same(a[group]["v"][...].data, b[group]["v"][...].data, group)
                assert a[group].where == b[group].where and len(b[group].dimensions["x"]) == 2 + len(group)
            assert type(b.one) is str and list(b.strings) == ["first", "", "drittes ÄÖÜ"]

    def through(name, *options):
        def run():
            middle, back = directory / f"features.{name}", directory / f"features_{name}.nc4"
            if middle.is_dir():
                shutil.rmtree(middle)
            # Variables without elements have no place in .tet and .tgm files.
            report = check.convert(source, middle, "-f", *options, code=1 if name in ("tet", "tgm") else 0)
            lost = {item["name"]: item for item in report["fidelity"]["items"] if item["fate"] == "not_carried"}
            check.convert(middle, back, "-f")
            with netCDF4.Dataset(source) as a, netCDF4.Dataset(back) as b:
                a.set_auto_maskandscale(False), b.set_auto_maskandscale(False)
                for key, variable in a.variables.items():
                    if key in lost:
                        continue
                    if key in ("chars",) and name == "zarr":
                        same(np.asarray(variable[...]).view("u1"), b[key][...], key)
                        continue
                    other = b[key]
                    if variable.dtype is str:
                        assert np.asarray(variable[...]).tolist() == np.asarray(other[...]).tolist(), key
                    else:
                        same(variable[...], other[...], key)
                    if not (name == "tet" and variable.dtype is str):
                        assert variable.dimensions == other.dimensions, (key, variable.dimensions, other.dimensions)
                    for attr in variable.ncattrs():
                        if name == "tet":
                            same_attr(variable.getncattr(attr), other.getncattr(attr), f"{key}:{attr}")
                        else:
                            assert np.array_equal(variable.getncattr(attr), other.getncattr(attr)), f"{key}:{attr}"
                for attr in a.ncattrs():
                    if name != "zarr":
                        same_attr(a.getncattr(attr), b.getncattr(attr), attr)
                assert all(variable not in b.variables for variable in lost)
            return lost

        return run

    def classic():
        report = tercet(check, "convert", source, directory / "features3.nc", "--to", "cdf5", "--json", "-f", code=1)
        report = json.loads(report.stdout)
        changed = {item["name"]: item.get("detail", "") for item in report["fidelity"]["items"] if item["fate"] == "changed"}
        assert "no longer unlimited" in changed["member"] and "characters" in changed["names"], changed
        with netCDF4.Dataset(source) as a, netCDF4.Dataset(directory / "features3.nc") as b:
            a.set_auto_maskandscale(False), b.set_auto_maskandscale(False)
            for name in ["time", "both", "scalar", "missing", "unsigned", "square", "curved", "crs"]:
                same(a[name][...], b[name][...], name)
            assert b.dimensions["time"].isunlimited() and not b.dimensions["member"].isunlimited()
            assert list(b.list_u8) == list(a.list_u8) and b.text == a.text

    check.case("features: NetCDF-4 output", strict)
    for name in ["tet", "tgm", "zarr", "h5"]:
        check.case(f"features: through .{name}", through(name))
    check.case("features: CDF-5", classic)


def unpacking(check, directory):
    """--unpack: the values of netCDF4's masked arrays."""
    cases = {
        "scale_only": ("i2", {"scale_factor": 0.5}), "offset_only": ("i2", {"add_offset": np.float32(7)}),
        "both": ("i2", {"scale_factor": np.float64(0.01), "add_offset": 273.15}),
        "fill": ("i4", {"_FillValue": np.int32(-99)}), "missing": ("u1", {"missing_value": np.array([3, 4], "u1")}),
        "fill_and_missing": ("f4", {"_FillValue": np.float32(1e20), "missing_value": np.float32(-1)}),
        "unsigned": ("i1", {"_Unsigned": "true", "scale_factor": 0.1}),
        "range": ("i2", {"valid_range": np.array([0, 5], "i2"), "scale_factor": 2.0}),
        "nan_fill": ("f8", {"_FillValue": np.nan}), "plain": ("f4", {}), "whole": ("i8", {}),
    }
    source = directory / "packed_features.nc"
    with netCDF4.Dataset(source, "w") as file:
        file.createDimension("x", 12)
        for name, (dtype, attrs) in cases.items():
            fill = attrs.get("_FillValue")
            variable = file.createVariable(name, dtype, ("x",), **({"fill_value": fill} if fill is not None else {}))
            variable.set_auto_maskandscale(False)
            variable.setncatts({key: value for key, value in attrs.items() if key != "_FillValue"})
            data = np.arange(12).astype(dtype)
            if fill is not None:
                data[::5] = fill
            if name == "fill_and_missing":
                data[1] = -1
            if name == "unsigned":
                data[3:6] = [-1, -2, -128]
            variable[:] = data

    def run():
        for target in ["unpacked.nc4", "unpacked.tet"]:
            check.convert(source, directory / target, "--unpack", "-f")
        check.convert(directory / "unpacked.tet", directory / "unpacked_back.nc4", "-f")
        for path in ["unpacked.nc4", "unpacked_back.nc4"]:
            with netCDF4.Dataset(source) as a, netCDF4.Dataset(directory / path) as b:
                for name in cases:
                    left, right = a[name][:], b[name][:]
                    assert (np.ma.getmaskarray(left) == np.ma.getmaskarray(np.ma.masked_invalid(right))).all(), (path, name, left, right)
                    where = ~np.ma.getmaskarray(left)
                    assert np.allclose(left.data[where].astype("f8"), right.data[where].astype("f8"), rtol=1e-6), (path, name, left, right)
                    assert not {"scale_factor", "add_offset"} & set(b[name].ncattrs()), name

    check.case("unpacked values", run)


def unreadable(check, directory):
    """What has no counterpart is named; the rest is converted."""
    import h5py
    source = directory / "odd_types.h5"
    with h5py.File(source, "w") as file:
        file["good"] = np.arange(6.0)
        file["compound"] = np.zeros(3, [("a", "i4"), ("b", "f8")])
        file["opaque"] = np.zeros(3, "V5")
        file.create_dataset("sequences", (2,), dtype=h5py.vlen_dtype("i4"))
        file["enum"] = np.array([0, 1, 2], h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 2}, basetype="i1"))
        file["reference"] = file["good"].ref
        file["array"] = np.zeros(2, np.dtype(("f4", (3,))))
        file["nested"] = np.zeros(2, [("m", "f4", (2,))])
        file["fixed"] = np.array([b"ab", b"c", b""], "S4")
        file["long_double"] = np.zeros(2, np.longdouble)
        file["good"].attrs["complex"] = 1j
        file["good"].attrs["units"] = "m"
        file["soft"] = h5py.SoftLink("/nowhere")
        file["outer"] = h5py.ExternalLink("other.h5", "/v")
        loop = file.create_group("loop")
        loop["again"] = h5py.SoftLink("/loop")
        loop["self"] = h5py.SoftLink("/loop/self")
        loop["hard"] = loop
        file["alias"] = h5py.SoftLink("/good")

    def run():
        report = json.loads(tercet(check, "convert", source, directory / "odd_types.tet", "--json", "-f", code=1).stdout)
        lost = {item["name"] for item in report["fidelity"]["items"] if item["fate"] == "not_carried"}
        assert {"compound", "opaque", "sequences", "reference", "nested", "soft", "outer", "loop/self", "good:complex"} <= lost, lost
        tercet(check, "convert", source, directory / "no.tet", "--strict", code=1)
        assert not (directory / "no.tet").exists()
        check.convert(directory / "odd_types.tet", directory / "odd_types.npz", "-f")
        with np.load(directory / "odd_types.npz") as back:
            same(back["good"], np.arange(6.0), "good"), same(back["alias"], np.arange(6.0), "alias")
            same(back["enum"], np.array([0, 1, 2], "i1"), "enum")

    check.case("types without a counterpart", run)

    data = {name: np.arange(4000.0).reshape(40, 100) + number for number, name in enumerate(["a", "b", "c"])}
    with h5py.File(directory / "chunks.h5", "w") as file:
        for name, values_of in data.items():
            file.create_dataset(name, data=values_of, chunks=(10, 100), compression="gzip", fletcher32=True)
    for suffix in ["zarr", "tet", "tgm"]:
        check.convert(directory / "chunks.h5", directory / f"chunks.{suffix}", "-f", *(["--zstd", "3"] if suffix != "zarr" else []))

    def damage(path):
        """Damages the values of `b`."""
        if path.is_dir():
            [chunk, *_] = [chunk for chunk in sorted((path / "b").rglob("*")) if chunk.is_file() and chunk.name != "zarr.json"]
            chunk.write_bytes(chunk.read_bytes()[:-20])
            return
        raw = bytearray(path.read_bytes())
        if path.suffix == ".h5":
            with h5py.File(path) as file:
                at = file["b"].id.get_chunk_info(1).byte_offset
        else:
            # The values are in the order of the variables, and nearly all of the file.
            at = len(raw) // 2
        raw[at + 40] ^= 0xff
        path.write_bytes(raw)

    for suffix in ["h5", "zarr", "tet", "tgm"]:
        def damaged():
            path = directory / f"one_damaged.{suffix}"
            (shutil.copytree if suffix == "zarr" else shutil.copy)(directory / f"chunks.{suffix}", path)
            damage(path)
            for out, options in [("npz", []), ("npz", ["--no-verify"]), ("nc4", []), ("tgm", [])]:
                out = directory / f"one_damaged_out.{out}"
                report = check.convert(path, out, "-f", *options, code=1)
                [item] = [item for item in report["fidelity"]["items"] if item["subject"] == "variable" and item["fate"] == "not_carried"]
                assert item["name"] == "b" and item["detail"].startswith("unreadable: "), item
                check.convert(out, directory / "one_damaged_back.npz", "-f")
                with np.load(directory / "one_damaged_back.npz") as back:
                    assert "b" not in back
                    same(back["a"], data["a"], "a"), same(back["c"], data["c"], "c")
            for options in [["--strict"], ["--var", "b"]]:
                run = subprocess.run([check.tercet, "convert", str(path), str(directory / "no.npz"), *options], capture_output=True, text=True)
                assert run.returncode in (4, 5) and not (directory / "no.npz").exists(), run

        check.case(f"a damaged variable: .{suffix}", damaged)


def zarr_features(check, directory):
    import numcodecs
    import zarr
    from zarr.codecs import BytesCodec, GzipCodec, TransposeCodec, ZstdCodec
    number = np.round(values("f8", (9, 10), 2), 1)
    cases = {
        "delta": ("i4", [numcodecs.Delta("<i4")]), "delta_small": ("i4", [numcodecs.Delta("<i4", astype="<i2")]),
        "delta_wraps": ("u1", [numcodecs.Delta("|u1")]), "delta_float": ("f8", [numcodecs.Delta("<f8")]),
        "scale": ("f8", [numcodecs.FixedScaleOffset(offset=-4000, scale=10, dtype="<f8", astype="<u2")]),
        "quantize": ("f8", [numcodecs.Quantize(digits=1, dtype="<f8")]), "round": ("f4", [numcodecs.BitRound(keepbits=8)]),
        "bits": ("bool", [numcodecs.PackBits()]), "astype": ("i8", [numcodecs.AsType(encode_dtype="<i4", decode_dtype="<i8")]),
        "shuffle": ("f8", [numcodecs.Shuffle(8)]), "crc32": ("f4", [numcodecs.CRC32()]), "adler32": ("f4", [numcodecs.Adler32()]),
        "fletcher32": ("f4", [numcodecs.Fletcher32()]), "two": ("i4", [numcodecs.Delta("<i4"), numcodecs.Shuffle(4)]),
        "big": (">i4", [numcodecs.Delta(">i4")]),
    }
    for (name, (dtype, filters)), order in [(case, order) for case in cases.items() for order in "CF"]:
        source = directory / f"filter_{name}_{order}.zarr"
        data = (number % 100 if name in ("delta_small", "delta_wraps") else number).astype(dtype) if dtype != "bool" else number > 0
        array = zarr.create_array(str(source), shape=data.shape, chunks=(4, 6), dtype=dtype, zarr_format=2, filters=filters, order=order,
                                  compressors=numcodecs.Zlib(), fill_value=0)
        array[...] = data

        def run():
            check.convert(source, directory / "filtered.npz", "-f")
            with np.load(directory / "filtered.npz") as back:
                same(back["data"], zarr.open_array(str(source), mode="r")[...], name)

        check.case(f"zarr2 filter {name} {order}", run)
    texts = np.array([["a", "bcd", ""], ["ÄÖ", "x" * 5, "日本"]])
    kinds = {"utf32": texts, "bytes": np.array([[b"a", b"bcd", b""], [b"", b"xy", b"z"]]), "days": np.array([["2020-02-29", "NaT", "1969-12-31"]] * 2, "M8[D]"),
             "nanoseconds": np.array([[1, -5, 2**62]] * 2).view("M8[ns]"), "hours": np.array([[5, -5, 0]] * 2, "m8[h]"),
             "variable": texts.astype(object)}
    for (kind, data), version, shards in [(item, version, shards) for item in kinds.items() for version, shards in [(2, None), (3, None), (3, (2, 4))]]:
        source = directory / f"text_{kind}_{version}_{bool(shards)}.zarr"
        group = zarr.create_group(str(source), zarr_format=version)
        dtype = "string" if kind == "variable" and version == 3 else zarr.dtype.VariableLengthUTF8() if kind == "variable" else data.dtype
        array = group.create_array("v", shape=(2, 3), chunks=(2, 2), dtype=dtype, **({"shards": shards} if shards else {}))
        array[...] = data

        def run():
            tercet(check, "convert", source, directory / "texts.nc4", "-f")
            with netCDF4.Dataset(directory / "texts.nc4") as file:
                file.set_auto_maskandscale(False)
                if data.dtype.kind in "Mm":
                    same(file["v"][...], data.astype("i8"), kind)
                    assert file["v"].units.startswith({"days": "days since", "nanoseconds": "nanoseconds since", "hours": "hours"}[kind])
                else:
                    expected = [[text.decode() if isinstance(text, bytes) else str(text) for text in row] for row in data]
                    assert file["v"][...].tolist() == expected, (kind, file["v"][...].tolist())

        check.case(f"zarr{version} {kind}{' sharded' if shards else ''}", run)

    def version_3():
        source = directory / "codecs3.zarr"
        group = zarr.create_group(str(source))
        data = values("i4", (9, 10), 8)
        for name, options in {
            "transposed": {"filters": [TransposeCodec(order=(1, 0))]}, "big": {"serializer": BytesCodec(endian="big")},
            "both": {"filters": [TransposeCodec(order=(1, 0))], "serializer": BytesCodec(endian="big"), "compressors": [GzipCodec(), ZstdCodec()]},
            "sharded": {"filters": [TransposeCodec(order=(1, 0))], "shards": (8, 12)},
        }.items():
            group.create_array(name, shape=data.shape, chunks=(4, 6), dtype="i4", fill_value=7, **options)[:5] = data[:5]
        expected = data.copy()
        expected[5:] = 7
        check.convert(source, directory / "codecs3.npz", "-f")
        with np.load(directory / "codecs3.npz") as back:
            for name in group:
                same(back[name], expected, name)

    check.case("zarr3 transposed and big-endian", version_3)

    def xarray_stores():
        import xarray
        data = xarray.Dataset(
            {"t": (("time", "station"), values("f4", (4, 3)), {"units": "K"}), "p": (("time",), np.array([1.5, np.nan, 2, 3]))},
            coords={"time": np.array(["2024-01-01", "2024-01-02", "2024-01-03", "2024-02-01"], "M8[ns]"), "station": ["Köln", "a", ""]}, attrs={"a": 1})
        for version in [2, 3]:
            source = directory / f"xarray{version}.zarr"
            data.to_zarr(source, zarr_format=version, mode="w", encoding={"p": {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}})
            tercet(check, "convert", source, directory / "xarray.nc4", "-f")
            with xarray.open_dataset(directory / "xarray.nc4") as back:
                np.testing.assert_array_equal(back["t"], data["t"])
                np.testing.assert_array_equal(back["p"], data["p"])
                assert (back["time"].values == data["time"].values).all() and back["station"].values.tolist() == ["Köln", "a", ""]

    check.case("stores of xarray", xarray_stores)


class Handler(http.server.SimpleHTTPRequestHandler):
    """A web server with range requests."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.paths.append(self.path)
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        path = self.translate_path(self.path)
        if not os.path.isfile(path):
            return self.send_error(404)
        data = pathlib.Path(path).read_bytes()
        if not found:
            self.send_response(200)
        else:
            start, end = int(found[1]), min(int(found[2] or len(data)), len(data) - 1)
            if start >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end}/{len(data)}")
            data = data[start : end + 1]
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(data)


@contextlib.contextmanager
def serve(directory):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(directory)))
    server.paths = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


def remote(check, directory):
    import zarr
    data = values("f4", (4, 256, 256), 6)
    for version in [2, 3]:
        store = directory / f"remote{version}.zarr"
        group = zarr.create_group(str(store), zarr_format=version, attributes={"title": "remote"})
        names = {"dimension_names": ["t", "y", "x"]} if version == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["t", "y", "x"]}}
        group.create_array("a b/v", shape=data.shape, chunks=(1, 256, 256), dtype="f4", fill_value=3, **names)[:3] = data[:3]
        zarr.consolidate_metadata(str(store), zarr_format=version)
        plain = directory / f"plain{version}.zarr"
        zarr.create_group(str(plain), zarr_format=version).create_array("v", shape=(3,), dtype="i4")
        single = zarr.create_array(str(directory / f"single{version}.zarr"), shape=(5,), dtype="i4", zarr_format=version)
        single[...] = np.arange(5)
    expected = data.copy()
    expected[3:] = 3
    with netCDF4.Dataset(directory / "remote.nc", "w") as file, netCDF4.Dataset(directory / "remote3.nc", "w", format="NETCDF3_64BIT_OFFSET") as old:
        for out, options in [(file, {"zlib": True, "chunksizes": (1, 256, 256)}), (old, {})]:
            for name, size in zip("tyx", data.shape):
                out.createDimension(name, size)
            out.createVariable("v", "f4", ("t", "y", "x"), **options)[:] = data
    np.save(directory / "remote.npy", data)
    with serve(directory) as (server, url):
        def stores():
            for version in [2, 3]:
                server.paths.clear()
                check.convert(f"{url}/remote{version}.zarr", directory / "from_remote.npz", "-f")
                with np.load(directory / "from_remote.npz") as back:
                    same(back["a b/v"], expected, "remote store")
                chunks = [path for path in server.paths if path.endswith(("0/0", "0.0"))]
                # Once for the output and once for its verification.
                assert len(chunks) <= 8, server.paths
                server.paths.clear()
                check.convert(f"{url}/remote{version}.zarr/", directory / "from_remote.npz", "-f", "--isel", "t=1", "--no-verify")
                assert sum("/v/" in path and not path.endswith(".json") for path in server.paths) == 1, server.paths
                check.convert(f"{url}/single{version}.zarr", directory / "from_remote.npy", "-f")
                same(np.load(directory / "from_remote.npy"), np.arange(5, dtype="i4"), "single")
                hashes = tercet(check, "hash", f"{url}/remote{version}.zarr", directory / f"remote{version}.zarr").stdout.split()
                assert hashes[0] == hashes[2]
                tercet(check, "diff", f"{url}/remote{version}.zarr", directory / f"remote{version}.zarr")
                run = subprocess.run([check.tercet, "convert", f"{url}/plain{version}.zarr", str(directory / "x.npz")], capture_output=True, text=True)
                assert run.returncode != 0 and "consolidated" in run.stderr, run
            run = subprocess.run([check.tercet, "convert", f"{url}/nothing.zarr", str(directory / "x.npz")], capture_output=True, text=True)
            assert run.returncode != 0 and "no metadata" in run.stderr and not (directory / "x.npz").exists(), run

        def files():
            for name in ["remote.nc", "remote3.nc", "remote.npy"]:
                server.paths.clear()
                check.convert(f"{url}/{name}", directory / "from_remote.npz", "-f")
                with np.load(directory / "from_remote.npz") as back:
                    [array] = back.values()
                    same(array, data, name)
                check.convert(f"{url}/{name}", directory / "from_remote.npz", "-f", "--isel", "t=2" if "npy" not in name else "dim_0=2")

        def grib():
            import eccodes
            message = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
            eccodes.codes_set_values(message, 280 + np.sin(np.arange(eccodes.codes_get(message, "numberOfDataPoints"))))
            with open(directory / "remote.grib2", "wb") as file:
                for step in [0, 6]:
                    eccodes.codes_set(message, "step", step)
                    eccodes.codes_write(message, file)
            eccodes.codes_release(message)
            check.convert(f"{url}/remote.grib2", directory / "from_remote.npz", "-f")
            check.convert(directory / "remote.grib2", directory / "from_local.npz", "-f")
            tercet(check, "diff", directory / "from_remote.npz", directory / "from_local.npz")

        def pointers():
            for suffix in ["tet", "tgm"]:
                check.convert(directory / "remote.nc", directory / f"remote.{suffix}", "-f")
            pointers = ["remote.nc#v", "remote.npy", "remote.tet#v", "remote.tgm#0.0", "remote3.zarr#a b/v"]
            for pointer in pointers:
                got = json.loads(tercet(check, "get", "--allow-outside", f"{url}/{pointer}", "--json", "-n", "3").stdout)
                same(np.array(got["values"], "f4"), data.ravel()[:3], pointer)
                run = subprocess.run([check.tercet, "get", f"{url}/{pointer}"], capture_output=True, text=True)
                assert run.returncode == 8 and "allow-outside" in run.stderr, run
            run = subprocess.run([check.tercet, "get", "--allow-outside", f"{url}/remote.tet#w"], capture_output=True, text=True)
            assert run.returncode == 8 and "no variable `w`" in run.stderr, run

        check.case("remote Zarr stores", stores)
        check.case("remote files", files)
        check.case("remote GRIB", grib)
        check.case("remote pointers", pointers)


def large_outputs(check, directory):
    """NetCDF-4 and HDF5 outputs are written chunk by chunk: several levels of the chunk index, edges, unlimited dimensions, bounded memory."""
    import h5py
    rows, columns = 5003, 67
    data = values("f4", (rows, columns), 4)
    source = directory / "large.nc"
    with netCDF4.Dataset(source, "w") as file:
        file.createDimension("time", None), file.createDimension("x", columns), file.createDimension("y", 1003)
        variable = file.createVariable("v", "f4", ("time", "x"), fill_value=np.float32(-5), chunksizes=(100, 67))
        variable[:] = data
        file.createVariable("plain", "f8", ("y", "x"))[:] = values("f8", (1003, columns), 5)

    def run():
        for chunk in ["time=1,x=67", "time=7,x=10", "time=5003,x=67", "time=10000,x=100"]:
            report = check.convert(source, directory / "large.nc4", "-f", "--chunk", chunk, "--strict")
            assert report["verified"]
            with h5py.File(directory / "large.nc4") as file:
                same(file["v"][...], data, "v")
                same(file["plain"][...], values("f8", (1003, columns), 5), "plain")
                assert file["v"].chunks[1] <= 67 and file["v"].maxshape == (None, columns) and file["v"].fillvalue == -5
        check.convert(source, directory / "large_none.h5", "-f", "--zstd", "0")
        with h5py.File(directory / "large_none.h5") as file:
            same(file["v"][...], data, "v")
            assert file["v"].compression is None and file["plain"].chunks is None

    def appended():
        check.convert(source, directory / "grown.nc4", "-f", "--chunk", "time=1000")
        with h5py.File(directory / "grown.nc4", "a") as file:
            file["v"].resize(rows + 1500, axis=0)
            file["v"][rows + 1400] = np.arange(columns)
            file["v"].attrs["note"] = "longer"
        with netCDF4.Dataset(directory / "grown.nc4") as file:
            found = file["v"][:]
            same(found[:rows].data, data, "kept")
            assert found[rows : rows + 1400].mask.all() and (found[rows + 1400].data == np.arange(columns)).all()

    def deterministic():
        for jobs in ["1", "4"]:
            check.convert(source, directory / f"jobs{jobs}.nc4", "-f", "--jobs", jobs, "--chunk", "time=50")
        assert (directory / "jobs1.nc4").read_bytes() == (directory / "jobs4.nc4").read_bytes()

    def bounded():
        shape = (400, 512, 1024)
        np.lib.format.open_memmap(directory / "zeros.npy", mode="w+", dtype="f4", shape=shape)
        for target in ["zeros.nc4", "zeros.h5"]:
            command = [check.tercet, "convert", str(directory / "zeros.npy"), str(directory / target), "-f", "--no-verify", "-q"]
            run = subprocess.run(["bash", "-c", 'ulimit -v 3000000; ulimit -d 700000; exec "$@"', "bash", *command], capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
            with h5py.File(directory / target) as file:
                [variable] = [item for item in file.values() if item.ndim == 3]
                assert variable.shape == shape and not variable[399].any()
            os.remove(directory / target)
        os.remove(directory / "zeros.npy")

    check.case("chunks of NetCDF-4 output", run)
    check.case("NetCDF-4 output grows", appended)
    check.case("NetCDF-4 output is deterministic", deterministic)
    check.case("NetCDF-4 output in bounded memory", bounded)


def messages(check, directory):
    """Several NetCDF files in one .tgm, round trips, and messages that lack fields."""
    for number in range(3):
        with netCDF4.Dataset(directory / f"part{number}.nc", "w") as file:
            file.createDimension("time", None), file.createDimension("lat", 4)
            time = file.createVariable("time", "i4", ("time",))
            time.units, time[:] = f"hours since 2024-01-0{number + 1}", [0, 6]
            lat = file.createVariable("lat", "f4", ("lat",))
            lat.units, lat[:] = "degrees_north", [10, 20, 30, 40]
            variable = file.createVariable("t", "f4", ("time", "lat"), fill_value=np.float32(-9))
            variable.units, variable[:] = "K", values("f4", (2, 4), number)

    def parts():
        inputs = [directory / f"part{number}.nc" for number in range(3)]
        tgm = directory / "parts.tgm"
        for by, count in [("file", 3), ("record", 9)]:
            tercet(check, "tgm", "convert-netcdf", *inputs, "-o", tgm, "--split-by", by, "--force")
            listed = json.loads(tercet(check, "info", "--json", tgm).stdout)
            assert str(count) in json.dumps(listed), listed
            import tensogram
            with tensogram.TensogramFile.open(str(tgm)) as file:
                assert file.message_count() == count
        check.convert(tgm, directory / "parts.tet", "-f")
        check.convert(directory / "parts.tet", directory / "parts.nc4", "-f")
        with netCDF4.Dataset(directory / "parts.nc4") as file:
            all_values = np.concatenate([np.ma.filled(np.ma.asarray(file[name][:]), np.nan).ravel() for name in file.variables if file[name].dtype == "f4"])
            for number in range(3):
                assert np.isin(values("f4", (2, 4), number).ravel(), all_values).all(), f"part {number}"

    def trip():
        tgm, tet, again = directory / "trip.tgm", directory / "trip.tet", directory / "trip_again.tgm"
        check.convert(directory / "part0.nc", tgm, "-f")
        check.convert(tgm, tet, "-f", "--strict")
        check.convert(tet, again, "-f", "--strict")
        tercet(check, "diff", tgm, again)
        assert tercet(check, "hash", tgm).stdout.split()[0] == tercet(check, "hash", again).stdout.split()[0]

    check.case("several NetCDF files in one .tgm", parts)
    check.case(".tgm to .tet to .tgm", trip)


def comparisons(check, directory):
    """`hash` and `diff`: exit codes, and what equal contents are."""
    source = directory / "compared.nc"
    with netCDF4.Dataset(source, "w") as file:
        file.createDimension("x", 1000)
        file.createVariable("v", "f8", ("x",))[:] = np.arange(1000.0)
        file["v"].units = "m"
    for suffix in ["tet", "tgm", "zarr", "nc4", "h5", "npz"]:
        check.convert(source, directory / f"compared.{suffix}", "-f")

    def hashes():
        paths = [directory / f"compared.{suffix}" for suffix in ["nc", "tet", "tgm", "zarr", "nc4", "h5"]]
        lines = tercet(check, "hash", *paths).stdout.splitlines()
        assert len({line.split()[0] for line in lines}) == 1, lines
        data = bytearray((directory / "compared.tgm").read_bytes())
        data[len(data) // 2] ^= 1
        (directory / "damaged.tgm").write_bytes(data)
        run = subprocess.run([check.tercet, "hash", str(directory / "damaged.tgm"), str(source)], capture_output=True, text=True)
        assert run.returncode >= 2 and str(source) in run.stdout and "damaged.tgm" in run.stderr, run
        run = subprocess.run([check.tercet, "hash", str(directory / "damaged.tgm")], capture_output=True, text=True)
        assert run.returncode >= 2 and not run.stdout, run

    def differences():
        for suffix in ["tet", "tgm", "zarr", "nc4", "h5"]:
            tercet(check, "diff", source, directory / f"compared.{suffix}")
        with netCDF4.Dataset(directory / "changed.nc", "w") as file:
            file.createDimension("x", 1000)
            data = np.arange(1000.0)
            data[7] += 1e-3
            file.createVariable("v", "f8", ("x",))[:] = data
            file["v"].units = "cm"
        run = tercet(check, "diff", source, directory / "changed.nc", "--json", code=1)
        found = json.loads(run.stdout)["differences"]
        assert [item["aspect"] for item in found] == ["metadata", "values"] and found[1]["examples"][0]["position"] == [7], found
        tercet(check, "diff", source, directory / "changed.nc", "--no-metadata", "--atol", "0.01")
        tercet(check, "diff", source, directory / "changed.nc", "--no-metadata", "--rtol", "1e-3")
        tercet(check, "diff", source, directory / "changed.nc", "--no-metadata", "--rtol", "1e-5", code=1)
        tercet(check, "diff", source, directory / "nothing.nc", code=3)

    check.case("hashes", hashes)
    check.case("differences", differences)


def catalogs(check, directory):
    """Catalogs of containers of every format: pointers, refresh, and what is outside."""
    root = directory / "catalog"
    root.mkdir()
    for suffix in ["nc", "tet", "tgm", "zarr", "nc4", "npz"]:
        path = directory / f"compared.{suffix}"
        (shutil.copytree if path.is_dir() else shutil.copy)(path, root / path.name)
    (root / "broken.nc").write_bytes(b"CDF\x01 and then nothing")
    # Files are found by their first bytes; text and indexes are not.
    for name in ["nc", "tet", "tgm", "nc4"]:
        (root / "unnamed").mkdir(exist_ok=True)
        shutil.copy(directory / f"compared.{name}", root / "unnamed" / f"{name}.2024")
    shutil.copy(directory / "compared.tet", root / "unnamed" / "without_extension")
    (root / "unnamed" / "notes").write_text("1,2\n3,4\n")
    shutil.copy(directory / "compared.tet", root / "unnamed" / "beside.idx")

    def run():
        catalog = root / "all.tatami"
        report = json.loads(tercet(check, "catalog", root, "-o", catalog, "--json", code=1).stdout)
        assert report["rows"] == 11 and len(report["problems"]) == 1, report
        found = json.loads(tercet(check, "find", catalog, "v", "--where", "max = 999", "--json").stdout)
        assert len(found) == 11, found
        for row in found:
            out = directory / "got.npz"
            tercet(check, "get", "--catalog", catalog, row["pointer"], "-o", out, "--force")
            with np.load(out) as back:
                same(back["v"] if "v" in back else next(iter(back.values())), np.arange(1000.0), row["pointer"])
        (root / "broken.nc").unlink()
        os.remove(root / "compared.nc4")
        with netCDF4.Dataset(root / "compared.nc", "a") as file:
            file["v"][0] = -7
        report = json.loads(tercet(check, "catalog", "--refresh", root, "-o", catalog, "--json").stdout)
        assert (report["rows"], report["read"], report["unchanged"], report["removed"]) == (10, 1, 9, 1), report
        [row] = json.loads(tercet(check, "find", catalog, "--where", "min = -7", "--json").stdout)
        assert row["pointer"] == "compared.nc#v"
        (directory / "link_target.tet").write_bytes((root / "compared.tet").read_bytes())
        os.symlink(directory / "link_target.tet", root / "link.tet")
        for pointer in ["../compared.tet#v", str(directory / "compared.tet") + "#v", "link.tet#v", "http://127.0.0.1:9/x.tet#v"]:
            run = subprocess.run([check.tercet, "get", "--catalog", str(catalog), pointer], capture_output=True, text=True)
            assert run.returncode == 8 and "allow-outside" in run.stderr, (pointer, run)
        for pointer in ["../compared.tet#v", "link.tet#v"]:
            tercet(check, "get", "--catalog", catalog, "--allow-outside", pointer)

    check.case("catalogs", run)


def narrowed(check, directory):
    """The error of narrower types is measured."""
    source = directory / "narrowed.npy"
    data = values("f8", (30, 20), 8)
    np.save(source, data)
    for dtype, options in [("f4", []), ("f2", []), ("f4", ["--no-verify"])]:
        def run():
            report = check.convert(source, directory / "narrowed_out.npy", "-f", "--dtype", dtype.replace("f4", "f32").replace("f2", "f16"), *options)
            [item] = report["fidelity"]["items"]
            error = np.abs(data - data.astype(dtype)).max()
            assert item["fate"] == "changed" and item["max_error"] == error, (item, error)

        check.case(f"narrowed to {dtype} {' '.join(options)}", run)


def options(check, directory):
    """Options that a format cannot follow are refused, not ignored."""
    source = directory / "compared.tet"
    for target, given in [("o.nc", ["--zstd", "3"]), ("o.npy", ["--chunk", "x=3"]), ("o.nc", ["--max-error", "1"]), ("o.zarr", ["--bits", "4"]),
                          ("o.tet", ["--packing", "simple"]), ("o.tet", ["--split-by", "file"]), ("o.nc", ["--split-axis", "x"]), ("o.tgm", ["--chunk", "x=3"]),
                          ("o.nc4", ["--zstd", "3"]), ("o.tet", ["--chunk", "nothing=3"]), ("o.tet", ["--var", "nothing"]), ("o.tet", ["--rename", "nothing=n"]),
                          ("o.tet", ["--dtype", "nothing=f4"]), ("o.tet", ["--max-error", "nothing=1"]), ("o.tet", ["--sel", "nothing=1"]), ("o.tet", ["--isel", "x=5000"]),
                          ("o.tatami", ["--var", "v"])]:
        def run():
            run = subprocess.run([check.tercet, "convert", str(source), str(directory / target), *given], capture_output=True, text=True)
            assert run.returncode in (2, 8) and not (directory / target).exists(), run

        check.case(f"refused: {target} {' '.join(given)}", run)

    def labels():
        run = subprocess.run([check.tercet, "convert", str(directory / "part0.nc"), str(directory / "o.tet"), "--sel", "lat=11"], capture_output=True, text=True)
        assert run.returncode == 8 and "axis `lat`: no label `11`" in run.stderr and "dataset" not in run.stderr, run

    check.case("refused: a label that does not exist", labels)


def hostile(check, directory):
    """Crafted files: errors within limits, and nothing outside of the target."""
    import h5py
    import zarr
    outside = directory / "outside"
    meta = {"zarr_format": 3, "node_type": "array", "shape": [1 << 40], "data_type": "float32", "fill_value": 0, "attributes": {},
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1 << 30]}}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}}
    shard = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1 << 10], "codecs": meta["codecs"], "index_codecs": meta["codecs"]}}
    sizes = {"shape": {"shape": [1 << 62, 1 << 62], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1]}}}, "chunk": {"shape": [1 << 62]},
             "zero": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0]}}}, "negative": {"shape": [-1]}, "rank": {"shape": [1] * 300},
             "shard": {"shape": [1 << 30], "codecs": [shard]}, "deep": {"codecs": [functools.reduce(lambda inner, _: {"name": "sharding_indexed", "configuration": {
                 "chunk_shape": [1], "codecs": [inner], "index_codecs": []}}, range(200), shard)]},
             "order": {"codecs": [{"name": "transpose", "configuration": {"order": [5]}}, *meta["codecs"]]}}

    def limited(*command):
        run = subprocess.run(["bash", "-c", 'ulimit -v 8000000; exec "$@"', "bash", check.tercet, *map(str, command)], capture_output=True, text=True, timeout=60)
        assert 1 <= run.returncode <= 8 and "panicked" not in run.stderr and "reader of this format failed" not in run.stderr, run
        return run

    for name, change in sizes.items():
        store = directory / f"hostile_{name}.zarr"
        (store / "c").mkdir(parents=True)
        (store / "zarr.json").write_text(json.dumps(meta | change))
        (store / "c/0").write_bytes(b"\0" * (1 << 20 if name == "shard" else 16))

        def run():
            limited("convert", store, directory / "hostile.tet", "-f")
            limited("hash", store)

        check.case(f"hostile Zarr {name}", run)

    def names():
        for name in ["../escaped", "a/../../escaped", "/escaped", "..\\escaped", "c:escaped"]:
            path = directory / "names.zarr.zip"
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("zarr.json", json.dumps({"zarr_format": 3, "node_type": "group"}))
                archive.writestr(f"{name}/zarr.json", json.dumps(meta | {"shape": [4], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}}))
            for target in ["names_out.zarr", "names_out.npz", "names_out.tet"]:
                subprocess.run([check.tercet, "convert", str(path), str(directory / target), "-f"], capture_output=True, text=True, timeout=60)
        with h5py.File(directory / "names.h5", "w") as file:
            for name in ["..", "...", ".hidden", "a\\b"]:
                file.create_group(name)["v"] = np.arange(3)
        tercet_run = subprocess.run([check.tercet, "convert", str(directory / "names.h5"), str(directory / "names_h5.zarr")], capture_output=True, text=True)
        assert tercet_run.returncode in (0, 1, 8), tercet_run
        escaped = [path for root in [directory, directory.parent] for path in root.glob("*escaped*")]
        assert not escaped and not outside.exists(), escaped

    def keys():
        # A consolidated node that leads outside of the store.
        store = directory / "keys.zarr"
        store.mkdir()
        node = meta | {"shape": [4], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}}
        (store / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {},
            "consolidated_metadata": {"kind": "inline", "metadata": {"../secret": node, "a//b": node}}}))
        with serve(directory) as (server, url):
            limited("convert", f"{url}/keys.zarr", directory / "keys.npz", "-f")
            assert not any("secret" in path for path in server.paths), server.paths

    def flipped():
        rng = np.random.default_rng(3)
        files = ["features.nc", "features.nc4", "features3.nc", "features.h5", "large.nc4", "odd_types.h5", "compared.npz", "compared.tet", "compared.tgm"]
        for name in files:
            data = (directory / name).read_bytes()
            for number in range(14):
                damaged = bytearray(data[: rng.integers(0, len(data))] if number < 4 else data)
                for place in rng.integers(0, len(damaged) or 1, 4 if number % 2 else 1):
                    if damaged:
                        damaged[place if number % 3 else place % 2048 % len(damaged)] = rng.integers(0, 256)
                (directory / "flipped").write_bytes(damaged)
                run = subprocess.run(["bash", "-c", 'ulimit -v 8000000; exec "$@"', "bash", check.tercet, "convert", str(directory / "flipped"),
                                      str(directory / "flipped.tet"), "-f", "-q"], capture_output=True, text=True, timeout=60)
                assert 0 <= run.returncode <= 8 and "panicked" not in run.stderr, (name, number, run)

    check.case("names that leave the target", names)
    check.case("keys that leave a remote store", keys)
    check.case("flipped bytes", flipped)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tercet", required=True)
    parser.add_argument("--keep", help="directory for the files")
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    check = Check(os.path.abspath(args.tercet))
    stages = [netcdf_features, unpacking, unreadable, zarr_features, remote, large_outputs, messages, comparisons, catalogs, narrowed, options, hostile]
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(args.keep or temporary)
        for stage in stages:
            if not args.only or stage.__name__ in args.only:
                stage(check, directory)
    print(f"{check.passed} passed, {check.failed} failed, 0 skipped")
    sys.exit(check.failed > 0)


if __name__ == "__main__":
    main()
