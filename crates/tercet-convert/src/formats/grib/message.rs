//! Messages of a file: their sections are read, the values are not.
//!
//! ```text
//! GRIB 1: 0 indicator · 1 product · 2 grid · 3 bitmap · 4 data · 7777
//! GRIB 2: 0 indicator · 1 identification · [2 local · 3 grid · 4 product · 5 packing · 6 bitmap · 7 data]… · 7777
//! ```

use std::collections::HashMap;

use bytes::Bytes;
use memchr::memmem;
use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, Limits, SourceError, Span};

use super::grid::Grid;
use super::octets::{Fault, Octets};
use super::product::{Mars, Product};
use super::second_order::SecondOrder;
use super::unpack::{Packing, Scale};
use crate::{Error, ErrorKind};

/// A field: one set of values on a grid.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// The number of its message, from 0.
    pub(super) message: u64,
    pub(super) edition: u8,
    pub(super) product: Product,
    /// The position of its grid.
    pub(super) grid: usize,
    pub(super) packing: Packing,
    /// The number of stored values, if the message has it.
    values: Option<u64>,
    /// One bit for each point.
    pub(super) bitmap: Option<Span>,
    data: Span,
}

/// The fields of a file.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) fields: Vec<Field>,
    pub(super) grids: Vec<Grid>,
    /// Places and reasons.
    pub(super) unreadable: Vec<(String, String)>,
    known_grids: HashMap<(u8, Vec<u8>), usize>,
    limits: Limits,
    count: u64,
}

/// An error of the source, or a message that cannot be read.
enum Failure {
    Io(SourceError),
    Fault(Fault),
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self::Io(error)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The first read of a message: it has all sections but the data, usually.
const WINDOW: u64 = 8 << 10;
/// The longest section, except bitmap and data.
const MAX_SECTION: u64 = 16 << 20;
/// The most damaged messages that are searched for others.
const MAX_SEARCHED: u32 = 10_000;
/// The most entries of the list of unreadable messages.
const MAX_UNREADABLE: usize = 1000;
/// Bytes between messages that are not worth a report, unless they contain the end of a message: headers of bulletins, padding.
const SMALL_GAP: u64 = 256;

impl Messages {
    /// Reads the sections of all messages.
    pub(super) fn read(source: &dyn ByteSource, limits: Limits) -> Result<Self, Error> {
        let failed = |error: SourceError| Error::new(source.name().clone(), error.into());
        let mut messages = Self { limits: limits.for_file(source.len()), ..Self::default() };
        let mut at = 0;
        let mut gap_start = 0;
        let mut searched = 0;
        while let Some(start) = find_magic(source, at).map_err(failed)? {
            messages.report_gap(source, gap_start, start).map_err(failed)?;
            check_limit(
                "the list of fields",
                messages.fields.len() as u64 * 512,
                messages.limits.metadata_bytes,
            )
            .map_err(|limit| Error::new(source.name().clone(), limit.into()))?;
            let number = messages.count;
            match messages.message(source, start) {
                Ok(end) => {
                    messages.count += 1;
                    at = end;
                    gap_start = end;
                }
                Err(Failure::Io(error)) => return Err(failed(error)),
                Err(Failure::Fault(fault)) => {
                    messages.unreadable(format!("message {number} at byte {start}"), fault.to_string());
                    // The message is searched for others: its length is not certain.
                    at = start + 4;
                    gap_start = source.len();
                    searched += 1;
                    if searched > MAX_SEARCHED {
                        let text = format!("more than {MAX_SEARCHED} damaged messages");
                        return Err(Error::new(source.name().clone(), ErrorKind::Malformed(text.into())));
                    }
                }
            }
        }
        messages.report_gap(source, gap_start, source.len()).map_err(failed)?;
        messages.known_grids.clear();
        Ok(messages)
    }

    fn unreadable(&mut self, place: String, reason: String) {
        if self.unreadable.len() < MAX_UNREADABLE {
            self.unreadable.push((place, reason));
        } else if self.unreadable.len() == MAX_UNREADABLE {
            self.unreadable
                .push(("more messages".to_owned(), "the list of unreadable messages ends here".to_owned()));
        }
    }

