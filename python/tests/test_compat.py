"""The compatibility modules beside the packages whose names they have, each in a process of its own."""

import asyncio
import inspect
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

CALLS = 500


def run(script, module, directory):
    directory.mkdir()
    command = [sys.executable, str(pathlib.Path(__file__).with_name(script)), module, str(CALLS), str(directory)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(lines) == CALLS
    return [json.loads(line) for line in lines]


def test_tensogram_calls(tmp_path):
    pytest.importorskip("tensogram")
    theirs = run("calls_tensogram.py", "tensogram", tmp_path / "a")
    ours = run("calls_tensogram.py", "tercet.compat.tensogram", tmp_path / "b")
    assert sum(one[0] == "ok" for one in theirs) > CALLS * 0.7
    # Ranges of shuffled objects: they refuse, we decode.
    refused = ["error", "ValueError", "EncodingError"]
    different = [
        (number, them, us)
        for number, (them, us) in enumerate(zip(theirs, ours))
        if them != us and not (them == refused and us[0] == "ok" and number % 22 in (7, 18, 19))
    ]
    assert different == []


def numbers(outcome):
    """The value or the values of a result."""
    value = outcome[1]
    if isinstance(value, list) and len(value) == 9:
        return value[0] if value[0] is not None else value[1]
    return value


def same(found, expected):
    if isinstance(found, bool) or isinstance(expected, bool):
        return bool(found) == bool(expected)
    try:
        return np.allclose(np.array(found, float), np.array(expected, float), 1e-5, 1e-5, equal_nan=True)
    except (TypeError, ValueError):
        return False


def test_tet_calls(tmp_path):
    pytest.importorskip("tet")
    theirs = run("calls_tet.py", "tet", tmp_path / "a")
    ours = run("calls_tet.py", "tercet.compat.tet", tmp_path / "b")
    assert sum(one["outcome"][0] == "ok" for one in theirs) > CALLS * 0.6
    different = []
    for number, (them, us) in enumerate(zip(theirs, ours)):
        if them == us:
            continue
        # Where answers differ, NumPy decides.
        if us["outcome"][0] == "ok" and us["numpy"] is not None and same(numbers(us["outcome"]), us["numpy"]):
            continue
        # They know the shape of the dataset only, and refuse their own file of a part of it.
        if us["call"] == "spill" and us["outcome"][0] == "ok" and them["outcome"] == ["error", "ValueError"]:
            continue
        # They cannot read chunks of small integers in some queries.
        if us["outcome"][0] == "ok" and them["outcome"] == ["error", "TetError"] and us["call"] == "query":
            continue
        different.append((number, them, us))
    assert different == []


@pytest.mark.parametrize("name", ["tensogram", "tet"])
def test_every_name_is_there(name):
    theirs = pytest.importorskip(name)
    ours = __import__(f"tercet.compat.{name}", fromlist=["*"])
    public = getattr(theirs, "__all__", None) or [one for one in dir(theirs) if not one.startswith("_")]
    # Modules and helpers that happen to be visible.
    public = [one for one in public if one not in ("Mapping", "namedtuple", "tensogram")]
    for one in public:
        assert hasattr(ours, one), one
        if inspect.isclass(getattr(theirs, one)):
            members = [member for member in dir(getattr(theirs, one)) if not member.startswith("_")]
            # `StrEnum` and `Exception` have the same members here and there.
            absent = [member for member in members if not hasattr(getattr(ours, one), member)]
            assert set(absent) <= {"from_query", "count", "index"}, (one, absent)


def test_asynchronous_messages(tmp_path):
    import tercet.compat.tensogram as tensogram

    path = tmp_path / "a.tgm"
    file = tensogram.TensogramFile.create(path)
    descriptor = {"type": "ntensor", "shape": [2], "dtype": "float32"}
    file.append({"step": 1}, [(descriptor, np.array([1, 2], np.float32))])
    file.append({"step": 2}, [(descriptor, np.array([3, 4], np.float32))])

    async def read():
        async with await tensogram.AsyncTensogramFile.open(path) as opened:
            assert await opened.message_count() == len(opened) == 2
            steps = [message.metadata["step"] async for message in opened]
            parts = await opened.file_decode_range_batch([0, 1], 0, [(1, 1)], join=True)
            return steps, [part.item() for part in parts]

    assert asyncio.run(read()) == ([1, 2], [2.0, 4.0])


def test_damage_is_an_error(tmp_path):
    import tercet.compat.tensogram as tensogram
    import tercet.compat.tet as tet

    descriptor = {"type": "ntensor", "shape": [3], "dtype": "float32"}
    values = np.array([1, 2, 3], np.float32)
    message = bytearray(tensogram.encode({}, [(descriptor, values)]))
    message[bytes(message).index(values.tobytes())] ^= 1
    with pytest.raises(tensogram.HashMismatchError):
        tensogram.decode(bytes(message))
    assert tensogram.decode(bytes(message), verify_hash=False).objects[0][1][1] == 2
    with pytest.raises(tensogram.MissingHashError):
        tensogram.decode(tensogram.encode({}, [(descriptor, values)], hash=None), verify_hash=True)
    path = tet.write_dataset(tmp_path / "a.tet", "x", values)
    data = bytearray(path.read_bytes())
    data[bytes(data).index(values.tobytes())] ^= 1
    path.write_bytes(data)
    with pytest.raises(tet.TetError):
        tet.open(path).read_numpy("x")
    with pytest.raises(tet.TetError):
        tet.open(path).median("x")


def test_sinks_of_transforms(tmp_path):
    import tercet.compat.tet as tet

    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    file = tet.open(tet.write_dataset(tmp_path / "a.tet", "x", values, dim_names=["a", "b"]))
    expected = file.transform.to_numpy.center("x", axis="a")
    np.testing.assert_allclose(expected, values - values.mean(0), rtol=1e-6)
    spilled = file.transform.to_spill.center("x", axis="a", path="x.bin")
    np.testing.assert_array_equal(spilled.to_numpy(), expected)
    sidecar = file.transform.to_sidecar.center("x", axis="a", path="x.center.tet")
    np.testing.assert_array_equal(sidecar.to_numpy(file), expected)
