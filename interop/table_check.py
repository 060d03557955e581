"""Tables of pyarrow, DuckDB and polars through `tatami convert` and back.

usage: table_check.py --tatami PROGRAM

Each program writes tables with many options (types, compressions, page kinds, row groups); `tatami convert` converts them to
.tatami and back to Parquet, an Arrow file and an Arrow stream; pyarrow compares both ends bit for bit, types included. DuckDB and
polars read the output of Tercet.

The last line is `N passed, N failed, N skipped`.
"""

import argparse
import collections
import datetime
import decimal
import json
import os
import subprocess
import sys
import tempfile

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

ROWS = 5_000


class Tally:
    """Counts results and prints failures at once."""

    def __init__(self):
        self.counts = collections.Counter()

    def check(self, file, what, ok, why=""):
        self.counts["passed" if ok else "failed"] += 1
        if not ok:
            print(f"failed: {file}: {what}: {why}")


def with_nulls(values, every=7):
    return [None if every and row % every == 3 else value for row, value in enumerate(values)]


def floats(kind, bits):
    """Every kind of number, NaN with payloads, and both zeros."""
    odd = {np.float32: [0x7FC00000, 0xFF800001, 0x80000000, 0, 0x7F800000, 1], np.float16: [0x7E00, 0xFC01, 0x8000, 0, 1]}
    odd[np.float64] = [0x7FF8000000000000, 0xFFF0000000000001, 1 << 63, 0, 0x7FF0000000000000, 1]
    rng = np.random.default_rng(7)
    out = rng.integers(0, np.iinfo(bits).max, ROWS, dtype=bits, endpoint=True)
    out[: 40 * len(odd[kind])] = np.array(odd[kind] * 40, dtype=bits)
    mask = np.arange(ROWS) % 11 == 5
    return pa.array(out.view(kind), mask=mask)


