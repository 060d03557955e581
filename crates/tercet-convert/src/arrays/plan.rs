//! The plan of a conversion: the structure of the output, and how each variable gets there.
//!
//! One function adapts a structure to any format: a [`Rules`] value holds what the format supports.

use tercet_core::DType;

use super::fidelity::{Fate, Fidelity, Subject};
use super::model::{Attr, AttrData, Dim, Header, Kind, Variable};
use super::output::{OutputFormat, Rules};
use super::readable::is_unreadable;
use super::source::ArraySource;
use crate::Error;

/// The plan of a conversion.
#[derive(Debug)]
pub struct Plan {
    /// The format of the output.
    pub format: OutputFormat,
    /// The structure of the output.
    pub header: Header,
    /// How each variable of the output gets its values.
    pub(crate) transfers: Vec<Transfer>,
    /// What is kept, changed and not carried.
    pub fidelity: Fidelity,
}

/// How a variable gets its values.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    /// The variable of the source.
    pub(crate) source: usize,
    /// The change of the values.
    pub(crate) how: Conversion,
}

/// The change of values on the way to the output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Conversion {
    /// The same bytes. The output may have one more axis: of a scalar, or of the parts of complex numbers.
    Same,
    /// Another element type.
    Cast(DType),
    /// Strings, as they are.
    Strings(Vec<String>),
    /// Strings to characters with one more axis of this length.
    ToChars(Vec<String>, usize),
    /// Strings to the labels of a dimension.
    Labels(Vec<String>),
}

/// The longest text of all strings of a variable.
const MAX_STRING_BYTES: u64 = 1 << 30;

/// Plans the conversion of a source to a format. Reads strings, but no numbers.
pub(crate) fn plan(source: &dyn ArraySource, format: OutputFormat) -> Result<Plan, Error> {
    let input = source.header();
    let format = format.resolved(input);
    let rules = format.rules();
    let mut fidelity = Fidelity::default();
    let mut header = Header { format: format.name().to_owned(), ..Header::default() };
    let mut names = NameTable::new(&rules);
    for (name, reason) in &input.unreadable {
        let subject = if name.contains(':') { Subject::Attribute } else { Subject::Variable };
        fidelity.add(subject, name, Fate::NotCarried, format!("unreadable: {reason}"));
    }
    dims(input, &rules, &mut header, &mut names, &mut fidelity);
    header.attrs = attributes("", &input.attrs, None, &rules, &mut fidelity);
    let mut transfers = Vec::new();
    for (number, variable) in input.variables.iter().enumerate() {
        let adapted = adapt(source, number, &rules, &mut header, &mut names)?;
        match adapted {
            Err(reason) => fidelity.add(Subject::Variable, &variable.name, Fate::NotCarried, reason),
            Ok((mut target, how, mut changes)) => {
                let notes = input.notes.iter().filter(|(name, _)| *name == variable.name);
                changes.extend(notes.map(|(_, note)| note.clone()));
                let fate = if changes.is_empty() { Fate::Exact } else { Fate::Changed };
                let detail = (!changes.is_empty()).then(|| changes.join("; "));
                fidelity.add(Subject::Variable, &variable.name, fate, detail);
                target.attrs = match &how {
                    Conversion::Labels(_) => {
                        for attr in &variable.attrs {
                            let name = format!("{}:{}", variable.name, attr.name);
                            let why = "labels have no attributes".to_owned();
                            fidelity.add(Subject::Attribute, &name, Fate::NotCarried, why);
                        }
                        Vec::new()
                    }
                    _ => attributes(&variable.name, &variable.attrs, target.dtype(), &rules, &mut fidelity),
                };
                if matches!(how, Conversion::ToChars(..))
                    && target.attr("_Encoding").is_none()
                    && rules.attributes
                {
                    target.attrs.push(Attr::text("_Encoding", "utf-8"));
                }
                header.variables.push(target);
                transfers.push(Transfer { source: number, how });
            }
        }
    }
    // Dimensions that no variable uses are kept by formats that have dimensions.
    if !rules.has_dims {
        header.dims.clear();
    }
    Ok(Plan { format, header, transfers, fidelity })
}

