//! Parameters of a request: split, decoded, and checked against the table of the endpoint.

use std::str::FromStr;

use percent_encoding::percent_decode;

use crate::endpoint::{Kind, Parameter, ParameterLocation};
use crate::failure::Failure;

/// The maximum number of parameters in a query string.
const MAX_PARAMETERS: usize = 64;

/// The maximum length of one value.
const MAX_VALUE: usize = 4096;

/// The parameters of a request, in the path and in the query string.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    values: Vec<(&'static str, String)>,
    table: &'static [Parameter],
}

impl Params {
    /// Checks the parameters of a request. `path` has the decoded values of the path.
    pub(crate) fn new(
        table: &'static [Parameter],
        path: &[(String, String)],
        query: &str,
    ) -> Result<Self, Failure> {
        let mut values = Vec::new();
        for (name, value) in path {
            let known =
                table.iter().find(|known| known.place == ParameterLocation::Path && known.name == name);
            let Some(known) = known else { return Err(Failure::not_found("no such path")) };
            known.check(value)?;
            values.push((known.name, value.clone()));
        }
        for (number, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
            if number >= MAX_PARAMETERS {
                return Err(Failure::request(format!("more than {MAX_PARAMETERS} parameters")));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            let known =
                table.iter().find(|known| known.place == ParameterLocation::Query && known.name == name);
            let Some(known) = known else { return Err(unknown(&name, table)) };
            if !known.is_repeated && values.iter().any(|(other, _)| *other == known.name) {
                return Err(Failure::request(format!("parameter `{name}` is given more than once")));
            }
            known.check(&value)?;
            values.push((known.name, value));
        }
        for known in table.iter().filter(|known| known.is_required) {
            if !values.iter().any(|(name, _)| *name == known.name) {
                return Err(Failure::request(format!("missing query parameter {}", known.name)));
            }
        }
        Ok(Self { values, table })
    }

    /// The value of a parameter; `None` if it is not given or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        debug_assert!(self.table.iter().any(|known| known.name == name), "`{name}` is in the table");
        let found = self.values.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A short text that differs between different parameters.
    pub(crate) fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (name, value) in &self.values {
            hasher.update(name.as_bytes()).update(&[0]).update(value.as_bytes()).update(&[0]);
        }
        hasher.finalize().to_hex()[..12].to_owned()
    }

    /// A value of the path.
    pub(crate) fn path(&self, name: &str) -> &str {
        self.values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value.as_str())
    }

    /// The values of a repeated parameter.
    pub(crate) fn all(&self, name: &'static str) -> impl Iterator<Item = &str> {
        self.values.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The items of a list with commas.
    pub(crate) fn list(&self, name: &'static str) -> Vec<&str> {
        self.all(name)
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .collect()
    }

    /// A number, which the table allows.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }

    /// A yes or no; no if it is not given.
    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1"))
    }

    /// A yes or no with another default.
    pub(crate) fn flag_or(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |value| matches!(value, "true" | "1"))
    }
}

impl Parameter {
    /// Checks a value by itself.
    fn check(&self, value: &str) -> Result<(), Failure> {
        let name = self.name;
        if value.len() > MAX_VALUE {
            return Err(Failure::request(format!("parameter `{name}` has more than {MAX_VALUE} bytes")));
        }
        if value.contains('\0') {
            return Err(Failure::request(format!("parameter `{name}` has a null character")));
        }
        if value.is_empty() && self.place == ParameterLocation::Query {
            return Ok(());
        }
        let is_valid = match self.kind {
            Kind::Text | Kind::List => true,
            Kind::Id => {
                value.len() == 16 && value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            }
            Kind::Integer { min, max } => {
                value.parse::<u64>().is_ok_and(|number| (min..=max).contains(&number))
            }
            Kind::Number => value.parse::<f64>().is_ok_and(f64::is_finite),
            Kind::Flag => matches!(value, "true" | "false" | "1" | "0"),
            Kind::OneOf(known) => known.contains(&value),
        };
        if is_valid {
            return Ok(());
        }
        let shown: String = value.chars().take(60).collect();
        let shown = tercet::core::escape::name(&shown);
        if self.place == ParameterLocation::Path {
            let what = if self.kind == Kind::Id { "file" } else { name };
            return Err(Failure::not_found(format!("no {what} `{shown}`")));
        }
        let expected = match self.kind {
            Kind::Id => "an ID of 16 hexadecimal digits".to_owned(),
            Kind::Integer { min, max: u64::MAX } => format!("an integer from {min}"),
            Kind::Integer { min, max } => format!("an integer from {min} to {max}"),
            Kind::Number => "a number".to_owned(),
            Kind::Flag => "`true` or `false`".to_owned(),
            Kind::OneOf(known) => format!("one of {}", known.join(", ")),
            Kind::Text | Kind::List => "text".to_owned(),
        };
        Err(Failure::request(format!("`{name}` must be {expected}, not `{shown}`")))
    }
}

