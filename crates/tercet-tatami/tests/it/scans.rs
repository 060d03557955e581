//! Filtered scans: the results of the reference where it is correct, and those of a naive loop everywhere.

use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::io::Cursor;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;
use tercet_core::source::Memory;
use tercet_tatami::aggregate::Aggregate;
use tercet_tatami::format::Codec;
use tercet_tatami::predicate::{Comparison, Expr, Literal, Operator};
use tercet_tatami::scan::Partition;
use tercet_tatami::{
    Bitmap, Column, Field, File, Lists, ReadOptions, Scalar, Scan, Schema, Type, Values, Writer,
    WriterOptions,
};

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

/// A value of the manifest: integers as digits, floats by their bits, bytes as hex.
fn literal(file: &File, column: &str, value: &Value) -> Literal {
    let kind =
        file.schema().index_of(column).map_or(Type::String, |index| file.schema().fields()[index].kind);
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Bool(value) => return Literal::Bool(*value),
        other => other.to_string(),
    };
    if let Some(bits) = text.strip_prefix("f64:") {
        return Scalar::Float64(f64::from_bits(u64::from_str_radix(bits, 16).unwrap())).into();
    }
    if let Some(bits) = text.strip_prefix("f32:") {
        return Scalar::Float32(f32::from_bits(u32::from_str_radix(bits, 16).unwrap())).into();
    }
    if let Some(bytes) = text.strip_prefix("hex:") {
        return Scalar::Bytes(unhex(bytes)).into();
    }
    match kind {
        Type::String | Type::Bytes | Type::BlobRef => Literal::Text(text),
        _ => Literal::Number(text),
    }
}

fn expr(file: &File, predicate: &Value) -> Expr {
    let op = predicate["op"].as_str().unwrap();
    let children = || predicate["kids"].as_array().unwrap().iter().map(|child| expr(file, child)).collect();
    let column = || predicate["col"].as_str().unwrap().to_owned();
    let value = |name: &str| literal(file, &column(), &predicate[name]);
    let test = match op {
        "and" => return Expr::And(children()),
        "or" => return Expr::Or(children()),
        "eq" => Comparison::Eq(value("value")),
        "ne" => Comparison::Ne(value("value")),
        "lt" => Comparison::Lt(value("value")),
        "le" => Comparison::Le(value("value")),
        "gt" => Comparison::Gt(value("value")),
        "ge" => Comparison::Ge(value("value")),
        "between" => Comparison::Between(value("value"), value("hi")),
        "is_null" => Comparison::IsNull,
        other => panic!("unknown test {other}"),
    };
    Expr::Comparison { column: column(), test }
}

#[test]
fn golden_scans_have_the_right_rows_and_groups() {
    let Some(dir) = tercet_testkit::golden("tatami") else { return };
    let text = std::fs::read_to_string(dir.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let mut scans = 0;
    for entry in manifest["files"].as_array().unwrap() {
        let Some(list) = entry["scans"].as_array() else { continue };
        let file = File::open(dir.join(entry["path"].as_str().unwrap())).unwrap();
        for scan in list {
            scans += 1;
            let name = format!("{} {}", file.name(), scan["pred"]);
            let mut filter = expr(&file, &scan["pred"]);
            if scan["error"].as_str().is_some_and(|error| error.contains("got value of type int64")) {
                filter = Expr::col("c_i32").eq(Scalar::Int64(1));
            }
            let found = file.scan().columns(&["id"]).and_then(|found| found.filter(&filter));
            if scan.get("error").is_some_and(|error| !error.is_null()) {
                assert!(found.is_err(), "{name}");
                continue;
            }
            let found = found.unwrap();
            let ids: Vec<String> = found
                .batches()
                .flat_map(|batch| {
                    let batch = batch.unwrap();
                    (0..batch.rows.len()).map(move |row| batch.columns[0].scalar(row).unwrap().to_string())
                })
                .collect();
            let faulty = scan["reference_fault"] == true;
            let expected = if faulty { &scan["correct_ids"] } else { &scan["ids"] };
            let expected: Vec<String> = expected
                .as_array()
                .map_or(&[][..], Vec::as_slice)
                .iter()
                .map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned))
                .collect();
            assert_eq!(ids, expected, "{name}");
            assert_eq!(found.count().unwrap(), expected.len() as u64, "{name}");
            let explained = found.explain().unwrap();
            if !faulty {
                // The reference scans groups whose rows are all null; Tercet prunes them by their null counts.
                let tested = filter.bind(file.schema()).unwrap().columns();
                let groups = &file.footer().groups;
                let empty = |group: &&tercet_tatami::format::Group| {
                    tested.len() == 1 && group.chunks[tested[0]].nulls == group.rows
                };
                let pruned = groups.iter().filter(empty).count() as u64;
                let expected = scan["groups_scanned"].as_u64().unwrap();
                let asks_null = scan["pred"]["op"] == "is_null";
                let expected = if asks_null { expected } else { expected - pruned };
                assert_eq!(explained.groups_scanned, expected, "{name}");
            }
        }
    }
    assert!(scans >= 30, "{scans}");
}

// ---- compared with a naive loop ----

