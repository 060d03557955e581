//! Aggregates: the results of a naive loop, and of statistics.

use std::collections::BTreeMap;
use std::io::Cursor;

use proptest::prelude::*;
use tercet_tatami::aggregate::Aggregate;
use tercet_tatami::{
    Bitmap, Column, Expr, Field, File, LogicalType, Scalar, Schema, Type, Values, Writer, WriterOptions,
};

fn file(
    fields: Vec<Field>,
    columns: &[Column],
    options: WriterOptions,
    annotations: &[(&str, &str)],
) -> File {
    let annotate = |options: WriterOptions, (column, annotation): &(&str, &str)| {
        options.with_metadata(LogicalType::key(column), *annotation)
    };
    let options = annotations.iter().fold(options, annotate);
    let mut writer = Writer::new(Cursor::new(Vec::new()), Schema::new(fields).unwrap(), options).unwrap();
    writer.append(columns).unwrap();
    File::from_bytes("aggregated", writer.finish().unwrap().output).unwrap()
}

fn nullable<T: Clone + Default>(values: &[Option<T>], make: fn(Vec<T>) -> Values) -> Column {
    let mut validity = Bitmap::default();
    for value in values {
        validity.push(value.is_some());
    }
    Column::new(make(values.iter().map(|value| value.clone().unwrap_or_default()).collect()))
        .with_validity(validity)
}

type Row = (Option<i32>, Option<f64>, Option<String>, u64);

fn some_rows() -> impl Strategy<Value = Vec<Row>> {
    let float = prop::sample::select(vec![f64::NAN, 0.0, 1.5, -2.25, 1e300, -1e300, 0.1]);
    let string = prop::sample::select(vec!["", "a", "ab", "b", "z\u{e9}"]);
    let row = (
        prop::option::weighted(0.8, -3i32..4),
        prop::option::weighted(0.8, float),
        prop::option::weighted(0.8, string.prop_map(str::to_owned)),
        0u64..5,
    );
    prop::collection::vec(row, 0..200)
}

