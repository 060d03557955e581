"""CSV files of many dialects through `tatami convert`, compared with DuckDB's and Python's readers.

usage: csv_check.py --tatami PROGRAM

Names, values and nulls of every file are compared with `read_csv` of DuckDB, which detects the dialect itself, and the text of every field with
Python's `csv` with the dialect as an option. Where a reader differs, the case says why, and has the expected table if the other reader is not enough;
a difference that is gone fails too. Files that must be rejected have the reason.

The last line is `N passed, N failed, N skipped`.
"""

import argparse
import collections
import csv
import datetime
import io
import math
import os
import subprocess
import sys
import tempfile

import duckdb
import pyarrow as pa

csv.field_size_limit(1 << 30)


class Case:
    """A file; the options of the readers, and where they differ."""

    def __init__(self, name, data, delimiter=",", quote='"', header=True, comma=False, duckdb=None, python=None, expected=None,
                 rejected=None, options=(), suffix="csv", nulls=("",)):
        self.name, self.delimiter, self.quote, self.header, self.comma = name, delimiter, quote, header, comma
        self.data = data if isinstance(data, bytes) else data.encode()
        # Why a reader differs, and the expected table if the other reader is not enough.
        self.duckdb, self.python, self.expected = duckdb, python, expected
        self.rejected, self.options, self.suffix, self.nulls = rejected, options, suffix, nulls


def rows(count, line):
    return "".join(line(row) for row in range(count))


D = datetime.date
T = datetime.datetime
HUGE = "huge field " * 40_000

