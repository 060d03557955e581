"""Types that `.tet` files do not have, as `tercet convert` records them in their metadata.

The format has no int8, bool, complex, character or scalar values, and its attributes are strings. The member `typed` of the
metadata of a dataset says what it was: `{"kind": "int8", "scalar": true, "attrs": [["level", "i16", "850"]]}`. A record of an
attribute counts only while the attribute has the recorded text, so that it can be edited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

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
