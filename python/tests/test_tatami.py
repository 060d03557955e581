"""Tables and search."""

import datetime
import pickle

import pyarrow as pa
import pytest

import tercet


@pytest.fixture
def table(tmp_path):
    rows = 1000
    data = pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "status": pa.array([200 if n % 10 else 404 for n in range(rows)], pa.int32()),
            "url": [f"https://example.org/{n}" for n in range(rows)],
            "day": pa.array([datetime.date(2024, 1, 1 + n % 28) for n in range(rows)]),
            "score": pa.array([None if n % 7 == 0 else n / 3 for n in range(rows)]),
        }
    )
    path = tmp_path / "crawl.tatami"
    assert tercet.write_tatami(path, data) == rows
    return path, data


def test_tables_round_trip(table):
    path, data = table
    file = tercet.open(path)
    assert len(file) == 1000 and file.columns == data.column_names
    found = file.scan().to_arrow()
    assert found.cast(data.schema).equals(data)


def test_files_become_tables(tmp_path):
    (tmp_path / "a.csv").write_text("name;people;since\nUlm;126000;1181-01-01\nBonn;331000;1244-03-18\n")
    (tmp_path / "b.csv").write_text("name;people;since\nJena;;1236-01-01\n")
    path = tmp_path / "cities.tatami"
    assert tercet.write_tatami(path, [tmp_path / "a.csv", tmp_path / "b.csv"], sort="name", blooms=["name"]) == 3
    found = tercet.open(path).scan().to_arrow().to_pydict()
    assert found["name"] == ["Bonn", "Jena", "Ulm"] and found["people"] == [331000, None, 126000]
    assert found["since"][0] == datetime.date(1244, 3, 18)
    with pytest.raises(tercet.RequestError, match="no such column"):
        tercet.write_tatami(path, str(tmp_path / "a.csv"), sort="x", overwrite=True)
    with pytest.raises(tercet.RequestError, match="file exists"):
        tercet.write_tatami(path, tmp_path / "a.csv")
    (tmp_path / "bad.csv").write_text("a,b\n1\n")
    with pytest.raises(tercet.MalformedError, match="line 2"):
        tercet.write_tatami(tmp_path / "bad.tatami", tmp_path / "bad.csv")
    assert not (tmp_path / "bad.tatami").exists()


def test_filters_and_columns(table):
    path, data = table
    file = tercet.open(path)
    scan = file.scan(["url", "status"], where="status >= 400 and id < 500")
    assert scan.count() == 50
    found = scan.to_arrow()
    assert found.column_names == ["url", "status"] and found.num_rows == 50
    assert scan.to_arrow().equals(found), "a scan can be read again"
    assert file.scan(limit=3, offset=5).to_arrow()["id"].to_pylist() == [5, 6, 7]
    assert file.scan(rows=[7, 900]).to_arrow()["id"].to_pylist() == [7, 900]
    with pytest.raises(KeyError, match="did you mean 'status'"):
        file.scan(["statis"])
    with pytest.raises(tercet.RequestError):
        file.scan(where="status >")
    again = pickle.loads(pickle.dumps(scan))
    assert again.to_arrow().equals(found)


def test_columns_of_a_file(table):
    path, data = table
    file = tercet.open(path)
    assert list(file) == data.column_names and "url" in file and "uri" not in file
    assert file["url"].to_arrow()["url"].to_pylist() == data["url"].to_pylist()
    assert file[["id", "url"]].to_arrow().column_names == ["id", "url"]
    assert sum(batch.num_rows for batch in file["id"]) == 1000
    with pytest.raises(KeyError, match="did you mean 'url'"):
        file["urls"]


def test_other_engines_read_scans(table):
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    path, _ = table
    tab = tercet.open(path).scan(where="status = 404")  # noqa: F841: DuckDB finds it by name
    assert duckdb.sql("select count(*) from tab").fetchall() == [(100,)]
    assert tercet.open(path).scan().to_polars().filter(polars.col("status") == 404).height == 100
    assert tercet.open(path).scan(["id"]).to_pandas()["id"].sum() == 499500


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(tercet.RequestError, match="__arrow_c_stream__"):
        tercet.write_tatami(tmp_path / "a.tatami", [1, 2])
    assert not list(tmp_path.iterdir())


def test_search(golden):
    file = tercet.open(golden / "tatami" / "seg_full.tatami")
    assert file.has_index
    term = file.scan(limit=1).to_arrow().to_pylist()[0]["title"].split()[0]
    hits = file.search(term, k=5)
    assert hits and hits[0].score >= hits[-1].score
    assert hits.to_arrow().num_rows == len(hits)
    assert "<li>" in hits._repr_html_()
    with pytest.raises(tercet.RequestError):
        file.search('"open')
    with pytest.raises(tercet.RequestError, match="ranking"):
        file.search(term, rank="best")


def test_tables_without_an_index(table):
    with pytest.raises(tercet.RequestError, match="no search index"):
        tercet.open(table[0]).search("x")
