// SPDX-License-Identifier: Apache-2.0
//! Growing counts of many objects, each left out of readings while it does not move.

use iolab_core::frames::samples::Samples;

/// Readings in which nothing moved after which an object is left out until it moves again.
pub const QUIET: u32 = 5;

/// Counts of an object.
#[derive(Clone, Copy, Debug)]
pub struct Counts<const N: usize> {
    /// Now.
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

    /// Push the readings of now, and after a time of rest the previous one (`before_ns`) as well, so that growth has its start.
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

/// Push a reading of every field of an object.
pub fn put<const N: usize>(object: &str, fields: &[&str; N], values: &[u64; N], time_ns: i64, samples: &mut Samples) {
    for (field, value) in fields.iter().zip(values) {
        samples.push(time_ns, object.as_bytes(), field.as_bytes(), i64::try_from(*value).unwrap_or(i64::MAX));
    }
}
