//! [`Plot`]: the values of a series or a field, and what they mean.

use tercet_core::cf_time::CfTime;

/// A plot: values over one or two axes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Plot {
    /// The title.
    pub title: String,
    /// The units of the values.
    pub units: Option<String>,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis of a field; `None` for a series.
    pub y: Option<Axis>,
    /// The values, row by row. NaN is missing.
    pub values: Vec<f64>,
    /// The number of rows and columns of the values: 1 row for a series. There may be fewer than positions on the axes: then each
    /// value is the mean of a block.
    pub shape: (usize, usize),
    /// Min and max that are shown; those of all values if not set.
    pub range: Option<(f64, f64)>,
    /// The number of missing values before means were taken, and of all values.
    pub missing: (u64, u64),
    /// The number of infinite values before means were taken. They are drawn as missing ones.
    pub infinite: u64,
    /// Further remarks, printed below the plot.
    pub remarks: Vec<String>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Axis {
    /// The name.
    pub name: String,
    /// The units of the coordinates.
    pub units: Option<String>,
    /// The coordinates of the positions.
    pub coordinates: Coordinates,
    /// The number of positions.
    pub extent: u64,
}

/// Coordinates of the positions of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Coordinates {
    /// None: positions are shown by number.
    Positions,
    /// Numbers, one per position.
    Numbers(Vec<f64>),
    /// Times, one per position.
    Times(Vec<CfTime>),
    /// Strings, one per position.
    Strings(Vec<String>),
}

impl Axis {
    /// An axis without coordinates.
    pub fn new(name: &str, extent: u64) -> Self {
        Self { name: name.to_owned(), units: None, coordinates: Coordinates::Positions, extent }
    }

    /// Sets the units of the coordinates.
    pub fn with_units(mut self, units: Option<String>) -> Self {
        self.units = units;
        self
    }

    /// Sets the coordinates. A list of another length is ignored.
    pub fn with_coordinates(mut self, coordinates: Coordinates) -> Self {
        let len = match &coordinates {
            Coordinates::Positions => None,
            Coordinates::Numbers(numbers) => Some(numbers.len()),
            Coordinates::Times(times) => Some(times.len()),
            Coordinates::Strings(strings) => Some(strings.len()),
        };
        if len.is_none_or(|len| len as u64 == self.extent) {
            self.coordinates = coordinates;
        }
        self
    }

    /// Name and units; of times the first and the last.
    pub(crate) fn caption(&self) -> String {
        match (&self.coordinates, &self.units) {
            (Coordinates::Times(times), _) => match (times.first(), times.last()) {
                (Some(first), Some(last)) if first != last => {
                    format!("{}: {} to {}", self.name, short_time(first), short_time(last))
                }
                (Some(first), _) => format!("{}: {}", self.name, short_time(first)),
                _ => self.name.clone(),
            },
            (_, Some(units)) => format!("{} [{}]", self.name, units_text(units)),
            (Coordinates::Positions, None) => format!("{} (position)", self.name),
            (_, None) => self.name.clone(),
        }
    }

    fn has(&self, names: &[&str], units: &[&str]) -> bool {
        let name = self.name.to_lowercase();
        let leaf = name.rsplit('/').next().unwrap_or(&name);
        names.contains(&leaf) || self.units.as_deref().is_some_and(|found| units.contains(&found))
    }

    fn is_latitude(&self) -> bool {
        self.has(&["lat", "latitude"], &["degrees_north", "degree_north", "degrees_N"])
    }

    fn is_longitude(&self) -> bool {
        self.has(&["lon", "longitude"], &["degrees_east", "degree_east", "degrees_E"])
    }

    /// Whether the coordinates are angles of a map.
    pub(crate) fn is_degrees(&self) -> bool {
        self.is_latitude() || self.is_longitude()
    }

    /// Pressure and depth grow downwards.
    fn grows_downwards(&self) -> bool {
        self.has(&["depth", "plev", "pressure", "isobaric"], &["hPa", "Pa", "mbar", "millibars", "mb"])
            || self.has(&["level"], &[])
    }

    /// Whether the first row belongs to the bottom of a field.
    fn starts_at_bottom(&self) -> bool {
        let Coordinates::Numbers(numbers) = &self.coordinates else { return false };
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return false };
        if self.grows_downwards() { first > last } else { first < last }
    }
}

/// The position of a value in the range, from 0 to 1; `None` if it is missing. Infinities are drawn as missing values: as an end of the
/// scale they would look like a number.
pub(crate) fn fraction(value: f64, (low, high): (f64, f64)) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    // Halves, so that the difference of extreme values is finite.
    Some(((value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)).clamp(0.0, 1.0))
}

