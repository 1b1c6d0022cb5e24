// SPDX-License-Identifier: Apache-2.0
//! Cumulative counts of many objects. An object is left out of readings while its counts do not change.

use iolab_core::frames::samples::Samples;
use std::collections::HashMap;

/// An object is left out of readings after this number of readings without a change.
pub const QUIET: u32 = 5;

/// Counts of an object.
#[derive(Clone, Copy, Debug)]
pub struct Counts<const N: usize> {
    /// Current counts.
    pub now: [u64; N],
    /// At the previous reading.
    before: [u64; N],
    quiet: u32,
}

impl<const N: usize> Counts<N> {
    /// Counts that were `before` at the previous reading.
    pub fn new(before: [u64; N]) -> Self {
        Self { now: before, before, quiet: QUIET }
    }

    /// Push the current counts. After a pause, the previous reading (`before_ns`) comes first, so that the difference
    /// is defined.
    pub fn push(
        &mut self,
        object: &str,
        fields: &[&str; N],
        before_ns: Option<i64>,
        time_ns: i64,
        samples: &mut Samples,
    ) {
        let was_left_out = self.quiet >= QUIET;
        self.quiet = if self.now == self.before { self.quiet.saturating_add(1) } else { 0 };
        if self.quiet < QUIET {
            if let (true, Some(before_ns)) = (was_left_out, before_ns) {
                put(object, fields, &self.before, before_ns, samples);
            }
            put(object, fields, &self.now, time_ns, samples);
        }
        self.before = self.now;
    }
}

/// The object of every reading: shows that mounts were read even if no count changed.
pub const ALWAYS: &str = "";

/// Counts of one reading by object, and the seconds since the object was created.
pub type Reading<const N: usize> = HashMap<String, ([u64; N], u64)>;

/// Counts of objects that appear and disappear.
#[derive(Debug, Default)]
pub struct Objects<const N: usize> {
    /// By object.
    pub counts: HashMap<String, Counts<N>>,
    /// When the previous reading was.
    before_ns: Option<i64>,
    /// Whether an object ever existed.
    any: bool,
}

impl<const N: usize> Objects<N> {
    /// Take a reading. The counts of an object that was created since the previous reading start at 0.
    pub fn take(&mut self, reading: Reading<N>, fields: &[&str; N], time_ns: i64, samples: &mut Samples) {
        let is_first = !self.any && !reading.is_empty();
        self.any |= is_first;
        for time_ns in self.before_ns.filter(|_| is_first).into_iter().chain(self.any.then_some(time_ns)) {
            put(ALWAYS, fields, &[0; N], time_ns, samples);
        }
        let elapsed = self.before_ns.map(|before_ns| time_ns.saturating_sub(before_ns).max(0) as u64 / 1_000_000_000);
        self.counts.retain(|object, _| reading.contains_key(object));
        for (object, (row, age)) in reading {
            let is_new = elapsed.is_some_and(|elapsed| age <= elapsed);
            let before = if is_new { [0; N] } else { row };
            let counts = self.counts.entry(object.clone()).or_insert_with(|| Counts::new(before));
            counts.now = row;
            counts.push(&object, fields, self.before_ns, time_ns, samples);
        }
        self.before_ns = Some(time_ns);
    }
}

/// A name with its separators (tab, newline) escaped as the kernel escapes them.
pub fn printed(name: &str) -> String {
    name.replace('\t', "\\011").replace('\n', "\\012")
}

/// Push a reading of every field of an object.
pub fn put<const N: usize>(object: &str, fields: &[&str; N], values: &[u64; N], time_ns: i64, samples: &mut Samples) {
    for (field, value) in fields.iter().zip(values) {
        samples.push(time_ns, object.as_bytes(), field.as_bytes(), i64::try_from(*value).unwrap_or(i64::MAX));
    }
}
