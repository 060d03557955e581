"""Filters of pyarrow and Polars as filters of a scan.

The result selects at least the rows of the filter: unsupported parts are skipped, and callers apply the whole filter to
what they read. Only integer, string, date and timestamp columns are compared; for floats, engines differ in what NaN is.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

#: `int`, `string`, `date`, `timestamp`, `timestamp_utc`, `float`, or another type, by the name of a column.
Kinds = Mapping[str, str]

_OPS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DAY = r"\d{4}-\d\d-\d\d"
_TIME = rf"{_DAY}[ T]\d\d:\d\d:\d\d(?:\.\d+)?"
_TOKEN = re.compile(
    rf"""\s*(?:
    (?P<paren>[()]) | (?P<string>"(?:[^"\\]|\\.)*") | (?P<options>\{{(?:[^{{}}"]|"[^"]*")*\}}) | (?P<op>==|!=|<=|>=|<|>)
    | (?P<time>(?:{_TIME}Z?|{_DAY})(?![\w.:-])) | (?P<number>-?\d+(?![\w.:-])) | (?P<word>[A-Za-z_]\w*) | (?P<other>[^\s{{}}"])
    )""",
    re.VERBOSE | re.DOTALL,
)
_VALUE_SET = re.compile(r'\{value_set=(?:[^{}"]|"[^"]*")*\}', re.DOTALL)
_ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "r": "\r", "t": "\t"}

#: Longer lists of values are left to the engine: a scan compares each row with each of them.
_MAX_VALUES = 100

_Token = tuple[str, Any]


class _Unknown(Exception):
    """The text has another form."""


class _Time(str):
    """The text of a date or a timestamp."""


def _literal(kind: str | None, value: Any) -> str | None:
    """A value as a literal of a column of this type."""
    if isinstance(value, bool):
        return None
    if isinstance(value, _Time):
        text = value.replace(" ", "T")
        form = {"date": _DAY, "timestamp": _TIME, "timestamp_utc": f"{_TIME}Z"}.get(kind or "")
        return f"'{text}'" if form is not None and re.fullmatch(form, text) else None
    if kind == "int" and isinstance(value, int):
        return str(value)
    if kind == "string" and isinstance(value, str):
        for raw, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
            value = value.replace(raw, escaped)
        return f"'{value}'"
    return None


def _is_plain(column: Any) -> bool:
    return isinstance(column, str) and re.fullmatch(r"[A-Za-z_]\w*", column, re.ASCII) is not None


def _quoted(column: str) -> str:
    return f"`{column}`"


def _comparison(kinds: Kinds, column: str, op: str, value: Any) -> str | None:
    literal = _literal(kinds.get(column), value)
    return None if literal is None or not _is_plain(column) else f"{_quoted(column)} {op} {literal}"


def _null(kinds: Kinds, column: str, test: str) -> str | None:
    return f"{_quoted(column)} {test}" if column in kinds and _is_plain(column) else None


def _in(kinds: Kinds, column: str, values: Sequence[Any]) -> str | None:
    if not _is_plain(column) or len(values) > _MAX_VALUES:
        return None
    literals = [_literal(kinds.get(column), one) for one in values if one is not None]
    known = [one for one in literals if one is not None]
    if not known or len(known) < len(literals):
        return None
    listed = f"{_quoted(column)} in ({', '.join(known)})"
    return f"({listed} or {_quoted(column)} is null)" if len(known) < len(values) else listed


def _join(op: str, left: str | None, right: str | None) -> str | None:
    if op == "and":
        # A row must match both: one of them alone selects more rows.
        parts = [part for part in (left, right) if part is not None]
        return " and ".join(parts) if parts else None
    return None if left is None or right is None else f"({left} or {right})"


def from_arrow(expression: Any, kinds: Kinds) -> str | None:
    """The filter of a `pyarrow.compute.Expression`."""
    if not all(map(_is_plain, kinds)):
        return None  # The text of an expression has names without quotes.
    text = str(expression)
    try:
        sets: list[list[Any]] = []
        if "{" in text or "[" in text:
            sets = _value_sets(expression)
            if text.count("value_set=") != len(sets) or len(_VALUE_SET.findall(text)) != len(sets):
                return None
        numbers = iter(range(len(sets)))
        tokens = _tokens(_VALUE_SET.sub(lambda _: f"{{{next(numbers)}}}", text))
        made, end = _Parser(tokens, kinds, sets).operand(0)
    except (IndexError, RecursionError, _Unknown):
        return None
    return made if end == len(tokens) else None


def _value_sets(expression: Any) -> list[list[Any]]:
    """The values of each `is_in`, in the order of the text.

    They come from the serialized expression, one column for each literal and for the options of each function: the text has
    strings of options and lists without escapes, so that some of them could be taken for other parts of the expression.
    """
    import pyarrow as pa

    try:
        [buffer] = expression.__reduce__()[1]
        columns = pa.ipc.open_file(buffer).get_batch(0).columns
        literals = [(column.type, column.to_pylist()[0]) for column in columns]
    except (pa.ArrowException, ValueError, TypeError, AttributeError):
        raise _Unknown from None
    sets = []
    for kind, value in literals:
        if not pa.types.is_nested(kind):
            continue
        if any(mark in one for one in _all_strings(value) for mark in '"\\'):
            raise _Unknown
        if isinstance(value, dict) and "value_set" in value:
            sets.append([_Time(one.isoformat()) if type(one) is datetime.date else one for one in value["value_set"]])
    return sets


def _all_strings(value: Any) -> list[str]:
    if isinstance(value, bytes):
        return [value.decode("latin-1")]
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [one for item in value for one in _all_strings(item)] if isinstance(value, (list, tuple)) else []


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise _Unknown
        kind = str(match.lastgroup)
        token = match[kind]
        if kind == "paren":
            tokens.append((token, token))
        elif kind == "string":
            unescaped = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], "\0"), token[1:-1], flags=re.DOTALL)
            tokens.append(("literal", unescaped) if "\0" not in unescaped else ("other", token))
        elif kind == "time":
            tokens.append(("literal", _Time(token)))
        elif kind == "number":
            tokens.append(("literal", int(token)))
        else:
            tokens.append((kind, _OPS[token] if kind == "op" else token))
        at = match.end()
    return tokens


class _Parser:
    """`(left and right)`, `(left or right)`, `(column op literal)`, functions."""

    def __init__(self, tokens: list[_Token], kinds: Kinds, sets: list[list[Any]]) -> None:
        self.tokens = tokens
        self.kinds = kinds
        self.sets = sets

    def operand(self, at: int) -> tuple[str | None, int]:
        """The filter of an operand, none if it is unsupported; and where it ends."""
        kind, name = self.tokens[at]
        if kind == "(":
            return self.expression(at)
        if kind != "word" or name in ("and", "or"):
            raise _Unknown
        if at + 1 < len(self.tokens) and self.tokens[at + 1][0] == "(":
            return self.function(at, self.closing(at + 1))
        return None, at + 1

    def expression(self, at: int) -> tuple[str | None, int]:
        end = self.closing(at)
        inner = self.tokens[at + 1 : end]
        if [kind for kind, _ in inner] == ["word", "op", "literal"]:
            return _comparison(self.kinds, inner[0][1], inner[1][1], inner[2][1]), end + 1
        if [kind for kind, _ in inner] == ["literal", "op", "word"]:
            return _comparison(self.kinds, inner[2][1], _FLIPPED[inner[1][1]], inner[0][1]), end + 1
        try:
            left, middle = self.operand(at + 1)
            kind, word = self.tokens[middle]
            if kind == "word" and word in ("and", "or"):
                right, last = self.operand(middle + 1)
                if last == end:
                    return _join(word, left, right), end + 1
        except _Unknown:
            pass
        return None, end + 1

    def closing(self, at: int) -> int:
        """The position of the parenthesis that closes the one at `at`."""
        depth = 0
        for place in range(at, len(self.tokens)):
            kind = self.tokens[place][0]
            depth += (kind == "(") - (kind == ")")
            if depth == 0:
                return place
        raise _Unknown

    def function(self, at: int, end: int) -> tuple[str | None, int]:
        inner = [token for _, token in self.tokens[at : end + 1]]
        name = inner[0]
        made = None
        if name == "is_valid" and len(inner) == 4:
            made = _null(self.kinds, inner[2], "is not null")
        elif name == "is_null" and inner[3] == "," and len(inner) == 6:
            if inner[4] == "{nan_is_null=false}" or self.kinds.get(inner[2]) != "float":
                made = _null(self.kinds, inner[2], "is null")
        elif name == "is_in":
            made = self.is_in(inner)
        elif name == "if_else" and inner[2:4] == ["is_valid", "("] and inner[-6:] == [",", "null", "[", "bool", "]", ")"]:
            # Of DuckDB: null for null rows, which a filter does not select.
            made = self.is_in(inner[7:-6])
            if inner[4:7] != [inner[9], ")", ","]:
                made = None
        return made, end + 1

    def is_in(self, inner: list[Any]) -> str | None:
        if len(inner) != 6 or inner[:2] != ["is_in", "("] or inner[3] != ",":
            return None
        number = re.fullmatch(r"\{(\d+)\}", str(inner[4]))
        return None if number is None else _in(self.kinds, inner[2], self.sets[int(number[1])])


_POLARS_OPS = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_ENDS = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}


def from_polars(serialized: str, kinds: Kinds) -> str | None:
    """The filter of a `polars.Expr`, from its JSON."""
    try:
        return _node(json.loads(serialized), kinds)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


def _node(node: Any, kinds: Kinds) -> str | None:
    if not isinstance(node, dict):
        return None
    if "Function" in node:
        try:
            return _polars_function(node["Function"], kinds)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None
    if "BinaryExpr" not in node:
        return None
    binary = node["BinaryExpr"]
    op = binary["op"]
    left, right = binary["left"], binary["right"]
    if op in ("And", "LogicalAnd", "Or", "LogicalOr"):
        return _join(op.removeprefix("Logical").lower(), _node(left, kinds), _node(right, kinds))
    if op not in _POLARS_OPS:
        return None
    if "Column" in left and "Literal" in right:
        return _comparison(kinds, left["Column"], _POLARS_OPS[op], _polars_literal(right["Literal"]))
    if "Literal" in left and "Column" in right:
        return _comparison(kinds, right["Column"], _FLIPPED[_POLARS_OPS[op]], _polars_literal(left["Literal"]))
    return None


def _polars_literal(literal: Any) -> Any:
    """A value; none for other types."""
    [(kind, value)] = literal.get("Scalar", literal.get("Dyn", {})).items()
    if kind == "Date":
        return _Time((datetime.date(1970, 1, 1) + datetime.timedelta(days=value)).isoformat())
    if kind == "Datetime":
        ticks, unit, zone = value
        per_second = {"Milliseconds": 10**3, "Microseconds": 10**6, "Nanoseconds": 10**9}[unit]
        seconds, rest = divmod(ticks, per_second)
        whole = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
        digits = len(str(per_second)) - 1
        return _Time(f"{whole.isoformat()}.{rest:0{digits}}{'' if zone is None else 'Z'}")
    return value if isinstance(value, (int, str)) else None


def _polars_function(node: Any, kinds: Kinds) -> str | None:
    test = node["function"].get("Boolean") if isinstance(node["function"], dict) else None
    column = node["input"][0].get("Column")
    if column is None or test is None:
        return None
    if test in ("IsNull", "IsNotNull"):
        return _null(kinds, column, "is null" if test == "IsNull" else "is not null")
    if "IsBetween" in test:
        first, last = _ENDS[test["IsBetween"]["closed"]]
        low, high = (_polars_literal(one["Literal"]) if "Literal" in one else None for one in node["input"][1:])
        return _join("and", _comparison(kinds, column, first, low), _comparison(kinds, column, last, high))
    if "IsIn" in test:
        listed = node["input"][1]["Literal"]["Scalar"]["List"]
        import io

        import polars

        values = polars.read_ipc_stream(io.BytesIO(bytes(listed))).to_series().to_list()
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        return _in(kinds, column, [_Time(one.isoformat()) if type(one) is datetime.date else one for one in values])
    return None
