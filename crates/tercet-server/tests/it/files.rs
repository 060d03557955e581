//! Files that appear, change and go; raw bytes; collections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;
use tercet_server::Options;

use crate::support::{Served, arrays, documents, messages, sample};

#[tokio::test]
async fn new_replaced_and_removed_files_are_found() {
    let directory = sample();
    let served = Served::new(directory.path());
    let id = served.id("notes.tatami").await;
    assert_eq!(served.json("/api/search?q=memory").await["matches"], 2);
    // Replaced: the same ID, another version.
    let before = served.json(&format!("/api/files/{id}")).await["version"].clone();
    documents(&directory.path().join("notes.tatami"), &[("d", "Turtles", "memory of turtles")]);
    documents(&directory.path().join("more.tatami"), &[("e", "More", "memory again")]);
    std::fs::remove_file(directory.path().join("data/run.tgm")).unwrap();
    served.state.rescan();
    assert_ne!(served.json(&format!("/api/files/{id}")).await["version"], before);
    let found = served.json("/api/search?q=memory").await;
    let mut ids: Vec<_> =
        found["results"].as_array().unwrap().iter().map(|hit| hit["doc_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["d", "e"]);
    assert_eq!(served.json("/api/files?match=run.tgm").await["total"], 0);
    assert_eq!(served.json("/api/search?q=turtles&in=".to_owned().as_str()).await["matches"], 1);
    let only = served.id("more.tatami").await;
    assert_eq!(served.json(&format!("/api/search?q=memory&in={only}")).await["results"][0]["doc_id"], "e");
}

#[tokio::test]
async fn a_file_is_read_as_it_is_now_also_before_the_next_scan() {
    let directory = sample();
    let served =
        Served::with(directory.path(), Options::new().with_rescan(std::time::Duration::from_mins(10)));
    let id = served.id("data/run.tgm").await;
    assert_eq!(served.json(&format!("/api/tgm/{id}")).await["total"], 3);
    std::fs::remove_file(directory.path().join("data/run.tgm")).unwrap();
    messages(&directory.path().join("data/run.tgm"), 0..5);
    assert_eq!(served.json(&format!("/api/tgm/{id}")).await["total"], 5);
    std::fs::remove_file(directory.path().join("data/run.tgm")).unwrap();
    assert_eq!(served.get(&format!("/api/tgm/{id}")).await.status.as_u16(), 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_files_are_replaced_and_removed() {
    let directory = sample();
    // The deadline is not what is tested: other tests take time, too.
    let options = Options::new()
        .with_rescan(std::time::Duration::from_millis(1))
        .with_max_in_flight(1000)
        .with_timeout(std::time::Duration::from_mins(1));
    let served = Arc::new(Served::with(directory.path(), options));
    let (ended, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let path = directory.path().to_owned();
    let change = {
        let (ended, rounds) = (Arc::clone(&ended), Arc::clone(&rounds));
        std::thread::spawn(move || {
            while !ended.load(Ordering::SeqCst) {
                // As writers publish: a new file and a rename.
                let title = format!("Round {}", rounds.load(Ordering::SeqCst));
                documents(&path.join(".new"), &[("n", &title, "memory")]);
                std::fs::rename(path.join(".new"), path.join("notes.tatami")).unwrap();
                documents(&path.join(".more"), &[("m", &title, "memory")]);
                std::fs::rename(path.join(".more"), path.join("more.tatami")).unwrap();
                std::fs::remove_file(path.join("more.tatami")).unwrap();
                rounds.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let mut requests = 0;
    while requests < 150 || rounds.load(Ordering::SeqCst) < 10 {
        requests += 1;
        let found = served.get("/api/search?q=memory").await;
        assert_eq!(found.status.as_u16(), 200, "{}", found.text());
        assert!(found.json()["matches"].as_u64().unwrap() >= 1, "{}", found.text());
        assert_eq!(served.get("/search?q=memory").await.status.as_u16(), 200);
    }
    ended.store(true, Ordering::SeqCst);
    change.join().unwrap();
}

#[tokio::test]
async fn raw_bytes_have_ranges() {
    let directory = sample();
    let served = Served::new(directory.path());
    let id = served.id("data/weather.tet").await;
    let bytes = std::fs::read(directory.path().join("data/weather.tet")).unwrap();
    let path = format!("/api/files/{id}/raw");
    let all = served.get(&path).await;
    assert_eq!(all.body, bytes);
    assert_eq!(all.header("content-length"), bytes.len().to_string());
    assert!(all.header("content-disposition").contains("weather%2Etet"));
    let some = served.send("GET", &path, &[("range", "bytes=4-7")]).await;
    assert_eq!((some.status.as_u16(), &some.body[..]), (206, &bytes[4..8]));
    assert_eq!(some.header("content-range"), format!("bytes 4-7/{}", bytes.len()));
    let none = served.send("GET", &path, &[("range", "bytes=99999999-")]).await;
    assert_eq!(
        (none.status.as_u16(), none.header("content-range")),
        (416, &*format!("bytes */{}", bytes.len()))
    );
    let tag = all.header("etag");
    let other = served.send("GET", &path, &[("range", "bytes=4-7"), ("if-range", "\"other\"")]).await;
    assert_eq!((other.status.as_u16(), other.body.len()), (200, bytes.len()));
    let same = served.send("GET", &path, &[("range", "bytes=4-7"), ("if-range", tag)]).await;
    assert_eq!(same.status.as_u16(), 206);
    assert_eq!(served.send("GET", &path, &[("if-none-match", tag)]).await.status.as_u16(), 304);
    let head = served.send("HEAD", &path, &[]).await;
    assert_eq!((head.body.len(), head.header("content-length")), (0, &*bytes.len().to_string()));
}

#[tokio::test]
async fn collections_are_searched_without_deleted_rows() {
    let directory = tempfile::tempdir().unwrap();
    let crawl = directory.path().join("crawl");
    std::fs::create_dir(&crawl).unwrap();
    documents(&crawl.join("one.tatami"), &[("a", "A", "memory"), ("b", "B", "memory")]);
    documents(&crawl.join("two.tatami"), &[("c", "C", "memory")]);
    // A file that is no member is searched by itself.
    documents(&crawl.join("stray.tatami"), &[("s", "S", "memory")]);
    let mut collection = tercet::tatami::Collection::open(&*crawl).unwrap();
    collection.add(&["one.tatami", "two.tatami"].map(|name| crawl.join(name))).unwrap();
    let filter = tercet::tatami::Expr::parse("doc_id = \"b\"").unwrap();
    collection.delete_rows(&filter, &tercet::core::progress::NoProgress).unwrap();
    let served = Served::new(directory.path());
    let id = served.id("crawl").await;
    let entry = served.json(&format!("/api/files/{id}")).await;
    assert_eq!((&entry["format"], &entry["documents"]), (&json!("collection"), &json!(2)));
    let member = served.id("crawl/one.tatami").await;
    assert_eq!(served.json(&format!("/api/files/{member}")).await["collection"], id);
    let found = served.json(&format!("/api/search?q=memory&in={id}")).await;
    let mut ids: Vec<_> =
        found["results"].as_array().unwrap().iter().map(|hit| hit["doc_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a", "c"]);
    assert_eq!(served.json("/api/search?q=memory").await["matches"], 3);
    assert_eq!(
        served.json(&format!("/api/tatami/{id}/rows?columns=doc_id")).await["rows"],
        json!([["a"], ["c"]])
    );
    let table = served.json(&format!("/api/tatami/{id}")).await;
    assert_eq!((&table["rows"], &table["members"][0]["id"]), (&json!(2), &json!(member)));
}

#[tokio::test]
async fn a_single_file_is_served_alone() {
    let directory = sample();
    arrays(&directory.path().join("other.tet"));
    let served = Served::new(&directory.path().join("other.tet"));
    let info = served.json("/api/info").await;
    assert_eq!((&info["mode"], &info["files"]), (&json!("file"), &json!(1)));
    let id = info["file"].as_str().unwrap();
    assert_eq!(served.json(&format!("/api/tet/{id}")).await["path"], "other.tet");
    assert_eq!(served.state.overview().file.as_deref(), Some(id));
}

#[tokio::test]
async fn damaged_files_are_listed_with_the_problem() {
    let directory = sample();
    std::fs::write(directory.path().join("broken.tet"), b"TETR but not more").unwrap();
    std::fs::write(directory.path().join("empty.tatami"), b"").unwrap();
    std::fs::write(directory.path().join(".hidden.tet"), b"TETR").unwrap();
    std::fs::write(directory.path().join("readme.txt"), b"text").unwrap();
    let served = Served::new(directory.path());
    assert_eq!(served.json("/api/files").await["total"], 6);
    let id = served.id("broken.tet").await;
    let entry = served.json(&format!("/api/files/{id}")).await;
    assert!(!entry["problem"].is_null());
    let answer = served.get(&format!("/api/tet/{id}")).await;
    assert_eq!(answer.status.as_u16(), 422, "{}", answer.text());
    assert_eq!(served.get(&format!("/api/files/{id}/raw")).await.body, b"TETR but not more");
}
