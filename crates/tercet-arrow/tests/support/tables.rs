//! Tables with a column of every supported type, and their comparison.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryDictionaryBuilder, FixedSizeBinaryBuilder, FixedSizeListBuilder, Int32Builder, LargeListBuilder,
    ListBuilder, ListViewBuilder, PrimitiveDictionaryBuilder, StringBuilder, StringDictionaryBuilder,
};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, LargeBinaryArray, LargeStringArray, PrimitiveArray,
    RecordBatch, StringArray, StringViewArray,
};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Schema, TimeUnit};

/// The bytes of a value, by the slowest way; `None` for null.
fn dump(array: &ArrayRef, row: usize) -> Option<Vec<u8>> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        return None;
    }
    Some(match array.data_type() {
        DataType::Boolean => vec![u8::from(array.as_boolean().value(row))],
        DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes().to_vec(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes().to_vec(),
        DataType::Utf8View => array.as_string_view().value(row).as_bytes().to_vec(),
        DataType::Binary => array.as_binary::<i32>().value(row).to_vec(),
        DataType::LargeBinary => array.as_binary::<i64>().value(row).to_vec(),
        DataType::BinaryView => array.as_binary_view().value(row).to_vec(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row).to_vec(),
        DataType::Dictionary(..) => {
            let coded = array.as_any_dictionary();
            return dump(coded.values(), coded.normalized_keys()[row]);
        }
        DataType::List(_) => elements(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => elements(&array.as_list::<i64>().value(row)),
        DataType::ListView(_) => elements(&array.as_list_view::<i32>().value(row)),
        DataType::FixedSizeList(..) => elements(&array.as_fixed_size_list().value(row)),
        other => {
            let width = other.primitive_width().unwrap_or_else(|| panic!("{other}"));
            let data = array.to_data();
            let start = (data.offset() + row) * width;
            data.buffers()[0][start..start + width].to_vec()
        }
    })
}

fn elements(values: &ArrayRef) -> Vec<u8> {
    let mut out = Vec::new();
    for row in 0..values.len() {
        match dump(values, row) {
            None => out.push(0),
            Some(bytes) => {
                out.push(1);
                out.extend(bytes.len().to_le_bytes());
                out.extend(bytes);
            }
        }
    }
    out
}

fn dumped(batches: &[RecordBatch], column: usize) -> Vec<Option<Vec<u8>>> {
    let rows = batches.iter().flat_map(|batch| {
        let array = batch.column(column);
        (0..array.len()).map(|row| dump(array, row))
    });
    rows.collect()
}

/// A type without its string layout and list offsets.
fn plain(kind: &DataType) -> DataType {
    let element = |field: &Field| {
        let named = Field::new("element", plain(field.data_type()), true);
        Arc::new(named.with_metadata(field.metadata().clone()))
    };
    match kind {
        DataType::Dictionary(key, values) => DataType::Dictionary(key.clone(), Box::new(plain(values))),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::List(field) | DataType::LargeList(field) | DataType::ListView(field) => {
            DataType::List(element(field))
        }
        DataType::FixedSizeList(field, len) => DataType::FixedSizeList(element(field), *len),
        other => other.clone(),
    }
}

/// Compares types up to layout, metadata of columns and table, and every bit of every value.
pub(crate) fn assert_same(expected: &RecordBatch, schema: &Schema, found: &[RecordBatch], what: &str) {
    assert_eq!(expected.schema().metadata(), schema.metadata(), "{what}");
    assert_eq!(expected.num_columns(), schema.fields().len(), "{what}");
    for (a, b) in expected.schema().fields().iter().zip(schema.fields()) {
        assert_eq!((a.name(), a.is_nullable()), (b.name(), b.is_nullable()), "{what}");
        assert_eq!(plain(a.data_type()), plain(b.data_type()), "{what}: {}", a.name());
        assert_eq!(a.metadata(), b.metadata(), "{what}: {}", a.name());
        assert_eq!(a.dict_is_ordered(), b.dict_is_ordered(), "{what}: {}", a.name());
    }
    for column in 0..expected.num_columns() {
        let name = expected.schema().field(column).name().clone();
        assert_eq!(dumped(std::slice::from_ref(expected), column), dumped(found, column), "{what}: {name}");
    }
}

/// Content of a column: the bits of each row, or null.
pub(crate) type Bits = Option<u64>;

fn primitive<T: ArrowPrimitiveType>(rows: &[Bits], make: impl Fn(u64) -> T::Native) -> PrimitiveArray<T> {
    rows.iter().map(|bits| bits.map(&make)).collect()
}

fn decimal<T: arrow_array::types::DecimalType>(
    rows: &[Bits],
    digits: (u8, i8),
    make: impl Fn(u64) -> T::Native,
) -> ArrayRef {
    Arc::new(primitive::<T>(rows, make).with_precision_and_scale(digits.0, digits.1).unwrap())
}

fn text(bits: u64) -> String {
    const WORDS: [&str; 6] = ["", "a", "straße", "日本", "a longer text than a view holds", "\u{1f600}\"\n,"];
    WORDS[(bits % 6) as usize].repeat((bits >> 8) as usize % 3 + 1)
}

fn bytes(bits: u64) -> Vec<u8> {
    bits.to_le_bytes()[..(bits % 9) as usize].to_vec()
}

fn whole(bits: u64) -> i64 {
    i64::from_le_bytes(bits.to_le_bytes())
}

fn small(bits: u64) -> i64 {
    whole(bits) % 1_000_000_000
}

/// Lists of all layouts, and dictionaries.
fn nested(rows: &[Bits]) -> Vec<(&'static str, ArrayRef)> {
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut strings = LargeListBuilder::new(StringBuilder::new());
    let mut views = ListViewBuilder::new(Int32Builder::new());
    let mut days = ListBuilder::new(arrow_array::builder::Date32Builder::new());
    let mut pairs = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    let mut threes = FixedSizeListBuilder::new(StringBuilder::new(), 3);
    let mut coded = StringDictionaryBuilder::<Int8Type>::new();
    let mut coded_bytes = BinaryDictionaryBuilder::<Int32Type>::new();
    let mut coded_numbers = PrimitiveDictionaryBuilder::<UInt16Type, Int64Type>::new();
    let mut coded_lists = ListBuilder::new(StringDictionaryBuilder::<Int32Type>::new());
    for row in rows {
        let Some(bits) = row else {
            lists.append_null();
            strings.append_null();
            views.append_null();
            days.append_null();
            pairs.values().append_slice(&[7, 7]);
            pairs.append(false);
            (0..3).for_each(|_| threes.values().append_null());
            threes.append(false);
            coded.append_null();
            coded_bytes.append_null();
            coded_numbers.append_null();
            coded_lists.append_null();
            continue;
        };
        for index in 0..bits % 4 {
            let is_there = (bits >> (8 + index)) & 1 == 0;
            lists.values().append_option(is_there.then_some(small(*bits) as i32 + index as i32));
            views.values().append_option(is_there.then_some(index as i32));
            days.values().append_option(is_there.then_some(*bits as i32));
            strings.values().append_option(is_there.then(|| text(bits >> index)));
            coded_lists.values().append_option(is_there.then(|| text(index)));
        }
        lists.append(true);
        views.append(true);
        days.append(true);
        strings.append(true);
        coded_lists.append(true);
        pairs.values().append_option((bits & 1 == 0).then_some(small(*bits) as i32));
        pairs.values().append_value(1);
        pairs.append(true);
        (0..3).for_each(|index| threes.values().append_value(text(bits >> index)));
        threes.append(true);
        coded.append_value(text(*bits % 6));
        coded_bytes.append_value(bytes(*bits % 100));
        coded_numbers.append_value(whole(*bits));
    }
    vec![
        ("lists", Arc::new(lists.finish())),
        ("strings", Arc::new(strings.finish())),
        ("views", Arc::new(views.finish())),
        ("days", Arc::new(days.finish())),
        ("pairs", Arc::new(pairs.finish())),
        ("threes", Arc::new(threes.finish())),
        ("coded", Arc::new(coded.finish())),
        ("coded_bytes", Arc::new(coded_bytes.finish())),
        ("coded_numbers", Arc::new(coded_numbers.finish())),
        ("coded_lists", Arc::new(coded_lists.finish())),
    ]
}

/// A column of every supported type, from the same bits.
pub(crate) fn table(rows: &[Bits]) -> RecordBatch {
    let options = |make: &dyn Fn(u64) -> String| rows.iter().map(|bits| bits.map(make)).collect::<Vec<_>>();
    let mut fixed = FixedSizeBinaryBuilder::new(3);
    let mut uuid = FixedSizeBinaryBuilder::new(16);
    for row in rows {
        if let Some(bits) = row {
            fixed.append_value(&bits.to_le_bytes()[..3]).unwrap();
            uuid.append_value([bits.to_le_bytes(), bits.to_be_bytes()].concat()).unwrap();
        } else {
            fixed.append_null();
            uuid.append_null();
        }
    }
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("bool", Arc::new(rows.iter().map(|bits| bits.map(|bits| bits & 1 == 1)).collect::<BooleanArray>())),
        ("i8", Arc::new(primitive::<Int8Type>(rows, |bits| bits as i8))),
        ("i16", Arc::new(primitive::<Int16Type>(rows, |bits| bits as i16))),
        ("i32", Arc::new(primitive::<Int32Type>(rows, |bits| bits as i32))),
        ("i64", Arc::new(primitive::<Int64Type>(rows, whole))),
        ("u8", Arc::new(primitive::<UInt8Type>(rows, |bits| bits as u8))),
        ("u16", Arc::new(primitive::<UInt16Type>(rows, |bits| bits as u16))),
        ("u32", Arc::new(primitive::<UInt32Type>(rows, |bits| bits as u32))),
        ("u64", Arc::new(primitive::<UInt64Type>(rows, |bits| bits))),
        ("f16", Arc::new(primitive::<Float16Type>(rows, |bits| half::f16::from_bits(bits as u16)))),
        ("f32", Arc::new(primitive::<Float32Type>(rows, |bits| f32::from_bits(bits as u32)))),
        ("f64", Arc::new(primitive::<Float64Type>(rows, f64::from_bits))),
        ("string", Arc::new(StringArray::from(options(&text)))),
        ("large", Arc::new(LargeStringArray::from(options(&text)))),
        ("view", Arc::new(StringViewArray::from_iter(options(&text)))),
        ("body", Arc::new(StringArray::from(options(&text)))),
        ("json", Arc::new(StringArray::from(options(&|bits| format!("[{bits}]"))))),
        ("bytes", Arc::new(rows.iter().map(|bits| bits.map(bytes)).collect::<BinaryViewArray>())),
        ("large_bytes", Arc::new(rows.iter().map(|bits| bits.map(bytes)).collect::<LargeBinaryArray>())),
        ("fixed", Arc::new(fixed.finish())),
        ("uuid", Arc::new(uuid.finish())),
        ("date32", Arc::new(primitive::<Date32Type>(rows, |bits| bits as i32))),
        ("date64", Arc::new(primitive::<Date64Type>(rows, |bits| i64::from(bits as i32) * 86_400_000))),
        ("time_s", Arc::new(primitive::<Time32SecondType>(rows, |bits| bits as i32 % 86_400))),
        ("time_ms", Arc::new(primitive::<Time32MillisecondType>(rows, |bits| bits as i32 % 86_400_000))),
        ("time_us", Arc::new(primitive::<Time64MicrosecondType>(rows, small))),
        ("time_ns", Arc::new(primitive::<Time64NanosecondType>(rows, small))),
        ("span_s", Arc::new(primitive::<DurationSecondType>(rows, whole))),
        ("span_ms", Arc::new(primitive::<DurationMillisecondType>(rows, whole))),
        ("span_us", Arc::new(primitive::<DurationMicrosecondType>(rows, whole))),
        ("span_ns", Arc::new(primitive::<DurationNanosecondType>(rows, whole))),
        ("at_s", Arc::new(primitive::<TimestampSecondType>(rows, small).with_timezone("+02:00"))),
        ("at_ms", Arc::new(primitive::<TimestampMillisecondType>(rows, small))),
        ("at_us", Arc::new(primitive::<TimestampMicrosecondType>(rows, whole).with_timezone("UTC"))),
        ("at_naive", Arc::new(primitive::<TimestampMicrosecondType>(rows, whole))),
        (
            "at_ns",
            Arc::new(
                primitive::<TimestampNanosecondType>(rows, |bits| whole(bits) / 1000 * 1000)
                    .with_timezone("Europe/Berlin"),
            ),
        ),
        ("d32", decimal::<Decimal32Type>(rows, (9, 3), |bits| small(bits) as i32)),
        ("d64", decimal::<Decimal64Type>(rows, (18, 0), |bits| whole(bits) / 10)),
        ("d9", decimal::<Decimal128Type>(rows, (9, 2), |bits| small(bits).into())),
        ("d18", decimal::<Decimal128Type>(rows, (18, 4), |bits| (whole(bits) / 10).into())),
        ("d38", decimal::<Decimal128Type>(rows, (38, 10), |bits| i128::from(whole(bits)) * 1_000_000_007)),
        (
            "d76",
            decimal::<Decimal256Type>(rows, (76, 0), |bits| i256::from_i128(i128::from(whole(bits)) << 60)),
        ),
    ];
    columns.extend(nested(rows));
    let numbers: ArrayRef =
        Arc::new(rows.iter().map(|bits| bits.unwrap_or(3)).collect::<PrimitiveArray<UInt64Type>>());
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    let table =
        RecordBatch::try_from_iter_with_nullable(columns.chain([("never_null", numbers, false)])).unwrap();
    with_metadata(&table)
}

