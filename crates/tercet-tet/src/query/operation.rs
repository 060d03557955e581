//! [`Kind`]: the operations of queries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An operation on the selected elements.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the query document")]
pub enum Kind {
    Sum,
    Mean,
    Min,
    Max,
    Count,
    Var,
    Std,
    Product,
    NormL1,
    NormL2,
    AllFinite,
    AnyNan,
    AnyInf,
    NanCount,
    InfCount,
    NanMean,
    NanStd,
    /// `fill`: the value in the query; by default the fill value of the dataset.
    NullCount {
        fill: Option<Scalar>,
    },
    ArgMin,
    ArgMax,
    Median,
    Quantile {
        q: f64,
    },
    /// `range`: min and max; by default those of the data.
    Histogram {
        bins: u32,
        range: Option<(f64, f64)>,
    },
    Covariance,
    Correlation,
    Transform {
        method: Method,
    },
}

impl Kind {
    /// The key of the query document.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::Count => "count",
            Self::Var => "var",
            Self::Std => "std",
            Self::Product => "product",
            Self::NormL1 => "norm_l1",
            Self::NormL2 => "norm_l2",
            Self::AllFinite => "all_finite",
            Self::AnyNan => "any_nan",
            Self::AnyInf => "any_inf",
            Self::NanCount => "nan_count",
            Self::InfCount => "inf_count",
            Self::NanMean => "nan_mean",
            Self::NanStd => "nan_std",
            Self::NullCount { .. } => "null_count",
            Self::ArgMin => "arg_min",
            Self::ArgMax => "arg_max",
            Self::Median => "median",
            Self::Quantile { .. } => "quantile",
            Self::Histogram { .. } => "histogram",
            Self::Covariance => "covariance",
            Self::Correlation => "correlation",
            Self::Transform { .. } => "transform",
        }
    }
}

/// A name that no reduction has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownOp {
    /// The name.
    pub name: String,
    /// The most similar name.
    pub nearest: Option<String>,
}

impl std::fmt::Display for UnknownOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unknown operation `{}`", tercet_core::escape::name(&self.name))
    }
}

impl std::error::Error for UnknownOp {}

/// Reductions by name, except quantiles, histograms and matrices.
const NAMED: [Kind; 21] = [
    Kind::Sum,
    Kind::Mean,
    Kind::Min,
    Kind::Max,
    Kind::Count,
    Kind::Var,
    Kind::Std,
    Kind::Product,
    Kind::NormL1,
    Kind::NormL2,
    Kind::AllFinite,
    Kind::AnyNan,
    Kind::AnyInf,
    Kind::NanCount,
    Kind::InfCount,
    Kind::NanMean,
    Kind::NanStd,
    Kind::NullCount { fill: None },
    Kind::ArgMin,
    Kind::ArgMax,
    Kind::Median,
];

impl Kind {
    /// The names of the reductions without parameters, for lists of them.
    pub const NAMES: [&'static str; NAMED.len()] = {
        let mut names = [""; NAMED.len()];
        let mut number = 0;
        while number < NAMED.len() {
            names[number] = NAMED[number].key();
            number += 1;
        }
        names
    };
}

impl std::str::FromStr for Kind {
    type Err = UnknownOp;

    /// Parses the name of a reduction: its key in query documents, `argmin` and `argmax`, or `quantile_0.9`.
    fn from_str(name: &str) -> Result<Self, UnknownOp> {
        let key = match name {
            "argmin" => "arg_min",
            "argmax" => "arg_max",
            other => other,
        };
        if let Some(kind) = NAMED.into_iter().find(|kind| kind.key() == key) {
            return Ok(kind);
        }
        let q = key.strip_prefix("quantile_").and_then(|q| q.parse().ok());
        if let Some(q) = q.filter(|q| (0.0..=1.0).contains(q)) {
            return Ok(Self::Quantile { q });
        }
        let known = NAMED.iter().map(|kind| kind.key()).chain(["argmin", "argmax", "quantile_0.5"]);
        Err(UnknownOp { name: name.to_owned(), nearest: super::error::closest(name, known) })
    }
}

/// A transform of an array to one of the same shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// x − mean
    Center,
    /// (x − mean) / std
    Zscore,
    /// x / std
    Scale,
    /// (x − min) / (max − min)
    Minmax,
    /// x / Σ|x|
    L1,
    /// x / √Σx²
    L2,
    /// ln(1 + (x − min))
    Log1p,
    /// √(x − min)
    Sqrt,
    /// exp(x − max) / Σexp(x − max)
    Softmax,
}

impl Method {
    /// The name in the query document.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Center => "center",
            Self::Zscore => "zscore",
            Self::Scale => "scale",
            Self::Minmax => "minmax",
            Self::L1 => "l1",
            Self::L2 => "l2",
            Self::Log1p => "log1p",
            Self::Sqrt => "sqrt",
            Self::Softmax => "softmax",
        }
    }
}

/// A number in a query or an attribute. Integers are exact, so that 64-bit elements can be compared with them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An integer.
    Whole(i128),
    /// Any other number, NaN and infinities included.
    Float(f64),
}

impl Scalar {
    /// The nearest f64.
    #[expect(clippy::cast_precision_loss, reason = "rounded to the nearest f64")]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

impl Serialize for Scalar {
    /// Serializes as f64, as all numbers of an answer.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.to_f64())
    }
}