/// Adapts dimensions: their names, and which are unlimited.
fn dims(input: &Header, rules: &Rules, header: &mut Header, names: &mut NameTable, fidelity: &mut Fidelity) {
    // A format with one unlimited dimension requires it to be the first of its variables.
    let is_first = |dim: &Dim| {
        input.variables.iter().all(|variable| !variable.dims[..].iter().skip(1).any(|name| *name == dim.name))
    };
    let mut used_unlimited = 0;
    for dim in &input.dims {
        let name = names.dim(&dim.name);
        if name != dim.name && rules.has_dims {
            let how = format!("renamed to `{name}`: {} names have no `/`", rules.name);
            fidelity.add(Subject::Dimension, &dim.name, Fate::Changed, how);
        }
        let fits = used_unlimited < rules.max_unlimited && (rules.max_unlimited > 1 || is_first(dim));
        let is_void = dim.len == 0 && !rules.empty_dims;
        let unlimited = fits && (dim.unlimited || is_void && !input.dims.iter().any(|dim| dim.unlimited));
        if is_void && !unlimited {
            let how = format!("{} has no dimensions of length 0 but one that is unlimited", rules.name);
            fidelity.add(Subject::Dimension, &dim.name, Fate::NotCarried, how);
            continue;
        }
        if unlimited && !dim.unlimited {
            let how = format!("unlimited: {} has no other dimensions of length 0", rules.name);
            fidelity.add(Subject::Dimension, &dim.name, Fate::Changed, how);
        }
        used_unlimited += usize::from(unlimited);
        if dim.unlimited && !unlimited && rules.has_dims {
            let how = format!("no longer unlimited: {}", rules.unlimited_reason);
            fidelity.add(Subject::Dimension, &dim.name, Fate::Changed, how);
        }
        header.dims.push(Dim { name, len: dim.len, unlimited });
    }
}

type Adapted = Result<(Variable, Conversion, Vec<String>), String>;

/// Adapts a variable: its name, type and shape.
fn adapt(
    source: &dyn ArraySource,
    number: usize,
    rules: &Rules,
    header: &mut Header,
    names: &mut NameTable,
) -> Result<Adapted, Error> {
    let variable = &source.header().variables[number];
    let mut target = variable.clone();
    let mut changes = Vec::new();
    target.dims = variable.dims.iter().map(|dim| names.dim(dim)).collect();
    if !rules.empty_dims
        && let Some(lost) = target.dims.iter().find(|dim| header.dim(dim).is_none())
    {
        return Ok(Err(format!("its dimension `{lost}` has length 0, which {} cannot store", rules.name)));
    }
    let how = match variable.kind {
        Kind::String => {
            let strings = match source.read_strings(number) {
                Err(error) if is_unreadable(&error) => {
                    return Ok(Err(format!("unreadable: {}", error.kind())));
                }
                strings => strings?,
            };
            let total: u64 = strings.iter().map(|text| text.len() as u64).sum();
            if total > MAX_STRING_BYTES {
                return Ok(Err(format!(
                    "its strings have {total} bytes; at most {MAX_STRING_BYTES} are converted"
                )));
            }
            if rules.labels && variable.dims.len() == 1 && variable.dims[0] == variable.name {
                if strings.iter().any(|text| text.is_empty() || text.len() > rules.max_label) {
                    return Ok(Err(format!("a label is empty or longer than {} bytes", rules.max_label)));
                }
                Conversion::Labels(strings)
            } else if rules.strings {
                Conversion::Strings(strings)
            } else if rules.chars.is_some() {
                let width = strings.iter().map(String::len).max().unwrap_or(0).max(1);
                changes.push(format!("strings stored as characters, {width} bytes each"));
                target.kind = Kind::Char;
                append_axis(&mut target, header, &format!("string{width}"), width as u64);
                Conversion::ToChars(strings, width)
            } else {
                return Ok(Err(format!("{} has no strings", rules.name)));
            }
        }
        Kind::Char => match rules.chars {
            Some(Kind::Char) => Conversion::Same,
            // The file records that these are characters.
            Some(kind) => {
                if !rules.restores_types {
                    changes.push("characters stored as uint8".to_owned());
                }
                target.kind = kind;
                Conversion::Same
            }
            None => return Ok(Err(format!("{} has no characters", rules.name))),
        },
        Kind::Number(dtype) => {
            let stored = (rules.stored_type)(dtype);
            let Some(stored) = stored else { return Ok(Err(format!("{} has no {dtype}", rules.name))) };
            target.kind = Kind::Number(stored);
            adapt_number(dtype, stored, rules, (&mut target, header), &mut changes)
        }
    };
    if matches!(how, Conversion::ToChars(..)) && rules.chars != Some(Kind::Char) {
        target.kind = rules.chars.unwrap_or(Kind::Char);
    }
    // Labels are not an array.
    if !matches!(how, Conversion::Labels(_)) {
        if target.shape.len() > rules.max_rank {
            return Ok(Err(format!(
                "it has {} axes; {} allows {}",
                target.shape.len(),
                rules.name,
                rules.max_rank
            )));
        }
        if !rules.empty && target.shape.contains(&0) {
            return Ok(Err(format!("it has no elements, which {} cannot store", rules.name)));
        }
        if !rules.scalars && target.shape.is_empty() {
            append_axis(&mut target, header, "scalar", 1);
        }
    }
    let name = names.variable(&variable.name);
    if name != variable.name {
        changes.push(format!("renamed to `{name}`: {} names have no `/`", rules.name));
        target.name = name;
    }
    if matches!(how, Conversion::Labels(_)) {
        target.kind = Kind::String;
    }
    target.chunks = None;
    Ok(Ok((target, how, changes)))
}

