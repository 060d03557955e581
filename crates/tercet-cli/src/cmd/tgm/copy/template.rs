//! File name templates with placeholders.

use std::fmt;
use std::path::{Path, PathBuf, is_separator};

use tercet::core::escape;

use crate::cmd::tgm::select::{Row, printed};
use crate::failure::Failure;
use crate::persona::is_reference;

/// The replacement of a missing value in the reference implementation.
const MISSING: &str = "unknown";
/// The reason why a name cannot be made.
const MISSING_KEY: &str = "the key is missing";

/// An output path with placeholders: a fixed directory, and names below it with values from the metadata. The metadata
/// of an input file must not select the directory of an output.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cmd::tgm) struct Template {
    directory: PathBuf,
    names: Vec<Vec<Part>>,
}

/// A part of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Key(String),
}

/// A value that is not allowed in a file name.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cmd::tgm) struct BadName {
    name: String,
    /// The key of the value; `None` for the whole name.
    key: Option<String>,
    reason: &'static str,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, key, reason } = self;
        if let (true, Some(key)) = (*reason == MISSING_KEY, key) {
            return write!(f, "no key `{}` for the file name", escape::name(key));
        }
        let name = escape::name(name);
        match key {
            Some(key) => {
                write!(f, "value `{name}` of `{}` is not allowed in a file name: {reason}", escape::name(key))
            }
            None => write!(f, "invalid file name `{name}`: {reason}"),
        }
    }
}

impl BadName {
    fn missing(key: &str) -> Self {
        Self { name: String::new(), key: Some(key.to_owned()), reason: MISSING_KEY }
    }
}

impl Template {
    /// Parses a template; `None` without a placeholder.
    pub(in crate::cmd::tgm) fn parse(path: &Path) -> Result<Option<Self>, Failure> {
        // A path that is not UTF-8 has no placeholders.
        let Some(text) = path.to_str().filter(|text| text.contains('[')) else { return Ok(None) };
        let wrong = |reason: &str| Failure::request(format!("{}: {reason}", escape::name(text)));
        let mut names: Vec<Vec<Part>> = vec![Vec::new()];
        // Start of the last name before the first placeholder.
        let mut directory_end = 0;
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('[') {
            let (key, after) = after.split_once(']').ok_or_else(|| wrong("unclosed `[`"))?;
            if key.is_empty() {
                return Err(wrong("empty placeholder `[]`"));
            }
            if names.len() == 1 && names.iter().flatten().next().is_none() {
                let name_start = before.rfind(is_separator).map_or(0, |at| at + 1);
                directory_end = name_start;
                push_text(&mut names, &before[name_start..]);
            } else {
                push_text(&mut names, before);
            }
            if let Some(name) = names.last_mut() {
                name.push(Part::Key(key.to_owned()));
            }
            rest = after;
        }
        push_text(&mut names, rest);
        if names.last().is_none_or(Vec::is_empty) {
            return Err(wrong("the template must end with a file name"));
        }
        names.retain(|name| !name.is_empty());
        Ok(Some(Self { directory: text[..directory_end].into(), names }))
    }

    /// The path for a message. Values are not expanded again.
    pub(in crate::cmd::tgm) fn expand(&self, row: &Row<'_>) -> Result<Result<PathBuf, BadName>, Failure> {
        let mut path = self.directory.clone();
        for parts in &self.names {
            let mut name = String::new();
            for part in parts {
                match part {
                    Part::Text(text) => name.push_str(text),
                    Part::Key(key) => {
                        let value = match row.value(key)? {
                            Some(value) => printed(&value).into_owned(),
                            None if is_reference() => MISSING.to_owned(),
                            None => return Ok(Err(BadName::missing(key))),
                        };
                        if let Err(error) = check_value(key, &value) {
                            return Ok(Err(error));
                        }
                        name.push_str(&value);
                    }
                }
            }
            if matches!(name.as_str(), "." | "..") {
                return Ok(Err(BadName { name, key: None, reason: "it refers to another directory" }));
            }
            path.push(name);
        }
        Ok(Ok(path))
    }

    /// Rejects a target that passes through a symbolic link below the directory.
    pub(in crate::cmd::tgm) fn reject_links(&self, target: &Path) -> Result<(), Failure> {
        for path in self.below(target) {
            if std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
                let message = format!("{}: is a symbolic link", escape::name(&path.to_string_lossy()));
                return Err(Failure::request(message).with_hint("templates do not follow symbolic links"));
            }
        }
        Ok(())
    }

    /// Creates the directories of a target.
    pub(in crate::cmd::tgm) fn create_directories(&self, target: &Path) -> Result<(), Failure> {
        let paths = self.below(target);
        for directory in paths.split_last().map_or(&[][..], |(_, directorys)| directorys) {
            match std::fs::create_dir(directory) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    let name = escape::name(&directory.to_string_lossy()).into_owned();
                    return Err(Failure::io(&format!("{name}: cannot create the directory"), &error));
                }
                _ => {}
            }
        }
        self.reject_links(target)
    }

    /// The paths from the directory to a target, the target last.
    fn below<'a>(&self, target: &'a Path) -> Vec<&'a Path> {
        let mut paths: Vec<&Path> = target.ancestors().take(self.names.len()).collect();
        paths.reverse();
        paths
    }
}

