//! Packings: how the values of a field are stored.
//!
//! ```text
//! value = (reference + integer × 2^binary) × 10^-decimal
//! ```
//!
//! | template | integers |
//! |---|---|
//! | 5.0, GRIB 1 | of a fixed number of bits |
//! | 5.2, 5.3 | in groups with a reference and a width each; 5.3 stores differences |
//! | 5.4 | IEEE floats instead |
//! | 5.40, 5.41 | the pixels of a JPEG 2000 or PNG image |
//! | 5.42 | CCSDS (szip) |
//!
//! Second-order packing of GRIB 1 is in `second_order`.

use tercet_codec::bytes::szip::{self, Szip};

use super::octets::{Bits, Fault, Octets, sign_magnitude};
use super::second_order::SecondOrder;

/// How integers become values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) reference: f64,
    pub(super) binary: i32,
    pub(super) decimal: i32,
    /// Bits of an integer; of a group reference in complex packing.
    pub(super) bits: u32,
}

/// The packing of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Packing {
    Simple(Scale),
    Complex(Scale, Groups),
    SecondOrder(Scale, SecondOrder),
    Ccsds(Scale, Szip),
    Jpeg2000(Scale),
    Png(Scale),
    /// Floats of this number of octets.
    Ieee(usize),
}

/// Groups of complex packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    /// How many kinds of missing values have integers of their own: 0, 1 or 2.
    missing: u8,
    count: u64,
    width_reference: u32,
    width_bits: u32,
    length_reference: u64,
    length_increment: u64,
    last_length: u64,
    length_bits: u32,
    /// The order of differences, 0 for none, and the octets of the first values.
    order: usize,
    extra_octets: usize,
}

/// Widest integers. The format allows more, but no writer uses them.
pub(super) const MAX_BITS: u32 = 57;

impl Scale {
    fn edition2(section: Octets<'_>) -> Result<Self, Fault> {
        let short = |at| section.signed(at, 2).map(|value| i32::try_from(value).unwrap_or(0));
        let bits = u32::from(section.u8(20)?);
        let scale = Self { reference: section.ieee(12)?, binary: short(16)?, decimal: short(18)?, bits };
        scale.checked()
    }

    pub(super) fn checked(self) -> Result<Self, Fault> {
        if self.bits > MAX_BITS {
            return Fault::unsupported(format!("{} bits per value", self.bits));
        }
        let is_usable = self.reference.is_finite() && self.step().is_finite() && self.tenth().is_finite();
        if is_usable { Ok(self) } else { Fault::malformed("a packing without a finite scale") }
    }

    /// The distance of two values.
    pub(super) fn step(&self) -> f64 {
        2f64.powi(self.binary) * self.tenth()
    }

    fn tenth(&self) -> f64 {
        if self.decimal >= 0 { 1.0 / 10f64.powi(self.decimal) } else { 10f64.powi(-self.decimal) }
    }

    /// The values of integers.
    #[expect(clippy::cast_precision_loss, reason = "the formula of the format is one of doubles")]
    pub(super) fn values(&self, integers: impl Iterator<Item = i64>) -> Vec<f64> {
        let (binary, tenth) = (2f64.powi(self.binary), self.tenth());
        integers.map(|integer| (integer as f64 * binary + self.reference) * tenth).collect()
    }

    fn constant(&self) -> f64 {
        self.reference * self.tenth()
    }
}

impl Packing {
    /// Section 5 of edition 2.
    pub(super) fn edition2(section: Octets<'_>) -> Result<Self, Fault> {
        Ok(match section.u16(10)? {
            0 => Self::Simple(Scale::edition2(section)?),
            template @ (2 | 3) => {
                Self::Complex(Scale::edition2(section)?, Groups::new(section, template == 3)?)
            }
            4 => match section.u8(12)? {
                1 => Self::Ieee(4),
                2 => Self::Ieee(8),
                precision => return Fault::unsupported(format!("IEEE floats of precision {precision}")),
            },
            40 | 40000 => Self::Jpeg2000(Scale::edition2(section)?),
            41 | 40010 => Self::Png(Scale::edition2(section)?),
            42 => {
                let scale = Scale::edition2(section)?;
                let (flags, block, rsi) = (section.u8(22)?, section.u8(23)?, section.u16(24)?);
                if u64::from(flags) & szip::flags::SIGNED != 0 {
                    return Fault::unsupported("CCSDS packing of signed integers");
                }
                // The samples are wanted as little-endian bytes, which the stream does not depend on.
                let flags = u64::from(flags) & !szip::flags::MSB;
                // A constant field has no samples.
                let bits = scale.bits.max(1);
                let szip = Szip::new(bits, block.into(), rsi.into(), flags)
                    .map_err(|error| Fault::Malformed(error.to_string()))?;
                Self::Ccsds(scale, szip)
            }
            50 | 51 => return Fault::unsupported("packing of spherical harmonics"),
            template => return Fault::unsupported(format!("packing template 5.{template}")),
        })
    }

