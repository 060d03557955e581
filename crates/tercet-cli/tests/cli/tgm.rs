//! The verbs for `.tgm` files.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene fails")]

mod copy;
mod damage;
mod doors;
mod inspect;
mod sample;
mod select;
mod validate;
