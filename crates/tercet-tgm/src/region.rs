//! The regions of a message in error messages.

use std::fmt;

use crate::wire::ids::FrameKind;

/// A region of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The number of the message in its file or stream, from 0.
    pub message: u64,
    /// The part of the message.
    pub part: Part,
}

/// The parts of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The preamble.
    Preamble,
    /// A frame of an unknown type.
    Frame {
        /// The position among the frames, from 0.
        index: u32,
    },
    /// A frame of a known type.
    Typed {
        /// The position among the frames, from 0.
        index: u32,
        /// The type.
        kind: FrameKind,
    },
    /// The frame of a data object.
    Object {
        /// The number of the object, from 0.
        object: u32,
    },
    /// The descriptor of a data object.
    Descriptor {
        /// The number of the object, from 0.
        object: u32,
    },
    /// The postamble.
    Postamble,
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {} › {}", self.message, self.part)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preamble => f.write_str("preamble"),
            Self::Frame { index } => write!(f, "frame {index}"),
            Self::Typed { index, kind } => write!(f, "frame {index} ({kind})"),
            Self::Object { object } => write!(f, "object {object}"),
            Self::Descriptor { object } => write!(f, "object {object} › descriptor"),
            Self::Postamble => f.write_str("postamble"),
        }
    }
}

impl tercet_core::Region for Region {}
