#![no_main]
// SPDX-License-Identifier: Apache-2.0

mod shared;

libfuzzer_sys::fuzz_target!(|data: &[u8]| shared::read(data, Some("biosnoop"), None));
