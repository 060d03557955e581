//! Grids: their shape, the order of the points in a message, and coordinates.

use super::octets::{Fault, Octets};

/// A grid.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    pub(super) kind: GridKind,
    /// The number of points.
    pub(super) points: u64,
    /// Points of a row, unless the grid is reduced.
    pub(super) ni: u64,
    /// Rows.
    pub(super) nj: u64,
    /// The order of the points in a message.
    pub(super) scan: Scan,
    /// First and last coordinates, in degrees.
    pub(super) first: (f64, f64),
    pub(super) last: (f64, f64),
    /// The distance of columns and rows in degrees, if it is given.
    pub(super) increments: (Option<f64>, Option<f64>),
}

/// The kind of a grid.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GridKind {
    /// Equidistant latitudes and longitudes.
    LatLon,
    /// Gaussian latitudes, equidistant longitudes; the number of latitudes between a pole and the equator.
    Gaussian(u32),
    /// Equidistant latitudes, rows of their own length.
    ReducedLatLon(Vec<u32>),
    /// Gaussian latitudes, rows of their own length.
    ReducedGaussian(u32, Vec<u32>),
    /// Equidistant latitudes and longitudes of a rotated sphere: latitude and longitude of its south pole, angle.
    RotatedLatLon(f64, f64, f64),
    /// Another grid of rows and columns, by its template or type number.
    Other(u16),
}

/// The order of the points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "flags of the format")]
pub(super) struct Scan {
    /// Rows run to the west.
    pub(super) i_negative: bool,
    /// Rows follow each other to the north.
    pub(super) j_positive: bool,
    /// Points of a column are consecutive.
    pub(super) columns: bool,
    /// Every second row runs in the opposite direction.
    pub(super) alternating: bool,
}

impl Scan {
    fn new(flags: u8) -> Result<Self, Fault> {
        if flags & 0x0f != 0 {
            return Fault::unsupported(format!("scanning mode {flags} (rows with offsets)"));
        }
        // Programs do not agree on which lines run backwards.
        if flags & 0x30 == 0x30 {
            return Fault::unsupported(format!("scanning mode {flags} (columns in alternating directions)"));
        }
        Ok(Self {
            i_negative: flags & 0x80 != 0,
            j_positive: flags & 0x40 != 0,
            columns: flags & 0x20 != 0,
            alternating: flags & 0x10 != 0,
        })
    }
}

/// Longest side of a grid. Larger ones are not known to exist.
const MAX_SIDE: u64 = 1 << 20;
/// The largest Gaussian number; the latitudes take quadratic time.
const MAX_GAUSSIAN: u32 = 8000;

impl Grid {
    /// Section 3 of edition 2.
    pub(super) fn edition2(section: Octets<'_>) -> Result<Self, Fault> {
        let points = u64::from(section.u32(7)?);
        let list_octets = usize::from(section.u8(11)?);
        let template = section.u16(13)?;
        if section.u8(6)? != 0 {
            return Fault::unsupported("a grid that is defined by its originating centre only");
        }
        match template {
            0 | 1 | 40 => {}
            10 | 20 | 30 => {
                let (ni, nj) = (section.u32(31)?.into(), section.u32(35)?.into());
                let scan = Scan::new(section.u8(if template == 10 { 60 } else { 65 })?)?;
                return Self::checked(Self::projected(template, points, (ni, nj), scan));
            }
            50..=53 => return Fault::unsupported("spherical harmonics"),
            101 | 150 => return Fault::unsupported(format!("grid template 3.{template} (unstructured)")),
            _ => return Fault::unsupported(format!("grid template 3.{template}")),
        }
        let (basic, divisions) = (section.u32(39)?, section.u32(43)?);
        let unit = match (basic, divisions) {
            (0 | u32::MAX, _) | (_, 0 | u32::MAX) => 1e-6,
            _ => f64::from(basic) / f64::from(divisions),
        };
        #[expect(clippy::cast_precision_loss, reason = "32 bits")]
        let angle = |at: usize| section.signed(at, 4).map(|value| value as f64 * unit);
        let increment = |at: usize| -> Result<Option<f64>, Fault> {
            let value = section.u32(at)?;
            Ok((value != 0 && value != u32::MAX).then_some(f64::from(value) * unit))
        };
        let (ni, nj) = (section.u32(31)?, u64::from(section.u32(35)?));
        let flags = section.u8(55)?;
        let given = |bit: u8, value: Option<f64>| value.filter(|_| flags & bit != 0);
        let is_gaussian = template == 40;
        let di = given(0x20, increment(64)?);
        let dj = if is_gaussian { None } else { given(0x10, increment(68)?) };
        let scan = Scan::new(section.u8(72)?)?;
        let list_at = if template == 1 { 85 } else { 73 };
        let is_reduced = ni == u32::MAX;
        let rows = if is_reduced { row_lengths(section, list_at, list_octets, nj)? } else { Vec::new() };
        let gaussian = if is_gaussian { section.u32(68)? } else { 0 };
        let kind = match (template, is_reduced) {
            (0, false) => GridKind::LatLon,
            (0, true) => GridKind::ReducedLatLon(rows),
            (40, false) => GridKind::Gaussian(gaussian),
            (40, true) => GridKind::ReducedGaussian(gaussian, rows),
            (_, false) => {
                GridKind::RotatedLatLon(angle(73)?, angle(77)?, f64::from(f32::from_bits(section.u32(81)?)))
            }
            (_, true) => return Fault::unsupported("a rotated reduced grid"),
        };
        let ni = if is_reduced { 0 } else { ni.into() };
        let (first, last) = ((angle(47)?, angle(51)?), (angle(56)?, angle(60)?));
        Self::checked(Self { kind, points, ni, nj, scan, first, last, increments: (di, dj) })
    }

