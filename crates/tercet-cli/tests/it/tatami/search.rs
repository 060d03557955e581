//! Indexing and search.

use serde_json::Value;

use super::{TestDir, run_command};

fn dir() -> TestDir {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("docs")).unwrap();
    dir.write("docs/a.txt", "The red fox jumps over the lazy dog.\n");
    dir.write("docs/b.md", "text before\n# On foxes\n\nA fox is red. Another *fox* is grey.\n");
    let page = "<title>Dogs &amp; more</title><script>var fox;</script><p>A grey<b>hound</b><p>runs";
    dir.write("docs/c.html", page);
    dir.write("docs/picture.png", [0u8; 9]);
    dir
}

fn hits(dir: &TestDir, args: &[&str]) -> (i32, Vec<Value>) {
    let result = run_command(dir.command().arg("search").args(args).arg("--json"));
    let json: Value =
        serde_json::from_str(&result.out).unwrap_or_else(|_| panic!("{}{}", result.out, result.err));
    assert!(json["took"]["total_us"].is_u64() && json["stats"]["blocks"].is_u64());
    (result.code, json["hits"].as_array().unwrap().clone())
}

fn urls(hits: &[Value]) -> Vec<&str> {
    hits.iter().map(|hit| hit["url"].as_str().unwrap()).collect()
}

#[test]
fn a_directory_is_indexed_and_searched() {
    let dir = dir();
    let made = dir.ok("index docs -o docs.tatami --url-prefix x/");
    assert!(made.out.starts_with("docs.tatami: 3 documents, "), "{}", made.out);
    assert!(made.err.contains("skipped 1 file with an unsupported extension"), "{}", made.err);
    let (code, found) = hits(&dir, &["docs.tatami", "fox"]);
    assert_eq!((code, urls(&found)), (0, vec!["x/b.md", "x/a.txt"]));
    assert_eq!(found[0]["title"], "On foxes");
    assert_eq!(found[0]["doc_id"].as_str().unwrap().len(), 64);
    assert!(found[1]["snippet"].as_str().unwrap().contains("red fox jumps"));
    let (_, found) = hits(&dir, &["docs.tatami", "greyhound"]);
    assert_eq!(found[0]["title"], "Dogs & more");
    let (_, found) = hits(&dir, &["docs.tatami", "-grey red"]);
    assert_eq!(urls(&found), ["x/a.txt"]);
    let (_, found) = hits(&dir, &["docs.tatami", "\"fox is grey\""]);
    assert_eq!(urls(&found), ["x/b.md"]);
    let (_, found) = hits(&dir, &["docs.tatami", "fox", "--where", "norm_body < 9"]);
    assert_eq!(urls(&found), ["x/a.txt"]);
    let (code, found) = hits(&dir, &["docs.tatami", "cat"]);
    assert_eq!((code, found.len()), (1, 0));
    dir.ok("verify --deep docs.tatami");
    // Indexing is deterministic.
    dir.ok("index docs -o again.tatami --url-prefix x/ --threads 1 --buffer 1B");
    assert_eq!(dir.read("again.tatami"), dir.read("docs.tatami"));
}

#[test]
fn printed_scores_parse_to_the_same_value() {
    let dir = dir();
    dir.ok("index docs -o docs.tatami --snippet-only");
    let file = tercet::tatami::File::open(dir.path("docs.tatami")).unwrap();
    let segment = file.segment().unwrap().unwrap();
    let (_, found) = hits(&dir, &["docs.tatami", "red fox the", "--rank", "native"]);
    let expected = segment.search("red fox the", 10).unwrap();
    assert_eq!(found.len(), expected.len());
    for (hit, expected) in found.iter().zip(expected) {
        let printed: f32 = hit["score"].to_string().parse().unwrap();
        assert_eq!(printed.to_bits(), expected.score.to_bits());
    }
    let (_, found) = hits(&dir, &["docs.tatami", "red fox", "--rank", "bm25", "--explain"]);
    assert_eq!(found[0]["explain"].as_array().unwrap().len(), 2);
}

