//! The command `tercet`.

fn main() -> std::process::ExitCode {
    tercet_cli::main_as(tercet_cli::Persona::Tercet)
}
