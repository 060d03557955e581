//! The keys of a listing.

use std::str::FromStr;

use tercet::tgm::{Field, is_pipeline_parameter};

use super::VERSION_KEY;
use crate::persona::is_reference;

/// The keys to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keys(Vec<String>);

impl Keys {
    pub(in crate::cmd::tgm) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether a key is a field or a pipeline parameter of an object: a listing then has a row for each object.
    pub(in crate::cmd::tgm) fn has_fields(&self) -> bool {
        let is_of_object = |key: &str| match Field::from_name(key) {
            Some(field) => field != Field::Message,
            None => is_pipeline_parameter(key),
        };
        !is_reference() && self.iter().any(is_of_object)
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self(vec![VERSION_KEY.to_owned()])
    }
}

impl FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let keys: Vec<String> = text.split(',').map(|key| key.trim().to_owned()).collect();
        if keys.iter().any(String::is_empty) {
            return Err("expected KEY or KEY1,KEY2, with dots for nested keys: mars.param".to_owned());
        }
        Ok(Self(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_separated_by_commas() {
        let keys: Keys = "a.b, c".parse().unwrap();
        assert_eq!(keys.iter().collect::<Vec<_>>(), ["a.b", "c"]);
        for wrong in ["", "a,", ",a", "a,,b"] {
            assert!(wrong.parse::<Keys>().is_err(), "{wrong}");
        }
        assert!("a,shape".parse::<Keys>().unwrap().has_fields());
        assert!("a,zstd_level".parse::<Keys>().unwrap().has_fields());
        assert!(!"message,extra.shape".parse::<Keys>().unwrap().has_fields());
    }
}
