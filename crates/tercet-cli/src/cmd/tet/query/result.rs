//! Typed access to the results of an answer.

use serde_json::{Map, Value as Json};
use tercet::core::tensor::f16;
use tercet::core::{DType, Tensor};
use tercet::tet::compat::{Answer, Execution, Value};
use tercet::tet::{Dataset, File, Query};

/// A query, its answer and the file.
pub(super) struct AnswerContext<'a> {
    pub(super) query: &'a Query,
    pub(super) answer: &'a Answer,
    pub(super) file: Option<&'a File>,
}

impl<'a> AnswerContext<'a> {
    /// The dataset, if the file has it.
    pub(super) fn dataset(&self) -> Option<Dataset<'a>> {
        self.answer.catalog.as_ref()?.found.as_ref()?;
        self.file?.dataset(&self.answer.dataset).ok()
    }
}

/// Whether a query has a key, by itself or as a step of its pipeline.
pub(super) fn has_key(query: &Query, key: &str) -> bool {
    member(query, key).is_some()
}

/// The value of a key of a query, by itself or in a step of its pipeline.
pub(super) fn member<'q>(query: &'q Query, key: &str) -> Option<&'q Json> {
    let document = query.to_json();
    let steps = document.get("pipeline").and_then(Json::as_array);
    document.get(key).or_else(|| steps?.iter().find_map(|step| step.get(key)))
}

/// The operation as an answer echoes it.
pub(super) struct Operation<'a> {
    pub(super) name: &'a str,
    members: Option<&'a Map<String, Json>>,
}

impl<'a> Operation<'a> {
    pub(super) fn from_answer(answer: &'a Answer) -> Option<Self> {
        let (name, members) = answer.operation.as_ref()?.as_object()?.iter().next()?;
        Some(Self { name, members: members.as_object() })
    }

    /// The axes of the answer: numbers, or the names of the query if no file was given.
    pub(super) fn axes(&self) -> Vec<String> {
        let axes = self.members.and_then(|members| members.get("axes")).and_then(Json::as_array);
        axes.into_iter()
            .flatten()
            .map(|axis| axis.as_str().map_or_else(|| axis.to_string(), str::to_owned))
            .collect()
    }

    /// The numbers of the axes.
    pub(super) fn axis_numbers(&self) -> Vec<usize> {
        self.axes().iter().filter_map(|axis| axis.parse().ok()).collect()
    }

    /// A parameter: `q`, `bins`, `fill`, `method`.
    pub(super) fn parameter(&self, name: &str) -> Option<&'a Json> {
        self.members?.get(name).filter(|value| !value.is_null())
    }
}

/// The results of an execution.
pub(super) struct Results<'a> {
    /// The number of input elements.
    pub(super) elements: Option<u64>,
    /// The shape of the results; `None` for scalars.
    pub(super) shape: Option<&'a [u64]>,
    /// The results by name, without the prefixes `operation_` and `operation_reduced_`.
    pub(super) values: Vec<(&'a str, &'a Value)>,
}

impl<'a> Results<'a> {
    pub(super) fn from_execution(execution: &'a Execution) -> Self {
        let mut results = Self { elements: None, shape: None, values: Vec::new() };
        for (name, value) in &execution.results {
            match (*name, value) {
                ("operation_element_count", Value::Count(count)) => results.elements = Some(*count),
                ("operation_reduced_shape", Value::Shape(shape)) => results.shape = Some(shape),
                _ => {
                    let name = name.strip_prefix("operation_").unwrap_or("");
                    let name = name.strip_prefix("reduced_").unwrap_or(name);
                    let is_there =
                        !name.is_empty() && List::from_value(value).is_none_or(|list| list.len() > 0);
                    results.values.extend(is_there.then_some((name, value)));
                }
            }
        }
        results
    }

    /// A result by its name.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.values.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }
}

/// A number formatter.
pub(super) type Write = fn(f64) -> String;

/// A scalar result as text.
pub(super) fn scalar(value: &Value, write: Write) -> String {
    match value {
        Value::Flag(flag) => flag.to_string(),
        Value::Count(count) => count.to_string(),
        Value::Number(number) => write(*number),
        Value::Index(index) => index_text(*index),
        Value::Text(text) => text.clone(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

fn index_text(index: Option<u64>) -> String {
    index.map_or_else(|| "none".to_owned(), |index| index.to_string())
}

/// An array result.
#[derive(Clone, Copy)]
pub(super) enum List<'a> {
    Numbers(&'a [f64]),
    Flags(&'a [Option<bool>]),
    /// −1 for no position.
    Indices(&'a [i64]),
    Tensor(&'a Tensor),
    Texts(&'a [String]),
}

impl<'a> List<'a> {
    pub(super) fn from_value(value: &'a Value) -> Option<Self> {
        match value {
            Value::Numbers(numbers) => Some(Self::Numbers(numbers)),
            Value::Flags(flags) => Some(Self::Flags(flags)),
            Value::Indices(indices) => Some(Self::Indices(indices)),
            _ => None,
        }
    }

    pub(super) fn len(self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Flags(flags) => flags.len(),
            Self::Indices(indices) => indices.len(),
            Self::Texts(texts) => texts.len(),
            Self::Tensor(values) => values.shape().elements().map_or(0, tercet::core::num::saturating_usize),
        }
    }

    /// The element at a position, as text.
    pub(super) fn text(self, at: usize, write: Write) -> Option<String> {
        match self {
            Self::Numbers(numbers) => numbers.get(at).map(|number| write(*number)),
            Self::Flags(flags) => {
                flags.get(at).map(|flag| flag.map_or_else(|| "none".to_owned(), |flag| flag.to_string()))
            }
            Self::Indices(indices) => indices.get(at).map(|index| index_text(u64::try_from(*index).ok())),
            Self::Tensor(values) => element(values, at, write),
            Self::Texts(texts) => texts.get(at).cloned(),
        }
    }
}

/// An element of a tensor as text. Integers are printed exactly.
fn element(values: &Tensor, at: usize, write: Write) -> Option<String> {
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