    /// Section 2 of edition 1.
    pub(super) fn edition1(section: Octets<'_>) -> Result<Self, Fault> {
        let kind = section.u8(6)?;
        let (ni, nj) = (section.u16(7)?, u64::from(section.u16(9)?));
        match kind {
            0 | 4 | 10 => {}
            1 | 3 | 5 => {
                let (ni, scan) = (u64::from(ni), Scan::new(section.u8(28)?)?);
                let points = ni.saturating_mul(nj);
                return Self::checked(Self::projected(kind.into(), points, (ni, nj), scan));
            }
            50 | 60 | 70 | 80 => return Fault::unsupported("spherical harmonics"),
            _ => return Fault::unsupported(format!("grid type {kind}")),
        }
        #[expect(clippy::cast_precision_loss, reason = "24 bits")]
        let angle = |at: usize| section.signed(at, 3).map(|value| value as f64 * 1e-3);
        let flags = section.u8(17)?;
        let increment = |at: usize| -> Result<Option<f64>, Fault> {
            let value = section.u16(at)?;
            let given = flags & 0x80 != 0 && value != 0 && value != u16::MAX;
            Ok(given.then_some(f64::from(value) * 1e-3))
        };
        let is_gaussian = kind == 4;
        let (di, dj) = (increment(24)?, if is_gaussian { None } else { increment(26)? });
        let gaussian = if is_gaussian { section.u16(26)?.into() } else { 0 };
        let scan = Scan::new(section.u8(28)?)?;
        let (vertical, list_at) = (usize::from(section.u8(4)?), usize::from(section.u8(5)?));
        let is_reduced = ni == u16::MAX;
        let rows = if is_reduced {
            if list_at == 255 || list_at == 0 {
                return Fault::malformed("a reduced grid without the lengths of its rows");
            }
            row_lengths(section, list_at + 4 * vertical, 2, nj)?
        } else {
            Vec::new()
        };
        let points = if is_reduced {
            rows.iter().map(|len| u64::from(*len)).sum()
        } else {
            u64::from(ni).saturating_mul(nj)
        };
        let kind = match (kind, is_reduced) {
            (0, false) => GridKind::LatLon,
            (0, true) => GridKind::ReducedLatLon(rows),
            (4, false) => GridKind::Gaussian(gaussian),
            (4, true) => GridKind::ReducedGaussian(gaussian, rows),
            (_, false) => GridKind::RotatedLatLon(angle(33)?, angle(36)?, section.ibm(39)?),
            (_, true) => return Fault::unsupported("a rotated reduced grid"),
        };
        let ni = if is_reduced { 0 } else { ni.into() };
        let (first, last) = ((angle(11)?, angle(14)?), (angle(18)?, angle(21)?));
        Self::checked(Self { kind, points, ni, nj, scan, first, last, increments: (di, dj) })
    }

