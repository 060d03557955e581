"""Functions of whole files: conversion, verification, salvage."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _lib
from ._errors import RequestError
from ._progress import Progress, reporting

PathLike = str | os.PathLike[str]


def _size(path: PathLike) -> int | None:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):
        return None


def _named(option: Any) -> list[tuple[str | None, Any]]:
    """An option for all variables, or by name."""
    if option is None:
        return []
    return list(option.items()) if isinstance(option, Mapping) else [(None, option)]


def _positions(selected: Any) -> str:
    if isinstance(selected, slice):
        ends = ["" if end is None else str(end) for end in (selected.start, selected.stop)]
        return "..".join(ends) if selected.step in (None, 1) else f"{ends[0]}:{ends[1]}:{selected.step}"
    return str(selected)


def convert(
    source: PathLike,
    target: PathLike,
    *,
    variables: Sequence[str] = (),
    sel: Mapping[str, Any] | None = None,
    isel: Mapping[str, Any] | None = None,
    rename: Mapping[str, str] | None = None,
    unpack: bool = False,
    dtype: Mapping[str, str] | str | None = None,
    chunks: Mapping[str, int] | None = None,
    max_error: Mapping[str, float] | float | None = None,
    zstd: int | bool | None = None,
    overwrite: bool = False,
    verify: bool = True,
    strict: bool = False,
    plan: bool = False,
    progress: Progress = None,
) -> list[dict[str, Any]]:
    """Converts an array file: NetCDF, HDF5, Zarr, `.npy`, `.npz`, `.tet`. The extension of the target decides its format.

    Returns what was kept, changed and not carried: one dictionary with `subject`, `name`, `fate`, `detail` for each item.

    >>> import numpy as np, tempfile, tercet
    >>> directory = tempfile.mkdtemp()
    >>> np.save(directory + "/a.npy", np.arange(6.0).reshape(2, 3))
    >>> report = tercet.convert(directory + "/a.npy", directory + "/a.tet", zstd=3)
    >>> {one["fate"] for one in report}
    {'exact'}

    Args:
        variables: The variables, with their coordinates; all by default.
        sel: Labels by dimension: `{"level": 850, "lat": slice(60, 30)}`.
        isel: Positions by dimension: `{"time": slice(0, 24)}`.
        unpack: Apply scale and offset.
        dtype: The element type of float variables, or types by name.
        chunks: Chunk extents by dimension.
        max_error: The maximum absolute error of float variables in a `.tet` file, or errors by name.
        zstd: A level, `False` for none; by default chosen from a sample.
        verify: Read the target again and compare it with the source.
        strict: Write nothing unless everything is kept exactly.
        plan: Write nothing.
        progress: `True` for a bar, or a function that gets the bytes processed so far.
    """
    args = {
        "variables": list(variables),
        "sel": [(dim, _positions(one)) for dim, one in (sel or {}).items()],
        "isel": [(dim, _positions(one)) for dim, one in (isel or {}).items()],
        "rename": list((rename or {}).items()),
        "unpack": unpack,
        "dtypes": [(name, str(one)) for name, one in _named(dtype)],
        "chunks": [(dim, int(extent)) for dim, extent in (chunks or {}).items()],
        "max_error": [(name, float(bound)) for name, bound in _named(max_error)],
        "zstd": 3 if zstd is True else 0 if zstd is False else zstd,
        "overwrite": overwrite,
        "verify": verify,
        "strict": strict,
        "plan": plan,
    }
    with reporting(progress, _size(source), "converting") as report:
        written, native = _lib.convert(os.fspath(source), os.fspath(target), args, report)
    fidelity: list[dict[str, Any]] = json.loads(native)["items"]
    if strict and not plan and not written:
        inexact = [one["name"] for one in fidelity if one["fate"] != "exact"]
        raise RequestError(f"{os.fspath(target)}: nothing was written: not exact: {', '.join(inexact)}")
    return fidelity


def verify(source: PathLike, *, progress: Progress = None) -> list[dict[str, Any]]:
    """Verifies a file. Returns the problems: an empty list for a valid file.

    >>> import numpy as np, tempfile, tercet
    >>> path = tercet.write(tempfile.mkdtemp() + "/a.tet", {"t": np.ones(3)})
    >>> tercet.verify(path)
    []
    """
    with reporting(progress, _size(source), "verifying") as report:
        _ok, findings = _lib.verify(os.fspath(source), report)
    found: list[dict[str, Any]] = json.loads(findings)
    return [one for one in found if not one["ok"]]


def salvage(
    source: PathLike,
    target: PathLike,
    *,
    overwrite: bool = False,
    fill: float | None = None,
    progress: Progress = None,
) -> dict[str, Any]:
    """Copies the intact parts of a damaged file into a new one. Returns a report; `complete` is true if nothing was lost.

    Args:
        fill: The value of elements in missing chunks of a `.tet` file; without it those chunks stay missing.
    """
    with reporting(progress, _size(source), "recovering") as report:
        complete, native = _lib.salvage(
            os.fspath(source), os.fspath(target), overwrite=overwrite, fill=fill, progress=report
        )
    made: dict[str, Any] = json.loads(native)
    return {"complete": complete, **made}


def summary(source: PathLike) -> dict[str, Any]:
    """What a file contains: the output of `tercet info --json`."""
    found: dict[str, Any] = json.loads(_lib.open(os.fspath(source)).summary())
    return found
