//! Verbs of `tercet`: the format is detected by the magic bytes.

use std::sync::Arc;

use tercet::core::{ByteSource, Class};
use tercet::tgm::Depth;
use tercet::{Format, detect_source};

use crate::cmd::{tatami, tet, tgm};
use crate::failure::{Failure, Outcome};
use crate::input::{must_be_a_file, must_be_on_disk, open};
use crate::ui::Ui;

/// Detects the format of a source.
fn detect(source: Arc<dyn ByteSource>) -> Result<(Format, Arc<dyn ByteSource>), Failure> {
    let format = detect_source(&source).map_err(|error| Failure::from_error(&error))?;
    Ok((format, source))
}

pub(crate) fn info(args: &tet::info::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    match detect(args.input.source()?)? {
        (Format::Tet, source) => tet::info::run_on(args, source, out),
        (Format::Tgm, source) => {
            if let Some(option) = args.for_tet_only() {
                return Err(cannot(Format::Tgm, &*source, &format!("`{option}` is for .tet files")));
            }
            tgm::info::run_on(tgm::Form::new(args.json.json, args.quiet), source, out)
        }
        (Format::Tatami, source) => {
            if let Some(option) = args.for_tet_only() {
                return Err(cannot(Format::Tatami, &*source, &format!("`{option}` is for .tet files")));
            }
            if args.quiet {
                return tatami::inspect::print_one_line(source, out);
            }
            tatami::inspect::run_on(args.json.json, false, source, out)
        }
    }
}

pub(crate) fn verify(args: &tet::verify::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    match detect(args.input.source()?)? {
        (Format::Tet, source) => tet::verify::run_on(args, source, out),
        (Format::Tgm, source) => {
            if args.repair {
                return Err(cannot_repair(Format::Tgm, &*source));
            }
            out.hush(args.quiet);
            let depth = if args.deep { Depth::Full } else { Depth::Default };
            tgm::validate::run_on(depth, tgm::Form::new(args.json.json, args.quiet), &source, out)
        }
        (Format::Tatami, source) => {
            if args.repair {
                return Err(cannot_repair(Format::Tatami, &*source));
            }
            out.hush(args.quiet);
            tatami::verify::run_on(args.deep, tgm::Form::new(args.json.json, args.quiet), source, out)
        }
    }
}

pub(crate) fn repair(args: &tet::repair::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    must_be_on_disk(&args.path, "repair")?;
    match detect(open(&args.path)?)? {
        (Format::Tet, _) => tet::repair::run(args, out),
        (Format::Tgm, source) => {
            if let Some(option) = args.for_tet_only() {
                return Err(cannot(Format::Tgm, &*source, &format!("`{option}` is for .tet files")));
            }
            tgm::repair::run_on(args.for_tgm(), &source, out)
        }
        (Format::Tatami, source) => {
            if let Some(option) = args.for_tet_only() {
                return Err(cannot(Format::Tatami, &*source, &format!("`{option}` is for .tet files")));
            }
            tatami::repair::run_on(args.for_tatami(), source, out)
        }
    }
}

pub(crate) fn outline(args: &tet::outline::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let limit = args.limit.limit.unwrap_or(tet::outline::LIMIT);
    match detect(args.input.source()?)? {
        (Format::Tet, source) => tet::outline::run_on(args, source, out),
        // The outline of a .tgm file verifies no hashes.
        (Format::Tgm, source) => tgm::outline::run_on(args.json.json, limit, source, out),
        (Format::Tatami, source) => tatami::outline::run_on(args.json.json, limit == 0, source, out),
    }
}

pub(crate) fn query(args: &tet::query::Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if let Some(path) = &args.tet {
        must_be_a_file(path, "query")?;
        match detect(open(path)?)? {
            (Format::Tet, _) => {}
            (format, source) => return Err(cannot(format, &*source, "queries are for .tet files")),
        }
    }
    tet::query::run(args, out)
}

fn cannot(format: Format, source: &dyn ByteSource, reason: &str) -> Failure {
    Failure::new(Class::Request, format!("{}: is a {format} file; {reason}", source.name()))
}

fn cannot_repair(format: Format, source: &dyn ByteSource) -> Failure {
    let failure = cannot(format, source, "only .tet files can be repaired in place");
    failure.with_hint(format!("salvage the intact parts with `{} repair FILE -o NEW`", format.extension()))
}
