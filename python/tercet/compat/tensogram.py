"""The names and signatures of the package `tensogram` 0.24, for `.tgm` messages.

>>> import numpy as np
>>> import tercet.compat.tensogram as tensogram
>>> descriptor = {"type": "ntensor", "shape": [3], "dtype": "float32"}
>>> message = tensogram.encode({"centre": "x"}, [(descriptor, np.arange(3, dtype=np.float32))])
>>> tensogram.decode(message).objects[0][1]
array([0., 1., 2.], dtype=float32)

What differs:

* Hashes are verified when a message is decoded. `verify_hash=False` turns it off, `verify_hash=True` also requires that there are
  hashes.
* Error messages differ after their class (`"FramingError: …"`).
* Arrays of all element types can be encoded, also big-endian ones, with `byte_order` of the descriptor respected.
* Integers beyond 64 bits, bytes and tuples are stored in metadata; the package makes floats of the first and refuses the others.
* The batch functions work for local files too.
* `convert_grib`, `to_grib`, `convert_netcdf` and `to_netcdf` raise `RuntimeError`, as in the published wheels.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import warnings
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _lib
from .._arrays import to_numpy
from .._errors import Error as _TercetError
from .._errors import TercetOSError as _TercetOSError

__version__: str = _lib.__version__
WIRE_VERSION = 3

__all__ = [
    "WIRE_VERSION",
    "AsyncTensogramFile",
    "AsyncTensogramFileIter",
    "DataObjectDescriptor",
    "HashMismatchError",
    "IntegrityError",
    "Message",
    "MessageIter",
    "Metadata",
    "MissingHashError",
    "StreamingEncoder",
    "TensogramFile",
    "TensogramFileIter",
    "compute_hash",
    "compute_packing_params",
    "convert_grib",
    "convert_grib_buffer",
    "convert_netcdf",
    "decode",
    "decode_descriptors",
    "decode_metadata",
    "decode_object",
    "decode_range",
    "decode_with_masks",
    "doctor",
    "encode",
    "encode_pre_encoded",
    "is_remote_url",
    "iter_messages",
    "scan",
    "to_grib",
    "to_netcdf",
    "validate",
    "validate_file",
]

Array = npt.NDArray[Any]
Buffer = bytes | bytearray | memoryview


class IntegrityError(Exception):
    """A message has no valid hashes."""


class HashMismatchError(IntegrityError):
    """The bytes of an object do not match its hash."""


class MissingHashError(IntegrityError):
    """A message has no hashes, and they are required."""


def _error(kind: str, message: str) -> Exception:
    """The exception for an error of the native module, which calls this."""
    if kind == "HashMismatch":
        return HashMismatchError(f"HashMismatch: {message}")
    if kind == "MissingHash":
        return MissingHashError(f"MissingHash: {message}")
    if kind == "Io":
        return OSError(message)
    return ValueError(f"{kind}: {message}")


class DataObjectDescriptor:
    """How an array is stored."""

    __slots__ = ("_fields", "_params")

    def __init__(self, native: dict[str, Any]) -> None:
        fields = dict(native)
        fields.pop("_hash", None)
        fields.pop("masks", None)
        names = ("type", "ndim", "shape", "strides", "dtype", "byte_order", "encoding", "filter", "compression")
        self._fields = {name: fields.pop(name, None) for name in names}
        self._params = fields

    @property
    def obj_type(self) -> str:
        return str(self._fields["type"])

    @property
    def ndim(self) -> int:
        return int(self._fields["ndim"])

    @property
    def shape(self) -> list[int]:
        return list(self._fields["shape"])

    @property
    def strides(self) -> list[int]:
        return list(self._fields["strides"])

    @property
    def dtype(self) -> str:
        return str(self._fields["dtype"])

    @property
    def byte_order(self) -> str:
        return str(self._fields["byte_order"] or "little")

    @property
    def encoding(self) -> str:
        return str(self._fields["encoding"])

    @property
    def filter(self) -> str:
        return str(self._fields["filter"])

    @property
    def compression(self) -> str:
        return str(self._fields["compression"])

    @property
    def params(self) -> dict[str, Any]:
        return dict(self._params)

    @property
    def hash(self) -> None:
        """Always None: hashes are stored in frames, not in descriptors."""
        return None

    def __repr__(self) -> str:
        return (
            f"DataObjectDescriptor(type='{self.obj_type}', shape={self.shape}, dtype='{self.dtype}', "
            f"encoding='{self.encoding}', compression='{self.compression}')"
        )


_MISSING = object()


def _descend(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return _MISSING
        value = value[key]
    return value


class Metadata(Mapping[str, Any]):
    """The metadata of a message: keys of the objects, then those of the message."""

    __slots__ = ("_base", "_extra", "_reserved")

    def __init__(self, sections: tuple[Any, Any, Any]) -> None:
        self._extra, self._base, self._reserved = sections

    @property
    def version(self) -> int:
        return WIRE_VERSION

    @property
    def base(self) -> list[dict[str, Any]]:
        base: list[dict[str, Any]] = self._base
        return base

    @property
    def extra(self) -> dict[str, Any]:
        extra: dict[str, Any] = self._extra
        return extra

    @property
    def reserved(self) -> dict[str, Any]:
        reserved: dict[str, Any] = self._reserved
        return reserved

    @property
    def num_objects(self) -> int:
        return len(self._base)

    def __getitem__(self, key: str) -> Any:
        if key != "_reserved_":
            for section in (*self._base, self._extra):
                if key in section:
                    return section[key]
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        keys: dict[str, None] = {}
        for section in self._base:
            keys.update(dict.fromkeys(sorted(key for key in section if key != "_reserved_")))
        keys.update(dict.fromkeys(sorted(self._extra)))
        return iter(keys)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _find(self, path: str) -> Any:
        keys = path.split(".")
        if not path or keys[0] == "_reserved_":
            return _MISSING
        if keys[0] in ("_extra_", "extra"):
            return _descend(self._extra, keys[1:])
        for section in self._base:
            found = _descend(section, keys)
            if found is not _MISSING:
                return found
        return _descend(self._extra, keys)

    def _find_at(self, obj: int, path: str) -> Any:
        keys = path.split(".")
        if not path or keys[0] == "_reserved_" or not 0 <= obj < len(self._base):
            return _MISSING
        return _descend(self._base[obj], keys)

    def get_path(self, path: str, default: Any = None) -> Any:
        """The value at a path such as `mars.param`, of the first object that has it, or of the message."""
        found = self._find(path)
        return default if found is _MISSING else found

    def get_path_at(self, obj: int, path: str, default: Any = None) -> Any:
        """The value at a path of one object."""
        found = self._find_at(obj, path)
        return default if found is _MISSING else found

    def has_path(self, path: str) -> bool:
        return self._find(path) is not _MISSING

    def has_path_at(self, obj: int, path: str) -> bool:
        return self._find_at(obj, path) is not _MISSING

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        keys = ", ".join(json.dumps(key) for key in sorted(self._extra))
        return f"Metadata(version={self.version}, base_len={len(self._base)}, extra_keys=[{keys}])"


class Message(NamedTuple):
    """Metadata, and descriptor and values of each object; with masks after them in `decode_with_masks`."""

    metadata: Metadata
    objects: list[Any]


_APPLICATION_KEYS = ("name", "param", "shortName", "long_name", "units")


def _descriptor(given: Mapping[str, Any]) -> dict[str, Any]:
    """A descriptor with all fields."""
    if not isinstance(given, dict):
        raise TypeError(f"a descriptor is a dictionary, not {type(given).__name__}")
    for key in ("type", "shape", "dtype"):
        if key not in given:
            raise ValueError(f"descriptor missing '{key}'")
    found = [key for key in _APPLICATION_KEYS if key in given]
    if found:
        names = ", ".join(repr(key) for key in found)
        warnings.warn(
            f"descriptor contains application-metadata-like keys ({names}); metadata of objects belongs in meta['base'][i]",
            UserWarning,
            stacklevel=4,
        )
    shape = [int(extent) for extent in given["shape"]]
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    dtype = str(given["dtype"])
    if dtype not in _DTYPES:
        raise ValueError(f"unknown dtype: {dtype}")
    return {
        "byte_order": "little",
        "encoding": "none",
        "filter": "none",
        "compression": "none",
        **given,
        "shape": shape,
        "strides": strides,
        "ndim": len(shape),
    }


_DTYPES = {
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bitmask",
}


def _payload(descriptor: dict[str, Any], data: Any, pre_encoded: bool) -> Any:
    """The bytes of an array, in the byte order of the descriptor."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return memoryview(data).cast("B") if not isinstance(data, bytes) else data
    if pre_encoded:
        raise ValueError(f"encode_pre_encoded requires bytes data (got {type(data).__name__})")
    if isinstance(data, (list, tuple)):
        return bytes(data)
    if not isinstance(data, (np.ndarray, np.generic)):
        raise ValueError("data must be a numpy array or bytes")
    array = np.ascontiguousarray(data)
    if array.dtype.kind in "iufc":
        # Values in the order of the file: of the host if an array has it, as in the package.
        is_big = descriptor["byte_order"] == "big"
        if array.dtype.byteorder not in ("=", "|"):
            array = array.astype(array.dtype.newbyteorder(">" if is_big else "<"))
    return array.reshape(-1).view(np.uint8)


