// SPDX-License-Identifier: Apache-2.0
//! Tables with given columns or with a header, separated by commas, tabs, semicolons or runs of spaces.
//!
//! Given: `time:us,latency:ns,offset:bytes,-,op`. In a header: the name of the field with its unit, as `time_us`,
//! `latency:ns`, `size (bytes)`, `offset[sectors]`. `time` and `end` are the completion, `start` is the start. Lines
//! that begin with `#` are comments. Quotes as in RFC 4180, without line breaks.

use super::field::{size_unit, time_unit, Draft, Field};
use super::{head_lines, TextFormat, Work};
use crate::event::{Dimension, Sink};
use crate::ledger::Reason;

/// Reader of such lines.
#[derive(Clone, Debug)]
pub struct Csv {
    fields: Vec<Field>,
    separator: u8,
    /// The header line, which is not counted as damage, even if repeated.
    header: Vec<u8>,
    /// Columns without a field of events.
    unknown: Vec<String>,
}

/// The separator for columns separated by runs of spaces and tabs.
const BLANKS: u8 = b' ';
/// Separators, in order of preference.
const SEPARATORS: [u8; 4] = [b'\t', b';', b',', BLANKS];
/// Number of lines used to detect the separator, or rows below a header.
const LOOK: usize = 50;

/// The field with this name and unit; the unit may be empty.
fn field(name: &str, unit: &str) -> Result<Field, String> {
    let time = |field: fn(u64) -> Field| match (unit, time_unit(unit)) {
        ("", _) => Err(format!("{name} needs a unit: {name}:s, {name}:ms, {name}:us or {name}:ns")),
        (_, None) => Err(format!("{name} has no unit {unit:?}; units: s, ms, us, ns")),
        (_, Some(unit)) => Ok(field(unit)),
    };
    let size = |field: fn(u64) -> Field| match (unit, size_unit(unit)) {
        ("", _) => Ok(field(1)),
        (_, None) => Err(format!("{name} has no unit {unit:?}; units: bytes, KiB, MiB, GiB, TiB, sectors")),
        (_, Some(unit)) => Ok(field(unit)),
    };
    let plain =
        |field: Field| if unit.is_empty() { Ok(field) } else { Err(format!("{name} has no unit, so not {unit:?}")) };
    match name {
        "" | "-" => Ok(Field::Skip),
        "time" | "timestamp" | "completion" | "end" => time(Field::Time),
        "start" => time(Field::Start),
        "latency" | "lat" | "duration" => time(Field::Latency),
        "offset" => size(Field::Offset),
        "sector" | "lba" if unit.is_empty() => Ok(Field::Offset(512)),
        "size" | "length" => size(Field::Size),
        "bytes" if unit.is_empty() => Ok(Field::Size(1)),
        "op" | "operation" => plain(Field::Op),
        "device" | "disk" => plain(Field::Name(Dimension::Device)),
        "process" | "comm" => plain(Field::Name(Dimension::Process)),
        "file" | "path" => plain(Field::Name(Dimension::File)),
        "job" => plain(Field::Name(Dimension::Job)),
        "client" => plain(Field::Name(Dimension::Client)),
        _ => Err(format!(
            "no column {name:?}; columns: time (or end), start, latency, offset, size, op, device, process, file, job, client, and - for a skipped column"
        )),
    }
}

/// Name and unit of a header word.
fn split_unit(word: &str) -> (String, String) {
    let lower = word.trim().to_lowercase();
    for (open, close) in [('(', ")"), ('[', "]"), (':', "")] {
        if let Some((name, unit)) = lower.split_once(open) {
            return (name.trim().to_owned(), unit.trim_end_matches(close).trim().to_owned());
        }
    }
    match lower.rsplit_once('_') {
        Some((name, unit)) if time_unit(unit).is_some() || size_unit(unit).is_some() => {
            (name.to_owned(), unit.to_owned())
        }
        _ => (lower, String::new()),
    }
}

/// The separator of a header.
fn separator(line: &[u8]) -> u8 {
    *SEPARATORS[..3].iter().find(|separator| line.contains(separator)).unwrap_or(&BLANKS)
}

