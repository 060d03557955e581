"""Random filters on .tatami files, compared with DuckDB.

usage: filter_check.py --tatami PROGRAM --driver PROGRAM [--cases 3000] [--seed N]

pyarrow writes a table with columns of many types, with nulls, NaN, and values that repeat; `tatami convert` makes two files of it: one with
many small row groups and pages, sorted, with bloom filters, and one of a single row group. Every filter is run on both by the driver
(`filter_tatami`) and in DuckDB; the number of rows, and the sum and xor of their numbers must be equal.

Differences that are intended, and translated: NaN equals nothing here and everything is less than it in DuckDB; a backslash escapes `%` and
`_` in patterns here, and must be named in DuckDB.

The last line is `N passed, N failed, N skipped`.
"""

import argparse
import datetime
import decimal
import json
import os
import random
import subprocess
import sys
import tempfile

import duckdb
import pyarrow as pa
import pyarrow.parquet

ROWS = 2_000
WORDS = ["", "a", "Alpha", "alpha", "ALPHA", "beta%", "100%", "under_score", "back\\slash", "straße", "Ärger", "ärger", "日本", "日本語",
         "longer words with spaces", "it's", 'quote "q"', "tab\there", "x" * 40, "Zeta", "zz"]
PARTS = ["a", "A", "al", "ph", "%", "_", "s", "ß", "本", " ", "'", '"', "\\", "zz", "longer", "", "q"]
PATTERNS = ["%", "_", "a%", "%a", "%ph%", "A_pha", "_lph_", "%\\%%", "100\\%", "under\\_score", "%_score", "back\\\\slash", "日_", "%本%", "",
            "%%", "__", "%s", "longer%spaces", "%e%e%", "it's", "ÄRGER", "Är%", "_rger"]
REGEXPS = ["a", "^a", "a$", "^$", "^[A-Z]", "[aeiou]{2}", "(alpha|beta)", "(?i)alpha", "\\d+", "\\s", "^.{5}$", "本", "p.a", "^(a|A).*a$", "x{40}",
           "[^a-z]", "\\bwords\\b", "%$", "\\\\", "^[^ ]*$"]


