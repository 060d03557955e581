//! Writes every kind of `.tgm` file into a directory, and a `manifest.json` that describes them.

use std::path::PathBuf;

use tercet_interop::{Failure, tgm};

fn main() -> Result<(), Failure> {
    let mut args = std::env::args_os().skip(1);
    let (Some(dir), None) = (args.next().map(PathBuf::from), args.next()) else {
        return Err("usage: make_tgm DIR".into());
    };
    std::fs::create_dir_all(&dir)?;
    tgm::make(&dir)
}
