//! The command `tensogram`: starts `tercet` under this name.

#[path = "../launcher.rs"]
mod launcher;

fn main() -> std::process::ExitCode {
    launcher::run("tensogram")
}
