//! Measure operations on messages in this process, for `bench/measure_tgm_speed.py`: `speed ROW REPEAT ARGUMENT…`
//!
//! Prints the seconds of every repetition, and those of the processor, as one JSON object.
#![allow(clippy::print_stdout, reason = "an example shows its results")]
#![allow(clippy::disallowed_methods, reason = "an example reads and writes the files that it measures")]

use std::error::Error;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use tercet_core::progress::NoProgress;
use tercet_tgm::{
    Blosc2Codec, Compression, DType, DataObjectDescriptor, EncodeOptions, File, GlobalMetadata, Message,
    Pipeline, ReadOptions, SimplePacking, Sz3Bound, SzipOptions, Writer, WriterOptions, ZfpMode,
    encode_message,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [row, repeat, rest @ ..] = &arguments[..] else { return Err("speed ROW REPEAT ARGUMENT…".into()) };
    let repeat: usize = repeat.parse()?;
    let argument = |at: usize| rest.get(at).map(String::as_str).ok_or("an argument is missing");
    let number = |at: usize| -> Result<usize> { Ok(argument(at)?.parse()?) };
    let run: Box<dyn FnMut() -> Result<f64>> = match row.as_str() {
        "append" => {
            let (path, messages, batch) = (argument(0)?.to_owned(), number(1)?, number(2)?);
            Box::new(move || append(Path::new(&path), messages, batch))
        }
        "metadata" => {
            let (path, threads) = (argument(0)?.to_owned(), NonZeroUsize::new(number(1)?));
            Box::new(move || metadata(&path, threads))
        }
        "range" => {
            let (path, verify) = (argument(0)?.to_owned(), argument(1)? == "verified");
            Box::new(move || range(&path, verify))
        }
        "scan" => {
            let path = argument(0)?.to_owned();
            Box::new(move || scan(&path))
        }
        "encode" | "decode" => {
            let (pipeline, path, threads) =
                (pipeline(argument(0)?)?, argument(1)?, NonZeroUsize::new(number(2)?));
            let values = fs::read(path)?;
            let plain = DataObjectDescriptor::new(DType::F64, [values.len() as u64 / 8]);
            let descriptor = pipeline.apply(plain)?;
            let options = EncodeOptions::new().with_allowed(true, true).with_threads(threads);
            let message = encode_message(&GlobalMetadata::default(), &[(&descriptor, &values)], &options)?;
            let out = rest.get(3).map(|path| fs::write(path, &message)).transpose();
            out?;
            if row == "encode" {
                Box::new(move || {
                    let started = Instant::now();
                    encode_message(&GlobalMetadata::default(), &[(&descriptor, &values)], &options)?;
                    Ok(started.elapsed().as_secs_f64())
                })
            } else {
                Box::new(move || decode(&message, threads))
            }
        }
        _ => return Err("unknown row".into()),
    };
    let mut run = run;
    let before = processor_seconds()?;
    let seconds = (0..repeat).map(|_| run()).collect::<Result<Vec<f64>>>()?;
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let processor = (processor_seconds()? - before) / repeat as f64;
    println!("{}", serde_json::json!({ "seconds": seconds, "processor": processor }));
    Ok(())
}

/// The time of this process on all cores.
fn processor_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 =
        after.split_whitespace().skip(11).take(2).filter_map(|text| text.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}

/// Appends small messages to a new file, in batches that are synced.
fn append(path: &Path, messages: usize, batch: usize) -> Result<f64> {
    let _ = fs::remove_file(path);
    let descriptor = DataObjectDescriptor::new(DType::F32, [1000]);
    let values = vec![1; 4000];
    Writer::create(path, WriterOptions::new())?.finish()?;
    let started = Instant::now();
    for _ in 0..messages / batch {
        let mut writer = Writer::append(path, &NoProgress)?;
        for _ in 0..batch {
            writer.message(&GlobalMetadata::default(), &[(&descriptor, &values)], &EncodeOptions::new())?;
        }
        writer.finish()?;
    }
    Ok(started.elapsed().as_secs_f64())
}

/// The metadata of all messages.
fn metadata(path: &str, threads: Option<NonZeroUsize>) -> Result<f64> {
    let started = Instant::now();
    let file = File::open_with(path, ReadOptions::new().with_threads(threads))?;
    let messages: Vec<u64> = (0..file.message_count()?).collect();
    let keys: usize = file.metadata_of(&messages)?.iter().map(|metadata| metadata.base.len()).sum();
    let seconds = started.elapsed().as_secs_f64();
    if keys == 0 { Err("no metadata".into()) } else { Ok(seconds) }
}

/// Ten values in the middle of the first object, at first access.
fn range(path: &str, verify: bool) -> Result<f64> {
    let started = Instant::now();
    let file = File::open_with(path, ReadOptions::new().with_verify(verify))?;
    let message = file.message(0)?;
    let object = message.object(0)?;
    let middle = object.descriptor().elements().unwrap_or(0) / 2;
    let found = object.decode_ranges(std::slice::from_ref(&(middle..middle + 10)))?;
    let seconds = started.elapsed().as_secs_f64();
    if found.verified == verify { Ok(seconds) } else { Err("not verified".into()) }
}

fn scan(path: &str) -> Result<f64> {
    let started = Instant::now();
    let count = File::open(path)?.message_count()?;
    let seconds = started.elapsed().as_secs_f64();
    if count == 0 { Err("no messages".into()) } else { Ok(seconds) }
}

fn decode(message: &[u8], threads: Option<NonZeroUsize>) -> Result<f64> {
    let options = ReadOptions::new().with_threads(threads);
    let bytes = message.to_vec();
    let started = Instant::now();
    Message::from_bytes_with("m", bytes, options)?.object(0)?.decode()?;
    Ok(started.elapsed().as_secs_f64())
}

fn pipeline(name: &str) -> Result<tercet_tgm::PipelineBuilder> {
    let pipeline = Pipeline::builder();
    let packed = |bits| pipeline.with_packing(SimplePacking::new(bits));
    let szip = Compression::Szip(SzipOptions::new());
    Ok(match name {
        "none" => pipeline,
        "packing" => packed(16),
        "szip" => packed(24).with_compression(szip),
        "zstd" => pipeline.with_shuffle(true).with_compression(Compression::Zstd { level: None }),
        "blosc2" => pipeline.with_compression(Compression::Blosc2 { codec: Blosc2Codec::Lz4, level: 5 }),
        "zfp-rate" => pipeline.with_compression(Compression::Zfp(ZfpMode::FixedRate(16.0))),
        "zfp-accuracy" => pipeline.with_compression(Compression::Zfp(ZfpMode::FixedAccuracy(0.01))),
        "sz3" => pipeline.with_compression(Compression::Sz3(Sz3Bound::Abs(0.01))),
        _ => return Err("unknown pipeline".into()),
    })
}