/// Adds text to the last name; a separator starts a new name.
fn push_text(names: &mut Vec<Vec<Part>>, text: &str) {
    for (number, piece) in text.split(is_separator).enumerate() {
        if number > 0 {
            names.push(Vec::new());
        }
        if let Some(name) = names.last_mut().filter(|_| !piece.is_empty()) {
            name.push(Part::Text(piece.to_owned()));
        }
    }
}

fn check_value(key: &str, value: &str) -> Result<(), BadName> {
    let reason = if value.is_empty() {
        "it is empty"
    } else if value.contains(['/', '\\']) || (cfg!(windows) && value.contains(':')) {
        "it contains a path separator"
    } else if value.contains(char::is_control) || escape::name(value) != value {
        "it contains a control or invisible character"
    } else if value == ".." {
        "it refers to another directory"
    } else {
        return Ok(());
    };
    Err(BadName { name: value.to_owned(), key: Some(key.to_owned()), reason })
}

#[cfg(test)]
mod tests {
    use tercet::tgm::GlobalMetadata;

    use super::*;

    fn metadata(pairs: &[(&str, &str)]) -> GlobalMetadata {
        let mut metadata = GlobalMetadata::default();
        metadata.extra.extend(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())));
        metadata
    }

    fn expand(template: &str, pairs: &[(&str, &str)]) -> Result<String, String> {
        let template = Template::parse(Path::new(template)).unwrap().unwrap();
        let metadata = metadata(pairs);
        let expanded = template.expand(&Row::of_metadata(&metadata, &[])).map_err(|_| "lookup".to_owned())?;
        let path = expanded.map_err(|reason| reason.to_string())?;
        Ok(path.to_str().unwrap().to_owned())
    }

    #[test]
    fn placeholders_are_replaced_by_values() {
        let pairs = [("a", "2t"), ("b", "6")];
        for (template, path) in [
            ("[a].tgm", "2t.tgm"),
            ("out/[a]_[b].tgm", "out/2t_6.tgm"),
            ("/abs/[a]/x_[b]", "/abs/2t/x_6"),
            ("../[a]", "../2t"),
            ("[a]//[b]", "2t/6"),
            ("x]y[version]", "x]y3"),
        ] {
            assert_eq!(expand(template, &pairs), Ok(path.to_owned()), "{template}");
        }
    }

    #[test]
    fn missing_keys_are_errors() {
        let refused = expand("x-[nosuch].tgm", &[("a", "1")]).unwrap_err();
        assert_eq!(refused, "no key `nosuch` for the file name");
    }

    #[test]
    fn values_are_not_expanded_again() {
        let pairs = [("a", "[a]"), ("b", "[c]"), ("c", "x")];
        assert_eq!(expand("[a]-[b]", &pairs), Ok("[a]-[c]".to_owned()));
    }

    #[test]
    fn values_with_path_components_are_rejected() {
        for value in ["", "../x", "/etc/x", "a/b", "a\\b", "..", "a\0b", "a\nb", "a\u{202e}b", "\u{200b}"] {
            for template in ["out/[a].tgm", "out/[a]", "[a]/x.tgm"] {
                let refused = expand(template, &[("a", value)]);
                assert!(refused.is_err_and(|reason| reason.contains("`a`")), "{template} with {value:?}");
            }
        }
        let dots = [("a", "."), ("b", ".")];
        for template in ["[a]", "[a][b]", "x/[a]/[a][b]", "x/[a].", "[c]/..", "[c]/./x"] {
            assert!(expand(template, &dots).is_err(), "{template}");
        }
        assert_eq!(expand("[a]x", &dots), Ok(".x".to_owned()));
    }

    #[test]
    fn paths_without_placeholders_are_paths() {
        assert!(Template::parse(Path::new("out.tgm")).unwrap().is_none());
        assert!(Template::parse(Path::new("out].tgm")).unwrap().is_none());
        for wrong in ["out[a.tgm", "out[].tgm", "[a", "[a]/", "[a]//"] {
            assert!(Template::parse(Path::new(wrong)).is_err(), "{wrong}");
        }
    }
}
