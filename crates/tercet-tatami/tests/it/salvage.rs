//! Salvage keeps every intact row and invents none.

use std::io::Cursor;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_tatami::salvage::{SalvageOptions, SalvageReport, salvage};
use tercet_tatami::{
    Bitmap, Column, Error, Field, File, ReadOptions, Schema, Type, Values, VerifyOptions, Writer,
    WriterOptions, verify,
};

const ROWS: usize = 900;

fn schema() -> Schema {
    Schema::new(vec![
        Field::new("key", Type::Int64).with_sort_key(),
        Field::new("city", Type::String).with_bloom(),
        Field::new("url", Type::String).with_nulls(),
        Field::new("body", Type::BlobRef).with_nulls(),
        Field::list("tags", Type::UInt16),
    ])
    .unwrap()
}

fn rows() -> Vec<Column> {
    let numbers = 0..ROWS as u64;
    let text = |n: u64| format!("https://example.org/{}/{n}", n * 7 % 13);
    let body = |n: u64| format!("<html><body>page {n} {}</body></html>", "x".repeat((n % 50) as usize));
    let lists = tercet_tatami::Lists {
        ends: numbers.clone().map(|n| (n + 1) * 2).collect(),
        elements: Column::new(Values::UInt16((0..2 * ROWS as u64).map(|n| (n % 300) as u16).collect())),
    };
    let some: Bitmap = numbers.clone().map(|n| n % 3 != 0).collect();
    let sparse = |make: &dyn Fn(u64) -> String| {
        let values = numbers.clone().map(|n| if n % 3 == 0 { String::new() } else { make(n) });
        Column::new(Values::Bytes(values.collect())).with_validity(some.clone())
    };
    vec![
        Column::new(Values::Int64(numbers.clone().map(|n| n.cast_signed() * 2 - 500).collect())),
        Column::new(Values::Bytes(
            numbers.clone().map(|n| ["Ulm", "Bonn", "Jena"][(n % 3) as usize]).collect(),
        )),
        sparse(&text),
        sparse(&body),
        Column::new(Values::List(Box::new(lists))),
    ]
}

fn options() -> WriterOptions {
    WriterOptions::new()
        .with_row_group_max_rows(200)
        .with_page_max_values(50)
        .with_blob_run_target_bytes(2000)
}

fn written() -> Vec<u8> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema(), options()).unwrap();
    writer.append(&rows()).unwrap();
    writer.finish().unwrap().output
}

fn open(bytes: Vec<u8>) -> Result<File, Error> {
    File::from_source(Arc::new(Memory::new("file", bytes)), ReadOptions::new())
}

fn salvaged(bytes: &[u8], with_schema: bool) -> Result<(SalvageReport, Vec<u8>), Error> {
    let mut options = SalvageOptions::new().with_writer(options());
    if with_schema {
        options = options.with_schema(schema());
    }
    let source = Arc::new(Memory::new("broken", bytes.to_vec()));
    Ok(salvage(source, Cursor::new(Vec::new()), options, &NoProgress)?.into_parts())
}

/// One row of every column.
fn row(columns: &[Column], row: usize) -> Vec<String> {
    columns
        .iter()
        .map(|column| match &column.values {
            Values::List(lists) => {
                let elements: Vec<_> = lists.range(row).map(|at| lists.elements.scalar(at)).collect();
                format!("{elements:?}")
            }
            _ => format!("{:?}", column.scalar(row)),
        })
        .collect()
}

/// Asserts that the new file is valid and holds exactly the rows that are not reported as lost.
fn check(report: &SalvageReport, bytes: Vec<u8>) -> usize {
    let verified = verify(
        Arc::new(Memory::new("salvaged", bytes.clone())),
        VerifyOptions::default().with_deep(true),
        &NoProgress,
    );
    assert!(verified.unwrap().ok);
    let file = open(bytes).unwrap();
    let columns = file.read_columns(&[0, 1, 2, 3, 4]).unwrap();
    let lost = |row: u64| report.lost.iter().any(|range| range.contains(&row));
    let kept: Vec<usize> =
        (0..ROWS).filter(|row| (*row as u64) < report.rows && !lost(*row as u64)).collect();
    assert_eq!(kept.len() as u64, report.rows_kept);
    assert_eq!(file.rows(), report.rows_kept);
    let expected = rows();
    for (at, original) in kept.iter().enumerate() {
        assert_eq!(row(&columns, at), row(&expected, *original), "row {original}");
    }
    kept.len()
}