/// Nulls first.
fn int(value: Option<i32>) -> Option<Scalar> {
    value.map(Scalar::Int32)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(200)))]

    #[test]
    fn aggregates_match_a_naive_loop(
        rows in some_rows(),
        page_rows in 1u32..40,
        group_rows in 1u64..60,
        filtered in any::<bool>(),
        keyed in any::<bool>(),
    ) {
        let strings: Vec<Option<&str>> = rows.iter().map(|row| row.2.as_deref()).collect();
        let mut validity = Bitmap::default();
        for string in &strings {
            validity.push(string.is_some());
        }
        let columns = [
            nullable(&rows.iter().map(|row| row.0).collect::<Vec<_>>(), Values::Int32),
            nullable(&rows.iter().map(|row| row.1).collect::<Vec<_>>(), Values::Float64),
            Column::new(Values::Bytes(strings.iter().map(|string| string.unwrap_or_default()).collect()))
                .with_validity(validity),
            Column::new(Values::UInt64(rows.iter().map(|row| row.3).collect())),
        ];
        let fields = vec![
            Field::new("i", Type::Int32).with_nulls(),
            Field::new("f", Type::Float64).with_nulls(),
            Field::new("s", Type::String).with_nulls(),
            Field::new("n", Type::UInt64),
        ];
        let options = WriterOptions::new().with_page_max_values(page_rows).with_row_group_max_rows(group_rows);
        let file = file(fields, &columns, options, &[]);
        let mut scan = file.scan();
        if filtered {
            scan = scan.filter(&Expr::parse("n >= 2").unwrap()).unwrap();
        }
        let aggregates = [
            Aggregate::Count,
            Aggregate::min("i"),
            Aggregate::max("i"),
            Aggregate::sum("i"),
            Aggregate::mean("i"),
            Aggregate::min("f"),
            Aggregate::max("f"),
            Aggregate::sum("f"),
            Aggregate::min("s"),
            Aggregate::max("s"),
            Aggregate::sum("n"),
        ];
        let group_by: &[&str] = if keyed { &["i", "n"] } else { &[] };
        let mut groups: BTreeMap<(Option<i32>, u64), Vec<&Row>> = BTreeMap::new();
        if !keyed {
            groups.insert((None, 0), Vec::new());
        }
        for row in rows.iter().filter(|row| !filtered || row.3 >= 2) {
            groups.entry(if keyed { (row.0, row.3) } else { (None, 0) }).or_default().push(row);
        }
        let result = scan.aggregate(group_by, &aggregates).unwrap();
        // Minima and maxima alone may come from statistics.
        let few = scan.aggregate(group_by, &[aggregates[1].clone(), aggregates[9].clone()]).unwrap();
        prop_assert_eq!(result.rows, groups.values().map(|rows| rows.len() as u64).sum::<u64>());
        prop_assert_eq!(few.rows, result.rows);
        if !keyed && !filtered {
            prop_assert_eq!(few.rows_from_statistics, few.rows);
        }
        for (at, ((i, n), rows)) in groups.iter().enumerate() {
            let value = |column: usize| result.columns[column].scalar(at);
            let first = group_by.len();
            if keyed {
                prop_assert_eq!(value(0), int(*i));
                prop_assert_eq!(value(1), Some(Scalar::UInt64(*n)));
            }
            let ints: Vec<i32> = rows.iter().filter_map(|row| row.0).collect();
            let sum: i64 = ints.iter().map(|value| i64::from(*value)).sum();
            prop_assert_eq!(value(first), Some(Scalar::UInt64(rows.len() as u64)));
            prop_assert_eq!(value(first + 1), int(ints.iter().min().copied()));
            prop_assert_eq!(value(first + 2), int(ints.iter().max().copied()));
            prop_assert_eq!(value(first + 3), (!ints.is_empty()).then_some(Scalar::Int64(sum)));
            let mean = sum as f64 / ints.len() as f64;
            match value(first + 4) {
                Some(Scalar::Float64(found)) => prop_assert!((found - mean).abs() <= 1e-15 * mean.abs()),
                found => prop_assert!(found.is_none() && ints.is_empty()),
            }
            let floats: Vec<f64> = rows.iter().filter_map(|row| row.1).collect();
            let numbers = || floats.iter().copied().filter(|value| !value.is_nan());
            prop_assert_eq!(value(first + 5), numbers().reduce(f64::min).map(Scalar::Float64));
            prop_assert_eq!(value(first + 6), numbers().reduce(f64::max).map(Scalar::Float64));
            match value(first + 7) {
                Some(Scalar::Float64(found)) if floats.iter().any(|value| value.is_nan()) => {
                    prop_assert!(found.is_nan());
                }
                Some(Scalar::Float64(found)) => {
                    let plain: f64 = floats.iter().sum();
                    let scale: f64 = floats.iter().map(|value| value.abs()).sum();
                    prop_assert!((found - plain).abs() <= 1e-12 * scale, "{} {}", found, plain);
                }
                found => prop_assert!(found.is_none() && floats.is_empty()),
            }
            let strings = || rows.iter().filter_map(|row| row.2.as_deref());
            let bytes = |string: Option<&str>| string.map(|string| Scalar::Bytes(string.as_bytes().to_vec()));
            prop_assert_eq!(value(first + 8), bytes(strings().min()));
            prop_assert_eq!(value(first + 9), bytes(strings().max()));
            let total: u64 = rows.iter().map(|row| row.3).sum();
            prop_assert_eq!(value(first + 10), (!rows.is_empty()).then_some(Scalar::UInt64(total)));
            prop_assert_eq!(few.columns[first].scalar(at), value(first + 1));
            prop_assert_eq!(few.columns[first + 1].scalar(at), value(first + 9));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(100)))]

    /// Decimals of more than 18 digits, whose bytes are not in the order of the numbers.
    #[test]
    fn aggregates_of_long_decimals_match_a_naive_loop(
        rows in prop::collection::vec((0u64..3, prop::option::weighted(0.8, -1_000_000_000_000_000_000_000_i128..=1_000_000_000_000_000_000_000)), 0..120),
        page_rows in 1u32..40,
        group_rows in 1u64..60,
        keyed in any::<bool>(),
    ) {
        let mut bits = Bitmap::default();
        for row in &rows {
            bits.push(row.1.is_some());
        }
        let bytes: Vec<[u8; 16]> = rows.iter().map(|row| row.1.unwrap_or_default().to_be_bytes()).collect();
        let columns = [
            Column::new(Values::UInt64(rows.iter().map(|row| row.0).collect())),
            Column::new(Values::Bytes(bytes.iter().map(|bytes| &bytes[..]).collect())).with_validity(bits),
        ];
        let fields = vec![Field::new("k", Type::UInt64), Field::new("d", Type::Bytes).with_nulls()];
        let options = WriterOptions::new().with_page_max_values(page_rows).with_row_group_max_rows(group_rows);
        let file = file(fields, &columns, options, &[("d", "decimal128[22, 3]")]);
        let group_by: &[&str] = if keyed { &["k"] } else { &[] };
        let aggregates = [Aggregate::min("d"), Aggregate::max("d"), Aggregate::sum("d"), Aggregate::mean("d")];
        let result = file.scan().aggregate(group_by, &aggregates).unwrap();
        let few = file.scan().aggregate(group_by, &aggregates[..2]).unwrap();
        let mut groups: BTreeMap<u64, Vec<i128>> = BTreeMap::new();
        if !keyed {
            groups.insert(0, Vec::new());
        }
        for (key, value) in &rows {
            groups.entry(if keyed { *key } else { 0 }).or_default().extend(value);
        }
        let decimal = |value: i128| Scalar::Bytes(value.to_be_bytes().to_vec());
        for (at, values) in groups.values().enumerate() {
            let found = |column: usize| result.columns[group_by.len() + column].scalar(at);
            prop_assert_eq!(found(0), values.iter().min().copied().map(decimal));
            prop_assert_eq!(found(1), values.iter().max().copied().map(decimal));
            prop_assert_eq!(few.columns[group_by.len()].scalar(at), found(0));
            prop_assert_eq!(few.columns[group_by.len() + 1].scalar(at), found(1));
            let sum: i128 = values.iter().sum();
            prop_assert_eq!(found(2), (!values.is_empty()).then(|| decimal(sum)));
            let mean = sum as f64 / 1000.0 / values.len() as f64;
            match found(3) {
                Some(Scalar::Float64(found)) => prop_assert!((found - mean).abs() <= 1e-14 * mean.abs()),
                found => prop_assert!(found.is_none() && values.is_empty()),
            }
        }
    }
}

