// SPDX-License-Identifier: Apache-2.0
//! The main loop: reads rings and counters, and writes frames until stopped.

use crate::args::Settings;
use crate::block::BlockSource;
use crate::clock::{cpu_ns, monotonic_ns, Anchor};
use crate::counters::Counters;
use crate::failure::Failure;
use crate::instance::remove_stale;
use crate::limited::{read_text, RECORD, TABLE};
use crate::memory::return_free_pages;
use crate::nfs::NfsSource;
use crate::output::Output;
use crate::source::Source;
use crate::stop::Stop;
use crate::syscall::SyscallSource;
use crate::traced::Traced;
use crate::tracefs;
use iolab_core::frames::Kind;
use nix::unistd::{sysconf, SysconfVar};
use serde_json::{json, Map, Value};
use std::path::Path;
use std::time::Duration;

/// Time between readings of the rings. Rings hold much more than that, and fewer readings cost less.
const ROUND_MS: u64 = 50;
/// How long to wait for a reader of the last frames.
const PATIENCE: Duration = Duration::from_secs(5);
/// Seconds between returns of free memory.
const TRIM_S: u32 = 10;
/// Expected load for the ring size of a source: records per I/O, bytes per record, I/Os per second, seconds.
const EXPECTED: u64 = 4 * 80 * 100_000 * 2;
/// Share of the memory for the rings of a source, and their maximum size for all processors.
const SHARE: u64 = 32;
const MOST: u64 = 512 << 20;

/// Ring size per processor: the requested size, or two seconds of a fast disk if memory allows.
pub fn ring_kib(settings: &Settings) -> u64 {
    let processors = processors();
    let memory = read_text("/proc/meminfo", TABLE).unwrap_or_default();
    let total =
        memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok());
    let most = MOST.min(total.unwrap_or(1 << 20) * 1024 / SHARE) / processors;
    settings.ring_kib.unwrap_or((EXPECTED.min(most) / 1024).max(256))
}

fn processors() -> u64 {
    sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten().map_or(1, |number| number.max(1) as u64)
}

/// Record until stopped.
pub fn run(settings: &Settings) -> Result<(), Failure> {
    let stop = Stop::listen(settings.lease_s.map(Duration::from_secs))?;
    let anchor = Anchor::now();
    let mut session = Session::start(settings, anchor)?;
    session.hello();
    let reason = session.record(&stop, settings.interval_ms)?;
    session.end(reason)
}

struct Session {
    traced: Vec<Traced>,
    counters: Option<Counters>,
    samples: u64,
    /// Readings of counters since the output was full.
    left_out: u64,
    anchor: Anchor,
    output: Output,
    /// Up to this time, everything was reported.
    reported_ns: u64,
    /// Seconds since free memory was returned.
    untrimmed_s: u32,
}

fn source_of(name: &str, settings: &Settings, anchor: &Anchor) -> Result<Option<Box<dyn Source>>, Failure> {
    Ok(match name {
        "block" => Some(Box::new(BlockSource::new(settings, anchor.epoch_ns())?)),
        "syscall" => Some(Box::new(SyscallSource::new(settings, anchor.epoch_ns())?)),
        "nfs" => Some(Box::new(NfsSource::new(anchor.epoch_ns()))),
        _ => None,
    })
}

impl Session {
    fn start(settings: &Settings, anchor: Anchor) -> Result<Self, Failure> {
        let mut sources = Vec::new();
        for name in &settings.sources {
            sources.extend(source_of(name, settings, &anchor)?);
        }
        // independent of the sources: rings of ended probes hold memory, and their enabled tracepoints slow every call
        if let Some(tracefs) = tracefs::mounted(settings.tracefs.as_deref()) {
            remove_stale(&tracefs);
        }
        let mut traced = Vec::new();
        if !sources.is_empty() {
            let tracefs = tracefs::find(settings.tracefs.as_deref())?;
            for source in sources {
                traced.push(Traced::start(source, &tracefs, ring_kib(settings), anchor)?);
            }
        }
        let counters = settings.sources.iter().any(|source| source == "counters").then(Counters::start);
        let reported_ns = anchor.monotonic_ns;
        Ok(Self {
            traced,
            counters,
            samples: 0,
            left_out: 0,
            anchor,
            output: Output::start(),
            reported_ns,
            untrimmed_s: 0,
        })
    }

    fn hello(&self) {
        let mut sources: Map<String, Value> =
            self.traced.iter().map(|traced| (traced.name().to_owned(), json!(traced.facts()))).collect();
        if self.counters.is_some() {
            let what = json!({"what": "readings of the kernel's counters", "samples": crate::counters::SOURCES});
            sources.insert("counters".into(), what);
        }
        let words: Vec<Value> = self
            .traced
            .iter()
            .filter_map(|traced| traced.facts().get("words")?.as_array().cloned())
            .flatten()
            .collect();
        let covered: Map<String, Value> =
            self.traced.iter().map(|traced| (traced.name().to_owned(), json!(traced.covered_ns()))).collect();
        let kernel = |file: &str| read_text(Path::new("/proc/sys/kernel").join(file), RECORD).unwrap_or_default();
        let page_size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
        self.output.words(
            Kind::Hello,
            &json!({
                "probe": env!("CARGO_PKG_VERSION"), "kernel": kernel("osrelease").trim(), "hostname": kernel("hostname").trim(),
                "page_size": page_size, "cpus": processors(), "monotonic_ns": self.anchor.monotonic_ns,
                "realtime_ns": self.anchor.realtime_ns, "from_ns": self.anchor.realtime(monotonic_ns()), "sources": sources,
                "covered_ns": covered, "words": words, "pid": std::process::id(),
            }),
        );
    }

