//! Fields of documents as columns, updates of segments, and which files are indexed.

use std::io::Write as _;

use serde_json::Value;

use super::{TestDir, lines, run_command};

const SHOP: &str = concat!(
    r#"{"id":"1","title":"Desk lamp","text":"a bright lamp","lang":"en","price":19.5,"stock":3,"tags":["light","desk"],"maker":{"name":"Lux","since":1990}}"#,
    "\n",
    r#"{"id":"2","title":"Lampe","text":"eine helle lamp","lang":"de","price":25,"stock":0,"tags":["light"],"mixed":7}"#,
    "\n",
    r#"{"id":"3","title":"Chair","text":"a chair, no lamp","lang":"en","price":80,"sold":true,"mixed":"seven"}"#,
    "\n",
);

fn ids(dir: &TestDir, args: &[&str]) -> Vec<String> {
    let result = run_command(dir.command().arg("search").args(args).arg("--json"));
    let json: Value =
        serde_json::from_str(&result.out).unwrap_or_else(|_| panic!("{}{}", result.out, result.err));
    let hits = json["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["doc_id"].as_str().unwrap().to_owned()).collect()
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort_unstable();
    ids
}

#[test]
fn fields_are_kept_as_typed_columns() {
    let dir = TestDir::new();
    dir.write("shop.jsonl", SHOP);
    let made = dir.ok("index shop.jsonl -o shop.tatami --analyzer standard");
    for column in ["lang string", "price float64", "stock int64", "tags list of string", "maker.since int64"]
    {
        assert!(made.out.contains(column), "{column}: {}", made.out);
    }
    assert!(made.out.contains("mixed string") && made.out.contains("sold bool"), "{}", made.out);
    assert_eq!(
        ids(&dir, &["shop.tatami", "lamp", "--where", "price < 50", "--sort", "price:desc"]),
        ["2", "1"]
    );
    assert_eq!(sorted(ids(&dir, &["shop.tatami", "+lamp +price:[20 TO 100]"])), ["2", "3"]);
    assert_eq!(ids(&dir, &["shop.tatami", "+lamp +tags:desk"]), ["1"]);
    assert_eq!(ids(&dir, &["shop.tatami", "+mixed:7 lamp"]), ["2"]);
    assert_eq!(ids(&dir, &["shop.tatami", "maker.name:Lux"]), ["1"]);
    let facets =
        run_command(dir.command().args(["search", "shop.tatami", "lamp", "--facet", "tags", "-n", "1"]));
    assert!(facets.out.contains("2  light") && facets.out.contains("1  desk"), "{}", facets.out);
    let spaced = run_command(dir.command().args(["search", "shop.tatami", "lamp price: 15"]));
    assert!(spaced.err.contains("`price:` before a space is text: write `price:value`"), "{}", spaced.err);
    // Beside a member without these columns.
    std::fs::create_dir(dir.path("all")).unwrap();
    std::fs::copy(dir.path("shop.tatami"), dir.path("all/b.tatami")).unwrap();
    dir.write("plain.jsonl", "{\"id\":\"4\",\"text\":\"an old lamp\"}\n");
    dir.ok("index plain.jsonl -o all/a.tatami --analyzer standard");
    assert_eq!(sorted(ids(&dir, &["all", "lamp -lang:de"])), ["1", "3", "4"]);
    assert_eq!(ids(&dir, &["all", "lamp", "--where", "price < 30", "--sort", "price:desc"]), ["2", "1"]);
    let nothing = run_command(dir.command().args(["search", "all", "lamp", "--where", "weight < 30"]));
    assert!(nothing.code == 8 && nothing.err.contains("has no column `weight`"), "{}", nothing.err);
    let unknown = run_command(dir.command().args(["search", "shop.tatami", "colour:red"]));
    assert!(unknown.code == 8 && unknown.err.contains("unknown field `colour`"), "{}", unknown.err);
    dir.ok("verify --deep shop.tatami");

    let some = dir.ok("index shop.jsonl -o some.tatami --skip-field price --skip-field maker.name --json");
    assert!(!some.out.contains("\"price\"") && !some.out.contains("maker.name"), "{}", some.out);
    let none = dir.ok("index shop.jsonl -o none.tatami --no-fields --json");
    assert!(none.out.contains("\"columns\": []"), "{}", none.out);
    // Nothing is dropped without a warning.
    let interop = dir.ok("index shop.jsonl -o interop.tatami --profile interop");
    let warning = "not kept as a column: price: `--profile interop` writes no columns for fields";
    assert!(interop.err.contains(warning), "{}", interop.err);
}

#[test]
fn names_of_the_segment_are_not_taken() {
    let dir = TestDir::new();
    dir.write(
        "a.jsonl",
        "{\"key\":\"k\",\"doc_id\":\"other\",\"text\":\"a\",\"norm_url\":5,\"body\":\"b\"}\n",
    );
    dir.ok("index a.jsonl -o a.tatami --id-field key");
    let row = dir.ok("cat a.tatami --columns doc_id,doc_id_2,norm_url_2,text,body").out;
    assert_eq!(
        row,
        "{\"doc_id\":\"k\",\"doc_id_2\":\"other\",\"norm_url_2\":5,\"text\":\"a\",\"body\":\"b\"}\n"
    );
}

#[cfg(feature = "arrow")]
#[test]
fn columns_of_tables_are_kept() {
    let dir = TestDir::new();
    // A table has one type of a column.
    dir.write("shop.jsonl", SHOP.replace("\"mixed\":7", "\"mixed\":\"7\""));
    dir.ok("create shop-table.tatami --from shop.jsonl");
    dir.ok("convert shop-table.tatami shop.arrow");
    dir.ok("convert shop-table.tatami shop.parquet");
    for file in ["shop-table.tatami", "shop.arrow", "shop.parquet"] {
        dir.ok(&format!("index {file} -o out.tatami --force --analyzer standard"));
        assert_eq!(ids(&dir, &["out.tatami", "+lamp +tags:desk"]), ["1"], "{file}");
        assert_eq!(sorted(ids(&dir, &["out.tatami", "+lamp +price:>=25"])), ["2", "3"], "{file}");
    }
    // A segment is a table too: its documents are indexed again.
    dir.ok("index out.tatami -o again.tatami --analyzer english");
    assert_eq!(ids(&dir, &["again.tatami", "+lamps +stock:3"]), ["1"]);
    let columns = dir.ok("inspect again.tatami").out;
    assert!(!columns.contains("norm_body_2"), "{columns}");
}

#[test]
fn fields_with_dates_only_are_dates() {
    let dir = TestDir::new();
    let line = |id: u32, day: &str, other: &str| {
        format!("{{\"id\":\"{id}\",\"text\":\"lamp\",\"day\":{day},\"other\":\"{other}\"}}\n")
    };
    let lines = [
        line(1, "\"2024-02-29\"", "2024-01-01"),
        line(2, "\"2023-12-31\"", "2023-02-29"),
        line(3, "null", "2024-1-1"),
        line(4, "\"2024-06-21\"", "2024-06-21"),
    ];
    dir.write("d.jsonl", lines.concat());
    let made = dir.ok("index d.jsonl -o d.tatami --analyzer standard");
    assert!(made.out.contains("day date") && made.out.contains("other string"), "{}", made.out);
    assert_eq!(ids(&dir, &["d.tatami", "+lamp +day:[2024-01-01 TO 2024-05-01]"]), ["1"]);
    assert_eq!(sorted(ids(&dir, &["d.tatami", "day:>2023-12-31"])), ["1", "4"]);
    assert_eq!(ids(&dir, &["d.tatami", "lamp", "--sort", "day:desc"]), ["4", "1", "2", "3"]);
    assert_eq!(ids(&dir, &["d.tatami", "lamp", "--where", "day = '2024-02-29'"]), ["1"]);
    let days = dir.ok("cat d.tatami --columns day,other").out;
    assert!(days.starts_with("{\"day\":\"2024-02-29\",\"other\":\"2024-01-01\"}\n"), "{days}");
    let wrong = run_command(dir.command().args(["search", "d.tatami", "day:tomorrow"]));
    assert!(wrong.code == 8 && wrong.err.contains("day"), "{}", wrong.err);
    // Beside another file, where the field has other values, it is a string.
    dir.write("e.jsonl", line(5, "\"soon\"", ""));
    let made = dir.ok("index d.jsonl e.jsonl -o e.tatami --analyzer standard");
    assert!(made.out.contains("day string"), "{}", made.out);
    assert_eq!(ids(&dir, &["e.tatami", "day:soon"]), ["5"]);
    assert_eq!(ids(&dir, &["e.tatami", "day:2024-02-29"]), ["1"]);
}

#[test]
fn an_update_indexes_what_changed() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("docs")).unwrap();
    let update = || dir.ok("index docs -o segments --update --analyzer english --no-ignore").out;
    dir.write("docs/a.txt", "red foxes");
    dir.write("docs/b.txt", "grey wolves");
    dir.write("docs/shop.jsonl", SHOP);
    assert!(
        update()
            .starts_with("segments: 5 added, 0 changed, 0 unchanged, 0 deleted; 5 documents in 1 segment")
    );
    let files = std::fs::read_dir(dir.path("segments")).unwrap().count();
    assert!(
        update()
            .starts_with("segments: 0 added, 0 changed, 5 unchanged, 0 deleted; 5 documents in 1 segment")
    );
    assert_eq!(std::fs::read_dir(dir.path("segments")).unwrap().count(), files, "nothing is written");

    dir.write("docs/a.txt", "blue foxes");
    std::fs::remove_file(dir.path("docs/b.txt")).unwrap();
    dir.write("docs/shop.jsonl", SHOP.replace("\"stock\":3", "\"stock\":4"));
    dir.write("docs/c.txt", "a new fox");
    assert!(
        update()
            .starts_with("segments: 1 added, 2 changed, 2 unchanged, 1 deleted; 5 documents in 2 segments")
    );
    assert_eq!(ids(&dir, &["segments", "red"]).len() + ids(&dir, &["segments", "wolf"]).len(), 0);
    assert_eq!(ids(&dir, &["segments", "blue"]).len(), 1);
    assert_eq!(ids(&dir, &["segments", "fox"]).len(), 2);
    assert_eq!(ids(&dir, &["segments", "+lamp +stock:4"]), ["1"]);
    assert_eq!(ids(&dir, &["segments", "+lamp +stock:3"]), [""; 0]);
    // The same as an index from the beginning, but for deleted documents in the statistics.
    let all = sorted(ids(&dir, &["segments", "*"]));
    dir.ok("index docs -o fresh.tatami --analyzer english");
    assert_eq!(all, sorted(ids(&dir, &["fresh.tatami", "*"])));
    assert_eq!(dir.run("verify --deep segments").code, 0);

    // Other columns: everything is indexed again.
    dir.write("docs/d.jsonl", "{\"id\":\"9\",\"text\":\"a fox\",\"weight\":4}\n");
    let result = dir.ok("index docs -o segments --update --analyzer english");
    assert!(result.err.contains("all documents were indexed again: other columns"), "{}", result.err);
    assert!(result.out.contains("6 documents in 1 segment"), "{}", result.out);
    assert_eq!(ids(&dir, &["segments", "+fox +weight:4"]), ["9"]);
}