/// Compares two values. All numbers here are small, so that floats hold them.
fn compare(left: &Scalar, operator: Operator, right: &Scalar) -> bool {
    let order = match (left, right) {
        (Scalar::Bytes(a), Scalar::Bytes(b)) => a.partial_cmp(b),
        (Scalar::Bool(a), Scalar::Bool(b)) => a.partial_cmp(b),
        (a, b) => a.to_string().parse::<f64>().unwrap().partial_cmp(&b.to_string().parse().unwrap()),
    };
    match operator {
        Operator::Eq => order == Some(Equal),
        Operator::Ne => order != Some(Equal),
        Operator::Lt => order == Some(Less),
        Operator::Le => matches!(order, Some(Less | Equal)),
        Operator::Gt => order == Some(Greater),
        Operator::Ge => matches!(order, Some(Greater | Equal)),
    }
}

/// Three-valued logic: true, false, null.
fn plain(expr: &Expr, schema: &Schema, columns: &[Column], row: usize) -> Option<bool> {
    match expr {
        Expr::And(parts) => {
            let answers: Vec<_> = parts.iter().map(|part| plain(part, schema, columns, row)).collect();
            if answers.contains(&Some(false)) {
                return Some(false);
            }
            if answers.contains(&None) { None } else { Some(true) }
        }
        Expr::Or(parts) => {
            let answers: Vec<_> = parts.iter().map(|part| plain(part, schema, columns, row)).collect();
            if answers.contains(&Some(true)) {
                return Some(true);
            }
            if answers.contains(&None) { None } else { Some(false) }
        }
        Expr::Not(part) => plain(part, schema, columns, row).map(|truth| !truth),
        Expr::Columns { left, operator, right } => {
            let value = |name: &str| columns[schema.index_of(name).unwrap()].scalar(row);
            Some(compare(&value(left)?, *operator, &value(right)?))
        }
        Expr::Comparison { column, test } => {
            let column = &columns[schema.index_of(column).unwrap()];
            if let Comparison::IsNull = test {
                return Some(!column.is_present(row));
            }
            if !column.is_present(row) {
                return None;
            }
            let exact = |literal: &Literal| match literal {
                Literal::Exact(value) => value.clone(),
                other => panic!("{other:?}"),
            };
            if let (Comparison::Contains(value), Values::List(lists)) = (test, &column.values) {
                let wanted = exact(value);
                return Some(lists.range(row).any(|at| {
                    lists
                        .elements
                        .scalar(at)
                        .is_some_and(|element| element.order(&wanted) == Some(Ordering::Equal))
                }));
            }
            let value = column.scalar(row).unwrap();
            let texts = |literal: &Literal| match (&value, exact(literal)) {
                (Scalar::Bytes(text), Scalar::Bytes(part)) => {
                    (String::from_utf8(text.clone()).unwrap(), String::from_utf8(part).unwrap())
                }
                other => panic!("{other:?}"),
            };
            let order = |literal: &Literal| value.order(&exact(literal));
            let is = |literal: &Literal, wanted: &[Ordering]| {
                order(literal).is_some_and(|order| wanted.contains(&order))
            };
            Some(match test {
                Comparison::Eq(x) => is(x, &[Equal]),
                Comparison::Ne(x) => !is(x, &[Equal]),
                Comparison::Lt(x) => is(x, &[Less]),
                Comparison::Le(x) => is(x, &[Less, Equal]),
                Comparison::Gt(x) => is(x, &[Greater]),
                Comparison::Ge(x) => is(x, &[Greater, Equal]),
                Comparison::Between(low, high) => is(low, &[Greater, Equal]) && is(high, &[Less, Equal]),
                Comparison::In(values) => values.iter().any(|x| is(x, &[Equal])),
                Comparison::Prefix(x) => match (&value, exact(x)) {
                    (Scalar::Bytes(text), Scalar::Bytes(prefix)) => text.starts_with(&prefix),
                    other => panic!("{other:?}"),
                },
                Comparison::EndsWith(x) => {
                    let (text, part) = texts(x);
                    text.ends_with(&part)
                }
                Comparison::Contains(x) | Comparison::Substring(x) => {
                    let (text, part) = texts(x);
                    text.contains(&part)
                }
                Comparison::Like(x) => {
                    let (text, pattern) = texts(x);
                    is_like(&letters(&pattern), &letters(&text))
                }
                Comparison::ILike(x) => {
                    let (text, pattern) = texts(x);
                    is_like(&letters(&pattern.to_lowercase()), &letters(&text.to_lowercase()))
                }
                // The patterns of `regular_expressions`, by hand.
                Comparison::Regexp(x) => match texts(x) {
                    (text, pattern) if pattern == "^ab" => text.starts_with("ab"),
                    (text, pattern) if pattern == "b+a$" => text.ends_with("ba"),
                    (text, pattern) if pattern == "^(a|zeb)" => {
                        text.starts_with('a') || text.starts_with("zeb")
                    }
                    (text, pattern) if pattern == "^ab*" => text.starts_with('a'),
                    (text, pattern) if pattern == "^.$" => text.chars().count() == 1,
                    (_, pattern) => panic!("{pattern}"),
                },
                Comparison::Matches(_) | Comparison::IsNull => unreachable!(),
            })
        }
    }
}

fn letters(text: &str) -> Vec<char> {
    text.chars().collect()
}

