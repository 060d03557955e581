//! Queries after analysis: terms of the dictionary.

use std::collections::HashSet;

use super::{ColumnTest, DocField, Sign};

/// A query in terms of one analyzer.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::search) struct TermQuery {
    pub(in crate::search) root: Group,
}

/// A group of parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::search) struct Group {
    pub(in crate::search) parts: Vec<(Sign, Part)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::search) enum Part {
    Term(Scored),
    /// All terms with a prefix.
    Prefix(Scored),
    /// All terms within some edits.
    Fuzzy(Scored, u8),
    /// Terms and their order.
    Phrase(Vec<Scored>, Phrase),
    Group(Group),
    /// Documents with some values of a column.
    Column(ColumnTest),
    /// All documents.
    All,
}

/// A scored term.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::search) struct Scored {
    /// The entry of the dictionary.
    pub(in crate::search) term: String,
    /// The word of the query.
    pub(in crate::search) word: Box<str>,
    /// Whether only the body counts: the occurrences in other fields are subtracted.
    pub(in crate::search) body_only: bool,
    pub(in crate::search) boost: f32,
    /// The term whose weight it has, if not its own.
    pub(in crate::search) weight_of: Option<Box<str>>,
}

impl Scored {
    pub(super) fn new(term: String, field: Option<DocField>, boost: f32) -> Self {
        let word = term.as_str().into();
        match field {
            None => Self { term, word, body_only: false, boost, weight_of: None },
            Some(DocField::Body) => Self { term, word, body_only: true, boost, weight_of: None },
            Some(field) => Self { term: field.term(&term), word, body_only: false, boost, weight_of: None },
        }
    }

    pub(super) fn with_word(mut self, word: &str) -> Self {
        self.word = word.into();
        self
    }

    /// The term whose idf it is scored with.
    pub(in crate::search) fn weight_term(&self) -> &str {
        self.weight_of.as_deref().unwrap_or(&self.term)
    }

    /// The term without its field.
    pub(in crate::search) fn text(&self) -> &str {
        self.term.split_once(':').map_or(&self.term, |(_, term)| term)
    }
}

/// Consecutive terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::search) struct Phrase {
    pub(in crate::search) terms: Vec<String>,
    pub(in crate::search) field: Option<DocField>,
    /// Maximum number of other terms in between.
    pub(in crate::search) slop: u32,
    /// Whether it is one word of the query. Without stored text, documents with all of its terms match.
    pub(in crate::search) is_word: bool,
}

impl TermQuery {
    /// The scored terms, in order, without excluded ones.
    pub(in crate::search) fn scored(&self) -> impl Iterator<Item = &Scored> {
        let mut out = Vec::new();
        self.root.collect(&mut out);
        out.into_iter()
    }

    /// The terms, if all parts are optional terms.
    pub(in crate::search) fn plain(&self) -> Option<Vec<&Scored>> {
        let plain = |(sign, part): &(Sign, Part)| {
            *sign == Sign::May && matches!(part, Part::Term(scored) if !scored.body_only)
        };
        self.root.parts.iter().all(plain).then(|| self.scored().collect())
    }

    /// The tests of columns.
    pub(in crate::search) fn columns(&self) -> Vec<&ColumnTest> {
        let mut out = Vec::new();
        self.root.collect_columns(&mut out);
        out
    }

    /// Whether a part satisfies a test.
    pub(in crate::search) fn any(&self, test: &dyn Fn(&Part) -> bool) -> bool {
        self.root.any(test)
    }

    /// Calls `each` with every part that is not a group.
    pub(in crate::search) fn try_for_each_mut<E>(
        &mut self,
        each: &mut dyn FnMut(&mut Part) -> Result<(), E>,
    ) -> Result<(), E> {
        self.root.try_for_each_mut(each)
    }
}

impl Part {
    /// Replaces the phrase of a word by its terms, which are all required.
    pub(in crate::search) fn loosen(&mut self) {
        if let Self::Phrase(terms, phrase) = self
            && phrase.is_word
        {
            let parts = std::mem::take(terms).into_iter().map(|scored| (Sign::Must, Self::Term(scored)));
            *self = Self::Group(Group { parts: parts.collect() });
        }
    }
}

impl Group {
    /// Multiplies the boosts of the parts.
    pub(super) fn boost(&mut self, boost: f32) {
        for (_, part) in &mut self.parts {
            match part {
                Part::Term(scored) | Part::Prefix(scored) | Part::Fuzzy(scored, _) => scored.boost *= boost,
                Part::Phrase(terms, _) => terms.iter_mut().for_each(|scored| scored.boost *= boost),
                Part::Group(group) => group.boost(boost),
                Part::Column(_) | Part::All => {}
            }
        }
    }

    /// Removes repeated optional terms.
    pub(super) fn dedup_terms(&mut self) {
        let mut seen = HashSet::new();
        self.parts.retain_mut(|(sign, part)| match part {
            Part::Term(scored) if *sign == Sign::May => {
                seen.insert((scored.term.clone(), scored.body_only, scored.boost.to_bits()))
            }
            Part::Group(group) => {
                group.dedup_terms();
                true
            }
            _ => true,
        });
    }

    fn collect<'a>(&'a self, out: &mut Vec<&'a Scored>) {
        for (sign, part) in &self.parts {
            match part {
                _ if *sign == Sign::Not => {}
                Part::Term(scored) => out.push(scored),
                Part::Phrase(terms, _) => out.extend(terms),
                Part::Group(group) => group.collect(out),
                Part::Prefix(_) | Part::Fuzzy(..) | Part::Column(_) | Part::All => {}
            }
        }
    }

    fn collect_columns<'a>(&'a self, out: &mut Vec<&'a ColumnTest>) {
        for (_, part) in &self.parts {
            match part {
                Part::Column(test) => out.push(test),
                Part::Group(group) => group.collect_columns(out),
                _ => {}
            }
        }
    }

    fn any(&self, test: &dyn Fn(&Part) -> bool) -> bool {
        self.parts.iter().any(|(_, part)| match part {
            Part::Group(group) => group.any(test),
            part => test(part),
        })
    }

    fn try_for_each_mut<E>(&mut self, each: &mut dyn FnMut(&mut Part) -> Result<(), E>) -> Result<(), E> {
        self.parts.iter_mut().try_for_each(|(_, part)| match part {
            Part::Group(group) => group.try_for_each_mut(each),
            part => each(part),
        })
    }
}
