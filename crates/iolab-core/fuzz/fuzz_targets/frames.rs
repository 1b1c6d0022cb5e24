// SPDX-License-Identifier: Apache-2.0
// Any bytes as frames: refused or decoded, never a panic; the same if split in two.

#![no_main]

use iolab_core::frames::reader::Reader;
use iolab_core::frames::{frame, Kind};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let whole = Reader::default().feed(data);
    let (first, second) = data.split_at(data.len() / 2);
    let mut reader = Reader::default();
    let parts = reader.feed(first).and_then(|mut frames| {
        frames.extend(reader.feed(second)?);
        Ok(frames)
    });
    assert_eq!(whole.is_ok(), parts.is_ok());
    if let (Ok(whole), Ok(parts)) = (whole, parts) {
        assert_eq!(whole, parts);
    }
    // a payload with a valid header, because a fuzzer does not find CRCs
    for kind in [Kind::Events, Kind::Samples] {
        let _ = Reader::default().feed(&frame(kind, data));
    }
});
