// SPDX-License-Identifier: Apache-2.0
//! Frames of samples: readings of counters of one source.
//!
//! Payload: the name of the source, the number of rows (u32), time (i64), object (u32), field (u32), value (i64) of
//! each row, column by column, then the new names of objects and of fields.

use super::bytes::{put_names, put_source, Bytes};
use crate::error::TraceError;
use crate::names::Table;

/// Pending readings.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    time_ns: Vec<i64>,
    ids: [Vec<u32>; 2],
    value: Vec<i64>,
    tables: [Table; 2],
    given: [usize; 2],
}

impl Samples {
    /// Add a reading of a field of an object (`""` if there is only one).
    pub fn push(&mut self, time_ns: i64, object: &[u8], field: &[u8], value: i64) {
        self.time_ns.push(time_ns);
        for (number, name) in [object, field].into_iter().enumerate() {
            let id = self.tables[number].intern(name);
            self.ids[number].push(id);
        }
        self.value.push(value);
    }

    /// Whether no readings are pending.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// Number of names beyond the limit since the last call: their readings cannot be told apart.
    pub fn take_beyond(&mut self) -> u64 {
        self.tables.iter_mut().map(Table::take_beyond).sum()
    }

    /// The payload of a frame with all pending readings. Afterwards none are pending.
    pub fn payload(&mut self, source: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.value.len() * 24);
        put_source(&mut out, source);
        out.extend_from_slice(&(self.value.len() as u32).to_le_bytes());
        out.extend(self.time_ns.drain(..).flat_map(i64::to_le_bytes));
        self.ids.iter_mut().for_each(|ids| out.extend(ids.drain(..).flat_map(u32::to_le_bytes)));
        out.extend(self.value.drain(..).flat_map(i64::to_le_bytes));
        for (table, given) in self.tables.iter().zip(&mut self.given) {
            put_names(&mut out, (*given..table.len()).map(|id| table.name(id as u32)));
            *given = table.len();
        }
        out
    }
}

/// A decoded frame of samples; columns are little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Source.
    pub source: String,
    /// Number of rows.
    pub rows: usize,
    /// Times (i64).
    pub time_ns: Vec<u8>,
    /// Ids of names (u32): objects, fields.
    pub ids: [Vec<u8>; 2],
    /// Values (i64).
    pub value: Vec<u8>,
    /// New names: objects, fields.
    pub names: [Vec<String>; 2],
}

/// Decode a payload. `known` has the number of names of objects and of fields of the source.
pub fn read(payload: &[u8], known: &mut impl FnMut(&str) -> [usize; 2]) -> Result<(Read, [usize; 2]), TraceError> {
    let mut bytes = Bytes(payload);
    let source = bytes.source()?;
    let rows = bytes.rows()?;
    let mut known = known(&source);
    let time_ns = bytes.take(rows * 8)?.to_vec();
    let ids = [bytes.take(rows * 4)?.to_vec(), bytes.take(rows * 4)?.to_vec()];
    let value = bytes.take(rows * 8)?.to_vec();
    let names = [bytes.names()?, bytes.names()?];
    if !bytes.0.is_empty() {
        return Err(TraceError::new(format!("a frame of samples with {} bytes too many", bytes.0.len())));
    }
    for ((known, names), ids) in known.iter_mut().zip(&names).zip(&ids) {
        *known += names.len();
        let mut ids = ids.chunks_exact(4).map(|id| u32::from_le_bytes(id.try_into().expect("four bytes")));
        if ids.any(|id| id as usize >= *known) {
            return Err(TraceError::new("a frame of samples with an id that has no name"));
        }
    }
    Ok((Read { source, rows, time_ns, ids, value, names }, known))
}