/// A file that cannot be read deletes nothing, and of several versions the last one counts.
#[test]
fn updates_lose_nothing() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("docs")).unwrap();
    dir.write("docs/a.trec", "<DOC><DOCNO>1</DOCNO>first</DOC><DOC><DOCNO>2</DOCNO>second</DOC>");
    dir.write("docs/b.jsonl", "{\"id\":\"x\",\"text\":\"old\"}\n{\"id\":\"x\",\"text\":\"new\"}\n");
    dir.ok("index docs -o s --update --analyzer standard");
    assert_eq!(sorted(ids(&dir, &["s", "*"])), ["1", "2", "x"]);
    assert_eq!(ids(&dir, &["s", "old"]), [""; 0]);
    assert_eq!(ids(&dir, &["s", "new"]), ["x"]);
    let again = dir.ok("index docs -o s --update --analyzer standard").out;
    assert!(
        again.starts_with("s: 0 added, 1 changed, ") || again.starts_with("s: 0 added, 0 changed, "),
        "{again}"
    );
    assert_eq!(ids(&dir, &["s", "new"]), ["x"]);

    dir.write("docs/a.trec", "not TREC");
    let result = dir.ok("index docs -o s --update --analyzer standard");
    assert!(
        result.err.contains("2 missing documents kept, because not all files could be read"),
        "{}",
        result.err
    );
    assert_eq!(sorted(ids(&dir, &["s", "*"])), ["1", "2", "x"]);
    let strict = dir.run("index docs -o s --update --analyzer standard --strict");
    assert_ne!(strict.code, 0);
    assert_eq!(sorted(ids(&dir, &["s", "*"])), ["1", "2", "x"]);
    std::fs::remove_file(dir.path("docs/a.trec")).unwrap();
    dir.ok("index docs -o s --update --analyzer standard");
    assert_eq!(ids(&dir, &["s", "*"]), ["x"]);

    // A directory with other segments is not taken over.
    std::fs::create_dir(dir.path("other")).unwrap();
    dir.ok("index docs -o other/mine.tatami");
    let refused = dir.run("index docs -o other --update");
    assert!(
        refused.code == 8 && refused.err.contains("has `mine.tatami` and no manifest"),
        "{}",
        refused.err
    );
    dir.ok("collection add other other/mine.tatami");
    let refused = dir.run("index docs -o other --update");
    assert!(refused.code == 8 && refused.err.contains("a segment that no update wrote"), "{}", refused.err);
}

