//! Patterns of file names, with the rules of `.gitignore`.
//!
//! | pattern | matches |
//! |---|---|
//! | `*.log` | files and directories of this name anywhere below |
//! | `/build`, `a/b` | the path from the directory of the patterns |
//! | `build/` | directories |
//! | `**/x`, `a/**`, `a/**/b` | any number of directories in place of `**` |
//! | `!x` | not what an earlier pattern matches |

/// Patterns of one `.gitignore` file, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns {
    patterns: Vec<Pattern>,
}

#[derive(Clone, Debug)]
struct Pattern {
    /// The names of a path, or `**`.
    names: Vec<Vec<char>>,
    is_negated: bool,
    only_directories: bool,
}

impl Patterns {
    /// The patterns of a file; lines that are none are skipped.
    pub(super) fn parse(text: &str) -> Self {
        let mut out = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            // A backslash keeps trailing spaces.
            let line = if line.ends_with("\\ ") { line } else { line.trim_end() };
            // Invalid patterns match nothing.
            let _ = out.push(line);
        }
        out
    }

    /// Adds a pattern.
    pub(super) fn push(&mut self, pattern: &str) -> Result<(), &'static str> {
        let (is_negated, pattern) = match pattern.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        let only_directories = pattern.ends_with('/');
        let pattern = pattern.trim_end_matches('/');
        if pattern.is_empty() {
            return Err("it is empty");
        }
        let is_anchored = pattern.contains('/');
        let mut names: Vec<Vec<char>> = Vec::new();
        if !is_anchored {
            names.push(RECURSIVE.to_vec());
        }
        for name in pattern.split('/').filter(|name| !name.is_empty()) {
            let name: Vec<char> = name.chars().collect();
            if has_open_bracket(&name) {
                return Err("unmatched `[`");
            }
            if name != RECURSIVE || names.last().is_none_or(|last| *last != RECURSIVE) {
                names.push(name);
            }
        }
        self.patterns.push(Pattern { names, is_negated, only_directories });
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether the last pattern for a relative path matches it; `None` if none is about it.
    pub(super) fn matches(&self, path: &str, is_directory: bool) -> Option<bool> {
        let names: Vec<Vec<char>> = path.split('/').map(|name| name.chars().collect()).collect();
        let is_about = |pattern: &&Pattern| {
            (is_directory || !pattern.only_directories) && path_matches(&pattern.names, &names)
        };
        self.patterns.iter().rev().find(is_about).map(|pattern| !pattern.is_negated)
    }
}

const RECURSIVE: [char; 2] = ['*', '*'];

/// Whether a path has the names of a pattern.
fn path_matches(pattern: &[Vec<char>], path: &[Vec<char>]) -> bool {
    // Whether the patterns so far match the first names of the path, by number.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for (at, part) in pattern.iter().enumerate() {
        let mut next = vec![false; path.len() + 1];
        if *part == RECURSIVE {
            // At the end it stands for one name or more.
            let least = usize::from(at + 1 == pattern.len());
            let mut any = false;
            for end in 0..=path.len() {
                next[end] = any && least == 1;
                any |= reached[end];
                next[end] |= any && least == 0;
            }
        } else {
            for end in 1..=path.len() {
                next[end] = reached[end - 1] && name_matches(part, &path[end - 1]);
            }
        }
        reached = next;
    }
    reached[path.len()]
}

/// Whether a name matches `*`, `?`, `[…]` and letters. Goes back to the last `*` only.
fn name_matches(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        match pattern.get(at) {
            Some('*') => {
                at += 1;
                star = Some((at, read));
                continue;
            }
            None if read == name.len() => return true,
            Some(_) if read < name.len() => {
                if let Some(len) = letter_matches(&pattern[at..], name[read]) {
                    at += len;
                    read += 1;
                    continue;
                }
            }
            _ => {}
        }
        match &mut star {
            Some((after, from)) if *from < name.len() => {
                *from += 1;
                (at, read) = (*after, *from);
            }
            _ => return false,
        }
    }
}

/// The length of the first part of a pattern, if it matches a letter.
fn letter_matches(pattern: &[char], letter: char) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['\\', escaped, ..] => (*escaped == letter).then_some(2),
        ['[', ..] => {
            let len = bracket_len(pattern)?;
            let inside = &pattern[1..len - 1];
            let (is_negated, inside) = match inside {
                ['!' | '^', rest @ ..] => (true, rest),
                _ => (false, inside),
            };
            let mut found = false;
            let mut rest = inside;
            while let [first, after @ ..] = rest {
                rest = after;
                if let ['-', last, after @ ..] = rest {
                    found |= (*first..=*last).contains(&letter);
                    rest = after;
                } else {
                    found |= *first == letter;
                }
            }
            (found != is_negated).then_some(len)
        }
        [first, ..] => (*first == letter).then_some(1),
        [] => None,
    }
}

/// The length of `[…]`; a `]` right after the start is a letter.
fn bracket_len(pattern: &[char]) -> Option<usize> {
    let start = if matches!(pattern.get(1), Some('!' | '^')) { 3 } else { 2 };
    let end = pattern.get(start..)?.iter().position(|letter| *letter == ']')?;
    Some(start + end + 1)
}

fn has_open_bracket(name: &[char]) -> bool {
    let mut at = 0;
    while let Some(letter) = name.get(at) {
        match letter {
            '\\' => at += 2,
            '[' => match bracket_len(&name[at..]) {
                Some(len) => at += len,
                None => return true,
            },
            _ => at += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_as_in_git() {
        let cases = [
            ("*.log", "a.log", false, Some(true)),
            ("*.log", "x/y/a.log", false, Some(true)),
            ("*.log", "a.log.txt", false, None),
            ("/a.txt", "a.txt", false, Some(true)),
            ("/a.txt", "x/a.txt", false, None),
            ("x/a.txt", "x/a.txt", false, Some(true)),
            ("x/a.txt", "y/x/a.txt", false, None),
            ("build/", "build", true, Some(true)),
            ("build/", "build", false, None),
            ("build/", "a/build", true, Some(true)),
            ("**/x", "x", false, Some(true)),
            ("**/x", "a/b/x", false, Some(true)),
            ("a/**", "a", true, None),
            ("a/**", "a/b/c", false, Some(true)),
            ("a/**/b", "a/b", false, Some(true)),
            ("a/**/b", "a/x/y/b", false, Some(true)),
            ("a/**/b", "a/x/y/c", false, None),
            ("[a-c]?.txt", "bz.txt", false, Some(true)),
            ("[!a-c]?.txt", "bz.txt", false, None),
            ("[]]", "]", false, Some(true)),
            ("\\*.txt", "*.txt", false, Some(true)),
            ("\\*.txt", "a.txt", false, None),
            ("a*b*c", "axxbxxbc", false, Some(true)),
            ("a*b*c", "axxbxxcb", false, None),
            ("日*", "日本.txt", false, Some(true)),
        ];
        for (pattern, path, is_directory, expected) in cases {
            let mut patterns = Patterns::default();
            patterns.push(pattern).unwrap();
            assert_eq!(patterns.matches(path, is_directory), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn the_last_pattern_of_a_file_decides() {
        let patterns = Patterns::parse("# comment\n*.txt\n\n!keep.txt \nkeep.txt/\n[\n");
        assert_eq!(patterns.patterns.len(), 3);
        assert_eq!(patterns.matches("a.txt", false), Some(true));
        assert_eq!(patterns.matches("keep.txt", false), Some(false));
        assert_eq!(patterns.matches("a.md", false), None);
    }
}
