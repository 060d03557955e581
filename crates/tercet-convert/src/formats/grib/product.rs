//! Products: what the values of a field are, and of which time and level.

use super::level::Level;
use super::octets::{Fault, Octets};
use super::parameter::{Code, Parameter, Surfaces, find};

/// What the values of a field are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Product {
    pub(super) code: Code,
    pub(super) parameter: Option<&'static Parameter>,
    pub(super) centre: u16,
    pub(super) sub_centre: u16,
    /// The versions of the master tables and of the local tables, in edition 2.
    pub(super) tables: Option<(u8, u8)>,
    /// The reference time in seconds since 1970.
    pub(super) time: i64,
    /// The forecast time in hours; the end of an interval.
    pub(super) step: f64,
    /// The start of an interval.
    pub(super) start_step: f64,
    pub(super) statistic: Option<u8>,
    pub(super) level: Level,
    /// The member of an ensemble.
    pub(super) number: Option<i32>,
    /// Other keys that distinguish products: percentiles, limits of probabilities, constituents.
    pub(super) qualifiers: Vec<(&'static str, i64)>,
    pub(super) mars: Mars,
}

/// Keys of the archive of ECMWF.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mars {
    pub(super) class: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) stream: Option<String>,
    pub(super) expver: Option<String>,
}

const CLASSES: &[&str] = &[
    "od", "rd", "er", "cs", "e4", "dm", "pv", "el", "to", "co", "en", "ti", "me", "ei", "sr", "dt", "la",
    "yt", "mc", "pe", "em", "e2", "ea", "ep", "rm", "nr", "s2", "j5", "ur", "et", "c3", "yp", "l5", "lw",
    "ce", "cr", "rr", "ul", "gw", "e6", "l6", "ef", "gf", "gg", "ml", "d1", "o6", "eh", "gh", "ci", "ai",
];
const TYPES: &[&str] = &[
    "fg", "an", "ia", "oi", "3v", "4v", "3g", "4g", "fc", "cf", "pf", "ef", "ea", "cm", "cs", "fp", "em",
    "es", "fa", "cl", "si", "s3", "ed", "tu", "ff", "of", "efi", "efic", "pb", "ep", "bf", "cd", "4i", "go",
    "me", "pd", "ci", "sot",
];
const STREAMS: &[(u64, &str)] = &[
    (1024, "dahc"),
    (1025, "oper"),
    (1026, "scda"),
    (1027, "scwv"),
    (1030, "enda"),
    (1033, "enfh"),
    (1035, "enfo"),
    (1036, "sens"),
    (1043, "mnth"),
    (1045, "wave"),
    (1071, "moda"),
    (1081, "waef"),
    (1088, "ewda"),
    (1090, "seas"),
    (1122, "eefo"),
    (1220, "mmsf"),
    (1247, "lwda"),
    (1248, "lwwv"),
    (1249, "elda"),
    (1250, "ewla"),
];

/// The centre whose local sections are known.
const ECMWF: u16 = 98;

impl Mars {
    fn new(class: u64, kind: u64, stream: u64, expver: &[u8]) -> Self {
        let named = |names: &[&str], number: u64| -> String {
            let position = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
            position
                .and_then(|at| names.get(at))
                .map_or_else(|| number.to_string(), |name| (*name).to_owned())
        };
        let stream_name =
            STREAMS.iter().find(|(number, _)| *number == stream).map(|(_, name)| (*name).to_owned());
        let expver: String =
            expver.iter().map(|byte| char::from(*byte)).filter(char::is_ascii_alphanumeric).collect();
        Self {
            class: Some(named(CLASSES, class)),
            kind: Some(named(TYPES, kind)),
            stream: Some(stream_name.unwrap_or_else(|| stream.to_string())),
            expver: Some(expver).filter(|text| !text.is_empty()),
        }
    }

    /// A local section of edition 2.
    pub(super) fn edition2(section: Octets<'_>, centre: u16) -> Self {
        let read = || -> Result<Self, Fault> {
            let number = |at| section.unsigned(at, 2);
            Ok(Self::new(number(8)?, number(10)?, number(12)?, section.take(14, 4)?))
        };
        if centre == ECMWF { read().unwrap_or_default() } else { Self::default() }
    }
}

/// Statistics over an interval, as other programs call them.
const STATISTICS: &[&str] =
    &["avg", "accum", "max", "min", "diff", "rms", "sd", "cov", "sdiff", "ratio", "stdanom", "sum"];

impl Product {
    /// The name of the statistic: `instant`, `accum`, ….
    pub(super) fn step_type(&self) -> String {
        match self.statistic {
            None => "instant".to_owned(),
            Some(number) => STATISTICS
                .get(usize::from(number))
                .map_or_else(|| format!("statistic_{number}"), |name| (*name).to_owned()),
        }
    }

    /// The number of a statistic; `None` if there is none of this name.
    pub(super) fn statistic_from_name(name: &str) -> Option<u8> {
        let number = STATISTICS.iter().position(|found| *found == name)?;
        u8::try_from(number).ok()
    }

