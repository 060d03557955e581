//! Levels: types of surfaces of both editions under the names that other programs use.

/// The level of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    pub(super) kind: LevelKind,
    /// The value in the units of the kind; 0 if there is none.
    pub(super) value: f64,
    /// The value of the second surface of a layer.
    pub(super) bottom: Option<f64>,
}

/// The type of a level: that of its first and second surface in edition 2, with 255 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LevelKind {
    pub(super) first: u8,
    pub(super) second: u8,
}

/// Whether a dimension has the name of a type of levels.
pub(crate) fn is_level_name(name: &str) -> bool {
    LevelKind::from_name(name).is_some() || name.strip_prefix("level_").is_some_and(is_numbers)
}

/// Numbers with `_` between them: `105`, `105_255`.
fn is_numbers(text: &str) -> bool {
    text.split('_').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// In place of a second surface: a type that edition 2 does not have.
const EDITION1: u8 = 254;

struct Row {
    kind: (u8, u8),
    /// The type in edition 1 and the value of one unit of it in units of this row.
    edition1: Option<(u8, f64)>,
    name: &'static str,
    units: &'static str,
    /// The value of one unit in edition 2 in units of this row.
    unit: f64,
}

const fn row(
    kind: (u8, u8),
    edition1: Option<(u8, f64)>,
    name: &'static str,
    units: &'static str,
    unit: f64,
) -> Row {
    Row { kind, edition1, name, units, unit }
}

const ROWS: &[Row] = &[
    row((1, 255), Some((1, 0.0)), "surface", "1", 1.0),
    row((2, 255), Some((2, 0.0)), "cloudBase", "1", 1.0),
    row((3, 255), Some((3, 0.0)), "cloudTop", "1", 1.0),
    row((4, 255), Some((4, 0.0)), "isothermZero", "1", 1.0),
    row((5, 255), Some((5, 0.0)), "adiabaticCondensation", "1", 1.0),
    row((6, 255), Some((6, 0.0)), "maxWind", "1", 1.0),
    row((7, 255), Some((7, 0.0)), "tropopause", "1", 1.0),
    row((8, 255), Some((8, 0.0)), "nominalTop", "1", 1.0),
    row((9, 255), Some((9, 0.0)), "seaBottom", "1", 1.0),
    row((10, 255), Some((200, 0.0)), "atmosphere", "1", 1.0),
    row((200, 255), None, "entireAtmosphere", "1", 1.0),
    row((201, 255), Some((201, 0.0)), "entireOcean", "1", 1.0),
    row((1, 8), None, "entireAtmosphere", "1", 1.0),
    row((20, 255), None, "isothermal", "K", 1.0),
    row((100, 255), Some((100, 1.0)), "isobaricInhPa", "hPa", 0.01),
    row((100, 100), Some((101, 10.0)), "isobaricLayer", "hPa", 0.01),
    row((101, 255), Some((102, 0.0)), "meanSea", "1", 1.0),
    row((102, 255), Some((103, 1.0)), "heightAboveSea", "m", 1.0),
    row((102, 102), Some((104, 100.0)), "heightAboveSeaLayer", "m", 1.0),
    row((103, 255), Some((105, 1.0)), "heightAboveGround", "m", 1.0),
    row((103, 103), Some((106, 100.0)), "heightAboveGroundLayer", "m", 1.0),
    row((104, 255), Some((107, 0.0001)), "sigma", "1", 1.0),
    row((104, 104), Some((108, 0.01)), "sigmaLayer", "1", 1.0),
    row((105, 255), Some((109, 1.0)), "hybrid", "1", 1.0),
    row((105, 105), Some((110, 1.0)), "hybridLayer", "1", 1.0),
    row((106, 255), Some((111, 0.01)), "depthBelowLand", "m", 1.0),
    row((106, 106), Some((112, 0.01)), "depthBelowLandLayer", "m", 1.0),
    row((107, 255), Some((113, 1.0)), "theta", "K", 1.0),
    row((108, 255), Some((115, 1.0)), "pressureFromGround", "hPa", 0.01),
    row((108, 108), Some((116, 1.0)), "pressureFromGroundLayer", "hPa", 0.01),
    row((109, 255), Some((117, 1e-9)), "potentialVorticity", "K m2 kg-1 s-1", 1.0),
    row((111, 255), Some((119, 0.0001)), "eta", "1", 1.0),
    row((118, 255), None, "hybridHeight", "1", 1.0),
    row((150, 255), None, "generalVertical", "1", 1.0),
    row((150, 150), None, "generalVerticalLayer", "1", 1.0),
    row((151, 255), None, "soil", "1", 1.0),
    row((151, 151), None, "soilLayer", "1", 1.0),
    row((152, 255), None, "seaIceLayer", "1", 1.0),
    row((160, 255), Some((160, 1.0)), "depthBelowSea", "m", 1.0),
    row((160, 160), None, "depthBelowSeaLayer", "m", 1.0),
    row((168, 255), None, "oceanModel", "1", 1.0),
    row((168, 168), None, "oceanModelLayer", "1", 1.0),
];

impl LevelKind {
    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.kind == (self.first, self.second))
    }

    /// The name.
    pub(super) fn name(self) -> String {
        match (self.row(), self.second) {
            (Some(row), _) => row.name.to_owned(),
            (None, 255 | EDITION1) => format!("level_{}", self.first),
            (None, second) => format!("level_{}_{second}", self.first),
        }
    }

    /// The units of values.
    pub(super) fn units(self) -> &'static str {
        self.row().map_or("1", |row| row.units)
    }

    /// The kind with a name, in edition 2.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.name == name)?;
        Some(Self { first: row.kind.0, second: row.kind.1 })
    }

    /// A value in units of edition 2.
    pub(super) fn to_edition2(self, value: f64) -> f64 {
        self.row().map_or(value, |row| value / row.unit)
    }
}

