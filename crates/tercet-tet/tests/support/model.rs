//! A slow reference implementation of queries: every output element collects a list of values.

#![expect(clippy::float_cmp, reason = "exact comparison is intended")]

use serde_json::{Value, json};

/// One element: its value, and the exact integer if it is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element {
    pub(crate) number: f64,
    pub(crate) whole: i128,
}

/// The role of one axis of the selection.
#[derive(Clone, Debug)]
pub(crate) enum AxisModel {
    Reduced,
    Kept,
    /// The group of each position, and how many there are.
    Labels(Vec<u64>, u64),
    /// Windows by start (possibly before the axis) and size, and the padding value.
    Windows {
        starts: Vec<i64>,
        size: u64,
        pad: Option<f64>,
        min_count: u64,
    },
}

/// A list of values with the index each has among the reduced positions.
pub(crate) type Group = Vec<(u64, Element)>;

/// The output: its shape, the values of its elements, and how many of these are real.
pub(crate) type Output = (Vec<u64>, Vec<Group>, Vec<u64>);

/// Assigns the elements of a selection to output elements.
pub(crate) fn gather(
    extents: &[u64],
    axes: &[AxisModel],
    value: impl Fn(&[u64]) -> Element,
    counts: impl Fn(&[u64], Element) -> bool,
) -> Output {
    let output: Vec<u64> = axes
        .iter()
        .zip(extents)
        .filter_map(|(axis, &extent)| match axis {
            AxisModel::Reduced => None,
            AxisModel::Kept => Some(extent),
            AxisModel::Labels(_, count) => Some(*count),
            AxisModel::Windows { starts, .. } => Some(starts.len() as u64),
        })
        .collect();
    let mut elements = vec![Group::new(); output.iter().product::<u64>() as usize];
    let mut real = vec![0; elements.len()];
    visit(extents, axes, 0, &mut Vec::new(), (0, 0), &mut |positions, number, index, pad| {
        let gathered = &mut elements[number as usize];
        if let Some(pad) = pad {
            gathered.push((index, Element { number: pad, whole: pad as i128 }));
            return;
        }
        let positions: Vec<u64> = positions.iter().map(|position| position.unwrap()).collect();
        let element = value(&positions);
        if counts(&positions, element) {
            gathered.push((index, element));
            real[number as usize] += 1;
        }
    });
    for gathered in &mut elements {
        gathered.sort_by_key(|(index, _)| *index);
    }
    (output, elements, real)
}

type Visitor<'v> = dyn FnMut(&[Option<u64>], u64, u64, Option<f64>) + 'v;

/// Goes through all positions, axis by axis; `None` is a position outside the axis.
fn visit(
    extents: &[u64],
    axes: &[AxisModel],
    axis: usize,
    positions: &mut Vec<Option<u64>>,
    (element, index): (u64, u64),
    visitor: &mut Visitor<'_>,
) {
    if axis == axes.len() {
        let mut outside = None;
        for (position, axis) in positions.iter().zip(axes) {
            if let AxisModel::Windows { pad, .. } = axis
                && position.is_none()
            {
                outside = Some(*pad);
            }
        }
        match outside {
            None => visitor(positions, element, index, None),
            Some(Some(pad)) => visitor(positions, element, index, Some(pad)),
            Some(None) => {}
        }
        return;
    }
    let extent = extents[axis];
    let mut go = |position: Option<u64>, element: u64, index: u64, visitor: &mut Visitor<'_>| {
        positions.push(position);
        visit(extents, axes, axis + 1, positions, (element, index), visitor);
        positions.pop();
    };
    match &axes[axis] {
        AxisModel::Reduced => (0..extent).for_each(|p| go(Some(p), element, index * extent + p, visitor)),
        AxisModel::Kept => (0..extent).for_each(|p| go(Some(p), element * extent + p, index, visitor)),
        AxisModel::Labels(groups, count) => {
            (0..extent).for_each(|p| go(Some(p), element * count + groups[p as usize], index, visitor));
        }
        AxisModel::Windows { starts, size, .. } => {
            for (window, &start) in starts.iter().enumerate() {
                for i in 0..*size {
                    let position = u64::try_from(start + i as i64).ok().filter(|&p| p < extent);
                    go(position, element * starts.len() as u64 + window as u64, index * size + i, visitor);
                }
            }
        }
    }
}

