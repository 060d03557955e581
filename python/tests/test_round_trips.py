"""Random arrays, tables and selections: what is read is what was written, and what NumPy, pyarrow and xarray say."""

import datetime
import tempfile

import numpy as np
import pytest

import tercet

hypothesis = pytest.importorskip("hypothesis")
given, settings, st = hypothesis.given, hypothesis.settings, hypothesis.strategies
npst = pytest.importorskip("hypothesis.extra.numpy")

# The same examples in every run; each writes a file.
settings.register_profile("tercet", max_examples=60, deadline=None, derandomize=True)
settings.load_profile("tercet")

FLOATS = [np.float16, np.float32, np.float64]
INTEGERS = [np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def arrays(dtypes, **options):
    shapes = npst.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=7)
    orders = st.sampled_from(["C", "F", "reversed", "big"])

    def arranged(pair):
        array, order = pair
        if order == "F":
            return np.asfortranarray(array)
        if order == "reversed":
            return array[::-1]
        return array.astype(array.dtype.newbyteorder(">")) if order == "big" else array

    made = st.sampled_from(dtypes).flatmap(lambda dtype: npst.arrays(dtype, shapes, **options))
    return st.tuples(made, orders).map(arranged)


@st.composite
def chunked(draw, dtypes=(*FLOATS, *INTEGERS)):
    array = draw(arrays(dtypes))
    chunks = [draw(st.integers(1, extent)) for extent in array.shape]
    return array, chunks, draw(st.sampled_from([None, False, 1]))