    /// Run until there is a reason to stop.
    fn record(&mut self, stop: &Stop, interval_ms: u64) -> Result<&'static str, Failure> {
        let interval_ns = interval_ms * 1_000_000;
        let (mut tick_ns, mut sample_ns) = (monotonic_ns() + 1_000_000_000, monotonic_ns());
        loop {
            let now = monotonic_ns();
            if self.counters.is_some() && now >= sample_ns {
                self.sample();
                // readings that were missed in suspend are not repeated
                sample_ns += (now.saturating_sub(sample_ns) / interval_ns + 1) * interval_ns;
            }
            let tick = now >= tick_ns;
            let more = self.round(tick, false)?;
            // with a full output, the next report covers this second as well
            if tick && !self.output.is_full() {
                self.tick(now);
            }
            if tick {
                tick_ns += (now.saturating_sub(tick_ns) / 1_000_000_000 + 1) * 1_000_000_000;
            }
            if self.output.is_closed() {
                return Err(Failure::not_possible("the reader of the frames closed standard output"));
            }
            let due = tick_ns.min(if self.counters.is_some() { sample_ns } else { u64::MAX });
            let rest = due.saturating_sub(monotonic_ns()) / 1_000_000;
            let wait = if more {
                0
            } else if self.traced.is_empty() {
                rest + 1
            } else {
                ROUND_MS.min(rest + 1)
            };
            if let Some(reason) = stop.wait(wait)? {
                return Ok(reason);
            }
        }
    }

    /// Read all rings once. Returns whether a ring has more.
    fn round(&mut self, look: bool, last: bool) -> Result<bool, Failure> {
        // with a slow reader the rings fill up and count dropped records; memory does not grow
        if self.output.is_full() && !last {
            return Ok(false);
        }
        let mut more = false;
        for traced in &mut self.traced {
            more |= traced.round(look, last, &self.output)?;
        }
        Ok(more)
    }

    fn sample(&mut self) {
        let Some(counters) = &mut self.counters else { return };
        // with a slow reader, readings are left out and counted; memory does not grow
        if self.output.is_full() {
            self.left_out += 1;
            return;
        }
        let now = monotonic_ns();
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            let words = "readings of all counters were left out because the reader of the frames was slow";
            counters.missed.push(("counters", Some(left_out), words));
        }
        counters.read(self.anchor.realtime(now));
        self.samples += 1;
        for payload in counters.payloads() {
            self.output.columns(Kind::Samples, &payload);
        }
        let at = self.anchor.realtime(now);
        for (source, count, words) in std::mem::take(&mut counters.missed) {
            self.output.words(
                Kind::Loss,
                &json!({"source": source, "kind": "missed", "from_ns": at, "until_ns": at, "count": count, "words": words}),
            );
        }
    }

    fn counts(&self) -> (Map<String, Value>, Map<String, Value>) {
        let count = |value: fn(&Traced) -> u64| {
            self.traced.iter().map(|traced| (traced.name().to_owned(), json!(value(traced)))).collect::<Map<_, _>>()
        };
        (count(Traced::events), count(|traced| traced.lost))
    }

    /// Write everything pending and report the end of this second.
    fn tick(&mut self, now_ns: u64) {
        for traced in &mut self.traced {
            traced.flush((self.reported_ns, now_ns), &self.output);
        }
        self.reported_ns = now_ns;
        let until_ns = self.traced.iter().filter_map(Traced::waits_since_ns).fold(now_ns, u64::min);
        self.untrimmed_s += 1;
        if self.untrimmed_s >= TRIM_S {
            self.untrimmed_s = 0;
            return_free_pages();
        }
        let (events, lost) = self.counts();
        let resident = read_text("/proc/self/statm", RECORD).unwrap_or_default();
        let pages: u64 = resident.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096) as u64;
        // flushing takes time: only clocks of the same moment show whether one was set since the anchor
        let clocks = Anchor::now();
        self.output.words(
            Kind::Tick,
            &json!({
                "now_ns": self.anchor.realtime(until_ns), "monotonic_ns": clocks.monotonic_ns, "realtime_ns": clocks.realtime_ns,
                "cpu_ns": cpu_ns(), "rss_bytes": pages * page, "events": events, "lost": lost, "samples": self.samples,
                "backlog": self.output.backlog(),
            }),
        );
    }

    /// Empty the rings, write the final frame and remove the instances.
    fn end(mut self, reason: &str) -> Result<(), Failure> {
        for traced in &mut self.traced {
            traced.stop()?;
        }
        while self.round(true, true)? {}
        self.tick(monotonic_ns());
        let (events, lost) = self.counts();
        self.output.words(Kind::End, &json!({"reason": reason, "events": events, "lost": lost}));
        // before waiting for a reader that may be stuck
        self.traced.clear();
        self.output.finish(PATIENCE);
        Ok(())
    }
}
