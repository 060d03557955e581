"""Messages: `.tgm` files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ._arrays import dtype_of, to_numpy, unknown
from ._errors import RequestError
from ._file import File


class Object:
    """One array of a message. Nothing is decoded until values are asked for."""

    __slots__ = ("_descriptor", "_message", "metadata", "number")

    def __init__(self, message: Message, number: int) -> None:
        self._message = message
        self.number = number
        self._descriptor: dict[str, Any] = message._native.descriptor(number)
        base = message.base
        #: The metadata of the object.
        self.metadata: dict[str, Any] = base[number] if number < len(base) else {}

    @property
    def name(self) -> str:
        """The name in the metadata: `name`, `param` or `mars.param`; else `object_N`."""
        return _name(self.metadata, self.number)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._descriptor["shape"])

    @property
    def dtype(self) -> np.dtype:
        name = self._descriptor["dtype"]
        return np.dtype(bool) if name == "bitmask" else dtype_of(name)

    @property
    def descriptor(self) -> dict[str, Any]:
        """Element type, shape, encoding, filter, compression and their parameters."""
        return dict(self._descriptor)

    def to_numpy(self) -> np.ndarray:
        """Decodes the array, verified. Masked values are NaN or infinite."""
        return to_numpy(self._message._native.decode(self.number))

    def ranges(self, ranges: Sequence[tuple[int, int]]) -> list[np.ndarray]:
        """Decodes ranges of elements, in row-major order; only the blocks that they need."""
        return [to_numpy(one) for one in self._message._native.decode_ranges(self.number, list(ranges))]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        values = self.to_numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        return self.to_numpy()[key]

    def __repr__(self) -> str:
        pipeline = [self._descriptor[key] for key in ("encoding", "filter", "compression")]
        pipeline = [one for one in pipeline if one != "none"] or ["none"]
        return f"<tercet.Object {self.name!r} {self.shape} {self.dtype}, {'+'.join(pipeline)}>"


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

    __slots__ = ("_native", "base", "metadata", "reserved")

    def __init__(self, native: Any) -> None:
        self._native = native
        #: Metadata of the message (`extra`), of each object (`base`), and of the library (`reserved`).
        self.metadata, self.base, self.reserved = native.metadata()

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
        names = self._names()
        if isinstance(key, str):
            if key not in names:
                raise unknown("object", key, names, f"message {self.number}")
            if names.count(key) > 1:
                places = [str(place) for place, name in enumerate(names) if name == key]
                raise RequestError(f"message {self.number}: objects {', '.join(places)} are named {key!r}; use a number")
            return Object(self, names.index(key))
        if not -len(names) <= key < len(names):
            raise IndexError(f"message {self.number} has {len(names)} objects, no object {key}")
        return Object(self, key % len(names))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        count: int = self._native.object_count()
        return count

    def __repr__(self) -> str:
        objects = "".join(f"\n  {one!r}" for one in self.objects[:20])
        return f"<tercet.Message {self.number} {self.metadata}>{objects}"

    def to_bytes(self) -> bytes:
        """The stored bytes."""
        data: bytes = self._native.bytes()
        return data


class TgmFile(File, Sequence):  # type: ignore[type-arg]
    """An open `.tgm` file: a sequence of messages."""

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
        return Message(self._native.message(key % count))

    def __iter__(self) -> Iterator[Message]:
        for number in range(len(self)):
            yield Message(self._native.message(number))

    def _lines(self) -> list[str]:
        return [repr(message).split("\n")[0] for message in self[:20]]
