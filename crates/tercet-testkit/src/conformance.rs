//! Conformance tests of byte sources.

use std::thread;

use tercet_core::{ByteSource, Class, Diagnostic, SourceError, Span};

/// Checks that a source conforms to [`ByteSource`]. It must hold exactly `bytes` and be named `name`.
///
/// # Panics
///
/// When it does not.
pub fn source_conformance(source: &dyn ByteSource, name: &str, bytes: &[u8]) {
    let len = bytes.len() as u64;
    assert_eq!(&**source.name(), name);
    assert_eq!(source.len(), len);
    assert_eq!(source.is_empty(), bytes.is_empty());

    exact_reads(source, bytes);
    past_the_end(source, len);
    beyond_all_memory(source, len);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| exact_reads(source, bytes));
        }
    });
}

/// Both kinds of reads return the bytes of the span: all, none, one, at both ends and in between.
fn exact_reads(source: &dyn ByteSource, bytes: &[u8]) {
    let len = bytes.len();
    for start in [0, 1, 7, len / 3, len / 2, len.saturating_sub(1), len] {
        for end in [start, start + 1, start + 8, len / 2, len.saturating_sub(1), len] {
            let (Some(expected), Some(span)) =
                (bytes.get(start..end), Span::between(start as u64, end as u64))
            else {
                continue;
            };
            let read = source.read_at(span).unwrap_or_else(|error| panic!("{span}: {error}"));
            assert!(read == expected, "read_at {span}");
            let mut out = vec![0xa5; expected.len()];
            source.read_into(span.start(), &mut out).unwrap_or_else(|error| panic!("{span}: {error}"));
            assert!(out == expected, "read_into {span}");
        }
    }
}

/// A span that ends after the source is refused, wherever it starts.
fn past_the_end(source: &dyn ByteSource, len: u64) {
    let starts = [0, 1, len / 2, len.saturating_sub(1), len, len + 1, len + (1 << 40)];
    for start in starts {
        for beyond in [1, 2, 4096] {
            let missing = len.saturating_sub(start) + beyond;
            let span = Span::at(start, missing).unwrap_or_else(|| panic!("{start} + {missing}"));
            refused(source.read_at(span).map(drop), span, len);
            let mut out = vec![0; usize::try_from(missing).unwrap_or_else(|error| panic!("{error}"))];
            refused(source.read_into(start, &mut out), span, len);
        }
    }
    // An empty span after the end is refused as well.
    refused(source.read_at(Span::empty(len + 1)).map(drop), Span::empty(len + 1), len);
    refused(source.read_into(len + 1, &mut []), Span::empty(len + 1), len);
}

fn refused(result: Result<(), SourceError>, requested: Span, len: u64) {
    match result {
        Err(error @ SourceError::PastEnd { span, len: found_len }) => {
            assert_eq!((span, found_len), (requested, len));
            assert_eq!((error.class(), Diagnostic::span(&error)), (Class::Io, Some(requested)));
        }
        other => panic!("{requested} of {len} bytes: {other:?}"),
    }
}

/// Huge lengths are refused before an allocation.
fn beyond_all_memory(source: &dyn ByteSource, len: u64) {
    let to_the_end_of_numbers = Span::between(len, u64::MAX).unwrap_or(Span::first(u64::MAX));
    for span in [Span::first(u64::MAX), Span::first(1 << 62), to_the_end_of_numbers] {
        let error = source.read_at(span).expect_err("more bytes than there are");
        assert!(matches!(error, SourceError::PastEnd { .. } | SourceError::TooLarge { .. }), "{error:?}");
    }
    let error = source.read_into(u64::MAX, &mut [0; 2]).expect_err("the end of the span overflows");
    assert!(matches!(error, SourceError::PastEnd { .. }), "{error:?}");
}