    fn projected(number: u16, points: u64, (ni, nj): (u64, u64), scan: Scan) -> Self {
        let kind = GridKind::Other(number);
        Self { kind, points, ni, nj, scan, first: (0.0, 0.0), last: (0.0, 0.0), increments: (None, None) }
    }

    /// Checks that the numbers belong together.
    fn checked(self) -> Result<Self, Fault> {
        let found = match &self.kind {
            GridKind::ReducedLatLon(rows) | GridKind::ReducedGaussian(_, rows) => {
                if self.scan != Scan::default() {
                    return Fault::unsupported(
                        "a reduced grid that does not run from north west to south east",
                    );
                }
                rows.iter().map(|len| u64::from(*len)).sum()
            }
            _ => self.ni.saturating_mul(self.nj),
        };
        if self.ni > MAX_SIDE || self.nj > MAX_SIDE || found == 0 || found != self.points {
            let (points, ni, nj) = (self.points, self.ni, self.nj);
            return Fault::malformed(format!("a grid of {points} points with {nj} rows and {ni} columns"));
        }
        if let GridKind::Gaussian(n) | GridKind::ReducedGaussian(n, _) = self.kind
            && (n == 0 || n > MAX_GAUSSIAN || self.nj > u64::from(n) * 2)
        {
            let nj = self.nj;
            return Fault::malformed(format!("a Gaussian grid of number {n} with {nj} rows"));
        }
        Ok(self)
    }

    /// The name of the grid type that other programs use.
    pub(super) fn name(&self) -> String {
        match self.kind {
            GridKind::LatLon => "regular_ll".to_owned(),
            GridKind::Gaussian(_) => "regular_gg".to_owned(),
            GridKind::ReducedLatLon(_) => "reduced_ll".to_owned(),
            GridKind::ReducedGaussian(..) => "reduced_gg".to_owned(),
            GridKind::RotatedLatLon(..) => "rotated_ll".to_owned(),
            GridKind::Other(10 | 1) => "mercator".to_owned(),
            GridKind::Other(20 | 5) => "polar_stereographic".to_owned(),
            GridKind::Other(30 | 3) => "lambert".to_owned(),
            GridKind::Other(number) => format!("grid_{number}"),
        }
    }

    /// Whether the points are not rows of one length.
    pub(super) fn is_reduced(&self) -> bool {
        matches!(self.kind, GridKind::ReducedLatLon(_) | GridKind::ReducedGaussian(..))
    }

    /// The shape of a field: rows and columns, or all points.
    pub(super) fn shape(&self) -> Vec<u64> {
        if self.is_reduced() { vec![self.points] } else { vec![self.nj, self.ni] }
    }

    /// Puts points in rows of one direction. Coordinates follow the direction of the rows.
    pub(super) fn rows<T: Copy + Default>(&self, values: Vec<T>) -> Vec<T> {
        if self.is_reduced() || !(self.scan.columns || self.scan.alternating) {
            return values;
        }
        let (ni, nj) = (fit(self.ni), fit(self.nj));
        let mut values = values;
        if self.scan.alternating {
            values.chunks_mut(ni.max(1)).skip(1).step_by(2).for_each(<[T]>::reverse);
        }
        if !self.scan.columns {
            return values;
        }
        let mut rows = vec![T::default(); values.len()];
        for (column, points) in values.chunks_exact(nj.max(1)).enumerate() {
            for (row, point) in points.iter().enumerate() {
                rows[row * ni + column] = *point;
            }
        }
        rows
    }

    /// Reverses every second row of the points of a message.
    pub(super) fn turn_rows<T>(&self, mut points: &mut [T]) {
        if let GridKind::ReducedLatLon(rows) | GridKind::ReducedGaussian(_, rows) = &self.kind {
            for (number, len) in rows.iter().enumerate() {
                let len = usize::try_from(*len).unwrap_or(usize::MAX).min(points.len());
                let (row, rest) = std::mem::take(&mut points).split_at_mut(len);
                if number % 2 == 1 {
                    row.reverse();
                }
                points = rest;
            }
            return;
        }
        let len = if self.scan.columns { self.nj } else { self.ni };
        points.chunks_mut(fit(len).max(1)).skip(1).step_by(2).for_each(<[T]>::reverse);
    }