/// The obvious evaluation of `like`.
fn is_like(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|at| is_like(rest, &text[at..])),
        ['_', rest @ ..] => !text.is_empty() && is_like(rest, &text[1..]),
        [letter, rest @ ..] => text.first() == Some(letter) && is_like(rest, &text[1..]),
    }
}

fn likes() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "", "%", "a%", "ab%", "%a", "%b%", "_", "a_c", "%é%", "z%a", "AB%", "_b%", "abc", "b%zz%", "zebra%",
    ])
}

fn regular_expressions() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["^ab", "b+a$", "^(a|zeb)", "^ab*", "^.$"])
}

/// Comparisons of strings with patterns, and of two columns.
fn new_tests() -> impl Strategy<Value = Expr> {
    let text = |text: &str| Literal::Exact(Scalar::Bytes(text.as_bytes().to_vec()));
    let column = || prop::sample::select(vec!["s", "b"]);
    let on = |column: &str, test| Expr::Comparison { column: column.to_owned(), test };
    let operators = vec![Operator::Eq, Operator::Ne, Operator::Lt, Operator::Le, Operator::Gt, Operator::Ge];
    let pairs = vec![
        ("i", "f"),
        ("f", "i"),
        ("i", "n"),
        ("n", "i"),
        ("f", "n"),
        ("s", "b"),
        ("b", "s"),
        ("t", "t"),
        ("i", "i"),
    ];
    prop_oneof![
        (column(), likes()).prop_map(move |(column, pattern)| on(column, Comparison::Like(text(pattern)))),
        (column(), likes()).prop_map(move |(column, pattern)| on(column, Comparison::ILike(text(pattern)))),
        (column(), strings()).prop_map(move |(column, part)| on(column, Comparison::EndsWith(text(&part)))),
        (column(), strings()).prop_map(move |(column, part)| on(column, Comparison::Contains(text(&part)))),
        (column(), regular_expressions())
            .prop_map(move |(column, pattern)| on(column, Comparison::Regexp(text(pattern)))),
        (prop::sample::select(pairs), prop::sample::select(operators)).prop_map(
            |((left, right), operator)| {
                Expr::Columns { left: left.to_owned(), operator, right: right.to_owned() }
            }
        ),
    ]
}

fn fields() -> Vec<Field> {
    vec![
        Field::new("i", Type::Int32).with_nulls().with_bloom(),
        Field::new("f", Type::Float64).with_nulls().with_bloom(),
        Field::new("s", Type::String).with_nulls().with_bloom(),
        Field::new("b", Type::BlobRef).with_nulls(),
        Field::list("l", Type::UInt8).with_nulls(),
        Field::new("n", Type::UInt64),
        Field::new("t", Type::Bool),
    ]
}

fn floats() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![f64::NAN, -0.0, 0.0, 1.0, 2.5, -3.0, f64::INFINITY, 100.0])
}

fn strings() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "ab", "abc", "b", "ba", "zebra", "é", "\u{ff}x"])
        .prop_flat_map(|text| (Just(text), prop::sample::select(vec![1, 1, 1, 40])))
        .prop_map(|(text, times)| text.repeat(times))
}

type Row = (Option<i32>, Option<f64>, Option<String>, Option<String>, Option<Vec<Option<u8>>>, bool);

fn some_rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (
        prop::option::weighted(0.9, -5i32..5),
        prop::option::weighted(0.9, floats()),
        prop::option::weighted(0.9, strings()),
        prop::option::weighted(0.9, strings()),
        prop::option::weighted(0.9, prop::collection::vec(prop::option::weighted(0.9, 0u8..6), 0..4)),
        any::<bool>(),
    );
    // Runs of similar rows, so that statistics can prune pages.
    prop::collection::vec((row, 1usize..30), 0..25)
        .prop_map(|runs| runs.into_iter().flat_map(|(row, count)| std::iter::repeat_n(row, count)).collect())
}

fn columns(rows: &[Row]) -> Vec<Column> {
    let column = |values: Values, present: Bitmap| Column::new(values).with_validity(present);
    let mut lists = Lists { ends: Vec::new(), elements: Column::empty(&Field::new("", Type::UInt8)) };
    let mut elements: Vec<u8> = Vec::new();
    let mut present = Bitmap::new();
    for row in rows {
        for element in row.4.iter().flatten() {
            elements.push(element.unwrap_or_default());
            present.push(element.is_some());
        }
        lists.ends.push(elements.len() as u64);
    }
    lists.elements = column(Values::UInt8(elements), present);
    vec![
        column(
            Values::Int32(rows.iter().map(|row| row.0.unwrap_or_default()).collect()),
            rows.iter().map(|row| row.0.is_some()).collect(),
        ),
        column(
            Values::Float64(rows.iter().map(|row| row.1.unwrap_or_default()).collect()),
            rows.iter().map(|row| row.1.is_some()).collect(),
        ),
        column(
            Values::Bytes(rows.iter().map(|row| row.2.clone().unwrap_or_default()).collect()),
            rows.iter().map(|row| row.2.is_some()).collect(),
        ),
        column(
            Values::Bytes(rows.iter().map(|row| row.3.clone().unwrap_or_default()).collect()),
            rows.iter().map(|row| row.3.is_some()).collect(),
        ),
        column(Values::List(Box::new(lists)), rows.iter().map(|row| row.4.is_some()).collect()),
        Column::new(Values::UInt64((0..rows.len() as u64).collect())),
        Column::new(Values::Bool(rows.iter().map(|row| row.5).collect())),
    ]
}

