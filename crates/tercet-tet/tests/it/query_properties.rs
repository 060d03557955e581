//! Random queries on random arrays, compared with a naive loop over the elements.

use std::io::Cursor;

use crate::model::{AxisModel, Element, Expected, evaluate, gather};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tercet_core::progress::NoProgress;
use tercet_core::tensor::f16;
use tercet_core::{ElementType, TensorView};
use tercet_tet::compat::Answer;
use tercet_tet::{Compression, File, Layout, Query, RunOptions, Syntax, Writer, WriterOptions};

/// The operations with one number per output element.
const OPERATIONS: [&str; 22] = [
    "sum",
    "mean",
    "min",
    "max",
    "count",
    "var",
    "std",
    "product",
    "norm_l1",
    "norm_l2",
    "all_finite",
    "any_nan",
    "any_inf",
    "nan_count",
    "inf_count",
    "nan_mean",
    "nan_std",
    "null_count",
    "arg_min",
    "arg_max",
    "median",
    "quantile",
];

/// One axis of an array and what the query does with it.
#[derive(Clone, Debug)]
struct Axis {
    extent: u64,
    chunk: u64,
    start: u64,
    stop: u64,
    step: u64,
    reduced: bool,
}

#[derive(Clone, Debug)]
enum Extra {
    None,
    /// Groups of labels on an axis.
    Labels {
        axis: usize,
    },
    /// `window`, as in the document.
    Window {
        axis: usize,
        size: u64,
        rolling: bool,
        pad: bool,
        end: bool,
        step: u64,
        min_count: Option<u64>,
    },
    /// Only positions with a label.
    LabelFilter {
        axis: usize,
    },
}

#[derive(Clone, Debug)]
struct QueryCase {
    axes: Vec<Axis>,
    dtype: ElementType,
    zstd: bool,
    seed: u64,
    operation: &'static str,
    filter: Option<(&'static str, i32)>,
    extra: Extra,
    statistics: bool,
    budget: u64,
}

fn case() -> impl Strategy<Value = QueryCase> {
    let axis = (1u64..9, 1u64..6, 0u64..9, 0u64..9, 1u64..4, any::<bool>()).prop_map(
        |(extent, chunk, start, len, step, reduced)| {
            let start = if len < 4 { 0 } else { start % extent };
            let stop = if len < 4 { extent } else { start + 1 + len % (extent - start) };
            let step = if len % 2 == 0 { 1 } else { step };
            Axis { extent, chunk, start, stop, step, reduced }
        },
    );
    let extra = prop_oneof![
        4 => Just(Extra::None),
        1 => (0usize..4).prop_map(|axis| Extra::Labels { axis }),
        1 => (0usize..4).prop_map(|axis| Extra::LabelFilter { axis }),
        3 => (0usize..4, 1u64..9, any::<(bool, bool, bool)>(), 1u64..3, prop::option::of(1u64..4)).prop_map(
            |(axis, size, (rolling, pad, end), step, min_count)| Extra::Window {
                axis, size, rolling, pad, end, step, min_count
            }
        ),
    ];
    let operators = prop::sample::select(&["gt", "ge", "lt", "le", "eq", "ne"][..]);
    (
        prop::collection::vec(axis, 1..5),
        prop::sample::select(&ElementType::ALL[..]),
        any::<(bool, u64, bool)>(),
        prop::sample::select(&OPERATIONS[..]),
        prop::option::weighted(0.3, (operators, -3i32..8)),
        extra,
        prop::sample::select(&[1u64, 100, 1 << 30][..]),
    )
        .prop_map(|(axes, dtype, (zstd, seed, statistics), operation, filter, extra, budget)| {
            QueryCase { axes, dtype, zstd, seed, operation, filter, extra, statistics, budget }
        })
}

/// Small numbers; floats have NaN and infinities now and then, 64-bit integers are sometimes huge.
fn values(dtype: ElementType, count: u64, seed: u64) -> (Vec<u8>, Vec<Element>) {
    let mut state = seed | 1;
    let (odd, huge) = (seed % 3 == 0, seed % 4 == 0);
    let mut bytes = Vec::new();
    let mut elements = Vec::new();
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let small = (state >> 20) % 12;
        let float = match (state >> 40) % 16 {
            0 if odd => f64::NAN,
            1 if odd => f64::INFINITY,
            2 if odd => f64::NEG_INFINITY,
            3 => -0.0,
            _ => small as f64 / 4.0 - 1.0,
        };
        let signed = small as i64 - 4;
        let (signed, unsigned) =
            if huge { (i64::MAX - 20 + signed, u64::MAX - small) } else { (signed, small) };
        macro_rules! put {
            ($value:expr) => {{
                bytes.extend($value.to_le_bytes());
                elements.push(Element { number: $value as f64, whole: $value as i128 });
            }};
        }
        match dtype {
            ElementType::F16 => {
                bytes.extend(f16::from_f64(float).to_le_bytes());
                elements.push(Element { number: float, whole: 0 });
            }
            ElementType::F32 => put!(float as f32),
            ElementType::F64 => put!(float),
            ElementType::I16 => put!((small as i16 - 4)),
            ElementType::I32 => put!((small as i32 - 4)),
            ElementType::I64 => put!(signed),
            ElementType::U8 => put!(small as u8),
            ElementType::U16 => put!(small as u16),
            ElementType::U32 => put!(small as u32),
            ElementType::U64 => put!(unsigned),
        }
    }
    (bytes, elements)
}