    /// Latitudes of the rows, in their order; `None` if the grid has none.
    pub(super) fn row_latitudes(&self) -> Option<Vec<f64>> {
        match &self.kind {
            GridKind::LatLon | GridKind::ReducedLatLon(_) | GridKind::RotatedLatLon(..) => {
                let step = self.increments.1.map(|step| if self.scan.j_positive { step } else { -step });
                Some(spaced(self.first.0, self.last.0, step, fit(self.nj)))
            }
            GridKind::Gaussian(n) | GridKind::ReducedGaussian(n, _) => {
                let mut all = gaussian_latitudes(*n);
                if self.scan.j_positive {
                    all.reverse();
                }
                let distance = |at: usize| (all[at] - self.first.0).abs();
                let last_start = all.len().checked_sub(fit(self.nj))?;
                let start = (0..=last_start).min_by(|a, b| distance(*a).total_cmp(&distance(*b)))?;
                Some(all[start..start + fit(self.nj)].to_vec())
            }
            GridKind::Other(_) => None,
        }
    }

    /// Longitudes of the columns of a regular grid, monotonic.
    pub(super) fn column_longitudes(&self) -> Vec<f64> {
        let (first, last) = (self.first.1, self.last.1);
        let step = self.increments.0.map(|step| if self.scan.i_negative { -step } else { step });
        // A row that crosses the first meridian starts with a negative longitude.
        let (first, last) = match self.scan.i_negative {
            false if last < first => (first - 360.0, last),
            true if last > first => (first, last - 360.0),
            _ => (first, last),
        };
        spaced(first, last, step, fit(self.ni))
    }

    /// Whether the rows of a reduced grid go round the sphere. Rows of a part of it have points that depend on the rules of a centre.
    pub(super) fn is_global(&self) -> bool {
        let (GridKind::ReducedLatLon(rows) | GridKind::ReducedGaussian(_, rows)) = &self.kind else {
            return false;
        };
        let widest = f64::from(rows.iter().copied().max().unwrap_or(1).max(1));
        let span = (self.last.1 - self.first.1).rem_euclid(360.0);
        span + 1.5 * 360.0 / widest >= 360.0
    }

    /// Latitude and longitude of every point of a reduced or rotated grid; `None` if they cannot be computed.
    pub(super) fn points(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        match &self.kind {
            GridKind::ReducedLatLon(rows) | GridKind::ReducedGaussian(_, rows) => {
                let latitudes = self.row_latitudes()?;
                if !self.is_global() {
                    return None;
                }
                let mut points = (Vec::with_capacity(fit(self.points)), Vec::with_capacity(fit(self.points)));
                for (latitude, len) in latitudes.iter().zip(rows) {
                    for column in 0..*len {
                        points.0.push(*latitude);
                        points.1.push(self.first.1 + 360.0 * f64::from(column) / f64::from(*len));
                    }
                }
                Some(points)
            }
            GridKind::RotatedLatLon(pole_latitude, pole_longitude, angle) => {
                let (latitudes, longitudes) = (self.row_latitudes()?, self.column_longitudes());
                let mut points = (Vec::with_capacity(fit(self.points)), Vec::with_capacity(fit(self.points)));
                for latitude in &latitudes {
                    for longitude in &longitudes {
                        let point =
                            unrotated((*latitude, *longitude), (*pole_latitude, *pole_longitude), *angle);
                        points.0.push(point.0);
                        points.1.push(point.1);
                    }
                }
                Some(points)
            }
            _ => None,
        }
    }
}

/// The lengths of rows.
fn row_lengths(section: Octets<'_>, at: usize, octets: usize, rows: u64) -> Result<Vec<u32>, Fault> {
    if !matches!(octets, 1 | 2 | 4) {
        return Fault::malformed(format!("lengths of rows of {octets} octets"));
    }
    let list = section.take(at, fit(rows).saturating_mul(octets))?;
    let number = |bytes: &[u8]| bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
    Ok(list.chunks_exact(octets).map(number).collect())
}