fn tests() -> impl Strategy<Value = Expr> {
    let values = prop_oneof![
        (-6i32..6).prop_map(|x| ("i", Scalar::Int32(x))),
        floats().prop_map(|x| ("f", Scalar::Float64(x))),
        strings().prop_map(|x| ("s", Scalar::Bytes(x.into_bytes()))),
        strings().prop_map(|x| ("b", Scalar::Bytes(x.into_bytes()))),
        (0u8..7).prop_map(|x| ("l", Scalar::UInt8(x))),
        (0u64..400).prop_map(|x| ("n", Scalar::UInt64(x))),
        any::<bool>().prop_map(|x| ("t", Scalar::Bool(x))),
    ];
    (values, 0u8..11, -6i32..6).prop_map(|((column, value), test, other)| {
        let x = || Literal::Exact(value.clone());
        // A second value of the same type.
        let y = || {
            Literal::Exact(match &value {
                Scalar::Int32(_) => Scalar::Int32(other),
                Scalar::UInt64(x) => Scalar::UInt64(x + 50),
                Scalar::Float64(_) => Scalar::Float64(f64::from(other)),
                Scalar::Bytes(_) => Scalar::Bytes(b"b".to_vec()),
                same => same.clone(),
            })
        };
        let test = match test {
            10 => Comparison::IsNull,
            _ if column == "l" => Comparison::Contains(x()),
            1 => Comparison::Ne(x()),
            2 => Comparison::Lt(x()),
            3 => Comparison::Le(x()),
            4 => Comparison::Gt(x()),
            5 => Comparison::Ge(x()),
            6 => Comparison::Between(x(), y()),
            7 => Comparison::In(vec![x(), y()]),
            8 if matches!(value, Scalar::Bytes(_)) => Comparison::Prefix(x()),
            _ => Comparison::Eq(x()),
        };
        Expr::Comparison { column: column.to_owned(), test }
    })
}

fn filters() -> impl Strategy<Value = Expr> {
    prop_oneof![tests(), new_tests()].prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::And),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::Or),
            inner.prop_map(Expr::negate),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(400)))]

    #[test]
    fn scans_match_a_naive_loop(
        rows in some_rows(),
        filters in prop::collection::vec(filters(), 1..6),
        page_rows in 1u32..60,
        group_rows in 1u64..300,
        interop in any::<bool>(),
        sorted in any::<bool>(),
        codec in prop::sample::select(vec![Codec::None, Codec::Zstd]),
        batch_rows in 1u64..100,
    ) {
        let (mut fields, mut columns) = (fields(), columns(&rows));
        if sorted {
            // Its pages then have an index.
            fields[5] = fields[5].clone().with_sort_key();
        }
        let options = if interop {
            // Other implementations do not support lists.
            fields.remove(4);
            columns.remove(4);
            WriterOptions::interop()
        } else {
            WriterOptions::new().with_codec(codec)
        };
        let options = options.with_page_max_values(page_rows).with_row_group_max_rows(group_rows).with_blob_run_target_bytes(50);
        let schema = Schema::new(fields).unwrap();
        let mut writer = Writer::new(Cursor::new(Vec::new()), schema.clone(), options).unwrap();
        writer.append(&columns).unwrap();
        let bytes = writer.finish().unwrap().output;
        let file = File::from_source(Arc::new(Memory::new("scanned", bytes)), ReadOptions::new()).unwrap();
        for filter in filters {
            let scan = match file.scan().with_batch_rows(batch_rows).filter(&filter) {
                Ok(scan) => scan,
                // The list column is not written.
                Err(_) if interop => continue,
                Err(error) => panic!("{error}"),
            };
            let expected: Vec<u64> = (0..rows.len())
                .filter(|row| plain(&filter, &schema, &columns, *row) == Some(true))
                .map(|row| row as u64)
                .collect();
            prop_assert_eq!(scan.count().unwrap(), expected.len() as u64, "{:?}", filter);
            let mut found = Vec::new();
            for batch in scan.batches() {
                let batch = batch.unwrap();
                for (index, column) in batch.columns.iter().enumerate() {
                    prop_assert_eq!(column.len(), batch.rows.len());
                    for (position, row) in batch.rows.iter().enumerate() {
                        let row = usize::try_from(*row).unwrap();
                        prop_assert_eq!(column.is_present(position), columns[index].is_present(row));
                        let bits = |column: &Column, row| column.scalar(row).map(|value| value.to_bytes());
                        prop_assert_eq!(bits(column, position), bits(&columns[index], row));
                        if let (Values::List(a), Values::List(b)) = (&column.values, &columns[index].values) {
                            let elements = |lists: &Lists, row| -> Vec<_> { lists.range(row).map(|at| lists.elements.scalar(at)).collect() };
                            prop_assert_eq!(elements(a, position), elements(b, row));
                        }
                    }
                }
                found.extend(batch.rows);
            }
            prop_assert_eq!(&found, &expected, "{:?}", filter);
            let explained = scan.explain().unwrap();
            prop_assert!(explained.rows_matched <= expected.len() as u64);
            prop_assert!(expected.len() as u64 <= explained.rows_matched + explained.rows_tested);
        }
    }

    #[test]
    fn restricted_scans_and_partitions_match_a_naive_loop(
        rows in some_rows(),
        filter in prop::option::of(tests()),
        page_rows in 1u32..60,
        group_rows in 1u64..40,
        batch_rows in 0u64..50,
        wanted in prop::option::of(prop::collection::vec(any::<prop::sample::Index>(), 0..30)),
        groups in prop::option::of(prop::collection::vec(any::<prop::sample::Index>(), 0..4)),
        offset in 0u64..40,
        limit in prop::option::of(0u64..60),
        parts in 0usize..6,
    ) {
        let columns = columns(&rows);
        let options = WriterOptions::new().with_page_max_values(page_rows).with_row_group_max_rows(group_rows);
        let schema = Schema::new(fields()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("parts.tatami");
        let mut writer = Writer::create(&path, schema.clone(), options).unwrap();
        writer.append(&columns).unwrap();
        writer.finish().unwrap();
        let file = File::open(&path).unwrap();
        let mut expected: Vec<u64> = (0..rows.len() as u64).collect();
        let mut scan = file.scan().with_batch_rows(batch_rows);
        if let Some(groups) = groups.filter(|_| file.group_count() > 0) {
            let groups: Vec<usize> = groups.iter().map(|group| group.index(file.group_count())).collect();
            scan = scan.groups(&groups).unwrap();
            expected.retain(|row| groups.iter().any(|group| {
                let group = &file.footer().groups[*group];
                (group.first_row..group.first_row + group.rows).contains(row)
            }));
        }
        if let Some(wanted) = wanted.filter(|_| !rows.is_empty()) {
            let wanted: Vec<u64> = wanted.iter().map(|row| row.index(rows.len()) as u64).collect();
            expected.retain(|row| wanted.contains(row));
            scan = scan.rows(wanted).unwrap();
        }
        if let Some(filter) = &filter {
            scan = scan.filter(filter).unwrap();
            expected.retain(|row| {
                plain(filter, &schema, &columns, usize::try_from(*row).unwrap()) == Some(true)
            });
        }
        let found = |scan: &Scan| -> Vec<u64> {
            scan.batches().flat_map(|batch| batch.unwrap().rows).collect()
        };
        let mut together = Vec::new();
        let partitions = scan.partitions(parts).unwrap();
        prop_assert!(partitions.len() <= parts.max(1));
        for partition in partitions {
            let text = serde_json::to_string(&partition).unwrap();
            let received: Partition = serde_json::from_str(&text).unwrap();
            // NaN literals are not equal to themselves.
            prop_assert_eq!(format!("{received:?}"), format!("{partition:?}"));
            together.extend(found(&received.open(ReadOptions::new()).unwrap()));
        }
        prop_assert_eq!(&together, &expected);
        scan = scan.offset(offset);
        expected.drain(..expected.len().min(usize::try_from(offset).unwrap()));
        if let Some(limit) = limit {
            scan = scan.limit(limit);
            expected.truncate(usize::try_from(limit).unwrap());
        }
        prop_assert_eq!(scan.count().unwrap(), expected.len() as u64);
        prop_assert_eq!(&found(&scan), &expected);
        prop_assert_eq!(scan.partitions(parts).is_err(), offset > 0 || limit.is_some());
    }
}

