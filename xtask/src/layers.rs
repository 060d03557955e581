//! Which crate may use which.
//!
//! Data flows one way: a crate uses crates of lower layers only, and the formats do not use each other. The
//! reference implementations are oracles, never dependencies.

use std::fmt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::context;
use crate::process;

/// The role of a workspace crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Shipped, on this layer.
    Layer(u8),
    /// Test equipment: uses the lowest layer only, is a dev-dependency only.
    TestOnly,
    /// Programs for tests: use anything, nothing uses them.
    Driver,
    /// Uses nothing, nothing uses it.
    Tool,
}

/// The layer on which crates do not use each other, not even in their tests.
const FORMATS: u8 = 2;

const ROLES: &[(&str, Role)] = &[
    ("tercet-core", Role::Layer(0)),
    ("tercet-remote", Role::Layer(0)),
    ("tercet-codec", Role::Layer(1)),
    ("tercet-kernel", Role::Layer(1)),
    ("tercet-plot", Role::Layer(1)),
    ("tercet-tgm", Role::Layer(FORMATS)),
    ("tercet-tet", Role::Layer(FORMATS)),
    ("tercet-tatami", Role::Layer(FORMATS)),
    ("tercet-arrow", Role::Layer(3)),
    ("tercet-convert", Role::Layer(3)),
    ("tercet", Role::Layer(4)),
    ("tercet-server", Role::Layer(5)),
    ("tercet-tui", Role::Layer(5)),
    ("tercet-cli", Role::Layer(5)),
    ("tercet-python", Role::Layer(5)),
    ("tercet-testkit", Role::TestOnly),
    ("tercet-fuzz", Role::Driver),
    ("tercet-interop", Role::Driver),
    ("xtask", Role::Tool),
];

/// Allowed uses within a layer.
const SIDEWAYS: &[(&str, &str)] = &[
    ("tercet-remote", "tercet-core"),
    ("tercet-convert", "tercet-arrow"),
    ("tercet-cli", "tercet-server"),
    ("tercet-cli", "tercet-tui"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Normal,
    Build,
    Dev,
}

/// One crate uses another.
#[derive(Clone, Debug)]
struct Edge {
    from: String,
    to: String,
    kind: Kind,
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.kind {
            Kind::Normal => "uses",
            Kind::Build => "builds with",
            Kind::Dev => "tests with",
        };
        write!(f, "`{}` {how} `{}`", self.from, self.to)
    }
}

/// The crates of a workspace and their dependencies.
#[derive(Debug, Default)]
struct Graph {
    members: Vec<String>,
    edges: Vec<Edge>,
    /// Names in the lock file: all direct and indirect dependencies.
    locked: Vec<String>,
}

/// Checks the workspace at `root`; the error lists all problems.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let metadata = metadata(root)?;
    let lock = String::from_utf8_lossy(&context::read_or_empty(&root.join("Cargo.lock"))).into_owned();
    let problems = problems(&Graph::read(&metadata, &lock)?);
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n       ")) }
}

/// `cargo metadata` of the workspace members.
pub(crate) fn metadata(root: &Path) -> Result<Value, String> {
    let mut command: Command = context::cargo();
    command.args(["metadata", "--format-version", "1", "--no-deps"]).current_dir(root);
    serde_json::from_str(&process::read(&mut command)?).map_err(|error| format!("cargo metadata: {error}"))
}

/// The packages of `cargo metadata`, with their names.
pub(crate) fn packages(metadata: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    packages.iter().filter_map(|package| Some((package["name"].as_str()?, package)))
}

/// The features of a package, without the set that is on by default.
pub(crate) fn features(package: &Value) -> impl Iterator<Item = &str> {
    let names = package["features"].as_object().into_iter().flat_map(|features| features.keys());
    names.map(String::as_str).filter(|name| *name != "default")
}

impl Graph {
    fn read(metadata: &Value, lock: &str) -> Result<Self, String> {
        let mut graph = Self::default();
        for (name, package) in packages(metadata) {
            graph.members.push(name.to_owned());
            for dependency in package["dependencies"].as_array().into_iter().flatten() {
                let kind = match dependency["kind"].as_str() {
                    None => Kind::Normal,
                    Some("build") => Kind::Build,
                    Some("dev") => Kind::Dev,
                    Some(other) => return Err(format!("cargo metadata: unknown dependency kind `{other}`")),
                };
                let to = dependency["name"].as_str().unwrap_or_default().to_owned();
                graph.edges.push(Edge { from: name.to_owned(), to, kind });
            }
        }
        if graph.members.is_empty() {
            return Err("cargo metadata: no package in the workspace".into());
        }
        let names = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        graph.locked = names.map(str::to_owned).collect();
        Ok(graph)
    }
}

fn problems(graph: &Graph) -> Vec<String> {
    let mut problems = Vec::new();
    for member in &graph.members {
        if role(member).is_none() {
            problems.push(format!("`{member}` has no layer: give it one in xtask/src/layers.rs"));
        }
    }
    problems.extend(graph.edges.iter().filter_map(|edge| Some(format!("{edge}: {}", objection(edge)?))));
    // The allowed binding brings its C++ half with it; no other crate may depend on that.
    for name in graph.locked.iter().filter(|name| is_reference(name) && *name != "tensogram-sz3-sys") {
        problems.push(format!("Cargo.lock names `{name}`: reference implementations are oracles only"));
    }
    problems
}