    /// Section 1, with the decimal scale in octets 27 and 28, of edition 1.
    pub(super) fn edition1(section: Octets<'_>) -> Result<Self, Fault> {
        let (table, centre, number) = (section.u8(4)?, u16::from(section.u8(5)?), section.u8(9)?);
        let century = i64::from(section.u8(25)?);
        let year = (century - 1) * 100 + i64::from(section.u8(13)?);
        let date = [section.u8(14)?, section.u8(15)?, section.u8(16)?, section.u8(17)?, 0];
        let time = seconds(year, date)?;
        let unit = section.u8(18)?;
        let (p1, p2) = (i64::from(section.u8(19)?), i64::from(section.u8(20)?));
        let range = section.u8(21)?;
        let (start, end, statistic) = match range {
            0 | 13 => (p1, p1, None),
            1 => (0, 0, None),
            2 => (p1, p2, Some(2)),
            3 => (p1, p2, Some(0)),
            4 => (p1, p2, Some(1)),
            5 => (p1, p2, Some(4)),
            10 => (p1 * 256 + p2, p1 * 256 + p2, None),
            113 | 123 => (p1, p1, Some(0)),
            114 | 124 => (p1, p1, Some(1)),
            _ => return Fault::unsupported(format!("time range indicator {range}")),
        };
        let number_of_type = section.u8(10)?;
        let octets = [section.u8(11)?, section.u8(12)?];
        let level = Level::edition1(number_of_type, octets);
        let code = Code::Edition1(centre, table, number);
        let whole = Some(f64::from(u16::from_be_bytes(octets)));
        let surfaces = Surfaces { first: (number_of_type, whole), second: (255, None), statistic };
        let mut product = Self {
            code,
            parameter: find(code, &surfaces),
            centre,
            sub_centre: section.u8(26)?.into(),
            tables: None,
            time,
            step: hours(end, unit, time)?,
            start_step: hours(start, unit, time)?,
            // A maximum or minimum is stated by the parameter; an interval alone is not a statistic.
            statistic: statistic.filter(|_| range != 2),
            level,
            number: None,
            qualifiers: Vec::new(),
            mars: Mars::default(),
        };
        if (centre == ECMWF || product.sub_centre == ECMWF) && section.bytes.len() >= 51 {
            let (class, kind, stream) = (section.u8(42)?, section.u8(43)?, section.u16(44)?);
            product.mars = Mars::new(class.into(), kind.into(), stream.into(), section.take(46, 4)?);
            let (member, members) = (section.u8(50)?, section.u8(51)?);
            if section.u8(41)? == 1 && (member > 0 || members > 0) {
                product.number = Some(member.into());
            }
        }
        Ok(product)
    }

