//! The queries that were asked.

use insta::assert_snapshot;
use serde_json::Value;

use super::support::{Folder, HISTORY, Ran, run};

const MEANS: &str = r#"{"dataset":"t2m","mean":"station"}"#;

fn ask(folder: &Folder, query: &str) {
    let ran =
        run(folder.command("tet").args(["query", query, "-t", "weather.tet", "-x", "-q", "--preview", "1"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{query}");
}

fn rows(folder: &Folder) -> Vec<Value> {
    let text = String::from_utf8(folder.read(HISTORY)).expect("a history is text");
    text.lines().map(|line| serde_json::from_str(line).expect("a row is JSON")).collect()
}

/// A folder in which a few queries were asked.
fn with_queries() -> Folder {
    let folder = Folder::with_weather();
    ask(&folder, r#"{"dataset":"mask"}"#);
    ask(&folder, r#"{"dataset":"t2m","max":[],"selection":[{"start":1},{"step":2}]}"#);
    let ran = folder.tet(r#"query {"dataset":"t2m"} -t weather.tet -q"#);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ask(&folder, MEANS);
    folder
}

#[test]
fn a_query_is_noted_as_it_was_asked() {
    let folder = Folder::with_weather();
    ask(&folder, MEANS);
    let expected = serde_json::json!({
        "at": 1_700_000_000,
        "tet": std::path::absolute(folder.path("weather.tet")).unwrap(),
        "execute": true,
        "query": {"dataset": "t2m", "mean": "station"},
    });
    assert_eq!(rows(&folder), [expected]);
    ask(&folder, "dataset = \"t2m\"\nmax = 0");
    assert_eq!(rows(&folder)[1]["query"], serde_json::json!({"dataset": "t2m", "max": 0}));
}

#[test]
fn only_answers_are_noted() {
    let folder = Folder::with_weather();
    folder.tet(r#"query {"dataset":"t2m"} -q"#);
    folder.tet(r#"query {"dataset":"t2n"} -t weather.tet -q"#);
    folder.tet(r#"query {"dataset":"t2m","maen":[]} -t weather.tet -x"#);
    folder.tet(r#"query {"dataset":"t2m"} -t missing.tet -q"#);
    assert!(!folder.path(HISTORY).exists());
    for word in ["1", "yes"] {
        let mut command = folder.command("tet");
        command.args(["query", MEANS, "-t", "weather.tet", "-xq"]).env("TET_NO_QUERY_HISTORY", word);
        assert_eq!(run(&mut command).code, Some(0));
        assert!(!folder.path(HISTORY).exists());
    }
    let mut command = folder.command("tet");
    run(command.args(["query", MEANS, "-t", "weather.tet", "-xq"]).env("TET_NO_QUERY_HISTORY", "0"));
    assert_eq!(rows(&folder).len(), 1);
}

#[cfg(unix)]
#[test]
fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = Folder::with_weather();
    let mode = || std::fs::metadata(folder.path(HISTORY)).unwrap().permissions().mode() & 0o777;
    ask(&folder, MEANS);
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(folder.path(HISTORY), std::fs::Permissions::from_mode(0o644)).unwrap();
    ask(&folder, MEANS);
    assert_eq!(mode(), 0o600);
    assert_eq!(rows(&folder).len(), 1);
}

#[test]
fn the_same_query_again_only_refreshes_its_time() {
    let folder = with_queries();
    let before = rows(&folder);
    let mut command = folder.command("tet");
    command.args(["query", MEANS, "-t", "./weather.tet", "-xq"]).env("SOURCE_DATE_EPOCH", "1700000100");
    assert_eq!(run(&mut command).code, Some(0));
    let after = rows(&folder);
    assert_eq!(after.len(), before.len());
    assert_eq!(after[3]["at"], 1_700_000_100);
    assert_eq!(after[..3], before[..3]);
}

#[test]
fn old_queries_are_forgotten() {
    let folder = with_queries();
    let with_most = |most: &str, query: &str| {
        let mut command = folder.command("tet");
        command.args(["query", query, "-t", "weather.tet", "-xq"]).env("TET_QUERY_HISTORY_MAX", most);
        assert_eq!(run(&mut command).code, Some(0));
        rows(&folder).len()
    };
    assert_eq!(with_most("3", r#"{"dataset":"t2m","min":[]}"#), 3);
    assert_eq!(rows(&folder)[2]["query"]["min"], serde_json::json!([]), "the newest is last");
    assert_eq!(with_most("nonsense", r#"{"dataset":"t2m","min":0}"#), 4);
    assert_eq!(with_most("99999999", r#"{"dataset":"t2m","min":1}"#), 5);
    assert_eq!(with_most("0", r#"{"dataset":"t2m","sum":1}"#), 1, "one is the least");
    let long = format!(r#"{{"dataset":"t2m",{}"sum":0}}"#, " ".repeat(100_000));
    assert_eq!(with_most("50", &long), 2, "what is kept is the document, not its spaces");
    for number in 0..60 {
        ask(&folder, &format!(r#"{{"dataset":"t2m","layout_version":{number}}}"#));
    }
    assert_eq!(rows(&folder).len(), 50);
}

#[test]
fn broken_rows_are_skipped() {
    let folder = with_queries();
    let good = folder.read(HISTORY);
    let broken =
        [b"\n{\"at\":1,\n\xff\xfe\nnull\n{\"at\":-1,\"tet\":3,\"query\":{}}\n\n", &good[..], b"{\"at\":17"]
            .concat();
    folder.write(HISTORY, &broken);
    assert_eq!(folder.tet("qhist").stdout.lines().count(), 1 + 4);
    ask(&folder, r#"{"dataset":"t2m","sum":[]}"#);
    assert_eq!(rows(&folder).len(), 5);
}

#[test]
fn a_file_of_something_else_is_left_alone() {
    let folder = Folder::with_weather();
    folder.write(HISTORY, b"dear diary,\ntoday I misspelled a path\n");
    let ran = folder.tet(r#"query {"dataset":"mask","sum":[]} -t weather.tet -xq"#);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.starts_with("warning: cannot save the query history: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("not a query history"), "{}", ran.stderr);
    for args in ["qhist", "qhist run 1", "qhist --clear"] {
        assert_eq!(folder.tet(args).code, Some(8), "{args}");
    }
    assert_eq!(folder.read(HISTORY), b"dear diary,\ntoday I misspelled a path\n");
}

#[test]
fn no_trouble_with_the_history_stops_a_query() {
    let folder = Folder::with_weather();
    std::fs::create_dir(folder.path("folder")).unwrap();
    folder.write("file", b"");
    for path in ["folder", "file/history.jsonl", "/dev/null/history"] {
        let mut command = folder.command("tet");
        command.args(["query", MEANS, "-t", "weather.tet", "-xq"]).env("TET_QUERY_HISTORY_FILE", path);
        let ran = run(&mut command);
        assert_eq!(ran.code, Some(0), "{path}: {}", ran.stderr);
        assert!(ran.stdout.starts_with("dataset=t2m status=ok"), "{path}: {}", ran.stdout);
        assert!(ran.stderr.starts_with("warning: cannot save the query history: "), "{path}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{path}: {}", ran.stderr);
    }
}

#[test]
fn of_a_huge_file_the_end_is_read() {
    let folder = with_queries();
    let line = format!("{}\n", "x".repeat(1 << 20));
    let huge = [line.repeat(24).as_bytes(), &folder.read(HISTORY)].concat();
    folder.write(HISTORY, &huge);
    assert_eq!(folder.tet("qhist").stdout.lines().count(), 1 + 4);
    ask(&folder, r#"{"dataset":"t2m","sum":[]}"#);
    assert_eq!(rows(&folder).len(), 5);
}

#[cfg(not(windows))]
#[test]
fn the_cache_of_the_user_is_its_place() {
    let folder = Folder::with_weather();
    let ask = |variables: &[(&str, &str)]| {
        let mut command = folder.command("tet");
        command.env_remove("TET_QUERY_HISTORY_FILE").env_remove("XDG_CACHE_HOME").env_remove("HOME");
        command.args(["query", MEANS, "-t", "weather.tet", "-xq"]);
        command.envs(variables.iter().map(|(name, folders)| {
            let path =
                if folders.is_empty() { String::new() } else { folder.path(folders).display().to_string() };
            (*name, path)
        }));
        let ran = run(&mut command);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    };
    ask(&[("XDG_CACHE_HOME", "xdg"), ("HOME", "home")]);
    assert!(folder.path("xdg/tetration/query_history.jsonl").exists());
    assert!(!folder.path("home").exists());
    ask(&[("XDG_CACHE_HOME", ""), ("HOME", "home")]);
    assert!(folder.path("home/.cache/tetration/query_history.jsonl").exists());
    ask(&[]);
}

#[test]
fn a_list_of_queries() {
    let folder = with_queries();
    assert_snapshot!("list", folder.tet("qhist").shot());
    for args in ["hist", "qhist list", "qhist list --all", "qhist -n 4"] {
        assert_eq!(folder.tet(args).stdout, folder.tet("qhist").stdout, "{args}");
    }
    assert_snapshot!("list_filtered", folder.tet("qhist -n 1 --dataset T2M --mode x").shot());
    let count = |args: &str| folder.tet(args).stdout.lines().count() - 1;
    assert_eq!(count("qhist list --grep MAX"), 1);
    assert_eq!(count("qhist list --tet WEATHER"), 4);
    assert_eq!(count("qhist list --mode plan"), 1);
    assert_eq!(folder.tet("qhist --dataset nothing").stdout, "(no query matches the filter)\n");
    assert_eq!(Folder::new().tet("qhist").stdout, "(the history is empty)\n");
    assert_eq!(folder.tet("qhist --mode z").code, Some(2));

    let told: Value = serde_json::from_str(&folder.tet("qhist --json --mode x -n 2").stdout).unwrap();
    assert_eq!((&told["kept"], &told["shown"], &told["filter"]), (&4.into(), &2.into(), &"mode=x".into()));
    let newest = &told["entries"][0];
    assert_eq!((&newest["n"], &newest["mode"]), (&1.into(), &"x".into()));
    assert_eq!(newest["query"], serde_json::from_str::<Value>(MEANS).unwrap());
}

#[test]
fn a_query_is_asked_again() {
    let folder = with_queries();
    let first = folder.tet(&format!("query {MEANS} -t weather.tet -xq"));
    let again = |args: &str| -> Ran {
        let ran = folder.tet(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args}");
        ran
    };
    assert_eq!(again("qhist run 1 -q").stdout, first.stdout);
    assert_eq!(rows(&folder).len(), 4, "it was the last one");
    // It answers from anywhere.
    std::fs::create_dir(folder.path("elsewhere")).unwrap();
    let mut command = folder.command("tet");
    let ran = run(command.current_dir(folder.path("elsewhere")).args(["qhist", "run", "1", "-q"]));
    assert_eq!(ran.stdout, first.stdout, "{}", ran.stderr);
    // Only the filtered ones are counted.
    assert!(again("qhist run 1 --grep max -q").stdout.starts_with("dataset=t2m status=ok op=max "));
    std::fs::copy(folder.path("weather.tet"), folder.path("other.tet")).unwrap();
    let other = again("qhist run 1 --dataset mask --tet-filter weather -t other.tet --json");
    assert!(other.stdout.contains(r#""tet_file": "other.tet""#), "{}", other.stdout);
    assert!(again("qhist run 1 --grep mean --plan").stdout.contains("\"read_plan\""));
    assert!(!again("qhist run 1 --grep mean --plan").stdout.contains("\"execution\""));
    assert!(again("qhist run 1 --mode p --grep t2m -x --preview 2 -q").stdout.contains("op=mean"));
}

#[test]
fn what_is_not_there_is_not_asked() {
    let folder = with_queries();
    assert_snapshot!("no_such_query", folder.tet("qhist run 5").shot());
    assert_eq!(folder.tet("qhist run 0").code, Some(8));
    assert_eq!(folder.tet("qhist run 1 --dataset nothing").code, Some(8));
    assert_eq!(folder.tet("qhist run 1 -x --plan").code, Some(2));
    folder.write(
        HISTORY,
        b"{\"at\":1,\"tet\":null,\"execute\":true,\"query\":{\"dataset\":\"t2m\",\"maen\":[]}}\n",
    );
    assert_eq!(folder.tet("qhist run 1").code, Some(8), "without a file");
    assert_snapshot!("wrong_query_again", folder.tet("qhist run 1 -t weather.tet").shot());
}

#[test]
fn everything_is_forgotten() {
    let folder = with_queries();
    assert_snapshot!("cleared", folder.tet("qhist --clear").shot());
    assert!(!folder.path(HISTORY).exists());
    assert_eq!(folder.tet("qhist list --clear").stdout, "no query history\n");
}
