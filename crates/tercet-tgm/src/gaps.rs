//! Gaps: bytes between messages that are not padding.

use std::fmt;

use serde::Serialize;
use tercet_core::{ByteSource, Span};

use crate::error::ErrorKind;
use crate::scan::Scan;
use crate::wire::ids::{MAGIC, PREAMBLE_LEN, VERSION};

/// Bytes that belong to no message, and more than padding to a multiple of 8.
///
/// A message may be lost in a gap, so that later messages have other numbers than their writer gave them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Gap {
    /// The bytes.
    #[serde(flatten)]
    pub span: Span,
    /// The content.
    pub kind: GapKind,
}

/// The content of a gap, as far as its first bytes show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GapKind {
    /// A message of another version of the format.
    Version(u16),
    /// A message that is damaged or incomplete.
    Damaged,
    /// A message whose frames do not lead to its end: it may contain the start of the next message.
    Unbounded,
    /// Other bytes.
    Unrecognized,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = self.span;
        match self.kind {
            GapKind::Version(version) => {
                write!(f, "bytes {span}: a message of version {version}; only version {VERSION} is supported")
            }
            GapKind::Damaged => write!(f, "bytes {span}: a damaged message"),
            GapKind::Unbounded => write!(f, "bytes {span}: a damaged message, or several"),
            GapKind::Unrecognized => write!(f, "unrecognized bytes {span}: not part of a message"),
        }
    }
}

impl Gap {
    /// The gap at a range of unrecognized bytes; `None` for padding.
    pub(crate) fn find(source: &dyn ByteSource, span: Span) -> Result<Option<Self>, ErrorKind> {
        // Padding and the magic and version of a preamble after it.
        let head = source.read_at(span.slice(0, span.len().min(PREAMBLE_LEN + 8)).unwrap_or(span))?;
        let to_boundary = span.start().next_multiple_of(8) - span.start();
        let padding = usize::try_from(to_boundary.min(span.len())).unwrap_or(0);
        let is_padded = head.get(..padding).is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0));
        if is_padded && span.len() <= to_boundary {
            return Ok(None);
        }
        let rest = head.get(if is_padded { padding } else { 0 }..).unwrap_or_default();
        let kind = match rest.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk::<2>()) {
            Some(version) if u16::from_be_bytes(*version) != VERSION => {
                GapKind::Version(u16::from_be_bytes(*version))
            }
            Some(_) => GapKind::Damaged,
            None => GapKind::Unrecognized,
        };
        Ok(Some(Self { span, kind }))
    }
}

impl Scan {
    /// The first gap; see [`gaps`](Self::gaps).
    pub(crate) fn first_gap(&self, source: &dyn ByteSource) -> Result<Option<Gap>, ErrorKind> {
        let unbounded = self.unbounded.first().map(|&span| Gap { span, kind: GapKind::Unbounded });
        for &span in &self.unrecognized {
            if unbounded.is_some_and(|gap| gap.span.start() < span.start()) {
                break;
            }
            if let Some(gap) = Gap::find(source, span)? {
                return Ok(Some(gap));
            }
        }
        Ok(unbounded)
    }

    /// The gaps, in order: unrecognized bytes that are not padding, and damaged messages that may be several. The
    /// incomplete message at the end is one of them: see [`cut_tail`](Self::cut_tail).
    pub fn gaps(&self, source: &dyn ByteSource) -> Result<Vec<Gap>, ErrorKind> {
        let mut gaps = Vec::new();
        for &span in &self.unrecognized {
            gaps.extend(Gap::find(source, span)?);
        }
        gaps.extend(self.unbounded.iter().map(|&span| Gap { span, kind: GapKind::Unbounded }));
        gaps.sort_by_key(|gap| gap.span.start());
        Ok(gaps)
    }
}
