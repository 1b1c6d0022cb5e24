// SPDX-License-Identifier: Apache-2.0
//! Sums of the default maps of segments, by column of time and bucket: one pass over the files, on several threads.

use crate::columns::{Buffers, Column, ColumnsError, Table, NO_NAME};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// Bucket of I/Os without a value.
pub const WITHOUT: u32 = u32::MAX;
/// Maximum number of buckets of a map.
const MOST_BUCKETS: i64 = 1 << 16;

/// A map: the file of a segment, or its content.
#[derive(Clone, Debug)]
pub enum Content {
    /// A file.
    File(PathBuf),
    /// The content of a file.
    Bytes(Vec<u8>),
}

/// A map, and its group of consecutive maps.
#[derive(Clone, Debug)]
pub struct Map {
    /// Its content.
    pub content: Content,
    /// Its group.
    pub group: u32,
}

/// What to sum.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The source of the I/Os.
    pub source: String,
    /// Length of a column of time; columns start at multiples of it.
    pub interval_ns: i64,
    /// Include seconds from this start on.
    pub from_ns: i64,
    /// Include seconds that start before this.
    pub until_ns: i64,
    /// Whether buckets are distinguished; else all are bucket 0.
    pub by_bucket: bool,
    /// Whether operations are distinguished.
    pub by_op: bool,
    /// Whether devices are distinguished.
    pub by_device: bool,
    /// Whether the time spent in I/Os is summed.
    pub is_timed: bool,
}

/// (operation, device); None if missing or not distinguished.
pub type Key = (Option<String>, Option<String>);

/// Sums: one or more rows for each group, column, key and bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Groups of maps.
    pub group: Vec<u32>,
    /// Multiples of the interval.
    pub column: Vec<i64>,
    /// Buckets, or `WITHOUT`.
    pub bucket: Vec<u32>,
    /// Indices in `keys`.
    pub key: Vec<u32>,
    /// I/Os.
    pub ios: Vec<i64>,
    /// Time spent in the I/Os (ns).
    pub spent: Vec<i64>,
    /// Keys.
    pub keys: Vec<Key>,
}

/// Error of a sum.
#[derive(Debug)]
pub enum MapError {
    /// The map at this index can't be opened.
    Io(usize, io::Error),
    /// The map at this index is damaged or has an unsupported form.
    Unreadable(usize, ColumnsError),
}

/// Sums of all maps.
///
/// # Errors
/// The first map that can't be read.
pub fn sum_maps(maps: &[Map], wanted: &Wanted, threads: usize) -> Result<Sums, MapError> {
    let size = maps.len().div_ceil(threads.max(1)).max(1);
    let parts: Vec<Result<Sums, MapError>> = std::thread::scope(|scope| {
        let parts: Vec<_> = maps
            .chunks(size)
            .enumerate()
            .map(|(number, part)| scope.spawn(move || sum_part(part, number * size, wanted)))
            .collect();
        parts.into_iter().map(|part| part.join().expect("a thread of sums panicked")).collect()
    });
    let mut sums = Sums::default();
    for part in parts {
        sums.append(part?);
    }
    Ok(sums)
}

fn sum_part(maps: &[Map], first: usize, wanted: &Wanted) -> Result<Sums, MapError> {
    let (mut totals, mut buffers, mut content) = (Totals::default(), Buffers::default(), Vec::new());
    for (place, map) in maps.iter().enumerate() {
        let bytes = match &map.content {
            Content::Bytes(bytes) => bytes,
            Content::File(path) => {
                content.clear();
                File::open(path)
                    .and_then(|mut file| file.read_to_end(&mut content))
                    .map_err(|error| MapError::Io(first + place, error))?;
                &content
            }
        };
        totals
            .add(bytes, map.group, wanted, &mut buffers)
            .map_err(|error| MapError::Unreadable(first + place, error))?;
    }
    // the error of the sum is that of the last map
    totals.flush().map_err(|error| MapError::Unreadable(first + maps.len() - 1, error))?;
    Ok(totals.sums)
}

impl Sums {
    fn append(&mut self, mut other: Sums) {
        if self.keys.is_empty() {
            *self = other;
            return;
        }
        let places: Vec<u32> = other.keys.into_iter().map(|key| self.place_of(key)).collect();
        self.group.append(&mut other.group);
        self.column.append(&mut other.column);
        self.bucket.append(&mut other.bucket);
        self.ios.append(&mut other.ios);
        self.spent.append(&mut other.spent);
        self.key.extend(other.key.iter().map(|&key| places[key as usize]));
    }

    fn place_of(&mut self, key: Key) -> u32 {
        let place = self.keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.keys.push(key);
            self.keys.len() - 1
        });
        place as u32
    }
}

/// Sums of a key in the current column of time.
#[derive(Default)]
struct Buckets {
    /// I/Os and time by bucket; the first entry is for I/Os without a value.
    cells: Vec<(u64, u64)>,
    low: usize,
    past: usize,
}

/// Sums of the maps so far, and those of the current column.
#[derive(Default)]
struct Totals {
    sums: Sums,
    places: HashMap<Key, u32>,
    group: u32,
    column: i64,
    by_key: Vec<Buckets>,
}

