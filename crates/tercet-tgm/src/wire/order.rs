//! The order of frames: header, body, footer.

use super::ids::FrameKind;

/// The phase of a message that a frame belongs to. Phases do not go backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DecodePhase {
    /// Metadata, index and hashes before the objects.
    #[default]
    Header,
    /// Objects and their preceders.
    Body,
    /// Metadata, index and hashes after the objects.
    Footer,
}

impl DecodePhase {
    /// The phase a frame belongs to.
    pub const fn for_frame(kind: FrameKind) -> Self {
        match kind {
            FrameKind::HeaderMetadata | FrameKind::HeaderIndex | FrameKind::HeaderHash => Self::Header,
            FrameKind::PrecederMetadata | FrameKind::NTensor => Self::Body,
            FrameKind::FooterHash | FrameKind::FooterIndex | FrameKind::FooterMetadata => Self::Footer,
        }
    }
}

/// The state of the frame order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    phase: DecodePhase,
    /// The last frame was a preceder: an object must follow.
    preceded: bool,
}

impl Order {
    /// Advances by one frame; the error is the violated rule.
    pub(crate) fn take(&mut self, kind: FrameKind) -> Result<(), &'static str> {
        if self.preceded && kind != FrameKind::NTensor {
            return Err(OBJECT_AFTER_PRECEDER);
        }
        let phase = DecodePhase::for_frame(kind);
        if phase < self.phase {
            return Err(match phase {
                DecodePhase::Header => "header frames must precede all objects",
                DecodePhase::Body | DecodePhase::Footer => "objects must precede all footer frames",
            });
        }
        self.phase = phase;
        self.preceded = kind == FrameKind::PrecederMetadata;
        Ok(())
    }

    /// Ends the message; the error is the violated rule.
    pub(crate) fn end(self) -> Result<(), &'static str> {
        if self.preceded { Err(OBJECT_AFTER_PRECEDER) } else { Ok(()) }
    }
}

/// The rule for preceders.
pub(crate) const OBJECT_AFTER_PRECEDER: &str = "a preceder must be followed by its object";

#[cfg(test)]
mod tests {
    use super::*;

    fn order(kinds: &[FrameKind]) -> Result<(), &'static str> {
        let mut order = Order::default();
        kinds.iter().try_for_each(|&kind| order.take(kind)).and_then(|()| order.end())
    }

    #[test]
    fn phases_only_move_on() {
        use FrameKind::{FooterHash, FooterMetadata, HeaderIndex, HeaderMetadata, NTensor, PrecederMetadata};
        assert_eq!(order(&[HeaderMetadata, HeaderIndex, NTensor, FooterHash, FooterMetadata]), Ok(()));
        assert_eq!(order(&[HeaderIndex, HeaderMetadata, HeaderMetadata]), Ok(()));
        assert!(order(&[NTensor, HeaderMetadata]).is_err());
        assert!(order(&[FooterHash, NTensor]).is_err());
        assert_eq!(order(&[PrecederMetadata, NTensor, NTensor]), Ok(()));
        assert!(order(&[PrecederMetadata, PrecederMetadata, NTensor]).is_err());
        assert!(order(&[PrecederMetadata, FooterHash]).is_err());
        assert!(order(&[PrecederMetadata]).is_err());
    }
}