def table(rng):
    """A column of every comparable type. `id` numbers the rows."""
    def column(make, every=6):
        return [None if rng.randrange(every) == 0 else make() for _ in range(ROWS)]

    day = datetime.date(2020, 1, 1)
    at = datetime.datetime(2020, 1, 1)
    floats = [0.0, -0.0, 1.5, -1.5, float("nan"), float("inf"), float("-inf"), 0.1, 1e300]
    columns = {
        "id": pa.array(range(ROWS), pa.int64()),
        "i8": pa.array(column(lambda: rng.randrange(-128, 128)), pa.int8()),
        "i32": pa.array(sorted(rng.randrange(-1000, 1000) for _ in range(ROWS)), pa.int32()),
        "i64": pa.array(column(lambda: rng.choice([0, 1, -1, 7, 2**40, -(2**40), rng.randrange(-50, 50)])), pa.int64()),
        "u16": pa.array(column(lambda: rng.randrange(0, 300)), pa.uint16()),
        "u64": pa.array(column(lambda: rng.choice([0, 1, 5, 2**63, 2**64 - 1, rng.randrange(100)])), pa.uint64()),
        "f64": pa.array(column(lambda: rng.choice([*floats, rng.randrange(-20, 20) / 4])), pa.float64()),
        "f32": pa.array(column(lambda: rng.choice([*floats[:7], rng.randrange(-20, 20) / 4])), pa.float32()),
        "s": pa.array(column(lambda: rng.choice(WORDS)), pa.string()),
        "t": pa.array([f"key{row // 3:05}" for row in range(ROWS)], pa.string()),
        "w": pa.array(column(lambda: rng.choice(WORDS) + rng.choice(WORDS)), pa.string()),
        "b": pa.array(column(lambda: rng.random() < 0.5), pa.bool_()),
        "x": pa.array(column(lambda: bytes(rng.choices(b"\0\1a\xff", k=rng.randrange(4)))), pa.binary()),
        "d": pa.array(column(lambda: day + datetime.timedelta(days=rng.randrange(-400, 400))), pa.date32()),
        "e": pa.array(column(lambda: day + datetime.timedelta(days=rng.randrange(-400, 400))), pa.date32()),
        "ts": pa.array(column(lambda: at + datetime.timedelta(seconds=rng.randrange(-(10**7), 10**7) // 3600 * 3600)), pa.timestamp("us")),
        "z": pa.array(column(lambda: at + datetime.timedelta(seconds=rng.randrange(-(10**6), 10**6))), pa.timestamp("us", "UTC")),
        "h": pa.array(column(lambda: (at + datetime.timedelta(seconds=rng.randrange(86400))).time()), pa.time64("us")),
        "p": pa.array(column(lambda: decimal.Decimal(rng.randrange(-5000, 5000)).scaleb(-2)), pa.decimal128(9, 2)),
        "l": pa.array(column(lambda: [rng.randrange(9) for _ in range(rng.randrange(4))]), pa.list_(pa.int64())),
    }
    return pa.table(columns)


def ours(text):
    """A string literal of a filter."""
    for plain, escaped in [("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")]:
        text = text.replace(plain, escaped)
    return f'"{text}"'


def sql(text):
    return "'" + text.replace("'", "''") + "'"


class Filters:
    """Makes pairs of one filter: in our language and in SQL."""

    def __init__(self, rng, data):
        self.rng = rng
        self.values = {name: [value for value in data[name].to_pylist() if value is not None] for name in data.column_names}

    def near(self, name):
        """A value of a column, or one beside it."""
        rng, value = self.rng, self.rng.choice(self.values[name])
        if name in ("i8", "i32", "i64", "u16", "u64"):
            low, high = {"i8": (-128, 127), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1), "u16": (0, 65535), "u64": (0, 2**64 - 1)}[name]
            return min(max(value + rng.choice([-1, 0, 0, 0, 1, 40]), low), high)
        if name in ("d", "e"):
            return value + datetime.timedelta(days=rng.choice([0, 0, 1, 500]))
        if name in ("ts", "z"):
            return value + datetime.timedelta(seconds=rng.choice([0, 0, 1, 10**6]))
        if name == "p":
            return value + decimal.Decimal(rng.choice(["0", "0", "0.01", "0.005", "70"]))
        if name in ("s", "w"):
            return rng.choice([value, value + "a", rng.choice(WORDS)])
        return value

    def literal(self, name, value):
        if name in ("s", "t", "w"):
            return ours(value), sql(value)
        if name == "x":
            return f"x'{value.hex()}'", "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        if name == "b":
            return str(value).lower(), str(value).lower()
        if name in ("d", "e"):
            word = self.rng.choice(["", "date ", "DATE "])
            return f"{word}'{value}'", f"DATE '{value}'"
        if name == "ts":
            text = value.isoformat()
            return self.rng.choice([f"'{text}'", f"timestamp '{text}'"]), f"TIMESTAMP '{value}'"
        if name == "z":
            text = value.replace(tzinfo=None).isoformat()
            return f"'{text}Z'", f"TIMESTAMPTZ '{text}+00'"
        if name == "h":
            return f"'{value}'", f"TIME '{value}'"
        if name in ("f32", "f64"):
            if value != value or value in (float("inf"), float("-inf")):
                text = "NaN" if value != value else "inf" if value > 0 else "-inf"
                return f"'{text}'", f"'{text}'::{'FLOAT' if name == 'f32' else 'DOUBLE'}"
            return repr(value), f"{value!r}::{'FLOAT' if name == 'f32' else 'DOUBLE'}"
        return str(value), f"{value}::DECIMAL(38, 3)" if name == "p" else f"{value}"

    def with_nan(self, names, ieee, unequal=False):
        """A comparison of floats in which NaN equals nothing and has no order."""
        present = " OR ".join(f"{name} IS NULL" for name in names)
        odd = " OR ".join(f"isnan({name})" for name in names)
        return f"(CASE WHEN {present} THEN NULL WHEN {odd} THEN {str(unequal).lower()} ELSE {ieee} END)"

    def compared(self, name):
        operator = self.rng.choice(["=", "!=", "<", "<=", ">", ">="])
        value = self.near(name)
        mine, theirs = self.literal(name, value)
        if name in ("f32", "f64"):
            if value != value:
                return f"{name} {operator} {mine}", f"(CASE WHEN {name} IS NULL THEN NULL ELSE {str(operator == '!=').lower()} END)"
            return f"{name} {operator} {mine}", self.with_nan([name], f"{name} {operator} {theirs}", operator == "!=")
        spelled = {"=": ["=", "=="], "!=": ["!=", "<>"]}.get(operator, [operator])
        return f"{name} {self.rng.choice(spelled)} {mine}", f"{name} {operator} {theirs}"

    def between(self, name):
        (low, low_sql), (high, high_sql) = (self.literal(name, self.near(name)) for _ in "ab")
        word = self.rng.choice(["between", "not between"])
        mine, theirs = f"{name} {word} {low} and {high}", f"{name} BETWEEN {low_sql} AND {high_sql}"
        if name in ("f32", "f64"):
            if "NaN" in low + high:
                return self.compared(name)
            theirs = self.with_nan([name], theirs)
        return mine, f"(NOT {theirs})" if "not" in word else theirs

    def listed(self, name):
        values = [self.near(name) for _ in range(self.rng.randrange(1, 6))]
        if name in ("f32", "f64"):
            values = [0.5 if value != value else value for value in values]
        pairs = [self.literal(name, value) for value in values]
        word = self.rng.choice(["in", "not in", "IN"])
        theirs = f"{name} IN ({', '.join(theirs for _, theirs in pairs)})"
        if name in ("f32", "f64"):
            theirs = self.with_nan([name], theirs)
        return f"{name} {word} ({', '.join(mine for mine, _ in pairs)})", f"(NOT {theirs})" if "not" in word else theirs

    def matched(self):
        name = self.rng.choice(["s", "s", "t", "w"])
        word = self.rng.choice(["like", "ilike", "contains", "starts_with", "ends_with", "prefix", "regexp"])
        negated = self.rng.random() < 0.25
        if word in ("like", "ilike"):
            part = self.rng.choice([*PATTERNS, "key000%", "%5", "k_y%"])
            theirs = f"{name} {word.upper()} {sql(part)} ESCAPE '\\'"
        elif word == "regexp":
            part = self.rng.choice([*REGEXPS, "^key0+1", "5$"])
            theirs = f"regexp_matches({name}, {sql(part)})"
        else:
            part = self.rng.choice([*PARTS, "key", "0001", *WORDS])
            function = {"contains": "contains", "starts_with": "starts_with", "prefix": "starts_with", "ends_with": "suffix"}[word]
            theirs = f"{function}({name}, {sql(part)})"
        if word != "prefix" and not negated and self.rng.random() < 0.3:
            mine = f"{word}({name}, {ours(part)})"
        else:
            mine = f"{name} {'not ' * negated}{word} {ours(part)}"
        return mine, f"(NOT {theirs})" if negated else f"({theirs})"

    def columns(self):
        one, other = self.rng.choice(
            [("i8", "i64"), ("i32", "i8"), ("u16", "i32"), ("i64", "u16"), ("f64", "f32"), ("i32", "f64"), ("i8", "f32"), ("s", "w"), ("w", "s"), ("d", "e"), ("s", "t")]
        )
        operator = self.rng.choice(["=", "!=", "<", "<=", ">", ">="])
        theirs = f"{one} {operator} {other}"
        odd = [name for name in (one, other) if name in ("f32", "f64")]
        if odd:
            present = " OR ".join(f"{name} IS NULL" for name in (one, other))
            isnan = " OR ".join(f"isnan({name})" for name in odd)
            theirs = f"(CASE WHEN {present} THEN NULL WHEN {isnan} THEN {str(operator == '!=').lower()} ELSE {one}::DOUBLE {operator} {other}::DOUBLE END)"
        return f"{one} {operator} {other}", theirs

    def one(self):
        rng = self.rng
        kind = rng.randrange(12)
        name = rng.choice(["i8", "i32", "i64", "u16", "u64", "f64", "f32", "s", "t", "w", "b", "x", "d", "e", "ts", "z", "h", "p"])
        if kind < 3:
            return self.compared(name)
        if kind == 3 and name != "b":
            return self.between(name)
        if kind == 4:
            return self.listed(name)
        if kind == 5:
            name = rng.choice([name, "l"])
            word = rng.choice(["is null", "is not null", "IS NULL"])
            return f"{name} {word}", f"{name} {word.upper()}"
        if kind in (6, 7, 8):
            return self.matched()
        if kind == 9:
            return self.columns()
        if kind == 10:
            value = rng.randrange(10)
            return f"l contains {value}", f"list_contains(l, {value})"
        return self.compared(name)

    def any(self, depth):
        kind = self.rng.randrange(6)
        if depth == 0 or kind < 2:
            return self.one()
        if kind == 2:
            mine, theirs = self.any(depth - 1)
            return f"not ({mine})", f"(NOT {theirs})"
        word = self.rng.choice(["and", "or"])
        parts = [self.any(depth - 1) for _ in range(self.rng.randrange(2, 4))]
        spelled = self.rng.choice([word, word.upper()])
        return "(" + f" {spelled} ".join(mine for mine, _ in parts) + ")", "(" + f" {word} ".join(theirs for _, theirs in parts) + ")"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tatami", required=True)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=20261118)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    data = table(rng)
    filters = Filters(rng, data)
    cases = [filters.any(rng.randrange(4)) for _ in range(args.cases)]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "rows.parquet")
        pyarrow.parquet.write_table(data, path)
        files = [os.path.join(directory, name) for name in ("groups.tatami", "whole.tatami")]
        for file, options in zip(files, (["--row-group-rows", "300", "--page-rows", "64", "--bloom", "s,t,i64"], [])):
            subprocess.run([args.tatami, "convert", path, file, "-q", *options], check=True)
        lines = "".join(json.dumps(mine) + "\n" for mine, _ in cases)
        done = subprocess.run([args.driver, *files], input=lines, capture_output=True, text=True, check=True)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(cases)
        connection = duckdb.connect()
        connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
        connection.execute(f"CREATE TABLE rows AS FROM '{path}'")
        for (mine, theirs), answer in zip(cases, answers):
            query = f"SELECT count(*), coalesce(sum(id), 0)::BIGINT, coalesce(bit_xor(id), 0) FROM rows WHERE {theirs}"
            expected = [list(connection.execute(query).fetchone())] * len(files)
            if answer == expected:
                passed += 1
            else:
                failed += 1
                print(f"failed: {mine}\n  sql: {theirs}\n  found {answer}, expected {expected[0]}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
