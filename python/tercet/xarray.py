"""The xarray backend `tercet`: `xr.open_dataset("era5.tet")`, lazily; and the accessor `ds.tercet`, which writes.

>>> import numpy as np, tempfile, tercet, xarray as xr
>>> import tercet.xarray
>>> path = tempfile.mkdtemp() + "/weather.tet"
>>> ds = xr.Dataset({"t2m": (("time", "lat"), np.ones((2, 3)))}, coords={"lat": [60.0, 50.0, 40.0]})
>>> _ = ds.tercet.to_tet(path)
>>> float(xr.open_dataset(path)["t2m"].sel(lat=50).sum())
2.0
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from xarray import conventions
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

import tercet

from ._dask import is_dask
from ._tgm import flatten
from ._typed import attributes, entry, file_members
from ._write import Parts, write_parts

_MAGIC = {b"TETR": "tet", b"TENSOGRM": "tgm"}

Values = npt.NDArray[Any]


class LazyArray(BackendArray):
    """An array of a file that xarray reads by selection."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype

    def read(self, key: tuple[Any, ...]) -> Any:
        """Reads integers, slices and at most one array of positions, each for its axis."""
        raise NotImplementedError

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self.read)

    async def async_getitem(self, key: Any) -> Any:
        """Reads on another thread."""

        async def read(key: tuple[Any, ...]) -> Any:
            return await asyncio.to_thread(self.read, key)

        return await indexing.async_explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, read
        )


#: Types that are stored as another one.
_KINDS = {
    ("int8", "int16"): "int8",
    ("bool", "uint8"): "bool",
    ("char", "uint8"): "S1",
    ("complex64", "float32"): "complex64",
    ("complex128", "float64"): "complex128",
}


class TetArray(LazyArray):
    """A dataset of a `.tet` file, as what it was before it was stored."""

    def __init__(self, dataset: tercet.Dataset, typed: Mapping[str, Any] | None = None) -> None:
        typed = typed or {}
        shape = dataset.shape
        kind = _KINDS.get((str(typed.get("kind")), dataset.dtype.name), dataset.dtype.name)
        #: Whether the last axis has the parts of complex numbers.
        self.is_complex = kind.startswith("complex") and len(shape) > 1 and shape[-1] == 2
        if kind.startswith("complex") and not self.is_complex:
            kind = dataset.dtype.name
        shape = shape[:-1] if self.is_complex else shape
        self.is_scalar = typed.get("scalar") is True and shape == (1,)
        dtype = dataset.dtype if kind == dataset.dtype.name else np.dtype(kind)
        super().__init__(() if self.is_scalar else shape, dtype)
        self.dataset = dataset

    def read(self, key: tuple[Any, ...]) -> Any:
        if self.is_scalar:
            key = (0,)
        if self.is_complex:
            key = (*key, slice(None))
        numbers: dict[int | str, Any] = {axis: one for axis, one in enumerate(key) if isinstance(one, (int, np.integer))}
        rest = tuple(one for axis, one in enumerate(key) if axis not in numbers)
        values = self.dataset.isel(numbers)[rest]
        if self.dtype == self.dataset.dtype:
            return values
        stored = np.ascontiguousarray(values).reshape(np.shape(values))
        if self.is_complex:
            return stored.view(self.dtype)[..., 0]
        if self.dtype.kind == "S":
            return stored.view(self.dtype)
        found = stored.astype(self.dtype)
        if not np.array_equal(found, stored):
            name = self.dataset._file.name
            raise tercet.MalformedError(f"{name}: {self.dataset.name!r} is recorded as {self.dtype}, but has other values", name)
        return found

    def __dask_tokenize__(self) -> Any:
        return self.dataset.__dask_tokenize__()


