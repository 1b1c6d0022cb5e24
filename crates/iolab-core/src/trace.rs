// SPDX-License-Identifier: Apache-2.0
//! A trace: its format, its reader, and its events block by block.

use crate::error::TraceError;
use crate::event::Sink;
use crate::input::{self, Input};
use crate::ledger::Ledger;
use crate::lines::{Lines, Piece, BLOCK};
use crate::readers::blkparse::Blkparse;
use crate::readers::blktrace::Blktrace;
use crate::readers::csv::Csv;
use crate::readers::fio_hist::FioHist;
use crate::readers::fio_layout::Sample;
use crate::readers::fio_log::{FioLog, Value};
use crate::readers::table::Table;
use crate::readers::{biosnoop, blktrace, csv, iosnoop, TextFormat, Work};
use std::fs::File;
use std::io::{self, Read};

/// Names of the formats, in the order in which they are tried.
pub const FORMATS: [&str; 11] = [
    "blktrace",
    "fio-hist",
    "fio-lat",
    "fio-lat-us",
    "fio-bw",
    "fio-iops",
    "blkparse",
    "biosnoop",
    "biosnoop-bt",
    "iosnoop",
    "csv",
];

/// Whether a beginning has a format: yes, no, or maybe. The logs of fio differ by name only, so the name is used too.
fn detect_one(format: &str, head: &[u8], name: &str) -> Option<bool> {
    match format {
        "blktrace" => blktrace::detect(head),
        "fio-hist" => FioHist::detect(head),
        "fio-lat" | "fio-lat-us" | "fio-bw" | "fio-iops" => {
            let Some(sample) = Sample::of(head) else { return Some(false) };
            if sample.format(name).0 != format {
                return Some(false);
            }
            let named = crate::readers::fio_layout::kind_of_name(name).is_some();
            sample.looks_like_fio().or(if named { Some(true) } else { None })
        }
        "blkparse" => Blkparse::detect(head),
        "biosnoop" => biosnoop::detect(head),
        "biosnoop-bt" => biosnoop::detect_bpftrace(head),
        "iosnoop" => iosnoop::detect(head),
        "csv" => csv::Csv::detect(head),
        _ => Some(false),
    }
}

/// The format of a beginning: the first with the answer yes, else the only one without the answer no.
pub fn detect(head: &[u8], name: &str) -> Option<&'static str> {
    let answers = FORMATS.map(|format| detect_one(format, head, name));
    let sure = answers.iter().position(|&answer| answer == Some(true));
    let mut open = answers.iter().enumerate().filter(|answer| answer.1.is_none());
    let at = sure.or_else(|| open.next().filter(|_| open.next().is_none()).map(|answer| answer.0))?;
    Some(FORMATS[at])
}

/// A reader of lines, of any format.
#[derive(Clone, Debug)]
pub enum AnyText {
    /// fio's logs of latency, bandwidth, IOPS.
    FioLog(FioLog),
    /// fio's histogram logs.
    FioHist(FioHist),
    /// blkparse's text.
    Blkparse(Blkparse),
    /// biosnoop, iosnoop.
    Table(Table),
    /// CSV, TSV.
    Csv(Csv),
}

macro_rules! each {
    ($any:expr, $reader:ident => $do:expr) => {
        match $any {
            AnyText::FioLog($reader) => $do,
            AnyText::FioHist($reader) => $do,
            AnyText::Blkparse($reader) => $do,
            AnyText::Table($reader) => $do,
            AnyText::Csv($reader) => $do,
        }
    };
}

impl AnyText {
    /// Reads complete lines.
    pub fn lines<S: Sink>(&mut self, block: &[u8], work: &mut Work, sink: &mut S) {
        each!(self, reader => reader.lines(block, work, sink));
    }

    /// Reads the last line, which has no line end.
    pub fn cut<S: Sink>(&mut self, line: &[u8], work: &mut Work, sink: &mut S) {
        work.line += 1;
        if let Err(reason) = each!(self, reader => reader.line(line, false, work, sink)) {
            work.damage(reason);
        }
    }

    /// End of the data.
    pub fn finish<S: Sink>(&mut self, work: &mut Work, sink: &mut S) {
        each!(self, reader => reader.finish(work, sink));
    }

