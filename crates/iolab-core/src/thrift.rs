// SPDX-License-Identifier: Apache-2.0
//! Thrift's compact protocol, used for the metadata of a Parquet file.

use crate::columns::{ColumnsError, Result, TORN};

/// Maximum nesting depth of structures.
const DEEPEST: usize = 16;
pub(crate) const BINARY: u8 = 8;
const LIST: u8 = 9;
pub(crate) const STRUCT: u8 = 12;

/// Sequential reader of bytes: Thrift's compact protocol.
pub(crate) struct Thrift<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

type Take<'a, 'f> = &'f mut dyn FnMut(&mut Thrift<'a>, i64, u8) -> Result<()>;

impl<'a> Thrift<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let past = self.at.checked_add(length).ok_or(TORN)?;
        let bytes = self.bytes.get(self.at..past).ok_or(TORN)?;
        self.at = past;
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ColumnsError("has a number that is too long"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Read a structure: `take` reads or skips each field, given its id and type.
    pub(crate) fn fields(&mut self, take: Take<'a, '_>) -> Result<()> {
        let mut id = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            id = if head >> 4 == 0 { self.signed()? } else { id.wrapping_add(i64::from(head >> 4)) };
            take(self, id, head & 15)?;
        }
    }

    /// Read a list: `take` reads each item.
    pub(crate) fn items(&mut self, kind: u8, take: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if kind != LIST {
            return Err(ColumnsError("has unknown metadata"));
        }
        for _ in 0..self.list_head()?.0 {
            take(self)?;
        }
        Ok(())
    }

    fn list_head(&mut self) -> Result<(u64, u8)> {
        let head = self.byte()?;
        let length = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Ok((length, head & 15))
    }

    pub(crate) fn integer(&mut self, kind: u8) -> Result<i64> {
        if !matches!(kind, 4..=6) {
            return Err(ColumnsError("has unknown metadata"));
        }
        self.signed()
    }

    pub(crate) fn text(&mut self, kind: u8) -> Result<&'a [u8]> {
        if kind != BINARY {
            return Err(ColumnsError("has unknown metadata"));
        }
        let length = usize::try_from(self.varint()?).map_err(|_| TORN)?;
        self.take(length)
    }

    pub(crate) fn skip(&mut self, kind: u8, depth: usize) -> Result<()> {
        if depth > DEEPEST {
            return Err(ColumnsError("has metadata that is nested too deeply"));
        }
        match kind {
            1 | 2 => Ok(()),
            3 => self.take(1).map(drop),
            4..=6 => self.varint().map(drop),
            7 => self.take(8).map(drop),
            BINARY => self.text(kind).map(drop),
            LIST | 10 => {
                let (length, of) = self.list_head()?;
                // in a list, a boolean is a byte
                let of = if of <= 2 { 3 } else { of };
                (0..length).try_for_each(|_| self.skip(of, depth + 1))
            }
            STRUCT => self.fields(&mut |thrift, _, kind| thrift.skip(kind, depth + 1)),
            _ => Err(ColumnsError("has unknown metadata")),
        }
    }
}