/// Why a use is refused; `None` if it is allowed.
fn objection(edge: &Edge) -> Option<&'static str> {
    if is_reference(&edge.to) {
        return Some("reference implementations are oracles only");
    }
    let from = role(&edge.from)?;
    // Other crates have no role; workspace members without one are reported separately.
    let to = role(&edge.to)?;
    let pair = (edge.from.as_str(), edge.to.as_str());
    match (from, to, edge.kind) {
        (_, Role::Tool | Role::Driver, _) => Some("nothing uses tasks and test programs"),
        (Role::Tool, _, _) => Some("the tasks use no other crate"),
        (Role::Driver, _, _) => None,
        (Role::Layer(FORMATS), Role::Layer(FORMATS), _) => Some("the formats never see each other"),
        (_, Role::TestOnly, Kind::Normal | Kind::Build) => Some("test equipment is for tests"),
        (Role::TestOnly, Role::Layer(1..), Kind::Normal | Kind::Build) => {
            Some("test equipment uses the lowest layer only")
        }
        (Role::Layer(above), Role::Layer(below), Kind::Normal | Kind::Build)
            if below >= above && !SIDEWAYS.contains(&pair) =>
        {
            Some("only lower layers may be used")
        }
        _ => None,
    }
}

fn role(name: &str) -> Option<Role> {
    ROLES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
}

/// The crates of the reference implementations. The SZ3 binding among them is only a compressor, and is allowed.
fn is_reference(name: &str) -> bool {
    name == "tetration" || (name.starts_with("tensogram") && name != "tensogram-sz3")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(from: &str, to: &str, kind: Kind) -> bool {
        objection(&Edge { from: from.into(), to: to.into(), kind }).is_none()
    }

    #[test]
    fn lower_layers_may_be_used_and_higher_ones_not() {
        assert!(allowed("tercet-tet", "tercet-core", Kind::Normal));
        assert!(allowed("tercet-cli", "tercet-tet", Kind::Normal));
        assert!(!allowed("tercet-core", "tercet-codec", Kind::Normal));
        assert!(!allowed("tercet-core", "tercet-codec", Kind::Build));
        assert!(!allowed("tercet-server", "tercet-cli", Kind::Normal));
    }

    #[test]
    fn formats_never_see_each_other() {
        for kind in [Kind::Normal, Kind::Build, Kind::Dev] {
            assert!(!allowed("tercet-tet", "tercet-tgm", kind));
            assert!(!allowed("tercet-tatami", "tercet-tet", kind));
        }
    }

    #[test]
    fn convert_may_use_arrow_but_not_the_other_way_round() {
        assert!(allowed("tercet-convert", "tercet-arrow", Kind::Normal));
        assert!(!allowed("tercet-arrow", "tercet-convert", Kind::Normal));
    }

    #[test]
    fn the_testkit_is_a_dev_dependency_only() {
        assert!(allowed("tercet-core", "tercet-testkit", Kind::Dev));
        assert!(!allowed("tercet-tet", "tercet-testkit", Kind::Normal));
        assert!(allowed("tercet-testkit", "tercet-core", Kind::Normal));
        assert!(!allowed("tercet-testkit", "tercet-tet", Kind::Normal));
    }

    #[test]
    fn xtask_and_the_crates_are_independent() {
        assert!(!allowed("xtask", "tercet-core", Kind::Normal));
        assert!(!allowed("tercet-cli", "xtask", Kind::Dev));
        assert!(allowed("xtask", "serde_json", Kind::Normal));
    }

    #[test]
    fn reference_implementations_are_rejected() {
        for name in ["tensogram", "tensogram-core", "tetration"] {
            assert!(!allowed("tercet-tgm", name, Kind::Normal), "{name}");
            assert!(!allowed("tercet-tgm", name, Kind::Dev), "{name}");
        }
        assert!(allowed("tercet-codec", "tensogram-sz3", Kind::Normal));
        assert!(!allowed("tercet-codec", "tensogram-sz3-sys", Kind::Normal));
    }

    #[test]
    fn an_invalid_graph_is_rejected_with_every_reason() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "tercet-core", "dependencies": [
                { "name": "bytes", "kind": null },
                { "name": "tercet-tet", "kind": null },
            ]},
            { "name": "tercet-tet", "dependencies": [{ "name": "tercet-tgm", "kind": "dev" }] },
            { "name": "tercet-surprise", "dependencies": [] },
        ]});
        let lock = "[[package]]\nname = \"bytes\"\n\n[[package]]\nname = \"tetration\"\n";
        let found = problems(&Graph::read(&metadata, lock).unwrap());
        assert_eq!(
            found,
            [
                "`tercet-surprise` has no layer: give it one in xtask/src/layers.rs",
                "`tercet-core` uses `tercet-tet`: only lower layers may be used",
                "`tercet-tet` tests with `tercet-tgm`: the formats never see each other",
                "Cargo.lock names `tetration`: reference implementations are oracles only",
            ]
        );
    }

    #[test]
    fn a_valid_graph_has_no_violation() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "tercet-core", "dependencies": [{ "name": "tercet-testkit", "kind": "dev" }] },
            { "name": "tercet-testkit", "dependencies": [{ "name": "tercet-core", "kind": null }] },
            { "name": "tercet-tet", "dependencies": [{ "name": "tercet-core", "kind": null }] },
        ]});
        let lock = "name = \"tensogram-sz3\"\nname = \"tensogram-sz3-sys\"\n";
        assert!(problems(&Graph::read(&metadata, lock).unwrap()).is_empty());
    }

    #[test]
    fn empty_metadata_is_an_error() {
        assert!(Graph::read(&serde_json::json!({ "packages": [] }), "").is_err());
    }
}
