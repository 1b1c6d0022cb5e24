// SPDX-License-Identifier: Apache-2.0
//! Merges the records of several processors by time.
//!
//! Each processor has its own ring with ordered records. They are merged up to a time before which no record can arrive
//! any more. The caller bounds the pending pages: a stream reports their number.

use super::format::Layout;
use super::page::{Cursor, Head, Record, Torn};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Pending pages of one processor.
#[derive(Debug, Default)]
struct Stream {
    pages: VecDeque<Vec<u8>>,
    cursor: Option<Cursor>,
    next: Option<Record>,
    last_ns: u64,
}

/// Damaged pages and lost records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Inconsistent pages; the records after the fault are lost.
    pub torn: u64,
    /// Lost records as reported by pages; one for a page that does not report the number.
    pub missed: u64,
    /// Pages that report lost records before them.
    pub gaps: u64,
}

/// Records of all processors.
#[derive(Debug)]
pub struct Merge {
    layout: Layout,
    streams: Vec<Stream>,
    faults: Faults,
    spare: Vec<Vec<u8>>,
    horizon_ns: u64,
}

/// A record cannot be later than the reading of its page; this is the tolerance.
const AHEAD_NS: u64 = 1_000_000_000;

/// Maximum number of pages kept for reuse.
const SPARE: usize = 64;

impl Merge {
    /// No records yet, of this many processors.
    pub fn new(layout: Layout, processors: usize) -> Self {
        let streams = (0..processors).map(|_| Stream::default()).collect();
        Self { layout, streams, faults: Faults::default(), spare: Vec::new(), horizon_ns: 0 }
    }

    /// An empty page.
    pub fn page(&mut self) -> Vec<u8> {
        let mut page = self.spare.pop().unwrap_or_default();
        page.resize(self.layout.size, 0);
        page
    }

    /// Return an unused page.
    pub fn give_back(&mut self, page: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(page);
        }
    }

    /// Add the next page of a processor, read at that time.
    pub fn push(&mut self, processor: usize, page: Vec<u8>, now_ns: u64) {
        self.horizon_ns = self.horizon_ns.max(now_ns.saturating_add(AHEAD_NS));
        self.streams[processor].pages.push_back(page);
        if self.streams[processor].next.is_none() {
            self.advance(processor);
        }
    }

    /// Number of pending pages of a processor.
    pub fn waiting(&self, processor: usize) -> usize {
        self.streams[processor].pages.len()
    }

    /// Time of the last record in a processor's last page, as far as known; 0 if no page is pending.
    pub fn newest(&self, processor: usize) -> u64 {
        let stream = &self.streams[processor];
        let Some(page) = stream.pages.back() else { return 0 };
        let Ok(head) = Head::of(page, &self.layout) else { return stream.last_ns };
        let (mut cursor, mut newest) = (Cursor::new(&head), head.time_ns);
        while let Ok(Some(record)) = cursor.next(page) {
            newest = record.time_ns;
        }
        newest
    }

    /// Deliver the records up to a time, in order, with their processor number.
    pub fn drain(&mut self, until_ns: u64, mut deliver: impl FnMut(usize, u64, &[u8])) {
        let due = |(number, stream): (usize, &Stream)| stream.next.map(|record| Reverse((record.time_ns, number)));
        let mut queue: BinaryHeap<_> = self.streams.iter().enumerate().filter_map(due).collect();
        while let Some(Reverse((first, number))) = queue.pop() {
            if first > until_ns {
                break;
            }
            // records of one processor mostly come in runs: stay with it until another one is earlier
            let limit = queue.peek().map_or(until_ns, |Reverse((other, _))| (*other).min(until_ns));
            while let Some(record) = self.streams[number].next.filter(|record| record.time_ns <= limit) {
                let stream = &self.streams[number];
                deliver(number, record.time_ns, &stream.pages[0][record.start..record.end]);
                self.advance(number);
            }
            if let Some(record) = self.streams[number].next {
                queue.push(Reverse((record.time_ns, number)));
            }
        }
    }

    /// Faults since the last call.
    pub fn take_faults(&mut self) -> Faults {
        std::mem::take(&mut self.faults)
    }

    /// Find the next record of a processor.
    fn advance(&mut self, processor: usize) {
        let Self { layout, streams, faults, spare, horizon_ns } = self;
        let stream = &mut streams[processor];
        stream.next = None;
        while let Some(page) = stream.pages.front() {
            let mut cursor = match stream.cursor {
                Some(cursor) => Ok(cursor),
                None => Head::of(page, layout).map(|head| {
                    faults.gaps += u64::from(head.missed);
                    faults.missed += head.missed_count.unwrap_or(u64::from(head.missed));
                    Cursor::new(&head)
                }),
            };
            let found = match &mut cursor {
                Ok(cursor) => match cursor.next(page) {
                    Ok(Some(record)) if record.time_ns > *horizon_ns => Err(Torn("a record from the future")),
                    found => found,
                },
                Err(torn) => Err::<_, Torn>(*torn),
            };
            match found {
                Ok(Some(record)) => {
                    stream.cursor = cursor.ok();
                    // the times of a ring do not decrease, except in a damaged page
                    let time_ns = record.time_ns.max(stream.last_ns);
                    stream.last_ns = time_ns;
                    stream.next = Some(Record { time_ns, ..record });
                    return;
                }
                end => {
                    faults.torn += u64::from(end.is_err());
                    stream.cursor = None;
                    if let Some(page) = stream.pages.pop_front().filter(|_| spare.len() < SPARE) {
                        spare.push(page);
                    }
                }
            }
        }
    }
}
