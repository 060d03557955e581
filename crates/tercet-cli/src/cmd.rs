//! The verbs, one file per verb.

pub(crate) mod any;
pub(crate) mod catalog;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod tatami;
pub(crate) mod tet;
pub(crate) mod tgm;
