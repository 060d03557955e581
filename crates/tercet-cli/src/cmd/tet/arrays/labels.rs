//! Label files: one label per line.

use std::path::Path;

use tercet::core::{Class, Span, escape};

use crate::failure::Failure;
use crate::input::{self, is_local};

/// Maximum size of all labels in a `.tet` file.
const LIMIT: u64 = 16 << 20;

/// The lines of a file. The last one may end without a line break; `\r\n` counts as one.
pub(super) fn read(path: &Path) -> Result<Vec<String>, Failure> {
    let name = path.to_string_lossy();
    let refused = |error| Failure::source(&name, error);
    let file = input::open(path)?;
    let shown = escape::name(&name);
    if file.len() > LIMIT {
        let message = format!("{shown}: {} bytes exceed the limit of {LIMIT} bytes of labels", file.len());
        return Err(Failure::new(Class::Limit, message));
    }
    let bytes = file.read_at(Span::first(file.len())).map_err(refused)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
        Failure::new(Class::Malformed, format!("{shown}: line {line}: invalid UTF-8"))
    })?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The lines of a file, or a list: text with a comma that is not the name of a file. A list of one label ends with a comma.
pub(in super::super) fn read_or_split(given: &Path) -> Result<Vec<String>, Failure> {
    let exists = std::fs::metadata(given).is_ok();
    let list = given.to_str().filter(|text| text.contains(',') && !exists && is_local(given));
    let Some(list) = list else {
        return read(given).map_err(|failure| {
            let name = escape::name(&given.to_string_lossy()).into_owned();
            if exists || !is_local(given) {
                failure
            } else {
                failure.with_hint(format!("a list of labels has a comma, also one label: `{name},`"))
            }
        });
    };
    let list = list.strip_suffix(',').unwrap_or(list);
    Ok(list.split(',').map(|label| label.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_makes_a_list() {
        let split = |text: &str| read_or_split(Path::new(text)).ok();
        assert_eq!(split("a, b"), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(split("2024-06-01T00,"), Some(vec!["2024-06-01T00".to_owned()]));
        assert_eq!(split("no-such-file"), None);
    }
}
