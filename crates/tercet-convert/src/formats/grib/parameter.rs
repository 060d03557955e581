//! Parameters: their numbers in both editions, names and units.
//!
//! `parameters.tsv` has one line per parameter, with the names of the ECMWF parameter database:
//!
//! ```text
//! id, short name, name of a CF variable, units, name, CF standard name,
//! edition 2: discipline.category.number[:first surface[:its value[:second surface[:its value[:statistic]]]]] …
//! edition 1: centre.table.number[:level type[:level]] …      98 is ECMWF; 0 means any centre, with tables 1 to 3
//! ```

use std::sync::LazyLock;

/// A parameter with a name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parameter {
    pub(super) id: u32,
    pub(super) short_name: &'static str,
    pub(super) variable: &'static str,
    pub(super) units: &'static str,
    pub(super) name: &'static str,
    pub(super) standard_name: &'static str,
    pub(super) edition2: Vec<Edition2>,
    edition1: Vec<Edition1>,
}

/// The numbers of a parameter in edition 2, and what a field must have to be this parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Edition2 {
    pub(super) numbers: (u8, u8, u8),
    pub(super) first: Option<(u8, Option<f64>)>,
    pub(super) second: Option<(u8, Option<f64>)>,
    pub(super) statistic: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Edition1 {
    centre: u16,
    table: u8,
    number: u8,
    level_type: Option<u8>,
    level: Option<f64>,
}

/// The numbers of the parameter of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Code {
    /// Centre, table, number.
    Edition1(u16, u8, u8),
    /// Discipline, category, number.
    Edition2(u8, u8, u8),
}

impl Code {
    /// The name of a parameter that is not in the table.
    pub(super) fn text(self) -> String {
        match self {
            Self::Edition1(_, table, number) => format!("{table}.{number}"),
            Self::Edition2(discipline, category, number) => format!("{discipline}.{category}.{number}"),
        }
    }
}

/// What a field is, beside the numbers of its parameter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surfaces {
    /// Type and value of the first surface; of the level in edition 1.
    pub(super) first: (u8, Option<f64>),
    pub(super) second: (u8, Option<f64>),
    pub(super) statistic: Option<u8>,
}

static TABLE: LazyLock<Vec<Parameter>> = LazyLock::new(|| parse(include_str!("parameters.tsv")));

/// All parameters.
pub(super) fn table() -> &'static [Parameter] {
    &TABLE
}

fn parse(text: &'static str) -> Vec<Parameter> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &'static str) -> Option<Parameter> {
    let mut columns = line.split('\t');
    let id = columns.next()?.parse().ok()?;
    let [short_name, variable, units, name, standard_name] =
        [(); 5].map(|()| columns.next().unwrap_or_default());
    let edition2 = columns.next()?.split(' ').filter_map(parse_edition2).collect();
    let edition1 = columns.next()?.split(' ').filter_map(parse_edition1).collect();
    Some(Parameter { id, short_name, variable, units, name, standard_name, edition2, edition1 })
}

