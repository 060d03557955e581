//! Weights of positions along an axis.

use super::window::AxisKey;
use super::{Axis, CoordinateValues, Select};
use crate::error::Error;
use crate::query::operation::Kind;
use crate::query::resolved::Role;

/// Weights of the positions of an axis, for means and other reductions over it. Missing values have no weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    pub(super) axis: AxisKey,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq)]
enum Rule {
    Cosine,
    Values(Vec<f64>),
}

impl Weights {
    /// The cosine of latitudes: the relative area of the cells of a regular grid. The coordinates are in degrees.
    pub fn cos_latitude<'a>(axis: impl Into<Axis<'a>>) -> Self {
        Self { axis: axis.into().into(), rule: Rule::Cosine }
    }

    /// One weight for each selected position, in the order of the selection.
    pub fn values<'a>(axis: impl Into<Axis<'a>>, weights: Vec<f64>) -> Self {
        Self { axis: axis.into().into(), rule: Rule::Values(weights) }
    }

    /// Parses `cos(AXIS)`.
    ///
    /// ```
    /// use tercet_tet::Weights;
    ///
    /// assert_eq!(Weights::parse("cos(lat)"), Some(Weights::cos_latitude("lat")));
    /// assert_eq!(Weights::parse("sin(lat)"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.trim().strip_prefix("cos")?.trim_start();
        let axis = rest.strip_prefix('(')?.strip_suffix(')')?.trim();
        (!axis.is_empty()).then(|| Self::cos_latitude(axis))
    }

    /// The weights of the selected positions, in the order of the dataset.
    pub(super) fn resolve(&self, select: &Select<'_>) -> Result<AxisWeights, Error> {
        let axis = select.axis(self.axis.as_axis())?;
        let count = select.axes[axis].count();
        let refuse = |detail: &str| {
            Err(select.refuse(&format!("the weights of axis {} {detail}", select.axis_text(axis))))
        };
        let mut weights = match &self.rule {
            Rule::Values(weights) => weights.clone(),
            Rule::Cosine => {
                let coordinates = select.coordinates(axis)?;
                let units = coordinates.as_ref().and_then(|found| found.units.as_deref()).unwrap_or_default();
                if ["radian", "radians", "rad"].contains(&units.trim()) {
                    return refuse("need coordinates in degrees, but its units are radians");
                }
                let Some(CoordinateValues::Numbers(degrees)) = coordinates.map(|found| found.values) else {
                    return refuse("need coordinates in degrees, but it has no numbers as coordinates");
                };
                if let Some(wrong) = degrees.iter().find(|degrees| !(-90.0..=90.0).contains(*degrees)) {
                    return refuse(&format!("need latitudes from -90 to 90 degrees, but one is {wrong}"));
                }
                degrees.into_iter().map(|degrees| degrees.to_radians().cos()).collect()
            }
        };
        if weights.len() as u64 != count {
            return refuse(&format!("are {}, but {count} positions are selected", weights.len()));
        }
        if weights.iter().any(|weight| !weight.is_finite()) {
            return refuse("are not finite");
        }
        if select.reversed[axis] {
            weights.reverse();
        }
        Ok(AxisWeights { axis, weights })
    }
}

/// Weights of the selected positions of an axis, in the order of the dataset.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisWeights {
    pub(crate) axis: usize,
    weights: Vec<f64>,
}

/// Results of the partial operations, for each position of the weighted axis: one array per operation.
pub(super) struct Parts<'a> {
    pub(super) kinds: &'a [Kind],
    pub(super) values: &'a [Vec<f64>],
    /// The number of results of the axes after the weighted one.
    pub(super) below: usize,
}

impl AxisWeights {
    /// The operations over all other axes from which weighted ones are combined. The error describes one that cannot be.
    pub(super) fn partial_kinds(ops: &[Kind]) -> Result<Vec<Kind>, String> {
        let is_weighted = |op: &Kind| matches!(op, Kind::Sum | Kind::Mean | Kind::Var | Kind::Std);
        if let Some(first) = ops.first().filter(|_| !ops.iter().any(is_weighted)) {
            return Err(format!("`{}` has no weights; sum, mean, var and std have", first.key()));
        }
        let mut kinds = vec![Kind::Count];
        for op in ops {
            let needed: &[Kind] = match op {
                Kind::Sum | Kind::Mean => &[Kind::Sum],
                Kind::Var | Kind::Std => &[Kind::Mean, Kind::Var],
                Kind::Min => &[Kind::Min],
                Kind::Max => &[Kind::Max],
                Kind::Count => &[],
                other => {
                    let key = other.key();
                    return Err(format!("`{key}` has no weights; sum, mean, var and std have"));
                }
            };
            for kind in needed {
                if !kinds.contains(kind) {
                    kinds.push(*kind);
                }
            }
        }
        Ok(kinds)
    }

