//! The program of all commands: `tercet`, and under their own names `tet`, `tgm`, `tatami` and `tensogram`.

use std::env;
use std::process::ExitCode;

use tercet_cli::Persona;

fn main() -> ExitCode {
    // Launchers pass their name as `argv[0]`; on Windows they cannot, and set this variable.
    let set = if cfg!(windows) { env::var_os("TERCET_PERSONA") } else { None };
    let name = set.or_else(|| env::args_os().next()).unwrap_or_default();
    tercet_cli::main_as(Persona::from_program_name(&name))
}
