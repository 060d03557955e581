//! The report of `tgm advise` as a table and as JSON.

use serde::Serialize;
use tercet::core::escape;
use tercet::tgm::DType;

use super::{Trial, display_shape};
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
    /// Whether the array has NaN or infinities.
    pub(super) has_masks: bool,
    pub(super) candidates: Vec<Trial>,
}

impl Report {
    /// Marks the pipeline that a writer would choose: the smallest within the bound, the first of equal ones.
    pub(super) fn choose(&mut self) {
        let bound = self.max_error;
        let holds = |trial: &&mut Trial| trial.measured.is_some_and(|found| found.largest_error <= bound);
        let size = |trial: &&mut Trial| trial.measured.map_or(u64::MAX, |found| found.bytes);
        if let Some(best) = self.candidates.iter_mut().filter(holds).min_by_key(size) {
            best.chosen = true;
        }
    }

    pub(super) fn print(&self, out: &mut Ui) -> Result<(), Failure> {
        let chosen = self.candidates.iter().find(|trial| trial.chosen).map(|chosen| {
            format!("chosen by `tgm create --max-error {}`: {}", exact(self.max_error), chosen.name)
        });
        if out.is_quiet() {
            return chosen.map_or(Ok(()), |chosen| out.line(chosen));
        }
        let (file, dtype, shape) = (escape::name(&self.file), self.dtype, display_shape(&self.shape));
        out.line(format_args!("{file}: {dtype} {shape}, {}", human_size(self.raw_bytes)))?;
        let heads = ["", "pipeline", ">bytes", ">ratio", ">max error", ">encode MB/s", ">decode MB/s"];
        let mut table = Table::new(&heads);
        for trial in &self.candidates {
            table.row(cells(trial));
        }
        out.line(table)?;
        if let Some(chosen) = chosen {
            out.line(format_args!("* {chosen}"))?;
        }
        for trial in &self.candidates {
            if let Some(reason) = &trial.failed {
                out.note(format_args!("note: {} failed: {}", trial.name, escape::name(reason)))?;
            }
        }
        if self.has_masks {
            out.note(
                "note: the array has NaN or infinities; `tgm create` requires `--allow-nan` and `--allow-inf`",
            )?;
        }
        let (threads, seconds) = (self.threads, self.seconds);
        let plural = if threads == 1 { "" } else { "s" };
        out.note(format_args!("note: one run each on {threads} thread{plural}; total {seconds:.2} s"))
    }
}

fn cells(trial: &Trial) -> [String; 7] {
    let mark = if trial.chosen { "*" } else { "" }.to_owned();
    let name = trial.name.clone();
    match trial.measured {
        None => [mark, name, "–".into(), "–".into(), "–".into(), "–".into(), "–".into()],
        Some(found) => [
            mark,
            name,
            found.bytes.to_string(),
            format!("{:.2}", found.ratio),
            significant(found.largest_error),
            format!("{:.0}", found.encode_mb_s),
            format!("{:.0}", found.decode_mb_s),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::Measured;
    use super::*;

    fn trial(name: &str, found: Option<(u64, f64)>) -> Trial {
        let measured = found.map(|(bytes, largest_error)| Measured {
            bytes,
            ratio: 1.0,
            largest_error,
            encode_mb_s: 1.0,
            decode_mb_s: 1.0,
        });
        Trial::new(name, measured)
    }

    #[test]
    fn the_first_smallest_pipeline_within_the_bound_is_chosen() {
        let candidates = vec![
            trial("too wrong", Some((1, 0.6))),
            trial("impossible", None),
            trial("large", Some((9, 0.0))),
            trial("small", Some((5, 0.5))),
            trial("small too", Some((5, 0.0))),
        ];
        let mut report = Report {
            file: "a".to_owned(),
            dtype: DType::F64,
            shape: vec![1],
            raw_bytes: 8,
            max_error: 0.5,
            threads: 1,
            seconds: 0.0,
            has_masks: false,
            candidates,
        };
        report.choose();
        let chosen: Vec<&str> =
            report.candidates.iter().filter(|t| t.chosen).map(|t| t.name.as_str()).collect();
        assert_eq!(chosen, ["small"]);
    }
}
