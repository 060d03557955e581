//! Hints: what to do about an error, as a value that each front end words for its users.

use std::borrow::Cow;
use std::fmt;

/// What to do about an error.
///
/// A library cannot know the flags of a command line or the keyword arguments of a Python function, so a hint is a
/// value. [`Display`](fmt::Display) words it for users of the library; a front end matches on it and names its own
/// options.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Allow the output to replace an existing file.
    Overwrite,
    /// Verify the file: the report lists every problem.
    Verify,
    /// Verify the file and decode every value.
    VerifyDeep,
    /// Verify the file, then repair it.
    Repair,
    /// Repair the file by cutting a damaged footer off.
    RepairFooter,
    /// Copy the intact parts into a new file.
    Salvage,
    /// Copy the intact records of a damaged collection manifest.
    SalvageManifest,
    /// Read without checking checksums.
    SkipChecksums,
    /// Raise the limit that was exceeded.
    RaiseLimit,
    /// Allow NaN values.
    AllowNan,
    /// Allow infinite values.
    AllowInf,
    /// Choose how conflicting values are resolved.
    ConflictStrategy,
    /// Select the columns to read.
    SelectColumns,
    /// Round timestamps down to the supported resolution, or copy the raw integers.
    FloorTimestamps,
    /// Copy timestamps as raw integers.
    RawTimestamps,
    /// Allow more directories for results.
    SpillDirectories,
    /// Raise the memory budget, or write the result to a file.
    MemoryBudget,
    /// Set a fill value.
    FillValue,
    /// Allow messages after a gap to be read by number, or select them by their metadata.
    AllowGaps,
    /// Rebuild the index of the file.
    RebuildIndex,
    /// Re-encode the values with another encoding, filter or compression.
    Repack,
    /// Add the changed member to its collection again.
    UpdateMember,
    /// Convert the array of another format to a container first.
    ImportArray,
    /// Convert the table of another format to a container first.
    ImportTable,
    /// Allow stored chunks to be encoded again.
    Rechunk,
    /// Give labels for the new positions of an axis.
    AppendLabels {
        /// The axis; escaped.
        axis: Box<str>,
    },
    /// Append to more datasets.
    AppendDatasets {
        /// The names, separated by commas; escaped.
        names: Box<str>,
        /// Whether they may keep their length.
        optional: bool,
    },
    /// Rename one of two datasets with the same name.
    RenameDataset,
    /// Store a value as a string.
    StringValue,
    /// Remove the attribute.
    RemoveAttribute,
    /// Try again.
    Retry,
    /// The names that exist.
    Available {
        /// What is named: `datasets`, `columns`.
        what: &'static str,
        /// The names, separated by commas; escaped.
        names: Box<str>,
    },
    /// The nearest existing name; escaped.
    DidYouMean(Box<str>),
    /// Advice that names no option and no command.
    Text(Cow<'static, str>),
}

impl Hint {
    /// Advice that names no option and no command.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }
}

impl From<&'static str> for Hint {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overwrite => "allow the existing file to be overwritten",
            Self::Verify => "verify the file to list every problem",
            Self::VerifyDeep => "run a deep verification to list all damage",
            Self::Repair => "verify the file to see what changed, then repair it",
            Self::RepairFooter => "a repair can cut a damaged footer off",
            Self::Salvage => "salvage copies the intact parts into a new file",
            Self::SalvageManifest => "salvage keeps every intact record of the manifest",
            Self::SkipChecksums => "verify the file to list every problem, or read it without verification",
            Self::RaiseLimit => "raise the limit if the file is trusted",
            Self::AllowNan => "allow NaN values to store them in a mask",
            Self::AllowInf => "allow infinite values to store them in masks",
            Self::ConflictStrategy => "choose a conflict strategy that keeps the first or the last value",
            Self::SelectColumns => "select the other columns",
            Self::FloorTimestamps => "round timestamps down to microseconds, or copy the raw integers",
            Self::RawTimestamps => "copy the raw integers of the timestamps",
            Self::SpillDirectories => "allow the directory for results",
            Self::MemoryBudget => "raise the memory budget, or write the result to a file",
            Self::FillValue => "set the attribute `_FillValue`, or omit the filter",
            Self::AllowGaps => "select messages by metadata, or allow gaps",
            Self::RebuildIndex => "rebuild the index",
            Self::Repack => "re-encode the values with another encoding, filter or compression",
            Self::UpdateMember => "add the file to the collection again",
            Self::ImportArray => "convert it to a .tet or .tgm file first",
            Self::ImportTable => "convert it to a .tatami file first",
            Self::Rechunk => "allow the clipped chunks to be encoded again",
            Self::AppendLabels { axis } => {
                return write!(f, "give the labels of the new positions of `{axis}`");
            }
            Self::AppendDatasets { names, optional: false } => return write!(f, "append to it too: {names}"),
            Self::AppendDatasets { names, optional: true } => {
                return write!(f, "append to them too, or allow them to keep their length: {names}");
            }
            Self::RenameDataset => "rename one of the datasets",
            Self::StringValue => "store the value as a string",
            Self::RemoveAttribute => "remove the attribute",
            Self::Retry => "try again",
            Self::Available { what, names } => return write!(f, "{what}: {names}"),
            Self::DidYouMean(name) => return write!(f, "did you mean `{name}`?"),
            Self::Text(text) => text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_part_of_the_message() {
        let names = Hint::Available { what: "datasets", names: "t2m, u10".into() };
        assert_eq!(names.to_string(), "datasets: t2m, u10");
        assert_eq!(Hint::DidYouMean("t2m".into()).to_string(), "did you mean `t2m`?");
    }
}
