//! Verbs of `tercet`: the format is detected by the magic bytes.

use std::sync::Arc;

use serde::Serialize;
use tercet::core::{ByteSource, Class, escape};
use tercet::{Format, detect_source};

use crate::cmd::{tatami, tet, tgm};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, argument, not_a_container};
use crate::many::JsonList;
use crate::ui::Ui;

/// Opens an input and detects its format.
fn detect(input: &Input) -> Result<(Format, Arc<dyn ByteSource>), Failure> {
    let source = input.source()?;
    match detect_source(&source) {
        Ok(format) => Ok((format, source)),
        Err(error) => Err(not_a_container(&error, source.name())),
    }
}

/// The output of `tercet info --json`: the same keys for every format.
#[derive(Serialize)]
struct InfoJson<'a, S> {
    format: &'static str,
    path: &'a str,
    file_len: u64,
    summary: &'a S,
}

impl<'a, S: Serialize> InfoJson<'a, S> {
    fn new(format: Format, path: &'a str, file_len: u64, summary: &'a S) -> Self {
        Self { format: format.extension(), path, file_len, summary }
    }
}

pub(crate) fn info(args: &tet::info::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.files.each(None, JsonList::ForMany, out, |input, out| match detect(input)? {
        (Format::Tet, source) if args.json.json => {
            let info = tet::info::read(args, source, out)?;
            out.json(&InfoJson::new(Format::Tet, &info.path, info.file_len, &info.summary))?;
            Ok(Outcome::Done)
        }
        (Format::Tet, source) => tet::info::run_on(args, source, out),
        (format, source) => {
            if let Some(option) = args.for_tet_only() {
                return Err(cannot(format, &*source, &format!("`{option}` is for .tet files")));
            }
            match format {
                Format::Tatami if args.json.json => {
                    let summary = tatami::open::open(source)?.summary()?;
                    out.json(&InfoJson::new(format, &summary.location, summary.file_len, &summary))?;
                    Ok(Outcome::Done)
                }
                Format::Tatami if args.quiet => tatami::inspect::print_one_line(source, out),
                Format::Tatami => tatami::inspect::run_on(false, None, source, out),
                _ if args.json.json => {
                    let info = tgm::info::summary(source, out)?;
                    let (location, len) = (&info.summary.location, info.summary.file_len);
                    out.json(&InfoJson::new(format, location, len, &info))?;
                    Ok(info.outcome())
                }
                _ => tgm::info::run_on(tgm::ReportFormat::new(false, args.quiet), source, out),
            }
        }
    })
}

pub(crate) fn verify(args: &tet::verify::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.files.each(None, JsonList::ForMany, out, |input, out| match detect(input)? {
        (Format::Tet, source) => tet::verify::run_on(args, input, source, out),
        (format, source) if args.repair => Err(cannot_repair(format, &*source)),
        (format, source) => {
            out.hush(args.quiet);
            let form = tgm::ReportFormat::new(args.json.json, args.quiet);
            if format == Format::Tatami {
                return tatami::verify::run_on(args.deep, form, source, out);
            }
            tgm::verify::run_on(args.deep, form, &source, out)
        }
    })
}

pub(crate) fn repair(args: &tet::repair::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.check()?;
    args.files.each(None, JsonList::ForMany, out, |input, out| match detect(input)? {
        (Format::Tet, source) => tet::repair::run_on(args, input, source, out),
        (format, source) => {
            if let Some(option) = args.for_tet_only() {
                return Err(cannot(format, &*source, &format!("`{option}` is for .tet files")));
            }
            match format {
                Format::Tatami => tatami::repair::run_on(args.for_tatami(), source, out),
                _ => tgm::repair::run_on(args.for_tgm(&input.path), &source, out),
            }
        }
    })
}

pub(crate) fn outline(args: &tet::outline::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let options = args.limit.for_outline().with_pages(args.pages);
    args.files.each(None, JsonList::ForMany, out, |input, out| match detect(input)? {
        (Format::Tet, source) => tet::outline::run_on(args, source, out),
        // The outline of a .tgm file verifies no hashes.
        (Format::Tgm, source) => tgm::outline::run_on(args.json.json, options, source, out),
        (Format::Tatami, source) => tatami::outline::run_on(args.json.json, options, source, out),
    })
}

fn cannot(format: Format, source: &dyn ByteSource, reason: &str) -> Failure {
    let name = escape::name(source.name());
    Failure::new(Class::Request, format!("{name}: is a {format} file; {reason}"))
        .with_location(&**source.name())
}

fn cannot_repair(format: Format, source: &dyn ByteSource) -> Failure {
    let failure = cannot(format, source, "only .tet files can be repaired in place");
    let (program, file) = (format.extension(), argument(source.name()));
    failure.with_hint(format!("salvage the intact parts with `{program} repair {file} -o NEW`"))
}
