//! Writes a message for every valid pipeline into a directory, and a `manifest.json` that describes them.

use std::path::PathBuf;

use tercet_interop::{Failure, pipelines};

fn main() -> Result<(), Failure> {
    let mut args = std::env::args_os().skip(1);
    let (Some(dir), compression, None) = (args.next().map(PathBuf::from), args.next(), args.next()) else {
        return Err("usage: make_pipelines DIR [COMPRESSION]".into());
    };
    std::fs::create_dir_all(&dir)?;
    pipelines::make(&dir, compression.and_then(|name| name.into_string().ok()).as_deref())
}
