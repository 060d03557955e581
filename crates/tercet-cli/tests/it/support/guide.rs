//! Commands and expected output of guides.

/// The commands of a guide, each with its expected lines.
pub(crate) fn commands(guide: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in guide.replace("\\\n", "").lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside {
            if let Some(command) = line.strip_prefix("$ ") {
                found.push((command.to_owned(), Vec::new()));
            } else if let Some((_, expected)) = found.last_mut() {
                expected.push(line.to_owned());
            }
        }
    }
    found
}

/// Whether lines match; `…` matches any number of lines.
pub(crate) fn matches(expected: &[String], lines: &[&str]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "…" => (0..=lines.len()).any(|n| matches(rest, &lines[n..])),
        Some((first, rest)) => {
            lines.split_first().is_some_and(|(line, more)| line == first && matches(rest, more))
        }
    }
}
