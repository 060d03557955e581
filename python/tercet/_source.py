"""Objects that are read by ranges: file objects, files of fsspec, stores with the obspec protocol."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ._errors import RequestError

#: `(start, length)` of each range.
Ranges = list[tuple[int, int]]
Read = Callable[[Ranges], Sequence[Any]]


def reader(source: Any, path: str | None) -> tuple[str, int, Read]:
    """Name, length, and the function that reads ranges."""
    if path is not None:
        return _store(source, path)
    if hasattr(source, "fs") and hasattr(source, "path"):
        return _fsspec(source.fs, str(source.path))
    if not hasattr(source, "read"):
        raise TypeError(f"cannot open an object of type {type(source).__name__}")
    return _file(source)


def _store(store: Any, path: str) -> tuple[str, int, Read]:
    if not hasattr(store, "get_ranges") or not hasattr(store, "head"):
        raise TypeError(f"{type(store).__name__} is not a store: it has no `head` and `get_ranges` (obspec)")

    def read(ranges: Ranges) -> Sequence[Any]:
        starts = [start for start, _ in ranges]
        found: Sequence[Any] = store.get_ranges(path, starts=starts, lengths=[length for _, length in ranges])
        return found

    return path, int(store.head(path)["size"]), read


def _fsspec(fs: Any, path: str) -> tuple[str, int, Read]:
    def read(ranges: Ranges) -> Sequence[Any]:
        starts = [start for start, _ in ranges]
        ends = [start + length for start, length in ranges]
        found: Sequence[Any] = fs.cat_ranges([path] * len(ranges), starts, ends, on_error="raise")
        return found

    return str(fs.unstrip_protocol(path)), int(fs.info(path)["size"]), read


def _file(file: Any) -> tuple[str, int, Read]:
    name = str(getattr(file, "name", "<file>"))
    # Reads come from several threads, and a file has one position.
    lock = threading.Lock()
    seekable = not hasattr(file, "seekable") or file.seekable()
    if not seekable:
        data = file.read()
        _check(name, data)
        view = memoryview(data)
        return name, len(view), lambda ranges: [view[start : start + length] for start, length in ranges]
    with lock:
        length = file.seek(0, 2)
        length = file.tell() if length is None else length

    def read(ranges: Ranges) -> Sequence[Any]:
        found = []
        with lock:
            for start, length in ranges:
                file.seek(start)
                parts = []
                while length:
                    part = file.read(length)
                    _check(name, part)
                    if not part:
                        break
                    parts.append(bytes(part))
                    length -= len(part)
                found.append(b"".join(parts))
        return found

    return name, int(length), read


def _check(name: str, data: Any) -> None:
    if isinstance(data, str):
        raise RequestError(f"{name}: the file is open as text; open it with mode 'rb'", name)