def _global(meta: Mapping[str, Any], count: int | None) -> dict[str, Any]:
    if not isinstance(meta, dict):
        raise TypeError(f"argument 'global_meta_dict': '{type(meta).__name__}' object is not an instance of 'dict'")
    for key in meta:
        if not isinstance(key, str):
            raise TypeError(f"'{type(key).__name__}' object is not an instance of 'str'")
    if "_reserved_" in meta:
        raise ValueError("'_reserved_' must not be set by client code: the encoder populates it")
    base = meta.get("base", [])
    if any("_reserved_" in entry for entry in base):
        raise ValueError("base entries must not contain '_reserved_' key: the encoder populates it")
    if count is not None and len(base) > count:
        raise ValueError(f"MetadataError: metadata base has {len(base)} entries but only {count} descriptors provided")
    made = {key: value for key, value in meta.items() if key not in ("extra", "_extra_")}
    extra = {**meta.get("extra", {}), **meta.get("_extra_", {})}
    return {**made, "_extra_": extra} if extra else made


_XXH3 = "xxh3"


def _options(
    hash: str | None,
    threads: int = 0,
    allow_nan: bool = False,
    allow_inf: bool = False,
    nan_mask_method: str | None = None,
    pos_inf_mask_method: str | None = None,
    neg_inf_mask_method: str | None = None,
    small_mask_threshold_bytes: int | None = None,
    aggregate_hash: str | None = None,
) -> dict[str, Any]:
    if hash is not None and not isinstance(hash, str):
        raise TypeError(f"argument 'hash': '{type(hash).__name__}' object is not an instance of 'str'")
    if hash not in (None, "none", _XXH3):
        raise ValueError(f'metadata error: unknown hash type: {hash}; expected "xxh3" or "none"')
    return {
        "hash": hash == _XXH3,
        "threads": threads,
        "allow_nan": allow_nan,
        "allow_inf": allow_inf,
        "nan_mask_method": nan_mask_method,
        "pos_inf_mask_method": pos_inf_mask_method,
        "neg_inf_mask_method": neg_inf_mask_method,
        "small_mask_threshold_bytes": small_mask_threshold_bytes,
        "aggregate_hash": aggregate_hash,
    }


