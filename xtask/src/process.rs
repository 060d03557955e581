//! Child processes: printed before they run, streamed while they run, captured where their output is parsed.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

/// Runs to the end with its output on our terminal.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    announce(command);
    let status = command.stdin(Stdio::null()).status().map_err(|error| cannot_start(command, &error))?;
    judge(command, status)
}

/// Like [`run`], and returns stdout. The outer error means that it never started.
pub(crate) fn run_captured(command: &mut Command) -> Result<(String, Result<(), String>), String> {
    announce(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| cannot_start(command, &error))?;
    let output = tee(child.stdout.take(), io::stdout());
    let status = child.wait().map_err(|error| cannot_start(command, &error))?;
    Ok((output, judge(command, status)))
}

/// Like [`run`], and returns stderr, where cargo writes its warnings.
pub(crate) fn run_listening(command: &mut Command) -> Result<String, String> {
    announce(command);
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| cannot_start(command, &error))?;
    let output = tee(child.stderr.take(), io::stderr());
    let status = child.wait().map_err(|error| cannot_start(command, &error))?;
    judge(command, status).map(|()| output)
}

/// Runs silently and returns stdout; stderr appears only in the error.
pub(crate) fn read(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| cannot_start(command, &error))?;
    judge(command, output.status)
        .map_err(|reason| format!("{reason}\n{}", String::from_utf8_lossy(&output.stderr).trim_end()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Copies a stream to the terminal as it arrives and returns it.
fn tee(from: Option<impl Read + Send>, mut to: impl Write) -> String {
    let mut kept = Vec::new();
    if let Some(mut from) = from {
        // A separate thread reads ahead, so that a slow terminal never blocks the child.
        thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel::<Vec<u8>>();
            scope.spawn(move || {
                let mut buffer = [0_u8; 8192];
                while let Ok(n) = from.read(&mut buffer) {
                    let Some(part) = buffer.get(..n).filter(|part| !part.is_empty()) else { break };
                    if sender.send(part.to_vec()).is_err() {
                        break;
                    }
                }
            });
            for part in receiver {
                // A closed terminal must not lose the counts.
                let _ = to.write_all(&part).and_then(|()| to.flush());
                kept.extend_from_slice(&part);
            }
        });
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn announce(command: &Command) {
    println!("$ {}", describe(command));
}

fn cannot_start(command: &Command, error: &io::Error) -> String {
    format!("cannot run `{}`: {error}", describe(command))
}

fn judge(command: &Command, status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("`{}` ended with {status}", describe(command))) }
}

/// The command as typed in a shell: the name of the program, then its arguments.
fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut parts = vec![program.file_stem().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()];
    parts.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tee_keeps_and_forwards_everything() {
        let mut forwarded = Vec::new();
        let text = "line\n".repeat(10_000);
        assert_eq!(tee(Some(text.as_bytes()), &mut forwarded), text);
        assert_eq!(forwarded, text.as_bytes());
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let error = run_captured(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(error.starts_with("cannot run `no-such-program-here`"), "{error}");
    }
}
