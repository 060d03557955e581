"""The names and signatures of the package `tet-py` 0.8, for `.tet` files.

>>> import numpy as np, pathlib, tempfile
>>> import tercet.compat.tet as tet
>>> path = pathlib.Path(tempfile.mkdtemp()) / "a.tet"
>>> _ = tet.write_dataset(path, "t", np.arange(6.0).reshape(2, 3), dim_names=["time", "lat"])
>>> tet.open(path).mean("t")
2.5
>>> tet.open(path).sum("t", axis="time").reduced
[3.0, 5.0, 7.0]

What differs:

* Checksums are verified on read; damaged bytes are a `TetError` and never values.
* Arrays are read into memory; a memory map is `tercet.open(path, mmap=True)`.
* `convert` and `export` convert with `tercet.convert`: NetCDF, HDF5, Zarr, `.npy`, `.npz`; no tables.
* Packages (`.tet.d`) can be opened. Writing them, `MemoryStore`, `S3Store` and `run_job` raise `TetError`.
* Error messages differ; their classes are the same.
"""

from __future__ import annotations

import builtins
import difflib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _lib
from .._arrays import to_bytes, to_numpy
from .._errors import Error as _TercetError
from .._errors import TercetOSError as _TercetOSError

__version__: str = _lib.__version__

__all__ = [
    "QUERY_OP_KEYS",
    "REDUCTION_OPS",
    "CatalogError",
    "Dataset",
    "MemoryStore",
    "NumpyTransformResult",
    "QueryResult",
    "S3Store",
    "SidecarTransformResult",
    "SpillReadResult",
    "SpillTransformResult",
    "TetError",
    "TetFile",
    "TetWriter",
    "TransformResult",
    "TransformStats",
    "TransformWrite",
    "UnknownAxisError",
    "UnknownDatasetError",
    "__version__",
    "axis_slice",
    "build_query",
    "convert",
    "core_version",
    "create",
    "export",
    "full_selection",
    "ingest",
    "is_package",
    "open",
    "pack",
    "publish",
    "run_job",
    "selection_slices",
    "typing_stub",
    "write_dataset",
]

Array = npt.NDArray[Any]
PathLike = str | os.PathLike[str]
Axis = int | str
Selection = Sequence[Mapping[str, Any]]


class TetError(Exception):
    """A query or a write failed."""


class CatalogError(Exception):
    """The file cannot be read."""


class UnknownDatasetError(KeyError, TetError):
    """The file has no dataset of this name."""

    def __init__(self, name: str, *, path: Path | str | None, available: Sequence[str]) -> None:
        self.name = name
        self.path = None if path is None else Path(path)
        self.available = tuple(available)
        near = difflib.get_close_matches(name, list(available), 3, 0.5)
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        names = ", ".join(map(repr, available))
        super().__init__(f"unknown dataset {name!r} in {path}; available datasets ({len(available)}): {names}{hint}")


class UnknownAxisError(ValueError, TetError):
    """The dataset has no such axis."""

    def __init__(
        self,
        axis: Axis,
        *,
        dataset: str,
        path: Path | str | None,
        ndim: int,
        shape: tuple[int, ...],
        dim_names: tuple[str, ...] | None,
    ) -> None:
        self.axis = axis
        self.dataset = dataset
        self.path = None if path is None else Path(path)
        self.ndim = ndim
        self.shape = shape
        self.dim_names = dim_names
        super().__init__(f"invalid axis {axis!r} for dataset {dataset!r} in {path}; shape={shape}, dim_names={dim_names}")


_REDUCTIONS = (
    "sum",
    "mean",
    "min",
    "max",
    "var",
    "std",
    "product",
    "norm_l1",
    "norm_l2",
    "all_finite",
    "any_nan",
    "median",
    "nan_count",
    "inf_count",
    "null_count",
    "nan_mean",
    "nan_std",
    "any_inf",
)

#: The keys of results in the answer: of one value, and of several.
REDUCTION_OPS: dict[str, tuple[str, str]] = {
    **{name: (f"operation_{name}", f"operation_reduced_{name}") for name in _REDUCTIONS},
    "count": ("operation_element_count", "operation_reduced_count"),
    "arg_min": ("operation_argmin_index", "operation_reduced_argmin"),
    "arg_max": ("operation_argmax_index", "operation_reduced_argmax"),
}

#: The operations of query documents.
QUERY_OP_KEYS: frozenset[str] = frozenset(REDUCTION_OPS) | {
    "quantile",
    "histogram",
    "covariance",
    "correlation",
    "transform",
}

_METHODS = ("zscore", "minmax", "l1", "l2", "center", "scale", "log1p", "sqrt", "softmax")

_SUMMARY_KEYS = ("superblock", "datasets", "chunks", "file_execution", "history", "metadata")

_DTYPES = {
    1: "<f4",
    2: "<f8",
    3: "<i4",
    4: "<i8",
    5: "u1",
    6: "<u2",
    7: "<i2",
    8: "<u4",
    9: "<f2",
    10: "<u8",
}


def core_version() -> str:
    """The version of the engine."""
    return __version__


def axis_slice(
    start: int | None = None,
    stop: int | None = None,
    step: int | None = None,
    *,
    start_label: str | None = None,
    stop_label: str | None = None,
) -> dict[str, Any]:
    """The slice of one axis in a query document."""
    given = {"start": start, "stop": stop, "step": step, "start_label": start_label, "stop_label": stop_label}
    return {key: value for key, value in given.items() if value is not None}