CASES = [
    Case("plain", "a,b,c\n1,2.5,x\n3,4.5,y\n"),
    Case("crlf", "a,b\r\n1,x\r\n2,y\r\n"),
    Case("no final newline", "a,b\n1,x\n2,y"),
    Case("crlf without a final one", "a,b\r\n1,x\r\n2,y"),
    Case("byte order mark", b"\xef\xbb\xbfa,b\n1,x\n2,y\n"),
    Case("byte order mark and quotes", b'\xef\xbb\xbf"a","b"\n1,"x"\n2,"y"\n'),
    Case("quoted", 'a,b\n"1","x, y"\n"2","z"\n'),
    Case("quoted everywhere", '"a","b"\n"x","1"\n"y","2"\n'),
    Case("doubled quotes", 'a,b\n1,"say ""hi"""\n2,"""x"""\n'),
    Case("embedded newline", 'a,b\n1,"two\nlines"\n2,"three\n\nmore"\n'),
    Case("embedded crlf", 'a,b\r\n1,"two\r\nlines"\r\n2,"x"\r\n'),
    Case("embedded newline in the header", '"a\nb",c\n1,2\n3,4\n'),
    Case("empty fields", "a,b,c\n1,,x\n,2,\n3,4,y\n"),
    Case("empty strings", 'a,b\n1,""\n2,x\n3,\n', duckdb="an empty quoted field is null in DuckDB",
         expected=(["a", "b"], [(1, ""), (2, "x"), (3, None)])),
    Case("one empty column", "a,b\n1,\n2,\n"),
    Case("semicolon", "a;b;c\n1;2;x\n3;4;y\n", delimiter=";"),
    Case("semicolon and decimal comma", "a;b\n1,5;x\n2,25;y\n", delimiter=";", comma=True,
         duckdb="DuckDB detects no decimal comma", expected=(["a", "b"], [(1.5, "x"), (2.25, "y")])),
    Case("tab", "a\tb\n1\tx y\n2\tz\n", delimiter="\t"),
    Case("tab separated file", "a\tb\n1\tx,y\n2\tz,w\n", delimiter="\t", suffix="tsv"),
    Case("pipe", "a|b\n1|x\n2|y\n", delimiter="|"),
    Case("single quotes", "a,b\n1,'x, y'\n2,'z, w'\n", quote="'"),
    Case("apostrophes", "a,b\n1,it's\n2,don't\n"),
    Case("no header", "1,x\n2,y\n3,z\n", header=False),
    Case("no header of dates", "2024-01-01,1.5\n2024-01-02,2.5\n", header=False),
    Case("header of strings", "name,city\nAda,London\nAlan,Wilmslow\n"),
    Case("dates", "d,e\n2024-02-29,1\n1999-12-31,2\n"),
    Case("timestamps", "t,x\n2024-02-29 12:00:00,1\n1999-12-31 23:59:59.123456,2\n"),
    Case("timestamps with T", "t,x\n2024-02-29T12:00:00,1\n1999-12-31T23:59:59,2\n"),
    Case("timestamps in UTC", "t,x\n2024-02-29T12:00:00Z,1\n1999-12-31T23:59:59Z,2\n"),
    Case("times", "t,x\n12:00:00,1\n23:59:59.5,2\n"),
    Case("dates and timestamps", "t,x\n2024-02-29,1\n1999-12-31 23:59:59,2\n", duckdb="DuckDB reads strings; here a date is a timestamp at midnight",
         expected=(["t", "x"], [(T(2024, 2, 29), 1), (T(1999, 12, 31, 23, 59, 59), 2)])),
    Case("dates of other forms", "d,x\n31/12/2024,1\n28/02/2023,2\n", duckdb="DuckDB guesses the order of day and month; here they are strings",
         expected=(["d", "x"], [("31/12/2024", 1), ("28/02/2023", 2)])),
    Case("bools", "a,b\ntrue,1\nfalse,2\n"),
    Case("bools of other cases", "a,b\nTrue,1\nFALSE,2\n"),
    Case("integers", "a,b\n-1,0\n9223372036854775807,1\n-9223372036854775808,2\n"),
    Case("unsigned integers", "a,b\n18446744073709551615,1\n0,2\n"),
    Case("integers beyond 64 bits", "a,b\n99999999999999999999,1\n1,2\n", duckdb="DuckDB rounds to a double or has 128 bits; here they are strings",
         expected=(["a", "b"], [("99999999999999999999", 1), ("1", 2)])),
    Case("leading zeros", "zip,n\n00501,1\n02134,2\n"),
    Case("plus signs", "a,b\n+1,1\n+2,2\n"),
    Case("floats", "a,b\n1e3,1\n-2.5E-3,2\n0.1,3\n"),
    Case("integers and floats", "a,b\n1,1\n2.5,2\n"),
    Case("infinities", "a,b\ninf,1\n-inf,2\n1.5,3\n", duckdb="DuckDB reads strings"),
    Case("numbers and words", "a,b\n1,1\nx,2\n3,3\n"),
    Case("null tokens", "a,b\n1,x\nNA,y\n3,z\n", duckdb="NA is a string in DuckDB; in a column of numbers it is null here",
         python="csv has no nulls", expected=(["a", "b"], [(1, "x"), (None, "y"), (3, "z")])),
    Case("null tokens among words", "a,b\nx,1\nNA,2\nNULL,3\n"),
    Case("null option", "a,b\n1,-\n2,x\n-,y\n", options=("--null", "-"), nulls=("", "-"),
         duckdb="DuckDB runs without the null string", expected=(["a", "b"], [(1, None), (2, "x"), (None, "y")])),
    Case("spaces", "a,b\n x , y\n z , w\n"),
    Case("unicode", "név,値\nŐ,日本\nß,語\n"),
    Case("huge field", f'a,b\n1,"{HUGE}"\n2,x\n'),
    Case("many columns", ",".join(f"c{i}" for i in range(500)) + "\n" + rows(3, lambda row: ",".join(str(row * i) for i in range(500)) + "\n")),
    Case("many rows", "a,b\n" + rows(30_000, lambda row: f"{row},{'word' * (row % 3)}{row}\n")),
    Case("a float after the sample", "a\n" + rows(30_000, lambda row: f"{row}\n") + "0.5\n",
         duckdb="DuckDB samples 20,480 rows and fails at a later float"),
    Case("a string after the sample", "a,b\n" + rows(30_000, lambda row: f"{row},1\n") + "late,2\n",
         duckdb="DuckDB samples 20,480 rows and fails at a later string"),
    Case("one column", "a\n1\n2\n3\n"),
    Case("one column with blank lines", "a\n1\n\n3\n", python="csv skips blank lines",
         expected=(["a"], [(1,), (None,), (3,)])),
    Case("blank lines", "a,b\n1,x\n\n2,y\n\n"),
    Case("blank lines at the start", "\n\na,b\n1,x\n2,y\n"),
    Case("header only", "a,b,c\n"),
    Case("ragged: short", "a,b,c\n1,2\n3,4,5\n6,7,8\n", rejected="2 fields, expected 3 columns"),
    Case("ragged: long", "a,b\n1,2\n3,4,5\n6,7\n", rejected="3 fields, expected 2 columns"),
    Case("ragged: skipped", "a,b\n1,2\n3,4,5\n6,7\n", options=("--on-error", "skip"), duckdb="DuckDB runs without skipping",
         python="csv keeps all rows", expected=(["a", "b"], [(1, 2), (6, 7)])),
    Case("open quote", 'a,b\n1,"x\n2,y\n', rejected="unterminated quoted field"),
    Case("text after a quote", 'a,b\n1,"x"y\n2,"z"\n', rejected="expected a delimiter after a closing quote"),
    Case("quote in a field", 'a,b\n1,x"y\n2,z\n', rejected="quote inside an unquoted field"),
    Case("duplicate names", "a,a\n1,2\n", rejected="duplicate column name"),
    Case("invalid utf-8", b"a,b\n1,\xff\xfe\n", rejected="invalid UTF-8"),
    Case("cr only", "a,b\r1,x\r2,y\r", rejected="lines end with CR only"),
    Case("comments", "# first\na,b\n1,x\n# \"2,y\n3,z\n", options=("--comment", "#"), duckdb="DuckDB detects the comments, but then no header",
         python="csv has no comments", expected=(["a", "b"], [(1, "x"), (3, "z")])),
    Case("lines before the header", "Report\nof 2024,\na,b\n1,x\n2,y\n", options=("--skip", "2"), duckdb="DuckDB runs without skipping lines",
         python="csv skips no lines", expected=(["a", "b"], [(1, "x"), (2, "y")])),
    Case("blanks around numbers", "a,b\n 1, 2.5\n3 ,4 \n", duckdb="DuckDB reads strings of floats with blanks",
         expected=(["a", "b"], [(1, 2.5), (3, 4.0)])),
    Case("declared delimiter", "a:b\n1:x\n2:y\n", delimiter=":", options=("--delimiter", ":"), duckdb="DuckDB runs without the delimiter"),
    Case("declared strings", "a,b\n1,2\n3,4\n", options=("--schema", "a:string,b:int64"), duckdb="DuckDB runs without the types",
         expected=(["a", "b"], [("1", 2), ("3", 4)])),
]


