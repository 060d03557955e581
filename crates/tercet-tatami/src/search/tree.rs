//! Evaluation of boolean queries and phrases.
//!
//! Nodes iterate over documents like single terms: a conjunction skips to the maximum document of its parts, a disjunction to
//! the minimum. If the maximum scores of the current blocks cannot reach the threshold, the search skips past the first block
//! end. Text is read last, only for documents with all terms of a phrase whose score would reach the threshold.

use super::cursor::{Cursor, END};
use super::options::Cancel;
use super::positions;
use super::query::{ColumnTest, DocField, Group, Part, Phrase, Scored, Sign};
use super::rank::widened;
use super::top::Top;
use crate::error::ErrorKind;
use crate::predicate::Mask;

/// A part of a query, bound to the posting lists of a segment.
#[derive(Debug)]
pub(super) enum Node {
    /// No documents.
    Nothing,
    /// A posting list.
    Term(usize),
    /// A posting list less the occurrences in other fields, which are in the lists of the range.
    Body(usize, std::ops::Range<usize>),
    /// Some documents.
    Rows(Mask),
    /// All documents.
    Every,
    All(Vec<(Sign, Node)>, Option<usize>),
}

/// Candidates between two tests whether the search is cancelled.
const BATCH: u32 = 128;

/// Tests whether a document contains a phrase.
pub(super) type ContainsPhrase<'c> = dyn FnMut(u32, &Phrase) -> Result<bool, ErrorKind> + 'c;

/// The state of a search.
pub(super) struct Search<'c, 'a> {
    pub(super) cursors: Vec<Cursor<'a>>,
    /// The phrases of the query, with the posting lists of their terms.
    pub(super) phrases: Vec<(Phrase, Vec<usize>)>,
    /// The positions of the terms of a phrase.
    pub(super) positions: Vec<Vec<u32>>,
    /// The number of documents.
    pub(super) documents: u32,
    pub(super) allowed: Option<&'c Mask>,
    pub(super) scored: u64,
    pub(super) cancel: Cancel<'c>,
    /// Tests whether a document contains a phrase; reads its text.
    pub(super) contains_phrase: &'c mut ContainsPhrase<'c>,
}

/// What phrases are tested against.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PhraseCheck {
    /// The terms only: a phrase may match.
    TermsOnly,
    /// The text of the document.
    Text,
}

