//! From `argv` to an exit code.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use serde::Serialize;
use tercet::core::escape;

use crate::args::start_thread_pool;
use crate::failure::{ErrorReport, Failure, Outcome};
use crate::persona::{CommandLine, Persona, set_persona, set_verb};
use crate::remote;
use crate::ui::{self, Ui};

/// The exit code of a usage error.
const USAGE: u8 = 2;

/// Runs the program as a persona and returns its exit code.
pub fn main_as(persona: Persona) -> ExitCode {
    set_persona(persona);
    let CommandLine { global, threads, json, verb, request } = match persona.parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(error) => return usage_error(&error),
    };
    global.set_color();
    global.set_limits(request.max_array());
    set_verb(verb);
    ui::watch_for_interrupts();
    start_thread_pool(threads);
    ui::survive_file_limits();
    let mut out = Ui::new(global, json);
    let result = request.run(persona, &mut out).and_then(|outcome| out.finish().map(|()| outcome));
    let result = result.map_err(|failure| failure.located(std::env::args_os()));
    if let Err(failure) = &result {
        // Output printed before the failure is flushed first.
        let _ = out.finish();
        let text = if json { error_json(failure) } else { error_message(failure, global.verbose) };
        if let Some(text) = text {
            // Messages of libraries may quote a URL with credentials.
            ui::print_note(remote::redact(&text));
        }
    }
    ExitCode::from(exit_code(&result))
}

/// Prints an error of clap. Clap reports `--help` and `--version` as errors, too.
fn usage_error(error: &clap::Error) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(USAGE);
    let text = error.render().to_string();
    if !error.use_stderr() {
        return print_help(error);
    }
    if asks_for_json(std::env::args_os()) {
        let message = text.trim().strip_prefix("error: ").unwrap_or(text.trim()).to_owned();
        let report = ErrorJson { class: "usage", exit_code: code, message, ..ErrorJson::default() };
        ui::print_note(remote::redact(&report.to_line()));
    } else {
        // Arguments are quoted in the message: escape them, and remove credentials of URLs.
        let safe = remote::redact(&ui::escape_lines(&text));
        if safe == text {
            let _ = error.print();
        } else {
            ui::print_note(safe.trim_end());
        }
    }
    ExitCode::from(code)
}

/// Prints the text of `--help` or `--version`.
fn print_help(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    let result = printed.map(|()| Outcome::Done).map_err(|error| Failure::output(&error));
    if let Some(text) = result.as_ref().err().and_then(|failure| error_message(failure, false)) {
        ui::print_note(text);
    }
    ExitCode::from(exit_code(&result))
}

/// Whether arguments that could not be parsed contain `--json` or `-j`.
fn asks_for_json(args: impl Iterator<Item = OsString>) -> bool {
    // Flags without values may be given together, as in `-jq`.
    let is_bundle = |arg: &str| {
        let flags = arg.strip_prefix('-').filter(|flags| !flags.is_empty());
        flags.is_some_and(|flags| flags.contains('j') && flags.chars().all(|flag| "jqvfrxh".contains(flag)))
    };
    let is_json = |arg: &OsString| arg == "--json" || arg.to_str().is_some_and(is_bundle);
    args.skip(1).take_while(|arg| arg != "--").any(|arg| is_json(&arg))
}

/// The JSON form of an error on standard error.
#[derive(Debug, Default, Serialize)]
struct ErrorJson {
    class: &'static str,
    exit_code: u8,
    /// The path or URL, if the error is about a file.
    location: Option<String>,
    message: String,
    /// Start and end byte, if the error is about bytes of a file.
    span: Option<[u64; 2]>,
    hint: Option<String>,
}

impl ErrorJson {
    fn to_value(&self) -> serde_json::Value {
        serde_json::json!({ "error": self })
    }

    fn to_line(&self) -> String {
        escape::json(&self.to_value().to_string()).into_owned()
    }
}

/// The JSON object of a failure, on one line.
fn error_json(failure: &Failure) -> Option<String> {
    Some(ErrorJson::new(failure)?.to_line())
}

/// The JSON object of a failure that concerns one of many files.
pub(crate) fn error_value(failure: &Failure, location: &str) -> Option<serde_json::Value> {
    let mut json = ErrorJson::new(failure)?;
    json.location.get_or_insert_with(|| location.to_owned());
    Some(json.to_value())
}

impl ErrorJson {
    /// The report of a failure; a closed pipe has none.
    fn new(failure: &Failure) -> Option<Self> {
        Some(match failure {
            Failure::Error(report) => {
                let ErrorReport { class, location, message, span, hint, .. } = &**report;
                Self {
                    class: report.class_name(),
                    exit_code: class.exit_code(),
                    location: location.clone(),
                    message: message.clone(),
                    span: span.map(|span| [span.start(), span.end()]),
                    hint: hint.clone(),
                }
            }
            Failure::Interrupted => Self {
                class: "interrupted",
                exit_code: ui::EXIT_CODE,
                message: "interrupted".to_owned(),
                ..Self::default()
            },
            Failure::BrokenPipe => return None,
        })
    }
}

/// The message of a failure, if it has one.
pub(crate) fn error_message(failure: &Failure, verbose: bool) -> Option<String> {
    match failure {
        Failure::Error(report) => Some(ui::error_text(report, verbose)),
        Failure::Interrupted => Some("interrupted".to_owned()),
        Failure::BrokenPipe => None,
    }
}

/// The exit code of a result.
pub(crate) fn exit_code(result: &Result<Outcome, Failure>) -> u8 {
    match result {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::CheckFailed) => 1,
        Ok(Outcome::Exit(code)) => *code,
        Err(failure) => failure.exit_code(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_before_the_end_of_options() {
        let asks = |line: &str| asks_for_json(line.split(' ').map(OsString::from));
        assert!(asks("tet info --json --nope") && asks("tgm ls -j"));
        assert!(!asks("tet info -- --json") && !asks("--json info"));
    }

    #[test]
    fn an_error_is_one_line_of_json() {
        let failure = Failure::request("a\nb\u{202e}").with_hint("do \"this\"");
        let line = error_json(&failure).unwrap();
        assert!(!line.contains('\n') && line.contains("\\u202e"), "{line}");
        let json: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(json["error"]["class"], "request");
        assert_eq!(json["error"]["exit_code"], 8);
        assert_eq!(json["error"]["message"], "a\nb\u{202e}");
        assert_eq!(json["error"]["hint"], "do \"this\"");
        assert!(json["error"]["span"].is_null() && json["error"]["location"].is_null());
    }
}
