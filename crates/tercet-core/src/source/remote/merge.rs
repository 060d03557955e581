//! Spans that are fetched together.

use crate::Span;

/// Spans in order, those joined that are at most `gap` bytes apart, as long as the sum is at most `most`.
///
/// Every span that goes in lies wholly inside one that comes out. Empty ones need nothing.
pub(super) fn merged(mut spans: Vec<Span>, gap: u64, most: u64) -> Vec<Span> {
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable();
    let mut out: Vec<Span> = Vec::new();
    for span in spans {
        if let Some(last) = out.last_mut() {
            let end = last.end().max(span.end());
            let is_near = span.start() <= last.end().saturating_add(gap) && end - last.start() <= most;
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
    fn near_ones_are_one() {
        let spans = vec![span(100, 10), span(0, 10), span(14, 6), span(15, 2), span(110, 5), span(7, 0)];
        assert_eq!(merged(spans.clone(), 4, 1000), [span(0, 20), span(100, 15)]);
        assert_eq!(merged(spans.clone(), 3, 1000), [span(0, 10), span(14, 6), span(100, 15)]);
        assert_eq!(merged(spans, 1000, 20), [span(0, 20), span(100, 15)]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(spans in prop::collection::vec((0u64..500, 0u64..60), 0..20), gap in 0u64..20, most in 0u64..200) {
            let spans: Vec<Span> = spans.into_iter().map(|(start, len)| span(start, len)).collect();
            let out = merged(spans.clone(), gap, most);
            for inner in spans.iter().filter(|span| !span.is_empty()) {
                prop_assert!(out.iter().any(|outer| outer.contains(*inner)));
            }
            for outer in &out {
                // Nothing is fetched that is neither asked for nor in a gap.
                let inside: Vec<&Span> = spans.iter().filter(|inner| outer.contains(**inner) && !inner.is_empty()).collect();
                prop_assert!(inside.iter().any(|inner| inner.start() == outer.start()));
                prop_assert!(inside.iter().any(|inner| inner.end() == outer.end()));
                prop_assert!(outer.len() <= most || inside.contains(&outer));
            }
        }
    }
}
