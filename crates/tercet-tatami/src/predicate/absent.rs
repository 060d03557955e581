//! Filters on files without some of their columns.

use super::{Comparison, Expr};

/// The rows of a file that satisfy a filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reduced {
    /// All.
    Every,
    /// None.
    Never,
    /// Those of a filter whose columns exist.
    Rows(Expr),
}

impl Expr {
    /// The filter for a file without some of its columns, which are null in all of its rows.
    pub(crate) fn without_columns(&self, exists: &dyn Fn(&str) -> bool) -> Reduced {
        self.reduced(true, exists)
    }

    /// The rows for which the filter is true, or those for which it is false: others are null.
    fn reduced(&self, wanted: bool, exists: &dyn Fn(&str) -> bool) -> Reduced {
        let leaf = || Reduced::Rows(if wanted { self.clone() } else { self.clone().negate() });
        match self {
            Self::Comparison { column, .. } if exists(column) => leaf(),
            Self::Comparison { test: Comparison::IsNull, .. } if wanted => Reduced::Every,
            Self::Columns { left, right, .. } if exists(left) && exists(right) => leaf(),
            Self::Comparison { .. } | Self::Columns { .. } => Reduced::Never,
            Self::Not(part) => part.reduced(!wanted, exists),
            Self::And(parts) | Self::Or(parts) => {
                let needs_all = matches!(self, Self::And(_)) == wanted;
                // What decides the result, and what adds nothing to it.
                let (decisive, neutral) = if needs_all {
                    (Reduced::Never, Reduced::Every)
                } else {
                    (Reduced::Every, Reduced::Never)
                };
                let mut kept = Vec::new();
                for part in parts {
                    match part.reduced(wanted, exists) {
                        Reduced::Rows(part) => kept.push(part),
                        constant if constant == decisive => return decisive,
                        _ => {}
                    }
                }
                if kept.is_empty() && !parts.is_empty() {
                    return neutral;
                }
                Reduced::Rows(if needs_all { Self::And(kept) } else { Self::Or(kept) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_absent_columns_are_null() {
        let reduced = |text: &str| {
            let filter = Expr::parse(text).unwrap();
            match filter.without_columns(&|column| column != "x") {
                Reduced::Every => "every".to_owned(),
                Reduced::Never => "never".to_owned(),
                Reduced::Rows(rows) => format!("{rows:?}"),
            }
        };
        let same = |text: &str| format!("{:?}", Expr::parse(text).unwrap());
        for (filter, expected) in [
            ("x = 1", "never"),
            ("not x = 1", "never"),
            ("x is null", "every"),
            ("x is not null", "never"),
            ("not x is not null", "every"),
            ("x > 1 and a = 1", "never"),
            ("not (x > 1 or a = 1)", "never"),
            ("x is null or a = 1", "every"),
        ] {
            assert_eq!(reduced(filter), expected, "{filter}");
        }
        assert_eq!(reduced("a = 1"), same("a = 1"));
        assert_eq!(reduced("x > 1 or a = 1 or b = 2"), same("a = 1 or b = 2"));
        assert_eq!(reduced("x is null and a = 1 and b = 2"), same("a = 1 and b = 2"));
        assert_eq!(reduced("not (x > 1 and a = 1 and b = 2)"), same("not a = 1 or not b = 2"));
    }
}
