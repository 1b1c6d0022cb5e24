// SPDX-License-Identifier: Apache-2.0
//! The rings of an instance, one for each processor: their pages, and what they had no room for.

use crate::clock::monotonic_ns;
use crate::failure::Failure;
use crate::instance::Instance;
use crate::tracefs::read;
use iolab_core::tracefs::format::Layout;
use iolab_core::tracefs::merge::Merge;
use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Bytes of pages that wait in memory, of all processors of a source together.
const WAITING: usize = 32 << 20;
/// Records that are younger wait for the next round: one of another processor may not be there yet.
const MARGIN_NS: u64 = 2_000_000;

struct Ring {
    pages: File,
    stats: File,
    /// Whether the last round left it empty.
    emptied: bool,
    /// Records that found no room, by the kernel's count.
    dropped: u64,
}

/// What a round brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Until when all records are there.
    pub until_ns: u64,
    /// Records that found no room, since the round before.
    pub dropped: u64,
    /// Between which times that was.
    pub lossy_ns: (u64, u64),
    /// Whether a ring holds more than was taken.
    pub more: bool,
    /// Pages taken.
    pub pages: usize,
}

/// All rings of an instance.
pub struct Rings {
    rings: Vec<Ring>,
    /// Records in the order of time.
    pub merge: Merge,
    page_size: usize,
    /// Bytes that a ring holds.
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

    /// Take what is in the rings, as far as there is room. `look` looks at the kernel's own counts whatever happened.
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
            // a ring that was empty and has not been half full since lost nothing
            look |= !ended || !self.rings[number].emptied || taken * self.page_size >= self.capacity / 2;
            self.rings[number].emptied = ended;
            round.pages += taken;
            if !ended {
                // nothing of this processor beyond its last record is known yet
                round.more = true;
                round.until_ns = round.until_ns.min(self.merge.newest(number));
            }
        }
        if look {
            round.dropped = self.look()?;
            round.lossy_ns = (self.before_ns, monotonic_ns());
        }
        self.before_ns = started_ns;
        Ok(round)
    }

    fn look(&mut self) -> Result<u64, Failure> {
        let mut fresh = 0;
        for ring in &mut self.rings {
            let mut text = String::new();
            let read = ring.stats.seek(SeekFrom::Start(0)).and_then(|_| ring.stats.read_to_string(&mut text));
            read.map_err(|error| Failure::not_possible(format!("reading a ring's statistics failed: {error}")))?;
            let value = |key: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(key))?;
                line.trim_start_matches(':').trim().parse::<u64>().ok()
            };
            // "overrun" counts what was overwritten, which these rings do not do; "dropped events" what had no room
            let lost: u64 = ["overrun", "commit overrun", "dropped events"].into_iter().filter_map(value).sum();
            fresh += lost.saturating_sub(ring.dropped);
            ring.dropped = lost.max(ring.dropped);
        }
        Ok(fresh)
    }
}