#[test]
fn partitions_of_another_version_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("replaced.tatami");
    let write = |values: Vec<u64>| {
        let schema = Schema::new(vec![Field::new("n", Type::UInt64)]).unwrap();
        let options = WriterOptions::new().with_row_group_max_rows(10);
        let mut writer = Writer::create(&path, schema, options).unwrap();
        writer.append(&[Column::new(Values::UInt64(values))]).unwrap();
        writer.finish().unwrap();
    };
    write((0..100).collect());
    let file = File::open(&path).unwrap();
    let filter = Expr::parse("n >= 25 and n < 75").unwrap();
    let partitions = file.scan().filter(&filter).unwrap().partitions(3).unwrap();
    // Groups 0, 1, 8 and 9 are pruned by their zone maps.
    let groups: Vec<usize> = partitions.iter().flat_map(|partition| partition.groups.clone()).collect();
    assert_eq!(groups, [2, 3, 4, 5, 6, 7]);
    assert!(std::path::Path::new(&partitions[0].location).is_absolute());
    let rows = partitions.iter().map(|part| part.open(ReadOptions::new()).unwrap().count().unwrap());
    assert_eq!(rows.sum::<u64>(), 50);

    let mut forged = partitions[0].clone();
    forged.groups = vec![99];
    let error = forged.open(ReadOptions::new()).unwrap_err().to_string();
    assert!(error.contains("has no row group 99"), "{error}");
    forged.groups = vec![2];
    let error = forged.open(ReadOptions::new()).unwrap_err().to_string();
    assert!(error.contains("is not the file that was partitioned"), "{error}");

    std::fs::remove_file(&path).unwrap();
    write((1..101).collect());
    let error = partitions[0].open(ReadOptions::new()).unwrap_err().to_string();
    assert!(error.contains("is not the file that was partitioned"), "{error}");

    let memory = File::from_bytes("memory", std::fs::read(&path).unwrap()).unwrap();
    let error = memory.scan().partitions(2).unwrap_err().to_string();
    assert!(error.contains("was not opened from a path or URL"), "{error}");
    let error = memory.scan().rows(99..101).unwrap_err().to_string();
    assert!(error.contains("has no row 100: there are 100"), "{error}");
    let error = memory.scan().rows(vec![u64::MAX]).unwrap_err().to_string();
    assert!(error.contains("there are 100"), "{error}");
}

