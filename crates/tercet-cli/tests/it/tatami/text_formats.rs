//! Rows round-trip through CSV and JSONL bit for bit.

use tercet::tatami::{
    Bitmap, Column, Field, File, Lists, Schema, Strings, Type, Values, Writer, WriterOptions,
};

use super::TestDir;

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A random integer, mostly small or at the ends of the range.
    fn number(&mut self) -> i64 {
        match self.below(6) {
            0 => i64::MIN,
            1 => i64::MAX,
            2 => self.next().cast_signed(),
            _ => self.below(2_000_000).cast_signed() - 1_000_000,
        }
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 24] = [
            "",
            "a",
            "\"",
            "\"\"",
            ",",
            "\n",
            "\r\n",
            "\r",
            "\t",
            "\0",
            "\\",
            "\\u0041",
            "é",
            "日本",
            "\u{1f600}",
            "\u{2028}",
            "null",
            "NaN",
            "[",
            "1",
            " ",
            "<&>",
            "\u{feff}",
            "`",
        ];
        (0..self.below(5)).map(|_| PIECES[self.below(24) as usize]).collect()
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.below(9)).map(|_| self.next() as u8).collect()
    }

    fn float(&mut self, any: bool) -> f64 {
        match self.below(8) {
            0 => -0.0,
            1 => 5e-324,
            2 => f64::MAX,
            3 if any => f64::NAN,
            4 if any => f64::NEG_INFINITY,
            5 => f64::from(self.number() as i32),
            _ => Some(f64::from_bits(self.next())).filter(|value| value.is_finite()).unwrap_or(0.1 + 0.2),
        }
    }

    fn float32(&mut self, any: bool) -> f32 {
        match self.below(6) {
            0 => -0.0,
            1 if any => f32::INFINITY,
            2 if any => f32::NAN,
            _ => Some(f32::from_bits(self.next() as u32)).filter(|value| value.is_finite()).unwrap_or(1e-45),
        }
    }

    /// Digits of a decimal with this number of bytes.
    fn decimal(&mut self, width: usize) -> Vec<u8> {
        let number = i128::from(self.number()) * i128::from(self.next().cast_signed() >> self.below(63));
        let sign = if number < 0 { 0xff } else { 0 };
        let mut bytes = vec![sign; width - 16];
        bytes.extend(number.to_be_bytes());
        bytes
    }

    /// The values of a column; `any` floats only where the format has them.
    fn values(&mut self, kind: &str, rows: usize, any: bool) -> Values {
        let mut strings = Strings::new();
        let count = 0..rows;
        match kind {
            "bool" => Values::Bool(count.map(|_| self.below(2) == 0).collect()),
            "int8" => Values::Int8(count.map(|_| self.number() as i8).collect()),
            "int16" => Values::Int16(count.map(|_| self.number() as i16).collect()),
            "int32" | "date32" | "time[ms]" => Values::Int32(count.map(|_| self.number() as i32).collect()),
            "decimal128[9, 2]" => {
                Values::Int32(count.map(|_| (self.number() % 1_000_000_000) as i32).collect())
            }
            "decimal64[18, 18]" => {
                Values::Int64(count.map(|_| self.number() % 1_000_000_000_000_000_000).collect())
            }
            "uint8" => Values::UInt8(count.map(|_| self.number().cast_unsigned() as u8).collect()),
            "uint16" => Values::UInt16(count.map(|_| self.number().cast_unsigned() as u16).collect()),
            "uint32" => Values::UInt32(count.map(|_| self.number().cast_unsigned() as u32).collect()),
            "uint64" => Values::UInt64(count.map(|_| self.number().cast_unsigned()).collect()),
            "float32" => Values::Float32(count.map(|_| self.float32(any)).collect()),
            "float64" => Values::Float64(count.map(|_| self.float(any)).collect()),
            "string" => {
                count.for_each(|_| strings.push(self.text().as_bytes()));
                Values::Bytes(strings)
            }
            "bytes" | "blobref" => {
                count.for_each(|_| strings.push(&self.bytes()));
                Values::Bytes(strings)
            }
            "decimal128[38, -2]" => {
                count.for_each(|_| strings.push(&self.decimal(16)));
                Values::Bytes(strings)
            }
            "decimal256[60, 30]" => {
                count.for_each(|_| strings.push(&self.decimal(32)));
                Values::Bytes(strings)
            }
            // This type stores whole milliseconds only.
            "timestamp[ms, UTC]" => Values::Int64(count.map(|_| self.number() / 1000 * 1000).collect()),
            _ => Values::Int64(count.map(|_| self.number()).collect()),
        }
    }

    fn validity(&mut self, rows: usize) -> Bitmap {
        (0..rows).map(|_| self.below(4) > 0).collect()
    }
}