    /// A line that the reader accepts.
    fn example(&self) -> String {
        match self {
            AnyText::FioLog(_) => "1000, 250000, 0, 4096, 0".to_owned(),
            AnyText::FioHist(_) => "1000, 0, 4096, and its 1856 counts".to_owned(),
            AnyText::Blkparse(_) => "8,0 1 1 0.000001000 42 D R 8 + 8 [fio]".to_owned(),
            AnyText::Table(reader) => reader.example(),
            AnyText::Csv(reader) => reader.example(),
        }
    }

    fn is_independent(&self) -> bool {
        each!(self, reader => reader.is_independent())
    }
}

enum Source {
    Text { reader: AnyText, lines: Lines<Box<dyn Read + Send>> },
    Blktrace(Blktrace),
}

/// An open trace.
pub struct Trace {
    source: Source,
    /// An uncompressed file, its size, and the reader; its lines can be read in any order.
    pub plain: Option<(File, u64, AnyText)>,
    /// Name of the format.
    pub format: &'static str,
    /// Assumptions about what the file does not state.
    pub assumptions: Vec<String>,
    /// Whether each line is the mean of a window.
    pub averaged: bool,
    /// Nanoseconds per unit of the clock of the trace.
    pub resolution_ns: i64,
}

impl Trace {
    /// Open a path with a given or detected format; `columns` are those of a CSV file.
    pub fn open(path: &str, format: Option<&str>, columns: Option<&str>) -> Result<Self, TraceError> {
        let files = blktrace_files(path);
        let first = files.first().map_or(path, String::as_str);
        let input = input::open(first)?;
        let others = files.iter().filter(|file| *file != first);
        let mut more = Vec::new();
        if !files.is_empty() {
            for file in others {
                more.push(input::open(file)?.bytes);
            }
        }
        let shown = if path == "-" { "standard input" } else { path };
        Self::of_input(input, more, format, columns).map_err(|error| TraceError::new(format!("{shown}: {error}")))
    }

    /// Open an input; `more` are the other files of a blktrace.
    pub fn of_input(
        input: Input,
        more: Vec<Box<dyn Read + Send>>,
        format: Option<&str>,
        columns: Option<&str>,
    ) -> Result<Self, TraceError> {
        if input.head.is_empty() && more.is_empty() {
            return Err(TraceError::new("the file is empty"));
        }
        let is_given = format.is_some();
        let format = match (format, columns) {
            (Some(name), None) => known(name)?,
            (None | Some("csv"), Some(_)) => "csv",
            (Some(_), Some(_)) => {
                return Err(TraceError::new("columns describe a CSV file, and another format is given"))
            }
            (None, None) => detect(&input.head, &input.name).ok_or_else(|| {
                TraceError::new(
                    "unknown trace format; for a table, give its columns, as in time:us,latency:ns,offset:bytes,op",
                )
            })?,
        };
        if format == "blktrace" {
            let files = std::iter::once(input.bytes).chain(more).collect();
            return Ok(Self::new(Source::Blktrace(Blktrace::new(files)), format, 1));
        }
        let head = &input.head;
        let mut assumptions = Vec::new();
        let mut averaged = false;
        let mut resolution = 1;
        let reader = match format {
            "fio-hist" => {
                resolution = 1_000_000;
                let reader = FioHist::of_head(head)
                    .ok_or_else(|| TraceError::new("no histogram log of fio: no line has its number of bins"))?;
                AnyText::FioHist(reader)
            }
            "blkparse" => AnyText::Blkparse(Blkparse::default()),
            "biosnoop" => AnyText::Table(assume(biosnoop::reader(head), &mut assumptions)),
            "biosnoop-bt" => {
                resolution = 1_000_000;
                AnyText::Table(assume(biosnoop::reader_bpftrace(head), &mut assumptions))
            }
            "iosnoop" => AnyText::Table(iosnoop::reader(head).map_err(TraceError::new)?),
            "csv" => {
                let reader = columns
                    .map_or_else(|| Csv::of_header(head), |columns| Csv::of_columns(columns, head))
                    .map_err(TraceError)?;
                if !reader.unknown().is_empty() {
                    assumptions.push(format!("skipped unknown columns: {}", reader.unknown().join(", ")));
                }
                AnyText::Csv(reader)
            }
            _ => {
                resolution = 1_000_000;
                let sample = Sample::of(head)
                    .ok_or_else(|| TraceError::new("no log of fio: lines are not whole numbers, comma-separated"))?;
                averaged = sample.is_averaged();
                let (guess, assumed) = sample.format(&input.name);
                assumptions.extend(assumed.filter(|_| guess == format && !is_given));
                let value = match format {
                    "fio-lat" => Value::Latency(1),
                    "fio-lat-us" => Value::Latency(1000),
                    _ => Value::Rate,
                };
                AnyText::FioLog(FioLog::new(sample.layout(value)))
            }
        };
        let plain = input.plain.filter(|_| reader.is_independent()).map(|(file, size)| (file, size, reader.clone()));
        let source = Source::Text { reader, lines: Lines::new(input.bytes, BLOCK) };
        Ok(Self { plain, assumptions, averaged, ..Self::new(source, format, resolution) })
    }

