//! Evaluation of rankings by relevance judgements.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use thiserror::Error;

/// Hits of a query that are examined, besides the first ten for nDCG.
pub const DEPTH: usize = 100;

/// Hits examined for nDCG and precision.
const SHALLOW: usize = 10;

/// A query with its ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its ID, as in the judgements.
    pub id: String,
    /// The text.
    pub text: String,
}

/// A line of an input that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {reason}")]
pub struct EvaluationError {
    /// The 1-based line.
    pub line: usize,
    reason: &'static str,
}

/// Parses queries: TREC topics (`<top>`, `<num>`, `<title>`), or lines with an ID, a tab and a text.
pub fn parse_topics(text: &str) -> Result<Vec<Topic>, EvaluationError> {
    let line_of = |at: usize| text[..at].matches('\n').count() + 1;
    if !text.trim_start().starts_with("<top>") {
        let mut out = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let Some((id, query)) = line.split_once('\t') else {
                let reason = "expected an ID, a tab and a query, or a TREC topic";
                return Err(EvaluationError { line: number + 1, reason });
            };
            out.push(Topic { id: id.trim().to_owned(), text: query.trim().to_owned() });
        }
        return Ok(out);
    }
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("<top>") {
        let start = at + found;
        let end = text[start..].find("</top>").map_or(text.len(), |len| start + len);
        let field = |name: &str| {
            let topic = &text[start..end];
            let from = topic.find(name)? + name.len();
            let rest = &topic[from..];
            Some(rest[..rest.find('<').unwrap_or(rest.len())].trim())
        };
        let (Some(id), Some(title)) = (field("<num>"), field("<title>")) else {
            let reason = "a topic has `<num>` and `<title>`";
            return Err(EvaluationError { line: line_of(start), reason });
        };
        let id = id.trim_start_matches("Number:").trim().to_owned();
        let text = title.split_whitespace().collect::<Vec<_>>().join(" ");
        out.push(Topic { id, text });
        at = end;
    }
    Ok(out)
}

/// Relevance judgements: the grade of each document of each query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgements {
    by_query: BTreeMap<String, HashMap<String, u32>>,
}

impl Judgements {
    /// Parses judgements in the TREC form: query, iteration, document, grade. Grades of 0 and below are not relevant.
    pub fn parse(text: &str) -> Result<Self, EvaluationError> {
        let mut by_query: BTreeMap<String, HashMap<String, u32>> = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let grade = fields.get(3).and_then(|grade| grade.parse::<i64>().ok());
            let (&[query, _, document, _], Some(grade)) = (&fields[..], grade) else {
                let reason = "expected a query ID, an iteration, a document ID and a grade";
                return Err(EvaluationError { line: number + 1, reason });
            };
            let documents = by_query.entry(query.to_owned()).or_default();
            if grade > 0 {
                documents.insert(document.to_owned(), u32::try_from(grade).unwrap_or(u32::MAX));
            }
        }
        Ok(Self { by_query })
    }

    /// The number of relevant documents of a query; `None` without judgements.
    pub fn relevant(&self, query: &str) -> Option<usize> {
        self.by_query.get(query).map(HashMap::len)
    }

    /// The measures of one ranking, the best document first; `None` if the query has no relevant document.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    pub fn measure(&self, query: &str, ranking: &[String]) -> Option<Measures> {
        let grades = self.by_query.get(query).filter(|grades| !grades.is_empty())?;
        let (mut found, mut precisions, mut gain, mut early) = (0u32, 0.0, 0.0, 0u32);
        for (at, document) in ranking.iter().take(DEPTH).enumerate() {
            let Some(grade) = grades.get(document) else { continue };
            found += 1;
            precisions += f64::from(found) / (at + 1) as f64;
            if at < SHALLOW {
                early += 1;
                gain += f64::from(*grade) / ((at + 2) as f64).log2();
            }
        }
        let mut best: Vec<u32> = grades.values().copied().collect();
        best.sort_unstable_by(|a, b| b.cmp(a));
        let ideal: f64 = best
            .iter()
            .take(SHALLOW)
            .enumerate()
            .map(|(at, grade)| f64::from(*grade) / ((at + 2) as f64).log2())
            .sum();
        Some(Measures {
            queries: 1,
            map_100: precisions / grades.len() as f64,
            ndcg_10: gain / ideal,
            precision_10: f64::from(early) / SHALLOW as f64,
            recall_100: f64::from(found) / grades.len() as f64,
        })
    }
}

/// Means over queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Measures {
    /// Queries with relevant documents.
    pub queries: u64,
    /// Mean average precision of the first 100 hits.
    pub map_100: f64,
    /// Normalized discounted cumulative gain of the first 10 hits.
    pub ndcg_10: f64,
    /// Precision of the first 10 hits.
    pub precision_10: f64,
    /// Recall of the first 100 hits.
    pub recall_100: f64,
}

impl Measures {
    /// The means over queries.
    #[expect(clippy::cast_precision_loss, reason = "few queries")]
    pub fn mean(all: &[Self]) -> Self {
        let count = all.len().max(1) as f64;
        let mean = |field: fn(&Self) -> f64| all.iter().map(field).sum::<f64>() / count;
        Self {
            queries: all.iter().map(|one| one.queries).sum(),
            map_100: mean(|one| one.map_100),
            ndcg_10: mean(|one| one.ndcg_10),
            precision_10: mean(|one| one.precision_10),
            recall_100: mean(|one| one.recall_100),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_trec_or_lines() {
        let trec = "<top>\n<num> Number: 1 </num><title>\nA  b\n</title>\n</top>\n<top><num>2<title>c</top>";
        let topic = |id: &str, text: &str| Topic { id: id.into(), text: text.into() };
        assert_eq!(parse_topics(trec).unwrap(), [topic("1", "A b"), topic("2", "c")]);
        assert_eq!(parse_topics("1\tA b\n\n2\tc\n").unwrap(), [topic("1", "A b"), topic("2", "c")]);
        assert_eq!(parse_topics("1\ta\nb\n").unwrap_err().line, 2);
        assert_eq!(parse_topics("<top>\n</top>").unwrap_err().line, 1);
    }

    #[test]
    fn measures_are_those_of_trec_eval() {
        let judged = Judgements::parse("q 0 a 1\nq 0 b 2\nq 0 c 0\nr 0 x 0\n").unwrap();
        let ranking: Vec<String> = ["c", "b", "d", "a"].map(String::from).into();
        let found = judged.measure("q", &ranking).unwrap();
        assert!((found.map_100 - 0.5).abs() < 1e-12);
        let gain = 2.0 / 3f64.log2() + 1.0 / 5f64.log2();
        let ideal = 2.0 / 2f64.log2() + 1.0 / 3f64.log2();
        assert!((found.ndcg_10 - gain / ideal).abs() < 1e-12);
        assert!((found.recall_100 - 1.0).abs() < 1e-12);
        assert!((found.precision_10 - 0.2).abs() < 1e-12);
        assert_eq!(judged.measure("r", &ranking), None);
        assert_eq!(judged.measure("s", &ranking), None);
        assert_eq!(Judgements::parse("q 0 a\n").unwrap_err().line, 1);
    }
}
