//! [`Readable`]: a source without the variables that cannot be read.

use std::sync::Mutex;

use tercet_core::{Class, Diagnostic as _};

use super::model::{AttrData, Header};
use super::source::{ArraySource, ZstdChunks};
use crate::Error;

/// A variable that cannot be read, and the reason.
pub(super) type Unreadable = (usize, String);

/// A source without some of its variables, which its header lists as unreadable.
pub(super) struct Readable<'s> {
    source: &'s dyn ArraySource,
    header: Header,
    /// The variables of the source that are left.
    kept: Vec<usize>,
}

impl<'s> Readable<'s> {
    pub(super) fn new(source: &'s dyn ArraySource, lost: &[Unreadable]) -> Self {
        let input = source.header();
        let is_lost = |number: usize| lost.iter().any(|(found, _)| *found == number);
        let kept: Vec<usize> = (0..input.variables.len()).filter(|number| !is_lost(*number)).collect();
        let mut header = input.clone();
        header.variables = kept.iter().map(|number| input.variables[*number].clone()).collect();
        let name = |number: usize| input.variables[number].name.clone();
        header.unreadable.extend(lost.iter().map(|(number, reason)| (name(*number), reason.clone())));
        Self { source, header, kept }
    }

    /// Whether a variable is left that is not a coordinate, bounds or grid mapping of others.
    pub(super) fn has_data(&self) -> bool {
        let input = self.source.header();
        let texts = input.variables.iter().flat_map(|variable| {
            ["coordinates", "grid_mapping"].map(|name| variable.attr(name).and_then(AttrData::as_text))
        });
        let referred: Vec<&str> = texts.flatten().flat_map(str::split_whitespace).collect();
        self.header.variables.iter().any(|variable| {
            let name = variable.name.as_str();
            variable.dims != [name] && !input.is_bounds(name) && !referred.contains(&name)
        })
    }

    /// The number of a variable in the source.
    pub(super) fn original(&self, variable: usize) -> usize {
        self.kept[variable]
    }
}

/// Whether an error is one of the values of a variable, not of the system, a limit or the request.
pub(super) fn is_unreadable(error: &Error) -> bool {
    matches!(error.class(), Class::Malformed | Class::Corrupt | Class::Unsupported)
}

/// Records the first variable of a source that cannot be read.
#[derive(Debug, Default)]
pub(super) struct ReadFailures(Mutex<Option<Unreadable>>);

impl ReadFailures {
    /// Passes the result of a read on.
    pub(super) fn check<T>(&self, variable: usize, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &result
            && is_unreadable(error)
        {
            let mut first = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            first.get_or_insert_with(|| (variable, error.kind().to_string()));
        }
        result
    }

    pub(super) fn into_first(self) -> Option<Unreadable> {
        self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl ArraySource for Readable<'_> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn read_box(&self, variable: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        self.source.read_box(self.kept[variable], start, extents, out)
    }

    fn read_strings(&self, variable: usize) -> Result<Vec<String>, Error> {
        self.source.read_strings(self.kept[variable])
    }

    fn is_chunked(&self, variable: usize) -> bool {
        self.source.is_chunked(self.kept[variable])
    }

    fn zstd(&self, variable: usize) -> Option<ZstdChunks> {
        self.source.zstd(self.kept[variable])
    }

    fn stored_chunk(&self, variable: usize, coords: &[u64]) -> Result<Option<Vec<u8>>, Error> {
        self.source.stored_chunk(self.kept[variable], coords)
    }

    fn cast_error(&self, variable: usize) -> Option<f64> {
        self.source.cast_error(self.kept[variable])
    }
}
