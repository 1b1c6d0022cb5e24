#![no_main]

mod shared;

libfuzzer_sys::fuzz_target!(|data: &[u8]| shared::read(data, Some("biosnoop"), None));
