// SPDX-License-Identifier: Apache-2.0
//! Interface of an event source: its tracepoints, and how it turns their records into events.

use crate::failure::Failure;
use iolab_core::frames::events::Rows;
use iolab_core::tracefs::format::Format;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::Path;

/// A tracepoint that a source wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// Its group and name, as in `events/GROUP/NAME`.
    pub group: &'static str,
    /// Name.
    pub name: &'static str,
    /// Filter for the kernel, in the kernel's filter language; empty for all.
    pub filter: String,
    /// Whether the source needs it.
    pub needed: bool,
}

/// Losses of a source.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Kind, count and description of each loss since the last call, except records dropped from rings.
    pub lost: Vec<(&'static str, u64, &'static str)>,
}

impl Losses {
    /// Add a loss if the count is not 0.
    pub fn add(&mut self, kind: &'static str, count: u64, words: &'static str) {
        if count > 0 {
            self.lost.push((kind, count, words));
        }
    }
}

/// A source of events. It has its own tracefs instance, and thus its own rings.
pub trait Source {
    /// Name.
    fn name(&self) -> &'static str;

    /// The tracepoints of the source. Optional ones that this kernel lacks are left out.
    fn tracepoints(&self) -> Vec<Tracepoint>;

    /// Whether a tracepoint of that list is enabled; indices in the list stay the same.
    fn wants(&self, _point: usize) -> bool {
        true
    }

    /// Why a needed tracepoint is missing, and what to do.
    fn why_absent(&self, _tracefs: &Path) -> &'static str {
        "this kernel was built without it (CONFIG_BLK_DEV_IO_TRACE, CONFIG_FTRACE_SYSCALLS)"
    }

    /// What is unknown without an optional tracepoint; empty if nothing is.
    fn unknown_without(&self, _point: &Tracepoint) -> &'static str {
        ""
    }

    /// A note on each tracepoint with an unexpected format; an error if the tracepoint is needed. Changes no state.
    fn unread(&self, formats: &HashMap<&'static str, Format>) -> Result<Vec<String>, Failure>;

    /// Receives the formats of the available tracepoints, by name, before any record.
    fn bind(&mut self, formats: &HashMap<&'static str, Format>) -> Result<(), Failure>;

    /// Records arrive from now on. The source reads the initial state here, before the reader is notified of the start.
    fn started(&mut self) {}

    /// Facts for the first frame, besides the name.
    fn facts(&self) -> Map<String, Value>;

    /// A record of the tracepoint at this index of `tracepoints()`, in order of monotonic time.
    fn take(&mut self, point: usize, time_ns: u64, record: &[u8], rows: &mut Rows);

    /// Records are missing from now on (true), or complete from now on (false).
    fn lossy(&mut self, missing: bool);

    /// Pages of a ring are inconsistent: records in this round are missing.
    fn damaged(&mut self) {
        self.lossy(true);
        self.lossy(false);
    }

    /// Called once a round, before the rings are read.
    fn prepare(&mut self) {}

    /// Called once a round, after all its records up to `until_ns`. The source reads other inputs here.
    fn round(&mut self, _until_ns: u64, _rows: &mut Rows) -> Result<(), Failure> {
        Ok(())
    }

    /// No records are created after this time.
    fn stopped(&mut self, _time_ns: u64) {}

    /// All I/O up to this time was delivered; None if no I/O is pending.
    fn waits_since_ns(&self) -> Option<u64> {
        None
    }

    /// Called once a second: losses, except records dropped from rings.
    fn losses(&mut self) -> Losses;

    /// Processes first seen since the last call: number, name, command line.
    fn processes(&mut self) -> Vec<(u32, String, String)>;

    /// Number of I/Os so far.
    fn events(&self) -> u64;
}