const KINDS: [(&str, Type); 28] = [
    ("bool", Type::Bool),
    ("int8", Type::Int8),
    ("int16", Type::Int16),
    ("int32", Type::Int32),
    ("int64", Type::Int64),
    ("uint8", Type::UInt8),
    ("uint16", Type::UInt16),
    ("uint32", Type::UInt32),
    ("uint64", Type::UInt64),
    ("float32", Type::Float32),
    ("float64", Type::Float64),
    ("string", Type::String),
    ("bytes", Type::Bytes),
    ("blobref", Type::BlobRef),
    ("timestamp_micros", Type::TimestampMicros),
    ("timestamp[ms, UTC]", Type::TimestampMicros),
    ("timestamp[us]", Type::TimestampMicros),
    ("date32", Type::Int32),
    ("date64", Type::Int64),
    ("time[ms]", Type::Int32),
    ("time[ns]", Type::Int64),
    ("duration[s]", Type::Int64),
    ("duration[ns]", Type::Int64),
    ("decimal128[9, 2]", Type::Int32),
    ("decimal64[18, 18]", Type::Int64),
    ("decimal128[38, -2]", Type::Bytes),
    ("decimal256[60, 30]", Type::Bytes),
    ("int64", Type::Int64),
];

/// Every type as a column, with nulls, and as lists with and without nulls; and the schema as a command-line option.
fn table(random: &mut Random, rows: usize, any: bool) -> (Schema, Vec<Column>, String, WriterOptions) {
    let (mut fields, mut columns, mut specs) = (Vec::new(), Vec::new(), Vec::new());
    let mut options = WriterOptions::new();
    for (index, (kind, stored)) in KINDS.into_iter().enumerate() {
        let lists = if stored == Type::BlobRef { 1 } else { 2 };
        for form in 0..lists {
            let name = format!("{}, \"{kind}\" `{form}:\n{index}", ["plain", "list"][form]);
            let type_name = if form == 0 { kind.to_owned() } else { format!("list:{kind}") };
            specs.push(format!("`{}`:{type_name}:nullable", name.replace('`', "``")));
            if kind.contains('[') || kind.starts_with("date") {
                options = options.with_metadata(format!("arrow.type:{name}"), kind);
            }
            let column = if form == 0 {
                fields.push(Field::new(name, stored).with_nulls());
                Column::new(random.values(kind, rows, any))
            } else {
                fields.push(Field::list(name, stored).with_nulls());
                let mut end = 0;
                let ends: Vec<u64> = (0..rows)
                    .map(|_| {
                        end += random.below(4);
                        end
                    })
                    .collect();
                let elements = Column::new(random.values(kind, end as usize, false));
                let elements = elements.with_validity(random.validity(end as usize));
                Column::new(Values::List(Box::new(Lists { ends, elements })))
            };
            columns.push(column.with_validity(random.validity(rows)));
        }
    }
    (Schema::new(fields).unwrap(), columns, specs.join(","), options)
}

