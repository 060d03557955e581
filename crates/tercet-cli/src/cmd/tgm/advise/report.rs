//! The report of `tgm advise` as a table and as JSON.

use serde::Serialize;
use tercet::core::escape;
use tercet::tgm::DType;
use tercet::tgm::precision::{Advice, Advised};

use super::display_shape;
use crate::failure::Failure;
use crate::render::{Table, exact, human_size, significant};
use crate::ui::Ui;

/// The report of one array.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) file: String,
    pub(super) dtype: DType,
    pub(super) shape: Vec<u64>,
    pub(super) raw_bytes: u64,
    pub(super) max_error: f64,
    pub(super) threads: usize,
    pub(super) seconds: f64,
    #[serde(flatten)]
    pub(super) advice: Advice,
}

impl Report {
    pub(super) fn print(&self, out: &mut Ui) -> Result<(), Failure> {
        let chosen = self.advice.chosen().map(|chosen| {
            format!("chosen by `tgm create --max-error {}`: {}", exact(self.max_error), chosen.name)
        });
        if out.is_quiet() {
            return chosen.map_or(Ok(()), |chosen| out.line(chosen));
        }
        let (file, dtype, shape) = (escape::name(&self.file), self.dtype, display_shape(&self.shape));
        out.line(format_args!("{file}: {dtype} {shape}, {}", human_size(self.raw_bytes)))?;
        let heads = ["", "pipeline", ">bytes", ">ratio", ">max error", ">encode MB/s", ">decode MB/s"];
        let mut table = Table::new(&heads);
        for trial in &self.advice.candidates {
            table.row(cells(trial));
        }
        out.line(table)?;
        if let Some(chosen) = chosen {
            out.line(format_args!("* {chosen}"))?;
        }
        for trial in &self.advice.candidates {
            if let Some(reason) = &trial.failed {
                out.note(format_args!("note: {} failed: {}", trial.name, escape::name(reason)))?;
            }
        }
        if self.advice.has_masks {
            out.note(
                "note: the array has NaN or infinities; `tgm create` requires `--allow-nan` and `--allow-inf`",
            )?;
        }
        let (threads, seconds) = (self.threads, self.seconds);
        let plural = if threads == 1 { "" } else { "s" };
        out.note(format_args!("note: one run each on {threads} thread{plural}; total {seconds:.2} s"))
    }
}

fn cells(trial: &Advised) -> [String; 7] {
    let mark = if trial.chosen { "*" } else { "" }.to_owned();
    let name = trial.name.clone();
    let estimate = trial.estimated_bytes.map_or_else(|| "–".to_owned(), |bytes| format!("~{bytes}"));
    match trial.measured {
        None => [mark, name, estimate, "–".into(), "–".into(), "–".into(), "–".into()],
        Some(found) => [
            mark,
            name,
            found.bytes.to_string(),
            format!("{:.2}", found.ratio),
            significant(found.max_abs_error),
            format!("{:.0}", found.encode_mb_s),
            format!("{:.0}", found.decode_mb_s),
        ],
    }
}
