"""Writing Dask arrays: the workers compute, round and compress blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _lib
from ._arrays import to_bytes
from ._errors import RequestError

Values = npt.NDArray[Any]

#: With a scheduler of processes: blocks that are computed before their chunks are written.
_BATCH = 16


def is_dask(values: Any) -> bool:
    """Whether an array is a Dask array."""
    return hasattr(values, "dask") and hasattr(values, "chunks")


def stored_chunks(name: str, array: Any, chunks: Sequence[int] | None, dims: Sequence[str] | None) -> list[int]:
    """The stored chunk shape: by default that of Dask. Its chunks must consist of whole stored chunks."""
    stored = []
    for axis, sizes in enumerate(array.chunks):
        extent = max(1, int(sizes[0] if chunks is None else chunks[axis]))
        if any(size % extent for size in sizes[:-1]):
            best = max(extent, max(sizes) // extent * extent)
            label = repr(dims[axis]) if dims else str(axis)
            fix = f"ds.chunk({{{label}: {best}}})" if dims else f"array.rechunk({{{label}: {best}}})"
            raise RequestError(
                f"{name!r}: the Dask chunks {sizes} of axis {label} are not made of whole stored chunks of {extent}; use {fix}"
            )
        stored.append(extent)
    return stored


def write(writer: _lib.TetWriter, datasets: list[dict[str, Any]], arrays: Mapping[int, Any]) -> None:
    """Writes arrays by the number of their dataset.

    Threads encode their chunks and write them. Other processes send encoded chunks, which this process appends: the file
    appears complete or not at all, and workers need not see its file system.
    """
    from dask import local, threaded
    from dask.base import compute, get_scheduler
    from dask.delayed import delayed

    get = get_scheduler(collections=list(arrays.values()))
    blocks = [(number, *block) for number, array in arrays.items() for block in _blocks(array, datasets[number]["chunks"])]
    # One block decides the compression, so that it does not depend on which worker is the first.
    undecided = {number for number in arrays if datasets[number]["zstd"] is None and not datasets[number]["raw"]}
    rest = []
    for number, block, origin in blocks:
        if number in undecided:
            undecided.discard(number)
            _store(compute(block)[0], writer, number, origin, datasets[number]["chunks"])
        else:
            rest.append((number, block, origin))
    if get is None or get in (threaded.get, local.get_sync):
        store = delayed(_store, pure=False)
        compute(*(store(block, writer, number, origin, datasets[number]["chunks"]) for number, block, origin in rest))
        return
    encode = delayed(_encode, pure=False)
    encoder = delayed(_Encoder([_decided(one, writer.level(number)) for number, one in enumerate(datasets)]))
    tasks = [encode(block, encoder, number, origin, datasets[number]["chunks"]) for number, block, origin in rest]
    for chunks in _results(tasks, getattr(get, "__self__", None)):
        for chunk in chunks:
            writer.put(chunk)


def _blocks(array: Any, stored: Sequence[int]) -> Iterator[tuple[Any, list[int]]]:
    """The blocks of an array, and the coordinates of their first stored chunks."""
    starts = [np.cumsum([0, *sizes[:-1]]) for sizes in array.chunks]
    # Optimized one by one, arrays would no longer share the blocks that they are computed from.
    blocks = array.to_delayed(optimize_graph=False)
    for place in np.ndindex(blocks.shape):
        yield blocks[place], [int(starts[axis][at]) // stored[axis] for axis, at in enumerate(place)]


def _chunks(block: Any, origin: list[int], stored: list[int]) -> Iterator[tuple[list[int], Values, Values]]:
    """The stored chunks of a block: coordinates, array, bytes."""
    counts = [-(-extent // size) for extent, size in zip(block.shape, stored)]
    for offset in np.ndindex(*counts):
        part = block[tuple(slice(at * size, (at + 1) * size) for at, size in zip(offset, stored))]
        values, data = to_bytes(part)
        yield [start + at for start, at in zip(origin, offset)], values, data


def _store(block: Any, writer: _lib.TetWriter, number: int, origin: list[int], stored: list[int]) -> None:
    for coords, values, data in _chunks(block, origin, stored):
        writer.chunk(number, coords, list(values.shape), data)


class _Encoder:
    """The native encoder of a file, made again where it is needed."""

    def __init__(self, datasets: list[dict[str, Any]]) -> None:
        self._datasets = datasets
        self._native: _lib.TetEncoder | None = None

    def encode(self, number: int, coords: list[int], shape: list[int], data: Values) -> bytes:
        if self._native is None:
            self._native = _lib.TetEncoder(self._datasets)
        return self._native.encode(number, coords, shape, data)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Encoder, (self._datasets,)


def _decided(dataset: dict[str, Any], level: int | None) -> dict[str, Any]:
    """A dataset without labels, which no chunk needs, and with the compression that was chosen."""
    chosen = {} if level is None else {"zstd": level or None, "raw": level == 0}
    return {**dataset, "labels": [], **chosen}


def _encode(block: Any, encoder: _Encoder, number: int, origin: list[int], stored: list[int]) -> list[bytes]:
    return [
        encoder.encode(number, coords, list(values.shape), data) for coords, values, data in _chunks(block, origin, stored)
    ]


def _results(tasks: list[Any], client: Any) -> Iterator[list[bytes]]:
    """The results of tasks as they are ready: of a cluster, or of a scheduler of processes."""
    if client is None:
        from dask.base import compute

        for first in range(0, len(tasks), _BATCH):
            yield from compute(*tasks[first : first + _BATCH])
        return
    from dask.context import thread_state
    from distributed import as_completed, rejoin, secede

    # A task that waits for others must not occupy its worker.
    in_task = hasattr(thread_state, "key")
    if in_task:
        secede()
    try:
        for future, chunks in as_completed(client.compute(tasks), with_results=True):
            yield chunks
            future.release()
    finally:
        if in_task:
            rejoin()
