"""Checks of one Tercet file with the reference implementation. Runs in its own process (see `isolated`)."""

import json
import math
import os
import shutil
import subprocess

import numpy as np
import tet
import tet_values

# Placeholder for the name of the first dataset in a command.
FIRST = "{first}"
OPERATIONS = ("sum", "mean", "min", "max", "count")
# Axis reductions fail in the reference for the other types, and take u32 for i32.
AXIS_DTYPES = ("f32", "f64", "i32", "i64", "u32")


class Mismatch(Exception):
    """The reference reads something else than Tercet wrote."""


class Unsupported(Exception):
    """The reference does not support this for any file; the message names the limit."""


def check(job):
    """Runs every check of one file and returns a list of (file, check, outcome, reason)."""
    return [(job["entry"]["file"], *result) for result in _check(job)]


def _check(job):
    entry, path = job["entry"], os.path.join(job["files"], job["entry"]["file"])
    arrays = {d["name"]: _array(d) for d in entry["datasets"]}
    results = []

    def attempt(name, function, *arguments):
        # A panic of the reference is a BaseException.
        try:
            value = function(*arguments)
            results.append((name, "passed", ""))
            return value
        except Unsupported as why:
            results.append((name, "skipped", str(why)))
        except Mismatch as why:
            results.append((name, "failed", str(why)))
        except BaseException as why:
            results.append((name, "failed", f"{type(why).__name__}: {why}"))
        return None

    file = attempt("opens", tet.open, path)
    if file is None:
        return results
    summary = file.summary()
    attempt("lists", listed, file, summary, entry)
    attempt("metadata", described, summary, entry)
    attempt("verifies", verified, job["cli"], path, summary)
    for dataset in entry["datasets"]:
        name, values = dataset["name"], arrays[dataset["name"]]
        chunks = [chunk for chunk in summary["chunks"] if chunk["dataset_id"] == _id(entry, name)]
        attempt(f"reads `{name[:40]}`", dense, file, name, values)
        if dataset["pattern"] == "nans":
            attempt(f"stored bytes of `{name[:40]}`", stored, path, dataset, values, chunks)
        else:
            attempt(f"reads a part of `{name[:40]}`", strided, file, name, values)
        attempt(f"queries `{name[:40]}`", queried, file, dataset, values, chunks)
        if has_axis_reductions(dataset, values):
            attempt(f"queries along an axis of `{name[:40]}`", along_axis, file, dataset, values, chunks)
    if entry["datasets"]:
        attempt("answers on the command line", command_line, job["cli"], path, dataset, values, chunks)
    for change, commands in job["changes"].items():
        copy = os.path.join(job["scratch"], f"{change}-{entry['file']}")
        attempt(f"rewrites ({change})", changed, path, copy, commands, job)
    return results


def _array(dataset):
    return tet_values.array(dataset["dtype"], dataset["pattern"], dataset["seed"], dataset["shape"])


def _id(entry, name):
    return next(n for n, dataset in enumerate(entry["datasets"]) if dataset["name"] == name)


def equal(what, found, expected):
    if found != expected:
        raise Mismatch(f"{what}: found {str(found)[:300]}, expected {str(expected)[:300]}")


def same_bytes(what, found, expected):
    found = np.asarray(found)
    equal(f"{what}, type", found.dtype.newbyteorder("<"), expected.dtype)
    equal(f"{what}, shape", found.shape, expected.shape)
    if found.tobytes() != expected.tobytes():
        raise Mismatch(f"{what}: values differ")


def listed(file, summary, entry):
    """Names, types, shapes, tiling, memory budget."""
    equal("names", file.dataset_names, tuple(d["name"] for d in entry["datasets"]))
    for n, dataset in enumerate(entry["datasets"]):
        seen = file.dataset(n)
        tag = tet_values.DTYPES[dataset["dtype"]][3]
        expected = (dataset["name"], tag, tuple(dataset["shape"]), tuple(dataset["chunk_shape"]))
        equal(f"dataset {n}", (seen.name, seen.dtype, seen.shape, seen.chunk_shape), expected)
        codecs = {chunk["codec"] for chunk in summary["chunks"] if chunk["dataset_id"] == n}
        equal(f"codec of dataset {n}", codecs, {0 if dataset["zstd"] is None else 1})
    budget = summary.get("file_execution") or {"memory_budget_percent_bps": 0, "memory_budget_bytes": 0}
    found = [budget["memory_budget_percent_bps"], budget["memory_budget_bytes"]]
    # The budget is in the chunk index, which a file without datasets does not have.
    equal("memory budget", found, entry["budget"] if entry["datasets"] else [0, 0])


