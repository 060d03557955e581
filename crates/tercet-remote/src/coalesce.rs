//! Coalescing of byte ranges that are close to each other.

use tercet_core::Span;

/// Sorts spans and joins those that are at most `max_gap` bytes apart, as long as a joined span has at most `max_len`
/// bytes.
///
/// Every span is inside one of the results. Empty spans are dropped.
pub(crate) fn coalesce(mut spans: Vec<Span>, max_gap: u64, max_len: u64) -> Vec<Span> {
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable();
    let mut out: Vec<Span> = Vec::new();
    for span in spans {
        if let Some(last) = out.last_mut() {
            let end = last.end().max(span.end());
            let is_near = span.start() <= last.end().saturating_add(max_gap) && end - last.start() <= max_len;
            if is_near || last.contains(span) {
                *last = Span::between(last.start(), end).unwrap_or(*last);
                continue;
            }
        }
        out.push(span);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span(start: u64, len: u64) -> Span {
        Span::at(start, len).unwrap()
    }

    #[test]
    fn near_spans_are_joined() {
        let spans = vec![span(100, 10), span(0, 10), span(14, 6), span(15, 2), span(110, 5), span(7, 0)];
        assert_eq!(coalesce(spans.clone(), 4, 1000), [span(0, 20), span(100, 15)]);
        assert_eq!(coalesce(spans.clone(), 3, 1000), [span(0, 10), span(14, 6), span(100, 15)]);
        assert_eq!(coalesce(spans, 1000, 20), [span(0, 20), span(100, 15)]);
    }

    proptest! {
        #[test]
        fn every_span_is_covered(spans in prop::collection::vec((0u64..500, 0u64..60), 0..20), max_gap in 0u64..20, max_len in 0u64..200) {
            let spans: Vec<Span> = spans.into_iter().map(|(start, len)| span(start, len)).collect();
            let out = coalesce(spans.clone(), max_gap, max_len);
            for inner in spans.iter().filter(|span| !span.is_empty()) {
                prop_assert!(out.iter().any(|outer| outer.contains(*inner)));
            }
            for outer in &out {
                // Nothing is fetched outside the spans and the gaps between them.
                let inside: Vec<&Span> = spans.iter().filter(|inner| outer.contains(**inner) && !inner.is_empty()).collect();
                prop_assert!(inside.iter().any(|inner| inner.start() == outer.start()));
                prop_assert!(inside.iter().any(|inner| inner.end() == outer.end()));
                prop_assert!(outer.len() <= max_len || inside.contains(&outer));
            }
        }
    }
}