impl Totals {
    fn add(&mut self, bytes: &[u8], group: u32, wanted: &Wanted, buffers: &mut Buffers) -> Result<(), ColumnsError> {
        let mut names = vec!["second_ns", "source", "count"];
        let mut place_of = |name, is_wanted: bool| {
            is_wanted.then(|| {
                names.push(name);
                names.len() - 1
            })
        };
        let bucket = place_of("index", wanted.by_bucket);
        let op = place_of("op", wanted.by_op);
        let device = place_of("device", wanted.by_device);
        let spent = place_of("time_ns_sum", wanted.is_timed);
        let table = Table::open(bytes)?;
        for number in 0..table.groups() {
            let is_beyond = |(least, largest)| largest < wanted.from_ns || least >= wanted.until_ns;
            if !table.range(number, names[0]).is_some_and(is_beyond) {
                let columns = table.read(number, &names, buffers)?;
                self.add_rows(columns, [bucket, op, device, spent], group, wanted)?;
            }
        }
        Ok(())
    }

    /// Add rows. `places` has the indices of the requested columns: buckets, operations, devices and times.
    fn add_rows(
        &mut self,
        columns: &[Column],
        [bucket, op, device, spent]: [Option<usize>; 4],
        group: u32,
        wanted: &Wanted,
    ) -> Result<(), ColumnsError> {
        let seconds = columns[0].numbers()?;
        let (source_ids, sources) = columns[1].names()?;
        let counts = columns[2].numbers()?;
        let buckets = bucket.map(|place| columns[place].numbers()).transpose()?;
        let ops = op.map(|place| columns[place].names()).transpose()?;
        let devices = device.map(|place| columns[place].names()).transpose()?;
        let times = spent.map(|place| columns[place].numbers()).transpose()?;
        if buckets.is_some_and(|all| all.iter().any(|&bucket| bucket >= MOST_BUCKETS && bucket != i64::from(WITHOUT))) {
            return Err(ColumnsError("has a bucket beyond all grids"));
        }
        let is_of_source: Vec<bool> = sources.iter().map(|name| *name == wanted.source).collect();
        let mut key_ids: HashMap<(u32, u32), u32> = HashMap::new();
        let (mut last, mut key) = ((NO_NAME - 1, NO_NAME - 1), 0);
        for (row, &second) in seconds.iter().enumerate() {
            let is_shown = is_of_source.get(source_ids[row] as usize) == Some(&true)
                && (wanted.from_ns..wanted.until_ns).contains(&second);
            if !is_shown {
                continue;
            }
            let column = second.div_euclid(wanted.interval_ns);
            if column != self.column || group != self.group {
                self.flush()?;
                (self.column, self.group) = (column, group);
            }
            let ids = (ops.map_or(NO_NAME, |(ids, _)| ids[row]), devices.map_or(NO_NAME, |(ids, _)| ids[row]));
            if ids != last {
                last = ids;
                key =
                    *key_ids.entry(ids).or_insert_with(|| self.key_of((name_of(ops, ids.0), name_of(devices, ids.1))));
            }
            let cell = buckets.map_or(1, |all| (all[row] as u32).wrapping_add(1) as usize);
            let amount = (counts[row] as u64, times.map_or(0, |all| all[row] as u64));
            self.by_key[key as usize].add(cell, amount)?;
        }
        Ok(())
    }

    fn key_of(&mut self, key: Key) -> u32 {
        *self.places.entry(key).or_insert_with_key(|key| {
            self.sums.keys.push(key.clone());
            self.by_key.push(Buckets::default());
            self.by_key.len() as u32 - 1
        })
    }

    /// Append the sums of the current column.
    fn flush(&mut self) -> Result<(), ColumnsError> {
        for (key, buckets) in self.by_key.iter_mut().enumerate() {
            for place in buckets.low..buckets.past {
                let (ios, spent) = std::mem::take(&mut buckets.cells[place]);
                if ios != 0 {
                    self.sums.group.push(self.group);
                    self.sums.column.push(self.column);
                    self.sums.bucket.push((place as u32).wrapping_sub(1));
                    self.sums.key.push(key as u32);
                    self.sums.ios.push(i64::try_from(ios).map_err(|_| TOO_LARGE)?);
                    self.sums.spent.push(i64::try_from(spent).map_err(|_| TOO_LARGE)?);
                }
            }
            buckets.past = 0;
        }
        Ok(())
    }
}

const TOO_LARGE: ColumnsError = ColumnsError("has sums beyond 63 bits");

impl Buckets {
    fn add(&mut self, cell: usize, (ios, spent): (u64, u64)) -> Result<(), ColumnsError> {
        if cell >= self.cells.len() {
            self.cells.resize(cell + 1, (0, 0));
        }
        (self.low, self.past) =
            if self.past == 0 { (cell, cell + 1) } else { (self.low.min(cell), self.past.max(cell + 1)) };
        let sums = &mut self.cells[cell];
        *sums = (sums.0.checked_add(ios).ok_or(TOO_LARGE)?, sums.1.checked_add(spent).ok_or(TOO_LARGE)?);
        Ok(())
    }
}

fn name_of(column: Option<(&[u32], &[String])>, id: u32) -> Option<String> {
    column.and_then(|(_, names)| names.get(id as usize)).cloned()
}
