"""Filters of pyarrow and Polars as filters of a scan.

The result selects at least the rows of the filter: unsupported parts are skipped, and callers apply the whole filter to
what they read. Only comparisons of integer and string columns are translated; for floats, engines differ in what NaN is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

#: `int` or `string` by the name of a column.
Kinds = Mapping[str, str]

_OPS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TOKEN = re.compile(r'\s*(?:(\(|\))|("(?:[^"\\])*")|(==|!=|<=|>=|<|>)|(and|or)\b|(-?\d+)(?![\w.:-])|([A-Za-z_]\w*))')


class _Unknown(Exception):
    """The text has another form."""


def _comparison(kinds: Kinds, column: str, op: str, literal: Any) -> str | None:
    kind = kinds.get(column)
    if not re.fullmatch(r"[A-Za-z_]\w*", column) or isinstance(literal, bool):
        return None
    if kind == "int" and isinstance(literal, int):
        return f"{column} {op} {literal}"
    if kind == "string" and isinstance(literal, str):
        quoted = literal.replace("'", "''")
        return f"{column} {op} '{quoted}'"
    return None


def _join(op: str, left: str | None, right: str | None) -> str | None:
    if op == "and":
        # A row must match both: one of them alone selects more rows.
        parts = [part for part in (left, right) if part is not None]
        return " and ".join(parts) if parts else None
    return None if left is None or right is None else f"({left} or {right})"


def from_arrow(text: str, kinds: Kinds) -> str | None:
    """The filter of a `pyarrow.compute.Expression`, from its text."""
    tokens: list[tuple[str, Any]] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        paren, string, op, word, number, name = match.groups()
        if paren:
            tokens.append((paren, paren))
        elif string:
            tokens.append(("literal", string[1:-1]))
        elif op:
            tokens.append(("op", _OPS[op]))
        elif word:
            tokens.append(("word", word))
        elif number:
            tokens.append(("literal", int(number)))
        else:
            tokens.append(("name", name))
        at = match.end()
    try:
        made, end = _expression(tokens, 0, kinds)
    except (IndexError, _Unknown):
        return None
    return made if end == len(tokens) else None


def _expression(tokens: list[tuple[str, Any]], at: int, kinds: Kinds) -> tuple[str | None, int]:
    """`(left and right)`, `(left or right)`, `(column op literal)`."""
    if tokens[at][0] != "(":
        raise _Unknown
    if tokens[at + 1][0] == "(":
        left, at = _expression(tokens, at + 1, kinds)
        kind, word = tokens[at]
        if kind != "word":
            raise _Unknown
        right, at = _expression(tokens, at + 1, kinds)
        made = _join(word, left, right)
    else:
        (first, column), (second, op), (third, literal) = tokens[at + 1 : at + 4]
        if (first, second, third) != ("name", "op", "literal"):
            raise _Unknown
        made, at = _comparison(kinds, column, op, literal), at + 4
    if tokens[at][0] != ")":
        raise _Unknown
    return made, at + 1


_POLARS_OPS = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}


def from_polars(serialized: str, kinds: Kinds) -> str | None:
    """The filter of a `polars.Expr`, from its JSON."""
    try:
        return _node(json.loads(serialized), kinds)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _node(node: Any, kinds: Kinds) -> str | None:
    if not isinstance(node, dict) or "BinaryExpr" not in node:
        return None
    binary = node["BinaryExpr"]
    op = binary["op"]
    if op in ("And", "Or"):
        return _join(op.lower(), _node(binary["left"], kinds), _node(binary["right"], kinds))
    left, right = binary["left"], binary["right"]
    if op not in _POLARS_OPS or "Column" not in left or "Literal" not in right:
        return None
    literal = right["Literal"]
    [value] = literal.get("Scalar", literal.get("Dyn", {})).values()
    return _comparison(kinds, left["Column"], _POLARS_OPS[op], value)
