use std::process::{Command, Stdio};

use tercet::core::publish::FileLock;
use tercet::tet::IntegrityStatus;

use super::TestDir;
use super::npy::Array;

fn dir_with_file() -> (TestDir, Array) {
    let dir = TestDir::new();
    let array = Array::new(("i4", 4), &[20, 30]);
    dir.write("in.npy", array.file(false, false));
    dir.ok("create a.tet --from first=in.npy --chunk 7,11 --zstd --attr units=K --memory-budget 10%");
    (dir, array)
}

#[test]
fn append_keeps_existing_datasets() {
    let (dir, array) = dir_with_file();
    let more = Array::new(("f2", 2), &[3, 4, 5]);
    dir.write("more.npy", more.file(true, true));
    let result = dir.ok("append a.tet --from second=more.npy --dims x,y,z --chunk 2,2,2");
    insta::assert_snapshot!(result.out.lines().take(4).collect::<Vec<_>>().join("\n"), @r#"
    ┌─────────┬──────┬───────┬───────┬────────┬───────┬───────┬────────┬───────┐
    │ dataset ┆ type ┆ shape ┆ chunk ┆ chunks ┆ codec ┆   raw ┆ stored ┆ ratio │
    ╞═════════╪══════╪═══════╪═══════╪════════╪═══════╪═══════╪════════╪═══════╡
    │ second  ┆ f16  ┆ 3×4×5 ┆ 2×2×2 ┆     12 ┆ raw   ┆ 120 B ┆  120 B ┆  1.00 │
    "#);
    let file = dir.open("a.tet");
    assert_eq!(file.dataset("first").unwrap().read_all().unwrap().bytes(), array.values());
    assert_eq!(file.dataset("second").unwrap().read_all().unwrap().bytes(), more.values());
    assert_eq!(file.dataset("first").unwrap().info().unwrap().attrs["units"], "K");
    assert_eq!(file.dataset("second").unwrap().axis_name(2), Some("z"));
    assert_eq!(file.memory_budget().percent_bps, 1000);
    let history: Vec<(&str, &str)> =
        file.history().iter().map(|row| (row.op.as_str(), row.source.as_str())).collect();
    assert_eq!(history, [("create", "in.npy"), ("append", "more.npy")]);
    assert!(matches!(file.integrity_status(), IntegrityStatus::Checked { .. }));
    assert_eq!(dir.ok("verify --deep a.tet").code, 0);
    assert_eq!(dir.names(), ["a.tet", "in.npy", "more.npy"]);
}

#[test]
fn drop_keeps_other_datasets() {
    let (dir, array) = dir_with_file();
    dir.ok("append a.tet --from b=in.npy --from c=in.npy --attr units=m");
    let result = dir.ok("drop a.tet c first");
    assert!(result.out.starts_with("a.tet: dropped `c`, `first`; 1 dataset left, "), "{}", result.out);
    let file = dir.open("a.tet");
    assert_eq!(file.datasets().map(|dataset| dataset.name()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(file.dataset("b").unwrap().read_all().unwrap().bytes(), array.values());
    assert_eq!(file.metadata().unwrap().datasets.keys().collect::<Vec<_>>(), ["b"]);
    let last = file.history().last().unwrap();
    assert_eq!((last.op.as_str(), last.source.as_str()), ("drop", "c, first"));
    drop(file);

    let result = dir.ok("drop a.tet b --json");
    let json: serde_json::Value = serde_json::from_str(&result.out).unwrap();
    assert_eq!((&json["dropped"][0], &json["dataset_count"]), (&"b".into(), &0.into()));
    assert_eq!(json["bytes"], dir.read("a.tet").len());
    let file = dir.open("a.tet");
    assert!(file.datasets().len() == 0);
    assert_eq!(file.history().len(), 4);
    assert_eq!(dir.ok("verify --deep a.tet").code, 0);
    drop(file);

    dir.ok("append a.tet --from again=in.npy");
    let file = dir.open("a.tet");
    assert_eq!(file.dataset("again").unwrap().read_all().unwrap().bytes(), array.values());
}

#[test]
fn rejected_changes_leave_the_file_unchanged() {
    let (dir, _) = dir_with_file();
    let before = dir.read("a.tet");
    dir.write("zero.tet", "");
    for (args, code, message) in [
        ("append a.tet --from first=in.npy", 8, "duplicate dataset `first`"),
        ("append a.tet --from b=none.npy", 3, "none.npy: cannot open"),
        ("append none.tet --from b=in.npy", 3, "hint: create a new file with `tet create`"),
        ("append zero.tet --from b=in.npy", 4, "zero.tet: malformed superblock"),
        ("append a.tet --from b=in.npy --dims time,time", 8, "has a duplicate axis name `time`"),
        ("append a.tet --from b=in.npy --chunk 1", 8, "its chunks have 1"),
        ("drop a.tet b", 8, "has no dataset `b`"),
        ("drop a.tet first first", 8, "has no dataset `first`"),
        ("drop a.tet", 2, "DATASET"),
        ("drop none.tet first", 3, "none.tet: cannot open"),
        ("drop . first", 8, ".: is a directory, not a file"),
    ] {
        let result = dir.tet(args);
        assert_eq!(result.code, code, "{args}: {}", result.err);
        assert!(result.err.contains(message), "{args}: {}", result.err);
    }
    assert!(dir.read("a.tet") == before);
    assert_eq!(dir.names(), ["a.tet", "in.npy", "zero.tet"]);
}

#[test]
fn a_damaged_file_gets_no_new_checksums() {
    let (dir, _) = dir_with_file();
    let mut bytes = dir.read("a.tet");
    let chunk = dir.open("a.tet").dataset("first").unwrap().chunk_ref(&[1, 1]).unwrap();
    bytes[chunk.span.start() as usize + 5] ^= 1;
    dir.write("a.tet", &bytes);
    let result = dir.tet("append a.tet --from b=in.npy");
    assert_eq!(result.code, 5, "{}", result.err);
    assert!(result.err.contains("dataset `first`, chunk [1, 1]"), "{}", result.err);
    assert!(dir.read("a.tet") == bytes);
    assert_eq!(dir.names(), ["a.tet", "in.npy"]);
}

#[test]
fn a_file_that_is_being_changed_is_busy() {
    let (dir, _) = dir_with_file();
    let before = dir.read("a.tet");
    let lock = FileLock::acquire(&dir.path("a.tet")).unwrap();
    for args in ["append a.tet --from b=in.npy", "drop a.tet first", "create a.tet --from b=in.npy --force"] {
        let result = dir.tet(args);
        assert_eq!(result.code, 3, "{args}");
        assert_eq!(
            result.err,
            "error: a.tet: another process is changing this file\n  hint: try again when the other process has \
             finished\n",
            "{args}"
        );
    }
    assert!(dir.read("a.tet") == before);
    drop(lock);
    dir.ok("append a.tet --from b=in.npy");
}

#[test]
fn concurrent_appends_lose_no_dataset() {
    let (dir, array) = dir_with_file();
    for round in 0..5 {
        let start = |number: usize| {
            let from = format!("r{round}n{number}=in.npy");
            let mut command = Command::new(env!("CARGO_BIN_EXE_tet"));
            command.current_dir(dir.0.path()).args(["append", "a.tet", "--from", &from]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let running: Vec<_> = (0..4).map(start).collect();
        for (number, child) in running.into_iter().enumerate() {
            let done = child.wait_with_output().unwrap();
            let (name, err) =
                (format!("r{round}n{number}"), String::from_utf8_lossy(&done.stderr).into_owned());
            let file = dir.open("a.tet");
            if done.status.success() {
                assert_eq!(file.dataset(&name).unwrap().read_all().unwrap().bytes(), array.values());
            } else {
                assert!(err.contains("another process is changing this file"), "{err}");
                assert!(file.dataset(&name).is_err());
            }
        }
        let file = dir.open("a.tet");
        assert!(file.datasets().len() > round + 1, "no append succeeded");
        assert_eq!(file.history().len(), file.datasets().len());
    }
    assert_eq!(dir.ok("verify --deep a.tet").code, 0);
    assert_eq!(dir.names(), ["a.tet", "in.npy"]);
}
