// SPDX-License-Identifier: Apache-2.0
//! What a source of events is to the probe: tracepoints it wants, and what it makes of their records.

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
    /// What the kernel lets through, in its own language of filters; empty for all.
    pub filter: String,
    /// Whether the source cannot do without it.
    pub needed: bool,
}

/// What else a source tells.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Kind, count and words of what was lost since the last call, besides what the rings had no room for.
    pub lost: Vec<(&'static str, u64, &'static str)>,
}

impl Losses {
    /// Add a loss, unless nothing was lost.
    pub fn add(&mut self, kind: &'static str, count: u64, words: &'static str) {
        if count > 0 {
            self.lost.push((kind, count, words));
        }
    }
}

/// A source of events. It has an instance of tracefs, and so rings, for itself.
pub trait Source {
    /// Name.
    fn name(&self) -> &'static str;

    /// What it wants. Those that this kernel lacks and that are not needed are left out.
    fn tracepoints(&self) -> Vec<Tracepoint>;

    /// Whether a tracepoint of that list is switched on; its place in the list stays either way.
    fn wants(&self, _point: usize) -> bool {
        true
    }

    /// Why a needed tracepoint is absent, and what to do.
    fn why_absent(&self, _tracefs: &Path) -> &'static str {
        "this kernel was built without it (CONFIG_BLK_DEV_IO_TRACE, CONFIG_FTRACE_SYSCALLS)"
    }

    /// What is unknown without a tracepoint of that list that is not needed; empty where nothing is.
    fn unknown_without(&self, _point: &Tracepoint) -> &'static str {
        ""
    }

    /// A note on each tracepoint that is described otherwise than it is read; an error if it is needed. Changes nothing.
    fn unread(&self, formats: &HashMap<&'static str, Format>) -> Result<Vec<String>, Failure>;

    /// The descriptions of those tracepoints that there are, by name, before any record.
    fn bind(&mut self, formats: &HashMap<&'static str, Format>) -> Result<(), Failure>;

    /// Records come in from now on: what was there before is looked at here, before the reader is told that all is ready.
    fn started(&mut self) {}

    /// What the reader is told at the beginning, besides the name.
    fn facts(&self) -> Map<String, Value>;

    /// A record of the tracepoint at this place in `tracepoints()`; in order of time, which is the monotonic clock's.
    fn take(&mut self, point: usize, time_ns: u64, record: &[u8], rows: &mut Rows);

    /// Records are missing from here on (true), or none are from here on (false).
    fn lossy(&mut self, missing: bool);

    /// Pages of a ring contradict themselves: records of some time in this round are missing.
    fn damaged(&mut self) {
        self.lossy(true);
        self.lossy(false);
    }

    /// Once a round, before the rings are looked into.
    fn prepare(&mut self) {}

    /// Once a round, after all records of it, which are of the time up to `until_ns`: what comes from elsewhere is looked at here.
    fn round(&mut self, _until_ns: u64, _rows: &mut Rows) -> Result<(), Failure> {
        Ok(())
    }

    /// No records are made from this time on.
    fn stopped(&mut self, _time_ns: u64) {}

    /// Up to which time all I/O was handed over, where some waits.
    fn waits_since_ns(&self) -> Option<u64> {
        None
    }

    /// Once a second: what was lost besides what the rings tell.
    fn losses(&mut self) -> Losses;

    /// Processes seen for the first time since the last call: number, name, command line.
    fn processes(&mut self) -> Vec<(u32, String, String)>;

    /// I/Os so far.
    fn events(&self) -> u64;
}