class TgmArray(LazyArray):
    """Objects of messages, stacked along new axes. Only the objects of a selection are decoded."""

    def __init__(
        self,
        file: tercet.TgmFile,
        places: Values,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        range_threshold: float,
    ) -> None:
        #: Message and object: one pair for each position of the new axes.
        self.places = places
        #: Of an object of which at most this share is selected, only the ranges are decoded.
        self.range_threshold = range_threshold
        super().__init__((*places.shape[:-1], *shape), dtype)
        self.file = file

    def read(self, key: tuple[Any, ...]) -> Any:
        outer = self.places.ndim - 1
        picked = self.places[_outer(self.places.shape[:-1], key[:outer])]
        inner = key[outer:]
        lead, rest = picked.shape[:-1], _shape(self.shape[outer:], inner)
        if not math.prod((*lead, *rest)):
            return np.empty((*lead, *rest), self.dtype)
        # Masks of bits are stored otherwise.
        ranges = None if self.dtype == bool else _ranges(self.shape[outer:], inner, self.range_threshold)
        selected = _outer(self.shape[outer:], inner)
        cached: tuple[int, tercet.Message] | None = None
        found = []
        for message, number in picked.reshape(-1, 2).tolist():
            if cached is None or cached[0] != message:
                cached = (message, self.file[message])
            if ranges is None:
                found.append(np.asarray(cached[1][number].to_numpy())[selected])
            else:
                found.append(np.concatenate(cached[1][number].ranges(ranges)).reshape(rest))
        return np.stack(found).reshape((*lead, *rest))

    def __dask_tokenize__(self) -> Any:
        return (self.file.__dask_tokenize__(), self.places.tobytes(), self.shape)


#: A selection of more ranges is decoded as a whole.
_MAX_RANGES = 4096


