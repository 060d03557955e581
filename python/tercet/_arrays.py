"""NumPy arrays from native buffers, and arguments for the native module."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ._errors import RequestError, UnknownNameError


def to_numpy(native: tuple[Any, str, list[int]]) -> npt.NDArray[Any]:
    """The array of a native result, without a copy."""
    buffer, name, shape = native
    if name == "bitmask":
        bits = np.unpackbits(np.frombuffer(buffer, np.uint8), count=int(np.prod(shape, dtype=np.int64)))
        return bits.astype(bool).reshape(shape)
    return np.frombuffer(buffer, dtype_of(name)).reshape(shape)


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy type of an element type. `bfloat16` needs the package `ml_dtypes`."""
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise RequestError("elements of type bfloat16 need the package `ml_dtypes`: pip install ml_dtypes") from None
    made: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return made


def to_bytes(values: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """A contiguous little-endian array, and its bytes."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise RequestError("a masked array has values that are missing; use .filled(value), and set `_FillValue` to it")
    array = np.asarray(values)
    if array.dtype.hasobject or array.dtype.kind not in "biufc" and array.dtype.name != "bfloat16":
        raise RequestError(f"arrays of type {array.dtype} cannot be stored; numbers and bools can")
    shape = array.shape
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(shape)
    return array, array.reshape(-1).view(np.uint8)


def unknown(kind: str, name: str, names: Iterable[str], file: str) -> UnknownNameError:
    """The error for a name that does not exist, with the most similar one."""
    names = list(names)
    near = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(map(repr, names[:8])) or 'none'}"
    return UnknownNameError(f"{file}: no {kind} {name!r}{hint}", file)