fn label(position: u64) -> String {
    ["a", "b", "c"][(position * 5 % 3) as usize].to_owned()
}

impl QueryCase {
    fn extents(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| (axis.stop - axis.start).div_ceil(axis.step)).collect()
    }

    fn file(&self, bytes: &[u8]) -> File {
        let shape: Vec<u64> = self.axes.iter().map(|axis| axis.extent).collect();
        let chunks: Vec<u64> = self.axes.iter().map(|axis| axis.chunk).collect();
        let mut layout = Layout::new();
        let id = layout.dataset("a", self.dtype, &shape[..], &chunks[..]).unwrap();
        if self.zstd {
            layout.compress(id, Compression::Zstd { level: 1 }).unwrap();
        }
        let names: Vec<String> = (0..shape.len()).map(|axis| format!("x{axis}")).collect();
        layout.dims(id, names.iter().map(String::as_str)).unwrap();
        for (axis, &extent) in shape.iter().enumerate() {
            layout.labels(id, &names[axis], (0..extent).map(label).collect()).unwrap();
        }
        let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
        writer.array(id, TensorView::new(self.dtype, &shape, bytes).unwrap()).unwrap();
        File::from_bytes("memory", writer.finish().unwrap().output).unwrap()
    }

    /// The document, and the role of each axis; `None` if the query is invalid.
    fn document(&self) -> Option<(Value, Vec<AxisModel>)> {
        let extents = self.extents();
        let mut document = Map::new();
        document.insert("dataset".into(), json!("a"));
        let slices =
            self.axes.iter().map(|axis| json!({"start": axis.start, "stop": axis.stop, "step": axis.step}));
        document.insert("selection".into(), slices.collect());
        document.insert("execution".into(), json!({"memory_budget_bytes": self.budget}));
        if let Some((operator, number)) = self.filter {
            document.insert("filter".into(), json!({operator: number}));
        }
        let mut reduced: Vec<usize> = (0..self.axes.len()).filter(|&axis| self.axes[axis].reduced).collect();
        let mut models: Vec<AxisModel> = (0..self.axes.len())
            .map(|axis| if reduced.contains(&axis) { AxisModel::Reduced } else { AxisModel::Kept })
            .collect();
        let mut axes: Vec<Value> = Vec::new();
        match &self.extra {
            Extra::None | Extra::LabelFilter { .. } => {
                if reduced.len() == self.axes.len() || reduced.is_empty() {
                    reduced.clear();
                    models.fill(AxisModel::Reduced);
                }
                axes = reduced.iter().map(|&axis| json!(axis)).collect();
                if let Extra::LabelFilter { axis } = self.extra {
                    if axis >= self.axes.len() {
                        return None;
                    }
                    // The label must be among those selected.
                    document.insert("label_filter".into(), json!({"axis": format!("x{axis}"), "eq": "b"}));
                    self.positions(axis).into_iter().find(|&p| label(p) == "b")?;
                }
            }
            Extra::Labels { axis } => {
                if *axis >= self.axes.len() || self.axes.len() < 2 {
                    return None;
                }
                let mut seen: Vec<String> = Vec::new();
                let mut groups = Vec::new();
                for position in self.positions(*axis) {
                    let text = label(position);
                    if !seen.contains(&text) {
                        seen.push(text.clone());
                    }
                    groups.push(seen.iter().position(|other| *other == text).unwrap() as u64);
                }
                models.fill(AxisModel::Reduced);
                models[*axis] = AxisModel::Labels(groups, seen.len() as u64);
                document.insert("group_by".into(), json!({"by": "labels", "axes": [format!("x{axis}")]}));
            }
            &Extra::Window { axis, size, rolling, pad, end, step, min_count } => {
                if axis >= self.axes.len() {
                    return None;
                }
                let extent = extents[axis];
                let size = size.min(extent);
                let end = end && (!rolling || pad);
                let mut window =
                    json!({"axis": axis, "size": size, "mode": if rolling { "rolling" } else { "bins" }});
                if end {
                    window["align"] = json!("end");
                }
                if pad {
                    window["pad"] = json!("0");
                }
                if rolling {
                    window["step"] = json!(step);
                }
                if let Some(min_count) = min_count.map(|count| count.min(size)) {
                    window["min_count"] = json!(min_count);
                }
                document.insert("window".into(), window);
                let (n, s) = (extent as i64, size as i64);
                let starts: Vec<i64> = match (rolling, pad, end) {
                    (true, false, _) => (0..=n - s).step_by(step as usize).collect(),
                    (true, true, false) => (1 - s..=n - s).step_by(step as usize).collect(),
                    (true, true, true) => (0..n).step_by(step as usize).collect(),
                    (false, _, false) => (0..n).step_by(size as usize).collect(),
                    (false, _, true) => {
                        let bins = extent.div_ceil(size) as i64;
                        (0..bins).map(|bin| n - (bins - bin) * s).collect()
                    }
                };
                let min_count = min_count.map_or(1, |count| count.min(size));
                let pad = pad.then_some(0.0);
                models.fill(AxisModel::Kept);
                models[axis] = AxisModel::Windows { starts, size, pad, min_count };
            }
        }
        let value = match self.operation {
            "null_count" => json!({"axes": axes, "fill": 1}),
            "quantile" => json!({"axes": axes, "q": 0.3}),
            _ => Value::Array(axes),
        };
        document.insert(self.operation.into(), value);
        Some((Value::Object(document), models))
    }

    /// The positions of the array that are selected on an axis.
    fn positions(&self, axis: usize) -> Vec<u64> {
        let axis = &self.axes[axis];
        (axis.start..axis.stop).step_by(axis.step as usize).collect()
    }
}

