"""The names and parameters of the compatibility modules, as the packages tensogram 0.24.0 and tet-py 0.8.3 document them.

`test_compat.py` compares with the installed packages; these lists hold without them.
"""

import dataclasses
import inspect

import pytest

import tercet.compat.tensogram as tensogram
import tercet.compat.tet as tet

MASKS = "allow_nan allow_inf nan_mask_method pos_inf_mask_method neg_inf_mask_method small_mask_threshold_bytes aggregate_hash"
PIPELINE = "encoding bits filter compression compression_level threads hash"
HINTS = "device memory_budget_bytes memory_budget_percent"
REDUCE = f"dataset axes axis {HINTS} preview raw"
TRANSFORM = f"dataset axes axis path selection {HINTS} raw"

TENSOGRAM = {
    "encode": f"global_meta_dict descriptors_and_data hash threads {MASKS}",
    "encode_pre_encoded": "global_meta_dict descriptors_and_data hash threads",
    "decode": "buf native_byte_order threads restore_non_finite verify_hash",
    "decode_with_masks": "buf native_byte_order threads",
    "decode_metadata": "buf",
    "decode_descriptors": "buf",
    "decode_object": "buf index native_byte_order threads restore_non_finite verify_hash",
    "decode_range": "buf object_index ranges join native_byte_order threads restore_non_finite",
    "scan": "buf",
    "iter_messages": "buf verify_hash",
    "validate": "buf level check_canonical",
    "validate_file": "path level check_canonical",
    "compute_hash": "data algo",
    "compute_packing_params": "values bits_per_value decimal_scale_factor",
    "is_remote_url": "source",
    "doctor": "",
    "convert_grib": f"path grouping preserve_all_keys {PIPELINE}",
    "convert_grib_buffer": f"buffer grouping preserve_all_keys {PIPELINE}",
    "convert_netcdf": f"path split_by cf {PIPELINE}",
    "to_grib": "messages",
    "to_netcdf": "messages path",
    "TensogramFile.open": "source bidirectional",
    "TensogramFile.open_remote": "source storage_options bidirectional",
    "TensogramFile.create": "path",
    "TensogramFile.append": f"self global_meta_dict descriptors_and_data hash threads {MASKS}",
    "TensogramFile.decode_message": "self index native_byte_order threads restore_non_finite verify_hash",
    "TensogramFile.read_message": "self index",
    "TensogramFile.message_count": "self",
    "TensogramFile.messages": "self",
    "TensogramFile.file_decode_metadata": "self msg_index",
    "TensogramFile.file_decode_descriptors": "self msg_index",
    "TensogramFile.file_decode_object": "self msg_index obj_index native_byte_order threads verify_hash",
    "TensogramFile.file_decode_object_batch": "self msg_indices obj_index native_byte_order threads verify_hash",
    "TensogramFile.file_decode_range": "self msg_index obj_index ranges join native_byte_order threads",
    "TensogramFile.file_decode_range_batch": "self msg_indices obj_index ranges join native_byte_order threads",
    "TensogramFile.is_remote": "self",
    "TensogramFile.source": "self",
    "AsyncTensogramFile.open": "source bidirectional",
    "AsyncTensogramFile.open_remote": "source storage_options bidirectional",
    "AsyncTensogramFile.prefetch_layouts": "self msg_indices",
    "AsyncTensogramFile.message_count": "self",
    "AsyncTensogramFile.read_message": "self index",
    "AsyncTensogramFile.messages": "self",
    "AsyncTensogramFile.decode_message": "self index native_byte_order threads verify_hash",
    "AsyncTensogramFile.file_decode_metadata": "self msg_index",
    "AsyncTensogramFile.file_decode_descriptors": "self msg_index",
    "AsyncTensogramFile.file_decode_object": "self msg_index obj_index native_byte_order threads verify_hash",
    "AsyncTensogramFile.file_decode_object_batch": "self msg_indices obj_index native_byte_order threads verify_hash",
    "AsyncTensogramFile.file_decode_range": "self msg_index obj_index ranges join native_byte_order threads",
    "AsyncTensogramFile.file_decode_range_batch": "self msg_indices obj_index ranges join native_byte_order threads",
    "StreamingEncoder.__init__": f"self global_meta_dict hash threads {MASKS}",
    "StreamingEncoder.write_object": "self descriptor data",
    "StreamingEncoder.write_object_pre_encoded": "self descriptor data",
    "StreamingEncoder.finish": "self",
    "StreamingEncoder.finish_backfilled": "self",
    "StreamingEncoder.finish_and_reset": "self",
    "StreamingEncoder.finish_and_reset_backfilled": "self",
    "Metadata.get_path": "self path default",
    "Metadata.get_path_at": "self obj path default",
    "Metadata.has_path": "self path",
    "Metadata.has_path_at": "self obj path",
}
TENSOGRAM_MEMBERS = {
    "Message": "metadata objects",
    "Metadata": "__getitem__ __contains__ __iter__ __len__ get keys values items version base extra reserved num_objects",
    "DataObjectDescriptor": "obj_type ndim shape strides dtype byte_order encoding filter compression params hash",
    "TensogramFile": "__getitem__ __iter__ __len__ __enter__ __exit__",
    "AsyncTensogramFile": "__aenter__ __aexit__ __aiter__ __len__ is_remote source",
}
TET = {
    "open": "path",
    "write_dataset": "path name array chunk_shape attrs dim_names coords history_op history_source",
    "convert": "src dst dataset format write_kw",
    "export": "src dst format",
    "create": "path",
    "ingest": "package source part_id session_id create",
    "publish": "package part_ids generation dry_run replace",
    "pack": "package dest generation remove_package",
    "is_package": "path",
    "run_job": "path root dry_run",
    "typing_stub": "path",
    "core_version": "",
    "axis_slice": "start stop step start_label stop_label",
    "selection_slices": "slices",
    "full_selection": "ndim",
    "build_query": "dataset selection op",
    "TetFile.open": "path",
    "TetFile.open_package": "path",
    "TetFile.from_native": "inner",
    "TetFile.dataset": "self key",
    "TetFile.iter_datasets": "self",
    "TetFile.info": "self",
    "TetFile.summary": "self",
    "TetFile.typing_stub": "self",
    "TetFile.export": "self dst format",
    "TetFile.query": "self query preview raw",
    "TetFile.query_execute": f"self query {HINTS} preview raw",
    "TetFile.execute": f"self query {HINTS} preview raw plan",
    "TetFile.plan_only": "self query raw",
    "TetFile.read_numpy": "self dataset selection",
    "TetFile.read_spill": "self dataset path selection",
    "TetFile.null_count": f"self dataset axes axis fill {HINTS} preview raw",
    "TetFile.quantile": f"self dataset q axes axis selection {HINTS} preview raw",
    "TetFile.histogram": f"self dataset bins axes axis min max selection {HINTS} preview raw",
    "TetFile.covariance": f"self dataset axis selection {HINTS} preview raw",
    "TetFile.correlation": f"self dataset axis selection {HINTS} preview raw",
    **{
        f"TetFile.{op}": f"self {REDUCE}"
        for op in (
            "sum mean min max var std product norm_l1 norm_l2 median count numel arg_min arg_max "
            "all_finite any_nan any_inf nan_count inf_count nan_mean nan_std"
        ).split()
    },
    "Dataset.__init__": "self name shape dtype chunk_shape dim_names",
    "Dataset.axis_index": "self axis path",
    "Dataset.to_numpy": "self file selection",
    "TetWriter.create": "path",
    "TetWriter.open_append": "path",
    "TetWriter.write_dataset": "self name array chunk_shape attrs dim_names coords",
    "TetWriter.push_history_event": "self op source",
    "TetWriter.commit": "self",
    "QueryResult.from_response": "raw op path require_execution",
    "MemoryStore.from_package": "path",
    "S3Store.connect": "endpoint bucket access_key_id secret_access_key prefix region",
}
TET_MEMBERS = {
    "TetFile": "path generation dataset_names transform __getitem__ __iter__ __enter__ __exit__",
    "Dataset": "ndim",
    "TetWriter": "path dataset_count",
    "QueryResult": "value preview preview_samples preview_truncated",
    "TransformWrite": "NUMPY SPILL SIDECAR",
    "MemoryStore": "from_package ingest publish seal cas_publish open",
    "S3Store": "connect ingest publish seal cas_publish open",
    "SidecarTransformResult": "open to_numpy",
    "SpillTransformResult": "to_numpy",
    "SpillReadResult": "to_numpy",
}


