// SPDX-License-Identifier: Apache-2.0
// Any bytes as pages of trace rings of three processors: never a panic, records in order of time, no pages left.

#![no_main]

use iolab_core::tracefs::format::Layout;
use iolab_core::tracefs::merge::Merge;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let layout = Layout { timestamp: 0, commit: 8, commit_size: 8, data: 16, size: 512 };
    let mut merge = Merge::new(layout, 3);
    for (number, page) in data.chunks(layout.size).enumerate() {
        merge.push(number % 3, page.to_vec(), u64::MAX / 2);
    }
    let mut last = 0;
    let mut bytes = 0;
    merge.drain(u64::MAX, |_, time, record| {
        assert!(time >= last);
        last = time;
        bytes += record.len();
    });
    assert!(bytes <= data.len());
    assert!((0..3).all(|processor| merge.waiting(processor) == 0));
});
