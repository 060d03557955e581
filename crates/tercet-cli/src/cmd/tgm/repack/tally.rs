//! Statistics of repacking.

use serde::Serialize;

use crate::render::{exact, human_size, ratio};

/// The repacking statistics of one file.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cmd::tgm) struct Tally {
    pub(super) messages: u64,
    /// Repacked objects.
    pub(super) repacked: u64,
    /// Copied objects.
    pub(super) copied: u64,
    pub(super) bytes_before: u64,
    pub(super) bytes_after: u64,
    /// The largest change of a value.
    pub(super) max_change: f64,
}

/// The JSON summary.
#[derive(Debug, Serialize)]
pub(in crate::cmd::tgm) struct RepackJson<'a> {
    file: &'a str,
    messages: u64,
    objects_repacked: u64,
    objects_copied: u64,
    bytes_before: u64,
    bytes_after: u64,
    /// `None` if nothing was written.
    ratio: Option<f64>,
    /// `None` if infinite.
    max_change: Option<f64>,
}

impl Tally {
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub(in crate::cmd::tgm) fn to_json(self, file: &str) -> RepackJson<'_> {
        let Self { messages, repacked, copied, bytes_before, bytes_after, max_change } = self;
        RepackJson {
            file,
            messages,
            objects_repacked: repacked,
            objects_copied: copied,
            bytes_before,
            bytes_after,
            ratio: (bytes_after > 0).then(|| bytes_before as f64 / bytes_after as f64),
            max_change: Some(max_change).filter(|change| change.is_finite()),
        }
    }

    /// The text summary for a file.
    pub(in crate::cmd::tgm) fn line(&self, file: &str) -> String {
        let Self { messages, bytes_before, bytes_after, .. } = *self;
        let plural = if messages == 1 { "" } else { "s" };
        let (before, after) = (human_size(bytes_before), human_size(bytes_after));
        let (ratio, change) = (ratio(bytes_before, bytes_after), exact(self.max_change));
        format!("{file}: {messages} message{plural}, {before} → {after}, ratio {ratio}, max change {change}")
    }
}
