// SPDX-License-Identifier: Apache-2.0
//! The rings of an instance, one per processor: pages and counts of dropped records.

use crate::clock::monotonic_ns;
use crate::failure::Failure;
use crate::instance::Instance;
use crate::limited::{beginning, RECORD};
use crate::tracefs::read;
use iolab_core::tracefs::format::Layout;
use iolab_core::tracefs::merge::Merge;
use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Maximum size of pending pages in bytes, for all processors of a source.
const WAITING: usize = 32 << 20;
/// Younger records wait for the next round: an earlier one of another processor may not have arrived yet.
const MARGIN_NS: u64 = 2_000_000;

struct Ring {
    pages: File,
    stats: File,
    /// Whether the last round emptied it.
    emptied: bool,
    /// Dropped records, as counted by the kernel.
    dropped: u64,
}

/// Result of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// All records up to this time have arrived.
    pub until_ns: u64,
    /// Records dropped since the previous round.
    pub dropped: u64,
    /// Span of time from the previous round to this one, in which they were dropped.
    pub lossy_ns: (u64, u64),
    /// Whether a ring has more pages.
    pub more: bool,
    /// Number of pages read.
    pub pages: usize,
}

/// All rings of an instance.
pub struct Rings {
    rings: Vec<Ring>,
    /// Records in order of time.
    pub merge: Merge,
    page_size: usize,
    /// Capacity of a ring in bytes.
    capacity: usize,
    before_ns: u64,
}

impl Rings {
    /// Open the rings of an instance.
    pub fn open(instance: &Instance) -> Result<Self, Failure> {
        let layout = read(&instance.file("events/header_page"))?;
        let layout = Layout::parse(&layout).map_err(|error| Failure::not_possible(error.0))?;
        let directory = instance.file("per_cpu");
        let entries = std::fs::read_dir(&directory).map_err(|error| Failure::io(&directory, &error))?;
        let mut processors: Vec<u32> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok())
            .collect();
        processors.sort_unstable();
        let ring = |processor: &u32| {
            let open = |name: &str| {
                let path = directory.join(format!("cpu{processor}/{name}"));
                let flags = OFlag::O_NONBLOCK.bits();
                OpenOptions::new()
                    .read(true)
                    .custom_flags(flags)
                    .open(&path)
                    .map_err(|error| Failure::io(&path, &error))
            };
            Ok(Ring { pages: open("trace_pipe_raw")?, stats: open("stats")?, emptied: true, dropped: 0 })
        };
        let rings = processors.iter().map(ring).collect::<Result<Vec<_>, Failure>>()?;
        let capacity = instance.ring_kib().unwrap_or(4) as usize * 1024;
        let merge = Merge::new(layout, rings.len());
        Ok(Self { rings, merge, page_size: layout.size, capacity, before_ns: monotonic_ns() })
    }

    /// Read the rings up to the maximum of pending pages. `look` forces a reading of the kernel's drop counts.
    pub fn round(&mut self, look: bool) -> Result<Round, Failure> {
        let started_ns = monotonic_ns();
        let mut round = Round { until_ns: started_ns.saturating_sub(MARGIN_NS), ..Round::default() };
        let mut look = look;
        let share = (WAITING / self.page_size / self.rings.len().max(1)).max(4);
        for number in 0..self.rings.len() {
            let mut ended = false;
            let mut taken = 0;
            while self.merge.waiting(number) < share {
                let mut page = self.merge.page();
                match self.rings[number].pages.read(&mut page) {
                    Ok(0) => ended = true,
                    Ok(bytes) => {
                        page.truncate(bytes);
                        taken += 1;
                        self.merge.push(number, page, monotonic_ns());
                        continue;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => ended = true,
                    Err(error) => return Err(Failure::not_possible(format!("reading a trace ring failed: {error}"))),
                }
                self.merge.give_back(page);
                break;
            }
            // a ring that was emptied last time and is less than half full dropped nothing
            look |= !ended || !self.rings[number].emptied || taken * self.page_size >= self.capacity / 2;
            self.rings[number].emptied = ended;
            round.pages += taken;
            if !ended {
                // records of this processor after its last one are not known yet
                round.more = true;
                round.until_ns = round.until_ns.min(self.merge.newest(number));
            }
        }
        if look {
            round.dropped = self.look()?;
        }
        round.lossy_ns = (self.before_ns, monotonic_ns());
        self.before_ns = started_ns;
        Ok(round)
    }

    fn look(&mut self) -> Result<u64, Failure> {
        let mut fresh = 0;
        for ring in &mut self.rings {
            let text = ring.stats.seek(SeekFrom::Start(0)).and_then(|_| beginning(&mut ring.stats, RECORD));
            let text =
                text.map_err(|error| Failure::not_possible(format!("reading a ring's statistics failed: {error}")))?;
            let text = String::from_utf8_lossy(&text);
            let value = |key: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(key))?;
                line.trim_start_matches(':').trim().parse::<u64>().ok()
            };
            // "overrun" counts overwritten records, which these rings do not have; "dropped events" counts records that
            // did not fit
            let lost: u64 = ["overrun", "commit overrun", "dropped events"].into_iter().filter_map(value).sum();
            fresh += lost.saturating_sub(ring.dropped);
            ring.dropped = lost.max(ring.dropped);
        }
        Ok(fresh)
    }
}
