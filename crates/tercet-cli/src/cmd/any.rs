//! Verbs for files of every format: the first bytes decide which one it is.

use std::sync::Arc;

use tercet::core::ByteSource;
use tercet::{Format, format_of};

use crate::cmd::tet;
use crate::failure::{Failure, Outcome};
use crate::input::{must_be_a_file, open};
use crate::ui::Ui;

/// Bytes and their format.
fn recognise(source: Arc<dyn ByteSource>) -> Result<(Format, Arc<dyn ByteSource>), Failure> {
    let format = format_of(&source).map_err(|error| Failure::of(&error))?;
    Ok((format, source))
}

pub(crate) fn info(args: &tet::info::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    match recognise(args.input.source()?)? {
        (Format::Tet, source) => tet::info::run_on(args, source, out),
    }
}

pub(crate) fn verify(args: &tet::verify::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    match recognise(args.input.source()?)? {
        (Format::Tet, source) => tet::verify::run_on(args, source, out),
    }
}

pub(crate) fn repair(args: &tet::repair::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    must_be_a_file(&args.path, "repair")?;
    match recognise(open(&args.path)?)? {
        (Format::Tet, _) => tet::repair::run(args, out),
    }
}

pub(crate) fn outline(args: &tet::outline::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    match recognise(args.input.source()?)? {
        (Format::Tet, source) => tet::outline::run_on(args, source, out),
    }
}

pub(crate) fn query(args: &tet::query::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if let Some(path) = &args.tet {
        must_be_a_file(path, "query")?;
        match recognise(open(path)?)? {
            (Format::Tet, _) => {}
        }
    }
    tet::query::run(args, out)
}
