//! The stable codes of findings.

use std::fmt;

use serde::Serialize;
use tercet_core::Severity;

/// The level of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Framing.
    Structure,
    /// CBOR and its contents.
    Metadata,
    /// Hashes and decoding.
    Integrity,
    /// The decoded values.
    Fidelity,
}

impl Level {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Structure => "structure",
            Self::Metadata => "metadata",
            Self::Integrity => "integrity",
            Self::Fidelity => "fidelity",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

macro_rules! codes {
    ($($level:ident { $($variant:ident = $name:literal, $severity:ident;)* })*) => {
        /// The code of a finding. The names are stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "the names are the documentation; docs/spec/tgm.md explains them")]
        #[non_exhaustive]
        pub enum Code { $($($variant,)*)* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$($(Self::$variant,)*)*];

            /// The stable name.
            pub const fn name(self) -> &'static str {
                match self { $($(Self::$variant => $name,)*)* }
            }

            /// The level.
            pub const fn level(self) -> Level {
                match self { $($(Self::$variant => Level::$level,)*)* }
            }

            /// The default severity.
            pub const fn severity(self) -> Severity {
                match self { $($(Self::$variant => Severity::$severity,)*)* }
            }
        }
    };
}

codes! {
    Structure {
        BufferTooShort = "buffer_too_short", Error;
        InvalidMagic = "invalid_magic", Error;
        PreambleParseFailed = "preamble_parse_failed", Error;
        TotalLengthOverflow = "total_length_overflow", Error;
        TotalLengthExceedsBuffer = "total_length_exceeds_buffer", Error;
        TotalLengthTooSmall = "total_length_too_small", Error;
        PostambleInvalid = "postamble_invalid", Error;
        PostambleLengthMismatch = "postamble_length_mismatch", Error;
        FooterOffsetOutOfRange = "footer_offset_out_of_range", Error;
        FooterOffsetMismatch = "footer_offset_mismatch", Error;
        TruncatedFrameHeader = "truncated_frame_header", Error;
        InvalidFrameHeader = "invalid_frame_header", Error;
        FrameLengthOverflow = "frame_length_overflow", Error;
        FrameTooSmall = "frame_too_small", Error;
        FrameExceedsMessage = "frame_exceeds_message", Error;
        MissingEndMarker = "missing_end_marker", Error;
        FrameOrderViolation = "frame_order_violation", Error;
        PrecederNotFollowedByObject = "preceder_not_followed_by_object", Error;
        DanglingPreceder = "dangling_preceder", Error;
        CborOffsetInvalid = "cbor_offset_invalid", Error;
        CborBeforeBoundaryUnknown = "cbor_before_boundary_unknown", Error;
        NonZeroPadding = "non_zero_padding", Warning;
        FlagMismatch = "flag_mismatch", Error;
        NoMetadataFrame = "no_metadata_frame", Error;
        DuplicateMetadataFrame = "duplicate_metadata_frame", Error;
        LimitExceeded = "limit_exceeded", Warning;
    }
    Metadata {
        MetadataCborParseFailed = "metadata_cbor_parse_failed", Error;
        MetadataCborNonCanonical = "metadata_cbor_non_canonical", Warning;
        MetadataCopiesDisagree = "metadata_copies_disagree", Warning;
        IndexCborParseFailed = "index_cbor_parse_failed", Error;
        IndexCborNonCanonical = "index_cbor_non_canonical", Warning;
        IndexCountMismatch = "index_count_mismatch", Error;
        IndexOffsetMismatch = "index_offset_mismatch", Error;
        HashFrameCborParseFailed = "hash_frame_cbor_parse_failed", Error;
        HashFrameCborNonCanonical = "hash_frame_cbor_non_canonical", Warning;
        HashFrameCountMismatch = "hash_frame_count_mismatch", Error;
        PrecederCborParseFailed = "preceder_cbor_parse_failed", Error;
        PrecederCborNonCanonical = "preceder_cbor_non_canonical", Warning;
        PrecederBaseCountWrong = "preceder_base_count_wrong", Error;
        BaseCountExceedsObjects = "base_count_exceeds_objects", Error;
        DescriptorCborParseFailed = "descriptor_cbor_parse_failed", Error;
        DescriptorCborNonCanonical = "descriptor_cbor_non_canonical", Warning;
        TrailingCborBytes = "trailing_cbor_bytes", Warning;
        NdimShapeMismatch = "ndim_shape_mismatch", Error;
        StridesShapeMismatch = "strides_shape_mismatch", Error;
        ShapeOverflow = "shape_overflow", Error;
        PayloadLengthMismatch = "payload_length_mismatch", Error;
        UnknownEncoding = "unknown_encoding", Error;
        UnknownFilter = "unknown_filter", Error;
        UnknownCompression = "unknown_compression", Error;
        EmptyObjType = "empty_obj_type", Error;
        ReservedNotAMap = "reserved_not_a_map", Error;
        ReservedMissingTensor = "reserved_missing_tensor", Warning;
        ReservedTensorMismatch = "reserved_tensor_mismatch", Error;
        IndexWrong = "message_index_wrong", Error;
    }
    Integrity {
        HashMismatch = "hash_mismatch", Error;
        HashVerificationError = "hash_verification_error", Error;
        UnknownHashAlgorithm = "unknown_hash_algorithm", Warning;
        NoHashAvailable = "no_hash_available", Warning;
        DecodePipelineFailed = "decode_pipeline_failed", Error;
        PipelineConfigFailed = "pipeline_config_failed", Error;
        PipelineNotBuiltIn = "pipeline_not_built_in", Error;
        SzipOffsetWrong = "szip_offset_wrong", Warning;
    }
    Fidelity {
        DecodeObjectFailed = "decode_object_failed", Error;
        DecodedSizeMismatch = "decoded_size_mismatch", Error;
        NanDetected = "nan_detected", Error;
        InfDetected = "inf_detected", Error;
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
    }
}
