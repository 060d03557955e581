//! Queries on a missing dataset: suggestions.

use tercet::core::escape;
use tercet::tet::File;

use crate::failure::Failure;
use crate::ui::{GOOD, Ui, paint};

/// Names printed.
const SHOWN: usize = 8;
/// Limits of the name comparison, so that it is fast for any file.
const NAMES_COMPARED: usize = 10_000;
const CHARS_COMPARED: usize = 64;

/// Prints the available datasets, similar names first.
pub(super) fn hint(asked: &str, file: &File, out: &mut Ui) -> Result<(), Failure> {
    let names: Vec<String> = file.datasets().map(|dataset| dataset.name().to_owned()).collect();
    let there = match &names[..] {
        [] => "the file has no datasets".to_owned(),
        names => format!("available: {}", listed(asked, names)),
    };
    let (file, asked) = (escape::name(file.name()), escape::name(asked));
    out.note(format_args!("{} {file}: no dataset `{asked}`; {there}", paint(GOOD, "hint:")))
}

fn listed(asked: &str, names: &[String]) -> String {
    let asked: String = asked.chars().take(CHARS_COMPARED).collect::<String>().to_lowercase();
    let far = |name: &String| {
        let name: String = name.chars().take(CHARS_COMPARED).collect();
        strsim::osa_distance(&asked, &name.to_lowercase())
    };
    let mut nearest: Vec<&String> = names.iter().take(NAMES_COMPARED).collect();
    nearest.sort_by_cached_key(|name| far(name));
    let shown: Vec<String> =
        nearest.iter().take(SHOWN).map(|name| format!("`{}`", escape::name(name))).collect();
    let more = names.len() - shown.len();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let names: Vec<String> = ["pressure", "T2M", "wind", "t2"].map(str::to_owned).to_vec();
        assert_eq!(listed("t2m", &names), "`T2M`, `t2`, `wind`, `pressure`");
        let many: Vec<String> = (0..20_000).map(|n| format!("dataset {n}")).collect();
        assert!(listed("dataset 7", &many).starts_with("`dataset 7`, "));
        assert!(listed("x", &many).ends_with(" and 19992 more"));
        assert_eq!(listed(&"é".repeat(1000), &["a\n".to_owned()]), "`a\\n`");
    }
}
