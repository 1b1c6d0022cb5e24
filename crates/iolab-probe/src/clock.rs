// SPDX-License-Identifier: Apache-2.0
//! The clocks: the monotonic one that the rings use, and the Unix epoch that recordings use.

use nix::time::{clock_gettime, ClockId};

/// Nanoseconds of a clock.
fn nanoseconds(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Nanoseconds of the monotonic clock, which the rings use too.
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::CLOCK_MONOTONIC)
}

/// Nanoseconds since the Unix epoch.
fn realtime_ns() -> u64 {
    nanoseconds(ClockId::CLOCK_REALTIME)
}

/// CPU time of this process.
pub fn cpu_ns() -> u64 {
    nanoseconds(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// Both clocks at one moment. Taken once, so that times do not jump when the clock of the machine is set.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    /// Monotonic clock.
    pub monotonic_ns: u64,
    /// Since the Unix epoch.
    pub realtime_ns: u64,
}

impl Anchor {
    /// The closest of several pairs.
    pub fn now() -> Self {
        let pair = |_| {
            let before = monotonic_ns();
            let realtime_ns = realtime_ns();
            let after = monotonic_ns();
            (after - before, Self { monotonic_ns: before + (after - before) / 2, realtime_ns })
        };
        (0..8).map(pair).min_by_key(|pair| pair.0).expect("eight pairs").1
    }

    /// What to add to the monotonic clock.
    pub fn epoch_ns(&self) -> i64 {
        self.realtime_ns as i64 - self.monotonic_ns as i64
    }

    /// A monotonic time since the Unix epoch.
    pub fn realtime(&self, monotonic_ns: u64) -> i64 {
        self.epoch_ns() + monotonic_ns as i64
    }
}
