//! Results as JSON.

use serde::Serialize;
use serde::ser::{Error as _, SerializeMap as _, SerializeSeq as _, Serializer};
use tercet_core::tensor::f16;
use tercet_core::{DType, ElementType, Tensor};

use super::{AxisPositions, ResultArray, ResultValues, Results};
use crate::compute::{CoordinateValues, Coordinates, Execution, LazyValues};

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json(Source::Results).serialize(serializer)
    }
}

impl Results {
    /// The results as JSON, without the values: for results that are stored elsewhere.
    pub fn summary(&self) -> impl Serialize + '_ {
        self.json(Source::None)
    }

    /// The results as JSON, with values that are read block by block.
    pub fn with_values<'a>(&'a self, values: &'a LazyValues<'_, '_>) -> impl Serialize + 'a {
        self.json(Source::Lazy(values))
    }

    fn json<'a>(&'a self, source: Source<'a>) -> All<'a> {
        All { results: self, source }
    }
}

/// Where the values are.
#[derive(Clone, Copy)]
enum Source<'a> {
    None,
    Results,
    Lazy(&'a LazyValues<'a, 'a>),
}

struct All<'a> {
    results: &'a Results,
    source: Source<'a>,
}

impl Serialize for All<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { results, source } = *self;
        let one = |array| One { results, array, source };
        match &results.arrays[..] {
            [array] => one(array).serialize(serializer),
            arrays => serializer.collect_seq(arrays.iter().map(one)),
        }
    }
}

struct One<'a> {
    results: &'a Results,
    array: &'a ResultArray,
    source: Source<'a>,
}

impl Serialize for One<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { results, array, source } = *self;
        let shape = array.shape();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("dataset", &results.dataset)?;
        map.serialize_entry("operation", &array.op.map(|_| array.name.as_str()))?;
        map.serialize_entry("dims", &array.dims.iter().map(|dim| &dim.name).collect::<Vec<_>>())?;
        map.serialize_entry("coords", &Coords { results, array })?;
        map.serialize_entry("shape", &shape)?;
        map.serialize_entry("dtype", dtype(array))?;
        map.serialize_entry("units", &array.units())?;
        map.serialize_entry("decoded", &results.is_decoded)?;
        if let Some(edges) = &array.edges {
            map.serialize_entry("edges", edges)?;
        }
        if let Some([below, above]) = array.outside {
            map.serialize_entry("below", &below)?;
            map.serialize_entry("above", &above)?;
        }
        if let Some(nan) = array.nan {
            map.serialize_entry("nan", &nan)?;
        }
        match (&array.values, source) {
            (_, Source::None) | (ResultValues::Unread(_), Source::Results) => {}
            (_, Source::Lazy(values)) => {
                let element = |at: usize| LazyNumber { values, at };
                map.serialize_entry("values", &Nested { shape: &shape, at: 0, element: &element })?;
            }
            (ResultValues::Numbers(tensor), _) => {
                let element = |at: usize| Number { tensor, at };
                map.serialize_entry("values", &Nested { shape: &shape, at: 0, element: &element })?;
            }
            (ResultValues::Flags(tensor), _) => {
                let flags = tensor.as_slice::<u8>().unwrap_or_default();
                let element = |at: usize| flags.get(at).map(|&flag| flag > 0);
                map.serialize_entry("values", &Nested { shape: &shape, at: 0, element: &element })?;
            }
            (ResultValues::Positions(axes), _) => {
                map.serialize_entry("values", &AxisIndices { axes, shape: &shape, coordinates: true })?;
                map.serialize_entry("indices", &AxisIndices { axes, shape: &shape, coordinates: false })?;
            }
        }
        map.serialize_entry("elements", &results.elements)?;
        let skipped = if let Source::Lazy(values) = source { values.missing() } else { results.skipped };
        map.serialize_entry("skipped", &skipped)?;
        if let Some(execution) = &results.execution {
            map.serialize_entry("read", &Read(execution))?;
        }
        if !results.warnings.is_empty() {
            map.serialize_entry("warnings", &results.warnings)?;
        }
        map.end()
    }
}

/// The element type of a result.
fn dtype(array: &ResultArray) -> &'static str {
    match &array.values {
        ResultValues::Numbers(tensor) => tensor.dtype().name(),
        ResultValues::Flags(_) => DType::Bool.name(),
        ResultValues::Positions(_) => "coordinates",
        ResultValues::Unread(dtype) => dtype.name(),
    }
}

/// What was read for a result.
struct Read<'a>(&'a Execution);

