//! libFuzzer wrapper.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tercet_fuzz::run("http_request", input));
