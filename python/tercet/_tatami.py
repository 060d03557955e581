"""Tables and search: `.tatami` files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from . import _lib
from ._arrays import unknown
from ._errors import RequestError
from ._file import File, sizes


class Scan:
    """Rows of a table: columns, filter, offset, limit. Nothing is read until rows are requested.

    A scan is an Arrow stream (`__arrow_c_stream__`): DuckDB, Polars, pandas and pyarrow read it directly. It can be
    read several times.
    """

    __slots__ = ("_arguments", "_file", "_native")

    def __init__(self, file: TatamiFile, arguments: tuple[Any, ...]) -> None:
        self._file = file
        self._arguments = arguments
        self._native = file._native.scan(*arguments)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._native.__arrow_c_schema__()

    def to_arrow(self) -> Any:
        """The rows as `pyarrow.Table`."""
        import pyarrow

        reader = pyarrow.RecordBatchReader.from_stream(self)
        # Not `read_all`: between batches the interpreter handles Ctrl-C.
        return pyarrow.Table.from_batches([batch for batch in reader], reader.schema)

    def to_batches(self) -> Iterator[Any]:
        """The rows as batches of pyarrow, one at a time."""
        import pyarrow

        yield from pyarrow.RecordBatchReader.from_stream(self)

    def __iter__(self) -> Iterator[Any]:
        return self.to_batches()

    def partitions(self, count: int) -> list[Partition]:
        """At most `count` parts of about the same number of rows, which other processes can read; without offset and limit."""
        return [Partition(text) for text in self._native.partitions(count)]

    def to_polars(self) -> Any:
        """The rows as `polars.DataFrame`."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> Any:
        """The rows as `pandas.DataFrame`."""
        return self.to_arrow().to_pandas()

    def count(self) -> int:
        """The number of rows, from statistics where they prove it."""
        count: int = self._native.count()
        return count

    def explain(self) -> dict[str, Any]:
        """Which row groups and pages are pruned, and by what."""
        explain: dict[str, Any] = json.loads(self._native.explain())
        return explain

    def __reduce__(self) -> tuple[Any, ...]:
        return Scan, (self._file, self._arguments)

    def __repr__(self) -> str:
        columns, where, offset, limit, *_ = self._arguments
        parts = [f"columns={columns}", f"where={where!r}", f"offset={offset}", f"limit={limit}"]
        return f"<tercet.Scan of {self._file.name!r}: {', '.join(parts)}>"


class Partition:
    """A part of a scan: row groups, columns and filter of a file. It can be pickled, and read where the file can be opened."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def location(self) -> str:
        """The path or URL of the file."""
        return str(json.loads(self._text)["location"])

    @property
    def groups(self) -> list[int]:
        """The numbers of the row groups."""
        groups: list[int] = json.loads(self._text)["groups"]
        return groups

    def scan(self, file: TatamiFile | None = None) -> PartitionScan:
        """The rows. Fails if the file has changed since it was divided."""
        if file is not None:
            return PartitionScan(file, self)
        from ._open import open

        return PartitionScan(open(self.location), self)

    def narrow(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        batch_rows: int | None = None,
        file: TatamiFile | None = None,
    ) -> Partition:
        """The same row groups with some of the columns, and with one more filter."""
        if file is None:
            from ._open import open

            file = open(self.location)
        assert file is not None
        names = None if columns is None else list(columns)
        return Partition(file._native.narrow(self._text, names, where, batch_rows))

    def __reduce__(self) -> tuple[Any, ...]:
        return Partition, (self._text,)

    def __repr__(self) -> str:
        return f"<tercet.Partition of {self.location!r}: row groups {self.groups}>"


class Hit:
    """A document that was found."""

    __slots__ = ("id", "marks", "row", "score", "snippet", "title", "url")

    def __init__(self, native: dict[str, Any]) -> None:
        self.row: int = native["row"]
        self.score: float = native["score"]
        self.id: str = native["id"]
        self.url: str = native["url"]
        self.title: str = native["title"]
        #: An excerpt with the most query terms, and their positions in it.
        self.snippet: str | None = native.get("snippet")
        self.marks: list[tuple[int, int]] = native.get("marks", [])

    def __repr__(self) -> str:
        return f"<tercet.Hit {self.score:.3f} {self.title or self.url or self.id!r}>"


class Hits(list[Hit]):
    """The hits of a search, best first. They are an Arrow stream, too."""

    def _table(self) -> _lib.NativeTable:
        kinds = {"row": "int", "score": "float", "id": "string", "url": "string", "title": "string", "snippet": "string"}
        return _lib.NativeTable([(name, kind, [getattr(hit, name) for hit in self]) for name, kind in kinds.items()])

    def to_arrow(self) -> Any:
        """The hits as `pyarrow.Table`."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self).read_all()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._table().__arrow_c_schema__()

    def _repr_html_(self) -> str:
        import html

        def marked(hit: Hit) -> str:
            text, at = hit.snippet or "", 0
            parts = []
            for start, end in hit.marks:
                parts += [html.escape(text[at:start]), "<mark>", html.escape(text[start:end]), "</mark>"]
                at = end
            return "".join(parts) + html.escape(text[at:])

        rows = "".join(f"<li><b>{html.escape(hit.title or hit.url)}</b> {hit.score:.3f}<br>{marked(hit)}</li>" for hit in self)
        return f"<ol>{rows}</ol>"