fn unknown(name: &str, table: &[Parameter]) -> Failure {
    let shown: String = name.chars().take(60).collect();
    let failure = Failure::request(format!("unknown parameter `{}`", tercet::core::escape::name(&shown)));
    let names: Vec<&str> = table
        .iter()
        .filter(|known| known.place == ParameterLocation::Query)
        .map(|known| known.name)
        .collect();
    if names.is_empty() {
        return failure.with_hint("this endpoint has no parameters");
    }
    failure.with_hint(format!("parameters: {}", names.join(", ")))
}

/// Decodes a name or value of a query string.
fn decode(text: &str) -> Result<String, Failure> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode(spaced.as_bytes()).decode_utf8();
    decoded.map(Into::into).map_err(|_| Failure::request("the query string is not valid UTF-8"))
}

/// The value of a parameter of a query string, for endpoints that ignore unknown ones.
pub(crate) fn lenient(query: &str, name: &str) -> Result<Option<String>, Failure> {
    for pair in query.split('&').take(MAX_PARAMETERS) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decode(key)? == name {
            return decode(value).map(Some);
        }
    }
    Ok(None)
}

/// The number of endpoints that accept a query string, with this value for each parameter of the path.
pub(crate) fn accepting(path: &str, query: &str) -> usize {
    let accepts = |endpoint: &&crate::endpoint::Endpoint| {
        let in_path = endpoint.parameters.iter().filter(|known| known.place == ParameterLocation::Path);
        let path: Vec<_> = in_path.map(|known| (known.name.to_owned(), path.to_owned())).collect();
        Params::new(endpoint.parameters, &path, query).is_ok()
    };
    // Both ways of reading are exercised.
    let _ = lenient(query, "q");
    crate::endpoint::ALL.iter().copied().flatten().filter(accepts).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Parameter] = &[
        Parameter::id(),
        Parameter::text("where", "A filter"),
        Parameter::integer("limit", 1, 100, "Rows"),
        Parameter::flag("raw", "Raw"),
        Parameter::text("isel", "Positions").repeated(),
    ];

    fn params(query: &str) -> Result<Params, String> {
        let path = [("id".to_owned(), "0123456789abcdef".to_owned())];
        Params::new(TABLE, &path, query).map_err(|failure| failure.message)
    }

    #[test]
    fn parameters_are_decoded_and_checked() {
        let params = params("where=a+%3D%201%26b&limit=7&raw=true&isel=lat=3&isel=lon=0..4&").unwrap();
        assert_eq!(params.get("where"), Some("a = 1&b"));
        assert_eq!(params.number::<u64>("limit"), Some(7));
        assert!(params.flag("raw"));
        assert_eq!(params.all("isel").collect::<Vec<_>>(), ["lat=3", "lon=0..4"]);
        assert_eq!(params.path("id"), "0123456789abcdef");
    }

    #[test]
    fn wrong_parameters_are_named() {
        for (query, expected) in [
            ("limt=7", "unknown parameter `limt`"),
            ("limit=0", "`limit` must be an integer from 1 to 100, not `0`"),
            ("limit=-1", "`limit` must be an integer from 1 to 100, not `-1`"),
            (
                "limit=99999999999999999999999",
                "`limit` must be an integer from 1 to 100, not `99999999999999999999999`",
            ),
            ("raw=maybe", "`raw` must be `true` or `false`, not `maybe`"),
            ("raw=1&raw=1", "parameter `raw` is given more than once"),
            ("where=%ff", "the query string is not valid UTF-8"),
            ("where=%00", "parameter `where` has a null character"),
            ("id=0123456789abcdef", "unknown parameter `id`"),
        ] {
            assert_eq!(params(query).unwrap_err(), expected, "{query}");
        }
        assert!(params(&"isel=a&".repeat(65)).unwrap_err().contains("more than 64"));
        assert!(params(&format!("where={}", "x".repeat(5000))).unwrap_err().contains("4096"));
    }

    #[test]
    fn a_path_that_is_no_id_is_not_found() {
        for path in ["..", "../../etc/passwd", "0123456789ABCDEF", "", "0123456789abcde", "0123456789abcdef0"]
        {
            let path = [("id".to_owned(), path.to_owned())];
            let failure = Params::new(TABLE, &path, "").unwrap_err();
            assert_eq!(failure.status, axum::http::StatusCode::NOT_FOUND);
        }
    }
}
