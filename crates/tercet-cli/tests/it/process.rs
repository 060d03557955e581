//! Process behaviour: signals, process limits, named pipes.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Long enough for a slow machine; only a failing test waits for it.
const TIMEOUT: Duration = Duration::from_mins(1);

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_tercet")).with_file_name(name)
}

/// A command that leaves the query history of the user alone.
fn command(directory: &Path, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).env("XDG_CACHE_HOME", directory.join("cache"));
    command.env_remove("TET_QUERY_HISTORY_FILE");
    command
}

fn run(directory: &Path, name: &str, args: &[&str]) -> Output {
    command(directory, program(name)).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A `.npy` file of six bytes.
fn npy() -> Vec<u8> {
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }";
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend([1, 2, 3, 4, 5, 6]);
    bytes
}

/// A directory with `a.npy`, `a.tet` and `a.tgm`.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.npy"), npy()).unwrap();
    for (name, file) in [("tet", "a.tet"), ("tgm", "a.tgm")] {
        let done = run(directory.path(), name, &["create", file, "--from", "a=a.npy"]);
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    directory
}

fn wait(mut child: Child) -> Option<i32> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if started.elapsed() > TIMEOUT {
            child.kill().unwrap();
            panic!("did not end");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// A sparse file of 4 TiB: reading it takes longer than the test waits.
#[test]
fn the_first_signal_ends_a_running_command() {
    let directory = tempfile::tempdir().unwrap();
    File::create(directory.path().join("zeros.tgm")).unwrap().set_len(1 << 42).unwrap();
    for (verb, name) in [("info", "TERM"), ("validate", "TERM"), ("ls", "TERM")] {
        let mut command = command(directory.path(), program("tgm"));
        command.args([verb, "zeros.tgm"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(300));
        signal(&child, name);
        assert_eq!(wait(child), Some(130), "{verb}");
    }
}

/// A `.npy` file of this many zeros, which is sparse.
fn zeros(path: &Path, rows: u64) {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows}, 131072), }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    fs::write(path, &bytes).unwrap();
    File::options().write(true).open(path).unwrap().set_len(bytes.len() as u64 + (rows << 17)).unwrap();
}