    /// Reports bytes between messages that could have been one.
    fn report_gap(&mut self, source: &dyn ByteSource, start: u64, end: u64) -> Result<(), SourceError> {
        let Some(len) = end.checked_sub(start).filter(|len| *len > 0) else { return Ok(()) };
        let span = Span::at(start, len.min(1 << 20)).unwrap_or(Span::empty(start));
        let bytes = source.read_at(span)?;
        let is_padding = bytes.iter().all(|byte| *byte == 0) && len <= 1 << 20;
        // The last message may be cut in its first bytes.
        let is_start = end == source.len() && b"GRIB".starts_with(&bytes[..bytes.len().min(4)]);
        if !is_padding && (is_start || len > SMALL_GAP || memmem::find(&bytes, b"7777").is_some()) {
            self.unreadable(format!("bytes {start}..{end}"), "not a GRIB message".to_owned());
        }
        Ok(())
    }

    /// Reads the sections of a message. Returns its end.
    fn message(&mut self, source: &dyn ByteSource, start: u64) -> Result<u64, Failure> {
        let available = source.len() - start;
        let read = |at: u64, len: u64| -> Result<Bytes, Failure> {
            match Span::at(at, len).filter(|span| span.end() <= source.len()) {
                Some(span) => Ok(source.read_at(span)?),
                None => Err(Fault::Malformed("the message is cut".to_owned()).into()),
            }
        };
        let window = read(start, available.min(WINDOW))?;
        let head = Octets::new(0, &window);
        let edition = head.u8(8)?;
        let total = match edition {
            1 => head.unsigned(5, 3)?,
            2 => head.unsigned(9, 8)?,
            _ => return Err(Fault::Unsupported(format!("GRIB edition {edition}")).into()),
        };
        let mut message = Sections { start, total, window, source };
        if edition == 1 {
            message.total = long_total(&message, total)?;
        }
        if message.total > available {
            let total = message.total;
            return Err(Fault::Malformed(format!(
                "cut: it has {total} bytes, the file {available} from there"
            ))
            .into());
        }
        if message.total < 16 || &read(start + message.total - 4, 4)?[..] != b"7777" {
            return Err(Fault::Malformed("it does not end with 7777".to_owned()).into());
        }
        // The length is certain: what follows is the next message, even if this one cannot be read.
        match if edition == 1 { self.edition1(&message) } else { self.edition2(&message) } {
            Err(Failure::Fault(fault)) => {
                self.unreadable(format!("message {} at byte {start}", self.count), fault.to_string());
            }
            other => other?,
        }
        Ok(start + message.total)
    }

    /// The position of a grid.
    fn grid(&mut self, edition: u8, section: &[u8]) -> Result<usize, Fault> {
        let key = (edition, section.to_vec());
        if let Some(found) = self.known_grids.get(&key) {
            return Ok(*found);
        }
        let octets = Octets::new(if edition == 1 { 2 } else { 3 }, section);
        let grid = if edition == 1 { Grid::edition1(octets)? } else { Grid::edition2(octets)? };
        let bytes = grid.points.saturating_mul(8);
        check_limit("a field", bytes, self.limits.chunk_bytes)
            .map_err(|limit| Fault::Malformed(limit.to_string()))?;
        let position = self.grids.iter().position(|found| *found == grid).unwrap_or_else(|| {
            self.grids.push(grid);
            self.grids.len() - 1
        });
        self.known_grids.insert(key, position);
        Ok(position)
    }

