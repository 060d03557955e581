//! Short strings to bytes, so that each can be read alone.

pub mod fsst;
