"""Arrays: `.tet` files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Sequence

import numpy as np
import numpy.typing as npt

from ._arrays import dtype_of, to_numpy, unknown
from ._errors import RequestError
from ._file import File, listing, shorten, sizes
from ._progress import Progress, reporting

#: What of a file is verified on read.
_STATES = {
    "checked": "verified on read",
    "partial": "partly verified on read: its integrity block is damaged",
    "absent": "not verified on read: it has no checksums",
    "unknown": "not verified on read: its checksums are of an unknown version",
    "ignored": "not verified on read: opened with verify=False",
}

Axis = int | str
Values = npt.NDArray[Any]

#: Smaller selections are read in one call, without progress.
_SMALL = 1 << 16


class Array:
    """The result of a computation: values with dimensions, coordinates and attributes."""

    __slots__ = ("attrs", "coords", "dims", "elements", "name", "skipped", "values")

    def __init__(
        self,
        values: Any,
        dims: tuple[str, ...],
        coords: dict[str, Any],
        attrs: dict[str, str],
        name: str,
        elements: int,
        skipped: int,
    ) -> None:
        self.values: Values = values
        self.dims = dims
        self.coords = coords
        self.attrs = attrs
        self.name = name
        #: The number of elements that were used, after filters.
        self.elements = elements
        #: The number of missing elements that were skipped.
        self.skipped = skipped

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        values = self.values if dtype is None else self.values.astype(dtype)
        return values.copy() if copy else values

    def item(self) -> Any:
        """The only value, as a Python number."""
        return self.values.item()

    def __float__(self) -> float:
        return float(self.values.item())

    def to_numpy(self) -> Values:
        return self.values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()

    def to_xarray(self) -> Any:
        """The result as `xarray.DataArray`."""
        import xarray

        return xarray.DataArray(self.values, dims=self.dims, coords=self.coords, attrs=self.attrs, name=self.name)

    def __repr__(self) -> str:
        dims = ", ".join(f"{dim}: {size}" for dim, size in zip(self.dims, self.shape))
        skipped = f", {self.skipped} missing values skipped" if self.skipped else ""
        return f"<tercet.Array {self.name!r} ({dims}) {self.dtype}{skipped}>\n{self.values!r}"

    def _repr_html_(self) -> str:
        title, _, values = repr(self).partition("\n")
        attrs = [f"{key}: {value}" for key, value in self.attrs.items()]
        return listing("Array", self.name, [title, *attrs, *values.split("\n")])


def _coords(native: tuple[str, list[Any], str | None]) -> Values:
    kind, values, _units = native
    if kind == "time":
        try:
            # Times are in UTC in NumPy; it warns of the `Z`.
            return np.array([value.removesuffix("Z") for value in values], dtype="datetime64[ns]")
        except ValueError:
            return np.array(values)  # A calendar that NumPy does not have.
    return np.array(values)


class Dataset:
    """One array of a file. Nothing is read until values are requested.

    >>> import tercet, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.tet"
    >>> _ = tercet.write(path, {"t": np.arange(6.0).reshape(2, 3)}, dims={"t": ["time", "lat"]})
    >>> t = tercet.open(path)["t"]
    >>> t[1, ::2]
    array([3., 5.])
    >>> t.isel(time=0).mean("lat").item()
    1.0
    """

    __slots__ = ("_file", "_number", "_steps", "_dropped", "attrs", "chunks", "dims", "dtype", "name", "shape")

    def __init__(self, file: TetFile, number: int, steps: tuple[Any, ...] = (), dropped: frozenset[int] = frozenset()) -> None:
        name, dtype, shape, chunks, dims, attrs = file._described[number]
        self._file = file
        self._number = number
        self._steps = steps
        self._dropped = dropped
        self.name: str = name
        self.attrs: dict[str, str] = dict(attrs)
        if dtype is None:
            raise RequestError(f"{file.name}: dataset {name!r} has an unknown element type", file.name)
        self.dtype = dtype_of(dtype)
        if steps:
            shape = file._native.shape(number, list(steps))
        kept = [axis for axis in range(len(shape)) if axis not in dropped]
        self.shape: tuple[int, ...] = tuple(shape[axis] for axis in kept)
        #: The stored chunk shape.
        self.chunks: tuple[int, ...] = tuple(chunks[axis] for axis in kept)
        #: The names of the axes; `dim_0` and so on if the file has none.
        self.dims: tuple[str, ...] = tuple(dims[axis] or f"dim_{axis}" for axis in kept)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a scalar")
        return self.shape[0]

    def _axis(self, axis: Axis) -> int:
        """The number of an axis in the file."""
        kept = [number for number in range(self.ndim + len(self._dropped)) if number not in self._dropped]
        if isinstance(axis, str):
            if axis not in self.dims:
                raise unknown("axis", axis, self.dims, self._file.name)
            return kept[self.dims.index(axis)]
        if not -self.ndim <= axis < self.ndim:
            raise RequestError(f"{self._file.name}: axis {axis} of an array with {self.ndim} axes")
        return kept[axis]

    def _narrow(self, steps: Sequence[Any], dropped: frozenset[int] = frozenset()) -> Dataset:
        return Dataset(self._file, self._number, self._steps + tuple(steps), self._dropped | dropped)

    def isel(self, indexers: Mapping[Axis, Any] | None = None, **axes: Any) -> Dataset:
        """Selects by position: integers drop their axis, slices keep it."""
        steps: list[Any] = []
        dropped = set()
        selected: dict[Axis, Any] = {**(indexers or {})}
        selected.update(axes)
        for key, index in selected.items():
            axis = self._axis(key)
            if isinstance(index, slice):
                steps.append((axis, index.start, index.stop, 1 if index.step is None else index.step))
            elif isinstance(index, (int, np.integer)):
                steps.append((axis, int(index)))
                dropped.add(axis)
            else:
                raise RequestError(f"axis {key!r}: positions must be an integer or a slice, not {type(index).__name__}")
        return self._narrow(steps, frozenset(dropped))

    def sel(
        self,
        indexers: Mapping[Axis, Any] | None = None,
        *,
        method: str | None = None,
        tolerance: float | None = None,
        **axes: Any,
    ) -> Dataset:
        """Selects by label: single labels drop their axis, slices include both ends.

        `method="nearest"` selects the nearest label, within `tolerance`.
        """
        if method not in (None, "nearest"):
            raise RequestError(f"unknown method {method!r}; there is 'nearest'")
        steps: list[Any] = []
        dropped = set()
        selected: dict[Axis, Any] = {**(indexers or {})}
        selected.update(axes)
        for key, label in selected.items():
            axis = self._axis(key)
            if isinstance(label, slice):
                if label.step is not None:
                    raise RequestError("slices of labels have no step; use isel")
                steps.append((axis, "range", _label(label.start), _label(label.stop), None))
                continue
            kind = "nearest" if method else "one"
            step = (axis, kind, _label(label), None, tolerance)
            before = self._file._native.shape(self._number, list(self._steps + (step,)))
            steps.append(step)
            # A label such as `2024-06` selects several times.
            if before[axis] == 1:
                dropped.add(axis)
        return self._narrow(steps, frozenset(dropped))

    def coords(self) -> dict[str, Values]:
        """The coordinates of the selected positions, by axis name."""
        native = self._file._native.coordinates(self._number, list(self._steps))
        kept = [one for axis, one in enumerate(native) if axis not in self._dropped]
        return {dim: _coords(one) for dim, one in zip(self.dims, kept) if one is not None}

    def to_numpy(
        self,
        *,
        decode: bool = False,
        dtype: npt.DTypeLike | None = None,
        out: Values | None = None,
        progress: Progress = None,
    ) -> Values:
        """Reads the selection, verified.

        Args:
            decode: Apply fill values, scale and offset (CF conventions).
            dtype: Convert to this element type.
            out: Read into this array, of the shape of the selection.
            progress: `True` for a bar, or a function that gets the bytes processed so far.
        """
        if out is not None and (decode or dtype is not None):
            raise RequestError("`out` has an element type of its own; use it without `decode` and `dtype`")
        if out is not None and out.shape != self.shape:
            raise RequestError(f"`out` has the shape {out.shape}, the selection {self.shape}")
        native = self._file._native
        reversed_ = any(len(step) == 4 and step[3] < 0 for step in self._steps)
        if decode or reversed_ or (out is None and self.nbytes < _SMALL):
            array = to_numpy(native.read(self._number, list(self._steps), decode)).reshape(self.shape)
        else:
            fits = out is not None and out.dtype == self.dtype and out.flags.c_contiguous and out.flags.writeable
            array = out if fits and out is not None else np.empty(self.shape, self.dtype)
            with reporting(progress, self.nbytes, f"reading {self.name}") as report:
                native.read_into(self._number, list(self._steps), array.reshape(-1).view(np.uint8), report)
        if out is not None and array is not out:
            np.copyto(out, array, casting="same_kind")
            return out
        return array if dtype is None else array.astype(dtype, copy=False)

    def view(self) -> Values:
        """The values as a read-only view of the mapped file, without a copy.

        The file must have been opened with `mmap=True`, and the dataset must be one chunk without compression. The checksum is
        verified once. The view keeps the file mapped; if another process truncates the file, reading the view ends this
        process.
        """
        if not self._file._options.get("mmap"):
            raise RequestError(f"{self._file.name}: open the file with mmap=True for views", self._file.name)
        native = None if self._steps else self._file._native.view(self._number)
        if native is None:
            what = "a selection" if self._steps else "a dataset of several or compressed chunks"
            raise RequestError(f"{self._file.name}: {self.name!r}: {what} has no view; use to_numpy()", self._file.name)
        return to_numpy(native)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        if copy is False:
            raise ValueError("values of a file are always copied")
        return self.to_numpy(dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self.to_numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return (1, 0)

    def __getitem__(self, key: Any) -> Any:
        """Reads by NumPy's rules: integers, slices, `...`, new axes, lists and boolean masks."""
        keys = _normalized(key, self.shape)
        axes: dict[Axis, Any] = {}
        rest: list[Any] = []
        axis = 0
        for one in keys:
            if one is None:
                rest.append(None)
                continue
            extent = self.shape[axis]
            if isinstance(one, slice):
                picked = range(*one.indices(extent))
                if not picked:
                    return _empty(self.shape, keys, self.dtype)
                axes[axis] = one
                rest.append(slice(None))
            elif isinstance(one, int):
                axes[axis] = slice(one, one + 1)
                rest.append(0)
            else:
                if not one.size:
                    return _empty(self.shape, keys, self.dtype)
                low = int(one.min())
                axes[axis] = slice(low, int(one.max()) + 1)
                rest.append(one - low)
            axis += 1
        part = self.isel(axes).to_numpy()
        simple = all(one is None or isinstance(one, (int, slice)) for one in rest)
        found = part[tuple(rest)]
        return found if simple or found.base is None else found.copy()

    def reduce(
        self,
        ops: str | Sequence[str],
        over: Axis | Sequence[Axis] | None = None,
        *,
        where: str | None = None,
        skipna: bool = True,
        raw: bool = False,
        group_by: str | None = None,
        rolling: Mapping[str, int] | None = None,
        weights: str | None = None,
        q: float | Sequence[float] = (),
        bins: int | None = None,
        range: tuple[float, float] | None = None,
        progress: Progress = None,
    ) -> Any:
        """Computes one or more operations in one pass over the selection.

        Args:
            ops: Names such as `mean`, `max`, `std`; one name gives one `Array`, a list a dictionary of them.
            over: The axes to reduce; all by default, with groups or windows their axis.
            where: A filter of values: `"value > 250"`.
            skipna: Whether missing values are skipped.
            raw: Use stored values: packed ones are not decoded, fill values are not skipped.
            group_by: `"time.month"`, or an axis for one group per label.
            rolling: One result per window: `{"time": 24}`.
            weights: `"cos(lat)"`.
            progress: `True` for a bar, or a function that gets the bytes processed so far.
        """
        names = [ops] if isinstance(ops, str) else list(ops)
        if over is None:
            axes: list[int] = []
        else:
            axes = [self._axis(axis) for axis in ([over] if isinstance(over, (int, str)) else over)]
        group = None
        if group_by is not None:
            axis_name, _, part = group_by.rpartition(".") if group_by not in self.dims else (group_by, "", "")
            group = (self._axis(axis_name), part or None)
            axes = axes or [group[0]]
        window = None
        if rolling is not None:
            if len(rolling) != 1:
                raise RequestError("rolling takes one axis: {'time': 24}")
            [(axis_key, size)] = rolling.items()
            window = (self._axis(axis_key), int(size))
            axes = axes or [window[0]]
        reduction = {
            "ops": names,
            "quantiles": [float(q)] if isinstance(q, (int, float)) else [float(one) for one in q],
            "bins": bins,
            "range": range,
            "over": axes,
            "group_by": group,
            "rolling": window,
            "weights": weights,
            "filter": where,
            "skipna": skipna,
            "raw": raw,
        }
        with reporting(progress, self.nbytes, "computing") as report:
            native = self._file._native.reduce(self._number, list(self._steps), reduction, report)
        results = [_array(one) for one in native]
        if isinstance(ops, str) and len(results) == 1:
            return results[0]
        return {one.name: one for one in results}

    def _one(self, op: str, over: Axis | Sequence[Axis] | None, options: dict[str, Any]) -> Array:
        result: Array = self.reduce(op, over, **options)
        return result

    def sum(self, over: Axis | Sequence[Axis] | None = None, **options: Any) -> Array:
        """The sum over axes, of all values by default. Options are those of `reduce`."""
        return self._one("sum", over, options)

    def mean(self, over: Axis | Sequence[Axis] | None = None, **options: Any) -> Array:
        """The mean over axes, of all values by default. Options are those of `reduce`."""
        return self._one("mean", over, options)

    def min(self, over: Axis | Sequence[Axis] | None = None, **options: Any) -> Array:
        """The minimum over axes, of all values by default. Options are those of `reduce`."""
        return self._one("min", over, options)

    def max(self, over: Axis | Sequence[Axis] | None = None, **options: Any) -> Array:
        """The maximum over axes, of all values by default. Options are those of `reduce`."""
        return self._one("max", over, options)

    def std(self, over: Axis | Sequence[Axis] | None = None, **options: Any) -> Array:
        """The standard deviation over axes, of all values by default. Options are those of `reduce`."""
        return self._one("std", over, options)

    def var(self, over: Axis | Sequence[Axis] | None = None, **options: Any) -> Array:
        """The variance over axes, of all values by default. Options are those of `reduce`."""
        return self._one("var", over, options)

    def median(self, over: Axis | Sequence[Axis] | None = None, **options: Any) -> Array:
        """The median over axes, of all values by default. Options are those of `reduce`."""
        return self._one("median", over, options)

    def count(self, over: Axis | Sequence[Axis] | None = None, **options: Any) -> Array:
        """The number of values over axes, of all values by default. Options are those of `reduce`."""
        return self._one("count", over, options)

    def product(self, over: Axis | Sequence[Axis] | None = None, **options: Any) -> Array:
        """The product over axes, of all values by default. Options are those of `reduce`."""
        return self._one("product", over, options)

    def argmin(self, over: Axis | Sequence[Axis] | None = None, **options: Any) -> Array:
        """The position of the first minimum over axes, of all values by default. Options are those of `reduce`."""
        return self._one("argmin", over, options)

    def argmax(self, over: Axis | Sequence[Axis] | None = None, **options: Any) -> Array:
        """The position of the first maximum over axes, of all values by default. Options are those of `reduce`."""
        return self._one("argmax", over, options)

    def transform(
        self,
        method: str,
        over: Axis | Sequence[Axis] | None = None,
        *,
        raw: bool = False,
        progress: Progress = None,
    ) -> Array:
        """An array of the same shape: `center`, `zscore`, `scale`, `minmax`, `l1`, `l2`, `log1p`, `sqrt`, `softmax`.

        Statistics are over axes, over all of them by default. Values are read more than once for some of these methods; `progress` gets
        all bytes.
        """
        axes = [] if over is None else [self._axis(axis) for axis in ([over] if isinstance(over, (int, str)) else over)]
        with reporting(progress, None, f"transforming {self.name}") as report:
            native = self._file._native.transform(self._number, list(self._steps), method, axes, raw, report)
        values = to_numpy(native)
        name = f"{self.name}-{method}"
        return Array(values.reshape(self.shape), self.dims, dict(self.coords()), {}, name, self.size, 0)

    def covariance(self, over: Axis, **options: Any) -> Array:
        """The covariance matrix of the columns of a table, a dataset of two axes; `over` is the axis of the observations."""
        return self._one("covariance", over, options)

    def correlation(self, over: Axis, **options: Any) -> Array:
        """The correlation matrix of the columns of a table, a dataset of two axes; `over` is the axis of the observations."""
        return self._one("correlation", over, options)

    def quantile(self, q: float | Sequence[float], over: Axis | Sequence[Axis] | None = None, **options: Any) -> Any:
        """Quantiles between 0 and 1; several give a dictionary."""
        return self.reduce("quantile", over, q=q, **options)

    def histogram(self, bins: int = 10, range: tuple[float, float] | None = None, **options: Any) -> Any:
        """Counts of values in bins of equal width; `coords["bin_edges"]` has the edges."""
        return self.reduce("histogram", bins=bins, range=range, **options)

    def __repr__(self) -> str:
        dims = ", ".join(f"{dim}: {size}" for dim, size in zip(self.dims, self.shape))
        return f"<tercet.Dataset {self.name!r} ({dims}) {self.dtype}, chunks {self.chunks}>"

    def _repr_html_(self) -> str:
        attrs = [f"{key}: {value}" for key, value in self.attrs.items()]
        return listing("Dataset", self.name, [repr(self), *attrs])

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset, (self._file, self._number, self._steps, self._dropped)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return ("tercet.Dataset", self._file.__dask_tokenize__(), self._number, self._steps, sorted(self._dropped))