fn fit(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Numbers from the first to the last. The ends are rounded less than the step, which is used if they contradict it.
fn spaced(first: f64, last: f64, step: Option<f64>, count: usize) -> Vec<f64> {
    #[expect(clippy::cast_precision_loss, reason = "at most a million")]
    let at = |number: usize| number as f64;
    if count < 2 {
        return vec![first; count];
    }
    let even = (last - first) / at(count - 1);
    let step = match step {
        Some(step) if (even - step).abs() > step.abs() * 0.02 => step,
        _ => even,
    };
    (0..count)
        .map(|number| {
            let value = first + at(number) * step;
            // Coordinates have at most six decimals; sums of steps have more.
            let rounded = (value * 1e6).round() / 1e6;
            if (rounded - value).abs() < 1e-9 { rounded } else { value }
        })
        .collect()
}

/// The Gaussian latitudes of a number, from north to south: the roots of the Legendre polynomial of degree 2n.
pub(super) fn gaussian_latitudes(n: u32) -> Vec<f64> {
    let degree = n * 2;
    let count = f64::from(degree);
    let mut north: Vec<f64> = Vec::new();
    for root in 0..n {
        let mut x = (std::f64::consts::PI * (f64::from(root) + 0.75) / (count + 0.5)).cos();
        for _ in 0..10 {
            let (mut before, mut value) = (1.0, x);
            for k in 2..=degree {
                let k = f64::from(k);
                (before, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k);
            }
            let slope = count * (before - x * value) / (1.0 - x * x);
            let change = value / slope;
            x -= change;
            if change.abs() < 1e-14 {
                break;
            }
        }
        north.push(x.asin().to_degrees());
    }
    let south = north.iter().rev().map(|latitude| -latitude).collect::<Vec<_>>();
    north.into_iter().chain(south).collect()
}

/// The place of a point of a rotated sphere.
fn unrotated(
    (latitude, longitude): (f64, f64),
    (pole_latitude, pole_longitude): (f64, f64),
    angle: f64,
) -> (f64, f64) {
    let (phi, lambda) = (latitude.to_radians(), (longitude - angle).to_radians());
    let tilt = (90.0 + pole_latitude).to_radians();
    let (x, y, z) = (phi.cos() * lambda.cos(), phi.cos() * lambda.sin(), phi.sin());
    let (east, north) = (tilt.cos() * x + tilt.sin() * z, -tilt.sin() * x + tilt.cos() * z);
    let longitude = y.atan2(east).to_degrees() + pole_longitude;
    (north.clamp(-1.0, 1.0).asin().to_degrees(), (longitude + 180.0).rem_euclid(360.0) - 180.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaussian_latitudes_are_those_of_the_tables() {
        let n32 = gaussian_latitudes(32);
        assert_eq!(n32.len(), 64);
        assert!((n32[0] - 87.863_798_839).abs() < 1e-8 && (n32[31] - 1.395_307_9).abs() < 1e-6, "{n32:?}");
        assert!((gaussian_latitudes(640)[0] - 89.892_396_445).abs() < 1e-8);
        assert!((n32[63] + n32[0]).abs() < 1e-12);
    }

    #[test]
    fn rows_are_put_in_one_direction() {
        let grid = |scan| Grid {
            kind: GridKind::LatLon,
            points: 6,
            ni: 3,
            nj: 2,
            scan,
            first: (0.0, 0.0),
            last: (0.0, 0.0),
            increments: (None, None),
        };
        let columns = Scan { columns: true, ..Scan::default() };
        assert_eq!(grid(columns).rows(vec![1, 4, 2, 5, 3, 6]), [1, 2, 3, 4, 5, 6]);
        let alternating = Scan { alternating: true, ..Scan::default() };
        assert_eq!(grid(alternating).rows(vec![1, 2, 3, 6, 5, 4]), [1, 2, 3, 4, 5, 6]);
        let mut points = [1, 2, 3, 6, 5, 4];
        grid(Scan::default()).turn_rows(&mut points);
        assert_eq!(points, [1, 2, 3, 4, 5, 6]);
        let mut points = [1, 4, 5, 2, 3, 6];
        grid(columns).turn_rows(&mut points);
        assert_eq!(points, [1, 4, 2, 5, 3, 6]);
        let reduced = Grid { kind: GridKind::ReducedLatLon(vec![1, 3, 2]), ..grid(Scan::default()) };
        let mut points = [1, 4, 3, 2, 5, 6];
        reduced.turn_rows(&mut points);
        assert_eq!(points, [1, 2, 3, 4, 5, 6]);
        assert!(Scan::new(0x30).is_err() && Scan::new(0x08).is_err() && Scan::new(0xc0).is_ok());
    }
}
