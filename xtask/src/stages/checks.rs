//! Stages that are one check each: they pass or they fail, nothing is counted inside.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::context::{Context, SIDE_WORKSPACES};
use crate::layers;
use crate::process;
use crate::report::Report;

/// Crates whose features are tried one by one, and which build for wasm32 without them: what every format
/// stands on, and the formats. Those not in the workspace are passed over.
const LOWER_CRATES: [&str; 5] = ["tercet-core", "tercet-codec", "tercet-tgm", "tercet-tet", "tercet-tatami"];

const WASM: &str = "wasm32-unknown-unknown";

pub(super) fn fmt(context: &Context) -> Report {
    let manifests = ["Cargo.toml".to_owned()].into_iter().chain(side_manifests(context, &["bench"]));
    run_all(manifests.map(|manifest| {
        let mut command = context.cargo();
        command.args(["fmt", "--all", "--check", "--manifest-path", &manifest]);
        command
    }))
}

pub(super) fn layers(context: &Context) -> Report {
    Report::of_check(layers::check(&context.root).err().into_iter().collect())
}

pub(super) fn clippy(context: &Context) -> Report {
    let mut main = context.cargo();
    main.args(["clippy", "--workspace", "--all-targets"]);
    let sides = side_manifests(context, &[]).map(|manifest| {
        let mut command = context.side_cargo();
        command.args(["clippy", "--all-targets", "--manifest-path", &manifest]);
        command
    });
    run_all([main].into_iter().chain(sides).map(|mut command| {
        command.args(context.locked()).args(["--", "-D", "warnings"]);
        command
    }))
}

pub(super) fn docs(context: &Context) -> Report {
    let mut command = context.cargo();
    // Libraries only: the program `tercet` and the library `tercet` would write the same pages.
    command
        .args(["doc", "--workspace", "--no-deps", "--lib"])
        .args(context.locked())
        .env("RUSTDOCFLAGS", "-D warnings");
    run_all([command])
}

/// Each lower crate without features, and with each of its features alone. A warning fails here too: it is
/// code that only some other feature uses.
pub(super) fn features(context: &Context) -> Report {
    let metadata = match layers::metadata(&context.root) {
        Ok(metadata) => metadata,
        Err(why) => return Report::failed(why),
    };
    let mut failures = Vec::new();
    for (name, package) in layers::packages(&metadata).filter(|(name, _)| LOWER_CRATES.contains(name)) {
        for feature in [None].into_iter().chain(single_features(package).map(Some)) {
            let mut command = context.cargo();
            command.args(["check", "--package", name, "--no-default-features"]).args(context.locked());
            command.args(feature.iter().flat_map(|feature| ["--features", feature]));
            match process::run_listening(&mut command) {
                Err(why) => failures.push(why),
                Ok(messages) if messages.lines().any(|line| line.starts_with("warning")) => {
                    failures.push(format!("`{name}` has warnings with {}", feature.unwrap_or("no feature")));
                }
                Ok(_) => {}
            }
        }
    }
    Report::of_check(failures)
}

/// The features of a package, except the set that is on by default, and `sz3`, which has a stage of its own.
fn single_features(package: &Value) -> impl Iterator<Item = &str> {
    let names = package["features"].as_object().into_iter().flat_map(|features| features.keys());
    names.map(String::as_str).filter(|name| !["default", "sz3"].contains(name))
}

pub(super) fn wasm(context: &Context) -> Report {
    if let Err(why) = add_wasm_target(context) {
        let mut report = Report::default();
        report.lack(context.ci, "wasm", &why);
        return report;
    }
    let metadata = match layers::metadata(&context.root) {
        Ok(metadata) => metadata,
        Err(why) => return Report::failed(why),
    };
    let mut command = context.cargo();
    command.args(["check", "--target", WASM, "--lib", "--no-default-features"]).args(context.locked());
    for (name, _) in layers::packages(&metadata).filter(|(name, _)| LOWER_CRATES.contains(name)) {
        command.args(["--package", name]);
    }
    run_all([command])
}

/// Makes sure that the standard library for wasm32 is there, by rustup if need be.
fn add_wasm_target(context: &Context) -> Result<(), String> {
    let mut ask = Command::new("rustc");
    ask.args(["--print", "target-libdir", "--target", WASM]).current_dir(&context.root);
    let folder = process::read(&mut ask)?;
    if Path::new(folder.trim()).is_dir() {
        return Ok(());
    }
    process::run(Command::new("rustup").args(["target", "add", WASM]).current_dir(&context.root))
}

/// A courtesy where the tool is present: it is no oracle, so its absence never fails.
pub(super) fn deny(context: &Context) -> Report {
    if process::read(context.cargo().args(["deny", "--version"])).is_err() {
        return Report::skipped("deny", "cargo-deny is not installed");
    }
    let mut command = context.cargo();
    command.args(["deny", "check"]);
    run_all([command])
}

/// Runs all commands, whatever becomes of each.
fn run_all(commands: impl IntoIterator<Item = Command>) -> Report {
    let failures = commands.into_iter().filter_map(|mut command| process::run(&mut command).err());
    Report::of_check(failures.collect())
}

/// The manifests of those workspaces beside the main one that exist.
fn side_manifests(context: &Context, more: &[&str]) -> impl Iterator<Item = String> {
    let manifests = SIDE_WORKSPACES.iter().chain(more).map(|folder| format!("{folder}/Cargo.toml"));
    manifests.filter(|manifest| context.has(manifest))
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
