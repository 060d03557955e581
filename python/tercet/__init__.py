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

import json as _json
import os as _os
from typing import Any as _Any

from . import _lib
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
from ._tatami import Hit, Hits, Scan, TatamiFile
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
    "RequestError",
    "Scan",
    "TatamiFile",
    "TercetOSError",
    "TetFile",
    "TgmFile",
    "UnknownNameError",
    "UnsupportedError",
    "open",
    "verify",
    "write",
    "write_tatami",
    "write_tet",
    "write_tgm",
]

_FILES = {_lib.Tet: TetFile, _lib.Tgm: TgmFile, _lib.Tatami: TatamiFile}


def open(  # noqa: A001
    source: _Any, *, verify: bool = True, mmap: bool = False, threads: int | None = None
) -> _Any:
    """Opens a file of any of the three formats: a path, a URL, bytes, or a file object.

    Args:
        verify: Whether checksums are verified on read.
        mmap: Map a local file instead of reading it by position. Another process that truncates a mapped file ends
            this process.
        threads: The number of threads; all cores by default.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        native = _lib.open_bytes("<bytes>", bytes(source))
        return _FILES[type(native)](native, None, {})
    if hasattr(source, "read"):
        native = _lib.open_bytes(str(getattr(source, "name", "<file>")), bytes(source.read()))
        return _FILES[type(native)](native, None, {})
    location = _os.fspath(source)
    options = {"verify": verify, "mmap": mmap, "threads": threads}
    native = _lib.open(location, **options)
    return _FILES[type(native)](native, location if "://" in location else _os.path.abspath(location), options)


def verify(source: str | _os.PathLike[str]) -> list[dict[str, _Any]]:
    """Verifies a file. Returns the problems: an empty list for a valid file."""
    ok, findings = _lib.verify(_os.fspath(source))
    found: list[dict[str, _Any]] = _json.loads(findings)
    return [one for one in found if not ok]
