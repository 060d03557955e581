"""Messages."""

import numpy as np
import pytest

import tercet


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run.tgm"
    fields = [np.full((3, 4), step, dtype=np.float32) for step in range(3)]
    fields[1][0, 0] = np.nan
    messages = [({"step": step, "mars": {"class": "od"}}, {"t2m": fields[step], "sp": fields[step] * 2}) for step in range(3)]
    assert tercet.write_tgm(path, messages) == 3
    return path, fields


def test_complex_numbers_with_one_infinite_part_are_refused(tmp_path):
    path = tmp_path / "a.tgm"
    both = np.array([complex(np.inf, np.inf), complex(np.nan, np.nan), 1 + 2j])
    tercet.write_tgm(path, [({}, {"x": both})])
    np.testing.assert_array_equal(tercet.open(path)[0]["x"].to_numpy(), both)
    for one in (complex(0, np.inf), complex(np.nan, 0), complex(np.inf, -np.inf), complex(np.nan, np.inf)):
        with pytest.raises(tercet.RequestError, match="one part"):
            tercet.write_tgm(path, [({}, {"x": np.array([1, one])})], overwrite=True)


def test_messages_are_a_sequence(run):
    path, fields = run
    file = tercet.open(path)
    assert len(file) == 3 and len(list(file)) == 3 and len(file[1:]) == 2
    assert file[-1].metadata["step"] == 2
    with pytest.raises(IndexError, match="3 messages"):
        file[3]
    message = file[0]
    assert list(message) == ["t2m", "sp"]
    assert message.metadata["mars"] == {"class": "od"}
    np.testing.assert_array_equal(message["sp"].to_numpy(), fields[0] * 2)
    with pytest.raises(KeyError, match="did you mean 't2m'"):
        message["t2n"]
    assert "t2m" in repr(message) and "step" in repr(file)


def test_missing_values_come_back(run):
    path, fields = run
    found = tercet.open(path)[1]["t2m"].to_numpy()
    np.testing.assert_array_equal(found, fields[1])


def test_ranges(run):
    path, fields = run
    [part] = tercet.open(path)[2]["t2m"].ranges([(2, 6)])
    np.testing.assert_array_equal(part, fields[2].ravel()[2:6])


def test_append(run):
    path, fields = run
    tercet.write_tgm(path, [({"step": 3}, {"t2m": fields[0]})], append=True, compression="lz4")
    file = tercet.open(path)
    assert len(file) == 4 and file[3]["t2m"].descriptor["compression"] == "lz4"


def test_damage_is_an_error(run, tmp_path):
    path, fields = run
    file = tercet.open(path)
    start, end = file[1]._native.span()
    data = bytearray(path.read_bytes())
    data[(start + end) // 2] ^= 0x10
    damaged = tmp_path / "damaged.tgm"
    damaged.write_bytes(data)
    assert tercet.verify(damaged)
    with pytest.raises(tercet.Error):
        for one in tercet.open(damaged):
            [part.to_numpy() for part in one.objects]


def test_metadata_values(tmp_path):
    path = tmp_path / "a.tgm"
    metadata = {
        "int": 2**60,
        "float": 0.1,
        "text": "ä",
        "bytes": b"\x00\xff",
        "list": [1, [2.5, None]],
        "map": {"a": True},
        "numpy": np.float32(0.5),
    }
    tercet.write_tgm(path, [(metadata, {"a": np.zeros(2)})])
    found = tercet.open(path)[0].metadata
    assert found == {**metadata, "numpy": 0.5}
    with pytest.raises(tercet.RequestError, match="object"):
        tercet.write_tgm(tmp_path / "b.tgm", [({"x": object()}, {})])
    assert not (tmp_path / "b.tgm").exists()


def test_golden_files(golden):
    read = 0
    for path in sorted((golden / "tgm").glob("*.tgm")):
        try:
            file = tercet.open(path)
            for message in file:
                for one in message.objects:
                    if one.descriptor["dtype"] == "bfloat16":
                        pytest.importorskip("ml_dtypes")
                    array = one.to_numpy()
                    assert array.shape == one.shape
                    read += 1
        except tercet.Error as error:
            assert error.file
    assert read > 50


def test_objects_are_decoded_into_arrays(tmp_path, monkeypatch):
    values = np.random.default_rng(4).normal(size=(5, 6))
    values[2, 3] = np.nan
    tercet.write_tgm(tmp_path / "a.tgm", [({}, {"t": values})])
    found = tercet.open(tmp_path / "a.tgm")[0]["t"]
    other = np.zeros((5, 6), np.float32)
    np.testing.assert_allclose(found.to_numpy(out=other), values, rtol=1e-6)
    strided = np.zeros((5, 12))[:, ::2]
    np.testing.assert_array_equal(found.to_numpy(out=strided), values)
    # Without a second array.
    monkeypatch.setattr("tercet._tgm.to_numpy", None)
    out = np.zeros((5, 6))
    assert found.to_numpy(out=out) is out
    np.testing.assert_array_equal(out, values)
    with pytest.raises(tercet.RequestError, match="shape"):
        found.to_numpy(out=np.zeros(3))
