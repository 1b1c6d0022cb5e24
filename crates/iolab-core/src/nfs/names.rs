// SPDX-License-Identifier: Apache-2.0
//! Names of files that the tracepoints of the server identify by a hash of the file handle.
//!
//! The handle for a client consists of an export number and the handle of the file in the local file system. Both are
//! known for a file that the server has just read or written, and the hash is computed from them as in the server.
//! Names have no time: they are read from a queue, after the I/O. A name that replaces another one is certain only for
//! I/O after that reading.

use std::collections::HashMap;

/// Maximum size of a handle in NFS 3, in bytes. Handles of NFS 4 are made in the same way.
const LONGEST: usize = 64;
/// Maximum number of files. Above it, all are dropped and added again later.
const FILES: usize = 1 << 17;

/// An export number in file handles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportNumber {
    /// Type of the number (`fsid_type` of the kernel).
    pub kind: u8,
    /// The number.
    pub bytes: Vec<u8>,
}

impl ExportNumber {
    /// The server's handle of a file, from the type and bytes of the local file system's handle; None if it would be
    /// too long.
    ///
    /// This is a handle of an export without `subtree_check`, which contains no directory.
    pub fn handle(&self, kind: i32, file: &[u8]) -> Option<Box<[u8]>> {
        let kind = u8::try_from(kind).ok()?;
        // version 1, without authentication
        let handle = [&[1, 0, self.kind, kind], &self.bytes[..], file].concat();
        (handle.len() <= LONGEST).then(|| handle.into())
    }
}

/// The hash of a handle, as in the tracepoints of the server.
pub fn hash(handle: &[u8]) -> u32 {
    crc32fast::hash(handle)
}

/// State of a file.
#[derive(Debug)]
struct Named {
    handle: Box<[u8]>,
    path: Option<Box<[u8]>>,
    /// The path is certain for I/O after this time.
    after_ns: u64,
    /// Another handle has the same hash.
    is_shared: bool,
}

/// Names by hash of the handle.
#[derive(Debug, Default)]
pub struct FileNames {
    names: HashMap<u32, Named>,
    /// Notices of I/O up to this time may be missing.
    missed_until_ns: u64,
}

impl FileNames {
    /// A file was read or written under this path, between the previous reading and `read_ns`. Without a path, its name
    /// at that time is uncertain.
    pub fn set(&mut self, handle: Box<[u8]>, path: Option<&[u8]>, read_ns: u64) {
        let hash = hash(&handle);
        if let Some(named) = self.names.get_mut(&hash) {
            named.is_shared |= named.handle != handle;
            if named.path.as_deref() != path {
                (named.path, named.after_ns) = (path.map(Box::from), read_ns);
            }
            return;
        }
        if self.names.len() >= FILES {
            self.names.clear();
            self.missed_until_ns = read_ns;
        }
        let after_ns = if path.is_some() { self.missed_until_ns } else { read_ns };
        self.names.insert(hash, Named { handle, path: path.map(Box::from), after_ns, is_shared: false });
    }

    /// Notices were lost up to this time.
    pub fn lose(&mut self, until_ns: u64) {
        self.names.clear();
        self.missed_until_ns = until_ns;
    }

    /// The path of a file at this time, if certain.
    pub fn path(&self, hash: u32, time_ns: u64) -> Option<&[u8]> {
        let named = self.names.get(&hash)?;
        named.path.as_deref().filter(|_| !named.is_shared && time_ns > named.after_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(bytes: &[u8]) -> Box<[u8]> {
        ExportNumber { kind: 1, bytes: vec![7, 0, 0, 0] }.handle(1, bytes).unwrap()
    }

    /// Handles of ext4, XFS and ZFS, with the hashes printed by nfsd of Linux 6.1.
    #[test]
    fn hashes_are_those_of_the_server() {
        let bytes = |text: &str| {
            (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect::<Vec<_>>()
        };
        for (kind, export, file_kind, file, expected) in [
            (6, "53a9b5deaffc44fc9c8d706c77173a85", 1, "837e0000e9c0c4f8", 0x14e6_7a27),
            (6, "53a9b5deaffc44fc9c8d706c77173a85", 1, "0c00000069305def", 0x5967_3758),
            (6, "d283dbc5955740389d52e90b291dd659", 129, "8100040000000000c8b8fbda", 0x8dcd_3309),
            (1, "07000000", 1, "0a0004000000000009000000", 0x616b_228d),
            (1, "07000000", 1, "0a0005000000000009000000", 0x8ea9_49b3),
        ] {
            let number = ExportNumber { kind, bytes: bytes(export) };
            assert_eq!(hash(&number.handle(file_kind, &bytes(file)).unwrap()), expected, "{file}");
        }
        let number = ExportNumber { kind: 6, bytes: vec![0; 16] };
        assert_eq!(number.handle(1, &[0; 45]), None);
        assert_eq!(number.handle(256, &[0; 8]), None);
        assert_eq!(number.handle(-1, &[0; 8]), None);
    }

    #[test]
    fn a_new_name_is_certain_after_it_was_read() {
        let mut names = FileNames::default();
        let file = handle(&[1; 8]);
        let number = hash(&file);
        assert_eq!(names.path(number, 5), None);
        names.set(file.clone(), Some(b"/a"), 10);
        names.set(file.clone(), Some(b"/a"), 20);
        assert_eq!(names.path(number, 5), Some(&b"/a"[..]), "it had no other name since the start");
        names.set(file.clone(), Some(b"/b"), 30);
        assert_eq!((names.path(number, 30), names.path(number, 31)), (None, Some(&b"/b"[..])));
        // two names in a reading: which one is newer is unknown until the next reading
        names.set(file.clone(), Some(b"/c"), 40);
        names.set(file.clone(), Some(b"/b"), 40);
        assert_eq!((names.path(number, 35), names.path(number, 41)), (None, Some(&b"/b"[..])));
        names.set(file.clone(), None, 50);
        assert_eq!((names.path(number, 45), names.path(number, 51)), (None, None));
        names.set(file.clone(), Some(b"/b"), 60);
        assert_eq!((names.path(number, 60), names.path(number, 61)), (None, Some(&b"/b"[..])));
        names.lose(70);
        names.set(file, Some(b"/b"), 80);
        assert_eq!((names.path(number, 70), names.path(number, 71)), (None, Some(&b"/b"[..])));
    }

    #[test]
    fn two_files_with_one_hash_have_no_name() {
        let mut known = HashMap::new();
        let mut handles = (1u64..).map(|number| handle(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()));
        let (file, other) = handles
            .find_map(|other| known.insert(hash(&other), other.clone()).map(|file| (file, other)))
            .expect("two of 2^32 hashes are equal after some 100,000");
        let mut names = FileNames::default();
        let number = hash(&file);
        names.set(file, Some(b"/a"), 10);
        assert!(names.path(number, 11).is_some());
        names.set(other, Some(b"/b"), 20);
        assert_eq!((names.path(number, 11), names.path(number, 21)), (None, None));
    }
}
