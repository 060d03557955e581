//! Tests that measure memory: the allocator counts for the whole process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::cast_possible_truncation, reason = "test values are small")]

use tercet_testkit::alloc::CountingAlloc;

#[cfg(target_endian = "little")]
mod budget;
#[cfg(target_endian = "little")]
mod damaged;

#[allow(dead_code, reason = "shared with the other test binary")]
#[path = "../support/samples.rs"]
mod samples;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc;