#[test]
fn sums_of_long_decimals_are_exact_or_refused() {
    let most: i128 = "9".repeat(38).parse().unwrap();
    let sum = |values: &[i128]| {
        let bytes: Vec<[u8; 16]> = values.iter().map(|value| value.to_be_bytes()).collect();
        let columns = [Column::new(Values::Bytes(bytes.iter().map(|bytes| &bytes[..]).collect()))];
        let file = file(
            vec![Field::new("d", Type::Bytes)],
            &columns,
            WriterOptions::new(),
            &[("d", "decimal128[38, 0]")],
        );
        file.scan()
            .aggregate(&[] as &[&str], &[Aggregate::sum("d")])
            .map(|result| result.columns[0].scalar(0))
    };
    assert_eq!(sum(&[most, most, -most]).unwrap(), Some(Scalar::Bytes(most.to_be_bytes().to_vec())));
    let error = sum(&[most, 1]).unwrap_err().to_string();
    assert!(error.contains("the sum of column `d` exceeds decimal(38, 0)"), "{error}");
}

#[test]
fn sums_are_exact_or_refused() {
    let fields = || vec![Field::new("x", Type::Int64), Field::new("y", Type::UInt64)];
    let columns = |x: Vec<i64>, y: Vec<u64>| [Column::new(Values::Int64(x)), Column::new(Values::UInt64(y))];
    let sums = [Aggregate::sum("x"), Aggregate::mean("x"), Aggregate::mean("y")];

    let big = file(fields(), &columns(vec![i64::MAX, 1, -2], vec![u64::MAX; 3]), WriterOptions::new(), &[]);
    let result = big.scan().aggregate(&[] as &[&str], &sums).unwrap();
    assert_eq!(result.columns[0].scalar(0), Some(Scalar::Int64(i64::MAX - 1)));
    assert_eq!(result.columns[2].scalar(0), Some(Scalar::Float64(u64::MAX as f64)));
    let error = big.scan().aggregate(&[] as &[&str], &[Aggregate::sum("y")]).unwrap_err().to_string();
    assert!(error.contains("the sum of column `y` exceeds uint64"), "{error}");
}

#[test]
fn logical_types_decide_what_can_be_summed() {
    let fields = vec![
        Field::new("day", Type::Int32),
        Field::new("price", Type::Int64),
        Field::new("long", Type::Bytes),
    ];
    let columns = [
        Column::new(Values::Int32(vec![19_723, 19_724])),
        Column::new(Values::Int64(vec![1250, 75])),
        Column::new(Values::Bytes([[0u8; 16], [255; 16]].iter().map(|bytes| &bytes[..]).collect())),
    ];
    let annotations = [("day", "date32"), ("price", "decimal128[12, 2]"), ("long", "decimal128[30, 2]")];
    let file = file(fields, &columns, WriterOptions::new(), &annotations);
    let result = file
        .scan()
        .aggregate(
            &[] as &[&str],
            &[Aggregate::max("day"), Aggregate::sum("price"), Aggregate::mean("price")],
        )
        .unwrap();
    assert_eq!(result.logical_types[0], Some(LogicalType::Date32));
    assert!(matches!(result.logical_types[1], Some(LogicalType::Decimal { scale: 2, .. })));
    assert_eq!(result.columns[1].scalar(0), Some(Scalar::Int64(1325)));
    assert_eq!(result.columns[2].scalar(0), Some(Scalar::Float64(6.625)));
    let long =
        file.scan().aggregate(&[] as &[&str], &[Aggregate::max("long"), Aggregate::sum("long")]).unwrap();
    assert_eq!(long.columns[0].scalar(0), Some(Scalar::Bytes(vec![0; 16])));
    let wide = LogicalType::Decimal { precision: 38, scale: 2, width: 16 };
    assert_eq!((long.fields[1].kind, long.logical_types[1]), (Type::Bytes, Some(wide)));
    for (aggregate, message) in [
        (Aggregate::sum("day"), "column `day` is date: sum is not supported"),
        (Aggregate::mean("day"), "column `day` is date: mean is not supported"),
        (Aggregate::sum("nosuch"), "has no column `nosuch`"),
    ] {
        let error = file.scan().aggregate(&[] as &[&str], &[aggregate]).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
