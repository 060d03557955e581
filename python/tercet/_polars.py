"""Polars frames over a table, read when a query runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from ._errors import RequestError
from ._pushdown import from_polars
from ._tatami import TatamiFile


def scan(file: TatamiFile) -> pl.LazyFrame:
    """A lazy frame. Columns and the filter reach the scan; the filter and the limit are applied to what it returns."""
    empty = pl.DataFrame(file.scan(limit=0))
    schema = empty.schema
    kinds = {name: _kind(dtype) for name, dtype in schema.items()}

    def source(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        names = None
        where = None
        if predicate is not None:
            where = from_polars(predicate.meta.serialize(format="json"), kinds)
        if with_columns is not None:
            used = [] if predicate is None else predicate.meta.root_names()
            names = [name for name in schema if name in {*with_columns, *used}]
        limit = n_rows if predicate is None else None
        try:
            rows = file.scan(names, where, limit=limit, batch_rows=batch_size)
        except RequestError:
            rows = file.scan(names, limit=limit, batch_rows=batch_size)
        left = n_rows
        for batch in _batches(rows):
            frame = batch if predicate is None else batch.filter(predicate)
            frame = frame if with_columns is None else frame.select(with_columns)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            yield frame
            if left == 0:
                return

    return register_io_source(source, schema=schema)


def _kind(dtype: pl.DataType) -> str:
    """The type of a column for the translation of filters."""
    if dtype.is_integer():
        return "int"
    if isinstance(dtype, pl.Datetime):
        return "timestamp" if dtype.time_zone is None else "timestamp_utc"
    return {pl.String: "string", pl.Date: "date"}.get(type(dtype), "other")


def _batches(rows: Any) -> Iterator[pl.DataFrame]:
    """The batches of a scan, one at a time if pyarrow is installed."""
    try:
        import pyarrow
    except ImportError:
        yield pl.DataFrame(rows)
        return
    for batch in pyarrow.RecordBatchReader.from_stream(rows):
        yield pl.DataFrame(batch)
