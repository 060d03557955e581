"""What open files of all formats share."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable
from typing import Any, Self


class File:
    """An open file. It is closed when the last reference is gone; `with` closes it earlier."""

    format = ""

    def __init__(
        self, native: Any, location: str | None, options: dict[str, Any], origin: tuple[Any, str | None] | None = None
    ) -> None:
        self._native = native
        #: The absolute path or the URL; None for bytes and objects.
        self._location = location
        self._options = options
        #: The object that is read, and the path in it.
        self._origin = origin
        self._load()

    def _load(self) -> None:
        pass

    @property
    def name(self) -> str:
        """The path or URL."""
        name: str = self._native.name()
        return name

    def summary(self) -> dict[str, Any]:
        """What the file contains: the output of `tercet info --json`."""
        summary: dict[str, Any] = json.loads(self._native.summary())
        return summary

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. Arrays that were read stay valid."""
        self._native = _Closed(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._location is not None:
            return _reopen, (self._location, None, self._options)
        if self._origin is not None:
            return _reopen, (*self._origin, self._options)
        raise TypeError("a file that was opened from bytes cannot be pickled; pickle the bytes")

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        stamp: tuple[int, ...] = ()
        if self._location is not None and "://" not in self._location:
            try:
                stat = os.stat(self._location)
                stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            except OSError:
                pass
        return (type(self).__name__, self._location or self.name, stamp)

    def _lines(self) -> list[str]:
        return []

    def __repr__(self) -> str:
        lines = [f"<{type(self).__name__} {self.name!r}>"]
        return "\n  ".join(lines + self._lines()[:20])

    def _repr_html_(self) -> str:
        return listing(type(self).__name__, self.name, self._lines()[:50])


def sizes(length: int, decoded: int) -> str:
    """The size of a file, and that of its decoded values with the compression ratio."""
    ratio = f", {decoded / length:.1f} times the file" if length and decoded >= 2 * length else ""
    return f"{size_text(length)}; {size_text(decoded)} of values{ratio}"


def size_text(count: float) -> str:
    """A number of bytes with a unit."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            break
        count /= 1000
    else:
        unit = "TB"
    return f"{count} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"


def shorten(value: Any) -> str:
    """A value on one line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def listing(kind: str, name: str, lines: Iterable[str]) -> str:
    """A title and lines as HTML, for notebooks."""
    rows = "".join(f"<li><code>{html.escape(line)}</code></li>" for line in lines)
    return f"<div><b>{html.escape(kind)}</b> {html.escape(name)}<ul>{rows}</ul></div>"


class _Closed:
    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        raise ValueError(f"{self._name}: the file is closed")


def _reopen(source: Any, path: str | None, options: dict[str, Any]) -> Any:
    from ._open import open

    return open(source, path, **options)
