//! From `argv` to an exit code.

use std::process::ExitCode;

use crate::failure::{Failure, Outcome};
use crate::persona::Persona;
use crate::remote;
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
            // `--help` and `--version` are errors of clap, too. A closed stream cannot be reported.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    ui::watch_for_interrupts();
    ui::survive_file_limits();
    let mut out = Ui::new(!common.no_progress);
    let result = request.run(persona, &mut out).and_then(|outcome| out.finish().map(|()| outcome));
    if let Err(failure) = &result {
        // Output printed before the failure is flushed first.
        let _ = out.finish();
        if let Some(text) = error_message(failure) {
            // Messages of libraries may quote a URL with credentials.
            ui::print_note(remote::redact(&text));
        }
    }
    ExitCode::from(exit_code(&result))
}

/// The message of a failure, if it has one.
pub(crate) fn error_message(failure: &Failure) -> Option<String> {
    match failure {
        Failure::Error(report) => Some(ui::error_text(report)),
        Failure::Interrupted => Some("interrupted".to_owned()),
        Failure::BrokenPipe => None,
    }
}

/// The exit code of a result.
pub(crate) fn exit_code(result: &Result<Outcome, Failure>) -> u8 {
    match result {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::CheckFailed) => 1,
        Err(failure) => failure.exit_code(),
    }
}
