//! Typed access to the result of a query.

use serde_json::Value as Json;
use tercet::core::tensor::f16;
use tercet::core::{DType, Tensor};
use tercet::tet::{Computed, Dataset, Op, Outcome, Query, QueryResult, ReadPlan, Request, Transformed};

/// A query and its result, if it was run or planned on a file.
pub(super) struct Context<'a> {
    pub(super) query: &'a Query,
    pub(super) result: Option<&'a QueryResult<'a>>,
}

impl<'a> Context<'a> {
    pub(super) fn dataset(&self) -> Option<Dataset<'a>> {
        self.result.map(|result| result.dataset)
    }

    pub(super) fn request(&self) -> Option<&'a Request<'a>> {
        self.result?.request.as_ref()
    }

    pub(super) fn plan(&self) -> Option<&'a ReadPlan> {
        self.result?.plan.as_ref()
    }

    pub(super) fn outcome(&self) -> Option<&'a Outcome> {
        self.result?.outcome.as_ref()
    }
}

/// Whether a query has a key, by itself or as a step of its pipeline.
pub(super) fn has_key(query: &Query, key: &str) -> bool {
    let document = query.to_json();
    let steps = document.get("pipeline").and_then(Json::as_array);
    document.get(key).is_some() || steps.is_some_and(|steps| steps.iter().any(|step| step.get(key).is_some()))
}

/// The operation of a query.
pub(super) struct Operation {
    pub(super) kind: Op,
    /// Numbers of axes, or what the query names if no file was given.
    pub(super) axes: Vec<String>,
}

impl Operation {
    pub(super) fn new(context: &Context<'_>) -> Option<Self> {
        match context.request() {
            Some(request) => {
                let axes = request.operation_axes().iter().map(ToString::to_string).collect();
                Some(Self { kind: request.operation_kind()?, axes })
            }
            None => {
                Some(Self { kind: context.query.operation_kind()?, axes: context.query.operation_axes() })
            }
        }
    }

    pub(super) fn is_transform(&self) -> bool {
        matches!(self.kind, Op::Transform { .. })
    }

    /// The numbers of the axes.
    pub(super) fn axis_numbers(&self) -> Vec<usize> {
        self.axes.iter().filter_map(|axis| axis.parse().ok()).collect()
    }

    /// A numeric parameter and its name: `q`, `bins` or `fill`.
    pub(super) fn parameter(&self) -> Option<(&'static str, f64)> {
        match self.kind {
            Op::Quantile { q } => Some(("q", q)),
            Op::Histogram { bins, .. } => Some(("bins", bins.into())),
            Op::NullCount { fill } => fill.map(|fill| ("fill", fill.to_f64())),
            _ => None,
        }
    }
}

/// The results of an outcome.
pub(super) struct Results<'a> {
    /// The number of input elements.
    pub(super) elements: u64,
    /// The number of missing elements that were skipped.
    pub(super) skipped: u64,
    /// The shape of the results; `None` for scalars.
    pub(super) shape: Option<Vec<u64>>,
    /// The results by name.
    pub(super) values: Vec<(&'static str, List<'a>)>,
    /// The bin edges of a histogram.
    pub(super) edges: Option<&'a [f64]>,
}

impl<'a> Results<'a> {
    /// The results of an operation; `None` without one.
    pub(super) fn new(request: &Request<'_>, outcome: &'a Outcome) -> Option<Self> {
        match &outcome.computed {
            Computed::Reduced(reduced) => {
                let first = reduced.first()?;
                let is_matrix = matches!(first.op, Op::Covariance | Op::Correlation);
                let has_shape = !is_matrix && !request.is_scalar();
                let shape = has_shape.then(|| request.dims().iter().map(|dim| dim.len).collect());
                let is_count = shape.is_none() && matches!(first.op, Op::Count);
                let named = reduced.iter().filter(|_| !is_count).map(|one| {
                    let name = match one.op {
                        Op::ArgMin if shape.is_none() => "argmin_index",
                        Op::ArgMax if shape.is_none() => "argmax_index",
                        Op::ArgMin => "argmin",
                        Op::ArgMax => "argmax",
                        Op::Histogram { .. } => "histogram_counts",
                        op => op.key(),
                    };
                    let exact = one.exact.as_ref().unwrap_or(&one.tensor);
                    let list = match one.op {
                        Op::AllFinite | Op::AnyNan | Op::AnyInf => List::Flags(&one.tensor),
                        Op::ArgMin | Op::ArgMax => List::Indices(&one.tensor),
                        _ => List::Tensor(exact),
                    };
                    (name, list)
                });
                let values = named.collect();
                let edges = first.edges.as_deref();
                Some(Self { elements: first.elements, skipped: first.skipped, shape, values, edges })
            }
            Computed::Transformed(made) => Some(Self::from_transform(request, made)),
            Computed::Read(_) | Computed::Preview | Computed::Written(_) => None,
        }
    }

