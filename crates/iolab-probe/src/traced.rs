// SPDX-License-Identifier: Apache-2.0
//! A source with its instance and rings: reads records and writes frames.

use crate::clock::{monotonic_ns, Anchor};
use crate::failure::{Failure, NOT_PERMITTED};
use crate::instance::Instance;
use crate::output::Output;
use crate::rings::Rings;
use crate::source::Source;
use crate::tracefs::{event_file, read, write};
use iolab_core::frames::events::Rows;
use iolab_core::frames::Kind;
use iolab_core::tracefs::format::Format;
use serde_json::{json, Map, Value};
use std::collections::HashMap;
use std::path::Path;

/// Maximum number of rows of a frame.
const ROWS: usize = 1 << 16;

/// Start and end of a time in which records are missing.
type Gap = (u64, u64);

/// What to do if the format of a tracepoint can't be read.
const UNREADABLE: &str = "this version of iolab cannot record this kernel: record without this source";

/// Formats of tracepoints by name.
pub type Formats = HashMap<&'static str, Format>;

/// Formats of a source's tracepoints by name, and a note on each that this kernel lacks.
pub fn formats(source: &dyn Source, tracefs: &Path) -> Result<(Formats, Vec<String>), Failure> {
    let (mut formats, mut notes) = (HashMap::new(), Vec::new());
    for (_, point) in source.tracepoints().into_iter().enumerate().filter(|(place, _)| source.wants(*place)) {
        let path = event_file(tracefs, point.group, point.name, "format");
        match read(&path) {
            Ok(text) => match Format::parse(&text) {
                Ok(format) => {
                    formats.insert(point.name, format);
                }
                Err(error) if point.needed => {
                    return Err(Failure::not_possible(format!("{}: {error}; {UNREADABLE}", path.display())))
                }
                Err(error) => notes.push(format!("{}: {error}", path.display())),
            },
            Err(failure) if point.needed && failure.code == NOT_PERMITTED => return Err(failure),
            Err(_) if point.needed => {
                let why = source.why_absent(tracefs);
                return Err(Failure::not_possible(format!("no tracepoint {}:{}: {why}", point.group, point.name)));
            }
            Err(_) => {
                let unknown = source.unknown_without(&point);
                let separator = if unknown.is_empty() { "" } else { ": " };
                notes.push(format!("this kernel has no tracepoint {}:{}{separator}{unknown}", point.group, point.name));
            }
        }
    }
    Ok((formats, notes))
}

/// A running source. `rings` is dropped before `instance`, which can't be removed while rings are open.
pub struct Traced {
    source: Box<dyn Source>,
    rings: Rings,
    instance: Instance,
    /// Index in the source's list, by event number.
    points: HashMap<u16, usize>,
    rows: Rows,
    gap: Option<Gap>,
    lossy: bool,
    /// Records dropped from the rings so far.
    pub lost: u64,
    anchor: Anchor,
    covered_ns: u64,
    facts: Map<String, Value>,
}

impl Traced {
    /// Enable the tracepoints of the source.
    pub fn start(mut source: Box<dyn Source>, tracefs: &Path, ring_kib: u64, anchor: Anchor) -> Result<Self, Failure> {
        let points = source.tracepoints();
        let (formats, notes) = formats(source.as_ref(), tracefs)?;
        source.bind(&formats)?;
        let instance = Instance::make(tracefs, source.name(), ring_kib)?;
        let rings = Rings::open(&instance)?;
        let mut by_number = HashMap::new();
        for (place, point) in points.iter().enumerate() {
            let Some(format) = formats.get(point.name).filter(|_| source.wants(place)) else { continue };
            let event = event_file(&instance.file(""), point.group, point.name, "");
            if !point.filter.is_empty() {
                write(&event.join("filter"), &point.filter)?;
            }
            write(&event.join("enable"), "1")?;
            by_number.insert(format.id, place);
        }
        instance.switch(true)?;
        let covered_ns = monotonic_ns();
        source.started();
        let mut facts = source.facts();
        facts.insert("ring_kib".into(), json!(instance.ring_kib()));
        if let Some(words) = facts.entry("words").or_insert_with(|| json!([])).as_array_mut() {
            words.extend(notes.into_iter().map(Value::from));
        }
        let rows = Rows::default();
        let (lost, gap, lossy) = (0, None, false);
        Ok(Self { source, rings, instance, points: by_number, rows, gap, lossy, lost, anchor, covered_ns, facts })
    }