#[test]
fn jsonl_and_trec_documents_are_indexed() {
    let dir = TestDir::new();
    dir.write(
        "d.jsonl",
        "{\"link\":\"u/1\",\"text\":\"one fox\",\"n\":[1]}\n\n{\"id\":\"second\",\"text\":\"two foxes\",\"title\":null}\n",
    );
    dir.ok("index d.jsonl -o d.tatami --url-field link");
    let (_, found) = hits(&dir, &["d.tatami", "fox foxes"]);
    assert_eq!(found.len(), 2);
    assert!(found.iter().any(|hit| hit["doc_id"] == "second"));
    dir.write(
        "t.trec",
        "<DOC>\n<DOCNO>17</DOCNO>\nan electronic\nfox\n</DOC>\n<DOC>\n<DOCNO>18</DOCNO>\nx\n</DOC>\n",
    );
    dir.ok("index t.trec -o t.tatami");
    let (_, found) = hits(&dir, &["t.tatami", "electronic"]);
    assert_eq!(found[0]["doc_id"], "17");
}

/// A cluster of segments returns the results of one merged segment.
#[test]
fn a_directory_of_segments_is_searched_as_one() {
    let dir = dir();
    std::fs::create_dir(dir.path("all")).unwrap();
    for (name, file) in [("a.txt", "all/1.tatami"), ("b.md", "all/2.tatami"), ("c.html", "all/3.tatami")] {
        dir.ok(&format!("index docs/{name} -o {file} --analyzer english"));
    }
    dir.ok("merge all/1.tatami all/2.tatami all/3.tatami -o one.tatami");
    let scored = |found: &[Value]| -> Vec<(String, String)> {
        found.iter().map(|hit| (hit["url"].to_string(), hit["score"].to_string())).collect()
    };
    let same = || {
        for query in ["fox", "red grey dog", "-grey red", "\"fox is grey\"", "+fox lazy", "cat"] {
            for rank in ["native", "bm25", "relevance"] {
                let (one, alone) = hits(&dir, &["one.tatami", query, "--rank", rank]);
                let (code, found) = hits(&dir, &["all", query, "--rank", rank, "--explain"]);
                assert_eq!((code, scored(&found)), (one, scored(&alone)), "{query} {rank}");
                for hit in &found {
                    let terms = hit["explain"].as_array().unwrap().iter();
                    let sum = terms.fold(0.0f32, |sum, term| sum + term["score"].as_f64().unwrap() as f32);
                    assert_eq!(sum.to_bits(), (hit["score"].as_f64().unwrap() as f32).to_bits(), "{query}");
                }
            }
        }
        let (_, found) = hits(&dir, &["all", "fox", "--where", "norm_body < 9"]);
        assert_eq!(urls(&found), ["docs/a.txt"]);
        assert!(found[0]["file"].as_str().unwrap().ends_with("1.tatami"));
    };
    same();
    let output = dir.ok("search all fox --explain");
    assert!(output.err.contains("2 of 2 files searched"), "{}", output.err);
    assert!(output.out.contains("docs/b.md") && output.out.contains("2.tatami"), "{}", output.out);
    // The same with a manifest, next to a file that is not a member.
    dir.ok("collection add all all/1.tatami all/2.tatami all/3.tatami");
    dir.write("all/4.tatami", b"not of the collection");
    same();
    let wrong = dir.run("search all fox --where nothing=1");
    assert_eq!(wrong.code, 8, "{}", wrong.err);
    // The error names the file that is not a segment.
    dir.ok("collection remove all 3.tatami");
    dir.write("n.jsonl", "{\"n\":1}\n");
    dir.ok("create all/3.tatami --from n.jsonl --force");
    dir.ok("collection add all all/3.tatami");
    let other = dir.run("search all fox");
    assert!(other.code == 8 && other.err.contains("3.tatami: is not a search segment"), "{}", other.err);
}