def all_types():
    """A column of every supported type."""
    rng = np.random.default_rng(3)
    samples = ["", "a", "straße", "日本" * 20, 'quote " and, comma\n', "x" * 300]
    strings = with_nulls([samples[n % len(samples)] for n in rng.integers(0, 100, ROWS)])
    micros = rng.integers(-(10**15), 10**15, ROWS)
    whole = rng.integers(-(10**9), 10**9, ROWS)
    columns = {
        "bool": pa.array(with_nulls(list(rng.integers(0, 2, ROWS) == 1))),
        "string": pa.array(strings),
        "large_string": pa.array(strings, pa.large_string()),
        "coded": pa.array(strings).dictionary_encode(),
        "binary": pa.array([None if string is None else string.encode() for string in strings], pa.binary()),
        "fixed": pa.array(with_nulls([bytes(rng.integers(0, 255, 16, dtype=np.uint8)) for _ in range(ROWS)]), pa.binary(16)),
        "date32": pa.array(with_nulls(list(whole // 100_000)), pa.date32()),
        "time32": pa.array(with_nulls(list(abs(whole) % 86_400_000)), pa.time32("ms")),
        "time64": pa.array(with_nulls(list(abs(whole))), pa.time64("us")),
        "duration": pa.array(with_nulls([int(n) for n in whole])).cast(pa.duration("ms")),
        "d9": pa.array(with_nulls([decimal.Decimal(int(n)).scaleb(-2) for n in whole // 10]), pa.decimal128(9, 2)),
        "d18": pa.array(with_nulls([decimal.Decimal(int(n)).scaleb(-4) for n in micros]), pa.decimal128(18, 4)),
        "d38": pa.array(with_nulls([decimal.Decimal(int(n) * 10**20).scaleb(-10) for n in micros]), pa.decimal128(38, 10)),
        "list": pa.array(with_nulls([[int(n) if n % 3 else None] * (n % 4) for n in abs(whole) % 100]), pa.list_(pa.int64())),
        "list_string": pa.array(with_nulls([[samples[n % 6], None][: n % 3] for n in abs(whole) % 100]), pa.list_(pa.string())),
        "f32": floats(np.float32, np.uint32),
        "f64": floats(np.float64, np.uint64),
        "f16": floats(np.float16, np.uint16),
        "nothing": pa.nulls(ROWS),
        "date64": pa.array(with_nulls([int(n) * 86_400_000 for n in whole // 100_000]), pa.date64()),
        "time_s": pa.array(with_nulls(list(abs(whole) % 86_400)), pa.time32("s")),
        "pairs": pa.array(with_nulls([[int(n), None] for n in whole]), pa.list_(pa.int32(), 2)),
        "ordered": pa.DictionaryArray.from_arrays(
            pa.array(with_nulls([int(n) for n in abs(whole) % 3]), pa.int8()), ["low", "mid", "high"], ordered=True
        ),
        "uuid": pa.array(with_nulls([bytes(rng.integers(0, 255, 16, dtype=np.uint8)) for _ in range(ROWS)]), pa.uuid()),
        "json": pa.array(with_nulls([f"[{n}]" for n in whole]), pa.json_()),
    }
    for bits in (8, 16, 32, 64):
        for sign in ("int", "uint"):
            name = f"{sign}{bits}"
            info = np.iinfo(name)
            values = rng.integers(info.min, info.max, ROWS, dtype=name, endpoint=True)
            columns[name] = pa.array(values, mask=np.arange(ROWS) % 13 == 1)
    for unit, scale in (("s", 10**6), ("ms", 10**3), ("us", 1)):
        for zone in (None, "UTC", "Europe/Berlin"):
            columns[f"at_{unit}_{zone}"] = pa.array(with_nulls([int(n) for n in micros // scale]), pa.timestamp(unit, zone))
    columns["at_ns"] = pa.array(with_nulls([int(n) * 1000 for n in micros]), pa.timestamp("ns", "UTC"))
    table = pa.table(columns)
    index = table.schema.get_field_index("int64")
    field = table.schema.field(index).with_metadata({"unit": "m/s"})
    return table.cast(table.schema.set(index, field)).replace_schema_metadata({"origin": "a check", "pages": '{"from": 1}'})


def plain_type(kind):
    """A type without its string layout and list offsets."""
    if isinstance(kind, pa.JsonType):
        return pa.json_(plain_type(kind.storage_type))
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, plain_type(kind.value_type), kind.ordered)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", plain_type(kind.value_type)), kind.list_size)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", plain_type(kind.value_type)))
    return kind


def plain(table):
    """The same values with canonical types, floats as their bits."""
    arrays, names = [], []
    for name, column in zip(table.column_names, table.columns):
        array = column.combine_chunks()
        array = array.chunk(0) if isinstance(array, pa.ChunkedArray) and array.num_chunks == 1 else array
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
        if pa.types.is_dictionary(array.type):
            values = array.dictionary.cast(plain_type(array.type).value_type)
            array = pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        target = plain_type(array.type)
        if array.type != target:
            array = array.cast(target)
        if pa.types.is_floating(array.type):
            array = array.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[array.type.bit_width])
        arrays.append(array)
        names.append(name)
    return pa.table(arrays, names=names)


def without_seconds(table):
    """The table as Parquet represents it: seconds become milliseconds."""
    for index, field in enumerate(table.schema):
        kind = None
        if pa.types.is_timestamp(field.type) and field.type.unit == "s":
            kind = pa.timestamp("ms", field.type.tz)
        elif field.type == pa.time32("s"):
            kind = pa.time32("ms")
        if kind:
            table = table.set_column(index, field.with_type(kind), table.column(index).cast(kind))
    return table


def with_days(table):
    """The types that pyarrow reads from Parquet: millisecond dates become days, regardless of the Arrow schema."""
    for index, field in enumerate(table.schema):
        if field.type == pa.date64():
            table = table.set_column(index, field.with_type(pa.date32()), table.column(index).cast(pa.date32()))
    return table


def differences(expected, found):
    if expected.column_names != found.column_names:
        return f"columns {found.column_names}"
    if expected.num_rows != found.num_rows:
        return f"{found.num_rows} rows"
    wrong = []
    kept = lambda metadata: {key: text for key, text in (metadata or {}).items() if not key.startswith(b"PARQUET:")}
    for left, right in zip([expected.schema, *expected.schema], [found.schema, *found.schema]):
        if kept(left.metadata) != kept(right.metadata):
            wrong.append(f"{getattr(left, 'name', 'table')}: {right.metadata} instead of {left.metadata}")
    expected_types = [plain_type(kind) for kind in expected.schema.types]
    found_types = [plain_type(kind) for kind in found.schema.types]
    left, right = plain(expected), plain(found)
    for index, name in enumerate(expected.column_names):
        if expected_types[index] != found_types[index]:
            wrong.append(f"{name}: {found_types[index]} instead of {expected_types[index]}")
        elif not left.column(index).equals(right.column(index)):
            wrong.append(f"{name}: other values")
    return "; ".join(wrong)


class Converter:
    """The `tatami` command and a directory."""

    def __init__(self, tally, program, directory):
        self.tally, self.program, self.directory = tally, program, directory

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self, *args, expect=0):
        done = subprocess.run([self.program, *args], capture_output=True, text=True)
        if expect is not None and done.returncode != expect:
            raise RuntimeError(f"{' '.join(args)}: {done.returncode}: {done.stderr.strip()}")
        return done

    def round_trip(self, name, source, expected, *options):
        """Source → .tatami → Parquet, Arrow file, Arrow stream; each is compared with the expected table."""
        middle = self.path("middle.tatami")
        try:
            self.run("convert", source, middle, "--force", *options)
            verified = self.run("verify", middle, expect=None)
            self.tally.check(name, "verify", verified.returncode == 0, verified.stdout)
            for end, read in (
                ("parquet", pa.parquet.read_table),
                ("arrow", lambda path: pa.ipc.open_file(path).read_all()),
                ("arrows", lambda path: pa.ipc.open_stream(path).read_all()),
            ):
                out = self.path(f"out.{end}")
                self.run("convert", middle, out, "--force")
                wanted, found = without_seconds(expected) if end == "parquet" else expected, read(out)
                if end == "parquet" or source.endswith(".parquet"):
                    wanted, found = with_days(wanted), with_days(found)
                why = differences(wanted, found)
                self.tally.check(name, f"back as {end}", not why, why)
        except (RuntimeError, pa.ArrowException) as error:
            self.tally.check(name, "conversion", False, error)


def check_pyarrow(converter, table):
    for compression in ("none", "snappy", "gzip", "zstd", "lz4"):
        for dictionary, version in ((True, "1.0"), (False, "2.0")):
            path = converter.path("in.parquet")
            pa.parquet.write_table(
                table, path, compression=compression, use_dictionary=dictionary, data_page_version=version, row_group_size=1_300,
                data_page_size=4_000, write_page_checksum=dictionary, store_decimal_as_integer=dictionary,
            )
            name = f"pyarrow, {compression}, pages {version}"
            converter.round_trip(name, path, pa.parquet.read_table(path))
    for compression in (None, "lz4", "zstd"):
        path = converter.path("in.arrow")
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_file(path, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=900)
        converter.round_trip(f"pyarrow, Arrow file, {compression}", path, table)
        path = converter.path("in.arrows")
        with pa.ipc.new_stream(path, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=900)
        converter.round_trip(f"pyarrow, Arrow stream, {compression}", path, table)
    empty = table.slice(0, 0)
    path = converter.path("in.parquet")
    pa.parquet.write_table(empty, path)
    converter.round_trip("pyarrow, no rows", path, pa.parquet.read_table(path))


def check_duckdb(converter):
    query = f"""
        SELECT i AS i64, (i % 100)::TINYINT AS i8, i::SMALLINT AS i16, i::INTEGER AS i32, (i * 7)::UBIGINT AS u64,
            (i % 200)::UTINYINT AS u8, i::UINTEGER AS u32, i / 3.0 AS f64, (i / 7.0)::FLOAT AS f32, i % 3 = 0 AS flag,
            CASE WHEN i % 5 = 0 THEN NULL ELSE 'row ' || i % 50 END AS text, ('b' || i)::BLOB AS blob,
            DATE '2020-01-01' + (i % 1000)::INTEGER AS day, TIME '01:02:03' AS clock,
            TIMESTAMP '2020-01-01 00:00:00' + INTERVAL (i) SECOND AS at_us,
            (TIMESTAMP '2020-01-01 00:00:00' + INTERVAL (i) SECOND)::TIMESTAMP_MS AS at_ms,
            (TIMESTAMP '2020-01-01 00:00:00' + INTERVAL (i) SECOND)::TIMESTAMP_NS AS at_ns,
            TIMESTAMPTZ '2020-01-01 00:00:00+02' + INTERVAL (i) SECOND AS at_zone,
            (i / 100)::DECIMAL(9, 2) AS d9, (i / 100)::DECIMAL(18, 3) AS d18, (i / 100)::DECIMAL(38, 5) AS d38,
            CASE WHEN i % 7 = 0 THEN NULL ELSE list_slice([i, NULL, i + 1], 1, i % 4) END AS list, ['x' || i % 9] AS strings
        FROM range({ROWS}) t(i)"""
    for compression in ("uncompressed", "snappy", "gzip", "zstd", "lz4_raw"):
        for version in ("V1", "V2"):
            path = converter.path("in.parquet")
            options = f"FORMAT parquet, COMPRESSION {compression}, ROW_GROUP_SIZE 2048, PARQUET_VERSION {version}"
            duckdb.sql(f"COPY ({query}) TO '{path}' ({options})")
            converter.round_trip(f"DuckDB, {compression}, {version}", path, pa.parquet.read_table(path))


def check_polars(converter, table):
    taken = [name for name in table.column_names if not name.startswith(("d9", "d18", "d38", "time32", "fixed", "f16"))]
    frame = polars.from_arrow(table.select(taken))
    for compression in ("uncompressed", "snappy", "gzip", "zstd", "lz4"):
        path = converter.path("in.parquet")
        frame.write_parquet(path, compression=compression, row_group_size=1_000, data_page_size=3_000)
        converter.round_trip(f"polars, {compression}", path, pa.parquet.read_table(path))
    path = converter.path("in.arrow")
    frame.write_ipc(path, compression="lz4")
    converter.round_trip("polars, Arrow file", path, pa.ipc.open_file(path).read_all())


def check_readers(converter, table):
    """DuckDB and polars read the output of Tercet."""
    path, middle = converter.path("in.parquet"), converter.path("middle.tatami")
    pa.parquet.write_table(table, path)
    converter.run("convert", path, middle, "--force")
    for end in ("parquet", "arrow"):
        converter.run("convert", middle, converter.path(f"out.{end}"), "--force")
    count = duckdb.sql(f"SELECT count(*), count(string), sum(int32) FROM '{converter.path('out.parquet')}'").fetchall()
    wanted = duckdb.sql(f"SELECT count(*), count(string), sum(int32) FROM '{path}'").fetchall()
    converter.tally.check("out.parquet", "DuckDB", count == wanted, f"{count} {wanted}")
    for end, read in (("parquet", polars.read_parquet), ("arrow", polars.read_ipc)):
        frame = read(converter.path(f"out.{end}"))
        same = frame["string"].to_list() == table.column("string").to_pylist()
        converter.tally.check(f"out.{end}", "polars", same and frame.height == ROWS)


def check_text_formats(converter, table):
    """CSV and JSONL keep values, given the types of the columns."""
    taken = ["bool", "string", "binary", "int8", "uint64", "int64", "at_us_UTC", "list", "list_string"]
    kinds = {
        "bool": "bool", "string": "string", "binary": "bytes", "int8": "int8", "uint64": "uint64", "int64": "int64",
        "at_us_UTC": "timestamp_micros", "list": "list:int64", "list_string": "list:string",
    }
    finite = pa.array(np.random.default_rng(5).standard_normal(ROWS))
    part = table.select(taken).append_column("f64", finite)
    # Text formats keep values, not metadata.
    part = pa.table(part.columns, names=part.column_names)
    path = converter.path("in.parquet")
    pa.parquet.write_table(part, path)
    schema = ",".join(f"{name}:{kinds[name]}:nullable" for name in taken) + ",f64:float64:nullable"
    for end in ("csv", "tsv", "jsonl"):
        middle, back = converter.path(f"middle.{end}"), converter.path("out.parquet")
        converter.run("convert", path, middle, "--force")
        converter.run("convert", middle, back, "--force", "--schema", schema)
        why = differences(part, pa.parquet.read_table(back))
        converter.tally.check(f"middle.{end}", "round trip", not why, why)


def check_growing_dictionary(converter):
    """A dictionary that grows over many batches."""
    rows = 200_000
    strings = pa.array([f"word {row // 1000}" for row in range(rows)])
    table = pa.table({"word": strings.dictionary_encode(), "row": pa.array(range(rows))})
    path = converter.path("in.arrow")
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    converter.round_trip("growing dictionary", path, table, "--batch", "7000")


def check_damaged(converter, table):
    """A flipped byte in a compressed buffer gives an error message and no output file."""
    path, out = converter.path("damaged.arrow"), converter.path("damaged.tatami")
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    whole = open(path, "rb").read()
    rng = np.random.default_rng(11)
    for at in sorted(rng.integers(8, len(whole), 40)):
        with open(path, "wb") as file:
            file.write(whole[:at] + bytes([whole[at] ^ 0x80]) + whole[at + 1:])
        done = converter.run("convert", path, out, "--force", expect=None)
        ok = done.returncode in (0, 3, 4, 6, 7, 8) and "panicked" not in done.stderr
        converter.tally.check("damaged.arrow", f"byte {at}", ok, f"{done.returncode}: {done.stderr}")
    left = [name for name in os.listdir(converter.directory) if "damaged" in name and name not in ("damaged.arrow", "damaged.tatami")]
    converter.tally.check("damaged.arrow", "no files are left", not left, left)


def check_unsupported(converter, table):
    """Nested columns become columns or JSON; all unsupported columns are named, and nothing is written."""
    rows = [{"x": row, "y": "t"} for row in range(5)]
    odd = pa.table({
        "fine": pa.array(range(5)), "point": pa.array(rows), "nested": pa.array([[[1]]] * 5),
        "map": pa.array([[("k", 1)]] * 5, pa.map_(pa.string(), pa.int64())),
    })
    path, out = converter.path("odd.parquet"), converter.path("odd.tatami")
    pa.parquet.write_table(odd, path)
    converter.run("convert", path, out)
    found = [json.loads(line) for line in converter.run("cat", out).stdout.splitlines()]
    wanted = [{"fine": row, "point.x": row, "point.y": "t", "nested": [[1]], "map": {"k": 1}} for row in range(5)]
    converter.tally.check("odd.parquet", "nested columns", found == wanted, found)
    os.remove(out)
    day = pa.array([datetime.datetime(2020, 1, 1)], pa.timestamp("ns"))
    times = pa.table({"at": day, "fine": pa.array([1]), "until": day})
    pa.parquet.write_table(times, path, use_deprecated_int96_timestamps=True)
    done = converter.run("convert", path, out, expect=7)
    named = all(f"`{name}` (INT96)" in done.stderr for name in ("at", "until")) and "`fine`" not in done.stderr
    converter.tally.check("odd.parquet", "columns are named", named and not os.path.exists(out), done.stderr)
    lists = pa.table({"l": pa.array([[1], [2]])})
    pa.parquet.write_table(lists, path)
    done = converter.run("convert", path, out, "--profile", "interop", expect=7)
    converter.tally.check("odd.parquet", "lists in the interop profile", "`l`" in done.stderr, done.stderr)
    fine = pa.table({"at": pa.array([1_500], pa.timestamp("ns"))})
    pa.parquet.write_table(fine, path)
    done = converter.run("convert", path, out, expect=8)
    converter.tally.check("odd.parquet", "times between microseconds", "row 0" in done.stderr, done.stderr)
    converter.run("convert", path, out, "--floor-timestamps")
    converter.tally.check("odd.parquet", "cut times", converter.run("cat", out, "--stored").stdout == '{"at":1}\n')
    converter.run("convert", path, out, "--raw-timestamps", "--force")
    converter.tally.check("odd.parquet", "raw times", converter.run("cat", out).stdout == '{"at":1500}\n')
    summary = json.loads(converter.run("convert", path, out, "--raw-timestamps", "--force", "--json").stdout)
    converter.tally.check("odd.parquet", "summary", summary["rows"] == 1 and summary["input_format"] == "parquet", summary)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tatami", required=True)
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="tercet-tables-") as directory:
        converter = Converter(tally, os.path.abspath(parser.parse_args().tatami), directory)
        table = all_types()
        check_pyarrow(converter, table)
        check_duckdb(converter)
        check_polars(converter, table)
        check_readers(converter, table)
        check_text_formats(converter, table)
        check_growing_dictionary(converter)
        check_damaged(converter, table)
        check_unsupported(converter, table)
    counts = tally.counts
    print(f"{counts['passed']} passed, {counts['failed']} failed, 0 skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
