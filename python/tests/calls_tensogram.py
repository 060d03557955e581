"""Random calls of `tensogram`, or of a module with its names; one line of JSON for the outcome of each.

    python calls_tensogram.py MODULE COUNT DIRECTORY
"""

import importlib
import json
import pathlib
import random
import sys
import warnings

import numpy as np

DTYPES = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def plain(value):
    """A value as JSON, without what depends on time and library; our issues have more positions."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), value.tobytes().hex()[:400]]
    if isinstance(value, (bytes, bytearray)):
        return ["bytes"]
    if isinstance(value, dict):
        skipped = ("byte_offset", "description", "encoder", "time", "uuid")
        return {str(key): plain(one) for key, one in value.items() if key not in skipped}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if type(value).__name__ == "Metadata":
        return [value.version, plain(value.base), plain(value.extra), value.num_objects, sorted(value.keys()), len(value)]
    if type(value).__name__ == "DataObjectDescriptor":
        names = ("obj_type", "ndim", "shape", "strides", "dtype", "byte_order", "encoding", "filter", "compression")
        return [repr(value), *(plain(getattr(value, name)) for name in names), plain(value.params)]
    return value


def outcome(call):
    try:
        return ["ok", plain(call())]
    except Exception as error:
        kind = type(error).__name__
        text = str(error).split(":")[0]
        return ["error", kind, text if text.endswith("Error") else ""]


def main(module, count, directory):
    t = importlib.import_module(module)
    warnings.simplefilter("ignore")
    rng = random.Random(20261118)
    numbers = np.random.default_rng(20261118)
    path = pathlib.Path(directory) / "calls.tgm"
    file = t.TensogramFile.create(str(path))

    def array():
        dtype = rng.choice(DTYPES)
        shape = [rng.randint(0, 5) if rng.random() < 0.05 else rng.randint(1, 6) for _ in range(rng.randint(0, 3))]
        values = np.asarray(numbers.standard_normal(shape) * 50 + 60).astype(dtype)
        descriptor: dict[str, object] = {"type": "ntensor", "shape": shape, "dtype": dtype}
        choice = rng.random()
        if choice < 0.2:
            descriptor["compression"] = rng.choice(["zstd", "lz4", "blosc2", "none"])
        elif choice < 0.3:
            descriptor |= {"filter": "shuffle", "shuffle_element_size": values.dtype.itemsize, "compression": "zstd"}
        elif choice < 0.4 and dtype == "float64":
            descriptor |= {"encoding": "simple_packing", "sp_bits_per_value": rng.choice([8, 12, 16, 24])}
        elif choice < 0.45:
            descriptor["shape"] = [*shape, 2]
        elif choice < 0.48:
            descriptor["dtype"] = "float31"
        elif choice < 0.51:
            del descriptor[rng.choice(["type", "shape", "dtype"])]
        elif choice < 0.55:
            descriptor["compression"] = "gzip"
        if dtype.startswith("float") and values.size and rng.random() < 0.3:
            values.flat[rng.randrange(values.size)] = rng.choice([np.nan, np.inf, -np.inf])
        return descriptor, values

    def metadata(objects):
        values = [1, -5, 2.5, "text", True, None, [1, "a"], {"b": {"c": 3}}]
        made = {rng.choice("abcdef"): rng.choice(values) for _ in range(rng.randint(0, 3))}
        if rng.random() < 0.5:
            made["base"] = [{"name": rng.choice("tuv"), "mars": {"step": rng.randint(0, 9)}} for _ in range(objects)]
        if rng.random() < 0.05:
            made["_reserved_"] = {}
        return made

    def message():
        """A message that can be encoded, for decoding."""
        while True:
            arrays = [array() for _ in range(rng.randint(0, 3))]
            made = metadata(len(arrays))
            try:
                return t.encode(made, arrays, allow_nan=True, allow_inf=True, hash=rng.choice(["xxh3", "xxh3", None]))
            except Exception:
                continue

    def damaged():
        data = bytearray(message())
        if rng.random() < 0.5:
            return bytes(data[: rng.randrange(24, len(data))])
        return b"TENSOGRAM" + bytes(data[9:])

    def stream():
        encoder = t.StreamingEncoder(metadata(0))
        for _ in range(rng.randint(0, 3)):
            try:
                encoder.write_object(*array())
            except Exception as error:
                return type(error).__name__
        return t.decode(encoder.finish() if rng.random() < 0.5 else encoder.finish_backfilled())

    def append():
        arrays = [array() for _ in range(rng.randint(1, 2))]
        file.append(metadata(len(arrays)), arrays, allow_nan=True, allow_inf=True)
        return len(file)

    def of_file():
        index, obj = rng.randint(0, len(file)), rng.randint(0, 2)
        return rng.choice(
            [
                lambda: file.decode_message(index),
                lambda: file[index],
                lambda: file[-1],
                lambda: file.file_decode_metadata(index),
                lambda: file.file_decode_descriptors(index),
                lambda: file.file_decode_object(index, obj),
                lambda: file.file_decode_range(index, obj, [(0, 1)]),
                lambda: len(file.read_message(index)) > 0,
                lambda: file.message_count(),
                lambda: [one.metadata.extra for one in file],
                lambda: file.is_remote(),
            ]
        )()

    def paths():
        found = t.decode_metadata(message())
        names = ["name", "mars.step", "a", "f.b.c", "_extra_.a", "zz", ""]
        return [
            [found.get_path(name), found.get_path_at(0, name, 7), found.has_path(name), found.has_path_at(1, name)]
            for name in names
        ]

    def packing():
        values = numbers.standard_normal(rng.randint(0, 20)) * 10.0 ** rng.randint(-3, 4)
        return t.compute_packing_params(values, rng.choice([0, 1, 8, 16, 24, 65]), rng.choice([0, 1, -1]))

    kinds = [
        lambda: t.decode(t.encode(metadata(1), [array()], allow_nan=rng.random() < 0.5, allow_inf=rng.random() < 0.5)),
        lambda: t.decode(message()),
        lambda: t.decode(message(), restore_non_finite=False),
        lambda: t.decode_with_masks(message()),
        lambda: t.decode_metadata(message()),
        lambda: t.decode_descriptors(message()),
        lambda: t.decode_object(message(), rng.randint(0, 3)),
        lambda: t.decode_range(message(), rng.randint(0, 1), [(rng.randint(0, 3), rng.randint(0, 3))], rng.random() < 0.5),
        lambda: t.decode(damaged()),
        lambda: len(t.scan(message() + b"junk" + message())),
        lambda: [one.metadata.extra for one in t.iter_messages(message() + message())],
        lambda: t.validate(message(), rng.choice(["quick", "default", "checksum", "full"])),
        lambda: t.validate(damaged(), rng.choice(["quick", "default", "deep"])),
        lambda: t.compute_hash(rng.randbytes(rng.randint(0, 40))),
        packing,
        paths,
        stream,
        append,
        of_file,
        of_file,
        lambda: t.is_remote_url(rng.choice(["s3://a/b", "http://x", "dir/a", "file:///a", "gs://b"])),
        lambda: t.decode(t.encode({}, [], hash=rng.choice(["xxh3", "none", None, "md5"]))),
    ]
    for number in range(count):
        # The same seed for both modules, also after a call that drew fewer numbers.
        rng.seed(number)
        numbers = np.random.default_rng(number)
        print(json.dumps(outcome(kinds[number % len(kinds)]), sort_keys=True, default=str))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
