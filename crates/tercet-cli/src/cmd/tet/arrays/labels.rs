//! Label files: one label per line.

use std::path::Path;

use tercet::core::{Class, Span, escape};

use crate::failure::Failure;
use crate::input;

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
