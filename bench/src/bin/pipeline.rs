//! Pipelines of `.tgm` objects, timed in process. `bench/measure_pipeline.py` compares this with the reference.
//!
//! ```text
//! pipeline encode VALUES.bin DESCRIPTOR [--out FILE] [--allow] [--warm] [--threads N] [--repeat K]
//! pipeline decode FILE [--no-verify] [--warm] [--threads N] [--repeat K]   object 0 of the first message
//! pipeline range FILE START COUNT [--no-verify] [--known] [--mmap] [--repeat K]
//! ```
//!
//! DESCRIPTOR is JSON: `dtype`, `shape`, the stages and their parameters. Without `--warm` results go into new memory, like in
//! the reference. `range` opens the file each time, unless `--known`: then it was opened and verified before.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tercet_bench::{flag, number, on_threads, option, report};
use tercet_core::source::Mmap;
use tercet_tgm::{
    DataObjectDescriptor, EncodeOptions, File, GlobalMetadata, Message, ReadOptions, Value,
    encode_message_into,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let threads = number("--threads", 1);
    match args[..] {
        ["encode", values, descriptor, ..] => on_threads(threads, || encode(Path::new(values), descriptor)),
        ["decode", file, ..] => on_threads(threads, || decode(Path::new(file))),
        ["range", file, start, count, ..] => {
            let (start, count) = (start.parse()?, count.parse()?);
            on_threads(threads, || range(Path::new(file), start, count))
        }
        _ => Err("see the first lines of bench/src/bin/pipeline.rs".into()),
    }
}

fn descriptor_of(text: &str) -> Result<DataObjectDescriptor, Failure> {
    let mut json: Json = serde_json::from_str(text)?;
    let shape = json["shape"].as_array().ok_or("no shape")?.clone();
    let extents: Vec<u64> = shape.iter().filter_map(Json::as_u64).collect();
    let given = json.as_object_mut().ok_or("a descriptor is an object")?;
    for (key, default) in [
        ("type", json!("ntensor")),
        ("byte_order", json!("little")),
        ("encoding", json!("none")),
        ("filter", json!("none")),
        ("compression", json!("none")),
        ("ndim", json!(extents.len())),
        ("strides", json!(DataObjectDescriptor::row_major_strides(&extents))),
    ] {
        given.entry(key).or_insert(default);
    }
    Ok(DataObjectDescriptor::from_value(Value::from_json(&json))?)
}

fn encode(path: &Path, descriptor: &str) -> Result<(), Failure> {
    let values = std::fs::read(path)?;
    let descriptor = descriptor_of(descriptor)?;
    let options = EncodeOptions::new().with_allowed(flag("--allow"), flag("--allow"));
    let none = GlobalMetadata::default();
    let mut out = Vec::new();
    encode_message_into(&none, &[(&descriptor, &values)], &options, &mut out)?;
    if let Some(path) = option("--out") {
        std::fs::write(path, &out)?;
    }
    let len = out.len() as u64;
    report(number("--repeat", 5), len, || {
        if !flag("--warm") {
            out = Vec::new();
        }
        out.clear();
        encode_message_into(&none, &[(&descriptor, &values)], &options, &mut out).expect("a message");
        black_box(&out);
    });
    Ok(())
}

fn options() -> ReadOptions {
    ReadOptions::new().with_verify(!flag("--no-verify"))
}

fn decode(path: &Path) -> Result<(), Failure> {
    let shared = bytes::Bytes::from(std::fs::read(path)?);
    let open = || Message::from_bytes_with("bench", shared.clone(), options()).expect("a message");
    let len = open().object(0)?.decoded_len()?;
    let mut out = if flag("--warm") { vec![1u8; usize::try_from(len)?] } else { Vec::new() };
    report(number("--repeat", 5), len, || {
        let message = open();
        let object = message.object(0).expect("an object");
        if flag("--warm") {
            object.decode_into(&mut out).expect("values");
            black_box(&out);
        } else {
            black_box(object.decode().expect("values"));
        }
    });
    Ok(())
}

fn range(path: &Path, start: u64, count: u64) -> Result<(), Failure> {
    let open = || {
        if flag("--mmap") {
            let source = Mmap::open(path).expect("a file");
            return File::from_source(Arc::new(source), options()).expect("a file");
        }
        File::open_with(path, options()).expect("a file")
    };
    let read = |file: &File| {
        let message = file.message(0).expect("a message");
        let object = message.object(0).expect("an object");
        black_box(object.decode_ranges(&[start..start + count]).expect("values"));
    };
    let known = open();
    read(&known);
    report(number("--repeat", 20), count, || if flag("--known") { read(&known) } else { read(&open()) });
    Ok(())
}
