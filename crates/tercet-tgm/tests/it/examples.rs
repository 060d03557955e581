//! The example programs run and their assertions hold.

#[path = "../../examples/compat_files.rs"]
mod compat_files;
#[path = "../../examples/compat_messages.rs"]
mod compat_messages;
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
