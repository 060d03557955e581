"""Opening files of all formats."""

from __future__ import annotations

import os
from typing import Any

from . import _lib
from ._tatami import TatamiFile
from ._tet import TetFile
from ._tgm import TgmFile

_FILES: dict[type, Any] = {_lib.Tet: TetFile, _lib.Tgm: TgmFile, _lib.Tatami: TatamiFile}


def open(  # noqa: A001
    source: Any,
    path: str | None = None,
    *,
    verify: bool = True,
    mmap: bool = False,
    threads: int | None = None,
) -> Any:
    """Opens a file of any of the three formats.

    >>> import io, numpy as np, pathlib, tempfile, tercet
    >>> name = tempfile.mkdtemp() + "/a.tet"
    >>> _ = tercet.write(name, {"t": np.arange(3)})
    >>> file = io.BytesIO(pathlib.Path(name).read_bytes())  # any file object, read by ranges
    >>> tercet.open(file)["t"][1:]
    array([1, 2])

    Args:
        source: A path, a URL, bytes, a file object, a file of fsspec, or a store with the obspec protocol.
        path: The path in a store.
        verify: Whether checksums are verified on read.
        mmap: Map a local file instead of reading it by position. Another process that truncates a mapped file ends
            this process.
        threads: The number of threads; all cores by default.
    """
    options: dict[str, Any] = {"verify": verify, "threads": threads}
    if isinstance(source, (bytes, bytearray, memoryview)):
        native = _lib.open_bytes("<bytes>", bytes(source))
        return _FILES[type(native)](native, None, {})
    if path is not None or not isinstance(source, (str, os.PathLike)):
        from ._source import reader

        name, length, read = reader(source, path)
        native = _lib.open_source(name, length, read, **options)
        return _FILES[type(native)](native, None, options, (source, path))
    location = os.fspath(source)
    options["mmap"] = mmap
    native = _lib.open(location, **options)
    return _FILES[type(native)](native, location if "://" in location else os.path.abspath(location), options)