def _encode(
    meta: Mapping[str, Any], pairs: Iterable[tuple[Mapping[str, Any], Any]], options: dict[str, Any], pre_encoded: bool
) -> bytes:
    objects = []
    for given, data in pairs:
        descriptor = _descriptor(given)
        objects.append((descriptor, _payload(descriptor, data, pre_encoded)))
    try:
        encoded: bytes = _lib.tgm_encode(_global(meta, len(objects)), objects, options, pre_encoded)
    except _TercetError as error:
        raise ValueError(str(error)) from None
    return encoded


def encode(
    global_meta_dict: Mapping[str, Any],
    descriptors_and_data: Sequence[tuple[Mapping[str, Any], Any]],
    hash: str | None = _XXH3,
    threads: int = 0,
    allow_nan: bool = False,
    allow_inf: bool = False,
    nan_mask_method: str | None = None,
    pos_inf_mask_method: str | None = None,
    neg_inf_mask_method: str | None = None,
    small_mask_threshold_bytes: int | None = None,
    aggregate_hash: str | None = None,
) -> bytes:
    """Encodes arrays and metadata as one message."""
    options = _options(
        hash,
        threads,
        allow_nan,
        allow_inf,
        nan_mask_method,
        pos_inf_mask_method,
        neg_inf_mask_method,
        small_mask_threshold_bytes,
        aggregate_hash,
    )
    return _encode(global_meta_dict, descriptors_and_data, options, False)


def encode_pre_encoded(
    global_meta_dict: Mapping[str, Any],
    descriptors_and_data: Sequence[tuple[Mapping[str, Any], Any]],
    hash: str | None = _XXH3,
    threads: int = 0,
) -> bytes:
    """Makes a message of payloads that are already encoded."""
    return _encode(global_meta_dict, descriptors_and_data, _options(hash, threads), True)


def _reading(verify_hash: bool | None, threads: int = 0, restore_non_finite: bool = True) -> dict[str, Any]:
    return {
        "verify": verify_hash is not False,
        "require_hash": verify_hash is True,
        "threads": threads,
        "restore": restore_non_finite,
    }


def _bytes(buf: Any) -> Any:
    if isinstance(buf, (bytes, bytearray)):
        return buf
    return memoryview(buf).cast("B")


