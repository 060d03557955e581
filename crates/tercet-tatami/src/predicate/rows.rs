//! Evaluation of filters on rows.

use memchr::memmem;

use super::{ColumnPair, Comparison, Mask, Predicate, matcher};
use crate::column::{Column, Lists, Strings, Values};
use crate::scalar::Scalar;

/// The result of a filter for each row: true, false or null.
#[derive(Clone, Debug)]
pub(crate) struct RowTriState {
    pub(crate) yes: Mask,
    pub(crate) no: Mask,
}

impl RowTriState {
    /// Combines the result for the values with the validity.
    pub(crate) fn from_present(yes: Mask, present: &Mask) -> Self {
        let yes = yes.and(present);
        let no = yes.clone().not().and(present);
        Self { yes, no }
    }

    fn and(self, other: &Self) -> Self {
        Self { yes: self.yes.and(&other.yes), no: self.no.or(&other.no) }
    }

    fn or(self, other: &Self) -> Self {
        Self { yes: self.yes.or(&other.yes), no: self.no.and(&other.no) }
    }
}

/// A comparison of a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaf<'a> {
    /// The number of the comparison, its column, and the comparison.
    Test(usize, usize, &'a Comparison<Scalar>),
    Columns(&'a ColumnPair),
}

impl Predicate {
    /// The matching rows of a batch, which has the columns of the bound schema. A missing column matches nothing.
    pub fn mask(&self, batch: &[Column]) -> Mask {
        let rows = batch.first().map_or(0, Column::len);
        let nothing = || RowTriState { yes: Mask::filled(rows, false), no: Mask::filled(rows, false) };
        let truth = self.evaluate::<std::convert::Infallible>(&mut |leaf| {
            let found = match leaf {
                Leaf::Test(_, column, test) => batch.get(column).map(|column| test.rows(column)),
                Leaf::Columns(pair) => batch
                    .get(pair.left)
                    .zip(batch.get(pair.right))
                    .map(|(left, right)| pair.rows(left, right)),
            };
            Ok(found.unwrap_or_else(nothing))
        });
        match truth {
            Ok(truth) => truth.yes,
        }
    }

    /// Evaluates the filter; `leaf` evaluates a comparison.
    pub(crate) fn evaluate<E>(
        &self,
        leaf: &mut impl FnMut(Leaf<'_>) -> Result<RowTriState, E>,
    ) -> Result<RowTriState, E> {
        Ok(match self {
            Self::Comparison { column, test, number } => leaf(Leaf::Test(*number, *column, test))?,
            Self::Columns(pair) => leaf(Leaf::Columns(pair))?,
            Self::And(parts) => join(parts, leaf, |a, b| a.and(&b))?,
            Self::Or(parts) => join(parts, leaf, |a, b| a.or(&b))?,
            Self::Not(part) => {
                let RowTriState { yes, no } = part.evaluate(leaf)?;
                RowTriState { yes: no, no: yes }
            }
        })
    }
}

fn join<E>(
    parts: &[Predicate],
    leaf: &mut impl FnMut(Leaf<'_>) -> Result<RowTriState, E>,
    merge: impl Fn(RowTriState, RowTriState) -> RowTriState,
) -> Result<RowTriState, E> {
    let mut all: Option<RowTriState> = None;
    for part in parts {
        let truth = part.evaluate(leaf)?;
        all = Some(match all {
            Some(all) => merge(all, truth),
            None => truth,
        });
    }
    // Binding rejects empty lists.
    Ok(all.unwrap_or_else(|| RowTriState { yes: Mask::filled(0, false), no: Mask::filled(0, false) }))
}

impl Comparison<Scalar> {
    /// The result for each row of a column.
    pub(crate) fn rows(&self, column: &Column) -> RowTriState {
        let present = Mask::from_validity(column.validity.as_ref(), column.len());
        if let Self::IsNull = self {
            return RowTriState { yes: present.clone().not(), no: present };
        }
        RowTriState::from_present(self.values(&column.values), &present)
    }

    /// The result for each value; those of null rows are ignored.
    pub(crate) fn values(&self, values: &Values) -> Mask {
        /// Compares values with scalars of the same type, which binding ensures.
        macro_rules! numbers {
            ($values:expr, $variant:ident) => {{
                let get = |scalar: &Scalar| match scalar {
                    Scalar::$variant(value) => Some(*value),
                    _ => None,
                };
                compare($values, self, get)
            }};
        }
        match values {
            Values::Bool(v) => numbers!(v, Bool),
            Values::Int8(v) => numbers!(v, Int8),
            Values::Int16(v) => numbers!(v, Int16),
            Values::Int32(v) => numbers!(v, Int32),
            Values::Int64(v) => numbers!(v, Int64),
            Values::UInt8(v) => numbers!(v, UInt8),
            Values::UInt16(v) => numbers!(v, UInt16),
            Values::UInt32(v) => numbers!(v, UInt32),
            Values::UInt64(v) => numbers!(v, UInt64),
            Values::Float32(v) => numbers!(v, Float32),
            Values::Float64(v) => numbers!(v, Float64),
            Values::Bytes(v) => self.strings(v),
            Values::List(v) => self.lists(v),
        }
    }

    fn strings(&self, strings: &Strings) -> Mask {
        let bytes = |scalar: &'_ Scalar| -> Option<Vec<u8>> {
            match scalar {
                Scalar::Bytes(value) => Some(value.clone()),
                _ => None,
            }
        };
        let with = |scalar: &Scalar, keep: &dyn Fn(&[u8], &[u8]) -> bool| match bytes(scalar) {
            Some(value) => Mask::from_fn(strings.len(), |row| keep(strings.get(row), &value)),
            None => Mask::filled(strings.len(), false),
        };
        match self {
            Self::Eq(value) => match bytes(value) {
                // Lengths differ more often than first bytes, and are already loaded.
                Some(value) => {
                    let views = strings.views();
                    Mask::from_fn(strings.len(), |row| {
                        views[row].len as usize == value.len() && strings.get(row) == &value[..]
                    })
                }
                None => Mask::filled(strings.len(), false),
            },
            Self::Ne(value) => with(value, &|text, value| text != value),
            Self::Lt(value) => with(value, &|text, value| text < value),
            Self::Le(value) => with(value, &|text, value| text <= value),
            Self::Gt(value) => with(value, &|text, value| text > value),
            Self::Ge(value) => with(value, &|text, value| text >= value),
            Self::Prefix(value) => with(value, &|text, value| text.starts_with(value)),
            Self::Between(low, high) => {
                with(low, &|text, value| text >= value).and(&with(high, &|text, value| text <= value))
            }
            Self::In(values) => {
                let mut values: Vec<Vec<u8>> = values.iter().filter_map(bytes).collect();
                values.sort_unstable();
                Mask::from_fn(strings.len(), |row| {
                    let text = strings.get(row);
                    values.binary_search_by(|value| value.as_slice().cmp(text)).is_ok()
                })
            }
            Self::EndsWith(value) => with(value, &|text, value| text.ends_with(value)),
            Self::Substring(value) => match bytes(value) {
                Some(value) => {
                    let finder = memmem::Finder::new(&value);
                    Mask::from_fn(strings.len(), |row| finder.find(strings.get(row)).is_some())
                }
                None => Mask::filled(strings.len(), false),
            },
            Self::Matches(matcher) => Mask::from_fn(strings.len(), |row| matcher.is_match(strings.get(row))),
            // Binding compiles patterns.
            Self::Like(_) | Self::ILike(_) | Self::Regexp(_) => match matcher::compile(self.clone()) {
                Ok(Self::Like(_) | Self::ILike(_) | Self::Regexp(_)) | Err(_) => {
                    Mask::filled(strings.len(), false)
                }
                Ok(test) => test.strings(strings),
            },
            Self::Contains(_) | Self::IsNull => Mask::filled(strings.len(), false),
        }
    }

    fn lists(&self, lists: &Lists) -> Mask {
        let Self::Contains(value) = self else { return Mask::filled(lists.ends.len(), false) };
        let found = Self::Eq(value.clone()).rows(&lists.elements).yes;
        Mask::from_fn(lists.ends.len(), |row| lists.range(row).any(|at| found.get(at)))
    }
}

/// One loop per operator, without branches per value.
fn compare<T: PartialOrd + Copy>(
    values: &[T],
    test: &Comparison<Scalar>,
    get: impl Fn(&Scalar) -> Option<T>,
) -> Mask {
    fn rows<T: Copy>(values: &[T], keep: impl Fn(T) -> bool) -> Mask {
        Mask::from_fn(values.len(), |row| keep(values[row]))
    }
    let none = || Mask::filled(values.len(), false);
    let one = |scalar: &Scalar, make: &dyn Fn(T) -> Mask| get(scalar).map_or_else(none, make);
    match test {
        Comparison::Eq(value) => one(value, &|x| rows(values, |v| v == x)),
        Comparison::Ne(value) => one(value, &|x| rows(values, |v| v != x)),
        Comparison::Lt(value) => one(value, &|x| rows(values, |v| v < x)),
        Comparison::Le(value) => one(value, &|x| rows(values, |v| v <= x)),
        Comparison::Gt(value) => one(value, &|x| rows(values, |v| v > x)),
        Comparison::Ge(value) => one(value, &|x| rows(values, |v| v >= x)),
        Comparison::Between(low, high) => match (get(low), get(high)) {
            (Some(low), Some(high)) => rows(values, |v| v >= low && v <= high),
            _ => none(),
        },
        Comparison::In(wanted) => {
            let wanted: Vec<T> = wanted.iter().filter_map(&get).collect();
            rows(values, |v| wanted.contains(&v))
        }
        Comparison::Prefix(_)
        | Comparison::EndsWith(_)
        | Comparison::Substring(_)
        | Comparison::Contains(_)
        | Comparison::Like(_)
        | Comparison::ILike(_)
        | Comparison::Regexp(_)
        | Comparison::Matches(_)
        | Comparison::IsNull => none(),
    }
}
