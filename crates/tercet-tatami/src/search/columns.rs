//! Positions of the document columns in a search segment.

/// The ID of the document.
pub(super) const DOC_ID: usize = 0;
/// Its URL.
pub(super) const URL: usize = 1;
/// Its title.
pub(super) const TITLE: usize = 2;
/// Its body or snippet.
pub(super) const BODY: usize = 3;
/// The number of terms in body, title, anchor text and URL.
pub(super) const NORMS: [usize; 4] = [4, 5, 6, 7];
