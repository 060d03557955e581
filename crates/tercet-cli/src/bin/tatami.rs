//! The command `tatami`.

fn main() -> std::process::ExitCode {
    tercet_cli::main_as(tercet_cli::Persona::Tatami)
}