#[test]
fn invalid_requests_are_rejected() {
    let dir = dir();
    dir.write("bad.jsonl", "{\"url\":\"u\"}\nnot json\n");
    dir.write("none.jsonl", "{\"title\":\"t\"}\n");
    dir.write("open.trec", "<DOC>\n<DOCNO>1</DOCNO>\n");
    for (args, message) in [
        ("index bad.jsonl -o x.tatami", "bad.jsonl: line 2, column 2: invalid JSON object"),
        ("index none.jsonl -o x.tatami", "none.jsonl: line 1: no ID and no field `url`"),
        ("index open.trec -o x.tatami", "open.trec: line 1: unterminated document"),
        ("index missing -o x.tatami", "missing: cannot open: "),
    ] {
        let result = dir.run(args);
        assert!(result.code > 1 && result.err.contains(message), "{args}: {}", result.err);
        assert!(!dir.names().contains(&"x.tatami".to_owned()), "{args}");
    }
    dir.ok("index docs -o docs.tatami --snippet-only=20");
    let query = |query: &str| run_command(dir.command().args(["search", "docs.tatami", query]));
    let wrong = query("fox (red");
    assert_eq!(wrong.code, 8);
    assert!(wrong.err.contains("unmatched `(`"), "{}", wrong.err);
    let phrase = query("\"red fox\"");
    assert!(phrase.code == 8 && phrase.err.contains("phrase queries are not supported"), "{}", phrase.err);
    dir.write("n.jsonl", "{\"n\":1}\n");
    dir.ok("create n.tatami --from n.jsonl");
    let other = run_command(dir.command().args(["search", "n.tatami", "x"]));
    assert!(other.code == 8 && other.err.contains("not a search segment"), "{}", other.err);
    assert_ne!(dir.run("index docs -o docs.tatami").code, 0, "an existing file is not replaced");
}

#[cfg(feature = "arrow")]
#[test]
fn parquet_rows_are_documents() {
    let dir = TestDir::new();
    let rows = "{\"id\":7,\"url\":\"u/1\",\"title\":\"Foxes\",\"body\":\"one red fox\",\"n\":1.5}\n\
        {\"id\":8,\"url\":\"u/2\",\"title\":null,\"body\":\"two dogs\",\"n\":null}\n";
    dir.write("d.jsonl", rows);
    dir.ok("convert d.jsonl d.parquet");
    dir.ok("index d.parquet -o p.tatami");
    dir.ok("index d.jsonl -o j.tatami");
    assert_eq!(dir.read("p.tatami"), dir.read("j.tatami"));
    let (_, found) = hits(&dir, &["p.tatami", "fox"]);
    assert_eq!((&found[0]["doc_id"], &found[0]["title"]), (&"7".into(), &"Foxes".into()));
    dir.ok("index d.parquet -o n.tatami --body-field title --id-field url");
    let (_, found) = hits(&dir, &["n.tatami", "foxes"]);
    assert_eq!(found[0]["doc_id"], "u/1");
    for (args, message) in [
        ("index d.parquet -o x.tatami --body-field nothing", "no column `nothing`"),
        ("index d.parquet -o x.tatami --url-field n --id-field title", "row 1: no field `title` or `n`"),
        ("index d.jsonl -o x.tatami --format parquet", "d.jsonl"),
    ] {
        let refused = dir.run(args);
        assert!(refused.code > 1 && refused.err.contains(message), "{args}: {}", refused.err);
        assert!(!dir.names().contains(&"x.tatami".to_owned()));
    }
}

/// Rows of deleted documents stay in the file, and every command reports them.
#[test]
fn deleted_documents_are_reported() {
    let dir = dir();
    dir.ok("index docs -o docs.tatami");
    assert_eq!(dir.ok("count docs.tatami").err, "");
    let id = dir.ok("cat docs.tatami --columns doc_id --limit 1").out.split('"').nth(3).unwrap().to_owned();
    dir.ok(&format!("delete docs.tatami --id {id}"));
    for args in ["count docs.tatami", "cat docs.tatami --columns url"] {
        let result = dir.ok(args);
        assert!(
            result.err.contains("docs.tatami: includes 1 row of deleted documents"),
            "{args}: {}",
            result.err
        );
    }
    let json: Value = serde_json::from_str(&dir.ok("count docs.tatami --json").out).unwrap();
    assert_eq!((json["count"].as_u64(), json["deleted"].as_u64()), (Some(3), Some(1)));
    let wrong = run_command(dir.command().args(["delete", "docs.tatami", "--where", "nothing = 1"]));
    assert!(wrong.code == 8 && wrong.err.contains("^^^^^^^"), "{}", wrong.err);
}