def described(summary, entry):
    """Attributes, axis names, labels, history, tool."""
    rows = [[row["op"], row["source"], row["at"]] for row in summary.get("history") or []]
    equal("history", rows, [[op, source, "1700000000"] for op, source in entry["history"]])
    metadata = summary.get("metadata") or {}
    equal("tool", (metadata.get("file") or {}).get("tool"), entry["tool"])
    found = metadata.get("datasets") or {}
    for dataset in entry["datasets"]:
        info = found.get(dataset["name"]) or {}
        equal("attributes", info.get("attrs") or {}, dataset["attrs"])
        equal("axis names", info.get("dim_names") or [], dataset["dim_names"])
        # The reference allows 64 labels; longer lists are stored in the integrity block, which it ignores.
        short = {axis: {"labels": labels} for axis, labels in dataset["labels"].items() if len(labels) <= 64}
        equal("labels", info.get("coords") or {}, short)


def dense(file, name, values):
    """The whole array, bit for bit."""
    try:
        found = file.read_numpy(name)
    except tet.TetError as error:
        if "unset elements" not in str(error) or not _has_nan(values):
            raise
        return element_by_element(file, name, values)
    same_bytes("dense read", found, values)


def element_by_element(file, name, values):
    """The reference cannot read a NaN, but it can read every other element and report that an element is NaN."""
    for index in np.ndindex(values.shape):
        selection = [{"start": n, "stop": n + 1} for n in index]
        if np.isnan(values[index]):
            answer = _answer(file, {"dataset": name, "any_nan": [], "selection": selection})
            equal(f"any_nan at {index}", answer.get("operation_any_nan"), True)
        else:
            element = file.read_numpy(name, selection)
            same_bytes(f"cell {index}", element.reshape(()), values[index].reshape(()))


def strided(file, name, values):
    """Every second position of every axis, from the second one where there is one."""
    starts = [min(1, extent - 1) for extent in values.shape]
    expected = np.ascontiguousarray(values[tuple(slice(start, None, 2) for start in starts)])
    found = file.read_numpy(name, [{"start": start, "step": 2} for start in starts])
    same_bytes("strided read", found, expected)


def stored(path, dataset, values, chunks):
    """Every bit of every NaN: the payload bytes at the position that the reference reports."""
    if dataset["zstd"] is not None:
        raise Unsupported("payload bits of NaN in zstd chunks: the reference cannot return them")
    with open(path, "rb") as file:
        for chunk in chunks:
            corner = [n * extent for n, extent in zip(chunk["chunk_index"], dataset["chunk_shape"])]
            window = tuple(slice(n, n + extent) for n, extent in zip(corner, dataset["chunk_shape"]))
            file.seek(chunk["payload_offset"])
            equal(f"chunk {corner}", file.read(chunk["stored_byte_len"]), values[window].tobytes())


def _has_nan(values):
    return values.dtype.kind == "f" and bool(np.isnan(values).any())


def _answer(file, query):
    response = file.query(query, preview=0)
    return response["execution"]


def expected_answers(values):
    """The result and tolerance of each operation; None where JSON has no number for it."""
    exact = [float(x) for x in values.ravel()] if values.dtype.kind == "f" else [int(x) for x in values.ravel()]
    finite = all(math.isfinite(x) for x in exact)
    total = (math.fsum(exact) if values.dtype.kind == "f" else sum(exact)) if finite else math.nan
    size = float(sum(abs(x) for x in exact)) if finite else 0.0
    numbers = [x for x in exact if not math.isnan(x)]
    return {
        "sum": (float(total), 1e-9 * size),
        "mean": (float(total / len(exact)), 1e-9 * size / len(exact)),
        "min": (float(min(numbers)), 1e-9 * abs(float(min(numbers)))),
        "max": (float(max(numbers)), 1e-9 * abs(float(max(numbers)))),
        "count": (len(exact), 0),
    }


def close(what, found, expected, tolerance):
    if not math.isfinite(expected):
        return equal(what, found, None)
    if found is None or not abs(found - expected) <= tolerance:
        raise Mismatch(f"{what}: found {found}, expected {expected}")


def _unaligned(dtypes, dataset, chunks):
    """Whether folding raw chunks of one of these types ends the reference, because they are unaligned."""
    size = tet_values.DTYPES[dataset["dtype"]][1] // 8
    odd = any(chunk["codec"] == 0 and chunk["payload_offset"] % size for chunk in chunks)
    return odd and dataset["dtype"] in dtypes