/// Lines that are not comments.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head_lines(head, 1000).filter(|line| !line.starts_with(b"#"))
}

fn first_line(head: &[u8]) -> &[u8] {
    lines(head).next().unwrap_or(b"")
}

/// Words of a header; a unit that is separated from its name by spaces, as in `time (us)`, belongs to it.
fn headings(line: &[u8], separator: u8) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in split(line, separator) {
        let word = String::from_utf8_lossy(word.trim_ascii()).into_owned();
        match words.last_mut() {
            Some(last) if separator == BLANKS && word.starts_with(['(', '[']) => last.push_str(&word),
            _ => words.push(word),
        }
    }
    words
}

impl Csv {
    /// The reader for columns given by the user.
    pub fn of_columns(columns: &str, head: &[u8]) -> Result<Self, String> {
        let parse = |word: &str| {
            let (name, unit) = word.split_once(':').unwrap_or((word, ""));
            field(&name.trim().to_lowercase(), &unit.trim().to_lowercase()).map_err(|error| format!("columns: {error}"))
        };
        let fields = columns.split(',').map(parse).collect::<Result<Vec<_>, _>>()?;
        let mut csv = Self { fields, separator: b',', header: Vec::new(), unknown: Vec::new() };
        csv.check("columns")?;
        csv.separator = csv.separator_of(head);
        let line = first_line(head);
        let names = headings(line, csv.separator);
        let is_row = csv.row(line, &mut Work::default()).is_ok();
        if !is_row && (csv.lacks_numbers(line) || names.iter().any(|word| header_word(word).is_some())) {
            csv.header = line.to_vec();
            csv.unknown = names.into_iter().skip(csv.fields.len()).collect();
        }
        Ok(csv)
    }

    /// The separator by which most of the first lines are rows; of equal ones, the one without words left over.
    fn separator_of(&self, head: &[u8]) -> u8 {
        let mut best = (0, separator(first_line(head)));
        for separator in SEPARATORS {
            let candidate = Self { separator, ..self.clone() };
            let score = |line: &[u8]| {
                let is_row = candidate.row(line, &mut Work::default()).is_ok();
                u32::from(is_row) + u32::from(is_row && split(line, separator).count() == self.fields.len())
            };
            let total = lines(head).take(LOOK).map(score).sum::<u32>();
            if total > best.0 {
                best = (total, separator);
            }
        }
        best.1
    }

    /// Whether no word in a numeric column is a number: a header with unknown words.
    fn lacks_numbers(&self, line: &[u8]) -> bool {
        let words: Vec<_> = split(line, self.separator).collect();
        let mut numbers = self.fields.iter().zip(&words).filter(|(field, _)| field.is_number()).peekable();
        numbers.peek().is_some()
            && numbers.all(|(&field, word)| Draft::new().set(field, word.trim_ascii(), &mut Work::default()).is_err())
    }

    /// Names of columns without a field of events.
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// A line that this reader accepts.
    pub fn example(&self) -> String {
        let separator = match self.separator {
            b'\t' => "\\t".to_owned(),
            separator => char::from(separator).to_string(),
        };
        self.fields.iter().map(|field| field.example()).collect::<Vec<_>>().join(&separator)
    }

    /// The reader for the header.
    pub fn of_header(head: &[u8]) -> Result<Self, String> {
        let line = first_line(head);
        let separator = separator(line);
        let (mut fields, mut unknown) = (Vec::new(), Vec::new());
        for word in headings(line, separator) {
            let (name, unit) = split_unit(&word);
            fields.push(match field(&name, &unit) {
                Ok(field) => field,
                // a known column without a valid unit must not be guessed
                Err(error) if field(&name, "s").is_ok() || field(&name, "").is_ok() => {
                    return Err(format!("header: {error}"))
                }
                Err(_) => {
                    unknown.push(word);
                    Field::Skip
                }
            });
        }
        let csv = Self { fields, separator, header: line.to_vec(), unknown };
        csv.check("header")?;
        Ok(csv)
    }