def find(module, path):
    found = module
    for name in path.split("."):
        found = getattr(found, name)
    return found


def parameters(module, path):
    return [name for name in inspect.signature(find(module, path)).parameters]


@pytest.mark.parametrize(("module", "listed"), [(tensogram, TENSOGRAM), (tet, TET)], ids=["tensogram", "tet"])
def test_parameters(module, listed):
    different = {path: (names.split(), parameters(module, path)) for path, names in listed.items() if parameters(module, path) != names.split()}
    assert different == {}


@pytest.mark.parametrize(("module", "listed"), [(tensogram, TENSOGRAM_MEMBERS), (tet, TET_MEMBERS)], ids=["tensogram", "tet"])
def test_members(module, listed):
    for path, names in listed.items():
        kind = find(module, path)
        fields = set(getattr(kind, "__annotations__", ()))
        for name in names.split():
            assert hasattr(kind, name) or name in fields, (path, name)


def test_transforms():
    for sink in ("to_numpy", "to_spill", "to_sidecar"):
        for method in ("zscore", "minmax", "l1", "l2", "center", "scale", "log1p", "sqrt", "softmax"):
            found = inspect.signature(getattr(tet._Sink, method))
            assert list(found.parameters) == ["self", *TRANSFORM.split()], (sink, method)
    fields = {
        tet.TransformStats: "mean std min max var",
        tet.QueryResult: (
            "accepted message scalar reduced reduced_shape plan execution raw matrix matrix_order histogram_counts histogram_edges"
        ),
    }
    for kind, names in fields.items():
        assert [field.name for field in dataclasses.fields(kind)] == names.split()


def test_constants_and_exceptions():
    assert tensogram.WIRE_VERSION == 3 and tensogram.__version__ and tet.__version__
    assert len(tet.QUERY_OP_KEYS) == 26 and set(tet.REDUCTION_OPS) < tet.QUERY_OP_KEYS
    assert issubclass(tensogram.HashMismatchError, tensogram.IntegrityError)
    assert issubclass(tensogram.MissingHashError, tensogram.IntegrityError)
    assert issubclass(tet.UnknownDatasetError, KeyError) and issubclass(tet.UnknownDatasetError, tet.TetError)
    assert issubclass(tet.UnknownAxisError, ValueError) and issubclass(tet.UnknownAxisError, tet.TetError)
    assert issubclass(tet.CatalogError, Exception) and not issubclass(tet.CatalogError, tet.TetError)