/// A limit reads the row groups that it needs.
#[test]
fn limited_scans_read_only_the_first_groups() {
    let columns = [Column::new(Values::UInt64((0..100_000).collect()))];
    let schema = Schema::new(vec![Field::new("n", Type::UInt64)]).unwrap();
    let options = WriterOptions::new().with_row_group_max_rows(1000).with_codec(Codec::None);
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options).unwrap();
    writer.append(&columns).unwrap();
    let bytes = writer.finish().unwrap().output;
    let source = tercet_testkit::counting::Counting::new(Memory::new("limited", bytes)).shared();
    let file = File::from_source(source.clone(), ReadOptions::new()).unwrap();
    source.reset();
    let rows: Vec<u64> =
        file.scan().offset(1990).limit(20).batches().flat_map(|batch| batch.unwrap().rows).collect();
    assert_eq!(rows, (1990..2010).collect::<Vec<_>>());
    let few = source.bytes();
    source.reset();
    assert_eq!(file.scan().batches().map(|batch| batch.unwrap().rows.len()).sum::<usize>(), 100_000);
    assert!(few * 20 < source.bytes(), "{few} of {} bytes", source.bytes());
}

#[test]
fn mismatched_filters_are_rejected() {
    let schema = Schema::new(fields()).unwrap();
    for (text, part) in [
        ("x = 1", "has no column `x`"),
        ("i = \"3\"", "invalid int32 literal"),
        ("i = true", "invalid int32 literal true for column `i`"),
        ("s = 3", "invalid string literal 3 for column `s`"),
        ("l = 3", "does not support `=`"),
        ("i contains 3", "does not support `contains`"),
        ("i prefix \"3\"", "does not support `starts_with`"),
        ("l like \"3\"", "does not support `like`"),
        ("s regexp \"(\"", "invalid `regexp` pattern for column `s`: unclosed group"),
        ("s < i", "cannot compare column `s` (string) with column `i` (int32)"),
        ("l = l", "cannot compare column `l` (list) with column `l` (list)"),
        ("t = 1", "invalid bool literal 1 for column `t`"),
    ] {
        let error = Expr::parse(text).unwrap().bind(&schema).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    assert!(Expr::And(Vec::new()).bind(&schema).is_err());
}

/// Pages of strings in dictionary encoding are tested by their codes, also parts of pages and with nulls.
#[test]
fn dictionary_strings_are_tested_by_code() {
    let rows = 5000usize;
    let schema = Schema::new(vec![
        Field::new("s", Type::String).with_nulls(),
        Field::new("long", Type::String),
        Field::new("b", Type::Bytes),
    ])
    .unwrap();
    // The pages of the long strings have fewer rows.
    let options = WriterOptions::new().with_page_max_bytes(20_000).with_row_group_max_rows(2000);
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options).unwrap();
    let name = |row: usize| ["red", "green", "blue", ""][row * row % 7 % 4];
    let long = |row: usize| format!("{row:0100}");
    let is_null = |row: usize| row % 11 == 3;
    let present: Bitmap = (0..rows).map(|row| !is_null(row)).collect();
    writer
        .append(&[
            Column::new(Values::Bytes((0..rows).map(name).collect())).with_validity(present),
            Column::new(Values::Bytes((0..rows).map(long).collect())),
            Column::new(Values::Bytes((0..rows).map(|row| [0xff, u8::from(row % 3 == 0)]).collect())),
        ])
        .unwrap();
    let bytes = writer.finish().unwrap().output;
    let file = File::from_source(Arc::new(Memory::new("codes", bytes)), ReadOptions::new()).unwrap();
    let encodings: Vec<_> = file.footer().groups[0].chunks.iter().map(|chunk| chunk.encoding).collect();
    assert_eq!(encodings[0], tercet_tatami::format::Encoding::Dictionary);
    assert!(file.footer().groups[0].chunks[1].pages > file.footer().groups[0].chunks[0].pages);
    let cases: [(&str, &dyn Fn(usize) -> bool); 6] = [
        ("s = 'red'", &|row| !is_null(row) && name(row) == "red"),
        ("not s in ('red', '')", &|row| !is_null(row) && !["red", ""].contains(&name(row))),
        ("s like '%e%' and long ends_with '7'", &|row| {
            !is_null(row) && name(row).contains('e') && row % 10 == 7
        }),
        ("s is null or s = 'blue' and long ends_with '1'", &|row| {
            is_null(row) || name(row) == "blue" && row % 10 == 1
        }),
        ("b = x'ff01' and s != 'green'", &|row| row % 3 == 0 && !is_null(row) && name(row) != "green"),
        ("s = 'red' or s = 'green'", &|row| !is_null(row) && ["red", "green"].contains(&name(row))),
    ];
    for (filter, holds) in cases {
        let scan = file.scan().filter(&Expr::parse(filter).unwrap()).unwrap();
        let found: Vec<u64> = scan.batches().flat_map(|batch| batch.unwrap().rows).collect();
        let expected: Vec<u64> = (0..rows).filter(|row| holds(*row)).map(|row| row as u64).collect();
        assert_eq!(found, expected, "{filter}");
        assert_eq!(scan.count().unwrap(), expected.len() as u64, "{filter}");
    }
}