    fn check(&self, place: &str) -> Result<(), String> {
        let timed = |field: &Field| matches!(field, Field::Time(_) | Field::Start(_));
        if !self.fields.iter().any(timed) {
            return Err(format!(
                "{place}: no time; say which column it is, as in time:us,latency:ns,offset:bytes,size:bytes,op"
            ));
        }
        for (at, field) in self.fields.iter().enumerate() {
            let same =
                |other: &Field| *other != Field::Skip && std::mem::discriminant(other) == std::mem::discriminant(field);
            let name = matches!(field, Field::Name(_));
            if self.fields[..at].iter().any(|other| if name { other == field } else { same(other) }) {
                return Err(format!("{place}: the same field twice"));
            }
        }
        Ok(())
    }

    /// Whether a file is a table with a header that names a time and another field. Words separated only by spaces may
    /// be prose; they are a header if they have units and are followed by a row.
    pub fn detect(head: &[u8]) -> Option<bool> {
        let line = first_line(head);
        let separator = separator(line);
        let words = headings(line, separator);
        let known = words.iter().filter(|word| header_word(word).is_some()).count();
        let timed = words.iter().any(|word| {
            let (name, unit) = split_unit(word);
            matches!(field(&name, if unit.is_empty() { "s" } else { &unit }), Ok(Field::Time(_) | Field::Start(_)))
        });
        let is_table = || {
            let found = Self::of_header(head);
            found
                .is_ok_and(|csv| lines(head).skip(1).take(LOOK).any(|line| csv.row(line, &mut Work::default()).is_ok()))
        };
        Some(timed && known >= 2 && (separator != BLANKS || is_table()))
    }

    fn row(&self, line: &[u8], work: &mut Work) -> Result<Draft, Reason> {
        let mut draft = Draft::new();
        let mut seen = 0;
        if self.separator == BLANKS || memchr::memchr(b'"', line).is_some() {
            for word in split(line, self.separator).take(self.fields.len()) {
                draft.set(self.fields[seen], word.trim_ascii(), work)?;
                seen += 1;
            }
        } else {
            for word in line.split(|&byte| byte == self.separator).take(self.fields.len()) {
                draft.set(self.fields[seen], word.trim_ascii(), work)?;
                seen += 1;
            }
        }
        if seen < self.fields.len() {
            return Err("too few columns");
        }
        Ok(draft)
    }
}

/// Whether a word is the name of a field.
fn header_word(word: &str) -> Option<()> {
    let (name, unit) = split_unit(word);
    let known = !name.is_empty()
        && name != "-"
        && (field(&name, &unit).is_ok() || (unit.is_empty() && field(&name, "s").is_ok()));
    known.then_some(())
}

/// Fields of a line, unquoted.
fn split(line: &[u8], separator: u8) -> impl Iterator<Item = Vec<u8>> + '_ {
    let blanks = separator == BLANKS;
    let ends = move |byte: u8| if blanks { byte.is_ascii_whitespace() } else { byte == separator };
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let mut text = rest.take()?;
        if blanks {
            text = text.trim_ascii_start();
            if text.is_empty() {
                return None;
            }
        }
        let mut word = Vec::new();
        let mut quoted = false;
        let mut at = 0;
        while at < text.len() {
            match text[at] {
                b'"' if quoted && text.get(at + 1) == Some(&b'"') => {
                    word.push(b'"');
                    at += 1;
                }
                b'"' => quoted = !quoted,
                byte if ends(byte) && !quoted => {
                    rest = Some(&text[at + 1..]);
                    return Some(word);
                }
                byte => word.push(byte),
            }
            at += 1;
        }
        Some(word)
    })
}

impl TextFormat for Csv {
    fn line<S: Sink>(&mut self, line: &[u8], _whole: bool, work: &mut Work, sink: &mut S) -> Result<(), Reason> {
        if line.iter().all(u8::is_ascii_whitespace)
            || line.starts_with(b"#")
            || (!self.header.is_empty() && line == self.header)
        {
            return Ok(());
        }
        let event = self.row(line, work)?.finish()?;
        sink.event(&event, &work.names);
        Ok(())
    }
}
