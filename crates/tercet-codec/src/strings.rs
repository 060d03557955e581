//! String codecs with random access to single strings.

pub mod fsst;
