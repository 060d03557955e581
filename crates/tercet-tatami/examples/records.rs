//! Write rows to a `.tatami` file, look one up by key, scan with a filter, index three documents and search them.
//!
//! ```console
//! cargo run -p tercet-tatami --example records
//! ```
#![allow(clippy::print_stdout, reason = "an example prints what it does")]

use std::error::Error;
use std::path::Path;

use tercet_tatami::search::{Document, SegmentBuilder, SegmentOptions};
use tercet_tatami::{Column, Expr, Field, File, Scalar, Schema, Type, Values, Writer, WriterOptions};

/// Writes three rows, sorted by ID.
fn write(path: &Path) -> Result<(), Box<dyn Error>> {
    let schema = Schema::new(vec![
        Field::new("id", Type::Int64).with_sort_key(),
        Field::new("city", Type::String),
        Field::new("population", Type::UInt32),
    ])?;
    let mut writer = Writer::create(path, schema, WriterOptions::new().with_overwrite(true))?;
    writer.append(&[
        Column::new(Values::Int64(vec![10, 20, 30])),
        Column::new(Values::Bytes(["Bonn", "Reading", "Bologna"].iter().collect())),
        Column::new(Values::UInt32(vec![331_000, 174_000, 392_000])),
    ])?;
    let written = writer.finish()?;
    assert_eq!(written.rows, 3);
    println!("wrote {} rows", written.rows);
    Ok(())
}

/// Looks one row up by its sort key: one page of the key is read.
fn lookup(file: &File) -> Result<(), Box<dyn Error>> {
    let found = file.lookup(&Scalar::Int64(20))?.ok_or("no such key")?;
    let columns = file.take(&[found.row], &[file.column_index("city")?])?;
    let city = columns[0].scalar(0);
    assert_eq!(city, Some(Scalar::Bytes(b"Reading".to_vec())));
    println!("id 20 is row {}", found.row);
    Ok(())
}

/// Scans the rows that match a filter. Row groups and pages whose statistics rule them out are not decoded.
fn scan(file: &File) -> Result<(), Box<dyn Error>> {
    let filter = Expr::parse("population > 300000")?;
    let mut cities = Vec::new();
    for batch in file.scan().columns(&["city"])?.filter(&filter)?.batches() {
        if let Values::Bytes(names) = &batch?.columns[0].values {
            cities.extend(names.iter().map(|name| String::from_utf8_lossy(name).into_owned()));
        }
    }
    assert_eq!(cities, ["Bonn", "Bologna"]);
    println!("more than 300000 people: {}", cities.join(", "));
    Ok(())
}

/// Indexes three documents and ranks them for a query.
fn search(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut builder = SegmentBuilder::create(path, SegmentOptions::new().with_overwrite(true))?;
    for (url, title, body) in [
        ("https://docs.example/1", "Ownership", "Memory safety without a garbage collector."),
        ("https://docs.example/2", "Forecasts", "The model runs every six hours."),
        ("https://docs.example/3", "Garbage", "A collector frees memory that is not used."),
    ] {
        builder.add(&Document::new(url, title).with_body(body.as_bytes()))?;
    }
    builder.finish()?;

    let segment = File::open(path)?.segment()?.ok_or("the file is a search segment")?;
    let hits = segment.search("memory safety", 10)?;
    let documents: Vec<u32> = hits.iter().map(|hit| hit.document).collect();
    let found = segment.documents(&documents)?;
    let titles: Vec<&str> = found.iter().map(|fields| fields.title.as_str()).collect();
    assert_eq!(titles, ["Ownership", "Garbage"]);
    println!("memory safety: {}", titles.join(", "));
    Ok(())
}

pub(crate) fn run(directory: &Path) -> Result<(), Box<dyn Error>> {
    let path = directory.join("cities.tatami");
    write(&path)?;
    let file = File::open(&path)?;
    lookup(&file)?;
    scan(&file)?;
    search(&directory.join("documents.tatami"))
}

#[cfg_attr(test, allow(dead_code, reason = "the tests call `run`"))]
fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    run(directory.path())
}
