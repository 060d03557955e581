//! Tests that measure memory: the allocator counts for the whole process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tercet_testkit::alloc::CountingAlloc;

mod untrusted;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc;