/// Bloom filters are sized by distinct values; those of the interop profile by rows, as other writers do.
#[test]
fn bloom_filters_are_sized_by_distinct_values() {
    let rows = 20_000u32;
    let filter_bytes = |options: WriterOptions| {
        let schema = Schema::new(vec![
            Field::new("few", Type::String).with_bloom(),
            Field::new("many", Type::UInt32).with_bloom(),
        ]);
        let mut writer = Writer::new(Cursor::new(Vec::new()), schema.unwrap(), options).unwrap();
        let few: Vec<String> = (0..rows).map(|row| format!("{}", row % 5)).collect();
        let many = (0..rows).collect();
        writer
            .append(&[Column::new(Values::Bytes(few.iter().collect())), Column::new(Values::UInt32(many))])
            .unwrap();
        let bytes = writer.finish().unwrap().output;
        let file = File::from_source(Arc::new(Memory::new("blooms", bytes)), ReadOptions::new()).unwrap();
        for (filter, count) in
            [("few = '3'", 4000), ("few = '7'", 0), ("many = 19999", 1), ("many = 99999", 0)]
        {
            let scan = file.scan().filter(&Expr::parse(filter).unwrap()).unwrap();
            assert_eq!(scan.count().unwrap(), count, "{filter}");
        }
        file.footer().indexes.iter().map(|index| index.payload_bytes).collect::<Vec<_>>()
    };
    assert_eq!(filter_bytes(WriterOptions::new()), [8 + 8, 8 + (1 << 18) / 8]);
    assert_eq!(filter_bytes(WriterOptions::interop()), [8 + (1 << 18) / 8; 2]);
}

/// The literal start of a pattern is compared with statistics.
#[test]
fn patterns_with_a_prefix_are_pruned() {
    let rows = 1000u32;
    let schema = Schema::new(vec![Field::new("n", Type::UInt32), Field::new("s", Type::String)]).unwrap();
    let options = WriterOptions::new().with_page_max_values(10).with_row_group_max_rows(100);
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options).unwrap();
    let strings: Vec<String> = (0..rows).map(|n| format!("row {n:03}")).collect();
    writer
        .append(&[
            Column::new(Values::UInt32((0..rows).map(|n| n + 500).collect())),
            Column::new(Values::Bytes(strings.iter().collect())),
        ])
        .unwrap();
    let bytes = writer.finish().unwrap().output;
    let file = File::from_source(Arc::new(Memory::new("rows", bytes)), ReadOptions::new()).unwrap();
    for (filter, groups, count) in [
        ("s like 'row 42%'", 1, 10),
        ("s like 'row 42_'", 1, 10),
        ("s like 'row 4%7'", 1, 10),
        ("s starts_with 'row 42'", 1, 10),
        ("s regexp '^row 42[0-4]'", 1, 5),
        ("s regexp '^row 4?2'", 10, 110),
        ("s regexp 'row 42[0-4]'", 10, 5),
        ("s ilike 'ROW 42%'", 10, 10),
        ("s contains '42'", 10, 20),
        ("s ends_with '42'", 10, 10),
        ("n < n", 10, 0),
        ("n <= n", 10, 1000),
    ] {
        let scan = file.scan().filter(&Expr::parse(filter).unwrap()).unwrap();
        let explained = scan.explain().unwrap();
        assert_eq!(explained.groups_scanned, groups, "{filter}");
        assert_eq!(scan.count().unwrap(), count, "{filter}");
        if groups == 1 {
            assert!(explained.rows_tested <= 100, "{filter}: {explained}");
        }
    }
}

#[test]
fn selective_scans_read_little() {
    let rows = 100_000u64;
    let schema = Schema::new(vec![Field::new("n", Type::UInt64), Field::new("s", Type::String)]).unwrap();
    let options = WriterOptions::new().with_page_max_values(1000).with_row_group_max_rows(10_000);
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options).unwrap();
    let strings: Vec<String> = (0..rows).map(|n| format!("row {n} of many")).collect();
    writer
        .append(&[
            Column::new(Values::UInt64((0..rows).collect())),
            Column::new(Values::Bytes(strings.iter().collect())),
        ])
        .unwrap();
    let bytes = writer.finish().unwrap().output;
    let source = tercet_testkit::counting::Counting::new(Memory::new("counted", bytes)).shared();
    let file = File::from_source(source.clone(), ReadOptions::new()).unwrap();
    source.reset();
    let scan = file.scan().columns(&["s"]).unwrap().filter(&Expr::parse("n = 54321").unwrap()).unwrap();
    let explained = scan.explain().unwrap();
    assert_eq!((explained.groups_scanned, explained.rows_tested), (1, 1000), "{explained}");
    let found: Vec<_> = scan.batches().collect::<Result<_, _>>().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].columns[0].scalar(0), Some(Scalar::Bytes(b"row 54321 of many".to_vec())));
    assert!(source.bytes() < 60_000, "{} bytes", source.bytes());
    source.reset();
    let counted = file.scan().filter(&Expr::parse("n >= 20000").unwrap()).unwrap().count().unwrap();
    assert_eq!((counted, source.reads()), (80_000, 0), "zones answer that");
}

