"""`pyarrow.dataset.Dataset` over a table: projection, filter and fragments reach the scan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from ._errors import RequestError
from ._pushdown import from_arrow
from ._tatami import Partition, Scan, TatamiFile


def _kinds(schema: pa.Schema) -> dict[str, str]:
    return {field.name: _kind(field.type) for field in schema}


def _kind(dtype: pa.DataType) -> str:
    """The type of a column for the translation of filters."""
    if pa.types.is_integer(dtype):
        return "int"
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        return "string"
    if pa.types.is_date32(dtype):
        return "date"
    if pa.types.is_timestamp(dtype):
        return "timestamp" if dtype.tz is None else "timestamp_utc"
    return "float" if pa.types.is_floating(dtype) else "other"


class _Scannable:
    """What a dataset and its fragments share."""

    _file: TatamiFile
    _schema: pa.Schema
    _filter: ds.Expression | None

    def _scan(self, columns: list[str] | None, where: str | None, batch_rows: int | None) -> Scan:
        raise NotImplementedError

    def _all(self, filter: ds.Expression | None) -> ds.Expression | None:
        if self._filter is None or filter is None:
            return self._filter if filter is None else filter
        return self._filter & filter

    def make_scanner(self, columns: Any, filter: ds.Expression | None, batch_size: int | None) -> ds.Scanner:
        """A scanner of pyarrow, which applies what the scan does not."""
        filter = self._all(filter)
        names = None
        if isinstance(columns, (list, tuple)):
            used = set() if filter is None else set(re.findall(r"\w+", str(filter)))
            wanted = set(columns) | used
            # A name with other characters than letters: every column is read.
            odd = filter is not None and any(re.search(r"\W", name) for name in self._schema.names)
            names = None if odd else [name for name in self._schema.names if name in wanted]
        where = None if filter is None else from_arrow(filter, _kinds(self._schema))
        # Without any column there would be no rows to count.
        if names == []:
            names = self._schema.names[:1]
        try:
            scan = self._scan(names, where, batch_size)
        except RequestError:
            scan = self._scan(names, None, batch_size)
        reader = pa.RecordBatchReader.from_stream(scan)
        return ds.Scanner.from_batches(reader, columns=columns, filter=filter)


class TatamiDataset(ds.Dataset, _Scannable):  # type: ignore[misc]
    """The rows of a `.tatami` file. DuckDB and Polars read only the columns and row groups that a query needs."""

    def __init__(self, file: TatamiFile, filter: ds.Expression | None = None) -> None:
        self._file = file
        self._filter = filter
        self._schema = pa.schema(file.scan())

    def __reduce__(self) -> tuple[Any, ...]:
        return TatamiDataset, (self._file, self._filter)

    def _scan(self, columns: list[str] | None, where: str | None, batch_rows: int | None) -> Scan:
        return self._file.scan(columns, where, batch_rows=batch_rows)

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def partition_expression(self) -> ds.Expression:
        return ds.scalar(True)

    def scanner(
        self, columns: Any = None, filter: ds.Expression | None = None, batch_size: int | None = None, **_: Any
    ) -> ds.Scanner:
        return self.make_scanner(columns, filter, batch_size)

    def to_batches(self, **options: Any) -> Iterator[pa.RecordBatch]:
        yield from self.scanner(**options).to_batches()

    def to_table(self, **options: Any) -> pa.Table:
        return self.scanner(**options).to_table()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        return self.scanner(**options).head(num_rows)

    def take(self, indices: Any, **options: Any) -> pa.Table:
        if self._filter is not None or options.get("filter") is not None:
            return self.to_table(**options).take(indices)
        rows = pa.array(indices).to_numpy(zero_copy_only=False)
        order = sorted(set(int(row) for row in rows))
        columns = options.get("columns")
        table = self._file.scan(list(columns) if columns is not None else None, rows=order).to_arrow()
        place = {row: number for number, row in enumerate(order)}
        return table.take([place[int(row)] for row in rows])

    def count_rows(self, filter: ds.Expression | None = None, **options: Any) -> int:
        if self._all(filter) is None:
            return len(self._file)
        return int(self.scanner([], filter, **options).count_rows())

    def filter(self, expression: ds.Expression) -> TatamiDataset:
        return TatamiDataset(self._file, self._all(expression))

    def get_fragments(self, filter: ds.Expression | None = None) -> Iterator[TatamiFragment]:
        """One fragment for each row group."""
        for partition in self._file.scan().partitions(2**31):
            yield TatamiFragment(self._file, partition, self._schema, self._all(filter))

    def sort_by(self, sorting: Any, **options: Any) -> Any:
        return ds.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: Any, keys: Any, *args: Any, **options: Any) -> Any:
        right = right_dataset.to_table() if isinstance(right_dataset, ds.Dataset) else right_dataset
        return ds.InMemoryDataset(self.to_table().join(right, keys, *args, **options))

    def join_asof(self, right_dataset: Any, *args: Any, **options: Any) -> Any:
        right = right_dataset.to_table() if isinstance(right_dataset, ds.Dataset) else right_dataset
        return ds.InMemoryDataset(self.to_table().join_asof(right, *args, **options))

    def replace_schema(self, schema: pa.Schema) -> Any:
        raise RequestError(f"{self._file.name}: the schema of a table is that of its file", self._file.name)

    def __arrow_c_schema__(self) -> Any:
        return self._schema.__arrow_c_schema__()


class TatamiFragment(_Scannable):
    """A part of a table: some row groups. Other processes can open it."""

    def __init__(
        self, file: TatamiFile, partition: Partition, schema: pa.Schema, filter: ds.Expression | None = None
    ) -> None:
        self._file = file
        self.partition = partition
        self._schema = schema
        self._filter = filter

    def _scan(self, columns: list[str] | None, where: str | None, batch_rows: int | None) -> Scan:
        return self.partition.narrow(columns, where, batch_rows, self._file).scan(self._file)

    @property
    def physical_schema(self) -> pa.Schema:
        return self._schema

    @property
    def partition_expression(self) -> ds.Expression:
        return ds.scalar(True)

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Any = None,
        filter: ds.Expression | None = None,
        batch_size: int | None = None,
        **_: Any,
    ) -> ds.Scanner:
        return self.make_scanner(columns, filter, batch_size)

    def to_batches(self, schema: pa.Schema | None = None, **options: Any) -> Iterator[pa.RecordBatch]:
        yield from self.scanner(schema, **options).to_batches()

    def to_table(self, schema: pa.Schema | None = None, **options: Any) -> pa.Table:
        return self.scanner(schema, **options).to_table()

    def count_rows(self, filter: ds.Expression | None = None) -> int:
        return int(self.scanner(None, [], filter).count_rows())
