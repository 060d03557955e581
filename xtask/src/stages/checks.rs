//! Stages that are one check each: they pass or fail as a whole.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::context::Context;
use crate::layers;
use crate::process;
use crate::report::Report;
use crate::tools;

/// Crates whose features are checked one by one, and which build for wasm32 without features: the formats and
/// what they depend on. Those that are not in the workspace are ignored.
const LOWER_CRATES: [&str; 5] = ["tercet-core", "tercet-codec", "tercet-tgm", "tercet-tet", "tercet-tatami"];

const WASM: &str = "wasm32-unknown-unknown";

pub(super) fn fmt(context: &Context) -> Report {
    run_all(["Cargo.toml", "bench/Cargo.toml"].map(|manifest| {
        let mut command = context.cargo();
        command.args(["fmt", "--all", "--check", "--manifest-path", manifest]);
        command
    }))
}

pub(super) fn layers(context: &Context) -> Report {
    Report::from_failures(layers::check(&context.root).err().into_iter().collect())
}

pub(super) fn clippy(context: &Context) -> Report {
    let mut command = context.workspace("clippy");
    command.args(["--all-targets", "--", "-D", "warnings"]);
    run_all([command])
}

pub(super) fn docs(context: &Context) -> Report {
    let mut command = context.workspace("doc");
    // Libraries only: the program `tercet` and the library `tercet` would write the same pages.
    command.args(["--no-deps", "--lib"]).env("RUSTDOCFLAGS", "-D warnings");
    run_all([command])
}

/// Checks each lower crate without features, and with each of its features alone. A warning fails here too: it
/// is code that only another feature uses.
pub(super) fn features(context: &Context) -> Report {
    let metadata = match layers::metadata(&context.root) {
        Ok(metadata) => metadata,
        Err(reason) => return Report::failed(reason),
    };
    let mut failures = Vec::new();
    for (name, package) in layers::packages(&metadata).filter(|(name, _)| LOWER_CRATES.contains(name)) {
        for feature in [None].into_iter().chain(single_features(package).map(Some)) {
            let mut command = context.cargo();
            command.args(["check", "--package", name, "--no-default-features"]).args(context.locked());
            command.args(feature.iter().flat_map(|feature| ["--features", feature]));
            match process::run_listening(&mut command) {
                Err(reason) => failures.push(reason),
                Ok(messages) if messages.lines().any(|line| line.starts_with("warning")) => {
                    failures.push(format!("`{name}` has warnings with {}", feature.unwrap_or("no feature")));
                }
                Ok(_) => {}
            }
        }
    }
    Report::from_failures(failures)
}

/// The features that are checked alone; `sz3` needs a C++ compiler and is part of the whole build.
fn single_features(package: &Value) -> impl Iterator<Item = &str> {
    layers::features(package).filter(|name| *name != "sz3")
}

pub(super) fn wasm(context: &Context) -> Report {
    if let Err(reason) = add_wasm_target(context) {
        let mut report = Report::default();
        report.lack(context.ci, "wasm", &reason);
        return report;
    }
    let metadata = match layers::metadata(&context.root) {
        Ok(metadata) => metadata,
        Err(reason) => return Report::failed(reason),
    };
    let mut command = context.cargo();
    command.args(["check", "--target", WASM, "--lib", "--no-default-features"]).args(context.locked());
    for (name, _) in layers::packages(&metadata).filter(|(name, _)| LOWER_CRATES.contains(name)) {
        command.args(["--package", name]);
    }
    // Only code for wasm32 has these flags; build scripts and macros are shared with the other stages.
    command.env("RUSTFLAGS", "-D warnings");
    run_all([command])
}

/// Installs the standard library for wasm32 with rustup, if it is missing.
fn add_wasm_target(context: &Context) -> Result<(), String> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", WASM]).current_dir(&context.root);
    let directory = process::read(&mut rustc)?;
    if Path::new(directory.trim()).is_dir() {
        return Ok(());
    }
    process::run(Command::new("rustup").args(["target", "add", WASM]).current_dir(&context.root))
}

/// Licences, bans and sources. Advisories need a database from the network, so they are not among them.
pub(super) fn deny(context: &Context) -> Report {
    let deny = match tools::cargo_tool(context, &tools::DENY) {
        Ok(deny) => deny,
        Err(reason) => {
            let mut report = Report::default();
            report.lack(context.ci, "deny", &reason);
            return report;
        }
    };
    let mut command = Command::new(&deny.program);
    command.args(["--all-features", "check", "licenses", "bans", "sources"]).current_dir(&context.root);
    run_all([command])
}

/// Runs all commands, also after a failure.
fn run_all(commands: impl IntoIterator<Item = Command>) -> Report {
    let failures = commands.into_iter().filter_map(|mut command| process::run(&mut command).err());
    Report::from_failures(failures.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_set_is_not_a_single_feature() {
        let features = serde_json::json!({ "default": ["zstd"], "zstd": [], "lz4": [], "sz3": [] });
        let package = serde_json::json!({ "features": features });
        assert_eq!(single_features(&package).collect::<Vec<_>>(), ["zstd", "lz4"]);
        assert_eq!(single_features(&serde_json::json!({})).count(), 0);
    }
}