fn opened(fields: Vec<Field>, columns: &[Column], options: WriterOptions) -> File {
    let schema = Schema::new(fields).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options).unwrap();
    writer.append(columns).unwrap();
    let source = Memory::new("made", writer.finish().unwrap().output);
    File::from_source(Arc::new(source), ReadOptions::new()).unwrap()
}

/// Long statistics are not stored in the footer, unless they are needed for lookups; results stay the same.
#[test]
fn long_values_have_no_zones() {
    let mut seed = 7u64;
    let mut noise = |len: usize| -> Vec<u8> {
        let mut byte = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        };
        (0..len).map(|_| byte()).collect()
    };
    let values = [noise(400_000), b"short".to_vec(), noise(400_000), noise(1025), noise(1024)];
    let column = || vec![Column::new(Values::Bytes(values.iter().collect()))];
    let field = || Field::new("b", Type::Bytes);
    let total: usize = values.iter().map(Vec::len).sum();
    let file = opened(vec![field()], &column(), WriterOptions::new());
    assert!(file.len() < total as u64 + 5_000, "{}", file.len());
    assert_eq!(file.footer().groups[0].chunks[0].zone, None);
    for (row, value) in values.iter().enumerate() {
        let equal = file.scan().filter(&Expr::col("b").eq(Scalar::Bytes(value.clone()))).unwrap();
        let found: Vec<u64> = equal.batches().flat_map(|batch| batch.unwrap().rows).collect();
        assert_eq!(found, [row as u64]);
        let smaller = file.scan().filter(&Expr::col("b").lt(Scalar::Bytes(value.clone()))).unwrap();
        let expected = values.iter().filter(|other| *other < value).count();
        assert_eq!(smaller.count().unwrap(), expected as u64);
    }
    // Other readers get the statistics they expect, and keys are found by them.
    let interop = opened(vec![field()], &column(), WriterOptions::interop());
    assert!(interop.footer().groups[0].chunks[0].zone.is_some());
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let keys = vec![Column::new(Values::Bytes(sorted.iter().collect()))];
    let file = opened(vec![field().with_sort_key()], &keys, WriterOptions::new());
    assert!(file.footer().groups[0].bounds.is_some());
    assert!(file.lookup(&Scalar::Bytes(values[2].clone())).unwrap().is_some());
    let short = opened(vec![field()], &[column()[0].slice(4, 5)], WriterOptions::new());
    assert!(short.footer().groups[0].chunks[0].zone.is_some());
}

/// Decimals, stored as integers and as bytes, over many groups and pages: the results of a naive loop.
#[test]
fn decimals_compare_by_value() {
    let numbers: Vec<i64> = (0..2000).map(|n: i64| (n * 7919 % 401 - 200) * (n / 500)).collect();
    let wide: Vec<[u8; 16]> = numbers.iter().map(|number| i128::from(*number).to_be_bytes()).collect();
    let fields = vec![Field::new("n", Type::Int64).with_bloom(), Field::new("w", Type::Bytes).with_bloom()];
    let columns =
        [Column::new(Values::Int64(numbers.clone())), Column::new(Values::Bytes(wide.iter().collect()))];
    let options = WriterOptions::new()
        .with_row_group_max_rows(300)
        .with_page_max_values(50)
        .with_metadata("arrow.type:n", "decimal128[18, 1]")
        .with_metadata("arrow.type:w", "decimal128[38, 1]");
    let file = opened(fields, &columns, options);
    for hundredths in (-7000..7000_i64).step_by(413).chain([0, 5, -5, 10, -10]) {
        let (sign, size) = (if hundredths < 0 { "-" } else { "" }, hundredths.abs());
        let literal = format!("{sign}{}.{:02}", size / 100, size % 100);
        for (operator, holds) in [
            ("=", (|order| order == Equal) as fn(Ordering) -> bool),
            ("!=", |order| order != Equal),
            ("<", |order| order == Less),
            ("<=", |order| order != Greater),
            (">", |order| order == Greater),
            (">=", |order| order != Less),
        ] {
            let expected = numbers.iter().filter(|number| holds((**number * 10).cmp(&hundredths))).count();
            for column in ["n", "w"] {
                let filter = format!("{column} {operator} {literal}");
                let scan = file.scan().filter(&Expr::parse(&filter).unwrap()).unwrap();
                assert_eq!(scan.count().unwrap(), expected as u64, "{filter}");
                let rows: usize = scan.batches().map(|batch| batch.unwrap().rows.len()).sum();
                assert_eq!(rows, expected, "{filter}");
            }
        }
    }
    // Groups are in the order of the numbers, not of their bytes.
    let mut distinct = numbers.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let groups = file.scan().aggregate(&["w"], &[Aggregate::Count]).unwrap();
    let Values::Bytes(keys) = &groups.columns[0].values else { panic!("bytes were expected") };
    let keys: Vec<i128> = keys.iter().map(|key| i128::from_be_bytes(key.try_into().unwrap())).collect();
    assert_eq!(keys, distinct.iter().map(|number| i128::from(*number)).collect::<Vec<_>>());
    let explained = file.scan().filter(&Expr::parse("w < -50").unwrap()).unwrap().explain().unwrap();
    assert!(explained.groups_scanned < explained.groups, "zones of bytes are of use: {explained:?}");
}
