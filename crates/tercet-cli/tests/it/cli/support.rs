//! A directory with files, and the commands run in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tercet::core::{DType, TensorView};
use tercet::tet::{File, HistoryRow, Layout, Writer, WriterOptions};

/// The name of the query history in a directory.
pub(crate) const HISTORY: &str = ".query_history.jsonl";

/// Environment variables that correspond to options.
const TENSOGRAM_VARIABLES: [&str; 7] = [
    "TENSOGRAM_THREADS",
    "TENSOGRAM_ALLOW_NAN",
    "TENSOGRAM_ALLOW_INF",
    "TENSOGRAM_NAN_MASK_METHOD",
    "TENSOGRAM_POS_INF_MASK_METHOD",
    "TENSOGRAM_NEG_INF_MASK_METHOD",
    "TENSOGRAM_SMALL_MASK_THRESHOLD",
];

/// A temporary directory that commands run in, so that their output names no path of this machine.
pub(crate) struct TestDir {
    dir: TempDir,
}

/// Output of a command.
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    /// Exit code, standard output and standard error as one text for a snapshot.
    pub(crate) fn snapshot(&self) -> String {
        let code = self.code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        format!("exit code: {code}\n----- stdout\n{}----- stderr\n{}", self.stdout, self.stderr)
    }
}

impl TestDir {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// A directory with `weather.tet`.
    pub(crate) fn with_weather() -> Self {
        let dir = Self::new();
        write_weather(&dir.path("weather.tet"), WriterOptions::new());
        dir
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// Copies a file and changes its bytes.
    pub(crate) fn damaged(&self, from: &str, to: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.read(from);
        change(&mut bytes);
        self.write(to, &bytes);
    }

    /// A copy of `weather.tet` with a flipped bit in chunk `[1, 0]` of `t2m`.
    pub(crate) fn with_damaged_chunk(&self, to: &str) {
        let file = File::open(self.path("weather.tet")).unwrap();
        let at = file.dataset("t2m").unwrap().chunk_ref(&[1, 0]).unwrap().span.start();
        self.damaged("weather.tet", to, |bytes| bytes[usize::try_from(at).unwrap()] ^= 1);
    }

    /// A command, not yet run.
    pub(crate) fn command(&self, program: &str) -> assert_cmd::Command {
        let program = match program {
            "tet" => env!("CARGO_BIN_EXE_tet"),
            "tercet" => env!("CARGO_BIN_EXE_tercet"),
            "tgm" => env!("CARGO_BIN_EXE_tgm"),
            "tatami" => env!("CARGO_BIN_EXE_tatami"),
            other => panic!("no such program: {other}"),
        };
        self.prepare(assert_cmd::Command::new(program))
    }

    /// A line for a shell, not yet run.
    #[cfg(unix)]
    pub(crate) fn shell(&self, line: &str) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::new("sh");
        command.args(["-c", line]);
        self.prepare(command)
    }

    fn prepare(&self, mut command: assert_cmd::Command) -> assert_cmd::Command {
        command.current_dir(self.dir.path()).timeout(Duration::from_mins(2));
        command.env("SOURCE_DATE_EPOCH", "1700000000");
        // Queries are recorded here, not in the user's cache.
        command.env("TET_QUERY_HISTORY_FILE", self.path(HISTORY));
        for variable in ["TET_NO_QUERY_HISTORY", "TET_QUERY_HISTORY_MAX"] {
            command.env_remove(variable);
        }
        for variable in TENSOGRAM_VARIABLES {
            command.env_remove(variable);
        }
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
            command.env_remove(variable);
        }
        command
    }

    /// Runs `tet` with arguments separated by spaces.
    pub(crate) fn tet(&self, args: &str) -> CommandOutput {
        run(self.command("tet").args(args.split_whitespace()))
    }

    /// Runs `tgm` with arguments separated by spaces.
    pub(crate) fn tgm(&self, args: &str) -> CommandOutput {
        run(self.command("tgm").args(args.split_whitespace()))
    }

    /// Runs `tatami` with arguments separated by spaces.
    pub(crate) fn tatami(&self, args: &str) -> CommandOutput {
        run(self.command("tatami").args(args.split_whitespace()))
    }

    /// Runs `tercet` with arguments separated by spaces.
    pub(crate) fn tercet(&self, args: &str) -> CommandOutput {
        run(self.command("tercet").args(args.split_whitespace()))
    }
}

pub(crate) fn run(command: &mut assert_cmd::Command) -> CommandOutput {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Two small datasets with every kind of metadata.
pub(crate) fn write_weather(path: &Path, options: WriterOptions) {
    let mut layout = Layout::new();
    let t2m = layout.dataset("t2m", DType::F32, [4, 6], [2, 3]).unwrap();
    layout.dims(t2m, ["time", "station"]).unwrap();
    layout.labels(t2m, "station", ["A", "B", "C", "D", "E", "F"].map(str::to_owned).to_vec()).unwrap();
    layout.attr(t2m, "units", "K").unwrap();
    let mask = layout.dataset("mask", DType::U8, [6], [6]).unwrap();
    layout.attr(mask, "long_name", "1 where there is land").unwrap();
    layout.file_info("test", "1", 1_700_000_000);
    layout.history(HistoryRow::at("create", "test", 1_700_000_000)).unwrap();
    let values: Vec<f32> = (0u8..24).map(|i| 280.0 + f32::from(i) / 2.0).collect();
    let mut writer = Writer::create(path, layout, options).unwrap();
    writer.array(t2m, TensorView::from_slice(&[4, 6], &values).unwrap()).unwrap();
    writer.array(mask, TensorView::from_slice(&[6], &[1u8, 0, 0, 1, 1, 0]).unwrap()).unwrap();
    writer.finish().unwrap();
}

/// One dataset with this name and an attribute with this value.
pub(crate) fn write_named(path: &Path, name: &str, attr: &str) {
    let mut layout = Layout::new();
    let id = layout.dataset(name, DType::U8, [2], [2]).unwrap();
    layout.dims(id, [attr]).unwrap();
    layout.attr(id, "note", attr).unwrap();
    layout.history(HistoryRow::at(attr, attr, 1_700_000_000).with_param(attr, attr)).unwrap();
    let mut writer = Writer::create(path, layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(&[2], &[1u8, 2]).unwrap()).unwrap();
    writer.finish().unwrap();
}

/// A file of `count` chunks.
pub(crate) fn write_many_chunks(path: &Path, count: u64) {
    let mut layout = Layout::new();
    let id = layout.dataset("many", DType::U8, [count], [1]).unwrap();
    let mut writer = Writer::create(path, layout, WriterOptions::new()).unwrap();
    let values = vec![7u8; usize::try_from(count).unwrap()];
    writer.array(id, TensorView::from_slice(&[count], &values).unwrap()).unwrap();
    writer.finish().unwrap();
}