impl<'a> Search<'_, 'a> {
    /// Binds a group. `open` returns the posting list of a term, if any, and `rows` the documents of a test of a column.
    pub(super) fn bind(
        &mut self,
        group: &Group,
        open: &mut dyn FnMut(&Scored) -> Result<Option<Cursor<'a>>, ErrorKind>,
        rows: &mut dyn FnMut(&ColumnTest) -> Result<Mask, ErrorKind>,
    ) -> Result<Node, ErrorKind> {
        let mut nodes = Vec::with_capacity(group.parts.len());
        for (sign, part) in &group.parts {
            let node = match part {
                Part::Term(scored) => self.term(scored, open)?,
                // Expanded before.
                Part::Prefix(_) | Part::Fuzzy(..) => Node::Nothing,
                Part::Column(test) => Node::Rows(rows(test)?),
                Part::All => Node::Every,
                Part::Phrase(terms, phrase) => {
                    let all = terms.iter().map(|term| Ok((Sign::Must, self.term(term, open)?)));
                    let all = all.collect::<Result<Vec<_>, ErrorKind>>()?;
                    let list = |(_, node): &(Sign, Node)| match node {
                        Node::Term(index) => Some(*index),
                        _ => None,
                    };
                    // Without any, texts are read.
                    let lists: Option<Vec<usize>> =
                        if positions::decide(phrase) { all.iter().map(list).collect() } else { None };
                    self.phrases.push((phrase.clone(), lists.unwrap_or_default()));
                    all_of(all, Some(self.phrases.len() - 1))
                }
                Part::Group(group) => self.bind(group, open, rows)?,
            };
            nodes.push((*sign, node));
        }
        Ok(all_of(nodes, None))
    }

    fn term(
        &mut self,
        scored: &Scored,
        open: &mut dyn FnMut(&Scored) -> Result<Option<Cursor<'a>>, ErrorKind>,
    ) -> Result<Node, ErrorKind> {
        let Some(cursor) = open(scored)? else { return Ok(Node::Nothing) };
        self.cursors.push(cursor);
        let index = self.cursors.len() - 1;
        if !scored.body_only {
            return Ok(Node::Term(index));
        }
        for field in DocField::INDEXED {
            let other = Scored { term: field.term(&scored.term), body_only: false, ..scored.clone() };
            self.cursors.extend(open(&other)?);
        }
        Ok(Node::Body(index, index + 1..self.cursors.len()))
    }

    /// The top documents.
    pub(super) fn best(
        &mut self,
        root: &Node,
        k: usize,
        min_score: f32,
    ) -> Result<Vec<(u32, f32)>, ErrorKind> {
        let mut top = Top::new(k);
        let terms = self.cursors.len();
        let has_phrase = !self.phrases.is_empty();
        let mut document = 0;
        for candidate in (0..BATCH).cycle() {
            if candidate == 0 {
                self.cancel.check()?;
            }
            document = self.seek(root, document)?;
            if document == END {
                return Ok(top.into_sorted());
            }
            let (bound, last) = self.bound(root, document);
            let bound = widened(bound, terms);
            if bound < f64::from(min_score) || top.is_full() && bound <= f64::from(top.threshold()) {
                if last >= END - 1 {
                    return Ok(top.into_sorted());
                }
                document = last.max(document) + 1;
                continue;
            }
            if self.allowed.is_none_or(|mask| mask.get(document as usize)) {
                let mut score = self.score(root, document, 0.0, PhraseCheck::TermsOnly)?;
                let enough =
                    |score: &f32| *score >= min_score && (!top.is_full() || *score > top.threshold());
                if has_phrase && score.as_ref().is_some_and(enough) {
                    score = self.score(root, document, 0.0, PhraseCheck::Text)?;
                }
                self.scored += 1;
                if let Some(score) = score.filter(|score| *score >= min_score) {
                    top.push(document, score);
                }
            }
            document += 1;
        }
        Ok(top.into_sorted())
    }

    /// Calls `each` for every candidate, with its number if it matches, until it returns false. Returns whether all were tested.
    pub(super) fn matching(
        &mut self,
        root: &Node,
        each: &mut dyn FnMut(Option<u32>) -> bool,
    ) -> Result<bool, ErrorKind> {
        let mut document = 0;
        for candidate in (0..BATCH).cycle() {
            if candidate == 0 {
                self.cancel.check()?;
            }
            document = self.seek(root, document)?;
            if document == END {
                return Ok(true);
            }
            let allowed = self.allowed.is_none_or(|mask| mask.get(document as usize));
            let matches = allowed && self.score(root, document, 0.0, PhraseCheck::Text)?.is_some();
            if !each(matches.then_some(document)) {
                return Ok(false);
            }
            document += 1;
        }
        Ok(true)
    }

    /// The first candidate from `target` on; exclusions and phrases are not tested.
    fn seek(&mut self, node: &Node, target: u32) -> Result<u32, ErrorKind> {
        match node {
            Node::Nothing => Ok(END),
            Node::Term(index) | Node::Body(index, _) => self.cursors[*index].seek(target),
            Node::Every => Ok(if target < self.documents { target } else { END }),
            Node::Rows(rows) => {
                let next = rows.next_from(target as usize).and_then(|row| u32::try_from(row).ok());
                Ok(next.unwrap_or(END))
            }
            Node::All(nodes, _) if nodes.iter().any(|(sign, _)| *sign == Sign::Must) => {
                let mut document = target;
                'again: loop {
                    for (_, node) in nodes.iter().filter(|(sign, _)| *sign == Sign::Must) {
                        let found = self.seek(node, document)?;
                        if found == END {
                            return Ok(END);
                        }
                        if found != document {
                            document = found;
                            continue 'again;
                        }
                    }
                    return Ok(document);
                }
            }
            Node::All(nodes, _) => {
                let mut first = END;
                for (_, node) in nodes.iter().filter(|(sign, _)| *sign == Sign::May) {
                    first = first.min(self.seek(node, target)?);
                }
                Ok(first)
            }
        }
    }

    /// An upper bound of the scores up to the returned document.
    fn bound(&mut self, node: &Node, document: u32) -> (f64, u32) {
        match node {
            Node::Nothing | Node::Every | Node::Rows(_) => (0.0, END),
            Node::Term(index) | Node::Body(index, _) => {
                let cursor = &mut self.cursors[*index];
                let lower = cursor.lower(document);
                if lower > document {
                    return (0.0, lower - 1);
                }
                (cursor.block_bound().into(), cursor.extent().1)
            }
            Node::All(nodes, _) => {
                let (mut sum, mut last) = (0.0, END);
                for (_, node) in nodes.iter().filter(|(sign, _)| *sign != Sign::Not) {
                    let (bound, until) = self.bound(node, document);
                    sum += bound;
                    last = last.min(until);
                }
                (sum, last)
            }
        }
    }

    /// `sum` plus the score of a part, if it matches.
    fn score(
        &mut self,
        node: &Node,
        document: u32,
        sum: f32,
        check: PhraseCheck,
    ) -> Result<Option<f32>, ErrorKind> {
        match node {
            Node::Nothing => Ok(None),
            Node::Term(index) => {
                let cursor = &mut self.cursors[*index];
                if cursor.find(document)? { Ok(Some(sum + cursor.score()?)) } else { Ok(None) }
            }
            Node::Every => Ok((document < self.documents).then_some(sum)),
            Node::Rows(rows) => Ok(rows.get(document as usize).then_some(sum)),
            Node::Body(index, others) => {
                if !self.cursors[*index].find(document)? {
                    return Ok(None);
                }
                let mut elsewhere = 0;
                for other in others.clone() {
                    if self.cursors[other].find(document)? {
                        elsewhere += self.cursors[other].frequency()?;
                    }
                }
                let cursor = &mut self.cursors[*index];
                if cursor.frequency()? > elsewhere { Ok(Some(sum + cursor.score()?)) } else { Ok(None) }
            }
            Node::All(nodes, phrase) => {
                let (mut total, mut found, mut must) = (sum, false, false);
                for (sign, node) in nodes {
                    match sign {
                        Sign::Not => {
                            if self.is_excluded(node, document, check)? {
                                return Ok(None);
                            }
                        }
                        Sign::Must => match self.score(node, document, total, check)? {
                            Some(more) => (total, must) = (more, true),
                            None => return Ok(None),
                        },
                        Sign::May => {
                            if let Some(more) = self.score(node, document, total, check)? {
                                (total, found) = (more, true);
                            }
                        }
                    }
                }
                let matches = match phrase {
                    Some(phrase) if check == PhraseCheck::Text => self.contains(document, *phrase)?,
                    _ => true,
                };
                Ok((matches && (found || must)).then_some(total))
            }
        }
    }

    /// Whether a document contains a phrase: by the positions of its terms, or by its text.
    fn contains(&mut self, document: u32, phrase: usize) -> Result<bool, ErrorKind> {
        let Self { contains_phrase, phrases, positions, cursors, .. } = self;
        let (phrase, lists) = &phrases[phrase];
        positions.resize_with(lists.len(), Vec::new);
        let mut is_known = !lists.is_empty();
        for (list, positions) in lists.iter().zip(positions.iter_mut()) {
            let cursor = &mut cursors[*list];
            is_known = is_known && cursor.find(document)? && cursor.positions(positions)?;
        }
        if is_known { Ok(positions::contain(positions, phrase)) } else { contains_phrase(document, phrase) }
    }

    /// Whether an excluded part matches. Before the text is read, a phrase does not match.
    fn is_excluded(&mut self, node: &Node, document: u32, check: PhraseCheck) -> Result<bool, ErrorKind> {
        if check == PhraseCheck::TermsOnly && has_phrase(node) {
            return Ok(false);
        }
        Ok(self.score(node, document, 0.0, check)?.is_some())
    }
}

fn has_phrase(node: &Node) -> bool {
    match node {
        Node::Nothing | Node::Term(_) | Node::Body(..) | Node::Rows(_) | Node::Every => false,
        Node::All(nodes, phrase) => phrase.is_some() || nodes.iter().any(|(_, node)| has_phrase(node)),
    }
}

/// The parts of a group that have documents.
fn all_of(nodes: Vec<(Sign, Node)>, phrase: Option<usize>) -> Node {
    let is_nothing = |node: &Node| matches!(node, Node::Nothing);
    if nodes.iter().any(|(sign, node)| *sign == Sign::Must && is_nothing(node)) {
        return Node::Nothing;
    }
    let nodes: Vec<(Sign, Node)> = nodes.into_iter().filter(|(_, node)| !is_nothing(node)).collect();
    if nodes.iter().all(|(sign, _)| *sign == Sign::Not) {
        return Node::Nothing;
    }
    Node::All(nodes, phrase)
}