/// Many small updates are merged, and files of merged segments are removed by later updates.
#[test]
fn updates_are_merged() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("docs")).unwrap();
    for number in 0..24 {
        dir.write(&format!("docs/{number}.txt"), format!("word{number} common"));
        dir.ok("index docs -o s --update --analyzer standard");
        assert_eq!(ids(&dir, &["s", "common", "-n", "0"]).len(), number + 1);
    }
    let files = std::fs::read_dir(dir.path("s")).unwrap();
    let segments = files.filter(|file| {
        file.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "tatami")
    });
    assert!(segments.count() <= 21);
    assert_eq!(dir.run("verify --deep s").code, 0);
}

/// A search beside updates finds all documents, each in the same version.
#[test]
fn searches_beside_updates_see_one_version() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("docs")).unwrap();
    let write = |version: usize| {
        for number in 0..5 {
            dir.write(&format!("docs/{number}.txt"), format!("common version{version}"));
        }
        dir.ok("index docs -o s --update --analyzer standard");
    };
    write(0);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let mut searches = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Enough for a merge, and for files of merged segments to be removed.
            (1..=24).for_each(write);
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let mut last = 0;
        while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
            let result = run_command(dir.command().args(["search", "s", "common", "--json"]));
            assert_eq!(result.code, 0, "{}", result.err);
            let json: Value = serde_json::from_str(&result.out).unwrap();
            let hits = json["hits"].as_array().unwrap();
            assert_eq!((hits.len(), &json["total"]["documents"]), (5, &5.into()), "{}", result.out);
            let versions: Vec<usize> = hits
                .iter()
                .map(|hit| hit["snippet"].as_str().unwrap()["common version".len()..].parse().unwrap())
                .collect();
            assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
            assert!(versions[0] >= last, "version {} after {last}", versions[0]);
            (last, searches) = (versions[0], searches + 1);
        }
    });
    assert!(searches > 3, "{searches} searches");
}

