"""The xarray backend `tercet`: `xr.open_dataset("era5.tet")`, lazily."""

from __future__ import annotations

import os
from typing import Any, Iterable

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

import tercet

_MAGIC = {b"TETR": "tet", b"TENSOGRM": "tgm"}


class LazyArray(BackendArray):
    """A dataset of a file that xarray reads by selection."""

    def __init__(self, dataset: tercet.Dataset) -> None:
        self.dataset = dataset
        self.shape = dataset.shape
        self.dtype = dataset.dtype

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self.dataset.__getitem__
        )


def _attrs(dataset: tercet.Dataset) -> dict[str, Any]:
    """Attributes with numbers as numbers, so that xarray decodes them."""
    attrs: dict[str, Any] = {}
    for key, text in dataset.attrs.items():
        attrs[key] = text
        if key in ("_FillValue", "missing_value"):
            number = _number(text, dataset.dtype)
        elif key in ("scale_factor", "add_offset", "valid_min", "valid_max"):
            number = _number(text, np.dtype(float))
        else:
            continue
        if number is not None:
            attrs[key] = number
    return attrs


def _number(text: str, dtype: np.dtype) -> Any:
    try:
        return dtype.type(text)
    except (TypeError, ValueError):
        return None


def open_dataset(
    source: Any, *, drop_variables: str | Iterable[str] | None = None, decode_cf: bool = True, message: int = 0
) -> xr.Dataset:
    """A file as a lazy `xarray.Dataset`."""
    file = source if isinstance(source, tercet.File) else tercet.open(source)
    dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
    variables: dict[str, Any] = {}
    if isinstance(file, tercet.TetFile):
        for name in file:
            if name not in dropped:
                variables[name] = _variable(file[name])
        for name, variable in list(variables.items()):
            for axis, dim in enumerate(variable.dims):
                labels = file.labels(name, axis)
                if labels is not None and dim not in variables and dim not in dropped:
                    variables[dim] = xr.Variable((dim,), _typed(labels))
    elif isinstance(file, tercet.TgmFile):
        for one in file[message].objects:
            if one.name not in dropped:
                dims = [f"{one.name}_dim_{axis}" for axis in range(len(one.shape))]
                attrs = {key: value for key, value in one.metadata.items() if isinstance(value, (str, int, float))}
                variables[one.name] = xr.Variable(dims, one.to_numpy(), attrs)
    else:
        raise tercet.RequestError(f"{file.name}: tables have no xarray form; use scan().to_arrow()")
    coords = {name for name, one in variables.items() if one.dims == (name,)}
    dataset = xr.Dataset({name: one for name, one in variables.items() if name not in coords})
    dataset = dataset.assign_coords({name: variables[name] for name in coords})
    dataset.encoding["source"] = file.name
    return xr.decode_cf(dataset) if decode_cf else dataset


def _typed(labels: list[str]) -> np.ndarray:
    try:
        return np.array([float(label) for label in labels])
    except ValueError:
        pass
    try:
        return np.array(labels, dtype="datetime64[ns]")
    except ValueError:
        return np.array(labels)


def _variable(dataset: tercet.Dataset) -> xr.Variable:
    data = indexing.LazilyIndexedArray(LazyArray(dataset))
    dims = [dim if not dim.startswith("dim_") else f"{dataset.name}_{dim}" for dim in dataset.dims]
    chunks = dict(zip(dims, dataset.chunks))
    encoding = {"preferred_chunks": chunks, "chunks": dataset.chunks}
    return xr.Variable(dims, data, _attrs(dataset), encoding)


def decompose(dataset: xr.Dataset) -> tuple[dict[str, Any], dict[str, list[str]], dict[str, dict[str, Any]], dict[str, Any]]:
    """Arrays, axis names, attributes and labels of an `xarray.Dataset`, encoded by the CF conventions."""
    arrays: dict[str, Any] = {}
    dims: dict[str, list[str]] = {}
    attrs: dict[str, dict[str, Any]] = {}
    labels: dict[str, dict[str, list[str]]] = {}
    text_coords: dict[str, list[str]] = {}
    for name, variable in dataset.variables.items():
        encoded = xr.conventions.encode_cf_variable(variable, name=name)
        values = np.asarray(encoded.values)
        if values.dtype.kind in "OUS":
            if variable.dims == (name,):
                text_coords[str(name)] = [str(one) for one in np.asarray(variable.values)]
                continue
            raise tercet.RequestError(f"variable {name!r} holds strings; `.tet` stores numbers, and strings as labels")
        arrays[str(name)] = values
        dims[str(name)] = [str(dim) for dim in variable.dims]
        attrs[str(name)] = dict(encoded.attrs)
    for name, names in dims.items():
        found = {dim: text_coords[dim] for dim in names if dim in text_coords}
        if found:
            labels[name] = found
    return arrays, dims, attrs, labels


class TercetBackend(BackendEntrypoint):
    """Opens `.tet` files and messages of `.tgm` files."""

    description = "Open .tet and .tgm files with Tercet"

    def open_dataset(  # type: ignore[override]
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
        message: int = 0,
    ) -> xr.Dataset:
        raw = open_dataset(filename_or_obj, drop_variables=drop_variables, decode_cf=False, message=message)
        source = raw.encoding["source"]
        decoded = xr.decode_cf(
            raw,
            concat_characters=concat_characters,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            decode_coords=decode_coords,
            **({} if use_cftime is None else {"use_cftime": use_cftime}),
            decode_timedelta=decode_timedelta,
        )
        decoded.encoding["source"] = source
        return decoded

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        try:
            name = os.fspath(filename_or_obj)
        except TypeError:
            return False
        if "://" in name:
            return name.split("?")[0].endswith((".tet", ".tgm"))
        try:
            with open(name, "rb") as file:
                head = file.read(8)
        except OSError:
            return False
        return any(head.startswith(magic) for magic in _MAGIC)
