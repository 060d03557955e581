//! Generated columns of every type.

use tercet_tatami::{Bitmap, Column, Field, Lists, Strings, Type, Values};

/// A deterministic random generator.
#[derive(Clone, Debug)]
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ (mixed >> 29)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// The distribution of values; each shape suits another encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Random values.
    Noise,
    /// Few distinct values, in random order.
    Few,
    /// Slowly ascending values.
    Rising,
    /// Long runs.
    Runs,
    /// Small numbers with rare large ones.
    Small,
}

pub(crate) const SHAPES: [Shape; 5] = [Shape::Noise, Shape::Few, Shape::Rising, Shape::Runs, Shape::Small];

fn number(shape: Shape, row: usize, noise: &mut Noise) -> u64 {
    match shape {
        Shape::Noise => noise.next(),
        Shape::Few => [3, u64::MAX, 1 << 40, 77, 1 << 20][usize::try_from(noise.below(5)).unwrap()],
        Shape::Rising => 1000 + 3 * row as u64 + noise.below(3),
        Shape::Runs => (row as u64 / 37) * 1_000_003,
        Shape::Small if noise.below(40) == 0 => noise.below(1 << 30),
        Shape::Small => noise.below(50),
    }
}

fn text(shape: Shape, row: usize, noise: &mut Noise) -> Vec<u8> {
    match shape {
        Shape::Noise => {
            let len = noise.below(40);
            (0..len).map(|_| b'a' + u8::try_from(noise.below(26)).unwrap()).collect()
        }
        shape => {
            let number = number(shape, row, noise);
            format!("https://example.org/a/{number:x}/index.html").into_bytes()
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "any bits will do"
)]
pub(crate) fn column(field: &Field, rows: usize, shape: Shape, noise: &mut Noise) -> Column {
    macro_rules! numbers {
        ($variant:ident, $kind:ty) => {
            Values::$variant((0..rows).map(|row| number(shape, row, noise) as $kind).collect())
        };
    }
    let values = match field.kind {
        Type::Bool => Values::Bool((0..rows).map(|row| number(shape, row, noise) & 1 == 1).collect()),
        Type::Int8 => numbers!(Int8, i8),
        Type::Int16 => numbers!(Int16, i16),
        Type::Int32 => numbers!(Int32, i32),
        Type::Int64 | Type::TimestampMicros => numbers!(Int64, i64),
        Type::UInt8 => numbers!(UInt8, u8),
        Type::UInt16 => numbers!(UInt16, u16),
        Type::UInt32 => numbers!(UInt32, u32),
        Type::UInt64 => numbers!(UInt64, u64),
        Type::Float32 if shape == Shape::Small => {
            Values::Float32((0..rows).map(|_| (noise.below(1000) as f32).sin() * 100.0).collect())
        }
        Type::Float32 => {
            Values::Float32((0..rows).map(|row| f32::from_bits(number(shape, row, noise) as u32)).collect())
        }
        Type::Float64 => {
            Values::Float64((0..rows).map(|row| f64::from_bits(number(shape, row, noise))).collect())
        }
        Type::String | Type::Bytes | Type::BlobRef => {
            let strings: Strings = (0..rows).map(|row| text(shape, row, noise)).collect();
            Values::Bytes(strings)
        }
        Type::List => {
            let mut ends = Vec::new();
            let mut end = 0;
            for _ in 0..rows {
                end += noise.below(6);
                ends.push(end);
            }
            let element = Field::new("", field.scalar()).with_nulls();
            let elements = column(&element, usize::try_from(end).unwrap(), shape, noise);
            Values::List(Box::new(Lists { ends, elements }))
        }
    };
    let out = Column::new(values);
    if field.nullable {
        let validity: Bitmap = (0..rows).map(|_| noise.below(5) > 0).collect();
        return out.with_validity(validity);
    }
    out
}

/// The visible content of a row, so that the values of null slots are not compared.
pub(crate) fn seen(column: &Column, row: usize) -> Option<Vec<Option<Vec<u8>>>> {
    if !column.is_present(row) {
        return None;
    }
    let scalar = |column: &Column, row: usize| column.scalar(row).map(|value| value.to_bytes());
    Some(match &column.values {
        Values::List(lists) => lists.range(row).map(|element| scalar(&lists.elements, element)).collect(),
        _ => vec![scalar(column, row)],
    })
}

/// The rows of a column, as [`seen`].
pub(crate) fn all_seen(column: &Column) -> Vec<Option<Vec<Option<Vec<u8>>>>> {
    (0..column.len()).map(|row| seen(column, row)).collect()
}