    /// Sections 1 and 4 of edition 2.
    pub(super) fn edition2(
        discipline: u8,
        identification: Octets<'_>,
        section: Octets<'_>,
        mars: Mars,
    ) -> Result<Self, Fault> {
        let template = section.u16(8)?;
        // Octets of the forecast time, an ensemble member, the end of an interval.
        let (shift, ensemble, interval) = match template {
            0 | 2..=7 | 15 => (0, None, None),
            1 | 60 => (0, Some(35), None),
            8 => (0, None, Some(35)),
            9 => (0, None, Some(48)),
            10 => (0, None, Some(36)),
            11 => (0, Some(35), Some(38)),
            12 => (0, None, Some(37)),
            40 => (2, None, None),
            41 => (2, Some(37), None),
            42 => (2, None, Some(37)),
            43 => (2, Some(37), Some(40)),
            61 => (0, Some(35), Some(45)),
            _ => return Fault::unsupported(format!("product template 4.{template}")),
        };
        let mut qualifiers: Vec<(&'static str, i64)> = Vec::new();
        let mut qualify = |name: &'static str, at: usize, octets: usize| -> Result<(), Fault> {
            qualifiers.push((name, section.signed(at, octets)?));
            Ok(())
        };
        match template {
            2..=4 | 12 => qualify("derivedForecast", 35, 1)?,
            6 | 10 => qualify("percentileValue", 35, 1)?,
            5 | 9 => {
                qualify("probabilityType", 37, 1)?;
                qualify("scaleFactorOfLowerLimit", 38, 1)?;
                qualify("scaledValueOfLowerLimit", 39, 4)?;
                qualify("scaleFactorOfUpperLimit", 43, 1)?;
                qualify("scaledValueOfUpperLimit", 44, 4)?;
            }
            15 => {
                qualify("statisticalProcess", 35, 1)?;
                qualify("spatialProcessing", 36, 1)?;
            }
            40..=43 => qualify("constituentType", 12, 2)?,
            _ => {}
        }
        let date = |section: Octets<'_>, at: usize| -> Result<i64, Fault> {
            let part = |offset: usize| section.u8(at + 2 + offset);
            seconds(section.u16(at)?.into(), [part(0)?, part(1)?, part(2)?, part(3)?, part(4)?])
        };
        let time = date(identification, 13)?;
        let start = hours(section.signed(19 + shift, 4)?, section.u8(18 + shift)?, time)?;
        let (step, statistic) = match interval {
            None => (start, None),
            Some(at) => {
                #[expect(clippy::cast_precision_loss, reason = "seconds of a few years")]
                let step = (date(section, at)? - time) as f64 / 3600.0;
                (step, Some(section.u8(at + 12)?))
            }
        };
        let surface = |at: usize| -> Result<(u8, Option<f64>), Fault> {
            let (scale, value) = (section.signed(at + 1, 1)?, section.u32(at + 2)?);
            if section.u8(at + 1)? == 255 || value == u32::MAX {
                return Ok((section.u8(at)?, None));
            }
            #[expect(clippy::cast_precision_loss, reason = "32 bits")]
            let value = section.signed(at + 2, 4)? as f64;
            let power = 10f64.powi(i32::try_from(scale.abs()).unwrap_or(0));
            Ok((section.u8(at)?, Some(if scale >= 0 { value / power } else { value * power })))
        };
        let (first, second) = (surface(23 + shift)?, surface(29 + shift)?);
        let number = match ensemble {
            Some(at) => Some(i32::from(section.u8(at + 1)?)),
            None => None,
        };
        let centre = identification.u16(6)?;
        let code = Code::Edition2(discipline, section.u8(10)?, section.u8(11)?);
        // Probabilities are not in the units of the parameter; the names of constituents are not in the table.
        let is_plain = !matches!(template, 5 | 9 | 40..=43);
        let surfaces = Surfaces { first, second, statistic };
        // ECMWF stores the tables of edition 1 as categories of a discipline for local use.
        let local = || match code {
            Code::Edition2(192, table, number) if centre == ECMWF => {
                find(Code::Edition1(ECMWF, table, number), &surfaces)
            }
            _ => None,
        };
        Ok(Self {
            code,
            parameter: if is_plain { find(code, &surfaces).or_else(local) } else { None },
            centre,
            sub_centre: identification.u16(8)?,
            tables: Some((identification.u8(10)?, identification.u8(11)?)),
            time,
            step,
            start_step: start,
            statistic,
            level: Level::edition2(first, second),
            number,
            qualifiers,
            mars,
        })
    }
}

/// The seconds since 1970 of a date: month, day, hour, minute, second.
fn seconds(year: i64, [month, day, hour, minute, second]: [u8; 5]) -> Result<i64, Fault> {
    let invalid = || {
        Fault::Malformed(format!("invalid date {year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"))
    };
    let small = |value: u8| i8::try_from(value).map_err(|_| invalid());
    // A leap second, and hour 24, belong to the next minute and day.
    let hour_is_24 = hour == 24 && minute == 0 && second == 0;
    let date = jiff::civil::DateTime::new(
        i16::try_from(year).map_err(|_| invalid())?,
        small(month)?,
        small(day)?,
        if hour_is_24 { 0 } else { small(hour)? },
        small(minute)?,
        small(second)?.min(59),
        0,
    );
    let stamp = date.ok().and_then(|date| date.to_zoned(jiff::tz::TimeZone::UTC).ok());
    let stamp = stamp.ok_or_else(invalid)?.timestamp().as_second();
    Ok(stamp + if hour_is_24 { 86_400 } else { 0 } + i64::from(second.saturating_sub(59)))
}

/// A number of time units after a reference time, in hours.
fn hours(count: i64, unit: u8, reference: i64) -> Result<f64, Fault> {
    #[expect(clippy::cast_precision_loss, reason = "32 bits")]
    let count_float = count as f64;
    Ok(match unit {
        0 => count_float / 60.0,
        1 => count_float,
        2 => count_float * 24.0,
        3..=7 => {
            let months = count.saturating_mul([1, 12, 120, 360, 1200][usize::from(unit - 3)]);
            return months_after(reference, months);
        }
        10 => count_float * 3.0,
        11 => count_float * 6.0,
        12 => count_float * 12.0,
        13 | 254 => count_float / 3600.0,
        _ if count == 0 => 0.0,
        _ => return Fault::unsupported(format!("time unit {unit}")),
    })
}

fn months_after(reference: i64, months: i64) -> Result<f64, Fault> {
    use jiff::ToSpan as _;
    let after = jiff::Timestamp::from_second(reference).ok().and_then(|stamp| {
        let months = i32::try_from(months).ok()?;
        stamp.to_zoned(jiff::tz::TimeZone::UTC).checked_add(months.months()).ok()
    });
    let after = after.ok_or_else(|| Fault::Malformed(format!("a forecast time of {months} months")))?;
    #[expect(clippy::cast_precision_loss, reason = "seconds of a few years")]
    Ok((after.timestamp().as_second() - reference) as f64 / 3600.0)
}