/// Deleted documents do not come back in a table made of a segment.
#[test]
fn deleted_documents_are_not_converted() {
    let dir = dir();
    dir.ok("index docs -o docs.tatami");
    let first = dir.ok("cat docs.tatami --columns doc_id --limit 1").out;
    let id = first.split('"').nth(3).unwrap().to_owned();
    let rows = dir.ok("count docs.tatami").out.trim().parse::<usize>().unwrap();
    dir.ok("convert docs.tatami all.jsonl");
    assert!(String::from_utf8(dir.read("all.jsonl")).unwrap().contains(&id));
    dir.ok(&format!("delete docs.tatami --id {id}"));
    for args in ["convert docs.tatami out.jsonl", "create out.tatami --from docs.tatami"] {
        let stderr = dir.ok(args).err;
        assert!(stderr.contains("docs.tatami: skipped 1 deleted document\n"), "{args}: {stderr}");
    }
    let text = String::from_utf8(dir.read("out.jsonl")).unwrap();
    assert!(text.lines().count() == rows - 1 && !text.contains(&id), "{text}");
    assert_eq!(dir.ok("cat out.tatami").out, text);
}

/// Documents of several directories have different URLs and IDs.
#[test]
fn files_of_several_directories_have_different_urls() {
    let dir = TestDir::new();
    for name in ["a", "b"] {
        std::fs::create_dir(dir.path(name)).unwrap();
        dir.write(&format!("{name}/x.txt"), format!("fox {name}"));
    }
    assert_eq!(dir.ok("index a b -o ab.tatami").err, "");
    assert_eq!(sorted_urls(&dir, &["ab.tatami", "fox"]), ["a/x.txt", "b/x.txt"]);
    assert_eq!(dir.ok("index a -o one.tatami").err, "");
    assert_eq!(sorted_urls(&dir, &["one.tatami", "fox"]), ["x.txt"]);
    dir.write("x.txt", "fox");
    let same = dir.run("index a x.txt -o same.tatami");
    assert_eq!(same.code, 8, "{}", same.err);
    assert!(same.err.contains("x.txt: has the same URL as a/x.txt: `x.txt`"), "{}", same.err);
    dir.write(
        "ids.jsonl",
        "{\"id\":\"1\",\"body\":\"x\"}\n{\"id\":\"2\",\"body\":\"x\"}\n{\"id\":\"1\",\"body\":\"y\"}\n",
    );
    let twice = dir.ok("index ids.jsonl -o ids.tatami").err;
    assert!(twice.contains("warning: 1 document has the ID of an earlier document"), "{twice}");
}

/// The URLs of the hits, sorted.
fn sorted_urls(dir: &TestDir, args: &[&str]) -> Vec<String> {
    let (_, found) = hits(dir, args);
    let mut urls: Vec<String> = urls(&found).into_iter().map(str::to_owned).collect();
    urls.sort();
    urls
}

