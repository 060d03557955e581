//! Verbs of `tercet`: the format is detected by the magic bytes.

use std::sync::Arc;

use tercet::core::{ByteSource, Class, escape};
use tercet::tgm::Depth;
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

pub(crate) fn info(args: &tet::info::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.files.each(None, JsonList::ForMany, out, |input, out| match detect(input)? {
        (Format::Tet, source) => tet::info::run_on(args, source, out),
        (format, source) => {
            if let Some(option) = args.for_tet_only() {
                return Err(cannot(format, &*source, &format!("`{option}` is for .tet files")));
            }
            match format {
                Format::Tatami if args.quiet => tatami::inspect::print_one_line(source, out),
                Format::Tatami => tatami::inspect::run_on(args.json.json, false, source, out),
                _ => tgm::info::run_on(tgm::Form::new(args.json.json, args.quiet), source, out),
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
            let form = tgm::Form::new(args.json.json, args.quiet);
            if format == Format::Tatami {
                return tatami::verify::run_on(args.deep, form, source, out);
            }
            let depth = if args.deep { Depth::Full } else { Depth::Default };
            tgm::validate::run_on(depth, form, &source, out)
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
    let limit = args.limit.limit.unwrap_or(tet::outline::LIMIT);
    args.files.each(None, JsonList::ForMany, out, |input, out| match detect(input)? {
        (Format::Tet, source) => tet::outline::run_on(args, source, out),
        // The outline of a .tgm file verifies no hashes.
        (Format::Tgm, source) => tgm::outline::run_on(args.json.json, limit, source, out),
        (Format::Tatami, source) => tatami::outline::run_on(args.json.json, limit, source, out),
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
