"""Tables in pyarrow, DuckDB, Polars and pandas."""

import datetime
import pickle

import numpy as np
import pytest

import tercet

pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")
pc = pytest.importorskip("pyarrow.compute")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    count = 100_000
    score = rng.standard_normal(count)
    score[::1000] = np.nan
    return pa.table(
        {
            "id": pa.array(np.arange(count)),
            "status": pa.array(rng.choice([200, 301, 404, 500], count)),
            "host": pa.array(rng.choice(["a.org", "b.org", "it's", 'q"', "back\\slash", "two\nlines", ') and (id > 5'], count)),
            "score": pa.array(score),
            "some": pa.array([None if at % 7 == 0 else at for at in range(count)], pa.int32()),
            "day": pa.array(np.datetime64("2024-01-01") + (np.arange(count) // 1000), pa.date32()),
            "moment": pa.array(np.datetime64("2024-01-01", "us") + np.arange(count) * 1_000_500, pa.timestamp("us")),
            "utc": pa.array(np.datetime64("2024-01-01", "us") + np.arange(count) * 1_000_500, pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("tables") / "t.tatami"
    tercet.write(path, table)
    return tercet.open(path)


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
    pc.field("host") == "back\\slash",
    pc.field("host") == "two\nlines",
    pc.field("host") == ") and (id > 5",
    pc.field("host").isin(["it's", "a.org"]),
    pc.field("host").isin(['q"', "back\\slash", ") and (id > 5"]) & (pc.field("id") < 5000),
    pc.field("some").isin([1, None, 8]),
    pc.field("id").isin(list(range(0, 300, 3))),
    pc.field("some").is_valid() & (pc.field("some") < 10),
    pc.field("score").is_null(nan_is_null=True),
    pc.field("day") >= datetime.date(2024, 1, 3),
    pc.field("day").isin([datetime.date(2024, 1, 3), datetime.date(2024, 2, 1)]),
    pc.field("moment") < datetime.datetime(2024, 1, 1, 0, 1, 0, 500),
    pc.field("moment") == pa.scalar(datetime.datetime(2024, 1, 1, 0, 0, 2, 1000), pa.timestamp("ms")),
    pc.field("utc") < pa.scalar(datetime.datetime(2024, 1, 1, 0, 1, tzinfo=datetime.timezone.utc), pa.timestamp("us", "UTC")),
    pc.starts_with(pc.field("host"), ") and (id > 5") | (pc.field("id") < 3),
    (pc.field("score") > 1) & ((pc.field("id") < 50) | (pc.field("id") > pc.field("some"))),
    pc.field("id") == pc.field("some"),
    pc.scalar(True),
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


TRANSLATIONS = [
    (pc.field("id") < 10, "`id` < 10"),
    (pc.scalar(10) > pc.field("id"), "`id` < 10"),
    ((pc.field("id") > 1) & (pc.field("score") > 1.5), "`id` > 1"),
    ((pc.field("id") > 1) & (pc.field("moment") >= datetime.datetime(2024, 1, 2)), "`id` > 1 and `moment` >= '2024-01-02T00:00:00.000000'"),
    ((pc.field("id") > 1) & (pc.field("day") >= datetime.date(2024, 1, 2)), "`id` > 1 and `day` >= '2024-01-02'"),
    (pc.field("host").isin(["a", "it's"]) & (pc.field("id") > 1), r"`host` in ('a', 'it\'s') and `id` > 1"),
    (pc.field("some").is_null() & (pc.field("id") > 0), "`some` is null and `id` > 0"),
    (pc.field("some").is_valid(), "`some` is not null"),
    (pc.field("some").isin([1, None]), "(`some` in (1) or `some` is null)"),
    (pc.field("host") == 'a"b\\c\n', r"""`host` = 'a"b\\c\n'"""),
    (~(pc.field("id") > 1) & (pc.field("status") == 200), "`status` = 200"),
    (~(pc.field("id") > 1) | (pc.field("status") == 200), None),
    (((pc.field("id") > 1) | (pc.field("score") > 1)) & (pc.field("status") == 200), "`status` = 200"),
    (((pc.field("id") > 1) & (pc.field("score") > 1)) | (pc.field("status") == 200), "(`id` > 1 or `status` = 200)"),
    ((pc.field("id") + 1 > 3) & (pc.field("status") == 200), "`status` = 200"),
    (pc.match_substring(pc.field("host"), "and (") & (pc.field("status") == 200), "`status` = 200"),
    # The text has strings of options without escapes: such ones are left to the engine.
    (pc.field("host").isin(['a") and (id > 5) and ("']) & (pc.field("status") == 200), None),
    (pc.starts_with(pc.field("host"), '"}) and (id > 5) and ("') & (pc.field("status") == 200), None),
]


@pytest.mark.parametrize("number", range(len(TRANSLATIONS)))
def test_unsupported_parts_of_a_filter_are_skipped(file, table, number):
    from tercet._pushdown import from_arrow

    kinds = {"id": "int", "status": "int", "host": "string", "score": "float", "some": "int", "day": "date", "moment": "timestamp"}
    expression, expected = TRANSLATIONS[number]
    assert from_arrow(expression, kinds) == expected
    assert from_arrow(expression, {**kinds, "two words": "int"}) is None
    if expected is not None:
        # The scan understands it, and selects at least these rows.
        wanted = table.slice(0, 5000).filter(expression)["id"].to_pylist()
        found = file.scan(["id"], f"`id` < 5000 and ({expected})").to_arrow()["id"].to_pylist()
        assert set(wanted) <= set(found)


def test_fragments_read_what_is_asked_for(file, table, monkeypatch):
    asked = []
    original = tercet.Partition.narrow

    def narrow(self, columns=None, where=None, *rest):
        asked.append((columns, where))
        return original(self, columns, where, *rest)

    monkeypatch.setattr(tercet.Partition, "narrow", narrow)
    [*fragments] = file.to_dataset().get_fragments()
    expression = (pc.field("id") < 10) & (pc.field("score") > -9)
    found = pa.concat_tables(one.to_table(columns=["host"], filter=expression) for one in fragments)
    assert found["host"].to_pylist() == table.filter(expression)["host"].to_pylist()
    assert asked == [(["id", "host", "score"], "`id` < 10")] * len(fragments)
    assert pa.schema(fragments[0].partition.narrow(["host"]).scan()).names == ["host"]
    part = file.scan(["id", "status"], where="id < 100").partitions(1)[0].narrow(["status"], "status = 404")
    assert part.scan().to_arrow().equals(file.scan(["status"], where="id < 100 and status = 404").to_arrow())
    with pytest.raises(tercet.RequestError, match="status > "):
        part.narrow(None, "status > ")


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
    assert asked == [(["id", "host", "score"], "`id` < 10")]


def test_duckdb(file, table, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    dataset, table_ = file.to_dataset(), table
    asked = []
    original = tercet.TatamiFile.scan

    def scan_(self, columns=None, where=None, **options):
        asked.append(where)
        return original(self, columns, where, **options)

    monkeypatch.setattr(tercet.TatamiFile, "scan", scan_)
    assert duckdb.sql("select count(*) from dataset where id < 1000 and status = 404").fetchall() == [
        (table.filter((pc.field("id") < 1000) & (pc.field("status") == 404)).num_rows,)
    ]
    rows = duckdb.sql("select host, count(*) as n from dataset group by 1 order by 1").fetchall()
    assert sum(n for _, n in rows) == table.num_rows
    for where, pushed in [
        ("id > 99_990 and moment >= timestamp '2024-01-02'", "`id` > 99990 and `moment` >= "),
        ("id > 99_990 and day >= date '2024-01-02'", "`id` > 99990 and `day` >= '2024-01-02'"),
        ("host in ('a.org', 'it''s') and id < 50", "`host` in ("),
        ("\"some\" is null and id < 50", "`some` is null"),
        ("id < 50 and score > 0", "`id` < 50"),
    ]:
        asked.clear()
        found = duckdb.sql(f"select id from dataset where {where} order by id").fetchall()
        assert found == duckdb.sql(f"select id from 'table' where {where} order by id".replace("'table'", "table_")).fetchall()
        assert any(pushed in str(one) for one in asked), (where, asked)
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
        pl.col("some").is_null() & (pl.col("id") < 30),
        pl.col("some").is_not_null() & (pl.col("id") < 30),
        pl.col("id").is_between(5, 9, closed="left"),
        pl.lit(5) > pl.col("id"),
        pl.col("host").is_in(["it's", 'q"', "two\nlines"]) & (pl.col("id") < 500),
        pl.col("some").is_in([1, 2, None]),
        pl.col("day") == datetime.date(2024, 1, 5),
        pl.col("moment") < datetime.datetime(2024, 1, 1, 0, 1),
    ]:
        found = frame.filter(expression).collect()
        assert found.equals(expected.filter(expression)), expression
        few = frame.filter(expression).head(5).select("host", "id").collect()
        assert few.equals(expected.filter(expression).head(5).select("host", "id"))
    assert frame.head(7).collect().height == 7
    assert frame.select(pl.len()).collect().item() == table.num_rows
    assert file.scan(["id"], limit=3).to_polars()["id"].to_list() == [0, 1, 2]


def test_filters_of_polars_reach_the_scan():
    pl = pytest.importorskip("polars")
    from tercet._pushdown import from_polars

    kinds = {"id": "int", "host": "string", "day": "date", "moment": "timestamp"}
    for expression, expected in [
        (pl.col("id").is_between(5, 9, closed="left"), "`id` >= 5 and `id` < 9"),
        (pl.lit(5) > pl.col("id"), "`id` < 5"),
        (pl.col("id").is_in([1, 2]), "`id` in (1, 2)"),
        (pl.col("host").is_in(["a", "it's"]), r"`host` in ('a', 'it\'s')"),
        (pl.col("host").is_null(), "`host` is null"),
        (pl.col("day") >= datetime.date(2024, 1, 2), "`day` >= '2024-01-02'"),
        (pl.col("moment") >= datetime.datetime(1969, 12, 31, 23, 59, 59, 5), "`moment` >= '1969-12-31T23:59:59.000005'"),
        (pl.col("host").str.starts_with("a") & (pl.col("id") > 1), "`id` > 1"),
        (pl.col("host").str.starts_with("a") | (pl.col("id") > 1), None),
        (~(pl.col("id") > 1), None),
    ]:
        assert from_polars(expression.meta.serialize(format="json"), kinds) == expected


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
