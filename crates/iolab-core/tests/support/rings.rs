// SPDX-License-Identifier: Apache-2.0
//! Records and pages of trace rings, built from the formats of kernels.
#![allow(dead_code)] // each test file uses a part

use iolab_core::tracefs::format::{Format, Layout};
use std::collections::HashMap;

pub const KERNELS: [&str; 3] = ["linux-6.18", "linux-6.1", "linux-6.1-64k-pages"];

/// Formats of events and pages of a kernel.
pub struct Kernel {
    pub layout: Layout,
    pub formats: HashMap<String, Format>,
}

impl Kernel {
    pub fn read(name: &str) -> Self {
        let events = format!("{}/../../tests/data/tracefs/{name}/events", env!("CARGO_MANIFEST_DIR"));
        let layout = Layout::parse(&std::fs::read_to_string(format!("{events}/header_page")).unwrap()).unwrap();
        let directories = |path: &std::path::Path| {
            let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
            entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
        };
        let groups = directories(events.as_ref());
        let formats = groups.iter().flat_map(|group| directories(group)).map(|event| {
            let text = std::fs::read_to_string(event.join("format")).unwrap();
            let format = Format::parse(&text).unwrap();
            (format.name.clone(), format)
        });
        Self { layout, formats: formats.collect() }
    }

    /// A record of an event with these fields; `text` is `rwbs`, `comm` is "fio".
    pub fn record(&self, event: &str, fields: &[(&str, u64)], letters: &str) -> Vec<u8> {
        let format = &self.formats[event];
        let length = format.fields.iter().map(|field| field.offset + field.size).max().unwrap();
        let mut record = vec![0u8; length.next_multiple_of(4)];
        let mut put = |name: &str, bytes: &[u8]| {
            let Some(field) = format.field(name) else { return };
            let length = bytes.len().min(field.size);
            record[field.offset..][..length].copy_from_slice(&bytes[..length]);
        };
        put("common_type", &format.id.to_le_bytes());
        put("rwbs", letters.as_bytes());
        put("comm", b"fio\0");
        for (name, value) in fields {
            assert!(format.field(name).is_some(), "{event} has no {name}");
            put(name, &value.to_le_bytes());
        }
        record
    }
}

/// A piece of a page.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Data, this long after the previous piece.
    Data(u32, Vec<u8>),
    /// Data with its length in a separate word.
    LongData(u32, Vec<u8>),
    /// A time extension of this length.
    Extend(u64),
    /// An absolute time.
    Stamp(u64),
    /// A discarded record of this many words.
    Discarded(u32),
}

/// A page with these pieces.
pub fn page(layout: &Layout, time_ns: u64, pieces: &[Piece]) -> Vec<u8> {
    let mut data: Vec<u8> = Vec::new();
    let word = |data: &mut Vec<u8>, kind: u32, delta: u32| data.extend((delta << 5 | kind).to_le_bytes());
    for piece in pieces {
        match piece {
            Piece::Data(delta, bytes) if bytes.len() <= 28 * 4 && !bytes.is_empty() => {
                word(&mut data, bytes.len().div_ceil(4) as u32, *delta);
                data.extend(bytes);
                data.resize(data.len().next_multiple_of(4), 0);
            }
            Piece::Data(delta, bytes) | Piece::LongData(delta, bytes) => {
                word(&mut data, 0, *delta);
                data.extend((bytes.len() as u32 + 4).to_le_bytes());
                data.extend(bytes);
                data.resize(data.len().next_multiple_of(4), 0);
            }
            Piece::Extend(time) => {
                word(&mut data, 30, (*time & ((1 << 27) - 1)) as u32);
                data.extend(((time >> 27) as u32).to_le_bytes());
            }
            Piece::Stamp(time) => {
                word(&mut data, 31, (*time & ((1 << 27) - 1)) as u32);
                data.extend(((time >> 27) as u32).to_le_bytes());
            }
            Piece::Discarded(words) => {
                word(&mut data, 29, 1);
                data.extend((words * 4 + 4).to_le_bytes());
                data.extend(vec![0xff; *words as usize * 4]);
            }
        }
    }
    let mut page = vec![0u8; layout.size];
    page[layout.timestamp..][..8].copy_from_slice(&time_ns.to_le_bytes());
    page[layout.commit..][..8].copy_from_slice(&(data.len() as u64).to_le_bytes());
    page[layout.data..][..data.len()].copy_from_slice(&data);
    page
}
