//! What is known of columns without decoding a value.

use std::cmp::Ordering;

use crate::fault::Error;
use crate::file::{File, Inner};
use crate::region::Region;
use crate::scalar::Scalar;
use crate::wire::ids::{Role, offers};

impl File {
    /// The smallest and the largest value of a column in one row group, if the footer tells them and can be believed.
    ///
    /// Zones of floats are made by some writers from NaN, and then do not span the other values. They count only if both
    /// bounds are numbers and either the file says that NaN was left out or a single page was looked at.
    pub fn bounds(&self, group: usize, column: usize) -> Option<(Scalar, Scalar)> {
        self.inner().bounds(group, column)
    }

    /// The smallest and the largest value of a column, if every row group that holds a value tells its own.
    pub fn column_bounds(&self, column: usize) -> Option<(Scalar, Scalar)> {
        let mut all: Option<(Scalar, Scalar)> = None;
        for (group, entry) in self.footer().groups.iter().enumerate() {
            let chunk = entry.chunks.get(column)?;
            if chunk.nulls == chunk.values {
                continue;
            }
            let (min, max) = self.bounds(group, column)?;
            all = Some(match all {
                None => (min, max),
                Some((low, high)) => (
                    if min.order(&low) == Some(Ordering::Less) { min } else { low },
                    if max.order(&high) == Some(Ordering::Greater) { max } else { high },
                ),
            });
        }
        all
    }

    /// The number of values in the dictionary of a column, if it has one. Reads the dictionary.
    pub fn dictionary_values(&self, column: usize) -> Result<Option<u64>, Error> {
        let features = self.footer().features.as_ref();
        let mut resources = features.into_iter().flat_map(|features| &features.resources);
        if !resources.any(|used| used.column == column as u64 && used.role == Role::Values) {
            return Ok(None);
        }
        let place = (Region::Chunk { group: 0, column: crate::chunk::number(column) }, 0);
        let values = self.inner().value_dictionary(column, place).map_err(|fault| self.error(fault))?;
        Ok(Some(values.len() as u64))
    }
}

impl Inner {
    fn bounds(&self, group: usize, column: usize) -> Option<(Scalar, Scalar)> {
        let chunk = self.footer.groups.get(group)?.chunks.get(column)?;
        let kind = self.footer.schema.fields().get(column)?.scalar();
        let zone = chunk.zone.as_ref()?;
        let min = Scalar::from_bytes(kind, &zone.min)?;
        let max = Scalar::from_bytes(kind, &zone.max)?;
        let is_spanned = !kind.is_float() || chunk.pages == 1 || self.offers(offers::FLOAT_ZONES);
        // What is not in order bounds nothing.
        let is_ordered = matches!(min.order(&max), Some(Ordering::Less | Ordering::Equal));
        (is_spanned && is_ordered).then_some((min, max))
    }
}