impl Serialize for Read<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("bytes", &self.0.bytes_read)?;
        map.serialize_entry("chunks", &self.0.chunks_read)?;
        map.serialize_entry("chunks_by_statistics", &self.0.chunks_by_statistics)?;
        map.serialize_entry("chunks_pruned", &self.0.chunks_skipped)?;
        map.end()
    }
}

/// Nested lists of the elements of an array.
struct Nested<'a, F> {
    shape: &'a [u64],
    at: usize,
    element: &'a F,
}

impl<T: Serialize, F: Fn(usize) -> T> Serialize for Nested<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some((&extent, rest)) = self.shape.split_first() else {
            return (self.element)(self.at).serialize(serializer);
        };
        let below = usize::try_from(rest.iter().product::<u64>()).unwrap_or(usize::MAX);
        let extent = usize::try_from(extent).unwrap_or(usize::MAX);
        let mut list = serializer.serialize_seq(Some(extent))?;
        for position in 0..extent {
            let at = self.at + position * below;
            list.serialize_element(&Nested { shape: rest, at, element: self.element })?;
        }
        list.end()
    }
}

/// An element of a tensor. NaN and infinities are `null`.
struct Number<'a> {
    tensor: &'a Tensor,
    at: usize,
}

impl Serialize for Number<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(halves) = self.tensor.as_slice::<f16>() {
            return halves.get(self.at).map(|half| half.to_f32()).serialize(serializer);
        }
        macro_rules! try_types {
            ($($type:ty),*) => {$(
                if let Some(values) = self.tensor.as_slice::<$type>() {
                    return values.get(self.at).serialize(serializer);
                }
            )*};
        }
        try_types!(f64, f32, i64, i32, i16, u8, u16, u32, u64);
        serializer.serialize_none()
    }
}

/// An element that is read with its block.
struct LazyNumber<'a> {
    values: &'a LazyValues<'a, 'a>,
    at: usize,
}

impl Serialize for LazyNumber<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number =
            self.values.with(self.at as u64, |tensor, at| Number { tensor, at }.serialize(serializer));
        // The caller has the error of the block.
        number.unwrap_or_else(|| Err(S::Error::custom("cannot read the values")))
    }
}

/// The coordinates of all dimensions, and of axes of a single position.
struct Coords<'a> {
    results: &'a Results,
    array: &'a ResultArray,
}

impl Serialize for Coords<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for dim in &self.array.dims {
            if let Some(coordinates) = &dim.coordinates {
                let element = |at: usize| Coordinate { coordinates, at };
                let nested = Nested { shape: &[coordinates.len() as u64], at: 0, element: &element };
                map.serialize_entry(&dim.name, &nested)?;
            }
        }
        for (name, coordinates) in &self.results.single {
            map.serialize_entry(name, &Coordinate { coordinates, at: 0 })?;
        }
        map.end()
    }
}

/// A coordinate: a number, or a time or label as a string.
struct Coordinate<'a> {
    coordinates: &'a Coordinates,
    at: usize,
}

impl Serialize for Coordinate<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { coordinates, at } = *self;
        let CoordinateValues::Numbers(numbers) = &coordinates.values else {
            return serializer.serialize_str(&coordinates.text(at));
        };
        let Some(&number) = numbers.get(at) else { return serializer.serialize_none() };
        let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
        #[expect(clippy::cast_possible_truncation, reason = "a number of this type, or a whole number")]
        match coordinates.element() {
            Some(ElementType::F32) => serializer.serialize_f32(number as f32),
            Some(ElementType::F16 | ElementType::F64) => serializer.serialize_f64(number),
            _ if is_whole => serializer.serialize_i64(number as i64),
            _ => serializer.serialize_f64(number),
        }
    }
}

/// Positions of minima or maxima, by axis.
struct AxisIndices<'a> {
    axes: &'a [AxisPositions],
    shape: &'a [u64],
    /// Whether coordinates are written; else positions.
    coordinates: bool,
}

impl Serialize for AxisIndices<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.axes.len()))?;
        for axis in self.axes {
            if self.coordinates {
                let element =
                    |at: usize| axis.index(at).map(|at| Coordinate { coordinates: &axis.coordinates, at });
                map.serialize_entry(&axis.axis, &Nested { shape: self.shape, at: 0, element: &element })?;
            } else {
                let element = |at: usize| axis.index(at);
                map.serialize_entry(&axis.axis, &Nested { shape: self.shape, at: 0, element: &element })?;
            }
        }
        map.end()
    }
}
