//! Shell words.

/// A file name as a word of a shell command: quoted if it has spaces or special characters.
pub(crate) fn shell_quoted(file: &str) -> String {
    // A name that starts with `-` would be an option.
    let prefix = if file.starts_with('-') && file != "-" { "./" } else { "" };
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !file.is_empty() && file.chars().all(plain) {
        return format!("{prefix}{file}");
    }
    format!("{prefix}'{}'", file.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusual_file_names_are_quoted() {
        for (name, word) in [
            ("a/b.tet", "a/b.tet"),
            ("my file's.tet", r"'my file'\''s.tet'"),
            ("a$b;c.tgm", "'a$b;c.tgm'"),
            ("~x", "'~x'"),
            ("", "''"),
            ("-o.tet", "./-o.tet"),
            ("-a b", "./'-a b'"),
            ("-", "-"),
        ] {
            assert_eq!(shell_quoted(name), word);
        }
    }
}