fn check(case: &QueryCase) -> Result<(), TestCaseError> {
    let count = case.axes.iter().map(|axis| axis.extent).product();
    let (bytes, elements) = values(case.dtype, count, case.seed);
    let Some((document, models)) = case.document() else { return Ok(()) };
    let file = case.file(&bytes);
    let extents = case.extents();
    let all: Vec<Vec<u64>> = (0..case.axes.len()).map(|axis| case.positions(axis)).collect();
    let value = |positions: &[u64]| {
        let axes = positions.iter().enumerate().zip(&case.axes);
        elements[axes.fold(0, |at, ((axis, &p), of)| at * of.extent + all[axis][p as usize]) as usize]
    };
    let counts = |positions: &[u64], element: Element| {
        let passes = case.filter.is_none_or(|(operator, number)| {
            let (x, y) = (element.number, f64::from(number));
            let exact =
                |whole: bool| if case.dtype.is_float() { whole } else { element.whole == i128::from(number) };
            match operator {
                "gt" => x > y,
                "ge" => x >= y,
                "lt" => x < y,
                "le" => x <= y,
                "eq" => exact(x == y),
                _ => x.is_nan() || !exact(x == y),
            }
        });
        let labelled = match case.extra {
            Extra::LabelFilter { axis } => label(all[axis][positions[axis] as usize]) == "b",
            _ => true,
        };
        passes && labelled
    };
    let (shape, gathered, real) = gather(&extents, &models, value, counts);
    let argument = &document[case.operation];
    let least = models.iter().find_map(|axis| match axis {
        AxisModel::Windows { min_count, .. } => Some(*min_count),
        _ => None,
    });
    let expected: Vec<Expected> = gathered
        .iter()
        .enumerate()
        .map(|(number, elements)| {
            if least.is_some_and(|least| real[number] < least) {
                return Expected::Json(Value::Null);
            }
            evaluate(case.operation, argument, elements, case.dtype.is_float())
        })
        .collect();

    let query = Query::parse(&document.to_string(), Syntax::Json);
    let query = query.map_err(|error| TestCaseError::fail(format!("{document}: {error}")))?;
    let mut answers = Vec::new();
    for parallel in [false, true] {
        let options =
            RunOptions::new().with_preview(0).with_statistics(case.statistics).with_parallel(Some(parallel));
        let answer = query.run(&file, &options, &NoProgress);
        let answer = answer.map_err(|error| TestCaseError::fail(format!("{document}: {error}")))?;
        answers.push(serde_json::to_value(Answer::new(&answer).execution.unwrap()).unwrap());
    }
    prop_assert_eq!(&answers[0]["total_bytes_read_from_disk"], &answers[1]["total_bytes_read_from_disk"]);
    let name = case.operation.replace("arg_m", "argm");
    let scalar = models.iter().all(|axis| matches!(axis, AxisModel::Reduced));
    let found = |execution: &Value| -> Vec<Value> {
        match (scalar, name.as_str()) {
            (true, "count") => vec![json!(execution["operation_element_count"].as_f64().unwrap())],
            (true, "argmin" | "argmax") => vec![execution[format!("operation_{name}_index")].clone()],
            (true, _) => vec![execution[format!("operation_{name}")].clone()],
            (false, _) => {
                execution[format!("operation_reduced_{name}")].as_array().cloned().unwrap_or_default()
            }
        }
    };
    if !scalar {
        prop_assert_eq!(&answers[0]["operation_reduced_shape"], &json!(shape), "{}", document);
    }
    let (first, second) = (found(&answers[0]), found(&answers[1]));
    prop_assert_eq!(&first, &second, "the number of threads changed the answer: {}", document);
    prop_assert_eq!(first.len(), expected.len(), "{}", document);
    for (number, (expected, found)) in expected.iter().zip(&first).enumerate() {
        prop_assert!(
            expected.agrees(found),
            "{}: element {} is {}, expected {:?} of {:?}",
            document,
            number,
            found,
            expected,
            gathered[number]
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(200)))]

    #[test]
    fn query_results_match_a_naive_loop(case in case()) {
        check(&case)?;
    }
}
