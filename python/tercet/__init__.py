"""Tercet: arrays (`.tet`), messages of tensors (`.tgm`), tables and search (`.tatami`).

>>> import tercet, numpy as np, tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "weather.tet"
>>> _ = tercet.write(path, {"t2m": np.full((2, 3), 280.0)}, dims={"t2m": ["time", "lat"]})
>>> with tercet.open(path) as file:
...     file["t2m"].mean().item()
280.0

Checksums are verified on read. Errors are subclasses of `tercet.Error`; they name the file and the bytes.
"""

from __future__ import annotations

import os as _os
from typing import Any as _Any

from . import _lib
from ._convert import convert, salvage, summary, verify
from ._errors import (
    CorruptError,
    Error,
    LimitError,
    MalformedError,
    NotFoundError,
    RequestError,
    TercetOSError,
    UnknownNameError,
    UnsupportedError,
)
from ._file import File
from ._progress import Progress
from ._tatami import Hit, Hits, Partition, Scan, TatamiFile
from ._tet import Array, Dataset, TetFile
from ._tgm import Message, Object, TgmFile
from ._write import write, write_tatami, write_tet, write_tgm

__version__: str = _lib.__version__

__all__ = [
    "Array",
    "CorruptError",
    "Dataset",
    "Error",
    "File",
    "Hit",
    "Hits",
    "LimitError",
    "MalformedError",
    "Message",
    "NotFoundError",
    "Object",
    "Partition",
    "Progress",
    "RequestError",
    "Scan",
    "TatamiFile",
    "TercetOSError",
    "TetFile",
    "TgmFile",
    "UnknownNameError",
    "UnsupportedError",
    "convert",
    "open",
    "salvage",
    "summary",
    "verify",
    "write",
    "write_tatami",
    "write_tet",
    "write_tgm",
]

_FILES: dict[type, _Any] = {_lib.Tet: TetFile, _lib.Tgm: TgmFile, _lib.Tatami: TatamiFile}


def open(  # noqa: A001
    source: _Any,
    path: str | None = None,
    *,
    verify: bool = True,
    mmap: bool = False,
    threads: int | None = None,
) -> _Any:
    """Opens a file of any of the three formats.

    >>> import io, numpy as np, pathlib, tempfile
    >>> name = tempfile.mkdtemp() + "/a.tet"
    >>> _ = write(name, {"t": np.arange(3)})
    >>> file = io.BytesIO(pathlib.Path(name).read_bytes())  # any file object, read by ranges
    >>> open(file)["t"][1:]
    array([1, 2])

    Args:
        source: A path, a URL, bytes, a file object, a file of fsspec, or a store with the obspec protocol.
        path: The path in a store.
        verify: Whether checksums are verified on read.
        mmap: Map a local file instead of reading it by position. Another process that truncates a mapped file ends
            this process.
        threads: The number of threads; all cores by default.
    """
    options: dict[str, _Any] = {"verify": verify, "threads": threads}
    if isinstance(source, (bytes, bytearray, memoryview)):
        native = _lib.open_bytes("<bytes>", bytes(source))
        return _FILES[type(native)](native, None, {})
    if path is not None or not isinstance(source, (str, _os.PathLike)):
        from ._source import reader

        name, length, read = reader(source, path)
        native = _lib.open_source(name, length, read, **options)
        return _FILES[type(native)](native, None, options, (source, path))
    location = _os.fspath(source)
    options["mmap"] = mmap
    native = _lib.open(location, **options)
    return _FILES[type(native)](native, location if "://" in location else _os.path.abspath(location), options)
