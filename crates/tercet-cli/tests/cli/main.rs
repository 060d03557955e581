//! What the user sees: every verb and every class of error, with its exit code.

mod demo;
mod errors;
mod guides;
mod info;
mod outline;
mod paths;
mod protection;
mod repair;
mod shell;
mod streams;
mod support;
mod verify;
