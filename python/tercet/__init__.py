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

# Type checkers take it for `typing.TYPE_CHECKING`; importing that would take longer than all of this.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from ._convert import convert, salvage, summary, verify
    from ._errors import (
        CorruptError,
        Error,
        ExistsError,
        LimitError,
        MalformedError,
        NotFoundError,
        RequestError,
        TercetOSError,
        UnknownNameError,
        UnsupportedError,
    )
    from ._file import File
    from ._open import open
    from ._progress import Progress
    from ._tatami import Hit, Hits, Partition, Scan, TatamiFile
    from ._tet import Array, Dataset, TetFile
    from ._tgm import Message, Object, TgmFile
    from ._write import write, write_tatami, write_tet, write_tgm

    __version__: str

__all__ = [
    "Array",
    "CorruptError",
    "Dataset",
    "Error",
    "ExistsError",
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

#: The module of each public name. They are imported at first use: NumPy alone takes longer than the rest.
_MODULES = {
    "_convert": ("convert", "salvage", "summary", "verify"),
    "_errors": (
        "CorruptError",
        "Error",
        "ExistsError",
        "LimitError",
        "MalformedError",
        "NotFoundError",
        "RequestError",
        "TercetOSError",
        "UnknownNameError",
        "UnsupportedError",
    ),
    "_file": ("File",),
    "_lib": ("__version__",),
    "_open": ("open",),
    "_progress": ("Progress",),
    "_tatami": ("Hit", "Hits", "Partition", "Scan", "TatamiFile"),
    "_tet": ("Array", "Dataset", "TetFile"),
    "_tgm": ("Message", "Object", "TgmFile"),
    "_write": ("write", "write_tatami", "write_tet", "write_tgm"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name):
        module = _PLACES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
