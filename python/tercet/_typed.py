"""Types that `.tet` files do not have, as `tercet convert` and the writers of this package record them in the metadata.

The format has no int8, bool, complex, character or scalar values, and its attributes are strings. The member `typed` of the
metadata of a dataset says what it was: `{"kind": "int8", "scalar": true, "attrs": [["level", "i16", "850"]]}`. A record of an
attribute counts only while the attribute has the recorded text, so that it can be edited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._errors import RequestError

_SHORT = {
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
}
_LONG = {short: name for name, short in _SHORT.items()}


def _value(kind: str, text: str) -> Any:
    if kind == "string":
        return text
    if kind in ("string[]", "json"):
        return json.loads(text)
    short, is_list, _ = kind.partition("[]")
    name = _LONG[short]
    if not is_list:
        value = np.dtype(name).type(text)
        return value.item() if name in ("int64", "float64") else value
    parts = text.removeprefix("[").removesuffix("]")
    return np.array(parts.split(",") if parts else [], dtype=str).astype(name)


def attributes(typed: Mapping[str, Any] | None, stored: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """The stored attributes, with their recorded types, and those that are recorded only.

    `texts` has the stored text of each attribute, which must be that of the record.
    """
    left = dict(stored)
    attrs: dict[str, Any] = {}
    entries = (typed or {}).get("attrs")
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, list) or len(entry) < 3 or not all(isinstance(one, str) for one in entry):
            continue
        name, kind, text = entry[:3]
        if name not in stored and len(entry) == 3:
            continue  # Removed by an edit.
        try:
            value = _value(kind, text)
        except (KeyError, ValueError, TypeError, OverflowError):
            value = left.get(name)
        if name in left:
            given = left.pop(name)
            attrs[name] = value if texts.get(name) == text else given
        elif value is not None:
            attrs[name] = value
    return {**attrs, **left}


#: Longer attributes are in the record only, and so are more attributes than this: other programs do not expect them.
_VISIBLE_BYTES = 1024
_VISIBLE_ATTRS = 60


def _number_text(value: Any) -> str:
    if np.issubdtype(value.dtype, np.integer):
        return str(int(value))
    # The shortest text of the element type.
    number = float(str(value))
    return "NaN" if number != number else repr(number)


def entry(name: str, value: Any) -> tuple[str, str]:
    """The type of an attribute in the record, and its text."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "US":
        value = np.asarray(value).astype(str).tolist()
    if isinstance(value, str):
        return "string", str(value)
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(one, str) for one in value):
            return "string[]", _compact(name, list(value))
        is_numeric = all(isinstance(one, (int, float, np.number)) and not isinstance(one, bool) for one in value)
    else:
        is_numeric = isinstance(value, (int, float, np.ndarray, np.generic)) and not isinstance(value, bool)
    if is_numeric:
        array = np.asarray(value)
        short = _SHORT.get(array.dtype.name)
        if short is not None and array.ndim <= 1:
            texts = [_number_text(one) for one in array.reshape(-1)]
            return (short, texts[0]) if array.ndim == 0 else (f"{short}[]", f"[{','.join(texts)}]")
    return "json", _compact(name, value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value)


def _compact(name: str, value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        raise RequestError(
            f"attribute {name!r}: values of type {type(value).__name__} cannot be stored; numbers, strings and lists can"
        ) from None


def file_members(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a file as members of its metadata."""
    shown: dict[str, Any] = {}
    records: list[list[str]] = []
    for name, value in attrs.items():
        kind, text = entry(name, value)
        visible = None
        if all(0 < len(one.encode("utf-8", "surrogateescape")) <= _VISIBLE_BYTES for one in (name, text)):
            visible = text if kind == "string" else _json(text)
        if visible is None or len(shown) >= _VISIBLE_ATTRS:
            records.append([name, kind, text, "only here"])
        else:
            shown[name] = visible
            records.append([name, kind, text])
    if all(kind == "string" and not rest for _, kind, _, *rest in records):
        return {"attrs": shown} if shown else {}
    return {"attrs": shown, "typed": {"attrs": records}}


def _json(text: str) -> Any:
    """A value of JSON, which has no NaN and no infinities; else none."""

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse)
    except ValueError:
        return None