/// The same table with metadata on some columns and on the schema.
fn with_metadata(table: &RecordBatch) -> RecordBatch {
    let owned = |pairs: &[(&str, &str)]| -> HashMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let extension = |name| owned(&[("ARROW:extension:name", name), ("ARROW:extension:metadata", "")]);
    let fields = table.schema_ref().fields().iter().map(|field| {
        let field = field.as_ref().clone();
        match field.name().as_str() {
            "uuid" => field.with_metadata(extension("arrow.uuid")),
            "json" => field.with_metadata(extension("arrow.json")),
            "i64" => field.with_metadata(owned(&[("unit", "m/s"), ("odd \" key", "\n")])),
            "coded" => field.with_dict_is_ordered(true),
            _ => field,
        }
    });
    let schema = Schema::new_with_metadata(
        fields.collect::<Vec<_>>(),
        owned(&[("origin", "a test"), ("pandas", "{\"index_columns\": []}")]),
    );
    RecordBatch::try_new(Arc::new(schema), table.columns().to_vec()).unwrap()
}

/// The table as Parquet represents it: seconds become milliseconds, dictionaries only of strings and bytes.
pub(crate) fn in_parquet(table: &RecordBatch) -> RecordBatch {
    let schema = table.schema();
    let (mut fields, mut arrays) = (Vec::new(), Vec::<ArrayRef>::new());
    for (field, array) in schema.fields().iter().zip(table.columns()) {
        let array: ArrayRef = match array.data_type() {
            DataType::Timestamp(TimeUnit::Second, zone) => {
                let millis = array.as_primitive::<TimestampSecondType>();
                let millis = millis.iter().map(|at| at.map(|at| at * 1000));
                let millis = millis.collect::<PrimitiveArray<TimestampMillisecondType>>();
                Arc::new(millis.with_timezone_opt(zone.clone()))
            }
            DataType::Time32(TimeUnit::Second) => {
                let millis = array.as_primitive::<Time32SecondType>();
                let millis = millis.iter().map(|at| at.map(|at| at * 1000));
                Arc::new(millis.collect::<PrimitiveArray<Time32MillisecondType>>())
            }
            DataType::Dictionary(_, values) if **values == DataType::Int64 => {
                let coded = array.as_dictionary::<UInt16Type>();
                let coded = coded.downcast_dict::<PrimitiveArray<Int64Type>>().unwrap();
                Arc::new(coded.into_iter().collect::<PrimitiveArray<Int64Type>>())
            }
            _ => Arc::clone(array),
        };
        fields.push(field.as_ref().clone().with_data_type(array.data_type().clone()));
        arrays.push(array);
    }
    let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
}
