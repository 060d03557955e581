"""The tests that xarray has for its own backends, of datasets that are written and opened again."""

import asyncio
import contextlib

import pytest

import tercet

xr = pytest.importorskip("xarray")
backends = pytest.importorskip("xarray.tests.test_backends")

#: Tests of what a `.tet` file or its writer does not have.
NOT_APPLICABLE = {
    "test_encoding_kwarg": "encodings are those of the variables, not arguments",
    "test_encoding_unlimited_dims": "unlimited dimensions are those of the dataset, not arguments",
    "test_append_write": "variables are not appended to a file",
    "test_append_overwrite_values": "variables are not appended to a file",
    "test_append_with_invalid_dim_raises": "variables are not appended to a file",
    "test_roundtrip_None_variable": "names are strings",
    "test_invalid_dataarray_names_raise": "other messages: test_what_cannot_be_stored_is_refused",
    "test_roundtrip_object_dtype": "missing strings are refused",
    "test_roundtrip_stringdtype_nulls": "missing strings are refused",
    "test_roundtrip_bytes_with_fill_value": "missing strings are refused",
    "test_roundtrip_string_with_fill_value_nchar": "missing strings are refused",
    "test_roundtrip_empty_vlen_string_array": "an empty array of objects has no type",
    "test_string_object_warning": "mixed objects are refused",
}


@pytest.fixture(params=["s", "ms", "us", "ns"])
def time_unit(request):
    return request.param


@pytest.fixture(params=[False, True])
def use_dask(request):
    if request.param:
        pytest.importorskip("dask")
    return request.param


class TestTercet(backends.CFEncodedBase):  # type: ignore[misc, name-defined]
    engine = "tercet"

    @pytest.fixture(autouse=True)
    def applicable(self, request):
        reason = NOT_APPLICABLE.get(request.node.originalname)
        if reason is not None:
            pytest.skip(reason)

    @contextlib.contextmanager
    def create_store(self):
        pytest.skip("the backend has no store")
        yield

    def save(self, dataset, path, encoding=None, unlimited_dims=None, **options):
        dataset = dataset.copy()
        for name, one in (encoding or {}).items():
            dataset[name].encoding = one
        if unlimited_dims is not None:
            dataset.encoding["unlimited_dims"] = set(unlimited_dims)
        tercet.write(path, dataset, overwrite=True, **options)

    @contextlib.contextmanager
    def open(self, path, **options):
        with xr.open_dataset(path, engine="tercet", **options) as found:
            yield found

    @contextlib.contextmanager
    def roundtrip(self, data, save_kwargs=None, open_kwargs=None, allow_cleanup_failure=False):
        with backends.create_tmp_file(suffix=".tet") as path:
            self.save(data, path, **(save_kwargs or {}))
            with self.open(path, **(open_kwargs or {})) as found:
                yield found

    def test_load_async(self):
        asyncio.run(super().test_load_async())
