// SPDX-License-Identifier: Apache-2.0
//! Reads little-endian values of a payload; every read is checked.

use super::ROWS;
use crate::error::TraceError;
use crate::names;

/// The unread rest of a payload.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// The next bytes.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], TraceError> {
        if length > self.0.len() {
            return Err(TraceError::new(format!("a frame ends early: {length} bytes expected, {} left", self.0.len())));
        }
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(bytes)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8, TraceError> {
        Ok(self.take(1)?[0])
    }

    /// The next two bytes.
    pub fn u16(&mut self) -> Result<u16, TraceError> {
        Ok(u16::from_le_bytes(self.take(2)?.try_into().expect("two bytes")))
    }

    /// The next four bytes.
    pub fn u32(&mut self) -> Result<u32, TraceError> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")))
    }

    /// Number of rows.
    pub fn rows(&mut self) -> Result<usize, TraceError> {
        let rows = self.u32()? as usize;
        if rows > ROWS {
            return Err(TraceError::new(format!("a frame of {rows} rows: {ROWS} are allowed")));
        }
        Ok(rows)
    }

    /// A source's name.
    pub fn source(&mut self) -> Result<String, TraceError> {
        let length = usize::from(self.u8()?);
        let name = self.take(length)?;
        match std::str::from_utf8(name) {
            Ok(name) if !name.is_empty() => Ok(name.to_owned()),
            _ => Err(TraceError::new("a frame without a readable name of its source")),
        }
    }

    /// New names.
    pub fn names(&mut self) -> Result<Vec<String>, TraceError> {
        let count = self.u32()? as usize;
        // a name needs at least two bytes, its length
        if count > self.0.len() / 2 {
            return Err(TraceError::new(format!(
                "a frame ends early: {count} names expected, {} bytes left",
                self.0.len()
            )));
        }
        (0..count)
            .map(|_| {
                let length = usize::from(self.u16()?);
                Ok(names::text(self.take(length)?))
            })
            .collect()
    }
}

/// Append a source's name.
pub fn put_source(out: &mut Vec<u8>, source: &str) {
    out.push(u8::try_from(source.len()).expect("a short name"));
    out.extend_from_slice(source.as_bytes());
}

/// Append names; each is truncated to 64 KiB.
pub fn put_names<'a>(out: &mut Vec<u8>, names: impl ExactSizeIterator<Item = &'a [u8]>) {
    out.extend_from_slice(&(names.len() as u32).to_le_bytes());
    for name in names {
        let name = &name[..name.len().min(usize::from(u16::MAX))];
        out.extend_from_slice(&(name.len() as u16).to_le_bytes());
        out.extend_from_slice(name);
    }
}
