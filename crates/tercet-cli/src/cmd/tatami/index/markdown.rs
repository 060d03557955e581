//! The title of a text in Markdown. The rest is searched as it is: its signs stand between words anyway.

/// The first heading.
pub(super) fn title(text: &str) -> Option<&str> {
    let heading = text.lines().find_map(|line| line.trim_start().strip_prefix("# "))?;
    let heading = heading.trim().trim_end_matches('#').trim();
    (!heading.is_empty()).then_some(heading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_heading_is_the_title() {
        assert_eq!(title("text\n# One  #\n# Two"), Some("One"));
        assert_eq!(title("## Two\n#!shebang\n#"), None);
    }
}