def selection_slices(*slices: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The selection of a query document, one slice for each axis."""
    return [dict(one) for one in slices]


def full_selection(ndim: int) -> list[dict[str, Any]]:
    """The selection of all elements."""
    return [{} for _ in range(ndim)]


def build_query(dataset: str, *, selection: Selection | None = None, **op: Any) -> dict[str, Any]:
    """A query document with one operation: `build_query("t2m", mean=[0])`."""
    if len(op) != 1:
        raise ValueError("exactly one operation key required")
    [(key, value)] = op.items()
    if key not in QUERY_OP_KEYS:
        raise ValueError(f"unknown query op {key!r}")
    return _document(dataset, selection, {key: value})


def _document(dataset: str, selection: Selection | None, op: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = {"dataset": dataset, **op}
    if selection is not None:
        document["selection"] = [dict(one) for one in selection]
    return document


def _hints(document: dict[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in hints.items() if value is not None}
    if not given:
        return document
    return {**document, "execution": {**(document.get("execution") or {}), **given}}


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset of a file."""

    name: str
    shape: tuple[int, ...]
    #: The tag of the element type.
    dtype: int
    chunk_shape: tuple[int, ...]
    dim_names: tuple[str, ...] | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def axis_index(self, axis: Axis, *, path: Path | str | None = None) -> int:
        """The number of an axis, by name or number."""
        if isinstance(axis, int):
            index = axis + self.ndim if axis < 0 else axis
            if 0 <= index < self.ndim:
                return index
        elif self.dim_names is not None and axis in self.dim_names:
            return self.dim_names.index(axis)
        raise UnknownAxisError(
            axis, dataset=self.name, path=path, ndim=self.ndim, shape=self.shape, dim_names=self.dim_names
        )

    def to_numpy(self, file: TetFile, selection: Selection | None = None) -> Array:
        """Reads the dataset, or a selection."""
        return file.read_numpy(self.name, selection)


def _preview(execution: dict[str, Any] | None) -> tuple[list[float] | None, bool]:
    for kind in ("f32", "f64", "i32", "i64", "u8", "u16", "i16", "u32", "u64", "f16"):
        values = (execution or {}).get(f"{kind}_preview")
        if isinstance(values, list) and values:
            return [float(value) for value in values], bool((execution or {}).get(f"{kind}_preview_truncated", False))
    return None, False


def _check(answer: dict[str, Any], path: Path | str | None, require_execution: bool) -> None:
    catalog = answer.get("catalog")
    if isinstance(catalog, dict) and catalog.get("matched") is False:
        names = [str(name) for name in catalog.get("available_datasets") or []]
        raise UnknownDatasetError(str(answer.get("dataset", "")), path=path, available=names)
    if not answer.get("accepted"):
        raise TetError(answer.get("message") or "query not accepted")
    if require_execution and not isinstance(answer.get("execution"), dict):
        raise TetError(answer.get("message") or "query has no execution block")


@dataclass(frozen=True)
class QueryResult:
    """The answer to a query."""

    accepted: bool
    message: str | None
    scalar: float | int | bool | None
    reduced: list[Any] | None
    reduced_shape: list[int] | None
    plan: dict[str, Any] | None
    execution: dict[str, Any] | None
    raw: dict[str, Any]
    matrix: list[float] | None = None
    matrix_order: int | None = None
    histogram_counts: list[float] | None = None
    histogram_edges: list[float] | None = None

    @property
    def value(self) -> Any:
        """The one value, or the list of values."""
        if self.scalar is not None:
            return self.scalar
        if self.reduced is not None:
            return self.reduced
        raise TetError("query result has no scalar or reduced value")

    @property
    def preview_samples(self) -> list[float] | None:
        return _preview(self.execution)[0]

    @property
    def preview_truncated(self) -> bool:
        return _preview(self.execution)[1]

    @property
    def preview(self) -> Array | None:
        """The first values of the selection, if they were asked for."""
        values = self.preview_samples
        if values is None:
            return None
        tag = (self.raw.get("catalog") or {}).get("dtype")
        return np.asarray(values, dtype=np.float64 if tag is None else _DTYPES[int(tag)])

    @classmethod
    def from_response(
        cls, raw: dict[str, Any], *, op: str | None = None, path: str | None = None, require_execution: bool = False
    ) -> QueryResult:
        """The result of an answer in the form of JSON."""
        _check(raw, path, require_execution)
        execution = raw.get("execution")
        plan = raw.get("plan")
        found: dict[str, Any] = {"scalar": None, "reduced": None, "reduced_shape": None}
        if isinstance(execution, dict):
            shape = execution.get("operation_reduced_shape")
            found["reduced_shape"] = [int(extent) for extent in shape] if isinstance(shape, list) else None
            found.update(_values(execution, op or _operation(execution)))
        return cls(
            accepted=True,
            message=raw.get("message"),
            plan=plan if isinstance(plan, dict) else None,
            execution=execution if isinstance(execution, dict) else None,
            raw=raw,
            **found,
        )


def _values(execution: dict[str, Any], op: str | None) -> dict[str, Any]:
    def a_list(key: str) -> Any:
        value = execution.get(key)
        return value if isinstance(value, list) else None

    if op in REDUCTION_OPS:
        scalar, reduced = REDUCTION_OPS[op]
        return {"scalar": execution.get(scalar), "reduced": a_list(reduced)}
    if op == "quantile":
        return {"scalar": execution.get("operation_quantile")}
    if op == "histogram":
        return {
            "histogram_counts": a_list("operation_histogram_counts"),
            "histogram_edges": a_list("operation_histogram_edges"),
            "reduced": a_list("operation_reduced_histogram_counts"),
        }
    if op in ("covariance", "correlation"):
        order = execution.get(f"operation_{op}_order")
        return {"matrix": a_list(f"operation_{op}"), "matrix_order": None if order is None else int(order)}
    return {}


def _operation(execution: dict[str, Any]) -> str | None:
    for name, (scalar, reduced) in REDUCTION_OPS.items():
        if execution.get(scalar) is not None or isinstance(execution.get(reduced), list):
            return name
    for name in ("quantile", "histogram_counts", "reduced_histogram_counts", "covariance", "correlation"):
        if execution.get(f"operation_{name}") is not None:
            return "histogram" if "histogram" in name else name
    return None


class TransformWrite(StrEnum):
    """Where the result of a transform is written."""

    NUMPY = "ram"
    SPILL = "spill"
    SIDECAR = "sidecar"


@dataclass(frozen=True, slots=True)
class TransformStats:
    """The statistics that a transform used."""

    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    var: float | None = None

    @classmethod
    def from_execution(cls, execution: dict[str, Any] | None) -> TransformStats:
        def number(name: str) -> float | None:
            value = (execution or {}).get(f"operation_{name}")
            return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

        return cls(number("mean"), number("std"), number("min"), number("max"), number("var"))


@dataclass(frozen=True, slots=True)
class TransformResult:
    """The result of a transform."""

    method: str
    stats: TransformStats
    shape: tuple[int, ...] | None
    dtype_tag: int | None
    accepted: bool
    message: str | None
    memory_strategy: str | None
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NumpyTransformResult(TransformResult):
    """A result in memory: its first values."""

    preview: list[float] | None
    preview_truncated: bool


@dataclass(frozen=True, slots=True)
class SpillTransformResult(TransformResult):
    """A result in a file of raw values."""

    path: Path
    byte_len: int | None

    def to_numpy(self) -> Array:
        """Reads the values."""
        if self.dtype_tag is None:
            raise ValueError("transform spill result missing dtype tag")
        return _load_spill(self.path, self.shape, self.dtype_tag)


@dataclass(frozen=True, slots=True)
class SidecarTransformResult(TransformResult):
    """A result in a new `.tet` file."""

    path: Path | None

    def open(self, source: TetFile | Path | str) -> TetFile:
        """Opens the new file; a relative path is beside the source."""
        if self.path is None:
            raise ValueError("sidecar path not set in transform execution")
        path = self.path
        if not path.is_absolute():
            beside = source.path if isinstance(source, TetFile) else Path(source)
            path = (beside.parent / path).resolve()
        return TetFile.open(path)

    def to_numpy(self, source: TetFile | Path | str, *, dataset: str | None = None) -> Array:
        """Reads the values."""
        file = self.open(source)
        names = [name for name in file if name.endswith(f"-{self.method}")] if len(file.dataset_names) > 1 else list(file)
        if dataset is None and len(names) != 1:
            raise ValueError(f"sidecar has multiple datasets; pass dataset= explicitly (available: {list(file)!r})")
        return file.read_numpy(dataset or names[0])


@dataclass(frozen=True, slots=True)
class SpillReadResult:
    """A selection in a file of raw values."""

    path: Path
    shape: tuple[int, ...] | None
    dtype_tag: int
    byte_len: int | None
    memory_strategy: str | None
    raw: dict[str, Any]

    def to_numpy(self) -> Array:
        """Reads the values."""
        return _load_spill(self.path, self.shape, self.dtype_tag)


def _load_spill(path: Path, shape: tuple[int, ...] | None, tag: int) -> Array:
    if tag not in _DTYPES:
        raise ValueError(f"unsupported dataset dtype tag {tag}")
    if not path.is_file():
        raise FileNotFoundError(f"spill file not found: {path}")
    array = np.fromfile(path, dtype=_DTYPES[tag])
    if shape is None:
        return array
    if array.size != int(np.prod(shape, dtype=np.int64)):
        raise ValueError(f"spill file {path} has {array.size} elements, expected shape {shape}")
    return array.reshape(shape)


def _spill_path(execution: dict[str, Any]) -> tuple[Path, int | None, int | None]:
    """Path, length and tag of the element type."""
    for kind, tag in (("f32", 1), ("f64", 2)):
        path = execution.get(f"spill_{kind}_path")
        if isinstance(path, str) and path:
            length = execution.get(f"spill_{kind}_bytes")
            return Path(path).expanduser().resolve(), None if length is None else int(length), tag
    raise ValueError("execution missing spill_f32_path or spill_f64_path")


def _beside(path: PathLike, file: Path) -> Path:
    made = Path(path).expanduser()
    return made if made.is_absolute() else (file.resolve().parent / made).resolve()


class _Sink:
    """The transforms with one kind of output."""

    zscore: Callable[..., Any]
    minmax: Callable[..., Any]
    l1: Callable[..., Any]
    l2: Callable[..., Any]
    center: Callable[..., Any]
    scale: Callable[..., Any]
    log1p: Callable[..., Any]
    sqrt: Callable[..., Any]
    softmax: Callable[..., Any]

    def __init__(self, file: TetFile, write: TransformWrite) -> None:
        self._file = file
        self._write = write


def _transform(method: str) -> Callable[..., Any]:
    def transform(
        self: _Sink,
        dataset: str,
        axes: Sequence[Axis] | None = None,
        *,
        axis: Axis | None = None,
        path: PathLike | None = None,
        selection: Selection | None = None,
        device: str | None = None,
        memory_budget_bytes: int | None = None,
        memory_budget_percent: float | None = None,
        raw: bool = False,
    ) -> Any:
        hints = {
            "device": device,
            "memory_budget_bytes": memory_budget_bytes,
            "memory_budget_percent": memory_budget_percent,
        }
        return self._file._transform(method, dataset, axes, axis, self._write, path, selection, hints, raw)

    transform.__name__ = method
    transform.__doc__ = f"The transform `{method}` over axes; over all of them by default."
    return transform


for _method in _METHODS:
    setattr(_Sink, _method, _transform(_method))


class _Transforms:
    """Transforms: `file.transform.to_numpy.zscore("t2m", axis="time")`."""

    def __init__(self, file: TetFile) -> None:
        self.to_numpy = _Sink(file, TransformWrite.NUMPY)
        self.to_spill = _Sink(file, TransformWrite.SPILL)
        self.to_sidecar = _Sink(file, TransformWrite.SIDECAR)


def _reduction(op: str) -> Callable[..., Any]:
    def reduction(
        self: TetFile,
        dataset: str,
        axes: Sequence[Axis] | None = None,
        *,
        axis: Axis | None = None,
        device: str | None = None,
        memory_budget_bytes: int | None = None,
        memory_budget_percent: float | None = None,
        preview: int | None = None,
        raw: bool = False,
    ) -> Any:
        hints = {
            "device": device,
            "memory_budget_bytes": memory_budget_bytes,
            "memory_budget_percent": memory_budget_percent,
        }
        return self._reduce(op, dataset, axes, axis, hints, preview, raw)

    reduction.__name__ = op
    reduction.__doc__ = f"The operation `{op}`: a number over all axes, a `QueryResult` over some of them."
    return reduction


class TetFile:
    """An open `.tet` file."""

    def __init__(self, inner: Any, path: Path | None = None, generation: int | None = None) -> None:
        self._inner = inner
        self._path = Path(inner.name()) if path is None else path
        self._generation = generation
        self._described: list[Any] = inner.datasets()
        self._summary: dict[str, Any] | None = None

    @classmethod
    def from_native(cls, inner: Any) -> TetFile:
        """The file of a native handle."""
        return cls(inner)

    @classmethod
    def open(cls, path: PathLike) -> TetFile:
        """Opens a file."""
        location = Path(path).expanduser()
        return cls(_open(str(location)), location)

    @classmethod
    def open_package(cls, path: PathLike) -> TetFile:
        """Opens the current generation of a package."""
        return _open_generation(Path(path).expanduser(), None)

    @property
    def path(self) -> Path:
        return self._path

    @property
    def generation(self) -> int | None:
        """The generation of a package; None for a file."""
        return self._generation

    @property
    def dataset_names(self) -> tuple[str, ...]:
        return tuple(one[0] for one in self._described)

    def datasets(self) -> list[str]:
        return list(self.dataset_names)

    @property
    def transform(self) -> _Transforms:
        return _Transforms(self)

    def __enter__(self) -> TetFile:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(self.dataset_names)

    def iter_datasets(self) -> Iterator[Dataset]:
        """The datasets in the order of the file."""
        for record in self.summary()["datasets"]:
            names = self._metadata(str(record["name"])).get("dim_names")
            yield Dataset(
                name=str(record["name"]),
                shape=tuple(record["shape"]),
                dtype=int(record["dtype"]),
                chunk_shape=tuple(record["chunk_shape"]),
                dim_names=tuple(names) if names else None,
            )

    def _metadata(self, name: str) -> dict[str, Any]:
        entry = ((self.summary().get("metadata") or {}).get("datasets") or {}).get(name)
        return entry if isinstance(entry, dict) else {}

    def dataset(self, key: str | int) -> Dataset:
        """A dataset by name or number."""
        found = list(self.iter_datasets())
        if isinstance(key, int):
            if not -len(found) <= key < len(found):
                raise IndexError(f"dataset index {key} out of range for {self.path} (count={len(found)})")
            return found[key]
        for dataset in found:
            if dataset.name == key:
                return dataset
        raise UnknownDatasetError(key, path=self.path, available=self.dataset_names)

    def __getitem__(self, key: str | int) -> Dataset:
        return self.dataset(key)

    def summary(self) -> dict[str, Any]:
        """The catalog of the file."""
        if self._summary is None:
            summary: dict[str, Any] = json.loads(self._inner.summary())
            self._summary = {key: summary[key] for key in _SUMMARY_KEYS if key in summary}
        return dict(self._summary)

    def info(self) -> dict[str, Any]:
        """The same as `summary`."""
        return self.summary()

    def summary_json(self) -> str:
        return json.dumps(self.summary())

    def typing_stub(self) -> str:
        """Python source with the names of datasets and axes as `Literal` types."""
        lines = [f"# Names of {self.path}", "from __future__ import annotations", "from typing import Literal", ""]
        if self.dataset_names:
            lines += [f"DatasetName = Literal[{', '.join(map(repr, self.dataset_names))}]", ""]
        for dataset in self.iter_datasets():
            if dataset.dim_names:
                tag = dataset.name.replace("-", "_").replace(" ", "_")
                names = ", ".join(map(repr, dataset.dim_names))
                lines.append(f"AxisName_{tag} = Literal[{names}]  # dim_names for {dataset.name!r}")
        return "\n".join(lines) + "\n"

    def export(self, dst: PathLike, *, format: str | None = None) -> Path:
        """Converts the file to NetCDF, HDF5 or Zarr."""
        return export(self.path, dst, format=format)

    def _steps(self, dataset: Dataset, selection: Selection | None) -> list[Any]:
        """A selection for the native module: ends of labels are not included, as in the package."""
        steps: list[Any] = []
        if selection is None:
            return steps
        if len(selection) != dataset.ndim:
            raise TetError(f"selection has {len(selection)} axes, dataset {dataset.name!r} has {dataset.ndim}")
        number = self.dataset_names.index(dataset.name)
        for axis, given in enumerate(selection):
            ends = {}
            for end in ("start", "stop"):
                ends[end] = given.get(end)
                label = given.get(f"{end}_label")
                if label is not None:
                    labels = self._inner.labels(number, axis) or []
                    if label not in labels:
                        raise TetError(f"unknown label {label!r} of axis {axis} of dataset {dataset.name!r}")
                    ends[end] = labels.index(label)
            step = given.get("step")
            steps.append((axis, ends["start"], ends["stop"], 1 if step is None else step))
        return steps

    def _shape(self, dataset: Dataset, selection: Selection | None) -> tuple[int, ...]:
        """The shape of a selection."""
        number = self.dataset_names.index(dataset.name)
        return tuple(self._inner.shape(number, self._steps(dataset, selection)))

    def read_numpy(self, dataset: str, selection: Selection | None = None) -> Array:
        """Reads a dataset, or a selection of it."""
        found = self.dataset(dataset)
        number = self.dataset_names.index(dataset)
        try:
            return to_numpy(self._inner.read(number, self._steps(found, selection), False))
        except _TercetError as error:
            raise TetError(str(error)) from None

    def read_spill(
        self, dataset: str, path: PathLike | None = None, *, selection: Selection | None = None
    ) -> SpillReadResult:
        """Writes a selection to a file of raw values."""
        found = self.dataset(dataset)
        document = _document(dataset, selection, {})
        if path is not None:
            document["spill"] = str(_beside(path, self.path))
        answer = self.query(document, raw=True)
        execution = answer.get("execution") or {}
        spilled, length, _ = _spill_path(execution)
        return SpillReadResult(
            path=spilled,
            shape=self._shape(found, selection),
            dtype_tag=found.dtype,
            byte_len=length,
            memory_strategy=execution.get("memory_strategy"),
            raw=answer,
        )

    def _ask(self, query: Any, preview: int | None, plan: bool) -> tuple[dict[str, Any], str | None]:
        """The answer to a document, and its operation."""
        document: Any = query
        if isinstance(query, str) and query.lstrip().startswith("{"):
            try:
                document = json.loads(query)
            except json.JSONDecodeError as error:
                raise TetError(f"query string is not valid JSON: {error}") from error
        if not isinstance(document, (dict, str)):
            raise TypeError("query must be a dict or JSON/TOML string")
        op = None
        if isinstance(document, dict):
            if isinstance(document.get("dataset"), str):
                self.dataset(document["dataset"])
            ops = [key for key in document if key in QUERY_OP_KEYS]
            op = ops[0] if len(ops) == 1 else None
        text = document if isinstance(document, str) else json.dumps(document)
        try:
            allowed = [str(self.path.resolve().parent)]
            native = self._inner.query(text, preview=preview or 0, plan=plan, allowed=allowed)
        except _TercetError as error:
            raise TetError(str(error)) from None
        answer: dict[str, Any] = json.loads(native)
        answer.setdefault("accepted", True)
        _check(answer, self.path, not plan and (op is not None or isinstance(document, str)))
        return answer, op

    def query(self, query: Any, *, preview: int | None = None, raw: bool = True) -> Any:
        """Runs a query document: a dictionary, JSON or TOML. Returns the answer, or a `QueryResult`."""
        answer, op = self._ask(query, preview, False)
        return answer if raw else QueryResult.from_response(answer, op=op, path=str(self.path))

    def query_execute(
        self,
        query: Any,
        *,
        device: str | None = None,
        memory_budget_bytes: int | None = None,
        memory_budget_percent: float | None = None,
        preview: int | None = None,
        raw: bool = True,
    ) -> Any:
        """Runs a query document with hints of execution."""
        hints = {
            "device": device,
            "memory_budget_bytes": memory_budget_bytes,
            "memory_budget_percent": memory_budget_percent,
        }
        if isinstance(query, dict):
            query = _hints(query, hints)
        elif any(value is not None for value in hints.values()):
            raise TypeError("device=/memory_budget_* require a dict query")
        return self.query(query, preview=preview, raw=raw)

    def execute(
        self,
        query: Any,
        *,
        device: str | None = None,
        memory_budget_bytes: int | None = None,
        memory_budget_percent: float | None = None,
        preview: int | None = None,
        raw: bool = False,
        plan: bool = False,
    ) -> Any:
        """Runs or plans a query document."""
        if plan:
            return self.plan_only(query, raw=raw)
        return self.query_execute(
            query,
            device=device,
            memory_budget_bytes=memory_budget_bytes,
            memory_budget_percent=memory_budget_percent,
            preview=preview,
            raw=raw,
        )

    def plan_only(self, query: Any, *, raw: bool = True) -> Any:
        """Plans a query document; nothing is read."""
        answer, _ = self._ask(query, None, True)
        return answer if raw else QueryResult.from_response(answer, path=str(self.path))

    def _axes(self, dataset: Dataset, axes: Sequence[Axis] | None, axis: Axis | None) -> list[int]:
        if axis is not None and axes is not None:
            raise TypeError("pass only one of axes= or axis=")
        given = list(axes or []) if axis is None else [axis]
        return [dataset.axis_index(one, path=self.path) for one in given]

    def _axis_fields(self, dataset: Dataset, axes: Sequence[Axis] | None, axis: Axis | None) -> dict[str, Any]:
        numbers = self._axes(dataset, axes, axis)
        return {"axis": numbers[0]} if len(numbers) == 1 else {"axes": numbers} if numbers else {}

    def _reduce(
        self,
        op: str,
        dataset: str,
        axes: Sequence[Axis] | None,
        axis: Axis | None,
        hints: Mapping[str, Any],
        preview: int | None,
        raw: bool,
    ) -> Any:
        numbers = self._axes(self.dataset(dataset), axes, axis)
        document = _hints({"dataset": dataset, op: numbers}, hints)
        if raw:
            return self.query(document, preview=preview, raw=True)
        result: QueryResult = self.query(document, preview=preview, raw=False)
        if numbers or preview is not None:
            return result
        if result.scalar is None:
            raise TetError(f"missing scalar for op {op!r}")
        return result.scalar

    sum = _reduction("sum")
    mean = _reduction("mean")
    min = _reduction("min")
    max = _reduction("max")
    var = _reduction("var")
    std = _reduction("std")
    product = _reduction("product")
    norm_l1 = _reduction("norm_l1")
    norm_l2 = _reduction("norm_l2")
    median = _reduction("median")
    count = _reduction("count")
    numel = _reduction("count")
    arg_min = _reduction("arg_min")
    arg_max = _reduction("arg_max")
    all_finite = _reduction("all_finite")
    any_nan = _reduction("any_nan")
    any_inf = _reduction("any_inf")
    nan_count = _reduction("nan_count")
    inf_count = _reduction("inf_count")
    nan_mean = _reduction("nan_mean")
    nan_std = _reduction("nan_std")

    def _run(
        self, document: dict[str, Any], hints: Mapping[str, Any], preview: int | None, raw: bool, is_scalar: bool
    ) -> Any:
        document = _hints(document, hints)
        if raw:
            return self.query(document, preview=preview, raw=True)
        result: QueryResult = self.query(document, preview=preview, raw=False)
        if is_scalar and preview is None and result.scalar is not None:
            return result.scalar
        return result

    def null_count(
        self,
        dataset: str,
        axes: Sequence[Axis] | None = None,
        *,
        axis: Axis | None = None,
        fill: float | None = None,
        device: str | None = None,
        memory_budget_bytes: int | None = None,
        memory_budget_percent: float | None = None,
        preview: int | None = None,
        raw: bool = False,
    ) -> Any:
        """The number of missing values: equal to `fill`, or to the fill value of the dataset."""
        fields = self._axis_fields(self.dataset(dataset), axes, axis)
        body: Any = {**({} if fill is None else {"fill": fill}), **fields}
        hints = {
            "device": device,
            "memory_budget_bytes": memory_budget_bytes,
            "memory_budget_percent": memory_budget_percent,
        }
        return self._run(_document(dataset, None, {"null_count": body or []}), hints, preview, raw, not fields)

    def quantile(
        self,
        dataset: str,
        q: float,
        axes: Sequence[Axis] | None = None,
        *,
        axis: Axis | None = None,
        selection: Selection | None = None,
        device: str | None = None,
        memory_budget_bytes: int | None = None,
        memory_budget_percent: float | None = None,
        preview: int | None = None,
        raw: bool = False,
    ) -> Any:
        """A quantile between 0 and 1."""
        body = {"q": q, **self._axis_fields(self.dataset(dataset), axes, axis)}
        hints = {
            "device": device,
            "memory_budget_bytes": memory_budget_bytes,
            "memory_budget_percent": memory_budget_percent,
        }
        return self._run(_document(dataset, selection, {"quantile": body}), hints, preview, raw, True)

    def histogram(
        self,
        dataset: str,
        bins: int,
        axes: Sequence[Axis] | None = None,
        *,
        axis: Axis | None = None,
        min: float | None = None,
        max: float | None = None,
        selection: Selection | None = None,
        device: str | None = None,
        memory_budget_bytes: int | None = None,
        memory_budget_percent: float | None = None,
        preview: int | None = None,
        raw: bool = False,
    ) -> Any:
        """Counts of values in bins."""
        ends = {key: value for key, value in (("min", min), ("max", max)) if value is not None}
        body = {"bins": bins, **self._axis_fields(self.dataset(dataset), axes, axis), **ends}
        hints = {
            "device": device,
            "memory_budget_bytes": memory_budget_bytes,
            "memory_budget_percent": memory_budget_percent,
        }
        return self._run(_document(dataset, selection, {"histogram": body}), hints, preview, raw, False)

    def covariance(
        self,
        dataset: str,
        axis: Axis,
        *,
        selection: Selection | None = None,
        device: str | None = None,
        memory_budget_bytes: int | None = None,
        memory_budget_percent: float | None = None,
        preview: int | None = None,
        raw: bool = False,
    ) -> Any:
        """The covariance matrix; observations are along the axis."""
        number = self.dataset(dataset).axis_index(axis, path=self.path)
        hints = {
            "device": device,
            "memory_budget_bytes": memory_budget_bytes,
            "memory_budget_percent": memory_budget_percent,
        }
        return self._run(_document(dataset, selection, {"covariance": number}), hints, preview, raw, False)

    def correlation(
        self,
        dataset: str,
        axis: Axis,
        *,
        selection: Selection | None = None,
        device: str | None = None,
        memory_budget_bytes: int | None = None,
        memory_budget_percent: float | None = None,
        preview: int | None = None,
        raw: bool = False,
    ) -> Any:
        """The correlation matrix; observations are along the axis."""
        number = self.dataset(dataset).axis_index(axis, path=self.path)
        hints = {
            "device": device,
            "memory_budget_bytes": memory_budget_bytes,
            "memory_budget_percent": memory_budget_percent,
        }
        return self._run(_document(dataset, selection, {"correlation": {"axis": number}}), hints, preview, raw, False)

    def _transform(
        self,
        method: str,
        dataset: str,
        axes: Sequence[Axis] | None,
        axis: Axis | None,
        write: TransformWrite,
        path: PathLike | None,
        selection: Selection | None,
        hints: Mapping[str, Any],
        raw: bool,
    ) -> Any:
        found = self.dataset(dataset)
        numbers = self._axes(found, axes, axis)
        if write == TransformWrite.NUMPY and not raw:
            number = self.dataset_names.index(dataset)
            if found.dtype in _DTYPES and np.dtype(_DTYPES[found.dtype]).kind != "f":
                # `tercet.open` transforms integers as well; here they are an error, as in the package `tet-py`.
                raise TetError(f"transform {method!r} needs floats, but {dataset!r} has {np.dtype(_DTYPES[found.dtype])}")
            try:
                return to_numpy(self._inner.transform(number, self._steps(found, selection), method, numbers, True))
            except _TercetError as error:
                raise TetError(str(error)) from None
        body = {"method": method, **self._axis_fields(found, axes, axis)}
        document = _document(dataset, selection, {"transform": body})
        target = None if path is None else str(_beside(path, self.path))
        document["write"] = write.value if target is None else {"target": write.value, "path": target}
        answer = self.query(_hints(document, hints), raw=True)
        if raw:
            return answer
        execution = answer.get("execution") or {}
        fields: dict[str, Any] = {
            "method": method,
            "stats": TransformStats.from_execution(execution),
            "shape": self._shape(found, selection),
            "dtype_tag": found.dtype,
            "accepted": True,
            "message": answer.get("message"),
            "memory_strategy": execution.get("memory_strategy"),
            "raw": answer,
        }
        if write == TransformWrite.SIDECAR:
            sidecar = execution.get("sidecar_path") or execution.get("spill_f32_path") or execution.get("spill_f64_path")
            return SidecarTransformResult(**fields, path=None if not sidecar else Path(sidecar).resolve())
        spilled, length, tag = _spill_path(execution)
        return SpillTransformResult(**{**fields, "dtype_tag": tag}, path=spilled, byte_len=length)


def _open(location: str) -> Any:
    try:
        native = _lib.open(location)
    except FileNotFoundError as error:
        raise FileNotFoundError(str(error)) from None
    except _TercetOSError as error:
        raise OSError(str(error)) from None
    except _TercetError as error:
        raise CatalogError(str(error)) from None
    if not isinstance(native, _lib.Tet):
        raise CatalogError(f"{location}: not a .tet file")
    return native


def _open_generation(package: Path, generation: int | None) -> TetFile:
    """Opens a generation of a package; the current one by default."""
    if generation is None:
        try:
            generation = int((package / "CURRENT").read_text().strip())
        except (OSError, ValueError):
            raise CatalogError(f"{package}: the package has no published generation") from None
    packed = package / "generations" / str(generation) / "packed.tet"
    if not packed.is_file():
        raise CatalogError(f"{package}: no generation {generation}")
    return TetFile(_open(str(packed)), packed, generation)


def open(path: PathLike) -> TetFile:
    """Opens a file, a URL, or a package (`.tet.d`), with `?generation=N` an earlier generation of it."""
    text = os.fspath(path)
    location, _, query = text.partition("?generation=")
    if "://" in location and not location.startswith("file://"):
        return TetFile(_open(text))
    local = Path(location.removeprefix("file://")).expanduser()
    if is_package(local):
        return _open_generation(local, int(query) if query else None)
    return TetFile.open(local)


def typing_stub(path: PathLike) -> str:
    """Python source with the names of a file as `Literal` types."""
    return TetFile.open(path).typing_stub()


class TetWriter:
    """Writes datasets to a file, which appears with `commit`."""

    def __init__(self, path: PathLike, *, append: bool = False) -> None:
        self._path = Path(path).expanduser()
        self._append = append
        self._datasets: list[tuple[dict[str, Any], Any]] = []
        self._history: list[tuple[str, str]] = []
        if append and not self._path.is_file():
            raise OSError(f"file not found: {self._path}")

    @classmethod
    def create(cls, path: PathLike) -> TetWriter:
        """Starts a new file."""
        return cls(path)

    @classmethod
    def open_append(cls, path: PathLike) -> TetWriter:
        """Adds datasets to a file."""
        return cls(path, append=True)

    @property
    def path(self) -> Path:
        return self._path

    @property
    def dataset_count(self) -> int:
        """The number of datasets to be written."""
        return len(self._datasets)

    def write_dataset(
        self,
        name: str,
        array: Array,
        *,
        chunk_shape: Sequence[int] | None = None,
        attrs: Mapping[str, str] | None = None,
        dim_names: Sequence[str] | None = None,
        coords: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Adds an array: one chunk by default."""
        try:
            values, data = to_bytes(array)
        except _TercetError as error:
            raise TetError(str(error)) from None
        described = {
            "name": name,
            "dtype": values.dtype.name,
            "shape": list(values.shape),
            "chunks": [int(extent) for extent in (values.shape if chunk_shape is None else chunk_shape)],
            "dims": None if dim_names is None else list(dim_names),
            "labels": [(axis, [str(label) for label in labels]) for axis, labels in (coords or {}).items()],
            "attrs": [(key, value, None) for key, value in (attrs or {}).items()],
            "zstd": None,
            "raw": True,
            "max_error": None,
            "keep_bits": None,
        }
        self._datasets.append((described, data))

    def push_history_event(self, op: str, source: str) -> None:
        """Adds a row to the history of the file."""
        self._history.append((op, source))

    def commit(self) -> Path:
        """Writes the file."""
        try:
            writer = _lib.TetWriter(
                str(self._path),
                [described for described, _ in self._datasets],
                history=self._history,
                overwrite=True,
                append=self._append,
            )
            for number, (described, data) in enumerate(self._datasets):
                writer.array(number, described["shape"], data)
            writer.finish()
        except _TercetOSError as error:
            raise OSError(str(error)) from None
        except _TercetError as error:
            raise TetError(str(error)) from None
        return self._path


def write_dataset(
    path: PathLike,
    name: str,
    array: Array,
    *,
    chunk_shape: Sequence[int] | None = None,
    attrs: Mapping[str, str] | None = None,
    dim_names: Sequence[str] | None = None,
    coords: Mapping[str, Sequence[str]] | None = None,
    history_op: str | None = None,
    history_source: str | None = None,
) -> Path:
    """Writes one array to a new file."""
    writer = TetWriter.create(path)
    if history_op is not None:
        writer.push_history_event(history_op, str(writer.path) if history_source is None else history_source)
    writer.write_dataset(name, array, chunk_shape=chunk_shape, attrs=attrs, dim_names=dim_names, coords=coords)
    return writer.commit()


def convert(src: PathLike, dst: PathLike, *, dataset: str = "data", format: str | None = None, **write_kw: Any) -> Path:
    """Converts an array file to a `.tet` file. The only array of a `.npy` file gets the name `dataset`."""
    source, target = Path(src).expanduser(), Path(dst).expanduser()
    if format == "npy" or (format is None and source.suffix == ".npy"):
        return write_dataset(target, dataset, np.load(source, allow_pickle=False), **write_kw)
    from .. import convert as convert_file

    try:
        convert_file(source, target, overwrite=True)
    except _TercetOSError as error:
        raise OSError(str(error)) from None
    except _TercetError as error:
        raise TetError(str(error)) from None
    return target


def export(src: PathLike, dst: PathLike, *, format: str | None = None) -> Path:
    """Converts a `.tet` file to another format; the extension decides."""
    return convert(src, dst)


def is_package(path: PathLike) -> bool:
    """Whether a path is a package: a directory named `.tet.d`, or with a file `PROTOCOL`."""
    local = Path(path).expanduser()
    return local.is_dir() and (local.name.endswith(".tet.d") or (local / "PROTOCOL").is_file())


def _no_packages() -> TetError:
    return TetError("writing packages is not supported; write one .tet file, or append to it")


def create(path: PathLike) -> Path:
    """Raises TetError: packages cannot be written."""
    raise _no_packages()


def ingest(
    package: PathLike, source: PathLike, *, part_id: str | None = None, session_id: str = "s0", create: bool = False
) -> str:
    """Raises TetError: packages cannot be written."""
    raise _no_packages()


def publish(
    package: PathLike,
    part_ids: Sequence[str],
    *,
    generation: int | None = None,
    dry_run: bool = False,
    replace: Sequence[str] | None = None,
) -> int:
    """Raises TetError: packages cannot be written."""
    raise _no_packages()


def pack(package: PathLike, dest: PathLike, *, generation: int | None = None, remove_package: bool = False) -> int:
    """Copies a generation of a package to a file."""
    if remove_package:
        raise _no_packages()
    file = _open_generation(Path(package).expanduser(), generation)
    with builtins.open(dest, "xb") as out:
        out.write(file.path.read_bytes())
    return int(file.generation or 0)


def run_job(path: PathLike, *, root: PathLike | None = None, dry_run: bool = False) -> dict[str, Any]:
    """Raises TetError: job files are not supported."""
    raise TetError("job files are not supported; run the commands of `tet`")


class MemoryStore:
    """Raises TetError: packages cannot be written."""

    def __init__(self) -> None:
        raise _no_packages()

    @classmethod
    def from_package(cls, path: PathLike) -> MemoryStore:
        raise _no_packages()

    def ingest(self, source: PathLike, *, part_id: str | None = None, session_id: str = "s0") -> str:
        raise _no_packages()

    def publish(self, part_ids: Sequence[str], *, generation: int | None = None) -> int:
        raise _no_packages()

    def seal(self, part_ids: Sequence[str], *, generation: int) -> int:
        raise _no_packages()

    def cas_publish(self, generation: int, *, expected: int | None) -> None:
        raise _no_packages()

    def open(self, uri: str = "memory://current") -> TetFile:
        raise _no_packages()


class S3Store(MemoryStore):
    """Raises TetError: packages cannot be written."""

    @classmethod
    def connect(
        cls,
        *,
        endpoint: str,
        bucket: str,
        access_key_id: str,
        secret_access_key: str,
        prefix: str = "",
        region: str = "us-east-1",
    ) -> S3Store:
        raise _no_packages()