def queried(file, dataset, values, chunks):
    """Scalar results."""
    if _unaligned(("f32",), dataset, chunks):
        raise Unsupported("folds over unaligned raw f32 chunks end the reference")
    expected = expected_answers(values)
    lacking = dataset["pattern"] == "nans" and dataset["dtype"] == "f32"
    for operation in OPERATIONS:
        if lacking and operation in ("min", "max"):
            continue
        answer = _answer(file, {"dataset": dataset["name"], operation: []})
        equal(f"elements of {operation}", answer["operation_element_count"], values.size)
        if operation != "count":
            close(operation, answer.get(f"operation_{operation}"), *expected[operation])
    if lacking:
        raise Unsupported("min and max of f32 with NaN restart after a NaN in the reference")


def has_axis_reductions(dataset, values):
    """Whether the reference can reduce the first axis."""
    negative = dataset["dtype"] == "u32" and bool((values >= 1 << 31).any())
    return values.ndim > 1 and dataset["dtype"] in AXIS_DTYPES and not negative


def along_axis(file, dataset, values, chunks):
    """The sum along the first axis."""
    if _unaligned(("f32", "f64"), dataset, chunks):
        raise Unsupported("axis reductions over unaligned raw f32 and f64 chunks end the reference")
    answer = _answer(file, {"dataset": dataset["name"], "sum": 0})
    found = answer["operation_reduced_sum"]
    with np.errstate(all="ignore"):
        wide = values.astype(np.float64 if values.dtype.kind == "f" else object)
        expected = wide.sum(axis=0).ravel()
        sizes = np.abs(wide).sum(axis=0).ravel()
    equal("number of sums", len(found), len(expected))
    for n, (one, other, size) in enumerate(zip(found, expected, sizes)):
        close(f"sum {n} along the first axis", one, float(other), 1e-9 * float(size))


def run(cli, *args):
    """A command of the reference: its output, if it succeeds."""
    environment = dict(os.environ, TET_NO_QUERY_HISTORY="1")
    done = subprocess.run([cli, *args], capture_output=True, text=True, env=environment, timeout=60)
    if done.returncode != 0:
        raise Mismatch(f"`tet {args[0]}` ends with {done.returncode}: {(done.stderr or done.stdout)[-300:]}")
    return done.stdout


def verified(cli, path, summary):
    """`verify --deep` and `info`."""
    report = json.loads(run(cli, "verify", "--deep", "--json", path))
    equal("verify", report["ok"], True)
    equal("findings", [f for f in report["findings"] if not f["ok"] or f["severity"] == "error"], [])
    warnings = [finding["check"] for finding in report["findings"] if finding["severity"] == "warning"]
    # Gaps between rows are valid, and the only reason for a warning.
    gaps = any(
        one["payload_offset"] + one["stored_byte_len"] != other["payload_offset"]
        for one, other in zip(summary["chunks"], summary["chunks"][1:])
    )
    equal("warnings", warnings, ["payload_order"] if gaps else [])
    info = json.loads(run(cli, "info", "--json", path))
    equal("info", info["summary"], summary)


def command_line(cli, path, dataset, values, chunks):
    """One query in its own process."""
    if _unaligned(("f32",), dataset, chunks):
        raise Unsupported("folds over unaligned raw f32 chunks end the reference")
    query = json.dumps({"dataset": dataset["name"], "mean": []})
    response = json.loads(run(cli, "query", query, "-t", path, "-x", "--format", "json", "--preview", "0"))
    close("mean", response["execution"].get("operation_mean"), *expected_answers(values)["mean"])


def changed(path, copy, commands, job):
    """Rewrites a copy of the file with the reference; the Tercet reader checks it later."""
    shutil.copyfile(path, copy)
    for command in commands:
        if command == "append":
            writer = tet.TetWriter.open_append(copy)
            name, values = job["appended"]["name"], _array(job["appended"])
            writer.write_dataset(name, values, chunk_shape=job["appended"]["chunk_shape"])
            writer.commit()
        else:
            first = job["entry"]["datasets"][0]["name"] if FIRST in command else ""
            run(job["cli"], *(first if arg == FIRST else arg for arg in command), copy)
    provenance = save_provenance(copy)
    history = job["entry"]["history"]
    equal("history", provenance["history"][: len(history)], history)


def save_provenance(path):
    """Saves the history and tool that the reference reports next to the file: they are not in the manifest."""
    summary = tet.open(path).summary()
    metadata = summary.get("metadata") or {}
    provenance = {
        "history": [[row["op"], row["source"]] for row in summary.get("history") or []],
        "tool": (metadata.get("file") or {}).get("tool"),
    }
    with open(f"{path}.json", "w", encoding="utf-8") as file:
        json.dump(provenance, file)
    return provenance
