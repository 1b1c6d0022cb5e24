// SPDX-License-Identifier: Apache-2.0
// Any text as the kernel's format of an event or of pages, and any bytes as a record: never a panic.

#![no_main]

use iolab_core::tracefs::format::{Format, Layout};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let cut = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (text, record) = data.split_at(cut);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let _ = Layout::parse(text);
    let Ok(format) = Format::parse(text) else { return };
    for field in &format.fields {
        let _ = format.number(&field.name).map(|number| number.of(record));
        let _ = format.text(&field.name).map(|text| text.of(record).map(<[u8]>::len));
    }
});