def _label(label: Any) -> Any:
    if label is None or isinstance(label, str):
        return label
    if isinstance(label, np.datetime64) or hasattr(label, "isoformat"):
        return str(label.astype("datetime64[s]")) if isinstance(label, np.datetime64) else label.isoformat()
    return float(label)


def _array(native: dict[str, Any]) -> Array:
    dims = tuple(dim for dim, _, _ in native["dims"])
    shape = tuple(size for _, size, _ in native["dims"])
    coords: dict[str, Any] = {dim: _coords(one) for dim, _, one in native["dims"] if one is not None}
    if "positions" in native:
        # One array for the positions on a single axis; for several axes their coordinates are in `coords`.
        positions = native["positions"]
        values = np.array(positions[0][1], dtype=np.int64).reshape(shape)
        for axis, indices, labels in positions:
            if labels is not None:
                all_labels = _coords(labels)
                picked = np.array(indices)
                found = all_labels[np.clip(picked, 0, None)] if len(all_labels) else all_labels
                coords[axis] = (dims, found.reshape(shape)) if shape else found.reshape(shape)
            if len(positions) > 1:
                coords[f"{axis}_position"] = (dims, np.array(indices, dtype=np.int64).reshape(shape))
    else:
        values = to_numpy(native["values"]).reshape(shape)
        if native.get("flags"):
            values = values.astype(bool)
    if native["edges"] is not None:
        native["attrs"] = {**native["attrs"]}
        coords["bin_edges"] = np.array(native["edges"])
    return Array(values, dims, coords, native["attrs"], native["name"], native["elements"], native["skipped"])


