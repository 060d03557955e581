//! The example programs run and their assertions hold.

#[path = "../../examples/compat_files.rs"]
mod compat_files;
#[path = "../../examples/compat_internals.rs"]
mod compat_internals;
#[path = "../../examples/compat_messages.rs"]
mod compat_messages;
#[path = "../../examples/compat_pipelines.rs"]
mod compat_pipelines;
#[cfg(feature = "remote")]
#[path = "../../examples/compat_remote.rs"]
mod compat_remote;
#[path = "../../examples/messages.rs"]
mod messages;

#[test]
fn messages_runs() {
    messages::main().unwrap();
}

#[test]
fn compat_messages_runs() {
    compat_messages::main().unwrap();
}

#[test]
fn compat_files_runs() {
    compat_files::main().unwrap();
}

#[test]
fn compat_internals_runs() {
    compat_internals::main().unwrap();
}

#[test]
fn compat_pipelines_runs() {
    compat_pipelines::main().unwrap();
}

#[cfg(feature = "remote")]
#[test]
fn compat_remote_runs() {
    compat_remote::main().unwrap();
}