#[test]
fn directories_are_filtered() {
    let dir = TestDir::new();
    for path in ["docs", "docs/drafts", "docs/build", "docs/.cache"] {
        std::fs::create_dir(dir.path(path)).unwrap();
    }
    for name in ["a.txt", "b.md", "skip.txt", "drafts/c.txt", "build/d.txt", ".cache/e.txt", ".hidden.txt"] {
        dir.write(&format!("docs/{name}"), "words");
    }
    dir.write("docs/.gitignore", "build/\nskip.*\n!keep.txt\n");
    dir.write("docs/drafts/.ignore", "f.txt\n");
    dir.write("docs/drafts/f.txt", "words");
    let urls = |options: &str| {
        dir.ok(&format!("index docs -o out.tatami --force {options}"));
        let mut urls: Vec<String> = dir
            .ok("cat out.tatami --columns url")
            .out
            .lines()
            .map(|line| line[8..line.len() - 2].to_owned())
            .collect();
        urls.sort_unstable();
        urls.join(" ")
    };
    assert_eq!(urls(""), "a.txt b.md drafts/c.txt");
    assert_eq!(urls("--hidden"), ".cache/e.txt .hidden.txt a.txt b.md drafts/c.txt");
    assert_eq!(urls("--no-ignore"), "a.txt b.md build/d.txt drafts/c.txt drafts/f.txt skip.txt");
    assert_eq!(urls("--include *.md"), "b.md");
    assert_eq!(urls("--exclude drafts/ --exclude *.md"), "a.txt");
    let result = dir.ok("index docs -o out.tatami --force");
    let note = "skipped 7 hidden, ignored or excluded files and directories";
    assert!(result.err.contains(note), "{}", result.err);
    let invalid = dir.run("index docs -o out.tatami --force --include [a");
    assert!(
        invalid.code == 8 && invalid.err.contains("invalid pattern `[a`: unmatched `[`"),
        "{}",
        invalid.err
    );
    // A named file is indexed in any case.
    dir.ok("index docs/skip.txt -o out.tatami --force");
}