    /// The name that other programs use.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Simple(_) => "grid_simple",
            Self::Complex(_, groups) if groups.order > 0 => "grid_complex_spatial_differencing",
            Self::Complex(..) => "grid_complex",
            Self::SecondOrder(..) => "grid_second_order",
            Self::Ccsds(..) => "grid_ccsds",
            Self::Jpeg2000(_) => "grid_jpeg",
            Self::Png(_) => "grid_png",
            Self::Ieee(_) => "grid_ieee",
        }
    }

    fn scale(&self) -> Option<Scale> {
        match self {
            Self::Simple(scale)
            | Self::Complex(scale, _)
            | Self::SecondOrder(scale, _)
            | Self::Ccsds(scale, _)
            | Self::Jpeg2000(scale)
            | Self::Png(scale) => Some(*scale),
            Self::Ieee(_) => None,
        }
    }

    /// Bits of an integer.
    pub(super) fn bits(&self) -> u32 {
        match self {
            Self::Ieee(octets) => u32::try_from(octets * 8).unwrap_or(64),
            other => other.scale().map_or(0, |scale| scale.bits),
        }
    }

    /// Whether integers mark missing values.
    pub(super) fn has_missing(&self) -> bool {
        matches!(self, Self::Complex(_, groups) if groups.missing > 0)
    }

    /// Whether every second row runs in the opposite direction.
    pub(super) fn is_alternating(&self) -> bool {
        matches!(self, Self::SecondOrder(_, second_order) if second_order.is_alternating)
    }

    /// Whether float32 holds the values about as precisely as they are stored: its rounding is at most a quarter of a step.
    pub(super) fn fits_f32(&self) -> bool {
        let scale = match self {
            Self::Ieee(octets) => return *octets == 4,
            // The widths of its integers do not limit the values.
            Self::SecondOrder(..) => return false,
            other => other.scale(),
        };
        let Some(scale) = scale.filter(|scale| scale.bits > 0) else {
            return scale.is_none_or(|scale| {
                #[expect(clippy::cast_possible_truncation, reason = "compared")]
                let narrow = scale.constant() as f32;
                f64::from(narrow).to_bits() == scale.constant().to_bits()
            });
        };
        let bits = match self {
            // The first of the values and the least difference have this size.
            Self::Complex(_, groups) if groups.order > 0 => {
                u32::try_from(groups.extra_octets * 8).unwrap_or(64)
            }
            _ => scale.bits,
        };
        let step = scale.step();
        let largest = scale.constant().abs() + step * 2f64.powi(bits.try_into().unwrap_or(64));
        rounding(largest) <= step / 4.0
    }

    /// Whether values up to this size lose less than half a step as float32.
    pub(super) fn allows_f32(&self, largest: f64) -> bool {
        match self.scale() {
            Some(scale) if scale.bits > 0 => rounding(largest) <= scale.step() / 2.0,
            _ => true,
        }
    }

    /// Decodes `count` values; missing ones are NaN.
    pub(super) fn decode(&self, data: &[u8], count: usize) -> Result<Vec<f64>, Fault> {
        if let Some(scale) = self.scale().filter(|scale| scale.bits == 0)
            && !matches!(self, Self::Complex(..) | Self::SecondOrder(..))
        {
            return Ok(vec![scale.constant(); count]);
        }
        match self {
            Self::Simple(scale) => simple(scale, data, count),
            Self::Complex(scale, groups) => groups.decode(scale, data, count),
            Self::SecondOrder(scale, second_order) => second_order.decode(scale, Octets::new(4, data), count),
            Self::Ccsds(scale, szip) => ccsds(scale, szip, data, count),
            Self::Jpeg2000(scale) => jpeg2000(scale, data, count),
            Self::Png(scale) => png(scale, data, count),
            Self::Ieee(octets) => ieee(*octets, data, count),
        }
    }
}

/// Half of the distance of float32 values of this size.
fn rounding(size: f64) -> f64 {
    if size < f64::from(f32::MAX) { size * 2f64.powi(-24) } else { f64::INFINITY }
}

fn too_short(count: usize, found: usize) -> Fault {
    Fault::Malformed(format!("{found} bytes of data for {count} values"))
}

fn simple(scale: &Scale, data: &[u8], count: usize) -> Result<Vec<f64>, Fault> {
    let mut bits = Bits::new(data);
    if !bits.has(count as u64, scale.bits) {
        return Err(too_short(count, data.len()));
    }
    Ok(match scale.bits {
        8 => scale.values(data[..count].iter().map(|byte| i64::from(*byte))),
        16 => {
            scale.values(data.as_chunks::<2>().0[..count].iter().map(|two| u16::from_be_bytes(*two).into()))
        }
        width => scale.values((0..count).map(|_| bits.next(width).cast_signed())),
    })
}