/// A word of several terms is a phrase if it has a sign.
#[test]
fn signed_words_of_several_terms_are_phrases() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("d")).unwrap();
    dir.write("d/1.txt", "a state-of-the-art fox");
    dir.write("d/2.txt", "the art of the fox in a state");
    dir.write("d/3.txt", "the number 3.14");
    dir.write("d/4.txt", "14 foxes and 3 dogs");
    dir.write("d/5.txt", "日本語");
    dir.write("d/6.txt", "本語と日本人");
    dir.write("d/7.txt", "今日");
    dir.ok("index d -o d.tatami --analyzer english");
    dir.ok("index d -o s.tatami --analyzer english --snippet-only");
    let cases: [(&str, &[&str], &[&str]); 10] = [
        ("fox -state-of-the-art", &["2.txt", "4.txt"], &["4.txt"]),
        ("+state-of-the-art", &["1.txt"], &["1.txt", "2.txt"]),
        ("fox AND state-of-the-art", &["1.txt"], &["1.txt", "2.txt"]),
        ("+3.14", &["3.txt"], &["3.txt", "4.txt"]),
        ("number 14 -3.14", &["4.txt"], &[]),
        ("日本 -日本語", &["6.txt"], &[]),
        ("+日本語", &["5.txt"], &["5.txt", "6.txt"]),
        ("日", &["5.txt", "6.txt"], &["5.txt", "6.txt"]),
        ("人 OR 本", &["5.txt", "6.txt"], &["5.txt", "6.txt"]),
        ("fox -state-of-th*", &["4.txt"], &["4.txt"]),
    ];
    for (query, full, snippets) in cases {
        assert_eq!(sorted_urls(&dir, &["d.tatami", query]), full, "{query}");
        assert_eq!(sorted_urls(&dir, &["s.tatami", query]), snippets, "{query} with snippets only");
    }
    assert_eq!(sorted_urls(&dir, &["d.tatami", "the-fox"]), sorted_urls(&dir, &["d.tatami", "fox"]));
    let phrase = run_command(dir.command().args(["search", "s.tatami", "\"the fox\""]));
    assert!(phrase.code != 0 && phrase.code != 1, "{}", phrase.err);
}

/// Segments with different analyzers have different terms of one word.
#[test]
fn words_are_missing_if_no_analyzer_finds_them() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("d")).unwrap();
    dir.write("a.txt", "running");
    dir.write("b.txt", "walking");
    dir.ok("index a.txt -o d/a.tatami --analyzer english");
    dir.ok("index b.txt -o d/b.tatami --analyzer standard");
    let stderr = run_command(dir.command().args(["search", "d", "running walking turtles"])).err;
    assert!(stderr.matches("no document contains").count() == 1 && stderr.contains("`turtles`"), "{stderr}");
    let stderr = run_command(dir.command().args(["search", "d", "runnin*"])).err;
    assert!(stderr.contains("prefixes match stems (analyzer english)"), "{stderr}");
    let stderr = run_command(dir.command().args(["search", "d/b.tatami", "walkin*"])).err;
    assert!(!stderr.contains("stems"), "{stderr}");
}

