"""Writing files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _lib
from ._arrays import to_bytes
from ._dask import is_dask, stored_chunks
from ._dask import write as write_dask
from ._errors import RequestError
from ._progress import Progress, reporting
from ._typed import entry, file_members

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


@dataclass
class Parts:
    """What a `.tet` file is written from."""

    arrays: Mapping[str, Any]
    dims: Mapping[str, Sequence[str]] = field(default_factory=dict)
    attrs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: By dataset and axis name.
    labels: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    #: Records of types that the format does not have, by dataset.
    typed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Members of the metadata of the file.
    file: Mapping[str, Any] = field(default_factory=dict)


#: Attributes that queries use as numbers. Strings among them are stored as given.
_NUMBERS = ("_FillValue", "missing_value", "fill_value", "scale_factor", "add_offset", "valid_min", "valid_max", "valid_range")


def _attr(name: str, value: Any, dtype: np.dtype[Any]) -> tuple[str, str, str | None]:
    """The name of an attribute, its text, and its type for the record."""
    if name in _NUMBERS and isinstance(value, str):
        return name, value, None
    if name in _NUMBERS[:3] and isinstance(value, (int, float)) and not isinstance(value, bool):
        # A Python number has no type of its own.
        with np.errstate(all="ignore"):
            try:
                typed = dtype.type(value)
            except (OverflowError, TypeError, ValueError):
                typed = value
        if typed == value or typed != typed and value != value:
            value = typed
    kind, text = entry(name, value)
    return name, text, kind


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
    file_attrs: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> int:
    """Writes arrays to a `.tet` file. Returns its length in bytes.

    >>> import numpy as np, tempfile, tercet
    >>> path = tempfile.mkdtemp() + "/a.tet"
    >>> _ = tercet.write_tet(path, {"t2m": np.ones((2, 3))}, dims={"t2m": ["time", "lat"]}, attrs={"t2m": {"units": "K"}})
    >>> tercet.open(path)["t2m"].attrs
    {'units': 'K'}

    Args:
        datasets: Arrays by name, or an `xarray.Dataset`, whose coordinates become datasets. Types that the format does not
            have, of values and of attributes, are recorded, and restored by `xr.open_dataset`.
        dims: Axis names by dataset.
        labels: Labels by dataset and axis name.
        attrs: Attributes by dataset: `{"t2m": {"units": "K"}}`.
        chunks: Chunk shapes, by dataset or for all. Arrays of Dask keep their chunks by default; others must consist of
            whole stored chunks.
        zstd: A level, `True` for 3, `False` for none. By default compression is chosen from a sample.
        max_error: The maximum absolute error: values are rounded to as few bits as it allows.
        keep_bits: The number of mantissa bits that are kept.
        file_attrs: Attributes of the file.
    """
    if hasattr(datasets, "data_vars") and hasattr(datasets, "variables"):
        from .xarray import decompose

        parts = decompose(datasets, file_attrs)
    else:
        parts = Parts(datasets, dims or {}, attrs or {}, labels or {}, file=file_members(file_attrs or {}))
    return write_parts(
        path, parts, chunks=chunks, zstd=zstd, max_error=max_error, keep_bits=keep_bits, overwrite=overwrite
    )


def write_parts(
    path: str | os.PathLike[str],
    parts: Parts,
    *,
    chunks: Mapping[str, Sequence[int]] | Sequence[int] | None,
    zstd: int | bool | None,
    max_error: Mapping[str, float] | float | None,
    keep_bits: Mapping[str, int] | int | None,
    overwrite: bool,
) -> int:
    """Writes a `.tet` file. Returns its length in bytes."""
    new: list[dict[str, Any]] = []
    arrays: list[tuple[tuple[int, ...], Any]] = []
    for name, values in parts.arrays.items():
        dims = parts.dims.get(name)
        chunk = chunks.get(name) if isinstance(chunks, Mapping) else chunks
        record = parts.typed.get(name, {})
        has_axis = record.get("scalar") or str(record.get("kind")).startswith(("char", "complex"))
        if chunk is not None and has_axis and len(chunk) == values.ndim - 1:
            # The axis of characters, of the parts of complex numbers, or of a scalar.
            chunk = [*chunk, values.shape[-1]]
        if is_dask(values):
            # Computed block by block, when it is written.
            array, data = np.empty((0,) * values.ndim, values.dtype.newbyteorder("<")), values
            chunk = stored_chunks(name, values, chunk, dims)
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
                "dims": list(dims) if dims is not None else None,
                "labels": [(axis, [str(one) for one in all_]) for axis, all_ in parts.labels.get(name, {}).items()],
                "attrs": [_attr(key, value, array.dtype) for key, value in parts.attrs.get(name, {}).items()],
                "zstd": 3 if zstd is True else None if zstd is False else zstd,
                "raw": zstd is False,
                "max_error": per_dataset(max_error) if is_float or isinstance(max_error, Mapping) else None,
                "keep_bits": per_dataset(keep_bits) if is_float or isinstance(keep_bits, Mapping) else None,
            }
        )
    metadata = {"file": parts.file, "datasets": {name: {"typed": one} for name, one in parts.typed.items()}}
    writer = _lib.TetWriter(os.fspath(path), new, metadata=json.dumps(metadata), overwrite=overwrite)
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
    progress: Progress = None,
) -> int:
    """Writes messages to a `.tgm` file, or appends them. Returns their number.

    >>> import numpy as np, tempfile, tercet
    >>> path = tempfile.mkdtemp() + "/run.tgm"
    >>> tercet.write_tgm(path, [({"step": 0}, {"t2m": np.ones((2, 3))}), ({"step": 6}, {"t2m": np.zeros((2, 3))})])
    2
    >>> tercet.open(path)[1].metadata
    {'step': 6}

    Args:
        messages: A list of `(metadata, objects)`; `objects` are arrays by name. NaN and infinity are kept by masks.
        compression: `none`, `zstd`, `lz4`, `blosc2`, `szip`, `zfp`.
        object_metadata: More metadata of the objects: one dictionary by name for each message.
        append: Append to an existing file, in place.
        progress: `True` for a bar, or a function that gets the bytes processed so far.
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
    total = sum(one["values"].nbytes for message in new for one in message["objects"])
    with reporting(progress, total, "writing") as report:
        return _lib.write_tgm(os.fspath(path), new, overwrite=overwrite, append=append, progress=report)


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
    progress: Progress = None,
) -> int:
    """Writes a table to a `.tatami` file. Returns the number of rows.

    >>> import pyarrow, tempfile, tercet
    >>> tercet.write_tatami(tempfile.mkdtemp() + "/a.tatami", pyarrow.table({"url": ["a", "b"], "status": [200, 404]}))
    2

    Args:
        table: Anything with `__arrow_c_stream__`, or the path or URL of a CSV, TSV, JSONL, Parquet, Arrow or `.tatami`
            file, or a list of them, which become one table. Dialect and types of text are detected.
        sort: Sort the rows of files by this column, which becomes the sort key; in temporary files if needed.
        blobs: String or bytes columns of files that are stored as blobs, for large values.
        blooms: Columns of files with bloom filters.
        progress: `True` for a bar, or a function that gets the bytes processed so far.
    """
    if isinstance(table, (str, os.PathLike)):
        table = [table]
    if isinstance(table, (list, tuple)) and table and all(isinstance(one, (str, os.PathLike)) for one in table):
        inputs = [os.fspath(one) for one in table]
        options: dict[str, Any] = {"sort": sort, "blobs": list(blobs), "blooms": list(blooms)}
        sizes = [os.path.getsize(one) if os.path.isfile(one) else None for one in inputs]
        total = None if None in sizes else sum(one for one in sizes if one is not None)
        with reporting(progress, total, "writing") as report:
            return _lib.create_tatami(os.fspath(path), inputs, overwrite=overwrite, progress=report, **options)
    if sort is not None or blobs or blooms:
        raise RequestError("sort, blobs and blooms apply to files; sort an Arrow table before it is written")
    with reporting(progress, None, "writing") as report:
        return _lib.write_tatami(os.fspath(path), table, overwrite=overwrite, progress=report)
