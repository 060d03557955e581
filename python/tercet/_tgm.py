"""Messages: `.tgm` files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _lib
from ._arrays import dtype_of, to_numpy, unknown
from ._errors import RequestError
from ._file import File, listing, size_text


class Object:
    """One array of a message. Nothing is decoded until values are requested."""

    __slots__ = ("_described", "_message", "number")

    def __init__(self, message: Message, number: int) -> None:
        self._message = message
        self.number = number
        self._described: dict[str, Any] | None = None

    @property
    def _descriptor(self) -> dict[str, Any]:
        if self._described is not None:
            return self._described
        described: dict[str, Any] = self._message._native.descriptor(self.number)
        self._described = described
        return described

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the object."""
        base = self._message.base
        return base[self.number] if self.number < len(base) else {}

    @property
    def name(self) -> str:
        """The name in the metadata: `name`, `param` or `mars.param`; else `object_N`."""
        return _name(self.metadata, self.number)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._descriptor["shape"])

    @property
    def dtype(self) -> np.dtype[Any]:
        name = self._descriptor["dtype"]
        return np.dtype(bool) if name == "bitmask" else dtype_of(name)

    @property
    def descriptor(self) -> dict[str, Any]:
        """Element type, shape, encoding, filter, compression and their parameters."""
        return dict(self._descriptor)

    def to_numpy(
        self, *, dtype: npt.DTypeLike | None = None, out: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[Any]:
        """Decodes the array, verified. Masked values are NaN or infinite.

        Args:
            dtype: Convert to this element type.
            out: Decode into this array, of the same shape.
        """
        native = self._message._native
        if out is None:
            array = to_numpy(native.decode(self.number))
            return array if dtype is None else array.astype(dtype, copy=False)
        if dtype is not None:
            raise RequestError("`out` has an element type of its own; use it without `dtype`")
        if out.shape != self.shape:
            raise RequestError(f"`out` has the shape {out.shape}, the object {self.shape}")
        is_bits = self._descriptor["dtype"] == "bitmask"
        if out.dtype == self.dtype and out.flags.c_contiguous and out.flags.writeable and not is_bits:
            native.decode_into(self.number, out.reshape(-1).view(np.uint8))
        else:
            np.copyto(out, to_numpy(native.decode(self.number)), casting="same_kind")
        return out

    def ranges(self, ranges: Sequence[tuple[int, int]]) -> list[npt.NDArray[Any]]:
        """Decodes ranges of elements, in row-major order; only the blocks that they need."""
        return [to_numpy(one) for one in self._message._native.decode_ranges(self.number, list(ranges))]

    def __dlpack__(self, **options: Any) -> Any:
        return self.to_numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return (1, 0)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self.to_numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        return self.to_numpy()[key]

    def __repr__(self) -> str:
        pipeline = [self._descriptor[key] for key in ("encoding", "filter", "compression")]
        pipeline = [one for one in pipeline if one != "none"] or ["none"]
        return f"<tercet.Object {self.name!r} {self.shape} {self.dtype}, {'+'.join(pipeline)}>"

    def _repr_html_(self) -> str:
        metadata = [f"{key}: {value}" for key, value in flatten(self.metadata).items()]
        return listing("Object", self.name, [repr(self), *metadata])

    def __reduce__(self) -> tuple[Any, ...]:
        return Object, (self._message, self.number)


def _name(metadata: Mapping[str, Any], number: int) -> str:
    for key in ("name", "param"):
        if isinstance(metadata.get(key), str):
            return str(metadata[key])
    mars = metadata.get("mars")
    if isinstance(mars, Mapping) and mars.get("param") is not None:
        return str(mars["param"])
    return f"object_{number}"


class Message(Mapping):  # type: ignore[type-arg]
    """One message: its metadata, and its objects by name or number."""

    __slots__ = ("_file", "_native", "_read")

    def __init__(self, native: Any, file: TgmFile | None = None) -> None:
        self._native = native
        self._file = file
        self._read: tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]] | None = None

    @property
    def _sections(self) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
        if self._read is not None:
            return self._read
        sections: tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]] = self._native.metadata()
        self._read = sections
        return sections

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the message (`extra`)."""
        return self._sections[0]

    @property
    def base(self) -> list[dict[str, Any]]:
        """The metadata of each object."""
        return self._sections[1]

    @property
    def reserved(self) -> dict[str, Any]:
        """The metadata of the library that wrote the message."""
        return self._sections[2]

    @property
    def number(self) -> int:
        """The number of the message in its file, from 0."""
        number: int = self._native.number()
        return number

    @property
    def objects(self) -> list[Object]:
        return [Object(self, number) for number in range(self._native.object_count())]

    def _names(self) -> list[str]:
        count = self._native.object_count()
        return [_name(self.base[number] if number < len(self.base) else {}, number) for number in range(count)]

    def __getitem__(self, key: str | int) -> Object:
        if isinstance(key, str):
            names = self._names()
            if key not in names:
                raise unknown("object", key, names, f"message {self.number}")
            if names.count(key) > 1:
                places = [str(place) for place, name in enumerate(names) if name == key]
                raise RequestError(f"message {self.number}: objects {', '.join(places)} are named {key!r}; use a number")
            return Object(self, names.index(key))
        count = len(self)
        if not -count <= key < count:
            raise IndexError(f"message {self.number} has {count} objects, no object {key}")
        return Object(self, key % count)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        count: int = self._native.object_count()
        return count

    def __repr__(self) -> str:
        objects = "".join(f"\n  {one!r}" for one in self.objects[:20])
        return f"<tercet.Message {self.number} {self.metadata}>{objects}"

    def _repr_html_(self) -> str:
        metadata = [f"{key}: {value}" for key, value in flatten(self.metadata).items()]
        return listing("Message", str(self.number), [*metadata, *(repr(one) for one in self.objects[:50])])

    def to_bytes(self) -> bytes:
        """The stored bytes."""
        data: bytes = self._native.bytes()
        return data

    def __reduce__(self) -> tuple[Any, ...]:
        return _message, (self._file, self.number)


def _message(file: TgmFile, number: int) -> Message:
    found: Message = file[number]
    return found


def flatten(metadata: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The scalar values of metadata, with paths such as `mars.param` as keys."""
    found: dict[str, Any] = {}
    for key, value in metadata.items():
        if isinstance(value, dict):
            if key != "_reserved_":
                found.update(flatten(value, f"{prefix}{key}."))
        elif isinstance(value, (str, int, float)):
            found[f"{prefix}{key}"] = value
    return found