/// How numbers are stored as another type.
fn adapt_number(
    dtype: DType,
    stored: DType,
    rules: &Rules,
    (target, header): (&mut Variable, &mut Header),
    changes: &mut Vec<String>,
) -> Conversion {
    match dtype {
        DType::C64 | DType::C128 if stored != dtype => {
            if !rules.restores_types {
                changes.push(format!("{dtype} stored as pairs of {stored}"));
            }
            append_axis(target, header, "complex", 2);
            Conversion::Same
        }
        _ if stored == dtype => Conversion::Same,
        DType::Bool if stored.size() == Some(1) => {
            if !rules.restores_types {
                changes.push(format!("bool stored as {stored}"));
            }
            Conversion::Same
        }
        _ => {
            if !rules.restores_types || dtype == DType::BF16 {
                changes.push(format!("{dtype} stored as {stored}"));
            }
            Conversion::Cast(stored)
        }
    }
}

/// Adds an axis at the end. Its dimension is shared by variables.
fn append_axis(variable: &mut Variable, header: &mut Header, dim: &str, len: u64) {
    let mut name = dim.to_owned();
    while header.dim(&name).is_some_and(|found| found.len != len || found.unlimited) {
        name.push('_');
    }
    if header.dim(&name).is_none() {
        header.dims.push(Dim { name: name.clone(), len, unlimited: false });
    }
    variable.dims.push(name);
    variable.shape.push(len);
}

/// Adapts attributes.
fn attributes(
    of: &str,
    attrs: &[Attr],
    dtype: Option<DType>,
    rules: &Rules,
    fidelity: &mut Fidelity,
) -> Vec<Attr> {
    let mut adapted = Vec::new();
    for attr in attrs {
        let name = if of.is_empty() { attr.name.clone() } else { format!("{of}:{}", attr.name) };
        if !rules.attributes {
            let why = format!("{} has no attributes", rules.name);
            fidelity.add(Subject::Attribute, &name, Fate::NotCarried, why);
            continue;
        }
        if let (true, "_FillValue", AttrData::Numbers(numbers), Some(dtype)) =
            (rules.typed_fill, attr.name.as_str(), &attr.value, dtype)
            && numbers.converted(dtype).is_none()
        {
            let why = format!("{} is no {dtype}, and never a value of this variable", attr.value.to_text());
            fidelity.add(Subject::Attribute, &name, Fate::NotCarried, why);
            continue;
        }
        let (value, how) = (rules.attribute)(&attr.name, &attr.value, dtype);
        if let Some(how) = how {
            fidelity.add(Subject::Attribute, &name, Fate::Changed, how);
        }
        let mut target = attr.name.clone();
        if !rules.slashes && target.contains('/') {
            target = target.replace('/', "_");
            let how = format!("renamed to `{target}`: {} names have no `/`", rules.name);
            fidelity.add(Subject::Attribute, &name, Fate::Changed, how);
        }
        adapted.push(Attr { name: target, value });
    }
    adapted
}

/// Names of the output: unique, and without `/` if the format has none.
struct NameTable {
    slashes: bool,
    dims: Vec<(String, String)>,
    variables: Vec<String>,
}

impl NameTable {
    fn new(rules: &Rules) -> Self {
        Self { slashes: rules.slashes, dims: Vec::new(), variables: Vec::new() }
    }

    fn unique(&self, name: &str, is_taken: impl Fn(&str) -> bool) -> String {
        let mut unique = if self.slashes { name.to_owned() } else { name.replace('/', "_") };
        while is_taken(&unique) {
            unique.push('_');
        }
        unique
    }

    fn dim(&mut self, name: &str) -> String {
        if let Some((_, target)) = self.dims.iter().find(|(source, _)| source == name) {
            return target.clone();
        }
        let target = self.unique(name, |name| self.dims.iter().any(|(_, target)| target == name));
        self.dims.push((name.to_owned(), target.clone()));
        target
    }

    fn variable(&mut self, name: &str) -> String {
        let target = self.unique(name, |name| self.variables.iter().any(|found| found == name));
        self.variables.push(target.clone());
        target
    }
}

/// An attribute as a string, and what changes; numbers keep their type.
pub(crate) fn as_text(value: &AttrData) -> (AttrData, Option<String>) {
    match value {
        AttrData::Text(_) | AttrData::Numbers(_) => (value.clone(), None),
        AttrData::Strings(texts) => {
            (AttrData::Text(texts.join("\n")), Some("string list stored as lines".to_owned()))
        }
        AttrData::Json(_) => (AttrData::Text(value.to_text()), Some("JSON stored as a string".to_owned())),
    }
}