fn ieee(octets: usize, data: &[u8], count: usize) -> Result<Vec<f64>, Fault> {
    let needed = count.checked_mul(octets).filter(|needed| *needed <= data.len());
    let data = &data[..needed.ok_or_else(|| too_short(count, data.len()))?];
    Ok(if octets == 4 {
        data.as_chunks::<4>().0.iter().map(|four| f32::from_be_bytes(*four).into()).collect()
    } else {
        data.as_chunks::<8>().0.iter().map(|eight| f64::from_be_bytes(*eight)).collect()
    })
}

fn ccsds(scale: &Scale, szip: &Szip, data: &[u8], count: usize) -> Result<Vec<f64>, Fault> {
    let size = szip.sample_bytes();
    let mut samples = vec![0; count * size];
    szip::decode(data, szip, None, &mut samples).map_err(|error| Fault::Malformed(error.to_string()))?;
    Ok(match size {
        1 => scale.values(samples.iter().map(|byte| i64::from(*byte))),
        2 => scale.values(samples.as_chunks::<2>().0.iter().map(|two| u16::from_le_bytes(*two).into())),
        3 => scale.values(
            samples.as_chunks::<3>().0.iter().map(|[a, b, c]| u32::from_le_bytes([*a, *b, *c, 0]).into()),
        ),
        _ => scale.values(samples.as_chunks::<4>().0.iter().map(|four| u32::from_le_bytes(*four).into())),
    })
}

/// Pixels are decoded as float32, which holds integers of this width exactly, and those of the wavelets.
const MAX_JPEG_BITS: u8 = 22;

fn jpeg2000(scale: &Scale, data: &[u8], count: usize) -> Result<Vec<f64>, Fault> {
    use hayro_jpeg2000::{DecodeSettings, DecoderContext, Image};
    let damaged = |error: hayro_jpeg2000::DecodeError| Fault::Malformed(format!("JPEG 2000: {error}"));
    let settings = DecodeSettings { resolve_palette_indices: false, strict: true, target_resolution: None };
    let image = Image::new(data, &settings).map_err(damaged)?;
    let pixels = u64::from(image.width()) * u64::from(image.height());
    if pixels != count as u64 {
        return Fault::malformed(format!("an image of {pixels} pixels for {count} values"));
    }
    if image.original_bit_depth() > MAX_JPEG_BITS {
        return Fault::unsupported(format!("JPEG 2000 images of {} bits", image.original_bit_depth()));
    }
    let mut context = DecoderContext::default();
    let image = image.decode(&mut context).map_err(damaged)?;
    let [component] = image.components() else {
        return Fault::unsupported("JPEG 2000 images of several components");
    };
    let samples = component.samples();
    if samples.len() < count {
        return Err(too_short(count, samples.len()));
    }
    #[expect(clippy::cast_possible_truncation, reason = "integers of a few bits")]
    Ok(scale.values(samples[..count].iter().map(|sample| sample.round() as i64)))
}

fn png(scale: &Scale, data: &[u8], count: usize) -> Result<Vec<f64>, Fault> {
    let damaged = |error: png::DecodingError| Fault::Malformed(format!("PNG: {error}"));
    let limits = png::Limits { bytes: count.saturating_mul(16).saturating_add(1 << 20) };
    let mut decoder = png::Decoder::new_with_limits(std::io::Cursor::new(data), limits);
    decoder.set_transformations(png::Transformations::IDENTITY);
    let mut reader = decoder.read_info().map_err(damaged)?;
    let info = reader.info();
    let pixels = u64::from(info.width) * u64::from(info.height);
    if pixels != count as u64 || info.interlaced {
        return Fault::malformed(format!("an image of {pixels} pixels for {count} values"));
    }
    let depth = u32::try_from(info.bits_per_pixel()).unwrap_or(u32::MAX);
    if depth > MAX_BITS {
        return Fault::unsupported(format!("PNG images of {depth} bits"));
    }
    let (width, height) = (info.width, info.height);
    let mut values = Vec::with_capacity(count);
    for _ in 0..height {
        let row = reader.next_row().map_err(damaged)?;
        let Some(row) = row else { return Err(too_short(count, values.len())) };
        let mut bits = Bits::new(row.data());
        if !bits.has(width.into(), depth) {
            return Err(too_short(count, values.len()));
        }
        values.extend(scale.values((0..width).map(|_| bits.next(depth).cast_signed())));
    }
    Ok(values)
}

