//! The road from `argv` to an exit code.

use std::process::ExitCode;

use crate::address;
use crate::failure::{Failure, Outcome};
use crate::persona::Persona;
use crate::ui::{self, Ui};

/// Runs the program as a persona and returns its exit code.
pub fn main_as(persona: Persona) -> ExitCode {
    #[cfg(feature = "sz3")]
    if let Some(code) = crate::cmd::tgm::sz3::child(std::env::args_os()) {
        return code;
    }
    let (common, request) = match persona.parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help and versions come this way too. If nobody reads them there is nobody to tell.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    ui::watch_for_interrupts();
    ui::survive_file_limits();
    let mut out = Ui::new(!common.no_progress);
    let result = request.run(persona, &mut out).and_then(|outcome| out.finish().map(|()| outcome));
    if let Err(failure) = &result {
        // What was printed before the failure belongs to the user as well.
        let _ = out.finish();
        if let Some(text) = told(failure) {
            // Whatever a library says about a file, it does not say the secrets of its address.
            ui::print_note(address::redact(&text));
        }
    }
    ExitCode::from(exit_code(&result))
}

/// What the user is told about a failure, if anything.
pub(crate) fn told(failure: &Failure) -> Option<String> {
    match failure {
        Failure::Error(report) => Some(ui::error_text(report)),
        Failure::Interrupted => Some("interrupted".to_owned()),
        Failure::BrokenPipe => None,
    }
}

/// The exit code of a command that ended like this.
pub(crate) fn exit_code(result: &Result<Outcome, Failure>) -> u8 {
    match result {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::CheckFailed) => 1,
        Err(failure) => failure.exit_code(),
    }
}
