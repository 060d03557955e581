"""Compares Tercet with the reference implementation of `.tet`, in both directions.

usage: tet_check.py --files DIR --tet-cli PROGRAM --reader PROGRAM

The directory comes from `make_tet`, the reader is `read_tet`. The reference's package and command line
open, list, read, query and verify every Tercet file, and rewrite it; Tercet reads files written by the reference's
package. Values are computed here, from the manifest alone.

The last line is `N passed, N failed, N skipped`; skipped checks are those that the reference does not
support for any file.
"""

import argparse
import collections
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import isolated
import tet_reference
import tet_reference_files
import tet_values

FIRST = tet_reference.FIRST
# Changes of a copy by the reference: a name, and its commands.
INDEX = {"index": [["index", "-q"]]}
REWRITES = INDEX | {
    "index-clear": [["index", "-q"], ["index", "-q", "--clear"]],
    "append": ["append"],
    "append-index": ["append", ["index", "-q"]],
    "semantics": [["semantics", "set", "--dataset", FIRST, "--set", "note=by the reference"]],
}
APPENDED = {
    "name": "appended by the reference",
    "dtype": "i32",
    "shape": [5, 3],
    "chunk_shape": [2, 2],
    "pattern": "mixed",
    "seed": 99,
    "attrs": {},
    "dim_names": [],
    "labels": {},
}


class Tally:
    """Counts results, prints failures at once and counts skips by reason."""

    def __init__(self):
        self.counts = collections.Counter()
        self.reasons = collections.Counter()

    def add(self, file, check, outcome, why):
        self.counts[outcome] += 1
        if outcome == "failed":
            print(f"failed: {file}: {check}: {why}")
        elif outcome == "skipped":
            self.reasons[why] += 1

    def finish(self):
        for why, count in sorted(self.reasons.items()):
            print(f"skipped {count} times: {why}")
        passed, failed, skipped = (self.counts[name] for name in ("passed", "failed", "skipped"))
        print(f"{passed} passed, {failed} failed, {skipped} skipped")
        return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", required=True)
    parser.add_argument("--tet-cli", required=True)
    parser.add_argument("--reader", required=True)
    options = parser.parse_args()
    with open(os.path.join(options.files, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="tercet-interop-") as scratch:
        work(options, manifest, scratch, tally)
    return tally.finish()


def work(options, manifest, scratch, tally):
    cli = os.path.abspath(options.tet_cli)
    common = {"files": options.files, "cli": cli, "scratch": scratch, "appended": APPENDED}
    jobs = [common | {"entry": entry, "changes": changes(entry)} for entry in manifest]
    for results in isolated.run(tet_reference.check, jobs, died):
        for result in results:
            tally.add(*result)
    cases = tet_reference_files.cases()
    jobs = [{"case": case, "scratch": scratch} for case in cases]
    for results in isolated.run(tet_reference_files.write, jobs, lambda job, code: died({"entry": job["case"]}, code)):
        for result in results:
            tally.add(*result)
    expected = {os.path.join(options.files, entry["file"]): entry for entry in manifest}
    for entry in manifest:
        for change in changes(entry):
            expected[os.path.join(scratch, f"{change}-{entry['file']}")] = rewritten(entry, change)
    for case in cases:
        expected[os.path.join(scratch, case["file"])] = case
    for path, found in read(options.reader, list(expected)):
        entry = expected[path]
        if os.path.exists(f"{path}.json"):
            with open(f"{path}.json", encoding="utf-8") as file:
                entry = entry | json.load(file)
        why = difference(found, entry)
        tally.add(os.path.basename(path), "Tercet reader", "failed" if why else "passed", why)


def changes(entry):
    """Every file is indexed; one of each kind is rewritten in other ways too."""
    if "-rank" in entry["file"] and "-rank2-" not in entry["file"]:
        return INDEX
    if not entry["datasets"] or len(entry["datasets"][0]["attrs"]) == 64:
        # There is nothing to describe, or no room for one more attribute.
        return {name: commands for name, commands in REWRITES.items() if name != "semantics"}
    return REWRITES


def rewritten(entry, change):
    """The description of a file after a change by the reference: its block is gone, and with it long labels."""
    datasets = [
        dataset | {"labels": {axis: labels for axis, labels in dataset["labels"].items() if len(labels) <= 64}}
        for dataset in entry["datasets"]
    ]
    if change.startswith("append"):
        datasets.append(APPENDED)
    if change == "semantics":
        datasets[0]["attrs"] = datasets[0]["attrs"] | {"note": "by the reference"}
    return entry | {"datasets": datasets, "options": "reference"}


def died(job, code):
    return [(job["entry"]["file"], "survives", "failed", f"the reference ended its process with {code}")]


def read(reader, paths):
    """Runs the Tercet reader on each file and returns its results."""
    done = subprocess.run(
        [reader], input="\n".join(paths) + "\n", capture_output=True, text=True, encoding="utf-8", timeout=300
    )
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != len(paths):
        sys.exit(f"{reader} ended with {done.returncode} after {len(lines)} of {len(paths)} files: {done.stderr[-500:]}")
    return zip(paths, map(json.loads, lines))


def difference(found, entry):
    """The difference between the result of the Tercet reader and the description, or an empty string."""
    if "error" in found:
        return found["error"]
    protection = {
        "default": {"state": "checked", "statistics": True},
        "no_statistics": {"state": "checked", "statistics": False},
    }.get(entry["options"], {"state": "absent"})
    views = {
        "datasets": ([view(dataset) for dataset in found["datasets"]], [expected(d) for d in entry["datasets"]]),
        "history": ([[row["op"], row["source"]] for row in found["history"]], entry["history"]),
        "tool": (found["tool"], entry["tool"]),
        "budget": (found["budget"], entry["budget"] if entry["datasets"] else [0, 0]),
        "protection": (found["protection"], protection),
        "verify": (found["verify"], {"ok": True, "complaints": []}),
    }
    for what, (is_, should) in views.items():
        if is_ != should:
            return f"{what}: found {str(is_)[:400]}, expected {str(should)[:400]}"
    return ""


def view(dataset):
    members = ("name", "dtype", "shape", "chunk_shape", "sha256")
    described = {"attrs": dataset["attrs"] or {}, "dim_names": dataset["dim_names"] or [], "labels": dataset["labels"]}
    return {member: dataset[member] for member in members} | described


def expected(dataset):
    values = tet_values.array(dataset["dtype"], dataset["pattern"], dataset["seed"], dataset["shape"])
    axes = dataset["dim_names"] or [str(axis) for axis in range(len(dataset["shape"]))]
    labels = [dataset["labels"].get(axis, dataset["labels"].get(str(n))) for n, axis in enumerate(axes)]
    digest = hashlib.sha256(values.tobytes()).hexdigest()
    members = ("name", "dtype", "shape", "chunk_shape", "attrs", "dim_names")
    return {member: dataset[member] for member in members} | {"sha256": digest, "labels": labels}


if __name__ == "__main__":
    sys.exit(main())