    /// Combines the partial results of the positions of the axis.
    pub(super) fn combine(&self, op: Kind, parts: &Parts<'_>) -> Vec<f64> {
        let part = |kind: Kind| {
            let found = parts.kinds.iter().position(|other| *other == kind);
            found.map_or(&[][..], |number| &parts.values[number])
        };
        let (len, below) = (self.weights.len(), parts.below);
        let counts = part(Kind::Count);
        let outputs = counts.len() / len.max(1);
        let slots = |output: usize| {
            let (outer, inner) = (output / below.max(1), output % below.max(1));
            let at = move |position: usize| (outer * len + position) * below + inner;
            let slots =
                self.weights.iter().enumerate().map(move |(position, &weight)| (weight, at(position)));
            // Positions without values have no weight: their sums may be NaN in windows.
            slots.filter(|&(_, slot)| counts[slot] > 0.0)
        };
        let weight_of = |output: usize| sum(slots(output).map(|(weight, slot)| weight * counts[slot]));
        let one = |output: usize| match op {
            Kind::Sum => sum(slots(output).map(|(weight, slot)| weight * part(Kind::Sum)[slot])),
            Kind::Mean => {
                let total = sum(slots(output).map(|(weight, slot)| weight * part(Kind::Sum)[slot]));
                quotient(total, weight_of(output))
            }
            Kind::Var | Kind::Std => {
                let (means, variances) = (part(Kind::Mean), part(Kind::Var));
                let weight = weight_of(output);
                let share = |(weight, slot): (f64, usize)| (weight * counts[slot], slot);
                let mean =
                    quotient(sum(slots(output).map(share).map(|(share, slot)| share * means[slot])), weight);
                let deviation =
                    |(share, slot): (f64, usize)| share * (variances[slot] + (means[slot] - mean).powi(2));
                let variance = quotient(sum(slots(output).map(share).map(deviation)), weight);
                if op == Kind::Std { variance.sqrt() } else { variance }
            }
            Kind::Min => slots(output).map(|(_, slot)| part(Kind::Min)[slot]).fold(f64::NAN, f64::min),
            Kind::Max => slots(output).map(|(_, slot)| part(Kind::Max)[slot]).fold(f64::NAN, f64::max),
            _ => slots(output).map(|(_, slot)| counts[slot]).sum(),
        };
        (0..outputs).map(one).collect()
    }

    /// Checks that the axis is reduced, and returns the roles of the partial operations: the axis is kept.
    pub(super) fn partial_roles(&self, roles: &[Role]) -> Result<Vec<Role>, &'static str> {
        let windowed = |role: &Role| match role {
            Role::Rolling(rolling) => rolling.padding.value.is_some() || rolling.padding.min_count > 1,
            Role::Grouped(groups) => {
                groups.padding.is_some_and(|padding| padding.value.is_some() || padding.min_count > 1)
            }
            _ => false,
        };
        if roles.iter().any(windowed) {
            return Err("weights cannot be used together with padded windows or a minimum count");
        }
        if !matches!(roles[self.axis], Role::Reduced) {
            return Err("weights need an axis that is reduced");
        }
        let mut roles = roles.to_vec();
        roles[self.axis] = Role::Kept;
        Ok(roles)
    }
}

/// A quotient; NaN for a total weight of 0.
fn quotient(total: f64, weight: f64) -> f64 {
    if weight == 0.0 { f64::NAN } else { total / weight }
}

/// A compensated sum.
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for term in terms {
        let next = sum + term;
        lost += if sum.abs() >= term.abs() { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    // Of infinite sums only the sum is defined.
    if sum.is_finite() { sum + lost } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_small_terms() {
        assert!((sum([1e100, 1.0, -1e100].into_iter()) - 1.0).abs() < 1e-15);
        assert!(sum([f64::INFINITY, 1.0].into_iter()).is_infinite());
        assert!(sum([f64::INFINITY, f64::NEG_INFINITY].into_iter()).is_nan());
    }

    #[test]
    fn means_are_combined_from_sums_and_counts() {
        let weights = AxisWeights { axis: 0, weights: vec![1.0, 3.0] };
        let kinds = AxisWeights::partial_kinds(&[Kind::Mean, Kind::Std]).unwrap();
        assert_eq!(kinds, [Kind::Count, Kind::Sum, Kind::Mean, Kind::Var]);
        // Two outputs; the second one has no value at the second position.
        let values = [
            vec![2.0, 2.0, 2.0, 0.0],
            vec![6.0, 2.0, 10.0, f64::NAN],
            vec![3.0, 1.0, 5.0, f64::NAN],
            vec![1.0, 0.0, 1.0, f64::NAN],
        ];
        let parts = Parts { kinds: &kinds, values: &values, below: 2 };
        assert_eq!(weights.combine(Kind::Mean, &parts), [4.5, 1.0]);
        assert_eq!(weights.combine(Kind::Count, &parts), [4.0, 2.0]);
        // Values 2, 4 with weight 1; 4, 6 with weight 3: the variance is 1 + (1.5² + 3 · 0.5²) / 4.
        assert_eq!(weights.combine(Kind::Std, &parts), [1.75f64.sqrt(), 0.0]);
        assert!(AxisWeights::partial_kinds(&[Kind::Median]).is_err());
    }
}