impl Groups {
    fn new(section: Octets<'_>, has_differences: bool) -> Result<Self, Fault> {
        let order = if has_differences { usize::from(section.u8(48)?) } else { 0 };
        let extra_octets = if has_differences { usize::from(section.u8(49)?) } else { 0 };
        if has_differences && (!(1..=2).contains(&order) || !(1..=7).contains(&extra_octets)) {
            return Fault::unsupported(format!("differences of order {order} with {extra_octets} octets"));
        }
        let groups = Self {
            missing: section.u8(23)?,
            count: section.u32(32)?.into(),
            width_reference: section.u8(36)?.into(),
            width_bits: section.u8(37)?.into(),
            length_reference: section.u32(38)?.into(),
            length_increment: section.u8(42)?.into(),
            last_length: section.u32(43)?.into(),
            length_bits: section.u8(47)?.into(),
            order,
            extra_octets,
        };
        if groups.missing > 2 || groups.width_bits > MAX_BITS || groups.length_bits > 32 {
            return Fault::malformed("impossible numbers of complex packing");
        }
        Ok(groups)
    }

    fn decode(&self, scale: &Scale, data: &[u8], count: usize) -> Result<Vec<f64>, Fault> {
        let damaged = || too_short(count, data.len());
        if self.count > (count as u64).saturating_add(1) {
            return Fault::malformed(format!("{} groups for {count} values", self.count));
        }
        if self.count == 0 {
            return if count == 0 { Ok(Vec::new()) } else { Ok(vec![scale.constant(); count]) };
        }
        let extras = if self.order > 0 { (self.order + 1) * self.extra_octets } else { 0 };
        let (head, rest) = data.split_at_checked(extras).ok_or_else(damaged)?;
        let mut bits = Bits::new(rest);
        let groups = usize::try_from(self.count).map_err(|_| damaged())?;
        let mut list = |width: u32| -> Result<Vec<u64>, Fault> {
            if !bits.has(self.count, width) {
                return Err(damaged());
            }
            let numbers = (0..groups).map(|_| bits.next(width)).collect();
            bits.align();
            Ok(numbers)
        };
        let references = list(scale.bits)?;
        let widths = list(self.width_bits)?;
        let lengths = list(self.length_bits)?;
        let mut integers: Vec<Option<i64>> = Vec::with_capacity(count);
        for (number, ((reference, width), length)) in references.iter().zip(&widths).zip(&lengths).enumerate()
        {
            let width = u32::try_from(*width).unwrap_or(u32::MAX).saturating_add(self.width_reference);
            let length = if number + 1 == groups {
                self.last_length
            } else {
                self.length_increment.saturating_mul(*length).saturating_add(self.length_reference)
            };
            if width > MAX_BITS || length > (count - integers.len()) as u64 || !bits.has(length, width) {
                return Err(damaged());
            }
            // The largest integers of a group are missing values; those of a group without a width are in its reference.
            let ones = |width: u32| (1u64 << width) - 1;
            let is_missing = |value: u64, width: u32| {
                width > 0
                    && (1..=u64::from(self.missing))
                        .any(|kind| ones(width).checked_sub(kind - 1) == Some(value))
            };
            for _ in 0..length {
                let value = bits.next(width);
                let missing =
                    if width == 0 { is_missing(*reference, scale.bits) } else { is_missing(value, width) };
                integers.push((!missing).then_some(reference.wrapping_add(value).cast_signed()));
            }
        }
        if integers.len() != count {
            return Fault::malformed(format!("groups of {} values instead of {count}", integers.len()));
        }
        if self.order > 0 {
            self.sum_up(head, &mut integers);
        }
        let values = scale.values(integers.iter().map(|integer| integer.unwrap_or(0)));
        let keep = |(value, integer): (f64, &Option<i64>)| if integer.is_some() { value } else { f64::NAN };
        Ok(values.into_iter().zip(&integers).map(keep).collect())
    }

    /// Replaces differences by values. The first values and the least difference are stored before the groups.
    fn sum_up(&self, head: &[u8], integers: &mut [Option<i64>]) {
        let number = |at: usize| {
            let bytes = &head[at * self.extra_octets..(at + 1) * self.extra_octets];
            bytes.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte))
        };
        let first = [number(0).cast_signed(), number(1).cast_signed()];
        let width = u32::try_from(self.extra_octets * 8).unwrap_or(0);
        let least = sign_magnitude(number(self.order), width);
        let (mut before, mut last) = (0i64, 0i64);
        for (position, integer) in integers.iter_mut().flatten().enumerate() {
            let value = if position < self.order {
                first[position]
            } else if self.order == 1 {
                last.wrapping_add(*integer).wrapping_add(least)
            } else {
                integer.wrapping_add(least).wrapping_add(last.wrapping_mul(2)).wrapping_sub(before)
            };
            (before, last) = (last, value);
            *integer = value;
        }
    }
}
