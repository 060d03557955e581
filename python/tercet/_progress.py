"""Reports of progress: a function of the caller, `tqdm`, or a line in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Nothing, a bar, or a function that gets the bytes processed so far.
Progress = bool | Callable[[int], object] | None


@contextmanager
def reporting(progress: Progress, total: int | None, text: str) -> Iterator[Callable[[int], object] | None]:
    """The function that work reports to."""
    if progress is None or progress is False:
        yield None
    elif progress is not True:
        yield progress
    else:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            yield from _line(total, text)
            return
        with tqdm(total=total, desc=text, unit="B", unit_scale=True) as bar:
            yield lambda done: bar.update(done - bar.n)


def _line(total: int | None, text: str) -> Iterator[Callable[[int], object] | None]:
    """A line of the terminal or notebook that is written again and again; nothing if the output is a file."""
    if not sys.stderr.isatty() and "ipykernel" not in sys.modules:
        yield None
        return

    def show(done: int) -> None:
        share = f"{min(1.0, done / total):4.0%} " if total else ""
        sys.stderr.write(f"\r{text} {share}{done / 1e6:.1f} MB")

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
