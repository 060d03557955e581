//! The commands against a server and a store on the loopback interface.

#[cfg(unix)]
mod guide;
mod messages;
mod read;
mod records;
mod secrets;
mod write;

use assert_cmd::Command;
use tercet_testkit::server::Server;

use crate::support::test_dir::{self, CommandOutput, run_command};

type TestDir = test_dir::TestDir<()>;

/// A directory with files, a server, and the commands.
struct Scene {
    dir: TestDir,
    server: Server,
}

/// A `.npy` file of float64 values 0, 1, 2, …
fn npy(count: u32) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({count},), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    file.extend(header.as_bytes());
    file.extend((0..count).flat_map(|value| f64::from(value).to_le_bytes()));
    file
}

impl Scene {
    /// `run.tgm` with three messages, 800 kB each, and `run.tet`, in the directory and on the server.
    fn new() -> Self {
        let scene = Self { dir: TestDir::of(env!("CARGO_BIN_EXE_tgm")), server: Server::start() };
        scene.dir.write("t.npy", npy(100_000));
        for step in [0, 6, 12] {
            scene.ok(&format!("tgm create run.tgm --append --from t=t.npy --meta step={step}"));
        }
        scene.ok("tet create run.tet --from t=t.npy");
        for name in ["run.tgm", "run.tet", "t.npy"] {
            scene.server.put(&format!("/{name}"), &scene.dir.read(name));
        }
        scene
    }

    /// The first word is the command. The server is S3 to it, and nothing else around is known to it.
    fn command(&self, words: &str) -> Command {
        let (program, words) = words.split_once(' ').unwrap();
        let mut command = match program {
            "tgm" => Command::new(env!("CARGO_BIN_EXE_tgm")),
            "tet" => Command::new(env!("CARGO_BIN_EXE_tet")),
            "tatami" => Command::new(env!("CARGO_BIN_EXE_tatami")),
            _ => Command::new(env!("CARGO_BIN_EXE_tercet")),
        };
        self.set_around(&mut command);
        command.args(words.split_whitespace());
        command
    }

    /// The directory and the variables of a command.
    fn set_around(&self, command: &mut Command) {
        let around: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
        for name in around {
            let text = name.to_string_lossy();
            let is_known =
                ["AWS_", "GOOGLE_", "AZURE_", "TENSOGRAM_"].iter().any(|start| text.starts_with(start));
            if is_known || text.to_ascii_lowercase().ends_with("_proxy") {
                command.env_remove(&name);
            }
        }
        command.current_dir(self.dir.0.path());
        command.env("SOURCE_DATE_EPOCH", "1700000000").env("TET_NO_QUERY_HISTORY", "1");
        command.env("AWS_ENDPOINT_URL", self.server.url("")).env("AWS_REGION", "eu-central-1");
        command.env("AWS_ACCESS_KEY_ID", "ich").env("AWS_SECRET_ACCESS_KEY", "geheim");
    }

    fn run(&self, words: &str) -> CommandOutput {
        run_command(&mut self.command(words))
    }

    fn ok(&self, words: &str) -> CommandOutput {
        let result = self.run(words);
        assert_eq!(result.code, 0, "{words}: {}", result.err);
        result
    }

    /// Fails with this exit code and these words.
    fn refused(&self, words: &str, code: i32, message: &str) -> CommandOutput {
        let result = self.run(words);
        assert_eq!(result.code, code, "{words}: {}", result.err);
        assert!(result.err.contains(message), "{words}: {}", result.err);
        assert_eq!(result.out, "", "{words}");
        result
    }

    /// Requests so far and bytes sent in answer, which are then forgotten.
    fn traffic(&self) -> (usize, u64) {
        let requests = self.server.requests();
        self.server.forget();
        (requests.len(), requests.iter().map(|request| request.sent).sum())
    }
}