def bits(array):
    """NaN with their payloads, and the sign of zero."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return little.tobytes()


@given(chunked())
def test_arrays_keep_every_bit(made):
    array, chunks, zstd = made
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/a.tet"
        tercet.write(path, {"x": array}, chunks=chunks, zstd=zstd)
        assert tercet.verify(path) == []
        found = tercet.open(path)["x"].to_numpy()
        assert found.shape == array.shape and found.dtype == array.dtype.newbyteorder("=")
        assert bits(found) == bits(array)


@st.composite
def indexed(draw):
    array, chunks, _ = draw(chunked([np.int32]))
    key = draw(npst.basic_indices(array.shape, allow_newaxis=True, min_dims=0))
    return array, chunks, key


@given(indexed())
def test_basic_indexing_is_numpys(made):
    array, chunks, key = made
    with tempfile.TemporaryDirectory() as directory:
        tercet.write(f"{directory}/a.tet", {"x": array}, chunks=chunks, zstd=False)
        found = tercet.open(f"{directory}/a.tet")["x"][key]
        np.testing.assert_array_equal(found, array[key])
        assert np.shape(found) == np.shape(array[key])


@st.composite
def fancy(draw):
    array, chunks, _ = draw(chunked([np.int32]))
    if draw(st.booleans()):
        return array, chunks, draw(npst.arrays(bool, array.shape))
    shapes = npst.array_shapes(min_dims=1, max_dims=2, max_side=4)
    return array, chunks, draw(npst.integer_array_indices(array.shape, result_shape=shapes))


@given(fancy())
def test_advanced_indexing_is_numpys(made):
    array, chunks, key = made
    with tempfile.TemporaryDirectory() as directory:
        tercet.write(f"{directory}/a.tet", {"x": array}, chunks=chunks, zstd=False)
        np.testing.assert_array_equal(tercet.open(f"{directory}/a.tet")["x"][key], array[key])


@st.composite
def reduced(draw):
    elements = st.floats(-1e3, 1e3, width=32)
    array = draw(npst.arrays(np.float32, npst.array_shapes(max_dims=3, max_side=6), elements=elements))
    chunks = [draw(st.integers(1, extent)) for extent in array.shape]
    axes = draw(st.sets(st.integers(0, array.ndim - 1), min_size=1))
    return array, chunks, sorted(axes)


@given(reduced())
def test_reductions_are_numpys(made):
    array, chunks, axes = made
    with tempfile.TemporaryDirectory() as directory:
        tercet.write(f"{directory}/a.tet", {"x": array}, chunks=chunks)
        x = tercet.open(f"{directory}/a.tet")["x"]
        exact = array.astype(np.float64)
        over = tuple(axes)
        for op in ("min", "max", "sum", "mean", "std", "var", "median"):
            found = x.reduce(op, axes)
            np.testing.assert_allclose(found.values, getattr(np, op)(exact, axis=over), rtol=1e-9, atol=1e-7, err_msg=op)
            assert found.dims == tuple(f"dim_{axis}" for axis in range(array.ndim) if axis not in axes)


COMPLEX = arrays([np.complex64], elements=st.complex_numbers(width=64, allow_nan=False, allow_infinity=False))


@given(st.lists(arrays([*FLOATS, *INTEGERS, np.int8]) | COMPLEX, min_size=1, max_size=3), st.sampled_from(["none", "zstd", "lz4"]))
def test_messages_keep_every_value(objects, compression):
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/a.tgm"
        named = {f"x{number}": array for number, array in enumerate(objects)}
        tercet.write_tgm(path, [({"step": 1}, named), ({"step": 2}, named)], compression=compression)
        assert tercet.verify(path) == []
        for message in tercet.open(path):
            for name, array in named.items():
                np.testing.assert_array_equal(message[name].to_numpy(), array)


def columns(pa):
    ints = st.integers(-(2**63), 2**63 - 1)
    days = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
    times = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))
    kinds = [
        (pa.int64(), ints),
        (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
        (pa.float64(), st.floats(allow_nan=False)),
        (pa.bool_(), st.booleans()),
        (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
        (pa.date32(), days),
        (pa.timestamp("us"), times),
        (pa.binary(), st.binary(max_size=9)),
        (pa.list_(pa.int32()), st.lists(st.integers(-9, 9), max_size=4)),
    ]
    return st.sampled_from(kinds)


@given(st.data())
def test_tables_round_trip(data):
    pa = pytest.importorskip("pyarrow")
    rows = data.draw(st.integers(0, 12))
    made = {}
    for number in range(data.draw(st.integers(1, 4))):
        kind, values = data.draw(columns(pa))
        cells = data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        made[f"c{number}"] = pa.array(cells, kind)
    table = pa.table(made)
    with tempfile.TemporaryDirectory() as directory:
        tercet.write(f"{directory}/a.tatami", table)
        found = tercet.open(f"{directory}/a.tatami").scan().to_arrow()
        assert found.cast(table.schema).equals(table)
        some = tercet.open(f"{directory}/a.tatami").scan(rows=[row for row in range(rows) if row % 3 == 1]).to_arrow()
        assert some.cast(table.schema).equals(table.take(pa.array([row for row in range(rows) if row % 3 == 1], pa.int64())))


@given(st.data())
def test_datasets_of_xarray_round_trip(data):
    xr = pytest.importorskip("xarray")
    extents = {"time": data.draw(st.integers(1, 5)), "y": data.draw(st.integers(1, 4))}
    start = np.datetime64("2024-01-01", "ns")
    made = xr.Dataset(coords={"time": start + np.arange(extents["time"]) * np.timedelta64(data.draw(st.integers(1, 48)), "h")})
    for number in range(data.draw(st.integers(1, 3))):
        dims = data.draw(st.sampled_from([("time",), ("y",), ("time", "y"), ("y", "time")]))
        dtype = data.draw(st.sampled_from([np.float32, np.float64, np.int32, np.int16]))
        values = data.draw(npst.arrays(dtype, tuple(extents[dim] for dim in dims)))
        made[f"v{number}"] = (dims, values, {"units": data.draw(st.sampled_from(["K", "m s-1"]))})
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/a.tet"
        tercet.write(path, made)
        with xr.open_dataset(path) as found:
            xr.testing.assert_equal(found.load(), made)
            for name in made.data_vars:
                assert found[name].dtype == made[name].dtype and found[name].attrs["units"] == made[name].attrs["units"]
