//! Finding messages in a large file: with its index, and by scanning all of them.
//!
//! ```text
//! index make FILE MESSAGES          a file of small messages, with an index
//! index select FILE KEY=VALUE scan  seconds, messages found
//! index select FILE KEY=VALUE index
//! ```

use std::process::ExitCode;
use std::time::Instant;

use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeOptions, File, GlobalMetadata, IndexKeys, Provenance, ScanOptions,
    Value, Writer, WriterOptions,
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["make", path, messages] => make(path, messages.parse().expect("a number")),
        ["select", path, clause, how @ ("scan" | "index")] => select(path, clause, *how == "index"),
        _ => {
            eprintln!("usage: index make FILE MESSAGES | index select FILE KEY=VALUE scan|index");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Fields of 20 parameters on 13 levels at as many steps as needed.
fn make(path: &str, messages: u64) -> Outcome {
    let descriptor = DataObjectDescriptor::new(DType::F32, [4]);
    let options = EncodeOptions::new().with_provenance(Provenance::Off);
    let mut writer =
        Writer::create(path, WriterOptions::new().with_overwrite(true).with_index(Some(IndexKeys::All)))?;
    for number in 0..messages {
        let mars = Value::Map(vec![
            ("param".into(), (number % 20 + 130).into()),
            ("levelist".into(), (number / 20 % 13 * 75 + 100).into()),
            ("step".into(), (number / 260).into()),
        ]);
        let metadata =
            GlobalMetadata { base: vec![[("mars".to_owned(), mars)].into()], ..GlobalMetadata::default() };
        writer.message(&metadata, &[(&descriptor, &[0; 16])], &options)?;
    }
    writer.finish()?;
    Ok(())
}

/// Opens a file and every message whose key has a value.
fn select(path: &str, clause: &str, with_index: bool) -> Outcome {
    let (key, wanted) = clause.split_once('=').ok_or("KEY=VALUE")?;
    let takes = |value: Option<&Value>| value.is_some_and(|value| value.printed() == wanted);
    let start = Instant::now();
    let file = File::open(path)?.with_scan_options(ScanOptions::default().with_index(with_index));
    let mut found = 0u64;
    if with_index {
        let column = file.index()?.and_then(|index| index.column(key).transpose());
        for number in column.ok_or("no such key")??.matching(takes) {
            found += u64::from(takes(file.message(number)?.metadata().get(key)));
        }
    } else {
        for message in file.messages()? {
            found += u64::from(takes(message?.metadata().get(key)));
        }
    }
    println!("{}", serde_json::json!({ "seconds": start.elapsed().as_secs_f64(), "found": found }));
    Ok(())
}
