//! Queries: output formats, sources of the query, errors.

use insta::assert_snapshot;
use serde_json::Value;

use super::support::{CommandOutput, TestDir, run, write_named};

/// Executes a query on `weather.tet` without statistics.
fn execute(dir: &TestDir, query: &str, more: &[&str]) -> CommandOutput {
    let args = ["query", query, "-t", "weather.tet", "-x", "--no-stats"];
    run(dir.command("tet").args(args).args(more))
}

fn execute_ok(dir: &TestDir, query: &str, more: &[&str]) -> String {
    let output = execute(dir, query, more);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{query} {more:?}");
    output.stdout
}

fn tet(dir: &TestDir, args: &[&str]) -> CommandOutput {
    run(dir.command("tet").args(args))
}

const MEANS: &str = r#"{"dataset":"t2m","mean":"station"}"#;

#[test]
fn every_format() {
    let dir = TestDir::with_weather();
    // Memory differs from machine to machine.
    let filters = vec![(r#""(memory_budget_bytes|host_available_ram_bytes)": \d+"#, r#""$1": [bytes]"#)];
    insta::with_settings!({filters => filters}, {
        for format in ["full", "reference", "stats", "plan", "quiet", "table", "table-verbose"] {
            let text = execute_ok(&dir, MEANS, &["--format", format, "--preview", "5"]);
            assert_snapshot!(format!("format_{}", format.replace('-', "_")), text);
        }
    });
}

#[test]
fn short_names_of_formats() {
    let dir = TestDir::with_weather();
    let same = |short: &str, long: &str| {
        let text = |more: &[&str]| {
            let text = execute_ok(&dir, MEANS, more);
            // The memory available at the moment.
            text.lines()
                .filter(|line| !line.contains("_ram_bytes") && !line.contains("_budget_"))
                .collect::<String>()
        };
        let short: &[&str] = if short == "json" { &["--format", "json"] } else { &[short] };
        assert_eq!(text(short), text(&["--format", long]));
    };
    same("-q", "quiet");
    same("json", "reference");
    for wrong in [&["-q", "--json"][..], &["-q", "--format", "full"], &["--json", "--format", "plan"]] {
        assert_eq!(execute(&dir, MEANS, wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn text_output_has_axis_and_label_names() {
    let dir = TestDir::with_weather();
    let text = |name: &str, query: &str| assert_snapshot!(name, execute_ok(&dir, query, &[]));
    text("text_scalar", r#"{"dataset":"t2m","mean":[]}"#);
    text(
        "text_by_label",
        r#"{"dataset":"t2m","max":"time","selection":[{},{"start_label":"B","stop_label":"E"}]}"#,
    );
    text("text_arg_max", r#"{"dataset":"t2m","arg_max":[],"selection":[{"start":1,"step":2},{"start":1}]}"#);
    text("text_histogram", r#"{"dataset":"t2m","histogram":{"bins":4}}"#);
    text("text_histograms", r#"{"dataset":"t2m","histogram":{"bins":2,"axis":"station"}}"#);
    text("text_covariance", r#"{"dataset":"t2m","covariance":"time"}"#);
    text("text_transform", r#"{"dataset":"t2m","transform":{"method":"center","axis":"time"}}"#);
    text("text_window", r#"{"dataset":"t2m","mean":[],"window":{"axis":"time","size":2,"mode":"bins"}}"#);
    text("text_filter", r#"{"dataset":"t2m","count":[],"filter":{"gt":285}}"#);
    text("text_values", r#"{"dataset":"mask"}"#);
}

#[test]
fn quiet_prints_one_line_per_result_kind() {
    let dir = TestDir::with_weather();
    for (query, line) in [
        (
            MEANS,
            "dataset=t2m status=ok op=mean axes=[1] reduced_shape=4 values=[281.25,284.25,287.25,290.25] elements=24 \
             memory_strategy=streaming_fold",
        ),
        (
            r#"{"dataset":"t2m","mean":[]}"#,
            "dataset=t2m status=ok op=mean mean=285.75 elements=24 memory_strategy=streaming_fold",
        ),
        (
            r#"{"dataset":"t2m","count":[]}"#,
            "dataset=t2m status=ok op=count count=24 elements=24 memory_strategy=streaming_fold",
        ),
        (
            r#"{"dataset":"t2m","std":[]}"#,
            "dataset=t2m status=ok op=std std=3.461093 elements=24 memory_strategy=streaming_fold",
        ),
        (
            r#"{"dataset":"t2m","arg_min":0}"#,
            "dataset=t2m status=ok op=arg_min axes=[0] reduced_shape=6 values=[0,0,0,0,0,0] \
             at=[(time=0),(time=0),(time=0),(time=0),(time=0),(time=0)] elements=24 memory_strategy=streaming_fold",
        ),
        (
            r#"{"dataset":"t2m","arg_max":[]}"#,
            "dataset=t2m status=ok op=arg_max argmax_index=23 at=[(time=3,station=F)] elements=24 \
             memory_strategy=streaming_fold",
        ),
        (
            r#"{"dataset":"t2m","any_nan":1}"#,
            "dataset=t2m status=ok op=any_nan axes=[1] reduced_shape=4 values=[false,false,false,false] elements=24 \
             memory_strategy=streaming_fold",
        ),
        (
            r#"{"dataset":"t2m","quantile":{"q":0.1}}"#,
            "dataset=t2m status=ok op=quantile q=0.1 quantile=281.15 elements=24 memory_strategy=in_memory_materialize",
        ),
        (
            r#"{"dataset":"t2m","histogram":{"bins":3}}"#,
            "dataset=t2m status=ok op=histogram bins=3 histogram=bins=3 counts=[8,8,8] elements=24 \
             memory_strategy=in_memory_materialize",
        ),
        (
            r#"{"dataset":"t2m","histogram":{"bins":4,"axis":1}}"#,
            "dataset=t2m status=ok op=histogram axes=[1] bins=4 reduced_shape=4 values=[2,1,1,2,2,1,1,2,2,1,1,2,…+4] \
             elements=24 memory_strategy=in_memory_materialize",
        ),
        (
            r#"{"dataset":"t2m","covariance":"station"}"#,
            "dataset=t2m status=ok op=covariance axes=[1] order=4 values=[0.729167,0.729167,0.729167,0.729167,0.729167,\
             0.729167,0.729167,0.729167,0.729167,0.729167,0.729167,0.729167,…+4] elements=24 \
             memory_strategy=in_memory_materialize",
        ),
        (
            r#"{"dataset":"t2m","transform":{"method":"zscore"}}"#,
            "dataset=t2m status=ok op=transform transform=mean=285.75 std=3.461093 elements=24 memory_strategy=transform_ram",
        ),
        (
            r#"{"dataset":"t2m","transform":{"method":"minmax","axis":1}}"#,
            "dataset=t2m status=ok op=transform axes=[1] reduced_shape=4 values=min=[280,283,286,289] \
             max=[282.5,285.5,288.5,291.5] elements=24 memory_strategy=transform_ram",
        ),
        (
            r#"{"dataset":"t2m","sum":[],"group_by":["station"],"selection":[{"stop":2},{"stop":2}]}"#,
            "dataset=t2m status=ok op=sum axes=[0] reduced_shape=2 values=[563,564] elements=4 group_count=2 \
             memory_strategy=streaming_fold",
        ),
    ] {
        assert_eq!(execute_ok(&dir, query, &["-q"]), format!("{line}\n"), "{query}");
    }
    let line =
        execute_ok(&dir, r#"{"dataset":"t2m","selection":[{"stop":2},{}]}"#, &["-q", "--preview", "8"]);
    let expected = "dataset=t2m status=preview read_bytes=48 memory_strategy=capped_in_memory preview=8 f32 truncated=true \
                sample=[280,280.5,281,281.5,282,282.5]\n";
    assert_eq!(line, expected);
    // Every way to write a result reports its path and its strategy.
    for (write, file, bytes, strategy) in [
        (r#"{"target":"spill","path":"out.bin"}"#, "out.bin", 96, "transform_spill"),
        (r#"{"target":"sidecar","timestamp":false}"#, "weather.center.tet", 96, "transform_sidecar"),
    ] {
        let query = format!(r#"{{"dataset":"t2m","transform":{{"method":"center"}},"write":{write}}}"#);
        let line = execute_ok(&dir, &query, &["-q"]);
        let expected = format!("{file} spill_bytes={bytes} memory_strategy={strategy}");
        assert!(line.contains(" spill=") && line.contains(&expected), "{line}");
    }
}

#[test]
fn results_replace_files_only_with_force() {
    let dir = TestDir::with_weather();
    for (query, file) in [
        (r#"{"dataset":"t2m","spill":"out.bin"}"#, "out.bin"),
        (
            r#"{"dataset":"t2m","transform":{"method":"center"},"write":{"target":"spill","path":"hours.tgm"}}"#,
            "hours.tgm",
        ),
        (
            r#"{"dataset":"t2m","transform":{"method":"center"},"write":{"target":"sidecar","path":"other.tet"}}"#,
            "other.tet",
        ),
        (
            r#"{"dataset":"t2m","transform":{"method":"center"},"write":{"target":"sidecar","timestamp":false}}"#,
            "weather.center.tet",
        ),
    ] {
        dir.write(file, b"precious");
        let refused = execute(&dir, query, &["-q"]);
        assert_eq!(refused.code, Some(8), "{query}: {}", refused.stderr);
        assert!(refused.stderr.contains(&format!("{file}: file exists")), "{}", refused.stderr);
        assert!(refused.stderr.ends_with("hint: `--force` replaces it\n"), "{}", refused.stderr);
        assert_eq!(dir.read(file), b"precious", "{query}");
        execute_ok(&dir, query, &["-q", "--force"]);
        assert!(dir.read(file).len() >= 96, "{query}");
    }
}

#[test]
fn quiet_without_values_prints_one_line() {
    let dir = TestDir::with_weather();
    let line = |args: &[&str]| {
        let output = tet(&dir, args);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        output.stdout
    };
    let planned = "dataset=t2m status=planned chunks=4 elements=24 stored_bytes=96 logical_shape=4×6 \
                   touch_policy=dense_half_open_intervals_per_axis_json_step_ignored_for_chunk_touch_list\n";
    assert_eq!(line(&["query", r#"{"dataset":"t2m"}"#, "-t", "weather.tet", "-q"]), planned);
    let strided =
        line(&["query", r#"{"dataset":"t2m","selection":[{"step":3},{}]}"#, "-t", "weather.tet", "-q"]);
    assert!(strided.contains(" elements=12 ") && strided.contains(" touch_policy=strided_"), "{strided}");
    let valid = "dataset=t2m validated hint=pass --tet PATH for catalog and read_plan\n";
    assert_eq!(line(&["query", MEANS, "-q"]), valid);
}

#[test]
fn plans_need_no_values_and_validation_no_file() {
    let dir = TestDir::with_weather();
    assert_snapshot!("only_valid", tet(&dir, &["query", MEANS]).snapshot());
    assert_snapshot!(
        "only_planned",
        tet(&dir, &["query", r#"{"dataset":"t2m"}"#, "-t", "weather.tet"]).snapshot()
    );
    assert_snapshot!("needs_execute", tet(&dir, &["query", MEANS, "-t", "weather.tet"]).snapshot());
    let plan = |more: &[&str]| {
        let output = run(dir
            .command("tet")
            .args(["query", MEANS, "-t", "weather.tet", "--format", "plan"])
            .args(more));
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        serde_json::from_str::<Value>(&output.stdout).unwrap()
    };
    assert_eq!(plan(&[])["operation"]["mean"]["axes"][0], "1");
    assert_eq!(plan(&[])["read_plan"]["chunk_count"], 4);
    assert_eq!(plan(&["-x"]), plan(&[]), "a plan is never executed");
}

#[test]
fn previews_need_execute() {
    let dir = TestDir::with_weather();
    let look = r#"{"dataset":"t2m"}"#;
    assert_snapshot!("preview_needs_execute", tet(&dir, &["query", look, "--preview", "3"]).snapshot());
    assert_snapshot!("nothing_to_show", execute(&dir, look, &["-q"]).snapshot());
    assert_eq!(execute(&dir, look, &["--format", "table"]).code, Some(8));
    assert_eq!(execute(&dir, look, &["--preview", "0"]).code, Some(8));
    let sample = execute_ok(&dir, look, &["-q", "--preview-f32", "2"]);
    assert!(sample.ends_with(" preview=2 f32 truncated=true sample=[280,280.5]\n"), "{sample}");
    let all: Value = serde_json::from_str(&execute_ok(&dir, look, &["--format", "reference"])).unwrap();
    assert_eq!(all["execution"]["f32_preview"].as_array().unwrap().len(), 24);
    assert_eq!(tet(&dir, &["query", look, "-x"]).code, Some(2), "values come from a file");
}

#[test]
fn half_floats_are_printed_as_numbers() {
    use tercet::core::tensor::f16;
    use tercet::core::{DType, TensorView};
    use tercet::tet::{Layout, Writer, WriterOptions};

    let dir = TestDir::new();
    let mut layout = Layout::new();
    let id = layout.dataset("half", DType::F16, [3], [3]).unwrap();
    let mut writer = Writer::create(dir.path("weather.tet"), layout, WriterOptions::new()).unwrap();
    let values = [-7.9375, f32::NAN, f32::INFINITY].map(f16::from_f32);
    writer.array(id, TensorView::from_slice(&[3], &values).unwrap()).unwrap();
    writer.finish().unwrap();
    let query = r#"{"dataset":"half"}"#;
    let line = execute_ok(&dir, query, &["-q", "--preview", "9"]);
    assert!(line.ends_with(" preview=3 f16 truncated=false sample=[-7.9375,NaN,inf]\n"), "{line}");
    let text = execute_ok(&dir, query, &[]);
    assert!(text.contains("-7.9375") && text.contains("NaN"), "{text}");
    let json: Value = serde_json::from_str(&execute_ok(&dir, query, &["--format", "reference"])).unwrap();
    assert_eq!(json["execution"]["f16_preview"][0], 51184, "the reference writes the bits");
    let json: Value = serde_json::from_str(&execute_ok(&dir, query, &["--json"])).unwrap();
    assert_eq!(json["values"], serde_json::json!([-7.9375, null, null]));
}

#[test]
fn queries_are_read_from_arguments_files_and_stdin() {
    let dir = TestDir::with_weather();
    let toml = "dataset = \"t2m\"\nmean = [\"station\"]\n";
    dir.write("q.json", MEANS.as_bytes());
    dir.write("q.toml", toml.as_bytes());
    dir.write("query", toml.as_bytes());
    let line = execute_ok(&dir, MEANS, &["-q"]);
    for query in ["q.json", "q.toml", "query", "./q.json", toml, &format!("  \n{MEANS}")] {
        assert_eq!(execute_ok(&dir, query, &["-q"]), line, "{query}");
    }
    for args in [&["query", "-"][..], &["query"], &["q"]] {
        for text in [MEANS, toml] {
            let mut command = dir.command("tet");
            command.args(args).args(["-t", "weather.tet", "-x", "-q", "--no-stats"]).write_stdin(text);
            assert_eq!(run(&mut command).stdout, line, "{args:?}");
        }
    }
    // The file extension selects JSON or TOML.
    dir.write("wrong.toml", MEANS.as_bytes());
    assert_eq!(execute(&dir, "wrong.toml", &[]).code, Some(8));
    dir.write("wrong.json", toml.as_bytes());
    assert_eq!(execute(&dir, "wrong.json", &[]).code, Some(8));
}

#[test]
fn every_program_name_gives_the_same_result() {
    let dir = TestDir::with_weather();
    let line = execute_ok(&dir, MEANS, &["-q"]);
    let verbs: [(&str, &[&str]); 4] =
        [("tet", &["q"]), ("tercet", &["query"]), ("tercet", &["tet", "query"]), ("tercet", &["tet", "q"])];
    for (program, verb) in verbs {
        for path in ["weather.tet", "./weather.tet"] {
            let output = run(dir.command(program).args(verb).args([MEANS, "-t", path, "-xq", "--no-stats"]));
            assert_eq!(
                (output.code, &output.stdout),
                (Some(0), &line),
                "{program} {verb:?}: {}",
                output.stderr
            );
        }
    }
    dir.write("foreign", b"not an array at all");
    let output = run(dir.command("tercet").args(["query", MEANS, "-t", "foreign", "-x"]));
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    // Standard input is empty.
    assert_eq!(tet(&dir, &["query", MEANS, "-t", "-", "-x"]).code, Some(4));
}

#[test]
fn query_errors_point_at_the_query() {
    let dir = TestDir::with_weather();
    let wrong = |name: &str, query: &str| {
        let output = execute(&dir, query, &[]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(8), ""), "{query}");
        assert_snapshot!(name, output.snapshot());
    };
    wrong("wrong_key", r#"{"dataset":"t2m","maen":[]}"#);
    wrong("wrong_step", "{\n  \"dataset\": \"t2m\",\n  \"selection\": [{\"step\": 0}, {}]\n}");
    wrong("wrong_toml", "dataset = \"t2m\"\nmean = [\n");
    wrong("wrong_label", r#"{"dataset":"t2m","mean":[],"selection":[{},{"start_label":"Q"}]}"#);
    wrong("wrong_in_a_long_query", &format!("{{\"dataset\":\"t2m\",{}\"mena\":[]{0}}}", " ".repeat(4000)));
    dir.write("q.json", br#"{"dataset":"t2m","mean":[],}"#);
    wrong("wrong_in_a_file", "q.json");
}

#[test]
fn query_limits_are_enforced() {
    let dir = TestDir::with_weather();
    let long = format!("{{\"dataset\":\"t2m\",{}\"mean\":[]}}", " ".repeat(2_000_000));
    dir.write("long.json", long.as_bytes());
    let expected = "exceeds the limit of 1048576 bytes for a query\n";
    let from_file = execute(&dir, "long.json", &[]);
    assert_eq!((from_file.code, from_file.stderr), (Some(8), format!("error: long.json: {expected}")));
    let mut command = dir.command("tet");
    let from_pipe = run(command.args(["query", "-t", "weather.tet", "-x"]).write_stdin(long));
    assert_eq!((from_pipe.code, from_pipe.stderr), (Some(8), format!("error: standard input: {expected}")));

    let nested = |levels: usize| {
        let inner = levels - 1;
        format!("{{\"dataset\":\"t2m\",\"mean\":{}{}}}", "[".repeat(inner), "]".repeat(inner))
    };
    let deep = execute(&dir, &nested(65), &[]);
    assert_eq!(deep.code, Some(8));
    assert!(deep.stderr.contains("nested deeper than 64 levels"), "{}", deep.stderr);
    let allowed = execute(&dir, &nested(64), &[]);
    assert!(!allowed.stderr.contains("deeper"), "{}", allowed.stderr);
    dir.write("bytes.json", b"{\"dataset\":\"\xff\"}");
    assert_eq!(execute(&dir, "bytes.json", &[]).code, Some(8));
    assert_eq!(execute(&dir, "missing.json", &[]).code, Some(3));
    assert_eq!(execute(&dir, ".", &[]).code, Some(3));
}

#[test]
fn a_missing_dataset_is_an_error() {
    let dir = TestDir::with_weather();
    let query = r#"{"dataset":"t2n","mean":[]}"#;
    let refused = execute(&dir, query, &[]);
    assert_snapshot!("missing_full", refused.snapshot());
    for more in [&["-q"][..], &["--json"], &["--format", "table"], &["--format", "reference", "--strict"]] {
        let output = execute(&dir, query, more);
        assert_eq!((output.code, output.stdout.as_str()), (Some(8), ""), "{more:?}");
    }
    // The reference implementation reports it in its answer.
    assert_snapshot!("missing_stats", execute(&dir, query, &["--format", "stats"]).snapshot());
    let output = execute(&dir, query, &["--format", "reference"]);
    assert_eq!(output.code, Some(0));
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json["catalog"]["matched"], false);
    assert_eq!(json["catalog"]["available_datasets"], serde_json::json!(["t2m", "mask"]));
    assert!(json.get("execution").is_none());
}

#[test]
fn damage_is_detected() {
    let dir = TestDir::with_weather();
    dir.with_damaged_chunk("bad.tet");
    let args = ["query", MEANS, "-t", "bad.tet", "-x", "-q", "--no-stats"];
    let refused = tet(&dir, &args);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(5), ""), "{}", refused.stderr);
    let taken = run(dir.command("tet").args(args).arg("--ignore-checksums"));
    assert_eq!(taken.code, Some(0), "{}", taken.stderr);
    let read = run(dir.command("tet").args(args).args(["--access", "pread"]));
    assert_eq!(read.code, Some(5), "{}", read.stderr);
}

#[test]
fn explain_prints_the_plan() {
    let dir = TestDir::with_weather();
    let text = execute_ok(&dir, MEANS, &["--explain"]);
    assert!(text.contains("\nexplain:\n") && text.contains("chunks: 0 by statistics, 4 by values"), "{text}");
    let line = execute(&dir, MEANS, &["--explain", "-q"]);
    assert_eq!(line.stdout.lines().count(), 1);
    assert!(line.stderr.starts_with("explain:\n"), "{}", line.stderr);
    let json = execute_ok(&dir, MEANS, &["--explain", "--format", "reference"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["explain"]["chunks_by_payload"], 4);
}

#[test]
fn the_schema_is_json() {
    let output = TestDir::new().tet("query --schema");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let schema: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(schema["type"], "object");
}

#[test]
fn names_are_escaped_for_terminals() {
    let dir = TestDir::new();
    write_named(&dir.path("weather.tet"), "a\u{1b}[2Jb", "c\u{9b}31m\r\u{202e}d\n");
    let is_unsafe = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for query in [
        "{\"dataset\":\"a\\u001b[2Jb\"}",
        "{\"dataset\":\"a\\u001b[2Jb\",\"max\":[]}",
        "{\"dataset\":\"a\\u001b[2Jc\"}",
        "{\"dataset\":\"x\",\"me\\u001b[2Jan\":[]}",
        "{\"dataset\":\"x\",\"me\u{202e}an\":\u{1b}[]}",
    ] {
        for format in ["full", "table", "table-verbose", "quiet"] {
            let text = execute(&dir, query, &["--preview", "2", "--format", format]).snapshot();
            assert!(!text.contains(is_unsafe), "{query} {format}: {text:?}");
        }
    }
    assert!(!dir.tet("qhist").snapshot().contains(is_unsafe));
}
