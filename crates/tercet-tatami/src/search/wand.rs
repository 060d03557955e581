//! The k best documents without looking at all of them: block-max WAND.
//!
//! Every list has a best score, and so has every block of it. A document is looked at only when the best scores of the lists
//! that can hold it add up to more than the k-th best found so far. Bounds are added in another order than scores are, so
//! they are widened by more than rounding can make of that: nothing is left out that a plain scorer would find.

use super::cursor::{Cursor, END};
use super::live::Live;
use super::top::Top;
use crate::fault::Fault;

/// How much more than a sum of bounds a sum of scores can be.
fn widened(sum: f64, terms: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "few words")]
    let slack = 1.0 + terms as f64 * f64::from(f32::EPSILON);
    sum * slack
}

/// Finds the best documents. `cursors` are in the order of the query, a word that is asked for twice twice.
pub(super) fn best(
    cursors: &mut [Cursor<'_>],
    live: Option<&Live>,
    k: usize,
) -> Result<(Vec<(u32, f32)>, u64), Fault> {
    let mut top = Top::new(k);
    let mut order: Vec<usize> = (0..cursors.len()).collect();
    let terms = cursors.len();
    let mut scored = 0;
    loop {
        order.sort_by_key(|index| cursors[*index].document());
        let threshold = f64::from(top.threshold());
        // The first document that can be good enough.
        let mut sum = 0.0;
        let mut pivot = None;
        for (place, index) in order.iter().enumerate() {
            if cursors[*index].document() == END {
                break;
            }
            sum += f64::from(cursors[*index].bound);
            if widened(sum, terms) > threshold {
                pivot = Some(place);
                break;
            }
        }
        let Some(mut pivot) = pivot else { break };
        let document = cursors[order[pivot]].document();
        // Other lists may stand on it too.
        while order.get(pivot + 1).is_some_and(|index| cursors[*index].document() == document) {
            pivot += 1;
        }
        if cursors[order[0]].document() != document {
            // The list with the highest bound before the pivot is moved: it is likely the longest way.
            for index in &order[..pivot] {
                if cursors[*index].document() < document {
                    cursors[*index].seek(document)?;
                }
            }
            continue;
        }
        let mut sum = 0.0;
        let mut edge = END;
        for index in &order[..=pivot] {
            let (last, bound) = cursors[*index].block_bound();
            sum += f64::from(bound);
            edge = edge.min(last);
        }
        if widened(sum, terms) <= threshold {
            let next = order.get(pivot + 1).map_or(END, |index| cursors[*index].document());
            let target = edge.saturating_add(1).min(next).max(document.saturating_add(1));
            for index in &order[..=pivot] {
                cursors[*index].seek(target)?;
            }
            continue;
        }
        if live.is_none_or(|live| live.contains(document)) {
            let mut score = 0.0f32;
            for cursor in cursors.iter_mut().filter(|cursor| cursor.document() == document) {
                score += cursor.score()?;
            }
            top.push(document, score);
            scored += 1;
        }
        for index in &order[..=pivot] {
            cursors[*index].advance()?;
        }
    }
    Ok((top.into_sorted(), scored))
}
