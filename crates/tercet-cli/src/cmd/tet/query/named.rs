//! Results with dimensions and coordinates: as JSON, or in a file.

use serde_json::json;
use tercet::tet::{Computed, File, Query, RunOptions};

use super::super::save::{Target, explain, warn};
use crate::failure::Failure;
use crate::ui::Ui;

/// An error of the query, which may be about a part of its document, or any other.
pub(super) enum Error {
    Tet(tercet::tet::Error),
    Failure(Failure),
}

impl From<tercet::tet::Error> for Error {
    fn from(error: tercet::tet::Error) -> Self {
        Self::Tet(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Runs a query, and writes its result to the output or prints it as JSON.
pub(super) fn run(
    query: &Query,
    file: &File,
    (options, is_explained): (&RunOptions, bool),
    target: Option<Target>,
    out: &mut Ui,
) -> Result<(), Error> {
    if let Some(alignment) = query.align(file)? {
        if target.is_some() {
            let failure = Failure::request("the query compares axes, and has no values to write to a file");
            return Err(failure.into());
        }
        return Ok(out.json(&json!({ "dataset": query.dataset(), "alignment": alignment }))?);
    }
    let request = query.request_with(file, options)?;
    let bar = out.bar("querying", 0);
    if request.writes_file() && target.is_none() {
        let outcome = request.run(&bar)?;
        drop(bar);
        let written = match outcome.computed {
            Computed::Written(written) => Some(written),
            Computed::Transformed(made) => made.file,
            Computed::Read(_) | Computed::Preview | Computed::Reduced(_) => None,
        };
        let written = written.map(|file| json!({ "path": file.path, "bytes": file.bytes }));
        return Ok(out.json(&json!({ "dataset": query.dataset(), "written": written }))?);
    }
    if let (true, Some(select)) = (target.is_some() && !is_explained, request.to_select())
        && select.is_large()?
        && let Some(target) = target
    {
        drop(bar);
        return Ok(target.save_selection(&select, false, out)?);
    }
    let results = request.results(&bar)?;
    drop(bar);
    warn(&results, out)?;
    match target {
        Some(target) => target.save(&results, out)?,
        None => out.json(&results)?,
    }
    if is_explained {
        explain(&results, out)?;
    }
    Ok(())
}