def _shape(shape: tuple[int, ...], key: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of a selection: integers drop their axis."""
    return tuple(np.arange(extent)[one].size for extent, one in zip(shape, key) if not isinstance(one, (int, np.integer)))


def _ranges(shape: tuple[int, ...], key: tuple[Any, ...], threshold: float) -> list[tuple[int, int]] | None:
    """The ranges of a selection, in row-major order; none if it is too much of the array, or scattered."""
    size = math.prod(shape)
    axes = [np.atleast_1d(np.arange(extent)[one]) for extent, one in zip(shape, key)]
    if not size or not 0 < math.prod(map(len, axes)) <= threshold * size:
        return None
    run = 1
    while axes and np.array_equal(axes[-1], np.arange(shape[len(axes) - 1])):
        run *= shape[len(axes) - 1]
        axes.pop()
    if not axes:
        return None
    # Consecutive positions of the last axis that is not whole.
    cuts = np.flatnonzero(np.diff(axes[-1]) != 1) + 1
    parts = np.split(axes[-1], cuts)
    if math.prod(map(len, axes[:-1])) * len(parts) > _MAX_RANGES:
        return None
    starts = np.zeros(1, np.int64)
    for axis, positions in enumerate(axes[:-1]):
        starts = ((starts * shape[axis])[:, np.newaxis] + positions).reshape(-1)
    extent = shape[len(axes) - 1]
    return [
        ((int(start) * extent + int(part[0])) * run, (int(start) * extent + int(part[-1]) + 1) * run)
        for start in starts
        for part in parts
    ]


def _outer(shape: tuple[int, ...], key: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index of NumPy for one array at most: integers as well would move its axis."""
    if not any(isinstance(one, np.ndarray) for one in key):
        return key
    arrays = [np.atleast_1d(np.arange(extent)[one]) for extent, one in zip(shape, key)]
    return np.ix_(*arrays) if not any(isinstance(one, (int, np.integer)) for one in key) else _mixed(shape, key)


def _mixed(shape: tuple[int, ...], key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Slices as arrays, so that the axes of all arrays are beside each other and in order."""
    kept = [axis for axis, one in enumerate(key) if not isinstance(one, (int, np.integer))]
    made: list[Any] = []
    for axis, one in enumerate(key):
        if axis not in kept:
            made.append(one)
            continue
        place = [1] * len(kept)
        place[kept.index(axis)] = -1
        made.append(np.arange(shape[axis])[one].reshape(place))
    return tuple(made)


_NUMBERS = ("scale_factor", "add_offset", "valid_min", "valid_max")


def _attrs(dataset: tercet.Dataset, typed: Mapping[str, Any] | None) -> dict[str, Any]:
    """Attributes with their recorded types, and numbers that xarray needs as numbers."""
    attrs: dict[str, Any] = {}
    for key, text in dataset.attrs.items():
        attrs[key] = text
        if key in ("_FillValue", "missing_value"):
            number = _number(text, dataset.dtype)
        elif key in _NUMBERS:
            number = _number(text, np.dtype(float))
        else:
            continue
        if number is not None:
            attrs[key] = number
    found = attributes(typed, attrs, dataset.attrs)
    if (typed or {}).get("kind") == "char" and isinstance(found.get("_FillValue"), str):
        found["_FillValue"] = found["_FillValue"].encode()
    return found


def _file_attrs(file: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of the file."""
    attrs = file.get("attrs")
    stored = attrs if isinstance(attrs, dict) else {}
    compact = {key: one if isinstance(one, str) else json.dumps(one, separators=(",", ":")) for key, one in stored.items()}
    return attributes(_record(file), stored, compact)


def _record(described: Any) -> dict[str, Any]:
    """The record of types in metadata."""
    typed = described.get("typed") if isinstance(described, dict) else None
    return typed if isinstance(typed, dict) else {}


def _unlimited(file: Mapping[str, Any]) -> set[Any]:
    """The dimensions that were recorded as unlimited."""
    dims = _record(file).get("dims")
    found = dims if isinstance(dims, list) else []
    return {dim[0] for dim in found if isinstance(dim, list) and len(dim) == 3 and isinstance(dim[0], str) and dim[2] is True}


def _metadata(file: tercet.TetFile) -> tuple[dict[str, Any], dict[str, Any]]:
    """The metadata of the file, and of its datasets."""
    found = file._metadata()
    return found.get("file") or {}, found.get("datasets") or {}


def _number(text: str, dtype: np.dtype[Any]) -> Any:
    try:
        return dtype.type(text)
    except (TypeError, ValueError):
        return None


def _typed(labels: list[str]) -> Values:
    try:
        return np.array([float(label) for label in labels])
    except ValueError:
        pass
    try:
        # Times are in UTC in NumPy; it warns of the `Z`.
        return np.array([label.removesuffix("Z") for label in labels], dtype="datetime64[ns]")
    except ValueError:
        return np.array(labels)


def _variable(dataset: tercet.Dataset, typed: Mapping[str, Any]) -> xr.Variable:
    array = TetArray(dataset, typed)
    name = dataset.name.rpartition("/")[2]
    stored = dataset._file._described[dataset._number][4]
    # Axes without a name in the file are those of this variable only.
    dims = [dim if own else f"{name}_{dim}" for dim, own in zip(dataset.dims[: len(array.shape)], stored)]
    sizes = dataset.chunks[: len(dims)]
    encoding = {"preferred_chunks": dict(zip(dims, sizes)), "chunks": sizes} if dims else {}
    return xr.Variable(dims, indexing.LazilyIndexedArray(array), _attrs(dataset, typed), encoding)


def _tet_variables(
    file: tercet.TetFile, group: str, dropped: set[str], metadata: tuple[dict[str, Any], dict[str, Any]]
) -> dict[str, xr.Variable]:
    """The variables of a group; names such as `surface/t2m` are in the group `surface`."""
    variables: dict[str, xr.Variable] = {}
    labels: dict[str, xr.Variable] = {}
    recorded = _record(metadata[0]).get("labels")
    records = recorded if isinstance(recorded, dict) else {}
    for full in file:
        inside, _, name = full.rpartition("/")
        if inside != group or name in dropped:
            continue
        variables[name] = _variable(file[full], _record(metadata[1].get(full)))
        for axis, dim in enumerate(variables[name].dims):
            found = file.labels(full, axis)
            if found is not None and dim not in labels:
                record = records.get(dim)
                record = record if isinstance(record, dict) else {}
                values = np.array(found, dtype=str) if record.get("kind") == "string" else _typed(found)
                labels[str(dim)] = xr.Variable((dim,), values, _label_attrs(record))
    for dim, variable in labels.items():
        if dim not in variables and dim not in dropped:
            variables[dim] = variable
    return variables


def _label_attrs(record: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of labels, which are in the record only."""
    texts = {one[0]: one[2] for one in record.get("attrs") or [] if isinstance(one, list) and len(one) > 2}
    return attributes(record, texts, texts)


#: Names of objects that are coordinates.
_COORDINATES = {
    "lat": "latitude",
    "latitude": "latitude",
    "lon": "longitude",
    "longitude": "longitude",
    "x": "x",
    "y": "y",
    "time": "time",
    "level": "level",
    "pressure": "pressure",
    "height": "height",
    "depth": "depth",
    "frequency": "frequency",
    "step": "step",
}

Where = Mapping[str, Any] | Callable[[dict[str, Any]], bool]


def _matches(where: Where | None, keys: dict[str, Any]) -> bool:
    if where is None:
        return True
    if callable(where):
        return bool(where(keys))
    for key, wanted in where.items():
        value = keys.get(key, _MISSING)
        if isinstance(wanted, slice):
            if value is _MISSING or wanted.start is not None and value < wanted.start:
                return False
            if wanted.stop is not None and value > wanted.stop:
                return False
        elif value not in (list(wanted) if isinstance(wanted, (list, tuple, set, np.ndarray)) else [wanted]):
            return False
    return True


_MISSING = object()


def _tgm_variables(
    file: tercet.TgmFile,
    message: int | None,
    where: Where | None,
    dim_names: Sequence[str] | None,
    variable_key: str | None,
    range_threshold: float,
    dropped: set[str],
) -> dict[str, xr.Variable]:
    """The objects of messages by name. Keys that differ between messages become dimensions."""
    found: dict[str, list[tuple[tercet.Object, int, dict[str, Any]]]] = {}
    coordinates: dict[str, tercet.Object] = {}
    hints: dict[int, str] = {}
    for one in [file[message]] if message is not None else file:
        named = one.metadata.get("dim_names")
        if isinstance(named, dict):
            hints.update({int(size): str(name) for size, name in named.items()})
        for member in one.objects:
            keys = {**flatten(one.metadata), **flatten(member.metadata)}
            if not _matches(where, keys):
                continue
            name = str(keys.get(variable_key, member.name)) if variable_key else member.name
            if name.lower() in _COORDINATES and len(member.shape) == 1:
                coordinates.setdefault(name, member)
            elif name not in dropped:
                found.setdefault(name, []).append((member, one.number, keys))
    if not found and not coordinates:
        raise tercet.RequestError(f"{file.name}: no object matches", file.name)
    sizes = {member.shape[0]: name for name, member in coordinates.items()}
    variables: dict[str, xr.Variable] = {
        name: xr.Variable((name,), member.to_numpy(), _plain(member.metadata))
        for name, member in coordinates.items()
        if name not in dropped
    }
    for name, members in found.items():
        first, _, first_keys = members[0]
        if any((member.shape, member.dtype) != (first.shape, first.dtype) for member, _, _ in members):
            raise tercet.RequestError(
                f"{file.name}: objects {name!r} have several shapes or types; select with `where` or `message`", file.name
            )
        axes = _hypercube(file.name, name, [keys for _, _, keys in members])
        extents = [len(values) for _, values in axes]
        places = np.zeros((*extents, 2), np.int64)
        for member, number, keys in members:
            at = tuple(values.index(keys[key]) for key, values in axes)
            places[at] = (number, member.number)
        own = first.metadata.get("dim_names")
        dims = _dims(name, first.shape, dim_names, own if isinstance(own, list) else None, sizes, hints, len(found))
        data = indexing.LazilyIndexedArray(TgmArray(file, places, first.shape, first.dtype, range_threshold))
        chunks = dict(zip([*(key for key, _ in axes), *dims], [*([1] * len(axes)), *first.shape]))
        attrs = {key: value for key, value in first_keys.items() if all(keys.get(key) == value for _, _, keys in members)}
        variables[name] = xr.Variable([key for key, _ in axes] + dims, data, attrs, {"preferred_chunks": chunks})
        for key, values in axes:
            variables.setdefault(key, xr.Variable((key,), np.array(values)))
    return variables


def _plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if isinstance(value, (str, int, float))}


def _hypercube(file: str, name: str, all_keys: list[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """The keys that distinguish the objects, and their values in order."""
    if len(all_keys) == 1:
        return []
    common = [key for key in all_keys[0] if all(key in keys for keys in all_keys)]
    varying = [(key, list(dict.fromkeys(keys[key] for keys in all_keys))) for key in common]
    varying = [(key, values) for key, values in varying if len(values) > 1]
    chosen: list[tuple[str, list[Any]]] = []
    for key, values in varying:
        before = {tuple(keys[one] for one, _ in chosen) for keys in all_keys}
        after = {(*(keys[one] for one, _ in chosen), keys[key]) for keys in all_keys}
        # A key that follows from the others, as a valid time from a step, is not a dimension.
        if len(after) > len(before):
            chosen.append((key, values))
    combinations = {tuple(keys[key] for key, _ in chosen) for keys in all_keys}
    full = math.prod(len(values) for _, values in chosen)
    if len(combinations) != len(all_keys) or full != len(all_keys):
        keys_ = ", ".join(f"{key} ({len(values)})" for key, values in chosen) or "no key"
        raise tercet.RequestError(
            f"{file}: the {len(all_keys)} objects {name!r} are no hypercube of {keys_}; select with `where` or `message`", file
        )
    return [(key, _sorted(values)) for key, values in chosen]


def _sorted(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return values


def _dims(
    name: str,
    shape: tuple[int, ...],
    given: Sequence[str] | None,
    own: list[Any] | None,
    sizes: Mapping[int, str],
    hints: Mapping[int, str],
    variables: int,
) -> list[str]:
    """The names of the axes of an object: given, of coordinates of this size, of the metadata, or numbers."""
    if given is not None and len(given) == len(shape):
        return list(given)
    if own is not None and len(own) == len(shape):
        return [str(one) for one in own]
    dims: list[str] = []
    for axis, extent in enumerate(shape):
        known = sizes.get(extent) or hints.get(extent)
        fallback = f"dim_{axis}" if variables == 1 else f"{name}_dim_{axis}"
        dims.append(known if known is not None and known not in dims else fallback)
    return dims


def _build(
    variables: Mapping[str, xr.Variable], source: str, attrs: Mapping[str, Any], unlimited: set[str]
) -> xr.Dataset:
    coords = {name: one for name, one in variables.items() if one.dims == (name,)}
    dataset = xr.Dataset({name: one for name, one in variables.items() if name not in coords}, coords=coords, attrs=attrs)
    dataset.encoding["source"] = source
    if unlimited:
        dataset.encoding["unlimited_dims"] = unlimited
    return dataset


def _open(source: Any) -> Any:
    return source if isinstance(source, tercet.File) else tercet.open(source)


def open_dataset(
    source: Any,
    *,
    drop_variables: str | Iterable[str] | None = None,
    decode_cf: bool = True,
    group: str = "",
    message: int | None = None,
    where: Where | None = None,
    dim_names: Sequence[str] | None = None,
    variable_key: str | None = None,
    range_threshold: float = 0.5,
) -> xr.Dataset:
    """A file as a lazy `xarray.Dataset`.

    Args:
        group: A group of a `.tet` file: `surface` for datasets such as `surface/t2m`.
        message: One message of a `.tgm` file; by default all are merged, and the keys that differ become dimensions.
        where: Values of metadata keys: `{"mars.param": "2t", "step": [0, 6]}`, slices, or a function of the keys.
        dim_names: The names of the axes of objects.
        variable_key: The metadata key with the names of variables.
        range_threshold: Of a `.tgm` object of which at most this share is selected, only the ranges are decoded.
    """
    file = _open(source)
    attrs: dict[str, Any] = {}
    unlimited: set[Any] = set()
    dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
    if isinstance(file, tercet.TetFile):
        metadata = _metadata(file)
        attrs = {} if group.strip("/") else _file_attrs(metadata[0])
        unlimited = _unlimited(metadata[0])
        variables = _tet_variables(file, group.strip("/"), dropped, metadata)
        if not variables and group:
            raise tercet.UnknownNameError(f"{file.name}: no group {group!r}", file.name)
    elif isinstance(file, tercet.TgmFile):
        variables = _tgm_variables(file, message, where, dim_names, variable_key, range_threshold, dropped)
    else:
        raise tercet.RequestError(f"{file.name}: tables have no xarray form; use scan().to_arrow()")
    sizes = {dim for variable in variables.values() for dim in variable.dims}
    dataset = _build(variables, file.name, attrs, unlimited & sizes)
    return xr.decode_cf(dataset) if decode_cf else dataset


def _groups(file: tercet.TetFile) -> list[str]:
    groups = {""}
    for name in file:
        parts = name.split("/")[:-1]
        groups.update("/".join(parts[: depth + 1]) for depth in range(len(parts)))
    return sorted(groups)


def _encoded(dataset: xr.Dataset) -> tuple[dict[str, xr.Variable], dict[str, xr.Variable], dict[str, Any]]:
    """The variables, encoded by the CF conventions: numbers, and strings as they are; and the attributes of the dataset."""
    for name in dataset.variables:
        if not isinstance(name, str) or not name:
            raise tercet.RequestError(f"names of variables must be strings that are not empty, not {name!r}")
    variables, attrs = conventions.encode_dataset_coordinates(dataset)
    texts = {name: variable for name, variable in variables.items() if _is_text(variable)}
    numbers = {name: variable for name, variable in variables.items() if name not in texts}
    encoded, attrs = conventions.cf_encoder(numbers, attrs)
    for name, variable in encoded.items():
        if numbers[name].dtype == bool and variable.attrs.get("dtype") == "bool":
            # Not as int8 of the CF conventions.
            kept = {key: value for key, value in variable.attrs.items() if key != "dtype"}
            encoded[name] = xr.Variable(variable.dims, variable.data.astype(bool), kept)
    as_text = {str(name): variable for name, variable in texts.items()}
    return {str(name): variable for name, variable in encoded.items()}, as_text, dict(attrs)


def _is_text(variable: xr.Variable) -> bool:
    if variable.dtype.kind in "US":
        return True
    if variable.dtype.kind not in "OT":
        return False
    return any(isinstance(one, (str, bytes)) for one in np.asarray(variable.values, dtype=object).reshape(-1))


def _strings(name: str, variable: xr.Variable) -> list[str] | list[bytes]:
    values = np.asarray(variable.values, dtype=object).reshape(-1).tolist()
    for kind in (str, bytes):
        if all(isinstance(one, kind) for one in values):
            return values
    raise tercet.RequestError(f"variable {name!r}: missing or mixed strings cannot be stored; use .fillna('')")


def _chars(name: str, variable: xr.Variable, sizes: Mapping[Hashable, int]) -> xr.Variable:
    """Strings as characters, with one more axis."""
    texts = _strings(name, variable)
    charset = str(variable.encoding.get("_Encoding", "utf-8"))
    try:
        raw = [one.encode(charset) if isinstance(one, str) else one for one in texts]
    except (UnicodeEncodeError, LookupError) as error:
        raise tercet.RequestError(f"variable {name!r}: {error}") from None
    if any(b"\0" in one for one in raw):
        raise tercet.RequestError(f"variable {name!r}: strings with NUL characters cannot be stored")
    width = max(1, *map(len, raw)) if raw else 1
    values = np.array(raw, f"S{width}").reshape(variable.shape)[..., np.newaxis].view(np.uint8)
    dim = f"string{width}"
    while sizes.get(dim, width) != width:
        dim += "_"
    attrs = dict(variable.attrs)
    if any(isinstance(one, str) for one in texts):
        attrs["_Encoding"] = charset
    return xr.Variable((*variable.dims, dim), values, attrs)


#: The most bytes of a label.
_MAX_LABEL = 1024


def _parts_of_complex(block: Values) -> Values:
    real = np.dtype(f"f{block.dtype.itemsize // 2}")
    return np.ascontiguousarray(block).reshape(*block.shape, 1).view(real)


def _stored(data: Any) -> tuple[Any, str | None]:
    """An array as the format can store it, and the type that is recorded."""
    dtype = data.dtype
    if dtype == np.int8:
        return data.astype(np.int16), "int8"
    if dtype == bool:
        return data.astype(np.uint8), "bool"
    if dtype.kind == "c":
        data = data.astype(dtype.newbyteorder("="))
        if is_dask(data):
            real = data.real.dtype
            chunks = (*data.chunks, (2,))
            return data.map_blocks(_parts_of_complex, dtype=real, new_axis=data.ndim, chunks=chunks), dtype.name
        return _parts_of_complex(data), dtype.name
    return data, None


def decompose(dataset: xr.Dataset, file_attrs: Mapping[str, Any] | None = None) -> Parts:
    """An `xarray.Dataset` as the arrays of a `.tet` file, encoded by the CF conventions.

    Types that the format does not have are recorded as `tercet convert` does.
    """
    variables, texts, attrs = _encoded(dataset)
    typed: dict[str, dict[str, Any]] = {}
    used = {dim for name, one in {**variables, **texts}.items() for dim in one.dims if one.dims != (name,) or name in variables}
    labels: dict[str, list[str]] = {}
    label_records: dict[str, Any] = {}
    for name, variable in texts.items():
        strings = _strings(name, variable) if variable.dims == (name,) and name in used else []
        if strings and all(isinstance(one, str) and 0 < len(one.encode()) <= _MAX_LABEL for one in strings):
            labels[name] = [str(one) for one in strings]
            label_records[name] = {"kind": "string"}
            if variable.attrs:
                label_records[name]["attrs"] = [
                    [str(key), *entry(str(key), value), "only here"] for key, value in variable.attrs.items()
                ]
        else:
            variables[name] = _chars(name, variable, dataset.sizes)
            typed[name] = {"kind": "char"}
    arrays: dict[str, Any] = {}
    dims: dict[str, list[str]] = {}
    described: dict[str, dict[str, Any]] = {}
    of_dataset: dict[str, dict[str, list[str]]] = {}
    for name, variable in variables.items():
        data: Any = variable.data if is_dask(variable.data) else np.asarray(variable.values)
        own = [str(dim) for dim in variable.dims]
        record: dict[str, Any] = typed.get(name, {})
        if not data.shape:
            data, own = data[np.newaxis], ["scalar"]
            record["scalar"] = True
        data, kind = _stored(data)
        if kind is not None:
            record["kind"] = kind
            own += ["complex"] * (data.ndim - len(own))
        if record:
            typed[name] = record
        arrays[name], dims[name], described[name] = data, own, {str(key): one for key, one in variable.attrs.items()}
        found = {dim: labels[dim] for dim in own if dim in labels}
        if found:
            of_dataset[name] = found
    file = file_members({**{str(key): one for key, one in attrs.items()}, **(file_attrs or {})})
    if label_records:
        file.setdefault("typed", {})["labels"] = label_records
    unlimited = set(dataset.encoding.get("unlimited_dims") or ())
    if unlimited:
        file.setdefault("typed", {})["dims"] = [[str(dim), size, dim in unlimited] for dim, size in dataset.sizes.items()]
    return Parts(arrays, dims, described, of_dataset, typed, file)


class TercetBackend(BackendEntrypoint):
    """Opens `.tet` and `.tgm` files."""

    description = "Open .tet and .tgm files with Tercet"
    supports_groups = True

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool = True,
        decode_times: Any = True,
        concat_characters: bool = True,
        decode_coords: Any = True,
        drop_variables: Any = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        group: str = "",
        message: int | None = None,
        where: Where | None = None,
        dim_names: Sequence[str] | None = None,
        variable_key: str | None = None,
        range_threshold: float = 0.5,
    ) -> xr.Dataset:
        raw = open_dataset(
            filename_or_obj,
            drop_variables=drop_variables,
            decode_cf=False,
            group=group,
            message=message,
            where=where,
            dim_names=dim_names,
            variable_key=variable_key,
            range_threshold=range_threshold,
        )
        encoding = dict(raw.encoding)
        cftime: dict[str, Any] = {} if use_cftime is None else {"use_cftime": use_cftime}
        decoded = xr.decode_cf(
            raw,
            concat_characters=concat_characters,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            decode_coords=decode_coords,
            **cftime,
            decode_timedelta=decode_timedelta,
        )
        decoded.encoding.update(encoding)
        return decoded

    def open_groups_as_dict(self, filename_or_obj: Any, **options: Any) -> dict[str, xr.Dataset]:
        """The groups of a `.tet` file by path."""
        file = _open(filename_or_obj)
        if not isinstance(file, tercet.TetFile):
            return {"/": self.open_dataset(file, **options)}
        found = {}
        for group in _groups(file):
            try:
                found[f"/{group}"] = self.open_dataset(file, group=group, **options)
            except tercet.UnknownNameError:
                # A group of groups only.
                found[f"/{group}"] = xr.Dataset()
        return found

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> xr.DataTree:
        """The groups of a `.tet` file as a tree."""
        return xr.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        if isinstance(filename_or_obj, tercet.File):
            return filename_or_obj.format in ("tet", "tgm")
        if isinstance(filename_or_obj, (bytes, bytearray, memoryview)):
            return any(bytes(filename_or_obj[:8]).startswith(magic) for magic in _MAGIC)
        if hasattr(filename_or_obj, "read") and hasattr(filename_or_obj, "seek"):
            place = filename_or_obj.tell()
            filename_or_obj.seek(0)
            head = filename_or_obj.read(8)
            filename_or_obj.seek(place)
            return isinstance(head, bytes) and any(head.startswith(magic) for magic in _MAGIC)
        try:
            name = os.fspath(filename_or_obj)
        except TypeError:
            return False
        if "://" in name:
            return _is_url_of_ours(name)
        try:
            with open(name, "rb") as file:
                head = file.read(8)
        except OSError:
            return False
        return any(head.startswith(magic) for magic in _MAGIC)


def _guess_after_tercet() -> None:
    """Makes the backend of netCDF4 leave URLs of `.tet` and `.tgm` files to this one.

    It is asked first and takes every URL for its own, whatever the extension (xarray#10931), so that
    `xr.open_dataset("https://host/run.tgm")` would fail where netCDF4 is installed.
    """
    from xarray.backends.netCDF4_ import NetCDF4BackendEntrypoint

    guess = NetCDF4BackendEntrypoint.guess_can_open
    if hasattr(guess, "__wrapped__"):
        return

    @functools.wraps(guess)
    def guess_can_open(self: Any, filename_or_obj: Any) -> bool:
        if isinstance(filename_or_obj, str) and _is_url_of_ours(filename_or_obj):
            return False
        return bool(guess(self, filename_or_obj))

    NetCDF4BackendEntrypoint.guess_can_open = guess_can_open  # type: ignore[method-assign]


def _is_url_of_ours(name: str) -> bool:
    return "://" in name and name.split("?")[0].split("#")[0].endswith((".tet", ".tgm"))


_guess_after_tercet()


@xr.register_dataset_accessor("tercet")  # type: ignore[no-untyped-call]
class TercetAccessor:
    """Writes an `xarray.Dataset`: `ds.tercet.to_tet("out.tet")`."""

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def to_tet(
        self,
        path: str | os.PathLike[str],
        *,
        compute: bool = True,
        chunks: Mapping[Hashable, int] | None = None,
        zstd: int | bool | None = None,
        max_error: Mapping[str, float] | float | None = None,
        keep_bits: Mapping[str, int] | int | None = None,
        overwrite: bool = False,
    ) -> Any:
        """Writes a `.tet` file. Workers of Dask compute, round and compress its chunks in parallel; threads write them, too.

        Args:
            compute: Whether to write now; otherwise an object of `dask.delayed` is returned.
            chunks: Chunk extents by dimension. By default those of Dask; its chunks must consist of whole stored chunks.
        """
        path = os.path.abspath(path)  # A worker can have another working directory.

        def write() -> int:
            parts = decompose(self._dataset)
            shapes = {name: _chunk_shape(array, parts.dims[name], chunks) for name, array in parts.arrays.items()}
            return write_parts(
                path,
                parts,
                chunks={name: shape for name, shape in shapes.items() if shape is not None},
                zstd=zstd,
                max_error=max_error,
                keep_bits=keep_bits,
                overwrite=overwrite,
            )

        if compute:
            return write()
        from dask.delayed import delayed

        return delayed(write, pure=False)()

    def to_tgm(self, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None, **options: Any) -> int:
        """Writes one message with all variables to a `.tgm` file. Options are those of `tercet.write_tgm`.

        Attributes of the dataset become keys of the message, unless `metadata` has them.
        """
        variables, texts, attrs = _encoded(self._dataset)
        if texts:
            raise tercet.RequestError(f"variable {next(iter(texts))!r} holds strings; `.tgm` stores numbers only")
        objects = {name: np.asarray(one.values) for name, one in variables.items()}
        described = {
            name: {**_texts(one.attrs), "dim_names": [str(dim) for dim in one.dims]} for name, one in variables.items()
        }
        keys = {**_texts(attrs), **(metadata or {})}
        return tercet.write_tgm(path, [(keys, objects)], object_metadata=[described], **options)


def _texts(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value for key, value in attrs.items()}


def _chunk_shape(array: Any, dims: Sequence[str], chunks: Mapping[Hashable, int] | None) -> list[int] | None:
    """The stored chunk shape; none for the default."""
    if chunks is None:
        return None
    default = [sizes[0] for sizes in array.chunks] if is_dask(array) else array.shape
    return [max(1, min(int(chunks.get(dim, size)), extent)) for dim, size, extent in zip(dims, default, array.shape)]