#[test]
fn a_valid_file_is_salvaged_whole() {
    let good = written();
    let (report, bytes) = salvaged(&good, false).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(check(&report, bytes), ROWS);
}

#[test]
fn damage_loses_only_the_rows_of_its_pages() {
    let good = written();
    let file = open(good.clone()).unwrap();
    let mut damaged = 0;
    for (group, column) in [(0, 0), (1, 1), (2, 2), (0, 3), (3, 4), (4, 0)] {
        for page in file.pages(group, column).unwrap().iter().filter(|page| page.header.stored_bytes > 0) {
            let mut bad = good.clone();
            bad[usize::try_from(page.offset).unwrap() + 32] ^= 0x55;
            let (report, bytes) = salvaged(&bad, false).unwrap();
            let first = file.footer().groups[group].first_row + u64::from(page.header.first_row);
            let lost = first..first + u64::from(page.header.values);
            assert_eq!(report.lost, [lost], "{:?}", report.reasons);
            assert_eq!(report.reasons.len(), 1);
            check(&report, bytes);
            damaged += 1;
        }
    }
    assert!(damaged > 10, "{damaged}");
}

#[test]
fn a_damaged_run_loses_the_rows_of_its_values() {
    let good = written();
    let file = open(good.clone()).unwrap();
    let runs = &file.footer().blobs[0].runs;
    assert!(runs.len() > 3);
    let mut bad = good.clone();
    bad[usize::try_from(runs[2].offset).unwrap() + 40] ^= 1;
    let (report, bytes) = salvaged(&bad, false).unwrap();
    let lost: u64 = report.lost.iter().map(|range| range.end - range.start).sum();
    // Only rows with a value in that run are lost: null rows between them are intact.
    assert_eq!(lost, runs[2].values, "{:?}", report.lost);
    check(&report, bytes);
}

#[test]
fn a_file_without_a_footer_is_read_from_its_records() {
    let good = written();
    let footer = usize::try_from(open(good.clone()).unwrap().footer_span().start()).unwrap();
    let cut = &good[..footer + 10];
    assert!(salvaged(cut, false).is_err(), "the columns are not known");
    let (report, bytes) = salvaged(cut, true).unwrap();
    assert!(report.footer_rebuilt);
    assert_eq!(check(&report, bytes), ROWS, "{report:?}");
}

/// With a given schema the sort key is optional, and a given sort key is checked.
#[test]
fn the_sort_key_of_a_lost_footer_can_be_given() {
    let good = written();
    let footer = usize::try_from(open(good.clone()).unwrap().footer_span().start()).unwrap();
    let salvaged_as = |key: Option<usize>| {
        let mut fields = schema().fields().to_vec();
        fields.iter_mut().enumerate().for_each(|(at, field)| field.sort_key = key == Some(at));
        let schema = Schema::new(fields).unwrap();
        let options = SalvageOptions::new().with_writer(options()).with_schema(schema);
        let cut = good[..footer].to_vec();
        let source = Arc::new(Memory::new("broken", cut));
        salvage(source, Cursor::new(Vec::new()), options, &NoProgress).map(SalvageReport::into_parts)
    };
    let (report, bytes) = salvaged_as(None).unwrap();
    assert_eq!(check(&report, bytes), ROWS, "{report:?}");
    let (_, bytes) = salvaged_as(Some(0)).unwrap();
    let found = open(bytes).unwrap().lookup(&tercet_tatami::Scalar::Int64(-400)).unwrap();
    assert_eq!(found.map(|found| found.row), Some(50));
    let error = salvaged_as(Some(1)).unwrap_err();
    assert!(error.to_string().contains("city"), "{error}");
}

#[test]
fn every_truncation_gives_complete_rows_or_an_error() {
    let good = written();
    let mut sizes = std::collections::BTreeSet::new();
    for cut in (0..good.len()).step_by(97) {
        match salvaged(&good[..cut], true) {
            Ok((report, bytes)) => {
                sizes.insert(check(&report, bytes));
            }
            Err(error) => assert!(cut < 64, "cut at {cut}: {error}"),
        }
    }
    assert!(sizes.contains(&0) && sizes.contains(&ROWS), "{sizes:?}");
}
