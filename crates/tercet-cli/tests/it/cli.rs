//! What the user sees: every verb and every class of error, with its exit code.

mod demo;
mod errors;
mod guides;
mod history;
mod info;
mod many;
mod outline;
mod paths;
mod protection;
mod query;
mod repair;
mod shell;
mod streams;
mod support;
mod tgm;
mod verify;
