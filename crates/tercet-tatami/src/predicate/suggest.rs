//! "Did you mean": the known name that is most similar to an unknown one.

/// Maximum number of names that are compared.
const MAX_NAMES: usize = 10_000;

/// The most similar name, if any is similar enough.
pub(super) fn closest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    let most = (wanted.len() / 3).clamp(1, 3);
    let close = |known: &'n str| {
        let letters: Vec<char> = known.to_lowercase().chars().collect();
        let near = letters.len().abs_diff(wanted.len()) <= most;
        near.then(|| (distance(&wanted, &letters), known))
    };
    let distances = known.into_iter().take(MAX_NAMES).filter_map(close);
    // A name that shares no letter at all is not similar.
    let most = most.min(wanted.len().saturating_sub(1));
    distances.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name)
}

/// The number of insertions, deletions, substitutions and transpositions.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found() {
        let names = ["status", "url", "l_shipdate", "é"];
        for (name, expected) in [
            ("statsu", Some("status")),
            ("STATUS", Some("status")),
            ("ulr", Some("url")),
            ("shipdate", Some("l_shipdate")),
            ("x", None),
            ("other", None),
            ("", None),
        ] {
            assert_eq!(closest(name, names), expected, "{name}");
        }
    }
}
