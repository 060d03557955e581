"""Writing files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _lib
from ._arrays import to_bytes
from ._dask import is_dask, stored_chunks
from ._dask import write as write_dask
from ._errors import RequestError

#: Chunks have about this many bytes by default.
CHUNK_BYTES = 4 << 20


def write(path: str | os.PathLike[str], data: Any, **options: Any) -> str:
    """Writes a file; its extension decides the format. Returns the path.

    * `.tet`: a dictionary of arrays, or an `xarray.Dataset`; see `write_tet`.
    * `.tgm`: a list of messages; see `write_tgm`.
    * `.tatami`: anything with `__arrow_c_stream__`: a table of pyarrow, Polars or DuckDB; see `write_tatami`.

    The file appears complete or not at all. An existing file is an error unless `overwrite=True`.
    """
    name = os.fspath(path)
    writers: dict[str, Callable[..., int]] = {".tet": write_tet, ".tgm": write_tgm, ".tatami": write_tatami}
    writer = writers.get(os.path.splitext(name)[1])
    if writer is None:
        raise RequestError(f"{name}: cannot infer the format from the file name; use .tet, .tgm or .tatami")
    writer(name, data, **options)
    return name


def _attr(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    return json.dumps(value)


def default_chunks(shape: Sequence[int], itemsize: int) -> list[int]:
    """Chunks of about 4 MiB: whole trailing axes first."""
    chunks = [max(1, extent) for extent in shape]
    size = itemsize
    for extent in chunks:
        size *= extent
    for axis, extent in enumerate(chunks):
        if size <= CHUNK_BYTES:
            break
        rest = size // extent
        chunks[axis] = max(1, CHUNK_BYTES // rest)
        size = rest * chunks[axis]
    return chunks


def write_tet(
    path: str | os.PathLike[str],
    datasets: Any,
    *,
    dims: Mapping[str, Sequence[str]] | None = None,
    labels: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    attrs: Mapping[str, Mapping[str, Any]] | None = None,
    chunks: Mapping[str, Sequence[int]] | Sequence[int] | None = None,
    zstd: int | bool | None = None,
    max_error: Mapping[str, float] | float | None = None,
    keep_bits: Mapping[str, int] | int | None = None,
    overwrite: bool = False,
) -> int:
    """Writes arrays to a `.tet` file. Returns its length in bytes.

    Args:
        datasets: Arrays by name, or an `xarray.Dataset`, whose coordinates become datasets.
        dims: Axis names by dataset.
        labels: Labels by dataset and axis name.
        attrs: Attributes by dataset: `{"t2m": {"units": "K"}}`.
        chunks: Chunk shapes, by dataset or for all. Arrays of Dask keep their chunks by default; others must consist of
            whole stored chunks.
        zstd: A level, `True` for 3, `False` for none. By default compression is chosen from a sample.
        max_error: The maximum absolute error: values are rounded to as few bits as it allows.
        keep_bits: The number of mantissa bits that are kept.
    """
    if hasattr(datasets, "data_vars") and hasattr(datasets, "variables"):
        from .xarray import decompose

        datasets, dims, attrs, labels = decompose(datasets)
    new: list[dict[str, Any]] = []
    arrays: list[tuple[tuple[int, ...], Any]] = []
    for name, values in datasets.items():
        chunk = chunks.get(name) if isinstance(chunks, Mapping) else chunks
        if is_dask(values):
            # Computed block by block, when it is written.
            array, data = np.empty((0,) * values.ndim, values.dtype.newbyteorder("<")), values
            chunk = stored_chunks(name, values, chunk, (dims or {}).get(name))
        else:
            array, data = to_bytes(values)
        extents = values.shape if data is values else array.shape

        def per_dataset(option: Any, name: str = name) -> Any:
            return option.get(name) if isinstance(option, Mapping) else option

        is_float = array.dtype.kind == "f"
        arrays.append((extents, data))
        new.append(
            {
                "name": name,
                "dtype": array.dtype.name,
                "shape": list(extents),
                "chunks": list(chunk) if chunk is not None else default_chunks(extents, array.dtype.itemsize),
                "dims": list(dims[name]) if dims and name in dims else None,
                "labels": [(axis, [str(one) for one in all_]) for axis, all_ in (labels or {}).get(name, {}).items()],
                "attrs": [(key, _attr(value)) for key, value in (attrs or {}).get(name, {}).items()],
                "zstd": 3 if zstd is True else None if zstd is False else zstd,
                "raw": zstd is False,
                "max_error": per_dataset(max_error) if is_float or isinstance(max_error, Mapping) else None,
                "keep_bits": per_dataset(keep_bits) if is_float or isinstance(keep_bits, Mapping) else None,
            }
        )
    writer = _lib.TetWriter(os.fspath(path), new, overwrite=overwrite)
    try:
        for number, (shape, data) in enumerate(arrays):
            if not is_dask(data):
                writer.array(number, list(shape), data)
        delayed = {number: data for number, (_, data) in enumerate(arrays) if is_dask(data)}
        if delayed:
            write_dask(writer, new, delayed)
        length: int = writer.finish()
    except BaseException:
        # The traceback keeps the writer alive.
        writer.abort()
        raise
    return length


def write_tgm(
    path: str | os.PathLike[str],
    messages: Any,
    *,
    compression: str = "zstd",
    encoding: str = "none",
    filter: str = "none",
    params: Mapping[str, Any] | None = None,
    object_metadata: Sequence[Mapping[str, Mapping[str, Any]]] | None = None,
    overwrite: bool = False,
    append: bool = False,
) -> int:
    """Writes messages to a `.tgm` file, or appends them. Returns their number.

    Args:
        messages: A list of `(metadata, objects)`; `objects` are arrays by name. NaN and infinity are kept by masks.
        compression: `none`, `zstd`, `lz4`, `blosc2`, `szip`, `zfp`.
        object_metadata: More metadata of the objects: one dictionary by name for each message.
        append: Append to an existing file, in place.
    """
    new = []
    for number, (metadata, objects) in enumerate(messages):
        described = object_metadata[number] if object_metadata is not None else {}
        made = []
        for name, values in objects.items():
            array, data = to_bytes(values)
            _check_complex(name, array)
            made.append(
                {
                    "dtype": array.dtype.name,
                    "shape": list(array.shape),
                    "values": data,
                    "encoding": encoding,
                    "filter": filter,
                    "compression": compression,
                    "params": dict(params or {}),
                    "metadata": {**described.get(name, {}), "name": name},
                }
            )
        new.append({"metadata": dict(metadata), "objects": made})
    count: int = _lib.write_tgm(os.fspath(path), new, overwrite=overwrite, append=append)
    return count


def _check_complex(name: str, array: Any) -> None:
    """Masks have one bit for each element: a complex number would be restored with the same value in both parts."""
    if array.dtype.kind == "c":
        odd = array[~np.isfinite(array)]
        if not ((odd.real == odd.imag) | (np.isnan(odd.real) & np.isnan(odd.imag))).all():
            raise RequestError(f"object {name!r}: a complex number with one part that is not finite cannot be stored in .tgm")


def write_tatami(
    path: str | os.PathLike[str],
    table: Any,
    *,
    sort: str | None = None,
    blobs: Sequence[str] = (),
    blooms: Sequence[str] = (),
    overwrite: bool = False,
) -> int:
    """Writes a table to a `.tatami` file. Returns the number of rows.

    Args:
        table: Anything with `__arrow_c_stream__`, or the path or URL of a CSV, TSV, JSONL, Parquet, Arrow or `.tatami`
            file, or a list of them, which become one table. Dialect and types of text are detected.
        sort: Sort the rows of files by this column, which becomes the sort key; in temporary files if needed.
        blobs: String or bytes columns of files that are stored as blobs, for large values.
        blooms: Columns of files with bloom filters.
    """
    if isinstance(table, (str, os.PathLike)):
        table = [table]
    if isinstance(table, (list, tuple)) and table and all(isinstance(one, (str, os.PathLike)) for one in table):
        inputs = [os.fspath(one) for one in table]
        options: dict[str, Any] = {"sort": sort, "blobs": list(blobs), "blooms": list(blooms)}
        return _lib.create_tatami(os.fspath(path), inputs, overwrite=overwrite, **options)
    if sort is not None or blobs or blooms:
        raise RequestError("sort, blobs and blooms apply to files; sort an Arrow table before it is written")
    rows: int = _lib.write_tatami(os.fspath(path), table, overwrite=overwrite)
    return rows
