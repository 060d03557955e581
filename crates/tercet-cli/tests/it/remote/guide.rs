//! Runs every `console` block of the guide, with `https://data.example` as the server.

use std::path::Path;

use super::*;
use crate::support::guide::{commands, matches};

const HOST: &str = "https://data.example";

#[test]
fn the_guide_matches_the_output() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/remote.md");
    let commands = commands(&std::fs::read_to_string(path).unwrap());
    assert!(commands.len() > 5, "the guide has hardly any commands");
    let fixture = Fixture::new();
    let binaries = Path::new(env!("CARGO_BIN_EXE_tgm")).parent().unwrap();
    let mut last_code = 0;
    for (line, expected) in commands {
        let mut command = Command::new("sh");
        let line_here = line.replace(HOST, &fixture.server.url(""));
        command.args(["-c", &format!("exec 2>&1; (exit {last_code}); {line_here}")]);
        fixture.set_environment(&mut command);
        command.env("PATH", format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap()));
        let result = run_command(&mut command);
        last_code = result.code;
        let output = result.out.replace(&fixture.server.url(""), HOST);
        let lines: Vec<&str> = output.lines().collect();
        assert!(
            matches(&expected, &lines),
            "`{line}` shows:\n{}\n\nbut it prints:\n{output}",
            expected.join("\n")
        );
    }
}