def _values(native: tuple[Any, str, list[int]], descriptor: DataObjectDescriptor, native_byte_order: bool) -> Array:
    buffer, dtype, shape = native
    if dtype == "bitmask":
        return np.frombuffer(buffer, np.uint8)
    array = to_numpy((buffer, dtype, shape))
    if not native_byte_order and descriptor.byte_order == "big":
        array = array.byteswap()
    return array


def decode(
    buf: Buffer,
    native_byte_order: bool = True,
    threads: int = 0,
    restore_non_finite: bool = True,
    verify_hash: bool | None = None,
) -> Message:
    """Decodes the first message of a buffer.

    Args:
        verify_hash: By default the hashes that a message has are verified. True: a message without hashes is an error. False:
            hashes are not verified.
    """
    args = _reading(verify_hash, threads, restore_non_finite)
    sections, objects = _lib.tgm_decode(_bytes(buf), args, None, False)
    pairs = []
    for described, native, _ in objects:
        descriptor = DataObjectDescriptor(described)
        pairs.append((descriptor, _values(native, descriptor, native_byte_order)))
    return Message(Metadata(sections), pairs)


def decode_with_masks(buf: Buffer, native_byte_order: bool = True, threads: int = 0) -> Message:
    """Decodes a message with zeros for NaN and infinities, and their positions: `nan`, `inf+`, `inf-`."""
    sections, objects = _lib.tgm_decode(_bytes(buf), _reading(None, threads), None, True)
    triples = []
    for described, native, bitmaps in objects:
        descriptor = DataObjectDescriptor(described)
        array = _values(native, descriptor, native_byte_order)
        masks = {kind: np.unpackbits(np.frombuffer(bits, np.uint8), count=array.size).astype(bool) for kind, bits in bitmaps}
        triples.append((descriptor, array, masks))
    return Message(Metadata(sections), triples)


def decode_metadata(buf: Buffer) -> Metadata:
    """The metadata of the first message of a buffer."""
    return Metadata(_lib.tgm_describe(_bytes(buf), _reading(None))[0])


def decode_descriptors(buf: Buffer) -> tuple[Metadata, list[DataObjectDescriptor]]:
    """Metadata and descriptors of the first message of a buffer."""
    sections, descriptors = _lib.tgm_describe(_bytes(buf), _reading(None))
    return Metadata(sections), [DataObjectDescriptor(one) for one in descriptors]


def decode_object(
    buf: Buffer,
    index: int,
    native_byte_order: bool = True,
    threads: int = 0,
    restore_non_finite: bool = True,
    verify_hash: bool | None = None,
) -> tuple[Metadata, DataObjectDescriptor, Array]:
    """Decodes one object of the first message of a buffer."""
    args = _reading(verify_hash, threads, restore_non_finite)
    sections, [(described, native, _)] = _lib.tgm_decode(_bytes(buf), args, [index], False)
    descriptor = DataObjectDescriptor(described)
    return Metadata(sections), descriptor, _values(native, descriptor, native_byte_order)


def decode_range(
    buf: Buffer,
    object_index: int,
    ranges: Sequence[tuple[int, int]],
    join: bool = False,
    native_byte_order: bool = True,
    threads: int = 0,
    restore_non_finite: bool = True,
) -> Any:
    """Decodes ranges of elements, each an offset and a count: a list of arrays, or one array with `join`."""
    args = _reading(None, threads, restore_non_finite)
    described, natives = _lib.tgm_ranges(_bytes(buf), object_index, [(start, count) for start, count in ranges], args)
    descriptor = DataObjectDescriptor(described)
    arrays = [_values(native, descriptor, native_byte_order) for native in natives]
    if not join:
        return arrays
    if arrays:
        return np.concatenate(arrays)
    return np.zeros(0, np.uint8 if descriptor.dtype == "bitmask" else descriptor.dtype)


def scan(buf: Buffer) -> list[tuple[int, int]]:
    """Offset and length of the messages of a buffer."""
    messages: list[tuple[int, int]] = _lib.tgm_scan(_bytes(buf))
    return messages


class MessageIter(Iterator[Message]):
    """Iterates over the messages of a buffer."""

    def __init__(self, buf: Any, verify_hash: bool | None) -> None:
        self._buf = memoryview(buf)
        self._verify_hash = verify_hash
        self._spans = iter(scan(buf))
        self._left = len(scan(buf))

    def __iter__(self) -> MessageIter:
        return self

    def __len__(self) -> int:
        return self._left

    def __next__(self) -> Message:
        start, length = next(self._spans)
        self._left -= 1
        return decode(self._buf[start : start + length], verify_hash=self._verify_hash)