def _normalized(key: Any, shape: tuple[int, ...]) -> list[Any]:
    """One index for each axis, and None for new axes: integers and arrays of positions that are not negative, slices."""
    given = list(key) if isinstance(key, tuple) else [key]
    keys: list[Any] = []
    for one in given:
        if isinstance(one, (bool, np.bool_)):
            raise IndexError("indices must be integers, slices, `...`, `None`, lists or masks, not bools")
        if one is None or one is Ellipsis or isinstance(one, slice):
            keys.append(one)
        elif isinstance(one, (int, np.integer)):
            keys.append(int(one))
        else:
            index = np.asarray(one)
            if index.dtype != bool and index.dtype.kind not in "iu" and index.size:
                raise IndexError("indices must be integers, slices, `...`, `None`, lists or masks")
            keys.append(index if index.dtype == bool else index.astype(np.int64))

    def axes_of(one: Any) -> int:
        if one is None or one is Ellipsis:
            return 0
        return one.ndim if isinstance(one, np.ndarray) and one.dtype == bool else 1

    used = sum(axes_of(one) for one in keys)
    ellipses = [place for place, one in enumerate(keys) if one is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can have one ellipsis only")
    if used > len(shape):
        raise IndexError(f"too many indices: {used} for {len(shape)} axes")
    missing: list[Any] = [slice(None)] * (len(shape) - used)
    if ellipses:
        keys[ellipses[0] : ellipses[0] + 1] = missing
    else:
        keys += missing
    made: list[Any] = []
    axis = 0
    for one in keys:
        if one is None or isinstance(one, slice):
            made.append(one)
            axis += one is not None
        elif isinstance(one, np.ndarray) and one.dtype == bool:
            if one.shape != shape[axis : axis + one.ndim]:
                raise IndexError(f"a mask of shape {one.shape} for axes of shape {shape[axis : axis + one.ndim]}")
            made += list(one.nonzero())
            axis += one.ndim
        else:
            extent = shape[axis]
            index = np.where(np.asarray(one) < 0, np.asarray(one) + extent, one)
            if index.size and (index.min() < 0 or index.max() >= extent):
                raise IndexError(f"an index is out of range of axis {axis} of extent {extent}")
            made.append(int(index) if isinstance(one, int) else index)
            axis += 1
    return made


def _empty(shape: tuple[int, ...], keys: list[Any], dtype: np.dtype[Any]) -> Values:
    """The result of a selection without elements."""
    made: Values = np.broadcast_to(np.int8(0), shape)[tuple(keys)].astype(dtype)
    return made


class TetFile(File, Mapping[str, Dataset]):
    """An open `.tet` file: a mapping of names to datasets."""

    format = "tet"

    def _load(self) -> None:
        self._described = self._native.datasets()
        self._numbers: dict[str, int] = {}
        for number, one in enumerate(self._described):
            self._numbers.setdefault(one[0], number)

    def __getitem__(self, name: str) -> Dataset:
        number = self._numbers.get(name)
        if number is None:
            raise unknown("dataset", name, self._numbers, self.name)
        return Dataset(self, number)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def labels(self, name: str, axis: int) -> list[str] | None:
        """The labels of an axis, as stored."""
        labels: list[str] | None = self._native.labels(self._numbers[name], axis)
        return labels

    def _metadata(self) -> dict[str, Any]:
        """The metadata of the file and of its datasets, as stored."""
        found: dict[str, Any] = json.loads(self._native.metadata()) or {}
        return found

    def to_xarray(self, **options: Any) -> Any:
        """The file as a lazy `xarray.Dataset`."""
        from .xarray import open_dataset

        return open_dataset(self, **options)

    def _lines(self) -> list[str]:
        length, decoded, state = self._native.describe()
        file = self._metadata().get("file") or {}
        attrs = file.get("attrs") if isinstance(file, dict) else None
        shown = [f"{key}: {shorten(value)}" for key, value in attrs.items()] if isinstance(attrs, dict) else []
        datasets = [repr(self[name])[8:-1] for name in self]
        return [f"{sizes(length, decoded)}; {_STATES[state]}", *datasets, *shown]
