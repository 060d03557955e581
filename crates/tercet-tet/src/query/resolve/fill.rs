//! The fill value of a dataset.

use crate::file::Dataset;
use crate::query::document::parse_scalar;
use crate::query::error::{QueryErrorKind, excerpt};
use crate::query::operation::Scalar;

/// Attributes with the fill value; the first one present counts.
const ATTRIBUTES: [&str; 3] = ["_FillValue", "missing_value", "fill_value"];

/// The source of a fill value, for messages.
pub(super) const HOW: &str = "the attributes `_FillValue`, `missing_value` and `fill_value` define it";

/// The attribute with the fill value, if there is one.
pub(super) struct Fill<'a>(Option<(&'static str, &'a str)>);

impl<'a> Fill<'a> {
    pub(super) fn for_dataset(dataset: &Dataset<'a>) -> Self {
        let attrs = dataset.info().map(|info| &info.attrs);
        let named = |name: &'static str| Some((name, attrs?.get(name)?.as_str()));
        Self(ATTRIBUTES.into_iter().find_map(named))
    }

    /// The fill value. An attribute that is not a number is an error.
    pub(super) fn value(&self) -> Result<Option<Scalar>, QueryErrorKind> {
        let Some((name, text)) = self.0 else { return Ok(None) };
        parse_scalar(text).map(Some).ok_or_else(|| {
            let text = excerpt(text);
            QueryErrorKind::invalid(format!(
                "the attribute `{name}` of the dataset is `{text}`, which is not a number"
            ))
        })
    }
}
