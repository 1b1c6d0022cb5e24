// SPDX-License-Identifier: Apache-2.0
//! fanotify reports of opens: directory, name in it, and object, by handles.

/// Version of the reports.
const VERSION: u8 = 3;
/// Bytes before the parts of a report.
const HEAD: usize = 24;
/// Kinds of parts: handle of an object; handle of a directory and a name in it; handle of a directory.
const OBJECT: u8 = 1;
const NAMED: u8 = 2;
const DIRECTORY: u8 = 3;

/// Bits of the mask of a report.
pub mod mask {
    #![allow(missing_docs)]
    pub const ACCESS: u64 = 0x1;
    pub const MODIFY: u64 = 0x2;
    pub const OPEN: u64 = 0x20;
    pub const MOVED_FROM: u64 = 0x40;
    pub const OPEN_EXEC: u64 = 0x1000;
    pub const OVERFLOW: u64 = 0x4000;
    pub const DIRECTORY: u64 = 0x4000_0000;
}

/// Kernel handle of an object: file system ID, type and bytes of the handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle<'a> {
    /// File system ID.
    pub file_system: [u8; 8],
    /// Type of the handle.
    pub kind: i32,
    /// The handle.
    pub bytes: &'a [u8],
}

/// A report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawNotice<'a> {
    /// The events.
    pub mask: u64,
    /// Task that caused the event.
    pub task: i32,
    /// Directory of the name.
    pub directory: Option<Handle<'a>>,
    /// The name; `.` for a directory itself.
    pub name: &'a [u8],
    /// The object; None if it is a directory.
    pub object: Option<Handle<'a>>,
}

/// The bytes are not a sequence of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage;

/// Parse a sequence of reports.
pub fn parse<'a>(mut bytes: &'a [u8], mut take: impl FnMut(RawNotice<'a>)) -> Result<(), Damage> {
    while !bytes.is_empty() {
        let head = bytes.get(..HEAD).ok_or(Damage)?;
        let length = word(head, 0)? as usize;
        let start = usize::from(u16::from_ne_bytes([head[6], head[7]]));
        if head[4] != VERSION || start < HEAD || length < start {
            return Err(Damage);
        }
        let record = bytes.get(..length).ok_or(Damage)?;
        let mask = u64::from_ne_bytes(record[8..16].try_into().map_err(|_| Damage)?);
        let mut notice = RawNotice { mask, task: word(head, 20)? as i32, directory: None, name: b"", object: None };
        parts(&record[start..], &mut notice)?;
        take(notice);
        bytes = &bytes[length..];
    }
    Ok(())
}

fn parts<'a>(mut bytes: &'a [u8], notice: &mut RawNotice<'a>) -> Result<(), Damage> {
    while !bytes.is_empty() {
        let head = bytes.get(..4).ok_or(Damage)?;
        let length = usize::from(u16::from_ne_bytes([head[2], head[3]]));
        if length < 4 {
            return Err(Damage);
        }
        let part = bytes.get(..length).ok_or(Damage)?;
        match head[0] {
            OBJECT => notice.object = Some(handle(part)?.0),
            DIRECTORY => notice.directory = Some(handle(part)?.0),
            NAMED => {
                let (directory, rest) = handle(part)?;
                notice.directory = Some(directory);
                notice.name = &rest[..memchr::memchr(0, rest).ok_or(Damage)?];
            }
            _ => {}
        }
        bytes = &bytes[length..];
    }
    Ok(())
}

/// A handle and the bytes after it.
fn handle(part: &[u8]) -> Result<(Handle<'_>, &[u8]), Damage> {
    let file_system = part.get(4..12).and_then(|bytes| bytes.try_into().ok()).ok_or(Damage)?;
    let length = word(part, 12)? as usize;
    let kind = word(part, 16)? as i32;
    let rest = part.get(20..).ok_or(Damage)?;
    let bytes = rest.get(..length).ok_or(Damage)?;
    Ok((Handle { file_system, kind, bytes }, &rest[length..]))
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Damage> {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes).ok_or(Damage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(kind: u8, file_system: [u8; 8], handle: &[u8], name: &[u8]) -> Vec<u8> {
        let length = (20 + handle.len() + name.len()) as u16;
        let mut bytes = vec![kind, 0];
        bytes.extend(length.to_ne_bytes());
        bytes.extend(file_system);
        bytes.extend((handle.len() as u32).to_ne_bytes());
        bytes.extend(1i32.to_ne_bytes());
        bytes.extend(handle);
        bytes.extend(name);
        bytes
    }

    fn record(mask: u64, task: i32, parts: &[Vec<u8>]) -> Vec<u8> {
        let body: Vec<u8> = parts.concat();
        let mut bytes = ((HEAD + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend([VERSION, 0]);
        bytes.extend((HEAD as u16).to_ne_bytes());
        bytes.extend(mask.to_ne_bytes());
        bytes.extend((-1i32).to_ne_bytes());
        bytes.extend(task.to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn example() -> Vec<u8> {
        let file = record(
            mask::OPEN,
            77,
            &[part(NAMED, [1; 8], &[9; 8], b"name\0\0\0\0"), part(OBJECT, [1; 8], &[7; 8], b"")],
        );
        let folder =
            record(mask::OPEN | mask::DIRECTORY, 78, &[part(NAMED, [2; 8], &[5; 12], b".\0\0\0"), vec![99, 0, 4, 0]]);
        [file, folder].concat()
    }

    #[test]
    fn records_are_taken_apart() {
        let bytes = example();
        let mut notices = Vec::new();
        parse(&bytes, |notice| notices.push(notice)).unwrap();
        assert_eq!(notices.len(), 2);
        assert_eq!((notices[0].task, notices[0].name), (77, &b"name"[..]));
        assert_eq!(notices[0].directory, Some(Handle { file_system: [1; 8], kind: 1, bytes: &[9; 8] }));
        assert_eq!(notices[0].object.unwrap().bytes, [7; 8]);
        assert_eq!((notices[1].name, notices[1].object), (&b"."[..], None));
        assert_ne!(notices[1].mask & mask::DIRECTORY, 0);
    }

    #[test]
    fn truncated_lines_are_damage() {
        let bytes = example();
        let first = word(&bytes, 0).unwrap() as usize;
        for length in 1..bytes.len() {
            assert_eq!(parse(&bytes[..length], |_| {}).is_ok(), length == first, "{length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(change in 0usize..140, value in any::<u8>(), noise in prop::collection::vec(any::<u8>(), 0..99)) {
            let mut bytes = example();
            let at = change % bytes.len();
            bytes[at] = value;
            let _ = parse(&bytes, |_| {});
            let _ = parse(&noise, |_| {});
        }
    }
}