class MessageTable:
    """The objects of a file as a table."""

    def __init__(self, file: TgmFile) -> None:
        rows: list[dict[str, Any]] = []
        for message in file:
            start, end = message._native.span()
            for one in message.objects:
                row = {**flatten(message.metadata), **flatten(one.metadata)}
                shape = ",".join(map(str, one.shape))
                fixed = {"message": message.number, "object": one.number, "name": one.name, "dtype": one.descriptor["dtype"]}
                rows.append({**row, **fixed, "shape": shape, "offset": start, "length": end - start})
        first = ["message", "object", "name", "dtype", "shape", "offset", "length"]
        names = first + sorted({key for row in rows for key in row} - set(first))
        self._table = _lib.NativeTable([(name, *_column([row.get(name) for row in rows], name)) for name in names])

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._table.__arrow_c_schema__()

    def to_arrow(self) -> Any:
        """The rows as `pyarrow.Table`."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self).read_all()


def _column(values: list[Any], name: str) -> tuple[str, list[Any]]:
    """The type of a column, and its values; strings if they are mixed."""
    kinds = {type(value) for value in values if value is not None}
    fits = all(-(2**63) <= value < 2**63 for value in values if isinstance(value, int))
    if name in ("message", "object", "offset", "length") or kinds == {int} and fits:
        return "int", values
    if kinds and kinds <= {int, float} and bool not in kinds:
        return "float", [None if value is None else float(value) for value in values]
    return "string", [None if value is None else str(value) for value in values]


class TgmFile(File, Sequence[Message]):
    """An open `.tgm` file: a sequence of messages.

    >>> import numpy as np, tempfile, tercet
    >>> path = tercet.write(tempfile.mkdtemp() + "/run.tgm", [({"step": step}, {"t2m": np.full(3, step)}) for step in (0, 6)])
    >>> run = tercet.open(path)
    >>> [message.metadata["step"] for message in run]
    [0, 6]
    >>> run[1]["t2m"].to_numpy()
    array([6, 6, 6])
    """

    format = "tgm"

    def __len__(self) -> int:
        count: int = self._native.message_count()
        return count

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [self[number] for number in range(*key.indices(len(self)))]
        count = len(self)
        if not -count <= key < count:
            raise IndexError(f"{self.name} has {count} messages, no message {key}")
        return Message(self._native.message(key % count), self)

    def table(self) -> MessageTable:
        """One row for each object: message, object, name, type, shape, position, and the scalar keys of the metadata.

        It is an Arrow stream: `pyarrow.table(file.table())`, `polars.DataFrame(file.table())`.
        """
        return MessageTable(self)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self.table().__arrow_c_schema__()

    def __iter__(self) -> Iterator[Message]:
        for number in range(len(self)):
            yield Message(self._native.message(number), self)

    def _lines(self) -> list[str]:
        count = len(self)
        messages = f"{count} message{'s' * (count != 1)}; {size_text(self._native.len())}"
        return [messages, *(repr(message).split("\n")[0] for message in self[:20])]
