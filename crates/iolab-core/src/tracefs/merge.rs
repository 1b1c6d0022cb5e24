// SPDX-License-Identifier: Apache-2.0
//! Records of several processors in the order of time.
//!
//! Each processor has a ring of its own, whose records are in order. They are merged up to a time before which nothing
//! can come any more. What waits is bounded by whoever feeds: a stream says how many bytes wait in it.

use super::format::Layout;
use super::page::{Cursor, Head, Record, Torn};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Pages of one processor that wait.
#[derive(Debug, Default)]
struct Stream {
    pages: VecDeque<Vec<u8>>,
    cursor: Option<Cursor>,
    next: Option<Record>,
    last_ns: u64,
}

/// What was wrong with pages, and what they say was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Pages that contradict themselves; what follows the fault in them is lost.
    pub torn: u64,
    /// Records that pages say were lost before them, where they say how many.
    pub missed: u64,
    /// Pages that say that records were lost before them.
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

/// Beyond the time at which a page was read no record of it can lie; so much is forgiven.
const AHEAD_NS: u64 = 1_000_000_000;

/// Pages kept for use again.
const SPARE: usize = 64;

impl Merge {
    /// No records yet, of so many processors.
    pub fn new(layout: Layout, processors: usize) -> Self {
        let streams = (0..processors).map(|_| Stream::default()).collect();
        Self { layout, streams, faults: Faults::default(), spare: Vec::new(), horizon_ns: 0 }
    }

    /// A page to be filled.
    pub fn page(&mut self) -> Vec<u8> {
        let mut page = self.spare.pop().unwrap_or_default();
        page.resize(self.layout.size, 0);
        page
    }

    /// A page that was not used after all.
    pub fn give_back(&mut self, page: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(page);
        }
    }

    /// Take the next page of a processor, read at that time.
    pub fn push(&mut self, processor: usize, page: Vec<u8>, now_ns: u64) {
        self.horizon_ns = self.horizon_ns.max(now_ns.saturating_add(AHEAD_NS));
        self.streams[processor].pages.push_back(page);
        if self.streams[processor].next.is_none() {
            self.advance(processor);
        }
    }

    /// Pages of a processor that wait.
    pub fn waiting(&self, processor: usize) -> usize {
        self.streams[processor].pages.len()
    }

    /// Time of the last record in a processor's last page, as far as it can be told; 0 where nothing waits.
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

    /// Hand out the records up to a time, in order, with the number of their processor.
    pub fn drain(&mut self, until_ns: u64, mut each: impl FnMut(usize, u64, &[u8])) {
        let due = |(number, stream): (usize, &Stream)| stream.next.map(|record| Reverse((record.time_ns, number)));
        let mut queue: BinaryHeap<_> = self.streams.iter().enumerate().filter_map(due).collect();
        while let Some(Reverse((first, number))) = queue.pop() {
            if first > until_ns {
                break;
            }
            // one processor's records mostly come in runs: go on with it until another's turn
            let limit = queue.peek().map_or(until_ns, |Reverse((other, _))| (*other).min(until_ns));
            while let Some(record) = self.streams[number].next.filter(|record| record.time_ns <= limit) {
                let stream = &self.streams[number];
                each(number, record.time_ns, &stream.pages[0][record.start..record.end]);
                self.advance(number);
            }
            if let Some(record) = self.streams[number].next {
                queue.push(Reverse((record.time_ns, number)));
            }
        }
    }

    /// What was wrong since the last call.
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
                    faults.missed += head.missed_count.unwrap_or(0);
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
                    // a ring's times do not go back; a torn page's may
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
