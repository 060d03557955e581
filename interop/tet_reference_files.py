"""Files written by the reference's package. Runs in its own process (see `isolated`)."""

import os

import tet
import tet_reference
import tet_values

SHAPES = {
    "even": ([6, 4, 2, 2, 2, 2, 1, 2], [3, 2, 2, 1, 2, 1, 1, 2]),
    "ragged": ([7, 5, 3, 2, 2, 1, 3, 1], [3, 2, 2, 3, 1, 1, 2, 1]),
    "larger": ([7, 5, 3, 2, 1, 2, 1, 2], [8, 9, 3, 4, 1, 3, 2, 2]),
}


def dataset(name, dtype, shape, chunk_shape, pattern="mixed", seed=1, **described):
    described = {"attrs": {}, "dim_names": [], "labels": {}} | described
    facts = {"name": name, "dtype": dtype, "shape": shape, "chunk_shape": chunk_shape}
    return facts | {"pattern": pattern, "seed": seed} | described


def case(file, datasets, history=(), appended=()):
    """A file; `appended` datasets are added by a second writer."""
    facts = {"file": f"reference-{file}.tet", "options": "reference", "budget": [0, 0], "tool": None}
    created, added = list(datasets), list(appended)
    return facts | {"datasets": created + added, "created": len(created), "history": [list(row) for row in history]}


def cases():
    """All files that the reference writes."""
    found = []
    for dtype in tet_values.DTYPES:
        for rank in range(1, 9):
            for tiling, (shape, chunk_shape) in SHAPES.items():
                one = dataset("values", dtype, shape[:rank], chunk_shape[:rank], seed=rank)
                found.append(case(f"{dtype}-rank{rank}-{tiling}", [one]))
        patterns = ["steps", "limits", "nans"] if dtype.startswith("f") else ["steps", "limits"]
        for pattern in patterns:
            found.append(case(f"{dtype}-{pattern}", [dataset("values", dtype, [9, 11], [4, 5], pattern)]))
        more = dataset("more", dtype, [3, 5], [2, 2], seed=7)
        found.append(case(f"{dtype}-appended", [dataset("odd", "u8", [7], [7])], appended=[more]))
    all_types = [dataset(f"grp/{dtype}", dtype, [5, 3], [2, 2], seed=3) for dtype in tet_values.DTYPES]
    found.append(case("several", [dataset("odd", "u8", [7], [7]), *all_types]))
    found.append(case("history", all_types[:1], history=[("note", "first"), ("note", "second ✓")]))
    found.append(case("many-chunks", [dataset("column", "u16", [5000], [1])]))
    names = ["a", "group/a", "a b", "温度", '"q"\\', "12345678", "123456789"]
    found.append(case("names", [dataset(name, "i32", [3], [2]) for name in names]))
    described = dataset(
        "t2m",
        "f32",
        [6, 5],
        [4, 2],
        attrs={"units": "K", "long_name": "2 metre temperature — θ₂ₘ"},
        dim_names=["time", "station"],
        labels={"time": [f"2024-01-0{n}" for n in range(6)], "station": [f"Żagań {n}" for n in range(5)]},
    )
    found.append(case("described", [described]))
    found.append(case("described-appended", [described], appended=[dataset("more", "f64", [4], [3], attrs={"a": "b"})]))
    attrs = {f"attribute{n:02}": "é" * 512 for n in range(64)}
    found.append(case("spill", [dataset("a", "i16", [9], [4], attrs=attrs)]))
    labels = {"x": [f"p{n}" for n in range(64)]}
    found.append(case("64-labels", [dataset("a", "f64", [64, 2], [10, 2], dim_names=["x", "y"], labels=labels)]))
    return found


def write(job):
    """Writes one file."""
    one, path = job["case"], os.path.join(job["scratch"], job["case"]["file"])
    try:
        writer = tet.TetWriter.create(path)
        for op, source in one["history"]:
            writer.push_history_event(op, source)
        for number, entry in enumerate(one["datasets"]):
            if number == one["created"]:
                writer.commit()
                writer = tet.TetWriter.open_append(path)
            writer.write_dataset(
                entry["name"],
                tet_values.array(entry["dtype"], entry["pattern"], entry["seed"], entry["shape"]),
                chunk_shape=entry["chunk_shape"],
                attrs=entry["attrs"] or None,
                dim_names=entry["dim_names"] or None,
                coords=entry["labels"] or None,
            )
        writer.commit()
        tet_reference.save_provenance(path)
    # A panic of the reference is a BaseException.
    except BaseException as why:
        return [(one["file"], "written by the reference", "failed", f"{type(why).__name__}: {why}")]
    return []