fn parse_edition2(text: &str) -> Option<Edition2> {
    let mut parts = text.split(':');
    let mut numbers = parts.next()?.split('.').map(str::parse);
    let numbers = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    let mut surface = || -> Option<(u8, Option<f64>)> {
        let (kind, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        Some((kind.parse().ok()?, value.parse().ok()))
    };
    let (first, second) = (surface(), surface());
    Some(Edition2 { numbers, first, second, statistic: parts.next().and_then(|text| text.parse().ok()) })
}

fn parse_edition1(text: &str) -> Option<Edition1> {
    let mut parts = text.split(':');
    let mut numbers = parts.next()?.split('.');
    Some(Edition1 {
        centre: numbers.next()?.parse().ok()?,
        table: numbers.next()?.parse().ok()?,
        number: numbers.next()?.parse().ok()?,
        level_type: parts.next().and_then(|text| text.parse().ok()),
        level: parts.next().and_then(|text| text.parse().ok()),
    })
}

impl Edition2 {
    /// How many conditions a field fulfils; `None` if it does not fulfil one.
    fn matches(&self, numbers: (u8, u8, u8), surfaces: &Surfaces) -> Option<u32> {
        if self.numbers != numbers {
            return None;
        }
        let mut conditions = 0;
        let mut check = |asked: Option<(u8, Option<f64>)>, found: (u8, Option<f64>)| {
            let Some((kind, value)) = asked else { return true };
            conditions += 1 + u32::from(value.is_some());
            kind == found.0 && value.is_none_or(|value| found.1 == Some(value))
        };
        let fits = check(self.first, surfaces.first) && check(self.second, surfaces.second);
        if self.statistic.is_some() {
            conditions += 1;
        }
        (fits && self.statistic.is_none_or(|statistic| surfaces.statistic == Some(statistic)))
            .then_some(conditions)
    }
}

/// Finds the parameter of a field: the most specific definition that it fulfils.
pub(super) fn find(code: Code, surfaces: &Surfaces) -> Option<&'static Parameter> {
    let score = |parameter: &Parameter| match code {
        Code::Edition2(discipline, category, number) => {
            let numbers = (discipline, category, number);
            parameter.edition2.iter().filter_map(|row| row.matches(numbers, surfaces)).max()
        }
        Code::Edition1(centre, table, number) => parameter
            .edition1
            .iter()
            .filter(|row| {
                let same_table = if row.centre == 0 {
                    (1..=3).contains(&table)
                } else {
                    row.centre == centre && row.table == table
                };
                same_table
                    && row.number == number
                    && row.level_type.is_none_or(|kind| kind == surfaces.first.0)
                    && row.level.is_none_or(|level| surfaces.first.1 == Some(level))
            })
            .map(|row| u32::from(row.level_type.is_some()) + u32::from(row.level.is_some()))
            .max(),
    };
    // Numbers of 192 and more are those of a centre, and the table has none of them for edition 2.
    table()
        .iter()
        .filter_map(|parameter| Some((score(parameter)?, parameter)))
        .fold(None, |best: Option<(u32, &Parameter)>, (score, parameter)| match best {
            Some((other, _)) if other >= score => best,
            _ => Some((score, parameter)),
        })
        .map(|(_, parameter)| parameter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        assert_eq!(table().len(), include_str!("parameters.tsv").lines().count());
        for parameter in table() {
            assert!(!parameter.short_name.is_empty() && !parameter.units.is_empty(), "{parameter:?}");
            assert!(!parameter.edition1.is_empty() || !parameter.edition2.is_empty(), "{parameter:?}");
        }
    }

    #[test]
    fn the_most_specific_parameter_is_found() {
        let at = |kind, value| Surfaces { first: (kind, value), second: (255, None), statistic: None };
        let name = |code, surfaces: &Surfaces| find(code, surfaces).map(|parameter| parameter.short_name);
        assert_eq!(name(Code::Edition2(0, 0, 0), &at(100, Some(85000.0))), Some("t"));
        assert_eq!(name(Code::Edition2(0, 0, 0), &at(103, Some(2.0))), Some("2t"));
        assert_eq!(name(Code::Edition2(0, 3, 0), &at(101, None)), Some("msl"));
        assert_eq!(name(Code::Edition2(0, 2, 2), &at(103, Some(10.0))), Some("10u"));
        assert_eq!(name(Code::Edition1(98, 128, 167), &at(1, None)), Some("2t"));
        assert_eq!(name(Code::Edition1(7, 2, 11), &at(105, Some(2.0))), Some("2t"));
        assert_eq!(name(Code::Edition1(7, 2, 11), &at(100, Some(500.0))), Some("t"));
        assert_eq!(name(Code::Edition2(0, 250, 250), &at(1, None)), None);
    }
}