/// Pages, totals, facets, orders, completions, corrections and similar documents.
#[test]
fn results_are_paged_counted_and_sorted() {
    let dir = TestDir::new();
    let line = |n: u32| {
        format!(
            "{{\"id\":\"{n}\",\"url\":\"u/{n}\",\"title\":\"{}\",\"body\":\"A fox{}\"}}\n",
            "t ".repeat(n as usize % 3),
            " received".repeat(n as usize)
        )
    };
    dir.write("d.jsonl", (0..12).map(line).collect::<String>());
    dir.ok("index d.jsonl -o d.tatami --analyzer english");
    let json = |args: &str| -> Value { serde_json::from_str(&dir.ok(args).out).unwrap() };
    let page = json("search d.tatami fox -n 5 --offset 10 --json");
    assert_eq!(page["total"]["documents"], 12);
    assert_eq!(
        (page["total"]["is_exact"].as_bool(), page["hits"].as_array().unwrap().len()),
        (Some(true), 2)
    );
    let took = &page["took"];
    let parts = ["ranking_us", "counting_us", "fetching_us", "highlighting_us"];
    let sum: u64 = parts.iter().map(|part| took[part].as_u64().unwrap()).sum();
    assert!(took["total_us"].as_u64().unwrap().abs_diff(sum) <= 4, "{took}");
    let sorted =
        json("search d.tatami fox --sort norm_body:desc -n 2 --facet norm_title --facet-values 2 --json");
    let ids: Vec<_> =
        sorted["hits"].as_array().unwrap().iter().map(|hit| hit["doc_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["11", "10"]);
    assert!(sorted["hits"][0]["score"].is_null());
    let facet = &sorted["facets"][0];
    assert_eq!((&facet["distinct"], &facet["others"]), (&3.into(), &4.into()));
    assert_eq!(facet["values"][1].to_string(), "{\"value\":1,\"documents\":4}");
    let printed = dir.ok("search d.tatami fox -n 1 --facet norm_title");
    assert!(printed.out.contains("norm_title\n        4  0\n"), "{}", printed.out);
    assert!(printed.err.contains("1 hit of 12 in "), "{}", printed.err);
    let wrong = dir.run("search d.tatami recieved");
    assert!(wrong.err.contains("no document contains `recieved`; did you mean `received`?"), "{}", wrong.err);
    assert_eq!(dir.ok("search d.tatami --complete rec").out, "received  11\n");
    assert_eq!(dir.run("search d.tatami --complete xyz").code, 1);
    let like = json("search d.tatami --like 3 --json -n 20");
    assert_eq!((like["hits"].as_array().unwrap().len(), &like["like"]), (11, &"3".into()));
    let none = dir.run("search d.tatami --like none");
    assert!(none.code == 8 && none.err.contains("no document with the ID `none`"), "{}", none.err);
    assert_eq!(dir.run("search d.tatami").code, 2);
}

/// The newest of several documents with one ID is found.
#[test]
fn older_versions_are_not_found() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("all")).unwrap();
    dir.write("old.jsonl", "{\"id\":\"1\",\"body\":\"fox fox fox\"}\n{\"id\":\"2\",\"body\":\"fox\"}\n");
    dir.write("new.jsonl", "{\"id\":\"1\",\"body\":\"one fox in many words\"}\n");
    dir.ok("index old.jsonl -o all/a.tatami");
    dir.ok("index new.jsonl -o all/b.tatami");
    let (_, found) = hits(&dir, &["all", "fox"]);
    let ids: Vec<_> =
        found.iter().map(|hit| (hit["doc_id"].as_str().unwrap(), hit["snippet"].as_str().unwrap())).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&("1", "one fox in many words")), "{ids:?}");
    let notes = dir.ok("search all fox").err;
    assert!(notes.contains("1 older version of documents with the same ID not searched"), "{notes}");
}

/// The first k of the best k + 1 hits are the best k, also with equal scores.
#[test]
fn equal_scores_are_ordered_by_id() {
    let dir = TestDir::new();
    for name in ["tie", "same"] {
        std::fs::create_dir(dir.path(name)).unwrap();
    }
    let line = |id: &str, url: &str, text: &str| format!(r#"{{"id":"{id}","url":"{url}","text":"{text}"}}"#);
    let ids: Vec<String> = (0..40).rev().map(|number| format!("d{number:02}")).collect();
    dir.write("t.jsonl", ids.iter().map(|id| line(id, "", "hello") + "\n").collect::<String>());
    dir.ok("index t.jsonl -o tie/1.tatami");
    for k in [1, 2, 3, 7, 40, 50] {
        let (_, found) = hits(&dir, &["tie", "hello", "-k", &k.to_string()]);
        let found: Vec<&str> = found.iter().map(|hit| hit["doc_id"].as_str().unwrap()).collect();
        let expected: Vec<&str> = ids.iter().rev().take(k).map(String::as_str).collect();
        assert_eq!(found, expected, "{k}");
    }
    // An ID may occur many times.
    let mut lines: Vec<String> = (0..8).map(|n| line("same", &format!("u{n}"), "hello hello")).collect();
    lines.extend((0..3).map(|n| line(&format!("x{n}"), "", "hello")));
    dir.write("s.jsonl", lines.join("\n"));
    dir.ok("index s.jsonl -o same/1.tatami");
    for (k, count) in [(1, 1), (2, 2), (3, 3), (4, 4), (10, 4)] {
        assert_eq!(hits(&dir, &["same", "hello", "-k", &k.to_string()]).1.len(), count, "{k}");
    }
}