#[test]
fn a_signal_ends_commands_that_read_arrays() {
    let directory = tempfile::tempdir().unwrap();
    zeros(&directory.path().join("zeros.npy"), 1 << 17);
    for (name, args) in [
        ("tet", "create zeros.tet --from a=zeros.npy"),
        ("tercet", "hash zeros.npy"),
        ("tercet", "diff zeros.npy zeros.npy"),
        ("tercet", "catalog zeros.npy -o c.tatami"),
        ("tercet", "convert zeros.npy -o - --to npy"),
    ] {
        let mut command = command(directory.path(), program(name));
        command.args(args.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        thread::sleep(Duration::from_millis(300));
        signal(&child, "TERM");
        assert_eq!(wait(child), Some(130), "{name} {args}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "{name} {args}");
    }
}

/// Of several writers of one new file exactly one succeeds; the others report that it exists.
#[test]
fn writers_do_not_replace_a_file_that_appears_meanwhile() {
    let directory = directory();
    let path = directory.path();
    for (name, args) in [
        ("tet", "create new.tet --from a=a.npy"),
        ("tet", "repair a.tet --salvage new.tet"),
        ("tet", "repack a.tet new.tet"),
        ("tet", "mean a.tet a -o new.npy"),
        ("tet", "plot a.tet a --png new.png"),
        ("tgm", "create new.tgm --from a=a.npy"),
        ("tercet", "convert a.tet new.nc"),
        ("tercet", "catalog a.tet -o new.tatami"),
        ("tercet", "get a.tet#a -o new.npy"),
    ] {
        let output = args.split(' ').find(|arg| arg.starts_with("new.")).unwrap();
        for _ in 0..4 {
            let start = || {
                let mut command = command(path, program(name));
                command.args(args.split(' ')).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
            };
            let children: Vec<Child> = (0..4).map(|_| start()).collect();
            let results: Vec<Output> =
                children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
            let successes = results.iter().filter(|result| result.status.success()).count();
            assert_eq!(successes, 1, "{name} {args}");
            for failed in results.iter().filter(|result| !result.status.success()) {
                let stderr = text(&failed.stderr);
                assert!(stderr.contains("exists"), "{name} {args}: {stderr}");
            }
            fs::remove_file(path.join(output)).unwrap();
        }
    }
}

/// A file that is truncated while it is read is an error, not a signal.
#[test]
fn truncated_inputs_do_not_end_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    zeros(&path.join("all.npy"), 512);
    fs::write(path.join("b.npy"), npy()).unwrap();
    let made = run(path, "tet", &["create", "all.tet", "--raw", "--from", "a=all.npy"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    for (name, args) in [
        ("tet", "query {\"dataset\":\"a\",\"std\":[]} -x -t cut.tet"),
        ("tet", "append cut.tet --from b=b.npy"),
        ("tet", "create new.tet --force --from a=cut.npy"),
        ("tgm", "create new.tgm --force --from a=cut.npy"),
    ] {
        let input = if args.contains("cut.tet") { ("all.tet", "cut.tet") } else { ("all.npy", "cut.npy") };
        for delay in [5, 15, 30, 60] {
            fs::copy(path.join(input.0), path.join(input.1)).unwrap();
            let mut command = command(path, program(name));
            command.args(args.split(' ')).stdout(Stdio::null()).stderr(Stdio::piped());
            let child = command.spawn().unwrap();
            thread::sleep(Duration::from_millis(delay));
            File::options().write(true).open(path.join(input.1)).unwrap().set_len(1 << 16).unwrap();
            let result = child.wait_with_output().unwrap();
            let stderr = text(&result.stderr);
            assert!(
                result.status.code().is_some_and(|code| code < 9),
                "{name} {args}: {:?} {stderr}",
                result.status
            );
            assert!(!stderr.contains("panicked"), "{name} {args}: {stderr}");
        }
    }
}

/// `env` restores the default actions: the process that runs the tests may ignore some of these signals.
#[cfg(target_os = "linux")]
#[test]
fn interrupts_and_hangups_end_a_command() {
    let directory = tempfile::tempdir().unwrap();
    File::create(directory.path().join("zeros.tgm")).unwrap().set_len(1 << 42).unwrap();
    for name in ["INT", "HUP", "TERM"] {
        let mut command = command(directory.path(), "env");
        command.arg("--default-signal=HUP,INT,TERM").arg(program("tgm")).args(["info", "zeros.tgm"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(300));
        signal(&child, name);
        assert_eq!(wait(child), Some(130), "{name}");
    }
}

/// A conversion that is interrupted leaves neither its output nor temporary files.
#[test]
fn an_interrupted_conversion_removes_its_temporary_files() {
    let directory = tempfile::tempdir().unwrap();
    zeros(&directory.path().join("zeros.npy"), 65_536);
    let names = || {
        let entries = fs::read_dir(directory.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let mut command = command(directory.path(), program("tercet"));
    command.args(["convert", "zeros.npy", "out.nc", "-q"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while names().len() == 1 && started.elapsed() < TIMEOUT {
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(100));
    assert!(names().len() > 1, "nothing was written");
    signal(&child, "TERM");
    assert_eq!(wait(child), Some(130));
    assert_eq!(names(), ["zeros.npy"]);
}

/// A catalog refers to files by their paths, so it refuses a pipe instead of passing over it.
#[test]
fn a_catalog_of_a_pipe_is_refused() {
    let directory = directory();
    let made = Command::new("mkfifo").arg(directory.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let refused = run(directory.path(), "tercet", &["catalog", "pipe", "-o", "c.tatami"]);
    let stderr = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("neither a file nor a directory"), "{stderr}");
    assert!(!directory.path().join("c.tatami").exists());
}

/// Queries of tests are not stored in the history of the user.
#[test]
fn the_query_history_is_in_the_directory_of_the_test() {
    let directory = directory();
    let query = ["query", r#"{"dataset":"a","sum":[]}"#, "-x", "-q", "-t", "a.tet"];
    assert!(run(directory.path(), "tet", &query).status.success());
    assert!(directory.path().join("cache/tetration/query_history.jsonl").is_file());
}

/// `--max-memory` applies to every file that a command reads, before it changes anything.
#[test]
fn commands_that_change_files_obey_memory_limits() {
    let directory = directory();
    let path = directory.path();
    let done = |name: &str, args: &str| {
        let done = run(path, name, &args.split(' ').collect::<Vec<_>>());
        assert!(done.status.success(), "{args}: {}", text(&done.stderr));
    };
    fs::create_dir(path.join("all")).unwrap();
    fs::write(path.join("a.txt"), "words of a document").unwrap();
    done("tatami", "index a.txt -o all/a.tatami");
    done("tatami", "collection add all all/a.tatami");
    fs::copy(path.join("a.tgm"), path.join("plain.tgm")).unwrap();
    done("tgm", "index a.tgm");
    let files = ["a.tgm", "plain.tgm", "all/a.tatami", "all/tatami.manifest"];
    let read = || files.map(|file| fs::read(path.join(file)).unwrap());
    let before = read();
    for (name, args) in [
        ("tgm", "index plain.tgm"),
        ("tgm", "index a.tgm --rebuild"),
        ("tgm", "index a.tgm"),
        ("tgm", "index a.tgm --remove"),
        ("tgm", "create a.tgm --append --from b=a.npy"),
        ("tatami", "collection list all"),
        ("tatami", "collection tier all all/a.tatami 1"),
        ("tatami", "collection compact all"),
        ("tatami", "collection compact all --salvage"),
        ("tatami", "delete all/a.tatami --id x"),
        ("tatami", "delete all/a.tatami --where url=\"x\""),
    ] {
        let args: Vec<&str> = args.split(' ').chain(["--max-memory", "1"]).collect();
        let refused = run(path, name, &args);
        let stderr = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(6), "{args:?}: {stderr}");
        assert!(stderr.contains("hint: raise the limit with `--max-memory SIZE`"), "{args:?}: {stderr}");
    }
    assert!(read() == before, "a file was changed");
    for args in ["hash a.tgm", "diff a.tgm all/a.tatami", "convert a.tgm a.npz", "hash all/a.tatami"] {
        let args: Vec<&str> = args.split(' ').chain(["--max-memory", "1"]).collect();
        let refused = run(path, "tercet", &args);
        let stderr = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(6), "{args:?}: {stderr}");
        assert!(stderr.contains("hint: raise the limit with `--max-memory SIZE`"), "{args:?}: {stderr}");
    }
}

/// Chunks that are missing have the fill value: a few bytes of metadata can mean terabytes.
#[test]
fn a_small_store_does_not_expand_without_limit() {
    let directory = directory();
    let path = directory.path();
    let store = path.join("fill.zarr");
    fs::create_dir(&store).unwrap();
    let metadata = r#"{"zarr_format":3,"node_type":"array","shape":[512,1048576],"data_type":"float64","fill_value":1.0,
        "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[512,1024]}},
        "chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},
        "codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}"#;
    fs::write(store.join("zarr.json"), metadata).unwrap();
    for args in [&["hash", "fill.zarr"][..], &["convert", "fill.zarr", "out.npy"]] {
        let refused = run(path, "tercet", args);
        let stderr = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(6), "{args:?}: {stderr}");
        assert!(stderr.contains("fill.zarr: an array of a small store needs 4294967296 bytes"), "{stderr}");
    }
    assert!(!path.join("out.npy").exists());
    // A store inside of a directory is a file of another format, like others.
    assert!(run(path, "tercet", &["verify", "-r", ".", "-q"]).status.code() != Some(7));
}

/// An output that does not fit the disk is named as it was given.
#[test]
fn full_disks_name_the_output_of_conversions() {
    let directory = directory();
    let path = directory.path();
    // Values that do not shrink.
    let values: Vec<f64> = (0u32..1 << 16).map(|i| f64::from(i.wrapping_mul(2_654_435_761)).sqrt()).collect();
    let source = path.join("large.tet");
    let mut layout = tercet::tet::Layout::new();
    let a = layout.dataset("a", tercet::core::DType::F64, [1 << 16], [1 << 16]).unwrap();
    let mut writer = tercet::tet::Writer::create(&source, layout, tercet::tet::WriterOptions::new()).unwrap();
    writer.array(a, tercet::core::TensorView::from_slice(&[1 << 16], &values).unwrap()).unwrap();
    writer.finish().unwrap();
    for out in ["out.nc", "out.npy", "out.tet"] {
        let mut command = command(path, "sh");
        let script = format!("ulimit -f 100; exec \"$0\" convert large.tet {out} 2>&1");
        let refused = command.arg("-c").arg(script).arg(program("tercet")).output().unwrap();
        let printed = text(&refused.stdout);
        assert!(printed.starts_with(&format!("error: {out}: ")), "{printed}");
        assert!(!path.join(out).exists());
    }
}

#[test]
fn ignored_signals_stay_ignored() {
    let directory = tempfile::tempdir().unwrap();
    File::create(directory.path().join("zeros.tgm")).unwrap().set_len(1 << 42).unwrap();
    for ignored in ["HUP", "INT", "TERM"] {
        let mut command = command(directory.path(), "sh");
        let script = format!("trap '' {ignored}; exec \"$0\" info zeros.tgm");
        command.arg("-c").arg(script).arg(program("tgm"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(300));
        signal(&child, ignored);
        // A handled signal ends the process after a second.
        thread::sleep(Duration::from_millis(1500));
        assert!(child.try_wait().unwrap().is_none(), "{ignored}");
        // Other signals may be ignored by the process that runs the tests.
        let (end, code) = if ignored == "TERM" { ("KILL", None) } else { ("TERM", Some(130)) };
        signal(&child, end);
        assert_eq!(wait(child), code, "{ignored}");
    }
}

/// Runs a command as a user who may have this many processes and threads. With one, no thread can be started.
fn run_with_processes(processes: u32, directory: &Path, program: &Path, args: &[&str]) -> Child {
    let mut command = command(directory, "prlimit");
    command.arg(format!("--nproc={processes}:{processes}")).arg("--").arg(program).args(args);
    // The limit does not bind root.
    if fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0) {
        command.uid(65_533);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn commands_run_when_no_thread_can_be_started() {
    let directory = directory();
    // A directory of the other user, and a copy of the program that it may run.
    fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let tercet = directory.path().join("tercet");
    fs::copy(program("tercet"), &tercet).unwrap();
    fs::write(directory.path().join("rows.jsonl"), "{\"a\":1}\n{\"a\":2}\n").unwrap();
    fs::write(directory.path().join("words.txt"), "words of a document\n").unwrap();
    let made = run(directory.path(), "tatami", &["create", "a.tatami", "--from", "rows.jsonl"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let lines: [&[&str]; 14] = [
        &["demo"],
        &["info", "a.tet"],
        &["verify", "--deep", "a.tet"],
        &["tet", "extract", "a.tet", "a", "-o", "x.npy"],
        &["tet", "query", "{\"dataset\": \"a\", \"mean\": []}", "-t", "a.tet", "-x"],
        &["tgm", "validate", "--full", "a.tgm"],
        &["tgm", "extract", "a.tgm", "0", "-o", "y.npy"],
        &["tatami", "cat", "a.tatami"],
        &["tatami", "verify", "--deep", "a.tatami"],
        &["tatami", "create", "b.tatami", "--from", "rows.jsonl"],
        &["tgm", "ls", "http://127.0.0.1:1/x.tgm"],
        &["tatami", "index", "words.txt", "-o", "s.tatami"],
        &["convert", "a.tet", "c.nc"],
        &["serve", ".", "--addr", "127.0.0.1:0"],
    ];
    let ended = |processes, args: &[&str]| {
        let mut child = run_with_processes(processes, directory.path(), &tercet, args);
        let mut out = child.stdout.take().unwrap();
        let mut err = child.stderr.take().unwrap();
        let code = wait(child);
        let mut result = String::new();
        let _ = std::io::Read::read_to_string(&mut out, &mut result);
        let _ = std::io::Read::read_to_string(&mut err, &mut result);
        assert!(matches!(code, Some(0 | 3)), "{processes} processes: {args:?}: {code:?} {result}");
        assert!(!result.contains("panicked"), "{processes} processes: {args:?}: {result}");
        (code, result)
    };
    for args in lines {
        let (code, result) = ended(1, args);
        let needs_threads = args.iter().any(|arg| arg.starts_with("http") || *arg == "serve");
        assert!(code == Some(0) || needs_threads, "{args:?}: {result}");
    }
    // Some threads can be started, but not all of them at every moment.
    for processes in [2, 3, 4, 5] {
        for line in [1, 2, 4, 5, 7, 8] {
            ended(processes, lines[line]);
        }
    }
}

#[test]
fn too_many_threads_are_not_started() {
    let directory = directory();
    for by_variable in [true, false] {
        let mut command = command(directory.path(), program("tet"));
        command.args(["query", "{\"dataset\": \"a\", \"mean\": []}", "-t", "a.tet", "-x", "--explain"]);
        if by_variable {
            command.env("RAYON_NUM_THREADS", "100000");
        } else {
            command.args(["--threads", "100000"]);
        }
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
        let result = text(&done.stdout) + &text(&done.stderr);
        let threads =
            result.lines().find_map(|line| line.trim().strip_prefix("threads: ")?.parse::<usize>().ok());
        let cores = thread::available_parallelism().map_or(1, usize::from);
        assert!(threads.is_some_and(|threads| threads <= 4 * cores), "{result}");
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Writes bytes to a pipe from another thread: opening it waits for the reader.
fn feed(path: PathBuf, bytes: Vec<u8>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut pipe = File::options().write(true).open(path).unwrap();
        // The reader may close the pipe early.
        let _ = pipe.write_all(&bytes);
    })
}

#[test]
fn named_pipes_are_read_like_files() {
    let directory = directory();
    let pipe = directory.path().join("pipe");
    fifo(&pipe);
    for (verb, file) in [("info", "a.tet"), ("verify", "a.tgm"), ("outline", "a.tet")] {
        let whole = run(directory.path(), "tercet", &[verb, file]);
        let fed = feed(pipe.clone(), fs::read(directory.path().join(file)).unwrap());
        let piped = run(directory.path(), "tercet", &[verb, "pipe"]);
        fed.join().unwrap();
        assert_eq!(piped.status.code(), Some(0), "{verb}: {}", text(&piped.stderr));
        // Tables pad the name of the file with spaces.
        let same = |output: &Output, name: &str| text(&output.stdout).replace(' ', "").replace(name, "FILE");
        assert_eq!(same(&piped, "pipe"), same(&whole, file), "{verb}");
    }
    for (name, file, object) in [("tet", "b.tet", "a"), ("tgm", "b.tgm", "0")] {
        let fed = feed(pipe.clone(), npy());
        let made = run(directory.path(), name, &["create", file, "--from", "a=pipe"]);
        fed.join().unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        let whole = run(directory.path(), name, &["extract", file, object, "-o", "-"]).stdout;
        assert!(whole.ends_with(&[1, 2, 3, 4, 5, 6]), "{file}");
        let fed = feed(pipe.clone(), fs::read(directory.path().join(file)).unwrap());
        let piped = run(directory.path(), name, &["extract", "pipe", object, "-o", "-"]).stdout;
        fed.join().unwrap();
        assert_eq!(piped, whole, "{file}");
    }
}

#[test]
fn patterns_match_names_that_are_not_utf8_and_skip_pipes() {
    let directory = directory();
    let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff.tet");
    fs::copy(directory.path().join("a.tet"), directory.path().join(name)).unwrap();
    fifo(&directory.path().join("p.tet"));
    let mut command = command(directory.path(), program("tet"));
    command.args(["info", "-q", "*.tet"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    assert_eq!(wait(child), Some(0));
    let mut found = String::new();
    std::io::Read::read_to_string(&mut out, &mut found).unwrap();
    assert_eq!(found.lines().count(), 2, "{found}");
    let missing = run(directory.path(), "tet", &["info", "\u{1b}[31m.tet"]);
    assert_eq!(missing.status.code(), Some(3));
    assert!(text(&missing.stderr).contains("cannot open"), "{}", text(&missing.stderr));
}

/// Runs a command whose output is a terminal.
#[cfg(feature = "arrow")]
fn run_on_a_terminal(directory: &Path, command: &str) -> Output {
    let mut script = self::command(directory, "script");
    let path = program("tatami").parent().unwrap().to_owned();
    script.env("PATH", format!("{}:/usr/bin:/bin", path.display()));
    script.args(["-qec", command, "/dev/null"]).stdin(Stdio::null()).output().unwrap()
}

#[cfg(feature = "arrow")]
#[test]
fn only_binary_data_is_not_written_to_a_terminal() {
    let directory = directory();
    fs::write(directory.path().join("rows.jsonl"), "{\"a\":1}\n{\"a\":2}\n").unwrap();
    for out in ["-", "/dev/tty"] {
        for (to, first) in [("csv", "a\r\n1\r\n2\r\n"), ("jsonl", "{\"a\":1}\r\n{\"a\":2}\r\n")] {
            let ran = run_on_a_terminal(
                directory.path(),
                &format!("tatami convert rows.jsonl {out} -q --no-progress --to {to}"),
            );
            assert_eq!((ran.status.code(), text(&ran.stdout)), (Some(0), first.to_owned()), "{to} {out}");
        }
        for to in ["tatami", "parquet", "arrow-stream"] {
            let ran =
                run_on_a_terminal(directory.path(), &format!("tatami convert rows.jsonl {out} --to {to}"));
            assert_eq!(ran.status.code(), Some(8), "{to} {out}");
            assert!(text(&ran.stdout).contains("refusing to write binary data to a terminal"), "{to} {out}");
        }
    }
}

#[cfg(feature = "arrow")]
#[test]
fn terminals_are_not_controlled_by_cells() {
    let directory = directory();
    // Bell, escape, C1, bidirectional and zero-width characters, in a name and in values.
    let row = "{\"n\\u0007\":\"a\\u001b[31m\\u009b31m\\u202eb\\u200bc\\td\\ne\",\"l\":[\"\\u009b\"]}\n";
    fs::write(directory.path().join("rows.jsonl"), row).unwrap();
    for (out, to) in [("-", "csv"), ("/dev/stdout", "tsv"), ("/dev/tty", "tsv"), ("-", "jsonl")] {
        let command = format!("tatami convert rows.jsonl {out} -q --no-progress --to {to}");
        let ran = run_on_a_terminal(directory.path(), &command);
        let shown = text(&ran.stdout).replace("\r\n", "\n");
        assert_eq!(ran.status.code(), Some(0), "{shown}");
        let is_safe = |c: char| !c.is_control() || c == '\n' || (to == "tsv" && c == '\t');
        assert!(shown.chars().all(is_safe), "{to} {out}: {shown:?}");
        assert!(!shown.contains(['\u{202e}', '\u{200b}']), "{to} {out}: {shown:?}");
        assert!(shown.contains("[31m"), "{to} {out}: {shown:?}");
    }
    // Anything else gets the values as they are.
    let piped = run(directory.path(), "tatami", &["convert", "rows.jsonl", "-", "-q", "--to", "csv"]);
    assert!(text(&piped.stdout).contains("a\u{1b}[31m\u{9b}31m\u{202e}b\u{200b}c\td\ne"), "{piped:?}");
}

#[test]
fn queries_and_salvage_read_named_pipes() {
    let directory = directory();
    let pipe = directory.path().join("pipe");
    fifo(&pipe);
    let bytes = fs::read(directory.path().join("a.tet")).unwrap();
    let query = ["query", r#"{"dataset":"a","sum":[]}"#, "-x", "--format", "quiet", "-t"];
    for name in ["tet", "tercet"] {
        let whole = run(directory.path(), name, &[&query[..], &["a.tet"]].concat());
        let fed = feed(pipe.clone(), bytes.clone());
        let piped = run(directory.path(), name, &[&query[..], &["pipe"]].concat());
        fed.join().unwrap();
        assert_eq!(piped.status.code(), Some(0), "{}", text(&piped.stderr));
        assert_eq!(text(&piped.stdout).replace("pipe", "a.tet"), text(&whole.stdout));
        let fed = feed(pipe.clone(), bytes.clone());
        let salvaged = run(directory.path(), name, &["repair", "pipe", "-o", "b.tet", "--force"]);
        fed.join().unwrap();
        assert_eq!(salvaged.status.code(), Some(0), "{}", text(&salvaged.stderr));
        assert!(run(directory.path(), "tet", &["verify", "--deep", "b.tet"]).status.success());
        let fed = feed(pipe.clone(), bytes.clone());
        let planned = run(directory.path(), name, &["repair", "--plan", "pipe"]);
        fed.join().unwrap();
        assert_eq!(planned.status.code(), Some(0), "{}", text(&planned.stderr));
        let fed = feed(pipe.clone(), bytes.clone());
        let changed = run(directory.path(), name, &["repair", "pipe", "--apply", "footer_invalid"]);
        fed.join().unwrap();
        assert_eq!(changed.status.code(), Some(8));
        assert!(
            text(&changed.stderr).contains("is a pipe, which cannot be changed in place"),
            "{}",
            text(&changed.stderr)
        );
    }
    let both = run(directory.path(), "tet", &["query", "-", "-t", "-"]);
    assert_eq!(both.status.code(), Some(8), "{}", text(&both.stderr));
}

/// Reads a pipe in another thread: opening it waits for the writer.
fn drain(path: PathBuf) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || fs::read(path).unwrap())
}

#[test]
fn named_pipes_and_devices_are_written_like_files() {
    let directory = directory();
    let pipe = directory.path().join("pipe");
    fifo(&pipe);
    fs::write(directory.path().join("rows.jsonl"), "{\"id\":1,\"text\":\"a\"}\n{\"id\":2,\"text\":\"b\"}\n")
        .unwrap();
    let made = run(directory.path(), "tatami", &["create", "a.tatami", "--from", "rows.jsonl"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    for (name, args) in [
        ("tet", "create OUT --from a=a.npy --profile interop"),
        ("tet", "extract a.tet a -o OUT --as npy"),
        ("tet", "repair a.tet -o OUT"),
        ("tgm", "create OUT --from a=a.npy --reproducible --compression zstd"),
        ("tgm", "extract a.tgm 0 -o OUT"),
        ("tgm", "copy a.tgm OUT"),
        ("tgm", "repack a.tgm OUT --compression zstd --reproducible"),
        ("tgm", "set -s k=v a.tgm OUT --reproducible"),
        ("tgm", "merge a.tgm -o OUT --reproducible"),
        ("tgm", "reshuffle a.tgm -o OUT --reproducible"),
        ("tgm", "repair a.tgm -o OUT"),
        ("tatami", "create OUT --from rows.jsonl"),
        ("tatami", "index rows.jsonl -o OUT"),
        ("tatami", "merge a.tatami a.tatami -o OUT"),
        ("tatami", "repair a.tatami -o OUT"),
        ("tet", "repack a.tet OUT"),
        ("tet", "merge a.tet -o OUT"),
        ("tet", "mean a.tet a -o OUT --as npy"),
        ("tercet", "convert a.tet OUT --to npy"),
        ("tercet", "convert a.tet -o OUT --to nc3"),
        ("tercet", "catalog a.tet a.tgm -o OUT"),
        ("tercet", "get a.tet#a -o OUT --to npy"),
        #[cfg(feature = "arrow")]
        ("tatami", "convert a.tatami OUT --to csv"),
    ] {
        let print = |out: &str| {
            let args = args.replace("OUT", out);
            let args: Vec<&str> = args.split(' ').collect();
            // The time of the history is that of the environment.
            let mut command = command(directory.path(), program(name));
            command.args(&args).env("SOURCE_DATE_EPOCH", "1700000000");
            let done = command.output().unwrap();
            assert_eq!(done.status.code(), Some(0), "{name} {args:?}: {}", text(&done.stderr));
            text(&done.stdout)
        };
        let _ = fs::remove_file(directory.path().join("whole"));
        let printed = print("whole");
        let whole = fs::read(directory.path().join("whole")).unwrap();
        let drained = drain(pipe.clone());
        // Also with the same summary, and without `--force`: a pipe is not replaced.
        assert_eq!(print("pipe").replace("pipe", "whole"), printed, "{name} {args}");
        assert!(drained.join().unwrap() == whole, "{name} {args}");
        print("/dev/null");
    }
    let refused = run(directory.path(), "tgm", &["repair", "pipe", "-o", "pipe"]);
    assert_eq!(refused.status.code(), Some(8), "{}", text(&refused.stderr));
    let full = run(directory.path(), "tet", &["create", "/dev/full", "--from", "a=a.npy", "--json"]);
    let error: serde_json::Value = serde_json::from_slice(&full.stderr).unwrap();
    assert_eq!((full.status.code(), &error["error"]["location"]), (Some(3), &"/dev/full".into()));
}

#[test]
fn pipes_are_not_changed_in_place() {
    let directory = directory();
    fifo(&directory.path().join("pipe"));
    for (name, args) in [
        ("tet", "append pipe --from b=a.npy"),
        ("tet", "drop pipe a"),
        ("tet", "verify pipe --repair"),
        ("tgm", "create pipe --append --from b=a.npy"),
        ("tgm", "index pipe"),
        ("tatami", "delete pipe --id 1"),
    ] {
        // Verbs that read the file first get one that is empty.
        let fed = args.starts_with("verify").then(|| feed(directory.path().join("pipe"), Vec::new()));
        let refused = run(directory.path(), name, &args.split(' ').collect::<Vec<_>>());
        if let Some(fed) = fed {
            fed.join().unwrap();
        }
        let stderr = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(8), "{args}: {stderr}");
        assert!(stderr.contains("pipe: is a pipe, which cannot be changed in place"), "{args}: {stderr}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_an_io_error() {
    let directory = directory();
    for args in [&["--help"][..], &["--version"], &["help"], &["info", "--help"]] {
        for name in ["tercet", "tet", "tgm", "tatami"] {
            let mut command = command(directory.path(), program(name));
            command.args(args);
            let full = File::options().write(true).open("/dev/full").unwrap();
            let failed = command.stdout(full).output().unwrap();
            assert_eq!(failed.status.code(), Some(3), "{name} {args:?}");
            let stderr = text(&failed.stderr);
            assert!(stderr.starts_with("error: cannot write to standard output: No space left"), "{stderr}");
        }
    }
}

#[test]
fn bundled_flags_ask_for_json_errors() {
    let directory = directory();
    let failed = run(directory.path(), "tet", &["info", "-qj", "a.tet", "--no-such-option"]);
    assert_eq!(failed.status.code(), Some(2));
    assert!(text(&failed.stderr).starts_with('{'), "{}", text(&failed.stderr));
}

#[test]
fn dev_stdout_is_standard_output() {
    let directory = directory();
    fs::write(directory.path().join("rows.jsonl"), "{\"id\":1,\"text\":\"a\"}\n").unwrap();
    let made = run(directory.path(), "tatami", &["create", "a.tatami", "--from", "rows.jsonl"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    for (name, args) in [
        ("tet", "create OUT --from a=a.npy"),
        ("tet", "extract a.tet a -o OUT"),
        ("tet", "mean a.tet a -o OUT --as json"),
        ("tet", "merge a.tet -o OUT"),
        ("tet", "repack a.tet -o OUT"),
        ("tet", "repair a.tet -o OUT"),
        ("tet", "plot a.tet a --png OUT"),
        ("tgm", "create OUT --from a=a.npy --reproducible"),
        ("tgm", "extract a.tgm 0 -o OUT"),
        ("tgm", "copy a.tgm -o OUT"),
        ("tgm", "set -s k=v a.tgm -o OUT --reproducible"),
        ("tgm", "merge a.tgm -o OUT --reproducible"),
        ("tgm", "reshuffle a.tgm -o OUT --reproducible"),
        ("tgm", "repack a.tgm -o OUT --reproducible --compression zstd"),
        ("tgm", "repair a.tgm -o OUT"),
        ("tatami", "create OUT --from rows.jsonl"),
        ("tatami", "index rows.jsonl -o OUT"),
        ("tatami", "merge a.tatami a.tatami -o OUT"),
        ("tatami", "repair a.tatami -o OUT"),
        ("tatami", "convert a.tatami -o OUT --to jsonl"),
        ("tercet", "convert a.tet -o OUT --to nc3"),
        ("tercet", "catalog a.tet -o OUT"),
        ("tercet", "get a.tet#a -o OUT --to npy"),
    ] {
        let print = |out: &str| {
            let mut command = command(directory.path(), program(name));
            command.args(args.replace("OUT", out).split(' ')).env("SOURCE_DATE_EPOCH", "1700000000");
            let done = command.output().unwrap();
            assert!(done.status.success() && !done.stdout.is_empty(), "{args}: {}", text(&done.stderr));
            done.stdout
        };
        let whole = print("-");
        assert!(print("/dev/stdout") == whole, "{name} {args}");
        // Verbs that report as JSON refuse it; it is never mixed with the file.
        let json = format!("{} --json", args.replace("OUT", "-"));
        let json = run(directory.path(), name, &json.split(' ').collect::<Vec<_>>());
        assert!(json.status.code() == Some(8) || json.stdout.len() == whole.len(), "{name} {args}");
    }
    let refused = failure(directory.path(), "tercet", &["convert", "a.tet", "-", "--to", "zarr"]);
    assert!(refused.1.contains("a Zarr store is a directory"), "{refused:?}");
    let refused = failure(directory.path(), "tercet", &["catalog", "a.tet", "-o", "-", "--refresh"]);
    assert!(refused.1.contains("only a file can be refreshed"), "{refused:?}");
    let names = |path: &Path| fs::read_dir(path).unwrap().count();
    assert_eq!(
        names(directory.path()),
        5,
        "{:?}",
        fs::read_dir(directory.path()).unwrap().collect::<Vec<_>>()
    );
}

#[test]
fn tail_follows_a_named_pipe() {
    let directory = directory();
    let pipe = directory.path().join("pipe");
    fifo(&pipe);
    let whole = run(directory.path(), "tgm", &["tail", "a.tgm", "--no-follow", "-p", "name"]);
    let fed = feed(pipe, fs::read(directory.path().join("a.tgm")).unwrap());
    let piped = run(directory.path(), "tgm", &["tail", "pipe", "-p", "name"]);
    fed.join().unwrap();
    assert_eq!((piped.status.code(), text(&piped.stderr)), (Some(0), String::new()));
    assert_eq!(text(&piped.stdout), text(&whole.stdout));
    // The start of a stream is gone.
    assert_eq!(run(directory.path(), "tgm", &["tail", "pipe", "--last", "1"]).status.code(), Some(8));
}

/// A salvaged file is the same on standard output; its report is on standard error.
#[test]
fn repairs_write_to_standard_output() {
    let directory = directory();
    let file = run(directory.path(), "tet", &["repair", "a.tet", "-o", "b.tet"]);
    assert!(file.status.success(), "{}", text(&file.stderr));
    let piped = run(directory.path(), "tet", &["repair", "a.tet", "-o", "/dev/stdout"]);
    assert_eq!(text(&piped.stderr), text(&file.stdout).replace("into: b.tet", "into: standard output"));
    fs::write(directory.path().join("c.tet"), &piped.stdout).unwrap();
    assert!(run(directory.path(), "tet", &["verify", "--deep", "c.tet"]).status.success());
}

/// The command waits for the pipe and does not look for signals; its temporary file exists meanwhile.
#[test]
fn a_signal_removes_temporary_files() {
    let directory = tempfile::tempdir().unwrap();
    fifo(&directory.path().join("pipe.txt"));
    let mut command = command(directory.path(), program("tatami"));
    command.args(["index", "pipe.txt", "-o", "new.tatami"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let names = || -> Vec<String> {
        let entries = fs::read_dir(directory.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    };
    let started = Instant::now();
    while names().len() < 2 {
        assert!(started.elapsed() < TIMEOUT, "no temporary file");
        thread::sleep(Duration::from_millis(10));
    }
    signal(&child, "TERM");
    assert_eq!(wait(child), Some(130));
    assert_eq!(names(), ["pipe.txt"]);
}

/// The exit code and standard error of a command that fails.
fn failure(directory: &Path, name: &str, args: &[&str]) -> (i32, String) {
    let failed = run(directory, name, args);
    assert!(!failed.status.success(), "{name} {args:?}: {}", text(&failed.stdout));
    (failed.status.code().unwrap_or(-1), text(&failed.stderr))
}

#[test]
fn json_is_printed_or_refused() {
    let directory = directory();
    let version = run(directory.path(), "tatami", &["version", "--json"]);
    let version: serde_json::Value = serde_json::from_slice(&version.stdout).unwrap();
    assert_eq!((&version["name"], version["version"].is_string()), (&"tatami".into(), true));
    for args in [&["demo", "--json"][..], &["completions", "bash", "--json"], &["man", "--json"]] {
        let (code, stderr) = failure(directory.path(), "tercet", args);
        assert_eq!(code, 8, "{args:?}: {stderr}");
        assert!(stderr.contains("has no JSON output"), "{args:?}: {stderr}");
    }
    assert!(!directory.path().join("tercet-demo").exists());
}

#[test]
fn a_container_is_not_a_query() {
    let directory = directory();
    let (code, stderr) = failure(directory.path(), "tet", &["query", "a.tet"]);
    assert_eq!(code, 8);
    assert!(stderr.contains("a.tet: is a .tet file, not a query"), "{stderr}");
    assert!(stderr.contains("-t a.tet"), "{stderr}");
    let (_, stderr) = failure(directory.path(), "tet", &["query", "a.tgm"]);
    assert!(stderr.contains("a.tgm: is a .tgm file, not a query"), "{stderr}");
}

#[test]
fn tables_are_read_from_pipes() {
    let directory = directory();
    let path = directory.path();
    let pipe = path.join("pipe");
    fifo(&pipe);
    for (content, rows) in [("{\"a\":1}\n{\"a\":2}\n", 2), ("a\n1\n2\n3\n", 3)] {
        let fed = feed(pipe.clone(), content.into());
        let made = run(path, "tatami", &["create", "a.tatami", "--force", "--from", "pipe"]);
        fed.join().unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        let printed = run(path, "tatami", &["cat", "a.tatami"]);
        assert_eq!(text(&printed.stdout).lines().count(), rows);
    }
    let fed = feed(pipe.clone(), fs::read(path.join("a.tatami")).unwrap());
    let merged = run(path, "tatami", &["merge", "a.tatami", "pipe", "-o", "b.tatami"]);
    fed.join().unwrap();
    assert!(merged.status.success(), "{}", text(&merged.stderr));
    assert_eq!(text(&run(path, "tatami", &["cat", "b.tatami"]).stdout).lines().count(), 6);
    let (code, stderr) = failure(path, "tatami", &["index", "http://127.0.0.1:1/a.txt", "-o", "c.tatami"]);
    assert_eq!(code, 8, "{stderr}");
    assert!(stderr.contains("cannot index a remote file"), "{stderr}");
}

#[test]
fn mistakes_have_hints() {
    let directory = directory();
    let path = directory.path();
    fs::create_dir(path.join("z.zarr")).unwrap();
    fs::write(path.join("z.zarr/zarr.json"), "{}").unwrap();
    for (name, args, expected) in [
        ("tgm", "advise a.tgm", "a.tgm: no message is given\n  hint: add its number: `tgm advise a.tgm 0`"),
        (
            "tgm",
            "ls z.zarr",
            "z.zarr: is a Zarr directory, not a Tercet container\n  hint: convert it: `tercet convert z.zarr OUT.tet`",
        ),
        (
            "tet",
            "extract z.zarr a -o x.npy",
            "z.zarr: is a Zarr directory, not a Tercet container\n  hint: convert it: `tercet convert z.zarr OUT.tet`",
        ),
        ("tet", "create b.tet a.npy", "use '--from NAME=a.npy'"),
        ("tgm", "create b.tgm a.npy", "use '--from NAME=a.npy'"),
        ("tatami", "create b.tatami rows.jsonl", "use '--from rows.jsonl'"),
    ] {
        let (_, stderr) = failure(path, name, &args.split(' ').collect::<Vec<_>>());
        assert!(stderr.contains(expected), "{name} {args}: {stderr}");
    }
    let list = |threads: &str| {
        let mut command = command(path, program("tgm"));
        command.args(["ls", "a.tgm"]).env("TENSOGRAM_THREADS", threads).output().unwrap()
    };
    assert!(list("").status.success(), "{}", text(&list("").stderr));
    assert_eq!(list("many").status.code(), Some(2));
    assert!(text(&list("many").stderr).contains("environment variable TENSOGRAM_THREADS"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_deleted_working_directory_is_reported() {
    let directory = directory();
    let gone = directory.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let mut shell = command(directory.path(), "sh");
    let script = "cd gone && rmdir ../gone && exec \"$0\" create b.tet --from a=\"$1\"";
    shell.arg("-c").arg(script).arg(program("tet")).arg(directory.path().join("a.npy"));
    let failed = shell.output().unwrap();
    let stderr = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("the working directory does not exist"), "{stderr}");
}
