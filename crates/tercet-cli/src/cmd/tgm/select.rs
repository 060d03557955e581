//! Message filters and key lists.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use tercet::tgm::{Column, File, GlobalMetadata, Message, VERSION, Value};

use crate::failure::Failure;

/// The key of the wire format version, which every message has.
const VERSION_KEY: &str = "version";

/// A message filter.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Filter {
    /// Select messages: `KEY=V1/V2` (any of) or `KEY!=V1/V2` (none of, or key missing)
    #[arg(short = 'w', long = "where", value_name = "WHERE")]
    clause: Option<Clause>,
}

impl Filter {
    /// Whether a filter is given.
    pub(super) fn is_active(&self) -> bool {
        self.clause.is_some()
    }

    /// The matching messages, if the message index has the key.
    pub(super) fn chosen(&self, file: &File) -> Result<Option<Chosen<'_>>, Failure> {
        let Some(clause) = self.clause.as_ref().filter(|clause| clause.key != VERSION_KEY) else {
            return Ok(None);
        };
        let Some(index) = file.index()? else { return Ok(None) };
        // On an invalid column, fall back to reading the messages.
        let Ok(Some(column)) = index.column(&clause.key) else { return Ok(None) };
        let found = column.matching(|value| clause.holds_for(value.map(printed).as_deref()));
        Ok(Some(Chosen { key: &clause.key, column, numbers: found }))
    }

    /// Whether a message matches.
    pub(super) fn takes(&self, message: &Message) -> bool {
        self.takes_metadata(message.metadata())
    }

    /// Whether metadata matches.
    pub(super) fn takes_metadata(&self, metadata: &GlobalMetadata) -> bool {
        self.clause.as_ref().is_none_or(|clause| clause.holds(metadata))
    }
}

/// The matching messages according to the message index.
#[derive(Debug)]
pub(super) struct Chosen<'a> {
    key: &'a str,
    column: Arc<Column>,
    pub(super) numbers: Vec<u64>,
}

impl Chosen<'_> {
    /// Whether the value in the index equals the value in the message, if the index has one.
    pub(super) fn agrees(&self, message: &Message) -> bool {
        let number = message.number();
        let indexed = || self.column.value(number).map(printed);
        !self.column.is_stored(number) || indexed() == look_up(message.metadata(), self.key)
    }
}

/// A comparison of the printed value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clause {
    key: String,
    values: Vec<String>,
    /// Whether the value must be one of `values`, or none of them.
    wants: bool,
}

impl FromStr for Clause {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let split = text.split_once("!=").map(|parts| (parts, false));
        let split = split.or_else(|| text.split_once('=').map(|parts| (parts, true)));
        let ((key, values), wants) = split.ok_or("expected KEY=VALUE, KEY=V1/V2 or KEY!=VALUE")?;
        if key.is_empty() {
            return Err("missing key before `=`".to_owned());
        }
        let values = values.split('/').map(str::to_owned).collect();
        Ok(Self { key: key.to_owned(), values, wants })
    }
}

impl Clause {
    fn holds(&self, metadata: &GlobalMetadata) -> bool {
        self.holds_for(look_up(metadata, &self.key).as_deref())
    }

    /// Whether it holds for a printed value, or a missing key.
    fn holds_for(&self, found: Option<&str>) -> bool {
        match found {
            Some(found) => self.values.iter().any(|value| *value == found) == self.wants,
            None => !self.wants,
        }
    }
}

/// The keys to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keys(Vec<String>);

impl Keys {
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
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

/// The printed value of a key: `version`, a path in the metadata of the first object that has it, or a path in
/// `_extra_`.
pub(super) fn look_up<'a>(metadata: &'a GlobalMetadata, key: &str) -> Option<Cow<'a, str>> {
    if key == VERSION_KEY {
        return Some(VERSION.to_string().into());
    }
    metadata.get(key).map(printed)
}

/// A value as printed.
fn printed(value: &Value) -> Cow<'_, str> {
    value.as_text().map_or_else(|| value.printed().into(), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> GlobalMetadata {
        let mars: tercet::tgm::Entry =
            [("param".to_owned(), "2t".into()), ("step".to_owned(), 6.into())].into();
        let mut metadata = GlobalMetadata::default();
        metadata.base.push([("mars".to_owned(), Value::from(mars))].into());
        metadata.extra.insert("version".to_owned(), "mine".into());
        metadata.extra.insert("scale".to_owned(), Value::from(1.0));
        metadata.extra.insert("empty".to_owned(), "".into());
        metadata
    }

    #[test]
    fn clauses_compare_printed_values() {
        let metadata = metadata();
        let holds = |text: &str| text.parse::<Clause>().unwrap().holds(&metadata);
        for clause in [
            "mars.param=2t",
            "mars.param=msl/2t",
            "mars.step=6",
            "scale=1",
            "version=3",
            "extra.version=mine",
            "mars.step!=7/8",
            "missing!=anything",
            "empty=",
        ] {
            assert!(holds(clause), "{clause}");
        }
        for clause in [
            "mars.param=msl",
            "mars.param=2T",
            "mars.param!=2t",
            "scale=1.0",
            "version=mine",
            "mars.step!=7/6",
            "missing=",
        ] {
            assert!(!holds(clause), "{clause}");
        }
    }

    #[test]
    fn not_equal_is_parsed_first() {
        let clause: Clause = "a=b!=c".parse().unwrap();
        assert_eq!(clause, Clause { key: "a=b".to_owned(), values: vec!["c".to_owned()], wants: false });
    }

    #[test]
    fn invalid_clauses_are_rejected() {
        for clause in ["", "mars.param", "=2t", "!=2t"] {
            assert!(clause.parse::<Clause>().is_err(), "{clause}");
        }
        for keys in ["", ",", "a,,b", "a,"] {
            assert!(keys.parse::<Keys>().is_err(), "{keys}");
        }
        let keys: Keys = "a.b, c".parse().unwrap();
        assert_eq!(keys.iter().collect::<Vec<_>>(), ["a.b", "c"]);
    }
}