def iter_messages(buf: Buffer, *, verify_hash: bool | None = None) -> MessageIter:
    """Iterates over the messages of a buffer."""
    return MessageIter(buf, verify_hash)


_LEVELS = ("quick", "default", "checksum", "full")


def _level(level: str) -> str:
    if level not in _LEVELS:
        raise ValueError(f"unknown validation level: '{level}', expected one of: {', '.join(_LEVELS)}")
    return level


def _report(native: dict[str, Any]) -> dict[str, Any]:
    return {key: native[key] for key in ("hash_verified", "issues", "object_count")}


def validate(buf: Buffer, level: str = "default", check_canonical: bool = False) -> dict[str, Any]:
    """Validates a message: `issues`, `object_count`, `hash_verified`."""
    return _report(json.loads(_lib.tgm_validate(_bytes(buf), _level(level), check_canonical)))


def validate_file(path: str | os.PathLike[str], level: str = "default", check_canonical: bool = False) -> dict[str, Any]:
    """Validates the messages of a file: `file_issues`, `messages`."""
    report = json.loads(_lib.tgm_validate_file(os.fspath(path), _level(level), check_canonical))
    return {"file_issues": report["file_issues"], "messages": [_report(one) for one in report["messages"]]}


def compute_hash(data: bytes | bytearray, algo: str = "xxh3") -> str:
    """The hash of bytes, 16 hexadecimal digits."""
    if not isinstance(data, (bytes, bytearray)):
        raise TypeError(f"argument 'data': '{type(data).__name__}' object is not an instance of 'bytes | bytearray'")
    if algo != "xxh3":
        raise ValueError(f'MetadataError: unknown hash type: {algo}; expected "xxh3" or "none"')
    digest: str = _lib.tgm_hash(data)
    return digest