#[test]
fn compressed_files_are_decompressed() {
    let dir = TestDir::new();
    let gzip = |text: &str| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(text.as_bytes()).unwrap();
        out.finish().unwrap()
    };
    std::fs::create_dir(dir.path("docs")).unwrap();
    dir.write("docs/a.txt.gz", gzip("red fox"));
    dir.write("docs/b.jsonl.gz", gzip(SHOP));
    dir.write("docs/c.trec.gz", gzip("<DOC><DOCNO>7</DOCNO>a wolf</DOC>"));
    dir.ok("index docs -o out.tatami --analyzer standard");
    assert_eq!(ids(&dir, &["out.tatami", "fox"]).len(), 1);
    assert_eq!(ids(&dir, &["out.tatami", "+lamp +price:80"]), ["3"]);
    assert_eq!(ids(&dir, &["out.tatami", "wolf"]), ["7"]);
}

/// Members of a collection are documents, without rows that are deleted in the manifest.
#[test]
fn collections_are_indexed() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("c")).unwrap();
    for (name, id) in [("a", 1), ("b", 3)] {
        dir.write(
            "rows.jsonl",
            lines(id..id + 2, |id| format!(r#"{{"id":"d{id}","body":"alpha {name}","n":{id}}}"#)),
        );
        dir.ok(&format!("create c/{name}.tatami --from rows.jsonl"));
        dir.ok(&format!("collection add c c/{name}.tatami"));
    }
    dir.write("c/other.tatami", dir.read("c/a.tatami"));
    dir.ok("delete c --where n=2");
    let all = |args: &[&str]| sorted(ids(&dir, args));
    for (path, format) in [("c", ""), ("c/", ""), ("c", " --format tatami")] {
        let done = dir.ok(&format!("index {path} -o all.tatami --force{format}"));
        assert!(done.out.starts_with("all.tatami: 3 documents"), "{path}: {}", done.out);
        assert_eq!(all(&["all.tatami", "alpha"]), ["d1", "d3", "d4"], "{path}");
    }
    assert_eq!(all(&["all.tatami", "alpha", "--where", "n > 3"]), ["d4"]);
    // Documents beside the members are the documents of the directory.
    dir.write("c/note.txt", "beta");
    assert!(dir.ok("index c -o all.tatami --force").out.starts_with("all.tatami: 1 document,"));
    std::fs::remove_file(dir.path("c/note.txt")).unwrap();
    std::fs::remove_file(dir.path("c/b.tatami")).unwrap();
    assert_eq!(dir.run("index c -o all.tatami --force").code, 3);
    dir.write("c/tatami.manifest", b"damaged");
    assert_eq!(dir.run("index c -o all.tatami --force").code, 4);
}