class PartitionScan(Scan):
    """The rows of a partition."""

    __slots__ = ("_partition",)

    def __init__(self, file: TatamiFile, partition: Partition) -> None:
        self._file = file
        self._partition = partition
        self._arguments = (None, None, 0, None, None)
        self._native = file._native.partition(partition._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionScan, (self._file, self._partition)

    def __repr__(self) -> str:
        return repr(self._partition)


class TatamiFile(File):
    """An open `.tatami` file: a table, and a search index if it has one."""

    format = "tatami"

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        columns: list[str] = self._native.columns()
        return columns

    def __len__(self) -> int:
        rows: int = self._native.rows()
        return rows

    def __iter__(self) -> Iterator[str]:
        """The names of the columns, as those of a data frame."""
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, columns: str | list[str]) -> Scan:
        """A column, or several: `file["url"]`, `file[["url", "status"]]`."""
        return self.scan([columns] if isinstance(columns, str) else columns)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        rows: Sequence[int] | None = None,
        batch_rows: int | None = None,
    ) -> Scan:
        """Reads rows.

        >>> import pyarrow as pa, tempfile, tercet
        >>> path = tempfile.mkdtemp() + "/a.tatami"
        >>> _ = tercet.write(path, pa.table({"url": ["a", "b"], "status": [200, 404]}))
        >>> tercet.open(path).scan(["url"], where="status >= 400").to_arrow()["url"].to_pylist()
        ['b']

        Args:
            columns: Names; all columns by default.
            where: A filter: `"status >= 400 and url like '%.pdf'"`.
            rows: Row numbers.
            batch_rows: The maximum number of rows of a batch.
        """
        if columns is not None:
            known = self.columns
            for name in columns:
                if name not in known:
                    raise unknown("column", name, known, self.name)
        names = None if columns is None else list(columns)
        picked = None if rows is None else [int(row) for row in rows]
        return Scan(self, (names, where, offset, limit, picked, batch_rows))

    def to_dataset(self) -> Any:
        """The table as `pyarrow.dataset.Dataset`: DuckDB, Polars and others push columns and filters down to the file.

        >>> import pyarrow as pa, pyarrow.compute as pc, tempfile, tercet
        >>> path = tercet.write(tempfile.mkdtemp() + "/a.tatami", pa.table({"url": ["a", "b"], "status": [200, 404]}))
        >>> tercet.open(path).to_dataset().to_table(columns=["url"], filter=pc.field("status") == 404)["url"].to_pylist()
        ['b']
        """
        from ._dataset import TatamiDataset

        return TatamiDataset(self)

    def scan_polars(self) -> Any:
        """The table as `polars.LazyFrame`, which reads the columns and row groups that a query needs."""
        from ._polars import scan

        return scan(self)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.scan().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self.scan().__arrow_c_schema__()

    @property
    def has_index(self) -> bool:
        """Whether the file has a search index."""
        return bool(self._native.has_index())

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        where: str | None = None,
        rank: str = "relevance",
        snippets: bool = True,
        terms_only: bool = False,
    ) -> Hits:
        """The `k` best documents for a query: terms, `"phrases"`, `+must`, `-not`, `AND`, `OR`, `()`.

        Args:
            where: A filter of documents, as in `scan`.
            rank: `"relevance"`, `"bm25"`, or `"native"` for the ranking of the format.
            terms_only: Treat the query as plain terms; ignore operators.
        """
        found = self._native.search(
            query, k, rank=rank, filter=where, snippet_bytes=200 if snippets else 0, lenient=terms_only
        )
        return Hits(Hit(one) for one in found)

    def text(self, row: int) -> bytes:
        """The stored text of a document."""
        text: bytes = self._native.text(row)
        return text

    def _lines(self) -> list[str]:
        index = ", with a search index" if self.has_index else ""
        length, decoded, _ = self._native.describe()
        columns = ", ".join(f"{name} ({kind})" for name, kind in self._native.types())
        return [f"{len(self)} rows{index}; {sizes(length, decoded)}", f"columns: {columns}"]