fn rows_of(dir: &TestDir, name: &str) -> Vec<Column> {
    let file = File::open(dir.path(name)).unwrap();
    let mut all: Option<Vec<Column>> = None;
    for batch in file.scan().with_batch_rows(1 << 20).batches() {
        let batch = batch.unwrap().columns;
        match &mut all {
            Some(all) => {
                for (mine, theirs) in all.iter_mut().zip(&batch) {
                    mine.extend_from(theirs, 0, theirs.len());
                }
            }
            None => all = Some(batch),
        }
    }
    all.unwrap()
}

/// A value as text that distinguishes every bit.
fn bits(column: &Column, row: usize) -> String {
    if !column.is_present(row) {
        return "null".to_owned();
    }
    match &column.values {
        Values::Float32(v) => format!("{:08x}", v[row].to_bits()),
        Values::Float64(v) => format!("{:016x}", v[row].to_bits()),
        Values::List(lists) => {
            let elements: Vec<String> = lists.range(row).map(|at| bits(&lists.elements, at)).collect();
            format!("{elements:?}")
        }
        _ => format!("{:?}", column.scalar(row).unwrap()),
    }
}

#[test]
fn rows_round_trip_through_text_formats() {
    let dir = TestDir::new();
    for (round, (format, any)) in
        [("csv", true), ("jsonl", false), ("tsv", true), ("csv", true), ("jsonl", false)]
            .into_iter()
            .enumerate()
    {
        let mut random = Random(0x1234_5678_9abc_def1 + round as u64 * 77);
        let rows = [400, 400, 100, 1, 3][round];
        let (schema, columns, spec, options) = table(&mut random, rows, any);
        let path = dir.path("a.tatami");
        let mut writer = Writer::create(&path, schema, options.with_overwrite(true)).unwrap();
        writer.append(&columns).unwrap();
        writer.finish().unwrap();
        let output = dir.run_args(&["convert", "a.tatami", &format!("b.{format}"), "--force"]);
        assert_eq!((output.code, output.err.as_str()), (0, ""));
        let args = ["convert", &format!("b.{format}"), "c.tatami", "--force", "--schema", &spec];
        let output = dir.run_args(&args);
        assert_eq!((output.code, output.err.as_str()), (0, ""), "{format}");
        let back = rows_of(&dir, "c.tatami");
        for ((kind, before), after) in spec.split("nullable,").zip(&rows_of(&dir, "a.tatami")).zip(&back) {
            assert_eq!((before.len(), after.len()), (rows, rows));
            for row in 0..rows {
                assert_eq!(bits(after, row), bits(before, row), "{format}, row {row} of {kind}");
            }
        }
        assert_eq!(File::open(&path).unwrap().logical_types(), {
            File::open(dir.path("c.tatami")).unwrap().logical_types()
        });
    }
}

/// A single column: an empty CSV record is a null row.
#[test]
fn a_single_column_round_trips() {
    let dir = TestDir::new();
    for kind in ["string", "bytes", "int64", "list:string"] {
        dir.write(
            "a.jsonl",
            match kind {
                "string" => "{\"x\":\"\"}\n{\"x\":null}\n{\"x\":\" \"}\n",
                "bytes" => "{\"x\":\"\"}\n{\"x\":null}\n{\"x\":\"AA==\"}\n",
                "int64" => "{\"x\":-9223372036854775808}\n{\"x\":null}\n",
                _ => "{\"x\":[]}\n{\"x\":null}\n{\"x\":[null,\"\"]}\n",
            },
        );
        let schema = format!("x:{kind}:nullable");
        for format in ["csv", "tsv", "jsonl"] {
            dir.ok(&format!("convert a.jsonl a.{format}2 --to {format} --force --schema {schema}"));
            dir.ok(&format!("convert a.{format}2 b.tatami --from-format {format} --force --schema {schema}"));
            let expected = std::fs::read_to_string(dir.path("a.jsonl")).unwrap();
            assert_eq!(dir.ok("cat b.tatami").out, expected, "{kind} {format}");
        }
    }
}
