//! Opens any container, prints its summary and verifies it.
//!
//! ```sh
//! cargo run -p tercet --example any_file -- FILE_OR_URL
//! ```
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::io::Write;

use tercet::prelude::*;

/// Writes the description of a file to `out`; returns whether the file is valid.
pub(crate) fn describe(location: &str, out: &mut impl Write) -> Result<bool, Box<dyn Error>> {
    let container = tercet::open(location)?;
    writeln!(out, "{location}: {} file", container.format())?;
    match &container {
        Container::Tet(file) => {
            for dataset in file.datasets() {
                writeln!(out, "  dataset {} {:?}", dataset.name(), dataset.shape())?;
            }
        }
        Container::Tgm(file) => writeln!(out, "  {} messages", file.message_count()?)?,
        Container::Tatami(file) => {
            writeln!(out, "  {} rows, {} columns", file.rows(), file.schema().fields().len())?;
        }
        _ => {}
    }
    writeln!(out, "{}", serde_json::to_string_pretty(&container.summary()?)?)?;

    let report = tercet::verify(location, VerifyOptions::new().with_deep(true), &NoProgress)?;
    for finding in report.failures() {
        writeln!(out, "  {}: {}", finding.code, finding.message.as_deref().unwrap_or_default())?;
    }
    writeln!(out, "{}", if report.is_ok() { "valid" } else { "damaged" })?;
    Ok(report.is_ok())
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(location) = std::env::args().nth(1) else {
        println!("usage: any_file FILE_OR_URL");
        return Ok(());
    };
    if let Err(error) = describe(&location, &mut std::io::stdout()) {
        // Errors of the library suggest what to do next.
        let hint = error.downcast_ref::<tercet::Error>().and_then(Diagnostic::hint);
        return match hint {
            Some(hint) => Err(format!("{error}\nhint: {hint}").into()),
            None => Err(error),
        };
    }
    Ok(())
}