    fn from_transform(request: &Request<'_>, made: &'a Transformed) -> Self {
        let reduced = request.operation_axes();
        let axes = request.output_axes().into_iter();
        let kept = axes.zip(request.dims()).filter(|(axis, _)| !reduced.contains(axis));
        let kept = kept.map(|(_, dim)| dim.len);
        let order = [Op::Mean, Op::Min, Op::Max, Op::Std, Op::NormL1, Op::NormL2];
        let found = |op: Op| made.statistics.iter().find(|(other, _)| *other == op);
        let values = order.into_iter().filter_map(found).map(|(op, of)| (op.key(), List::Numbers(of)));
        Self {
            elements: made.elements,
            skipped: made.skipped,
            shape: (!request.is_scalar()).then(|| kept.collect()),
            values: values.collect(),
            edges: None,
        }
    }
}

/// A number formatter.
pub(super) type Write = fn(f64) -> String;

/// An array of results.
#[derive(Clone, Copy)]
pub(super) enum List<'a> {
    Numbers(&'a [f64]),
    /// 1 and 0; NaN for neither.
    Flags(&'a Tensor),
    /// −1 for no position.
    Indices(&'a Tensor),
    Tensor(&'a Tensor),
    Texts(&'a [String]),
}

impl List<'_> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
            Self::Tensor(values) | Self::Flags(values) | Self::Indices(values) => {
                values.shape().elements().map_or(0, tercet::core::num::saturating_usize)
            }
        }
    }

    /// The index at a position; `None` if there is none, or if the list has no indices.
    pub(super) fn index(self, at: usize) -> Option<usize> {
        let Self::Indices(indices) = self else { return None };
        usize::try_from(*indices.as_slice::<i64>()?.get(at)?).ok()
    }

    /// The element at a position, as text.
    pub(super) fn text(self, at: usize, write: Write) -> Option<String> {
        let none = || "none".to_owned();
        match self {
            Self::Numbers(numbers) => numbers.get(at).map(|number| write(*number)),
            Self::Flags(flags) => {
                let flag = *flags.as_slice::<f64>()?.get(at)?;
                Some(if flag.is_nan() { none() } else { (flag > 0.0).to_string() })
            }
            Self::Indices(_) if at < self.len() => {
                Some(self.index(at).map_or_else(none, |index| index.to_string()))
            }
            Self::Indices(_) => None,
            Self::Tensor(values) => element(values, at, write),
            Self::Texts(texts) => texts.get(at).cloned(),
        }
    }
}

/// An element of a tensor as text. Integers are printed exactly.
pub(in crate::cmd::tet) fn element(values: &Tensor, at: usize, write: fn(f64) -> String) -> Option<String> {
    macro_rules! whole {
        ($type:ty) => {
            values.as_slice::<$type>()?.get(at).map(ToString::to_string)
        };
    }
    match values.dtype() {
        DType::F16 => values.as_slice::<f16>()?.get(at).map(|half| write(half.to_f64())),
        DType::F32 => values.as_slice::<f32>()?.get(at).map(|single| write(f64::from(*single))),
        DType::F64 => values.as_slice::<f64>()?.get(at).map(|double| write(*double)),
        DType::I16 => whole!(i16),
        DType::I32 => whole!(i32),
        DType::I64 => whole!(i64),
        DType::U8 => whole!(u8),
        DType::U16 => whole!(u16),
        DType::U32 => whole!(u32),
        DType::U64 => whole!(u64),
        _ => None,
    }
}

/// A shape as text: `6×5`.
pub(super) fn extents(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join("×")
}
