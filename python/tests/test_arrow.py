"""Tables in pyarrow, DuckDB, Polars and pandas."""

import pickle

import numpy as np
import pytest

import tercet

pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")
pc = pytest.importorskip("pyarrow.compute")


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    count = 200_000
    score = rng.standard_normal(count)
    score[::1000] = np.nan
    return pa.table(
        {
            "id": pa.array(np.arange(count)),
            "status": pa.array(rng.choice([200, 301, 404, 500], count)),
            "host": pa.array(rng.choice(["a.org", "b.org", "it's", 'q"'], count)),
            "score": pa.array(score),
            "some": pa.array([None if at % 7 == 0 else at for at in range(count)], pa.int32()),
        }
    )


@pytest.fixture
def file(tmp_path, table):
    tercet.write(tmp_path / "t.tatami", table)
    return tercet.open(tmp_path / "t.tatami")


FILTERS = [
    pc.field("id") < 100,
    (pc.field("status") >= 400) & (pc.field("host") == "a.org"),
    (pc.field("status") == 200) | (pc.field("id") == 7),
    pc.field("host") == "it's",
    pc.field("host") == 'q"',
    pc.field("score") > 1.5,
    ~(pc.field("score") <= 1.5),
    pc.field("some").is_null(),
    pc.field("some") != 3,
    pc.field("status").isin([301, 500]) & (pc.field("id") < 5000),
    pc.starts_with(pc.field("host"), "b"),
    (pc.field("id") > 2.5) & (pc.field("id") < 9),
]


@pytest.mark.parametrize("number", range(len(FILTERS)))
def test_filters_of_pyarrow(file, table, number):
    expression = FILTERS[number]
    dataset = file.to_dataset()
    assert isinstance(dataset, ds.Dataset)
    expected = table.filter(expression)
    found = dataset.to_table(filter=expression).cast(table.schema)
    # NaN is not equal to itself.
    assert found.drop(["score"]).equals(expected.drop(["score"]))
    np.testing.assert_array_equal(found["score"].to_numpy(), expected["score"].to_numpy())
    assert dataset.count_rows(expression) == expected.num_rows
    assert dataset.filter(expression).to_table(columns=["id"])["id"].equals(expected["id"])


def test_dataset(file, table):
    dataset = file.to_dataset()
    assert dataset.schema.names == table.schema.names
    assert dataset.count_rows() == table.num_rows
    assert dataset.to_table(columns=["status"]).schema.names == ["status"]
    assert dataset.head(3)["id"].to_pylist() == [0, 1, 2]
    assert dataset.take([9, 3, 9])["id"].to_pylist() == [9, 3, 9]
    computed = dataset.to_table(columns={"double": pc.field("id") * 2}, filter=pc.field("id") < 3)
    assert computed["double"].to_pylist() == [0, 2, 4]
    fragments = list(dataset.get_fragments())
    assert sum(fragment.count_rows() for fragment in fragments) == table.num_rows
    assert sum(fragment.to_table(filter=pc.field("id") < 10).num_rows for fragment in fragments) == 10
    again = pickle.loads(pickle.dumps(dataset))
    assert again.count_rows() == table.num_rows
    assert sum(batch.num_rows for batch in dataset.to_batches(columns=["id"], batch_size=1000)) == table.num_rows
    assert dataset.sort_by([("id", "descending")]).head(1)["id"].to_pylist() == [table.num_rows - 1]


def test_columns_and_filters_reach_the_scan(file, monkeypatch):
    asked = []
    original = tercet.TatamiFile.scan

    def scan(self, columns=None, where=None, **options):
        asked.append((columns, where))
        return original(self, columns, where, **options)

    monkeypatch.setattr(tercet.TatamiFile, "scan", scan)
    dataset = file.to_dataset()
    asked.clear()
    dataset.to_table(columns=["host"], filter=(pc.field("id") < 10) & (pc.field("score") > 0))
    assert asked == [(["id", "host", "score"], "id < 10")]


def test_duckdb(file, table):
    duckdb = pytest.importorskip("duckdb")
    dataset = file.to_dataset()
    assert duckdb.sql("select count(*) from dataset where id < 1000 and status = 404").fetchall() == [
        (table.filter((pc.field("id") < 1000) & (pc.field("status") == 404)).num_rows,)
    ]
    rows = duckdb.sql("select host, count(*) as n from dataset group by 1 order by 1").fetchall()
    assert sum(n for _, n in rows) == table.num_rows
    # A scan is an Arrow stream.
    scan = file.scan(["id"], where="id < 5")
    assert duckdb.sql("select sum(id) from scan").fetchall() == [(10,)]
    assert duckdb.sql("select sum(id) from scan").fetchall() == [(10,)]


def test_polars(file, table):
    pl = pytest.importorskip("polars")
    frame = file.scan_polars()
    expected = pl.from_arrow(table)
    for expression in [
        pl.col("id") < 10,
        (pl.col("status") == 404) & (pl.col("host") == "it's"),
        pl.col("score") > 2.0,
        pl.col("some").is_null() | (pl.col("id") < 3),
        pl.col("host").str.starts_with("a"),
        pl.col("status").is_in([200, 500]),
        pl.col("some") != 4,
    ]:
        found = frame.filter(expression).collect()
        assert found.equals(expected.filter(expression)), expression
        few = frame.filter(expression).head(5).select("host", "id").collect()
        assert few.equals(expected.filter(expression).head(5).select("host", "id"))
    assert frame.head(7).collect().height == 7
    assert frame.select(pl.len()).collect().item() == table.num_rows
    assert file.scan(["id"], limit=3).to_polars()["id"].to_list() == [0, 1, 2]


def test_pandas(file):
    pytest.importorskip("pandas")
    assert file.scan(["id", "host"], limit=4).to_pandas()["id"].tolist() == [0, 1, 2, 3]


def test_partitions(file, table):
    parts = file.scan(["id"], where="status = 404").partitions(4)
    parts = pickle.loads(pickle.dumps(parts))
    found = pa.concat_tables(part.scan().to_arrow() for part in parts)
    expected = table.filter(pc.field("status") == 404)["id"].to_pylist()
    assert sorted(found["id"].to_pylist()) == sorted(expected)


def test_streams_can_be_read_again(file):
    scan = file.scan(["id"], limit=5)
    assert pa.schema(scan).names == ["id"]
    assert pa.table(scan).num_rows == pa.table(scan).num_rows == 5
    hits = tercet.Hits([tercet.Hit({"row": 1, "score": 2.0, "id": "i", "url": "u", "title": "t"})])
    assert hits.to_arrow()["score"].to_pylist() == hits.to_arrow()["score"].to_pylist() == [2.0]
    assert pa.schema(hits).names == ["row", "score", "id", "url", "title", "snippet"]


def test_messages_as_a_table(tmp_path):
    path = tmp_path / "run.tgm"
    arrays = {"t": np.zeros((2, 3)), "u": np.zeros(4, np.float32)}
    tercet.write_tgm(path, [({"step": step, "mars": {"class": "od"}}, arrays) for step in (0, 6)])
    index = pa.table(tercet.open(path))
    assert index["step"].to_pylist() == [0, 0, 6, 6]
    assert index["mars.class"].to_pylist() == ["od"] * 4
    assert index["shape"].to_pylist() == ["2,3", "4", "2,3", "4"]
    assert index["name"].to_pylist() == ["t", "u", "t", "u"]
    assert pa.schema(tercet.open(path).table()).equals(index.schema)
