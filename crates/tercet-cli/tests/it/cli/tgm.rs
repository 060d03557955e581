//! The verbs for `.tgm` files.

mod copy;
mod damage;
mod doors;
mod inspect;
pub(crate) mod sample;
mod select;
mod validate;
