//! Runs every target on its corpus, then for some seconds on mutated inputs, without sanitizer or C++.
//!
//! The seed decides the order of inputs, time only their number: the same seed always finds the same crash. An abort (stack
//! overflow, memory) cannot be caught; run again with `--save-each`: the last saved input is the cause.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers: real files, plain output"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tercet_fuzz::guard::{Crash, Guard, TIMEOUT};
use tercet_fuzz::mutate::{Random, mutate};
use tercet_fuzz::{TARGETS, Target};

const USAGE: &str = "\
usage: replay [--seconds N] [--seed N] [--target NAME]... [--save-each] [FILE]...

  --seconds N    how long each target runs on changed inputs (default 5)
  --seed N       which changed inputs (default 1)
  --target NAME  only this target
  --save-each    save every input before it runs, to find one that ends the process
  FILE           run only these inputs
";

#[derive(Debug)]
struct Options {
    seconds: u64,
    seed: u64,
    targets: Vec<&'static Target>,
    save_each: bool,
    files: Vec<PathBuf>,
}

/// Counts, also for the watchdog.
#[derive(Debug, Default)]
struct Counts {
    passed: AtomicU64,
    failed: AtomicU64,
    skipped: AtomicU64,
}

impl Counts {
    fn print(&self) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        println!("{} passed, {} failed, {} skipped", of(&self.passed), of(&self.failed), of(&self.skipped));
    }
}

fn add_one(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(reason) => {
            eprintln!("error: {reason}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let counts = Arc::new(Counts::default());
    let crashes = std::env::temp_dir().join("tercet-fuzz-crashes");
    let on_hang = {
        let counts = Arc::clone(&counts);
        move |crash: &Crash| {
            println!("failed: {crash}");
            add_one(&counts.failed);
            counts.print();
            std::process::exit(1);
        }
    };
    let session = Session { guard: Guard::new(&crashes, TIMEOUT, on_hang), crashes, options, counts };
    for target in &session.options.targets {
        if let Err(reason) = session.run(target) {
            println!("failed: {reason}");
            add_one(&session.counts.failed);
        }
    }
    session.counts.print();
    if session.counts.failed.load(Ordering::Relaxed) == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Session {
    guard: Guard,
    crashes: PathBuf,
    options: Options,
    counts: Arc<Counts>,
}

impl Session {
    /// Runs one target to its end, or to its first failure.
    fn run(&self, target: &Target) -> Result<(), String> {
        let named = !self.options.files.is_empty();
        let files = if named { self.options.files.clone() } else { corpus(target)? };
        let mut inputs = Vec::new();
        for file in &files {
            let input = fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            self.input(target, &input)?;
            add_one(&self.counts.passed);
            inputs.push(input);
        }
        println!("{}: {} files replayed", target.name, files.len());
        if inputs.is_empty() {
            println!("skipped: corpus of {} (no file in corpus/{})", target.name, target.corpus);
            add_one(&self.counts.skipped);
        }
        if !named && self.options.seconds > 0 {
            self.mutations(target, &inputs)?;
            add_one(&self.counts.passed);
        }
        Ok(())
    }

    fn mutations(&self, target: &Target, inputs: &[Vec<u8>]) -> Result<(), String> {
        let Options { seconds, seed, .. } = self.options;
        let mut random = Random::new(seed);
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut runs = 0_u64;
        println!("{}: {seconds} s of changed inputs, seed {seed}", target.name);
        while Instant::now() < end {
            let base = random.pick(inputs).map_or(&[][..], Vec::as_slice);
            let other = random.pick(inputs).map_or(&[][..], Vec::as_slice);
            let mut input = mutate(&mut random, base, other);
            // Half of them with valid checksums, so that the code after the check is tested too.
            if let (Some(recompute), 0) = (target.recompute_checksums, random.below(2)) {
                recompute(&mut input);
            }
            self.input(target, &input)?;
            runs += 1;
        }
        println!("{}: {runs} changed inputs", target.name);
        Ok(())
    }

    fn input(&self, target: &Target, input: &[u8]) -> Result<(), String> {
        if self.options.save_each {
            let path = self.crashes.join(format!("{}-last", target.name));
            fs::create_dir_all(&self.crashes)
                .and_then(|()| fs::write(&path, input))
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        self.guard.run(target, input).map_err(|crash| crash.to_string())
    }
}

/// The seeds of a target, in the order of their names; a missing directory is empty.
fn corpus(target: &Target) -> Result<Vec<PathBuf>, String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.corpus);
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let list = || fs::read_dir(&dir)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut files = list().map_err(|error| format!("cannot list {}: {error}", dir.display()))?;
    files.sort();
    Ok(files)
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options =
        Options { seconds: 5, seed: 1, targets: Vec::new(), save_each: false, files: Vec::new() };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("`{arg}` needs a value"));
        let number = |text: String| text.parse().map_err(|_| format!("`{text}` is not a number"));
        match arg.as_str() {
            "--seconds" => options.seconds = number(value()?)?,
            "--seed" => options.seed = number(value()?)?,
            "--target" => {
                let name = value()?;
                let target = TARGETS.iter().find(|target| target.name == name);
                options.targets.push(target.ok_or_else(|| format!("unknown target `{name}`"))?);
            }
            "--save-each" => options.save_each = true,
            option if option.starts_with('-') => return Err(format!("unknown option `{option}`")),
            file => options.files.push(file.into()),
        }
    }
    if options.targets.is_empty() {
        options.targets = TARGETS.iter().collect();
    }
    Ok(options)
}
