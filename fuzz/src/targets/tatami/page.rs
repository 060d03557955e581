//! Rows made of the input, written and read again.

use std::io::Cursor;

use tercet_core::progress::NoProgress;
use tercet_tatami::format::Codec;
use tercet_tatami::{
    Bitmap, Column, Field, File, Lists, ReadOptions, Schema, Strings, Type, Values, VerifyOptions, Writer,
    WriterOptions, verify,
};

use super::{Cell, cells, source};

/// The input as a stream of choices; zeros past its end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Mostly a small number; 64 bits of the input for bytes from 240 on.
    fn number(&mut self) -> u64 {
        match self.byte() {
            small @ ..240 => u64::from(small),
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    /// Mostly a number with few digits; also both zeros, infinities and NaN.
    fn float(&mut self) -> f64 {
        match self.byte() {
            0 => -0.0,
            1 => f64::NAN,
            2 => f64::INFINITY,
            3 => f64::NEG_INFINITY,
            small @ 4..200 => f64::from(small) / 4.0 - 20.0,
            _ => f64::from_bits(self.number()),
        }
    }

    /// Short strings of few letters, so that they repeat; sometimes a long one.
    fn text(&mut self, valid: bool) -> Vec<u8> {
        let len = match self.byte() {
            255 => 90,
            len => usize::from(len % 9),
        };
        let letter = |byte: u8| if valid { b'a' + byte % 26 } else { byte };
        (0..len).map(|_| letter(self.byte())).collect()
    }
}

/// The rows and options.
struct Case {
    schema: Schema,
    options: WriterOptions,
    columns: Vec<Column>,
    /// Rows per call of the writer.
    batch: usize,
}

#[expect(clippy::cast_possible_truncation, reason = "any bits are a value")]
fn values(choices: &mut Choices<'_>, kind: Type, rows: usize) -> Values {
    let mut numbers = || choices.number();
    match kind {
        Type::Bool => Values::Bool((0..rows).map(|_| numbers() % 2 == 1).collect()),
        Type::Int8 => Values::Int8((0..rows).map(|_| numbers() as i8).collect()),
        Type::Int16 => Values::Int16((0..rows).map(|_| numbers() as i16).collect()),
        Type::Int32 => Values::Int32((0..rows).map(|_| numbers() as i32).collect()),
        Type::Int64 | Type::TimestampMicros => {
            Values::Int64((0..rows).map(|_| numbers().cast_signed()).collect())
        }
        Type::UInt8 => Values::UInt8((0..rows).map(|_| numbers() as u8).collect()),
        Type::UInt16 => Values::UInt16((0..rows).map(|_| numbers() as u16).collect()),
        Type::UInt32 => Values::UInt32((0..rows).map(|_| numbers() as u32).collect()),
        Type::UInt64 => Values::UInt64((0..rows).map(|_| numbers()).collect()),
        Type::Float32 => Values::Float32((0..rows).map(|_| choices.float() as f32).collect()),
        Type::Float64 => Values::Float64((0..rows).map(|_| choices.float()).collect()),
        Type::String | Type::Bytes | Type::BlobRef => {
            Values::Bytes((0..rows).map(|_| choices.text(kind == Type::String)).collect())
        }
        Type::List => Values::List(Box::default()),
    }
}

/// Rows are null where a bit of the input is set. The slots of nulls keep their values: a writer must ignore them.
fn validity(choices: &mut Choices<'_>, rows: usize) -> Bitmap {
    let every = choices.byte();
    (0..rows).map(|_| !choices.byte().is_multiple_of(every.max(1))).collect()
}

fn column(choices: &mut Choices<'_>, field: &Field, rows: usize) -> Column {
    let mut column = if field.kind == Type::List {
        let lengths: Vec<u64> = (0..rows).map(|_| u64::from(choices.byte() % 5)).collect();
        let count = usize::try_from(lengths.iter().sum::<u64>()).unwrap_or(0);
        let elements = Column::new(values(choices, field.scalar(), count));
        let elements =
            if choices.byte() % 2 == 1 { elements.with_validity(validity(choices, count)) } else { elements };
        let ends = lengths.iter().scan(0, |end, len| {
            *end += len;
            Some(*end)
        });
        Column::new(Values::List(Box::new(Lists { ends: ends.collect(), elements })))
    } else {
        Column::new(values(choices, field.kind, rows))
    };
    if field.sort_key {
        column.values = sorted(column.values);
    }
    if field.nullable { column.with_validity(validity(choices, rows)) } else { column }
}

fn sorted(values: Values) -> Values {
    match values {
        Values::Int16(mut v) => {
            v.sort_unstable();
            Values::Int16(v)
        }
        Values::UInt64(mut v) => {
            v.sort_unstable();
            Values::UInt64(v)
        }
        Values::Bytes(v) => {
            let mut strings: Vec<&[u8]> = v.iter().collect();
            strings.sort_unstable();
            Values::Bytes(strings.into_iter().collect::<Strings>())
        }
        other => other,
    }
}

fn case(choices: &mut Choices<'_>) -> Option<Case> {
    let (first, second) = (choices.byte(), choices.byte());
    let interop = first & 0x80 != 0;
    let codec = [Codec::Zstd, Codec::Lz4, Codec::None][usize::from(first % 3)];
    let options = if interop { WriterOptions::interop() } else { WriterOptions::new().with_codec(codec) };
    let options = options
        .with_level(1)
        .with_inline_bounds(first & 0x40 == 0)
        .with_page_max_values(1 + u32::from(choices.byte() % 40))
        .with_page_max_bytes(if second & 1 == 0 { 64 + u32::from(second) } else { 1 << 20 })
        .with_row_group_max_rows(1 + u64::from(choices.byte()))
        .with_blob_run_target_bytes(1 + u64::from(choices.byte()) * 4)
        .with_dictionary_max_values(if second & 2 == 0 { 4 } else { 1000 });
    let mut fields = Vec::new();
    for index in 0..=(choices.byte() % 4) {
        let (kind, flags) = (Type::from_id(choices.byte() % 16)?, choices.byte());
        let name = format!("c{index}");
        let mut field = match kind {
            Type::List if interop => return None,
            Type::List => Field::list(name, Type::from_id(choices.byte() % 14)?),
            _ => Field::new(name, kind),
        };
        field.nullable = flags & 1 != 0;
        field.bloom = flags & 2 != 0;
        field.sort_key =
            index == 0 && flags & 4 != 0 && matches!(kind, Type::Int16 | Type::UInt64 | Type::String);
        fields.push(field);
    }
    let rows = usize::from(choices.byte()) * if second & 4 == 0 { 1 } else { 3 };
    let batch = 1 + usize::from(choices.byte());
    let schema = Schema::new(fields).ok()?;
    let columns = schema.fields().iter().map(|field| column(choices, field, rows)).collect();
    Some(Case { schema, options, columns, batch })
}

fn write(case: &Case) -> Vec<u8> {
    let writer = Writer::new(Cursor::new(Vec::new()), case.schema.clone(), case.options.clone());
    let mut writer = writer.expect("a file can be started");
    let rows = case.columns.first().map_or(0, Column::len);
    for start in (0..rows).step_by(case.batch) {
        let end = rows.min(start + case.batch);
        let part = |(column, field): (&Column, &Field)| {
            let mut part = Column::empty(field);
            part.extend_from(column, start, end);
            part
        };
        let batch: Vec<Column> = case.columns.iter().zip(case.schema.fields()).map(part).collect();
        writer.append(&batch).expect("rows that fit the columns can be written");
    }
    writer.finish().expect("memory can be written").output
}

fn contents(bytes: &[u8], options: ReadOptions) -> Result<Vec<Vec<Cell>>, tercet_tatami::Error> {
    let file = File::from_source(source(bytes), options)?;
    let all: Vec<usize> = (0..file.schema().len()).collect();
    Ok(file.read_columns(&all)?.iter().map(cells).collect())
}

/// Writes rows and reads them again. Then one byte is changed, which must be detected or harmless.
pub(in crate::targets) fn run(input: &[u8]) {
    let mut choices = Choices(input);
    let Some(case) = case(&mut choices) else { return };
    let bytes = write(&case);
    let expected: Vec<Vec<Cell>> = case.columns.iter().map(cells).collect();
    let found = contents(&bytes, ReadOptions::new()).expect("a file that was written can be read");
    assert!(found == expected, "rows round-trip");
    let options = VerifyOptions::default().with_deep(true);
    let report = verify(source(&bytes), options, &NoProgress).expect("memory can be verified");
    assert!(report.ok, "a written file is valid: {:?}", report.findings);
    keys_are_found(&case, &bytes);
    let at = choices.number().checked_rem(bytes.len() as u64).and_then(|at| usize::try_from(at).ok());
    let mut changed = bytes.clone();
    changed[at.unwrap_or(0)] ^= choices.byte().max(1);
    if let Ok(found) = contents(&changed, ReadOptions::new()) {
        assert!(found == expected, "a changed byte changes values");
    }
    // Without checksums a change may give other values, but still returns.
    let _ = contents(&changed, ReadOptions::new().with_verify(false).with_limits(super::limits()));
}

/// Every key is found, at its first row.
fn keys_are_found(case: &Case, bytes: &[u8]) {
    let Some(key) = case.schema.sort_key() else { return };
    let file = File::from_source(source(bytes), ReadOptions::new()).expect("it opened before");
    let column = &case.columns[key];
    let mut known: Option<(Cell, u64)> = None;
    for row in 0..column.len() {
        let Some(value) = column.scalar(row) else { continue };
        let cell = Some(value.to_bytes());
        let first = match known {
            Some((last, first)) if last == cell => first,
            _ => row as u64,
        };
        let found = file.lookup(&value).expect("a key can be looked up");
        assert_eq!(found.map(|found| found.row), Some(first), "the first row of a key is found");
        known = Some((cell, first));
    }
}
