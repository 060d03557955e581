//! The verbs for `.tgm` files.

mod aliases;
mod copy;
mod damage;
mod inspect;
pub(crate) mod sample;
mod select;
mod validate;
