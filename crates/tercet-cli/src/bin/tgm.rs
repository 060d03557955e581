//! The command `tgm`.

fn main() -> std::process::ExitCode {
    tercet_cli::main_as(tercet_cli::Persona::Tgm)
}