impl Level {
    /// Two surfaces of edition 2.
    pub(super) fn edition2(first: (u8, Option<f64>), second: (u8, Option<f64>)) -> Self {
        let kind = LevelKind { first: first.0, second: second.0 };
        let unit = kind.row().map_or(1.0, |row| row.unit);
        // Divided by a power of ten, not multiplied by a fraction: 85000 Pa are 850 hPa.
        let value = |value: f64| if unit < 1.0 { value / (1.0 / unit) } else { value };
        let bottom = second.1.filter(|_| second.0 != 255).map(value);
        Self { kind, value: first.1.map_or(0.0, value), bottom }
    }

    /// The level of edition 1: its type and two octets.
    pub(super) fn edition1(number: u8, octets: [u8; 2]) -> Self {
        let whole = f64::from(u16::from_be_bytes(octets));
        let (top, bottom) = (f64::from(octets[0]), f64::from(octets[1]));
        let found = ROWS.iter().find(|row| row.edition1.is_some_and(|(kind, _)| kind == number));
        match found {
            Some(row) => {
                let unit = row.edition1.map_or(1.0, |(_, unit)| unit);
                let scaled = |value: f64| {
                    if unit > 0.0 && unit < 1.0 { value / (1.0 / unit).round() } else { value * unit }
                };
                let kind = LevelKind { first: row.kind.0, second: row.kind.1 };
                if row.kind.1 == 255 || row.kind == (1, 8) {
                    Self { kind, value: scaled(whole), bottom: None }
                } else {
                    Self { kind, value: scaled(top), bottom: Some(scaled(bottom)) }
                }
            }
            None if number == 125 => {
                let kind = LevelKind { first: 103, second: 255 };
                Self { kind, value: whole / 100.0, bottom: None }
            }
            None if number == 210 => {
                Self { kind: LevelKind { first: 100, second: 255 }, value: whole / 100.0, bottom: None }
            }
            None => Self { kind: LevelKind { first: number, second: EDITION1 }, value: whole, bottom: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_editions_have_the_same_levels() {
        let a = Level::edition1(100, 850u16.to_be_bytes());
        assert_eq!(a, Level::edition2((100, Some(85000.0)), (255, None)));
        assert_eq!((a.kind.name().as_str(), a.kind.units(), a.value), ("isobaricInhPa", "hPa", 850.0));
        let soil = Level::edition1(112, [7, 28]);
        assert_eq!(soil, Level::edition2((106, Some(0.07)), (106, Some(0.28))));
        assert_eq!(Level::edition1(105, [0, 2]), Level::edition2((103, Some(2.0)), (255, None)));
        assert_eq!(LevelKind::from_name("isobaricInhPa").map(|kind| kind.to_edition2(850.0)), Some(85000.0));
        assert_eq!(LevelKind { first: 77, second: 255 }.name(), "level_77");
        for name in ["hybrid", "theta", "depthBelowLandLayer", "level_77", "level_77_78"] {
            assert!(is_level_name(name), "{name}");
        }
        assert!(!is_level_name("latitude") && !is_level_name("level_") && !is_level_name("level_a"));
    }
}