    fn edition1(&mut self, message: &Sections<'_>) -> Result<(), Failure> {
        let mut at = 8;
        let product_bytes = message.section1(at)?;
        let section = Octets::new(1, &product_bytes);
        let flags = section.u8(8)?;
        at += product_bytes.len() as u64;
        let product = Product::edition1(section)?;
        if flags & 0x80 == 0 {
            let number = section.u8(7)?;
            return Err(Fault::Unsupported(format!("catalogued grid {number} without its definition")).into());
        }
        let grid_bytes = message.section1(at)?;
        at += grid_bytes.len() as u64;
        let grid = self.grid(1, &grid_bytes)?;
        let points = self.grids[grid].points;
        let mut bitmap = None;
        if flags & 0x40 != 0 {
            let head = message.bytes(at, 6)?;
            let octets = Octets::new(3, &head);
            let len = octets.unsigned(1, 3)?;
            if octets.u16(5)? != 0 {
                return Err(Fault::Unsupported("a catalogued bitmap".to_owned()).into());
            }
            bitmap = Some(message.bitmap(at + 6, len.saturating_sub(6), points)?);
            at += len.max(6);
        }
        let head = message.bytes(at, 12)?;
        let octets = Octets::new(4, &head);
        let kind = octets.u8(4)? >> 4;
        let (is_second_order, is_integer, has_flags) =
            (kind & 0b0100 != 0, kind & 0b0010 != 0, kind & 0b0001 != 0);
        if kind & 0b1000 != 0 {
            return Err(Fault::Unsupported("spherical harmonics".to_owned()).into());
        }
        // The length of a long message is rounded; the section ends where the message does.
        let declared = octets.unsigned(1, 3)?;
        let end = if declared < 120 { message.total - 4 } else { at.saturating_add(declared) };
        let end = if end > message.total - 4 { message.total - 4 } else { end };
        let scale = || -> Result<Scale, Fault> {
            let short = |value: i64| i32::try_from(value).unwrap_or(0);
            let scale = Scale {
                reference: octets.ibm(7)?,
                binary: short(octets.signed(5, 2)?),
                decimal: short(section.signed(27, 2)?),
                bits: octets.u8(11)?.into(),
            };
            scale.checked()
        };
        // The octets of the section before the values.
        let (packing, skipped) = if is_second_order {
            let head = message.bytes(at, SecondOrder::HEAD.min(message.total - at))?;
            (Packing::SecondOrder(scale()?, SecondOrder::edition1(Octets::new(4, &head))?), 0)
        } else if is_integer && has_flags {
            // IEEE floats, by the convention of ecCodes.
            let octets_of = match octets.u8(12)? {
                1 => 4,
                2 => 8,
                precision => {
                    return Err(Fault::Unsupported(format!("IEEE floats of precision {precision}")).into());
                }
            };
            (Packing::Ieee(octets_of), 12)
        } else if has_flags {
            return Err(Fault::Unsupported("a matrix of values at each point".to_owned()).into());
        } else {
            (Packing::Simple(scale()?), 11)
        };
        let data = message.span(at + skipped, end.checked_sub(at + skipped))?;
        let values = if bitmap.is_some() { None } else { Some(points) };
        self.fields.push(Field {
            message: self.count,
            edition: 1,
            product,
            grid,
            packing,
            values,
            bitmap,
            data,
        });
        Ok(())
    }