/// A time without seconds that are zero.
pub(crate) fn short_time(time: &CfTime) -> String {
    let text = time.to_string();
    match text.strip_suffix(":00") {
        Some(short) => short.to_owned(),
        None => text,
    }
}

/// Units as people write them.
pub(crate) fn units_text(units: &str) -> &str {
    match units {
        "degrees_north" | "degree_north" => "°N",
        "degrees_east" | "degree_east" => "°E",
        other => other,
    }
}

impl Plot {
    /// A series: values over one axis.
    pub fn series(title: &str, units: Option<String>, x: Axis, values: Vec<f64>) -> Self {
        let shape = (1, values.len());
        let title = title.to_owned();
        let (range, missing, infinite, remarks) = (None, (0, 0), 0, Vec::new());
        Self { title, units, x, y: None, values, shape, range, missing, infinite, remarks }
    }

    /// A field: rows of values over two axes.
    ///
    /// North is up, pressure and depth grow downwards, and other numbers upwards. Longitude is horizontal.
    pub fn field(
        title: &str,
        units: Option<String>,
        (rows, columns): (Axis, Axis),
        shape: (usize, usize),
        mut values: Vec<f64>,
    ) -> Self {
        values.resize(shape.0 * shape.1, f64::NAN);
        let mut plot = Self { y: Some(rows), shape, ..Self::series(title, units, columns, values) };
        plot.transpose_maps();
        plot
    }

    /// Sets the min and the max that are shown.
    pub fn with_range(mut self, range: Option<(f64, f64)>) -> Self {
        self.range = range;
        self
    }

    /// Sets the number of missing values and of all values.
    pub fn with_missing(mut self, missing: u64, total: u64) -> Self {
        self.missing = (missing, total);
        self
    }

    /// Sets the number of infinite values.
    pub fn with_infinite(mut self, infinite: u64) -> Self {
        self.infinite = infinite;
        self
    }

    /// Adds a remark, printed below the plot.
    pub fn with_remark(mut self, remark: impl Into<String>) -> Self {
        self.remarks.push(remark.into());
        self
    }

    /// Makes longitude the horizontal axis of a map.
    fn transpose_maps(&mut self) {
        let Some(y) = &mut self.y else { return };
        if !(y.is_longitude() && self.x.is_latitude()) {
            return;
        }
        std::mem::swap(y, &mut self.x);
        let (rows, columns) = self.shape;
        let old = std::mem::take(&mut self.values);
        self.values = (0..columns)
            .flat_map(|column| (0..rows).map(move |row| (row, column)))
            .map(|(row, column)| old[row * columns + column])
            .collect();
        self.shape = (columns, rows);
    }

    /// Whether the first row is drawn at the bottom.
    pub(crate) fn is_flipped(&self) -> bool {
        self.y.as_ref().is_some_and(Axis::starts_at_bottom)
    }

    /// The range of values that is shown; `None` if no value is finite.
    pub(crate) fn value_range(&self) -> Option<(f64, f64)> {
        if let Some(range) = self.range {
            return Some(range);
        }
        let finite = self.values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = finite
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        (low <= high).then_some((low, high))
    }

    /// The range of the values, widened if it is a single value.
    pub(crate) fn drawn_range(&self) -> Option<(f64, f64)> {
        let (low, high) = self.value_range()?;
        if low < high {
            return Some((low, high));
        }
        let margin = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
        Some((low - margin, high + margin))
    }

    /// The title with the units.
    pub(crate) fn heading(&self) -> String {
        match &self.units {
            Some(units) => format!("{} [{}]", self.title, units_text(units)),
            None => self.title.clone(),
        }
    }

    /// Remarks about missing values and means; `cells` is the number of rows and columns that are drawn.
    pub(crate) fn remarks(&self, cells: (usize, usize)) -> Vec<String> {
        let mut remarks = self.remarks.clone();
        let (missing, total) = self.missing;
        let absent: Vec<String> = [(missing, "missing"), (self.infinite, "infinite")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, kind)| format!("{kind}, {count} of {total} values"))
            .collect();
        if !absent.is_empty() {
            let what = if self.y.is_some() { "blank" } else { "gaps" };
            remarks.push(format!("{what}: {}", absent.join("; ")));
        }
        let block = |extent: u64, cells: usize| extent.div_ceil(cells.max(1) as u64);
        let columns = block(self.x.extent, cells.1);
        match &self.y {
            Some(y) => {
                let rows = block(y.extent, cells.0);
                if rows > 1 || columns > 1 {
                    remarks.push(format!("means of blocks of up to {rows}×{columns} values"));
                }
            }
            None if columns > 1 => remarks.push(format!("means of up to {columns} values")),
            None => {}
        }
        remarks
    }
}
