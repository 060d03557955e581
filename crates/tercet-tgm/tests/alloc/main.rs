//! Tests that measure memory: the allocator counts for the whole process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::single_range_in_vec_init, reason = "a list of one range is intended")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "test values are small"
)]

use tercet_testkit::alloc::CountingAlloc;

mod borrowed;
mod damaged;
mod damaged_payloads;
mod follow_memory;
mod streamed;

#[allow(dead_code, reason = "shared with the other test binary")]
#[path = "../support/descriptors.rs"]
mod descriptors;
#[allow(dead_code, reason = "shared with the other test binary")]
#[path = "../support/samples.rs"]
mod samples;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc;