    fn edition2(&mut self, message: &Sections<'_>) -> Result<(), Failure> {
        let discipline = Octets::new(0, &message.window).u8(7)?;
        let mut at = 16;
        let identification = message.section2(at, 1)?;
        at += identification.len() as u64;
        let centre = Octets::new(1, &identification).u16(6)?;
        let (mut mars, mut grid, mut product, mut packing) = (Mars::default(), None, None, None);
        let (mut bitmap, mut has_bitmap_section) = (None, false);
        let mut fields = Vec::new();
        while message.total.saturating_sub(at) > 4 {
            let head = message.bytes(at, 5)?;
            let octets = Octets::new(0, &head);
            let (len, number) = (u64::from(octets.u32(1)?), octets.u8(5)?);
            if len < 5 || len > message.total - 4 - at {
                return Err(Fault::Malformed(format!("section {number} of {len} bytes")).into());
            }
            match number {
                2 => {
                    mars = match message.section2(at, 2) {
                        Ok(bytes) => Mars::edition2(Octets::new(2, &bytes), centre),
                        Err(Failure::Fault(_)) => Mars::default(),
                        Err(failure) => return Err(failure),
                    };
                }
                3 => grid = Some(self.grid(2, &message.section2(at, 3)?)?),
                4 => {
                    let (one, four) = (Octets::new(1, &identification), message.section2(at, 4)?);
                    product = Some(Product::edition2(discipline, one, Octets::new(4, &four), mars.clone())?);
                }
                5 => {
                    let bytes = message.section2(at, 5)?;
                    let octets = Octets::new(5, &bytes);
                    packing = Some((Packing::edition2(octets)?, u64::from(octets.u32(6)?)));
                }
                6 => {
                    has_bitmap_section = true;
                    let indicator = Octets::new(6, &message.bytes(at, 6)?).u8(6)?;
                    match (indicator, grid) {
                        (0, Some(grid)) => {
                            bitmap = Some(message.bitmap(at + 6, len - 6, self.grids[grid].points)?);
                        }
                        (255, _) => bitmap = None,
                        (254, _) if bitmap.is_some() => {}
                        _ => return Err(Fault::Unsupported(format!("bitmap indicator {indicator}")).into()),
                    }
                }
                7 => {
                    let (Some(grid), Some(product), Some((packing, values)), true) =
                        (grid, product.clone(), packing, has_bitmap_section)
                    else {
                        return Err(
                            Fault::Malformed("data before the sections that describe it".to_owned()).into()
                        );
                    };
                    let data = message.span(at + 5, Some(len - 5))?;
                    let (edition, values) = (2, Some(values));
                    fields.push(Field {
                        message: self.count,
                        edition,
                        product,
                        grid,
                        packing,
                        values,
                        bitmap,
                        data,
                    });
                }
                _ => return Err(Fault::Malformed(format!("section {number}")).into()),
            }
            at += len;
        }
        if fields.is_empty() {
            return Err(Fault::Malformed("no data".to_owned()).into());
        }
        self.fields.append(&mut fields);
        Ok(())
    }

    /// Decodes the values of a field, in rows; missing ones are NaN.
    pub(super) fn decode(&self, source: &dyn ByteSource, field: &Field) -> Result<Vec<f64>, Error> {
        let failed = |kind: ErrorKind| Error::new(source.name().clone(), kind);
        let read = |span: Span| source.read_at(span).map_err(|error| failed(error.into()));
        let faulty = |fault: Fault| {
            let text = format!("message {}: {fault}", field.message);
            failed(match fault {
                Fault::Malformed(_) => ErrorKind::Malformed(text.into()),
                Fault::Unsupported(_) => ErrorKind::Unsupported(text.into()),
            })
        };
        let grid = &self.grids[field.grid];
        let points = usize::try_from(grid.points).unwrap_or(usize::MAX);
        let data = read(field.data)?;
        let rows = |mut points: Vec<f64>| {
            if field.packing.is_alternating() {
                grid.turn_rows(&mut points);
            }
            grid.rows(points)
        };
        let Some(span) = field.bitmap else {
            if field.values.is_some_and(|values| values != grid.points) && field.packing.bits() > 0 {
                let values = field.values.unwrap_or(0);
                return Err(faulty(Fault::Malformed(format!("{values} values for {points} points"))));
            }
            return Ok(rows(field.packing.decode(&data, points).map_err(faulty)?));
        };
        let bitmap = read(span)?;
        let is_set = |point: usize| bitmap[point / 8] >> (7 - point % 8) & 1 == 1;
        let present = (0..points).filter(|point| is_set(*point)).count();
        if field.values.is_some_and(|values| values != present as u64) && field.packing.bits() > 0 {
            let values = field.values.unwrap_or(0);
            return Err(faulty(Fault::Malformed(format!(
                "{values} values for {present} points of the bitmap"
            ))));
        }
        let stored = field.packing.decode(&data, present).map_err(faulty)?;
        let mut stored = stored.into_iter();
        let next = |point: usize| if is_set(point) { stored.next().unwrap_or(f64::NAN) } else { f64::NAN };
        Ok(rows((0..points).map(next).collect()))
    }
}

/// A message whose sections are read one by one.
struct Sections<'a> {
    start: u64,
    total: u64,
    window: Bytes,
    source: &'a dyn ByteSource,
}