    /// Name of the source.
    pub fn name(&self) -> &'static str {
        self.source.name()
    }

    /// Facts of the source for the first frame.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Time from which all records of the source are read, in ns since 1970.
    pub fn covered_ns(&self) -> i64 {
        self.anchor.realtime(self.covered_ns)
    }

    /// Number of I/Os so far.
    pub fn events(&self) -> u64 {
        self.source.events()
    }

    /// Stop the tracepoints.
    pub fn stop(&mut self) -> Result<(), Failure> {
        self.source.stopped(monotonic_ns());
        self.instance.switch(false)
    }

    /// All I/O up to this time was delivered; None if no I/O is pending.
    pub fn waits_since_ns(&self) -> Option<u64> {
        self.source.waits_since_ns()
    }

    /// Read the rings. Returns whether they have more. `last` includes the youngest records.
    pub fn round(&mut self, look: bool, last: bool, output: &Output) -> Result<bool, Failure> {
        self.source.prepare();
        let round = self.rings.round(look || last)?;
        if round.dropped > 0 {
            self.lost += round.dropped;
            let from = self.gap.map_or(round.lossy_ns.0, |gap| gap.0.min(round.lossy_ns.0));
            self.gap = Some((from, round.lossy_ns.1));
            self.loss(
                output,
                "overrun",
                round.lossy_ns,
                round.dropped,
                "records dropped because a ring was full: --ring-kib enlarges the rings",
            );
        }
        let Self { source, rings, points, rows, gap, lossy, .. } = self;
        let until_ns = if last && !round.more { u64::MAX } else { round.until_ns };
        rings.merge.drain(until_ns, |_, time_ns, record| {
            if let Some((from, until)) = *gap {
                if time_ns > until {
                    source.lossy(false);
                    (*gap, *lossy) = (None, false);
                } else if time_ns >= from && !*lossy {
                    source.lossy(true);
                    *lossy = true;
                }
            }
            let id = record.get(..2).map(|id| u16::from_le_bytes([id[0], id[1]]));
            if let Some(&point) = id.and_then(|id| points.get(&id)) {
                source.take(point, time_ns, record, rows);
            }
            if rows.len() >= ROWS {
                output.columns(Kind::Events, &rows.payload(source.name()));
            }
        });
        let faults = self.rings.merge.take_faults();
        if faults != Default::default() {
            // inconsistent pages, or pages that report missed ones: no I/O in flight can be trusted
            self.source.damaged();
            let count = faults.torn + faults.missed;
            self.loss(output, "damaged", round.lossy_ns, count, "pages of a trace ring that are torn or follow a gap");
        }
        self.source.round(until_ns, &mut self.rows)?;
        for (pid, process, command) in self.source.processes() {
            let first_ns = self.anchor.realtime(round.until_ns);
            let words = json!({"pid": pid, "process": process, "command": command, "first_ns": first_ns});
            output.words(Kind::Process, &words);
        }
        Ok(round.more)
    }

    /// Write pending rows, and report the losses of this span of time.
    pub fn flush(&mut self, span_ns: Gap, output: &Output) {
        if !self.rows.is_empty() {
            output.columns(Kind::Events, &self.rows.payload(self.source.name()));
        }
        let beyond = self.rows.take_beyond();
        if beyond > 0 {
            let words = "I/Os with a name beyond the maximum number of names: shown as (other)";
            self.loss(output, "unknown-name", span_ns, beyond, words);
        }
        for (kind, count, words) in self.source.losses().lost {
            self.loss(output, kind, span_ns, count, words);
        }
    }

    fn loss(&self, output: &Output, kind: &str, span_ns: Gap, count: u64, words: &str) {
        let (from, until) = (self.anchor.realtime(span_ns.0), self.anchor.realtime(span_ns.1));
        let source = self.source.name();
        output.words(
            Kind::Loss,
            &json!({"source": source, "kind": kind, "from_ns": from, "until_ns": until, "count": count, "words": words}),
        );
    }
}
