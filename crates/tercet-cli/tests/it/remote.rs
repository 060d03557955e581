//! The commands against an HTTP server and an object store on the loopback interface.

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

/// A test directory and a server.
struct Fixture {
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

impl Fixture {
    /// `run.tgm` with three messages, 800 kB each, and `run.tet`, in the directory and on the server.
    fn new() -> Self {
        let fixture = Self { dir: TestDir::for_program(env!("CARGO_BIN_EXE_tgm")), server: Server::start() };
        fixture.dir.write("t.npy", npy(100_000));
        for step in [0, 6, 12] {
            fixture.ok(&format!("tgm create run.tgm --append --from t=t.npy --meta step={step}"));
        }
        fixture.ok("tet create run.tet --from t=t.npy");
        for name in ["run.tgm", "run.tet", "t.npy"] {
            fixture.server.put(&format!("/{name}"), &fixture.dir.read(name));
        }
        fixture
    }

    /// A command; the first argument names the program. The environment has only the credentials of the test server.
    fn command(&self, args: &str) -> Command {
        let (program, args) = args.split_once(' ').unwrap();
        let mut command = match program {
            "tgm" => Command::new(env!("CARGO_BIN_EXE_tgm")),
            "tet" => Command::new(env!("CARGO_BIN_EXE_tet")),
            "tatami" => Command::new(env!("CARGO_BIN_EXE_tatami")),
            _ => Command::new(env!("CARGO_BIN_EXE_tercet")),
        };
        self.set_environment(&mut command);
        command.args(args.split_whitespace());
        command
    }

    /// Sets the working directory and the environment of a command.
    fn set_environment(&self, command: &mut Command) {
        let names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
        for name in names {
            let text = name.to_string_lossy();
            let is_credential =
                ["AWS_", "GOOGLE_", "AZURE_", "TENSOGRAM_"].iter().any(|start| text.starts_with(start));
            if is_credential || text.to_ascii_lowercase().ends_with("_proxy") {
                command.env_remove(&name);
            }
        }
        command.current_dir(self.dir.0.path());
        command.env("SOURCE_DATE_EPOCH", "1700000000").env("TET_NO_QUERY_HISTORY", "1");
        command.env("AWS_ENDPOINT_URL", self.server.url("")).env("AWS_REGION", "eu-central-1");
        command.env("AWS_ACCESS_KEY_ID", "ich").env("AWS_SECRET_ACCESS_KEY", "geheim");
    }

    fn run(&self, args: &str) -> CommandOutput {
        run_command(&mut self.command(args))
    }

    fn ok(&self, args: &str) -> CommandOutput {
        let result = self.run(args);
        assert_eq!(result.code, 0, "{args}: {}", result.err);
        result
    }

    /// Asserts that a command fails with this exit code and message.
    fn refused(&self, args: &str, code: i32, message: &str) -> CommandOutput {
        let result = self.run(args);
        assert_eq!(result.code, code, "{args}: {}", result.err);
        assert!(result.err.contains(message), "{args}: {}", result.err);
        assert_eq!(result.out, "", "{args}");
        result
    }

    /// Number of requests and of bytes sent; resets both.
    fn traffic(&self) -> (usize, u64) {
        let requests = self.server.requests();
        self.server.clear_requests();
        (requests.len(), requests.iter().map(|request| request.sent).sum())
    }
}