def compute_packing_params(values: Array, bits_per_value: int, decimal_scale_factor: int) -> dict[str, Any]:
    """The parameters of `simple_packing` for values of type float64."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64:
        raise TypeError("argument 'values': an array of float64 is required")
    try:
        native = _lib.tgm_packing(np.ascontiguousarray(values), bits_per_value, decimal_scale_factor)
    except ValueError as error:
        raise ValueError(str(error).removeprefix("EncodingError: ")) from None
    names = ("sp_reference_value", "sp_binary_scale_factor", "sp_decimal_scale_factor", "sp_bits_per_value")
    return dict(zip(names, native))


def is_remote_url(source: str) -> bool:
    """Whether a location is the URL of a remote file."""
    scheme = source.split("://")[0].lower() if "://" in source else ""
    return scheme in ("http", "https", "s3", "s3a", "gs", "az", "azure")


def doctor() -> dict[str, Any]:
    """What this build contains, and a test of its pipelines."""
    names = ("szip", "zstd", "lz4", "blosc2", "zfp", "sz3", "rle", "roaring")
    features = [{"name": name, "kind": "compression", "state": "on", "backend": "tercet"} for name in names]
    values = np.arange(64, dtype=np.float32)
    tests = []
    for compression in ("none", "zstd", "lz4", "blosc2"):
        descriptor = {"type": "ntensor", "shape": [64], "dtype": "float32", "compression": compression}
        same = bool((decode(encode({}, [(descriptor, values)])).objects[0][1] == values).all())
        tests.append({"label": f"encode/decode  none/none/{compression}", "outcome": "ok" if same else "failed"})
    return {"build": {"version": __version__, "wire_version": WIRE_VERSION}, "features": features, "self_test": tests}


def _without(what: str) -> RuntimeError:
    return RuntimeError(f"this package has no {what} functions of tensogram; use `tercet.convert`")


def convert_grib(
    path: str | os.PathLike[str],
    *,
    grouping: str = "merge_all",
    preserve_all_keys: bool = False,
    encoding: str = "none",
    bits: int | None = None,
    filter: str = "none",
    compression: str = "none",
    compression_level: int | None = None,
    threads: int = 0,
    hash: str | None = _XXH3,
) -> list[bytes]:
    """Raises RuntimeError, as in the published wheels."""
    raise _without("GRIB")


def convert_grib_buffer(
    buffer: Buffer,
    *,
    grouping: str = "merge_all",
    preserve_all_keys: bool = False,
    encoding: str = "none",
    bits: int | None = None,
    filter: str = "none",
    compression: str = "none",
    compression_level: int | None = None,
    threads: int = 0,
    hash: str | None = _XXH3,
) -> list[bytes]:
    """Raises RuntimeError, as in the published wheels."""
    raise _without("GRIB")


def convert_netcdf(
    path: str | os.PathLike[str],
    *,
    split_by: str = "file",
    cf: bool = False,
    encoding: str = "none",
    bits: int | None = None,
    filter: str = "none",
    compression: str = "none",
    compression_level: int | None = None,
    threads: int = 0,
    hash: str | None = _XXH3,
) -> list[bytes]:
    """Raises RuntimeError, as in the published wheels."""
    raise _without("NetCDF")


def to_grib(messages: Sequence[bytes]) -> bytes:
    """Raises RuntimeError, as in the published wheels."""
    raise _without("GRIB")


def to_netcdf(messages: Sequence[bytes], path: str | os.PathLike[str]) -> None:
    """Raises RuntimeError, as in the published wheels."""
    raise _without("NetCDF")


class StreamingEncoder:
    """Encodes one message object by object."""

    def __init__(
        self,
        global_meta_dict: Mapping[str, Any],
        hash: str | None = _XXH3,
        threads: int = 0,
        allow_nan: bool = False,
        allow_inf: bool = False,
        nan_mask_method: str | None = None,
        pos_inf_mask_method: str | None = None,
        neg_inf_mask_method: str | None = None,
        small_mask_threshold_bytes: int | None = None,
        aggregate_hash: str | None = None,
    ) -> None:
        self._global = _global(global_meta_dict, None)
        self._options = _options(
            hash,
            threads,
            allow_nan,
            allow_inf,
            nan_mask_method,
            pos_inf_mask_method,
            neg_inf_mask_method,
            small_mask_threshold_bytes,
            aggregate_hash,
        )
        self._native = _lib.TgmEncoder(self._global, self._options)

    def write_object(self, descriptor: Mapping[str, Any], data: Any) -> None:
        """Encodes an array."""
        made = _descriptor(descriptor)
        self._native.write_object(made, _payload(made, data, False), False)

    def write_object_pre_encoded(self, descriptor: Mapping[str, Any], data: Any) -> None:
        """Adds an encoded payload."""
        made = _descriptor(descriptor)
        self._native.write_object(made, _payload(made, data, True), True)

    def finish(self) -> bytes:
        """Ends the message and returns it."""
        message: bytes = self._native.finish(False)
        return message

    def finish_backfilled(self) -> bytes:
        """Ends the message, with its length in the preamble."""
        message: bytes = self._native.finish(True)
        return message

    def finish_and_reset(self) -> bytes:
        """Ends the message and starts another one with the same metadata."""
        message = self.finish()
        self._native = _lib.TgmEncoder(self._global, self._options)
        return message

    def finish_and_reset_backfilled(self) -> bytes:
        """Ends the message with its length and starts another one with the same metadata."""
        message = self.finish_backfilled()
        self._native = _lib.TgmEncoder(self._global, self._options)
        return message


class TensogramFile:
    """A file of messages, local or remote."""

    def __init__(self, source: str, native: Any) -> None:
        self._source = source
        #: The handle of a remote file; None for a local one.
        self._native = native
        self._map: Any = b""
        self._spans: list[tuple[int, int]] | None = None

    @staticmethod
    def open(source: str | os.PathLike[str], *, bidirectional: bool = True) -> TensogramFile:
        """Opens a path or a URL."""
        location = os.fspath(source)
        if is_remote_url(location):
            return TensogramFile.open_remote(location, bidirectional=bidirectional)
        if not os.path.exists(location):
            raise OSError(f"file not found: {location}")
        return TensogramFile(location, None)

    @staticmethod
    def open_remote(
        source: str, storage_options: Mapping[str, str] | None = None, *, bidirectional: bool = True
    ) -> TensogramFile:
        """Opens a URL. Options of the storage are read from the environment."""
        if not is_remote_url(source):
            raise OSError(f"RemoteError: invalid URL '{source}'")
        try:
            return TensogramFile(source, _lib.open(source))
        except _TercetOSError as error:
            raise OSError(str(error)) from None

    @staticmethod
    def create(path: str | os.PathLike[str]) -> TensogramFile:
        """Creates an empty file, or empties an existing one."""
        location = os.fspath(path)
        with open(location, "wb"):
            pass
        return TensogramFile(location, None)

    def append(
        self,
        global_meta_dict: Mapping[str, Any],
        descriptors_and_data: Sequence[tuple[Mapping[str, Any], Any]],
        hash: str | None = _XXH3,
        threads: int = 0,
        allow_nan: bool = False,
        allow_inf: bool = False,
        nan_mask_method: str | None = None,
        pos_inf_mask_method: str | None = None,
        neg_inf_mask_method: str | None = None,
        small_mask_threshold_bytes: int | None = None,
        aggregate_hash: str | None = None,
    ) -> None:
        """Appends a message."""
        message = encode(
            global_meta_dict,
            descriptors_and_data,
            hash,
            threads,
            allow_nan,
            allow_inf,
            nan_mask_method,
            pos_inf_mask_method,
            neg_inf_mask_method,
            small_mask_threshold_bytes,
            aggregate_hash,
        )
        if self._native is not None:
            raise OSError("cannot append to a remote file")
        with open(self._source, "ab") as file:
            file.write(message)
        self._spans = None

    def _messages(self) -> list[tuple[int, int]]:
        if self._spans is None:
            with open(self._source, "rb") as file:
                empty = os.fstat(file.fileno()).st_size == 0
                self._map = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._spans = scan(self._map)
        return self._spans

    def message_count(self) -> int:
        if self._native is not None:
            return int(self._native.message_count())
        return len(self._messages())

    def _message(self, index: int) -> Any:
        """The bytes of a message: a view of a local file."""
        count = self.message_count()
        if not 0 <= index < count:
            raise ValueError(f"FramingError: message index {index} out of range (count={count})")
        if self._native is not None:
            return self._native.message(index).bytes()
        start, length = self._messages()[index]
        return memoryview(self._map)[start : start + length]

    def read_message(self, index: int) -> bytes:
        """The bytes of a message."""
        return bytes(self._message(index))

    def messages(self) -> list[bytes]:
        """The bytes of all messages."""
        return [self.read_message(index) for index in range(self.message_count())]

    def decode_message(
        self,
        index: int,
        native_byte_order: bool = True,
        threads: int = 0,
        restore_non_finite: bool = True,
        verify_hash: bool | None = None,
    ) -> Message:
        return decode(self._message(index), native_byte_order, threads, restore_non_finite, verify_hash)

    def file_decode_metadata(self, msg_index: int) -> Metadata:
        return decode_metadata(self._message(msg_index))

    def file_decode_descriptors(self, msg_index: int) -> dict[str, Any]:
        metadata, descriptors = decode_descriptors(self._message(msg_index))
        return {"metadata": metadata, "descriptors": descriptors}

    def file_decode_object(
        self,
        msg_index: int,
        obj_index: int,
        native_byte_order: bool = True,
        threads: int = 0,
        verify_hash: bool | None = None,
    ) -> dict[str, Any]:
        found = decode_object(
            self._message(msg_index), obj_index, native_byte_order, threads, verify_hash=verify_hash
        )
        return dict(zip(("metadata", "descriptor", "data"), found))

    def file_decode_object_batch(
        self,
        msg_indices: Sequence[int],
        obj_index: int,
        native_byte_order: bool = True,
        threads: int = 0,
        verify_hash: bool | None = None,
    ) -> list[dict[str, Any]]:
        return [
            self.file_decode_object(index, obj_index, native_byte_order, threads, verify_hash) for index in msg_indices
        ]

    def file_decode_range(
        self,
        msg_index: int,
        obj_index: int,
        ranges: Sequence[tuple[int, int]],
        join: bool = False,
        native_byte_order: bool = True,
        threads: int = 0,
    ) -> Any:
        return decode_range(self._message(msg_index), obj_index, ranges, join, native_byte_order, threads)

    def file_decode_range_batch(
        self,
        msg_indices: Sequence[int],
        obj_index: int,
        ranges: Sequence[tuple[int, int]],
        join: bool = False,
        native_byte_order: bool = True,
        threads: int = 0,
    ) -> list[Any]:
        return [
            self.file_decode_range(index, obj_index, ranges, join, native_byte_order, threads) for index in msg_indices
        ]

    def is_remote(self) -> bool:
        return self._native is not None

    def source(self) -> str:
        return self._source

    def __len__(self) -> int:
        return self.message_count()

    def __getitem__(self, key: int | slice) -> Any:
        count = len(self)
        if isinstance(key, slice):
            return [self.decode_message(index) for index in range(*key.indices(count))]
        if not -count <= key < count:
            raise IndexError(f"message index {key} out of range for file with {count} messages")
        return self.decode_message(key % count)

    def __iter__(self) -> TensogramFileIter:
        return TensogramFileIter(self)

    def __enter__(self) -> TensogramFile:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __repr__(self) -> str:
        return f"TensogramFile(source='{self._source}')"


class TensogramFileIter(Iterator[Message]):
    """Iterates over the messages of a file."""

    def __init__(self, file: TensogramFile) -> None:
        self._file = file
        self._next = 0
        self._count = len(file)

    def __iter__(self) -> TensogramFileIter:
        return self

    def __len__(self) -> int:
        return self._count - self._next

    def __next__(self) -> Message:
        if self._next >= self._count:
            raise StopIteration
        self._next += 1
        return self._file.decode_message(self._next - 1)


class AsyncTensogramFile:
    """A file of messages; its methods are coroutines, which run on threads."""

    def __init__(self, file: TensogramFile) -> None:
        self._file = file
        self._count: int | None = None

    @staticmethod
    async def open(source: str | os.PathLike[str], *, bidirectional: bool = True) -> AsyncTensogramFile:
        return AsyncTensogramFile(await asyncio.to_thread(TensogramFile.open, source, bidirectional=bidirectional))

    @staticmethod
    async def open_remote(
        source: str, storage_options: Mapping[str, str] | None = None, *, bidirectional: bool = True
    ) -> AsyncTensogramFile:
        file = await asyncio.to_thread(TensogramFile.open_remote, source, storage_options, bidirectional=bidirectional)
        return AsyncTensogramFile(file)

    async def message_count(self) -> int:
        self._count = await asyncio.to_thread(self._file.message_count)
        return self._count

    async def read_message(self, index: int) -> bytes:
        return await asyncio.to_thread(self._file.read_message, index)

    async def messages(self) -> list[bytes]:
        return await asyncio.to_thread(self._file.messages)

    async def prefetch_layouts(self, msg_indices: Sequence[int]) -> None:
        """Reads the layouts of messages."""
        for index in msg_indices:
            await self.file_decode_descriptors(index)

    async def decode_message(
        self, index: int, native_byte_order: bool = True, threads: int = 0, verify_hash: bool | None = None
    ) -> Message:
        return await asyncio.to_thread(
            self._file.decode_message, index, native_byte_order, threads, verify_hash=verify_hash
        )

    async def file_decode_metadata(self, msg_index: int) -> Metadata:
        return await asyncio.to_thread(self._file.file_decode_metadata, msg_index)

    async def file_decode_descriptors(self, msg_index: int) -> dict[str, Any]:
        return await asyncio.to_thread(self._file.file_decode_descriptors, msg_index)

    async def file_decode_object(
        self,
        msg_index: int,
        obj_index: int,
        native_byte_order: bool = True,
        threads: int = 0,
        verify_hash: bool | None = None,
    ) -> dict[str, Any]:
        return await asyncio.to_thread(
            self._file.file_decode_object, msg_index, obj_index, native_byte_order, threads, verify_hash
        )

    async def file_decode_object_batch(
        self,
        msg_indices: Sequence[int],
        obj_index: int,
        native_byte_order: bool = True,
        threads: int = 0,
        verify_hash: bool | None = None,
    ) -> list[dict[str, Any]]:
        return await asyncio.to_thread(
            self._file.file_decode_object_batch, msg_indices, obj_index, native_byte_order, threads, verify_hash
        )

    async def file_decode_range(
        self,
        msg_index: int,
        obj_index: int,
        ranges: Sequence[tuple[int, int]],
        join: bool = False,
        native_byte_order: bool = True,
        threads: int = 0,
    ) -> Any:
        return await asyncio.to_thread(
            self._file.file_decode_range, msg_index, obj_index, ranges, join, native_byte_order, threads
        )

    async def file_decode_range_batch(
        self,
        msg_indices: Sequence[int],
        obj_index: int,
        ranges: Sequence[tuple[int, int]],
        join: bool = False,
        native_byte_order: bool = True,
        threads: int = 0,
    ) -> list[Any]:
        return await asyncio.to_thread(
            self._file.file_decode_range_batch, msg_indices, obj_index, ranges, join, native_byte_order, threads
        )

    def is_remote(self) -> bool:
        return self._file.is_remote()

    def source(self) -> str:
        return self._file.source()

    def __len__(self) -> int:
        if self._count is None:
            raise RuntimeError("await message_count() before len()")
        return self._count

    async def __aenter__(self) -> AsyncTensogramFile:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def __aiter__(self) -> AsyncTensogramFileIter:
        return AsyncTensogramFileIter(self)

    def __repr__(self) -> str:
        return f"AsyncTensogramFile(source='{self.source()}')"


class AsyncTensogramFileIter(AsyncIterator[Message]):
    """Iterates over the messages of a file."""

    def __init__(self, file: AsyncTensogramFile) -> None:
        self._file = file
        self._next = 0

    def __aiter__(self) -> AsyncTensogramFileIter:
        return self

    async def __anext__(self) -> Message:
        if self._next >= await self._file.message_count():
            raise StopAsyncIteration
        self._next += 1
        return await self._file.decode_message(self._next - 1)
