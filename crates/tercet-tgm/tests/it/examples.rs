//! The example programs run and their assertions hold.

#[path = "../../examples/messages.rs"]
mod messages;

#[test]
fn messages_runs() {
    messages::main().unwrap();
}