def normal(value):
    """Values of equal meaning are equal."""
    if isinstance(value, datetime.datetime) and value.tzinfo:
        return value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value


def table(names, tuples):
    return list(names), [tuple(map(normal, row)) for row in tuples]


def by_duckdb(path):
    relation = duckdb.sql(f"FROM read_csv('{path}')")
    read = relation.to_arrow_table()
    return table(read.column_names, zip(*(column.to_pylist() for column in read.columns)))


def by_python(case):
    """The fields as text; the first record as names."""
    text = case.data.decode("utf-8-sig")
    records = list(csv.reader(io.StringIO(text, newline=""), delimiter=case.delimiter, quotechar=case.quote))
    records = [record for record in records if record]
    if not case.header:
        return [f"column{index}" for index in range(len(records[0]))], records
    return records[0], records[1:]


def is_field(value, field, case):
    """Whether a value is that of a field."""
    if value is None:
        return field in case.nulls
    if isinstance(value, bool):
        return field.lower() == str(value).lower()
    if isinstance(value, (int, float)):
        return float(field.replace(",", ".") if case.comma else field) == float(value)
    if isinstance(value, datetime.datetime):
        return datetime.datetime.fromisoformat(field).replace(tzinfo=None) == normal(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return type(value).fromisoformat(field) == value
    return field == value


def is_python(found, case):
    names, fields = by_python(case)
    return found[0] == names and len(found[1]) == len(fields) and all(
        len(row) == len(record) and all(map(lambda pair: is_field(*pair, case), zip(row, record)))
        for row, record in zip(found[1], fields)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tatami", required=True)
    args = parser.parse_args()
    counts = collections.Counter()

    def check(case, what, ok, why=""):
        counts["passed" if ok else "failed"] += 1
        if not ok:
            print(f"failed: {case.name}: {what}: {str(why)[:600]}")

    with tempfile.TemporaryDirectory() as directory:
        for case in CASES:
            path = os.path.join(directory, f"in.{case.suffix}")
            with open(path, "wb") as file:
                file.write(case.data)
            out = os.path.join(directory, "out.arrow")
            done = subprocess.run([args.tatami, "convert", path, out, "--force", "-q", *case.options], capture_output=True, text=True)
            if case.rejected:
                is_rejected = done.returncode in (4, 6, 8) and case.rejected in done.stderr
                check(case, "rejected", is_rejected, (done.returncode, done.stderr))
                continue
            if done.returncode:
                check(case, "convert", False, done.stderr)
                continue
            with pa.memory_map(out) as source:
                read = pa.ipc.open_file(source).read_all()
            found = table(read.column_names, zip(*(column.to_pylist() for column in read.columns)))
            if case.expected:
                check(case, "expected", found == table(*case.expected), (found, case.expected))
            check(case, "python", is_python(found, case) != bool(case.python), case.python or found)
            try:
                theirs = by_duckdb(path)
            except duckdb.Error as error:
                theirs = str(error)
            check(case, "duckdb", (found == theirs) != bool(case.duckdb), case.duckdb or (found, theirs))
    print(f"{counts['passed']} passed, {counts['failed']} failed, 0 skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
