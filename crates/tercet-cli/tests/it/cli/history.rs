//! The query history.

use insta::assert_snapshot;
use serde_json::Value;

use super::support::{CommandOutput, HISTORY, TestDir, run};

const MEANS: &str = r#"{"dataset":"t2m","mean":"station"}"#;

fn query(dir: &TestDir, query: &str) {
    let output =
        run(dir.command("tet").args(["query", query, "-t", "weather.tet", "-x", "-q", "--preview", "1"]));
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{query}");
}

fn rows(dir: &TestDir) -> Vec<Value> {
    let text = String::from_utf8(dir.read(HISTORY)).expect("a history is text");
    text.lines().map(|line| serde_json::from_str(line).expect("a row is JSON")).collect()
}

/// A directory whose history has a few queries.
fn with_queries() -> TestDir {
    let dir = TestDir::with_weather();
    query(&dir, r#"{"dataset":"mask"}"#);
    query(&dir, r#"{"dataset":"t2m","max":[],"selection":[{"start":1},{"step":2}]}"#);
    let output = dir.tet(r#"query {"dataset":"t2m"} -t weather.tet -q"#);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    query(&dir, MEANS);
    dir
}

#[test]
fn a_query_is_recorded_verbatim() {
    let dir = TestDir::with_weather();
    query(&dir, MEANS);
    let expected = serde_json::json!({
        "at": 1_700_000_000,
        "tet": std::path::absolute(dir.path("weather.tet")).unwrap(),
        "execute": true,
        "query": {"dataset": "t2m", "mean": "station"},
    });
    assert_eq!(rows(&dir), [expected]);
    query(&dir, "dataset = \"t2m\"\nmax = 0");
    assert_eq!(rows(&dir)[1]["query"], serde_json::json!({"dataset": "t2m", "max": 0}));
}

#[test]
fn only_successful_queries_are_recorded() {
    let dir = TestDir::with_weather();
    dir.tet(r#"query {"dataset":"t2m"} -q"#);
    dir.tet(r#"query {"dataset":"t2n"} -t weather.tet -q"#);
    dir.tet(r#"query {"dataset":"t2m","maen":[]} -t weather.tet -x"#);
    dir.tet(r#"query {"dataset":"t2m"} -t missing.tet -q"#);
    assert!(!dir.path(HISTORY).exists());
    for value in ["1", "yes"] {
        let mut command = dir.command("tet");
        command.args(["query", MEANS, "-t", "weather.tet", "-xq"]).env("TET_NO_QUERY_HISTORY", value);
        assert_eq!(run(&mut command).code, Some(0));
        assert!(!dir.path(HISTORY).exists());
    }
    let mut command = dir.command("tet");
    run(command.args(["query", MEANS, "-t", "weather.tet", "-xq"]).env("TET_NO_QUERY_HISTORY", "0"));
    assert_eq!(rows(&dir).len(), 1);
}

#[cfg(unix)]
#[test]
fn the_history_file_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = TestDir::with_weather();
    let mode = || std::fs::metadata(dir.path(HISTORY)).unwrap().permissions().mode() & 0o777;
    query(&dir, MEANS);
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(dir.path(HISTORY), std::fs::Permissions::from_mode(0o644)).unwrap();
    query(&dir, MEANS);
    assert_eq!(mode(), 0o600);
    assert_eq!(rows(&dir).len(), 1);
}

#[test]
fn a_repeated_query_updates_its_time() {
    let dir = with_queries();
    let before = rows(&dir);
    let mut command = dir.command("tet");
    command.args(["query", MEANS, "-t", "./weather.tet", "-xq"]).env("SOURCE_DATE_EPOCH", "1700000100");
    assert_eq!(run(&mut command).code, Some(0));
    let after = rows(&dir);
    assert_eq!(after.len(), before.len());
    assert_eq!(after[3]["at"], 1_700_000_100);
    assert_eq!(after[..3], before[..3]);
}

#[test]
fn old_queries_are_dropped() {
    let dir = with_queries();
    let with_limit = |limit: &str, query: &str| {
        let mut command = dir.command("tet");
        command.args(["query", query, "-t", "weather.tet", "-xq"]).env("TET_QUERY_HISTORY_MAX", limit);
        assert_eq!(run(&mut command).code, Some(0));
        rows(&dir).len()
    };
    assert_eq!(with_limit("3", r#"{"dataset":"t2m","min":[]}"#), 3);
    assert_eq!(rows(&dir)[2]["query"]["min"], serde_json::json!([]), "the newest is last");
    assert_eq!(with_limit("nonsense", r#"{"dataset":"t2m","min":0}"#), 4);
    assert_eq!(with_limit("99999999", r#"{"dataset":"t2m","min":1}"#), 5);
    assert_eq!(with_limit("0", r#"{"dataset":"t2m","sum":1}"#), 1, "one is the least");
    let long = format!(r#"{{"dataset":"t2m",{}"sum":0}}"#, " ".repeat(100_000));
    assert_eq!(with_limit("50", &long), 2, "what is kept is the document, not its spaces");
    for number in 0..60 {
        query(&dir, &format!(r#"{{"dataset":"t2m","layout_version":{number}}}"#));
    }
    assert_eq!(rows(&dir).len(), 50);
}

#[test]
fn broken_rows_are_skipped() {
    let dir = with_queries();
    let good = dir.read(HISTORY);
    let broken =
        [b"\n{\"at\":1,\n\xff\xfe\nnull\n{\"at\":-1,\"tet\":3,\"query\":{}}\n\n", &good[..], b"{\"at\":17"]
            .concat();
    dir.write(HISTORY, &broken);
    assert_eq!(dir.tet("qhist").stdout.lines().count(), 1 + 4);
    query(&dir, r#"{"dataset":"t2m","sum":[]}"#);
    assert_eq!(rows(&dir).len(), 5);
}

#[test]
fn another_history_file_is_not_changed() {
    let dir = TestDir::with_weather();
    dir.write(HISTORY, b"dear diary,\ntoday I misspelled a path\n");
    let output = dir.tet(r#"query {"dataset":"mask","sum":[]} -t weather.tet -xq"#);
    assert_eq!(output.code, Some(0));
    assert!(output.stderr.starts_with("warning: cannot save the query history: "), "{}", output.stderr);
    assert!(output.stderr.contains("not a query history"), "{}", output.stderr);
    for args in ["qhist", "qhist run 1", "qhist --clear"] {
        assert_eq!(dir.tet(args).code, Some(8), "{args}");
    }
    assert_eq!(dir.read(HISTORY), b"dear diary,\ntoday I misspelled a path\n");
}

#[test]
fn history_errors_do_not_stop_a_query() {
    let dir = TestDir::with_weather();
    std::fs::create_dir(dir.path("dir")).unwrap();
    dir.write("file", b"");
    for path in ["dir", "file/history.jsonl", "/dev/null/history"] {
        let mut command = dir.command("tet");
        command.args(["query", MEANS, "-t", "weather.tet", "-xq"]).env("TET_QUERY_HISTORY_FILE", path);
        let output = run(&mut command);
        assert_eq!(output.code, Some(0), "{path}: {}", output.stderr);
        assert!(output.stdout.starts_with("dataset=t2m status=ok"), "{path}: {}", output.stdout);
        assert!(
            output.stderr.starts_with("warning: cannot save the query history: "),
            "{path}: {}",
            output.stderr
        );
        assert_eq!(output.stderr.lines().count(), 1, "{path}: {}", output.stderr);
    }
}

#[test]
fn only_the_end_of_a_huge_history_is_read() {
    let dir = with_queries();
    let line = format!("{}\n", "x".repeat(1 << 20));
    let huge = [line.repeat(24).as_bytes(), &dir.read(HISTORY)].concat();
    dir.write(HISTORY, &huge);
    assert_eq!(dir.tet("qhist").stdout.lines().count(), 1 + 4);
    query(&dir, r#"{"dataset":"t2m","sum":[]}"#);
    assert_eq!(rows(&dir).len(), 5);
}

#[cfg(not(windows))]
#[test]
fn the_history_is_stored_in_the_user_cache() {
    let dir = TestDir::with_weather();
    let query = |variables: &[(&str, &str)]| {
        let mut command = dir.command("tet");
        command.env_remove("TET_QUERY_HISTORY_FILE").env_remove("XDG_CACHE_HOME").env_remove("HOME");
        command.args(["query", MEANS, "-t", "weather.tet", "-xq"]);
        command.envs(variables.iter().map(|(name, dirs)| {
            let path = if dirs.is_empty() { String::new() } else { dir.path(dirs).display().to_string() };
            (*name, path)
        }));
        let output = run(&mut command);
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    };
    query(&[("XDG_CACHE_HOME", "xdg"), ("HOME", "home")]);
    assert!(dir.path("xdg/tetration/query_history.jsonl").exists());
    assert!(!dir.path("home").exists());
    query(&[("XDG_CACHE_HOME", ""), ("HOME", "home")]);
    assert!(dir.path("home/.cache/tetration/query_history.jsonl").exists());
    query(&[]);
}

#[test]
fn queries_are_listed() {
    let dir = with_queries();
    assert_snapshot!("list", dir.tet("qhist").snapshot());
    for args in ["hist", "qhist list", "qhist list --all", "qhist -n 4"] {
        assert_eq!(dir.tet(args).stdout, dir.tet("qhist").stdout, "{args}");
    }
    assert_snapshot!("list_filtered", dir.tet("qhist -n 1 --dataset T2M --mode x").snapshot());
    let count = |args: &str| dir.tet(args).stdout.lines().count() - 1;
    assert_eq!(count("qhist list --grep MAX"), 1);
    assert_eq!(count("qhist list --tet WEATHER"), 4);
    assert_eq!(count("qhist list --mode plan"), 1);
    assert_eq!(dir.tet("qhist --dataset nothing").stdout, "(no query matches the filter)\n");
    assert_eq!(TestDir::new().tet("qhist").stdout, "(the history is empty)\n");
    assert_eq!(dir.tet("qhist --mode z").code, Some(2));

    let json: Value = serde_json::from_str(&dir.tet("qhist --json --mode x -n 2").stdout).unwrap();
    assert_eq!((&json["kept"], &json["shown"], &json["filter"]), (&4.into(), &2.into(), &"mode=x".into()));
    let newest = &json["entries"][0];
    assert_eq!((&newest["n"], &newest["mode"]), (&1.into(), &"x".into()));
    assert_eq!(newest["query"], serde_json::from_str::<Value>(MEANS).unwrap());
}

#[test]
fn a_query_is_rerun() {
    let dir = with_queries();
    let first = dir.tet(&format!("query {MEANS} -t weather.tet -xq"));
    let again = |args: &str| -> CommandOutput {
        let output = dir.tet(args);
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{args}");
        output
    };
    assert_eq!(again("qhist run 1 -q").stdout, first.stdout);
    assert_eq!(rows(&dir).len(), 4, "it was the last one");
    // The path is stored absolute.
    std::fs::create_dir(dir.path("elsewhere")).unwrap();
    let mut command = dir.command("tet");
    let output = run(command.current_dir(dir.path("elsewhere")).args(["qhist", "run", "1", "-q"]));
    assert_eq!(output.stdout, first.stdout, "{}", output.stderr);
    // Numbers count the filtered entries only.
    assert!(again("qhist run 1 --grep max -q").stdout.starts_with("dataset=t2m status=ok op=max "));
    std::fs::copy(dir.path("weather.tet"), dir.path("other.tet")).unwrap();
    let other = again("qhist run 1 --dataset mask --tet-filter weather -t other.tet --format reference");
    assert!(other.stdout.contains(r#""tet_file": "other.tet""#), "{}", other.stdout);
    assert!(again("qhist run 1 --grep mean --plan").stdout.contains("\"read_plan\""));
    assert!(!again("qhist run 1 --grep mean --plan").stdout.contains("\"execution\""));
    assert!(again("qhist run 1 --mode p --grep t2m -x --preview 2 -q").stdout.contains("op=mean"));
}

#[test]
fn a_missing_entry_is_not_rerun() {
    let dir = with_queries();
    assert_snapshot!("no_such_query", dir.tet("qhist run 5").snapshot());
    assert_eq!(dir.tet("qhist run 0").code, Some(8));
    assert_eq!(dir.tet("qhist run 1 --dataset nothing").code, Some(8));
    assert_eq!(dir.tet("qhist run 1 -x --plan").code, Some(2));
    dir.write(
        HISTORY,
        b"{\"at\":1,\"tet\":null,\"execute\":true,\"query\":{\"dataset\":\"t2m\",\"maen\":[]}}\n",
    );
    assert_eq!(dir.tet("qhist run 1").code, Some(8), "without a file");
    assert_snapshot!("rerun_of_invalid_query", dir.tet("qhist run 1 -t weather.tet").snapshot());
}

#[test]
fn clear_removes_all_entries() {
    let dir = with_queries();
    assert_snapshot!("cleared", dir.tet("qhist --clear").snapshot());
    assert!(!dir.path(HISTORY).exists());
    assert_eq!(dir.tet("qhist list --clear").stdout, "no query history\n");
}