    fn new(source: Source, format: &'static str, resolution_ns: i64) -> Self {
        Self { source, plain: None, format, assumptions: Vec::new(), averaged: false, resolution_ns }
    }

    /// Fails if a trace was read to its end and none of its data could be read; `seen` is the number of events.
    pub fn refuse_unread(&self, seen: u64, ledger: &Ledger, lines_of_block: &[u32]) -> Result<(), TraceError> {
        if seen > 0 || ledger.damaged == 0 || ledger.unpaired > 0 {
            return Ok(());
        }
        let first = ledger.examples(lines_of_block);
        let example = first.first().map_or(String::new(), |(line, reason)| format!("; line {line}: {reason}"));
        let (what, remedy) = match &self.source {
            Source::Text { reader, .. } => {
                ("lines", format!("; a line of {} is such as '{}'", self.format, reader.example()))
            }
            Source::Blktrace(_) => ("records", String::new()),
        };
        Err(TraceError::new(format!("none of {} {what} could be read{example}{remedy}", ledger.damaged)))
    }

    /// Read the next block. Returns false at the end.
    pub fn step<S: Sink>(&mut self, work: &mut Work, sink: &mut S) -> io::Result<bool> {
        match &mut self.source {
            Source::Blktrace(reader) => reader.step(8192, work, sink),
            Source::Text { reader, lines } => {
                match lines.read()? {
                    Piece::Lines(block) => reader.lines(block, work, sink),
                    Piece::Cut(line) => reader.cut(line, work, sink),
                    Piece::TooLong => {
                        work.line += 1;
                        work.damage("a line longer than 1 MiB");
                    }
                    Piece::Damaged => {
                        work.line += 1;
                        work.damage("the compressed data end here, damaged or truncated");
                    }
                    Piece::End => {
                        reader.finish(work, sink);
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

fn assume<T>((reader, assumed): (T, Option<String>), assumptions: &mut Vec<String>) -> T {
    assumptions.extend(assumed);
    reader
}

fn known(name: &str) -> Result<&'static str, TraceError> {
    FORMATS
        .into_iter()
        .find(|format| *format == name)
        .ok_or_else(|| TraceError::new(format!("no format {name:?}; formats: {}", FORMATS.join(", "))))
}

/// The files of all CPUs for a path of one of them (`x.blktrace.3`) or their common name (`x`).
fn blktrace_files(path: &str) -> Vec<String> {
    let numbered = |name: &str| {
        let (stem, rest) = name.rsplit_once(".blktrace.")?;
        let number = rest.split('.').next()?;
        let ending = &rest[number.len()..];
        let known = matches!(ending, "" | ".gz" | ".xz" | ".zst");
        (known && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| (stem.to_owned(), number.parse::<u64>().ok()))
    };
    let whole = std::path::Path::new(path);
    let Some(name) = whole.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let stem = match numbered(name) {
        Some((stem, _)) => stem,
        None if whole.exists() => return Vec::new(),
        None => name.to_owned(),
    };
    let folder = whole.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(std::path::Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<(Option<u64>, String)> = entries
        .flatten()
        .filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let (other, number) = numbered(&file)?;
            (other == stem).then(|| (number, folder.join(&file).to_string_lossy().into_owned()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|entry| entry.1).collect()
}