impl Sections<'_> {
    /// Bytes of the message.
    fn bytes(&self, at: u64, len: u64) -> Result<Bytes, Failure> {
        let end = at.checked_add(len).filter(|end| *end <= self.total);
        let Some(end) = end else {
            return Err(Fault::Malformed(format!(
                "a section reaches beyond the {} bytes of the message",
                self.total
            ))
            .into());
        };
        if end <= self.window.len() as u64 {
            let range = usize::try_from(at).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
            return Ok(self.window.slice(range));
        }
        let span = self.span(at, Some(len))?;
        if span.end() > self.source.len() {
            return Err(Fault::Malformed("the message is cut".to_owned()).into());
        }
        Ok(self.source.read_at(span)?)
    }

    /// A range of the file.
    fn span(&self, at: u64, len: Option<u64>) -> Result<Span, Failure> {
        let span = len
            .filter(|len| at.checked_add(*len).is_some_and(|end| end <= self.total))
            .and_then(|len| Span::at(self.start.checked_add(at)?, len));
        span.ok_or_else(|| Fault::Malformed("a section reaches beyond the message".to_owned()).into())
    }

    /// A section of edition 1.
    fn section1(&self, at: u64) -> Result<Bytes, Failure> {
        let len = Octets::new(0, &self.bytes(at, 3)?).unsigned(1, 3)?;
        self.bytes(at, len.max(3))
    }

    /// A section of edition 2.
    fn section2(&self, at: u64, number: u8) -> Result<Bytes, Failure> {
        let head = self.bytes(at, 5)?;
        let octets = Octets::new(number, &head);
        let (len, found) = (u64::from(octets.u32(1)?), octets.u8(5)?);
        if found != number || !(5..=MAX_SECTION).contains(&len) {
            return Err(Fault::Malformed(format!(
                "section {found} of {len} bytes instead of section {number}"
            ))
            .into());
        }
        self.bytes(at, len)
    }

    /// The place of a bitmap of a grid.
    fn bitmap(&self, at: u64, len: u64, points: u64) -> Result<Span, Failure> {
        if len < points.div_ceil(8) {
            return Err(Fault::Malformed(format!("a bitmap of {len} bytes for {points} points")).into());
        }
        self.span(at, Some(points.div_ceil(8)))
    }
}

/// The length of a message of edition 1. Messages over 8 MB have it in units of 120 bytes, by convention: then the length of
/// the data section is what is too much.
fn long_total(message: &Sections<'_>, total: u64) -> Result<u64, Failure> {
    if total & 0x80_0000 == 0 {
        return Ok(total);
    }
    let long = (total & 0x7f_ffff) * 120;
    let whole = Sections { total: long, window: message.window.clone(), ..*message };
    let flags = Octets::new(1, &whole.bytes(8, 8)?).u8(8)?;
    let mut at = 8;
    for is_present in [true, flags & 0x80 != 0, flags & 0x40 != 0] {
        if is_present {
            at += Octets::new(0, &whole.bytes(at, 3)?).unsigned(1, 3)?.max(3);
        }
    }
    let excess = Octets::new(4, &whole.bytes(at, 3)?).unsigned(1, 3)?;
    Ok(if excess < 120 { long.saturating_sub(excess).saturating_add(4) } else { total })
}

/// The next start of a message.
fn find_magic(source: &dyn ByteSource, from: u64) -> Result<Option<u64>, SourceError> {
    const PIECE: u64 = 64 << 10;
    let mut at = from;
    let mut piece = 16;
    while at + 8 <= source.len() {
        let len = piece.min(source.len() - at);
        let bytes = source.read_at(Span::at(at, len).unwrap_or(Span::empty(at)))?;
        let mut skipped = 0;
        while let Some(found) = memmem::find(&bytes[skipped..], b"GRIB") {
            let place = skipped + found;
            match bytes.get(place + 7) {
                Some(1 | 2) => return Ok(Some(at + place as u64)),
                Some(_) => skipped = place + 4,
                None => break,
            }
        }
        if at + len >= source.len() {
            return Ok(None);
        }
        // A start may lie across two pieces.
        at += len - 7;
        piece = PIECE;
    }
    Ok(None)
}

/// Whether a file contains a message near its start.
pub(crate) fn is_grib(head: &[u8]) -> bool {
    memmem::find(head, b"GRIB").is_some_and(|place| matches!(head.get(place + 7), Some(1 | 2)))
}