/// The result of an operation for a list of values: `null` for NaN and infinities, as in JSON results.
pub(crate) fn evaluate(
    operation: &str,
    argument: &Value,
    elements: &[(u64, Element)],
    float: bool,
) -> Expected {
    let numbers: Vec<f64> = elements.iter().map(|(_, element)| element.number).collect();
    let there: Vec<f64> = numbers.iter().copied().filter(|number| !number.is_nan()).collect();
    let n = numbers.len() as f64;
    let magnitude: f64 = there.iter().map(|x| x.abs()).sum();
    let whole = || elements.iter().map(|(_, element)| element.whole).sum::<i128>();
    let sum = |values: &[f64]| if float { values.iter().sum() } else { whole() as f64 };
    let variance = |values: &[f64]| {
        if !float {
            // Shifted, so that large whole numbers keep their digits.
            let shift = elements.first().map_or(0, |(_, element)| element.whole);
            let small: Vec<f64> =
                elements.iter().map(|(_, element)| (element.whole - shift) as f64).collect();
            return plain_variance(&small);
        }
        plain_variance(values)
    };
    let spread = magnitude / n.max(1.0);
    match operation {
        "sum" => Expected::near(sum(&numbers), magnitude),
        "mean" => Expected::near(if n == 0.0 { f64::NAN } else { sum(&numbers) / n }, spread),
        "nan_mean" => {
            let n = there.len() as f64;
            Expected::near(if n == 0.0 { f64::NAN } else { sum(&there) / n }, spread)
        }
        "norm_l1" => Expected::near(numbers.iter().map(|x| x.abs()).sum(), magnitude),
        "norm_l2" => Expected::near(numbers.iter().map(|x| x * x).sum::<f64>().sqrt(), magnitude),
        "min" => Expected::exact(there.iter().copied().reduce(f64::min).unwrap_or(f64::NAN)),
        "max" => Expected::exact(there.iter().copied().reduce(f64::max).unwrap_or(f64::NAN)),
        "count" => Expected::exact(n),
        "product" => {
            let product: f64 = numbers.iter().product();
            Expected::near(product, product.abs() * 1e3)
        }
        "var" => Expected::near(variance(&numbers), variance(&numbers) * 1e3 + spread * spread * 1e-3),
        "std" => Expected::near(variance(&numbers).sqrt(), variance(&numbers).sqrt() * 1e3 + spread * 1e-2),
        "nan_std" => {
            let variance =
                if there.len() == numbers.len() { variance(&numbers) } else { plain_variance(&there) };
            Expected::near(variance.sqrt(), variance.sqrt() * 1e3 + spread * 1e-2)
        }
        "all_finite" => Expected::Json(json!(numbers.iter().all(|x| x.is_finite()))),
        "any_nan" => Expected::Json(json!(numbers.iter().any(|x| x.is_nan()))),
        "any_inf" => Expected::Json(json!(numbers.iter().any(|x| x.is_infinite()))),
        "nan_count" => Expected::exact(numbers.iter().filter(|x| x.is_nan()).count() as f64),
        "inf_count" => Expected::exact(numbers.iter().filter(|x| x.is_infinite()).count() as f64),
        "null_count" => {
            let fill = argument["fill"].as_f64().unwrap();
            Expected::exact(numbers.iter().filter(|&&x| x == fill).count() as f64)
        }
        "arg_min" | "arg_max" => {
            let better = |a: &Element, b: &Element| match (operation, float) {
                ("arg_min", true) => a.number < b.number,
                ("arg_min", false) => a.whole < b.whole,
                (_, true) => a.number > b.number,
                (_, false) => a.whole > b.whole,
            };
            let candidates = elements.iter().filter(|(_, element)| !element.number.is_nan());
            let best = candidates.fold(None::<&(u64, Element)>, |best, other| match best {
                Some(best) if !better(&other.1, &best.1) => Some(best),
                _ => Some(other),
            });
            Expected::Json(best.map_or(Value::Null, |(index, _)| json!(index)))
        }
        "median" => quantile(elements, 0.5, float),
        "quantile" => quantile(elements, argument["q"].as_f64().unwrap(), float),
        other => panic!("no model of {other}"),
    }
}

fn plain_variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.is_empty() {
        return f64::NAN;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    let shift: f64 = values.iter().map(|x| x - mean).sum();
    ((squares - shift * shift / n) / n).max(0.0) + 0.0 * (squares - shift)
}

fn quantile(elements: &[(u64, Element)], q: f64, float: bool) -> Expected {
    if elements.is_empty() || elements.iter().any(|(_, element)| element.number.is_nan()) {
        return Expected::exact(f64::NAN);
    }
    let mut sorted: Vec<Element> = elements.iter().map(|(_, element)| *element).collect();
    sorted.sort_by(|a, b| if float { a.number.total_cmp(&b.number) } else { a.whole.cmp(&b.whole) });
    let position = q * (sorted.len() - 1) as f64;
    let (low, fraction) = (position.floor(), position - position.floor());
    let (low, high) = (sorted[low as usize], sorted[position.ceil() as usize]);
    if fraction == 0.0 || low.number == high.number {
        return Expected::near(low.number, low.number.abs());
    }
    let value = low.number + (high.number - low.number) * fraction;
    Expected::near(value, low.number.abs().max(high.number.abs()))
}

/// An expected number and the scale of its error.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    Number { value: f64, scale: f64 },
    Json(Value),
}

impl Expected {
    fn exact(value: f64) -> Self {
        Self::Number { value, scale: 0.0 }
    }

    fn near(value: f64, scale: f64) -> Self {
        Self::Number { value, scale }
    }

    pub(crate) fn agrees(&self, found: &Value) -> bool {
        match self {
            Self::Json(value) => value == found,
            Self::Number { value, scale } => match found.as_f64() {
                None => !value.is_finite() && found.is_null(),
                Some(found) => {
                    *value == found || (found - value).abs() <= 1e-12 * scale.abs().max(value.abs())
                }
            },
        }
    }
}
