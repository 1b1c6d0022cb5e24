//! CSV and TSV whose columns are given, or named in a header.
//!
//! Given: `time:us,latency:ns,offset:bytes,-,op`. In a header: the field's name with its unit, as `time_us`, `latency:ns`,
//! `size (bytes)`, `offset[sectors]`. Lines that begin with `#` are comments. Quotes as in RFC 4180, without line ends inside.

use super::field::{size_unit, time_unit, Draft, Field};
use super::{head_lines, TextFormat, Work};
use crate::event::{Dimension, Sink};
use crate::ledger::Reason;

/// A reader of such lines.
#[derive(Clone, Debug)]
pub struct Csv {
    fields: Vec<Field>,
    separator: u8,
    /// The header, which is no damage, once or again.
    header: Vec<u8>,
}

/// The field of a name and a unit; the unit may be empty.
fn field(name: &str, unit: &str) -> Result<Field, String> {
    let time = |field: fn(u64) -> Field| match (unit, time_unit(unit)) {
        ("", _) => Err(format!("{name} needs a unit: {name}:s, {name}:ms, {name}:us or {name}:ns")),
        (_, None) => Err(format!("{name} has no unit {unit:?}; there are s, ms, us, ns")),
        (_, Some(unit)) => Ok(field(unit)),
    };
    let size = |field: fn(u64) -> Field| match (unit, size_unit(unit)) {
        ("", _) => Ok(field(1)),
        (_, None) => Err(format!("{name} has no unit {unit:?}; there are bytes, KiB, MiB, GiB, TiB, sectors")),
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
        _ => Err(format!(
            "no column {name:?}; there are time, start, latency, offset, size, op, device, process, file, job, and - for what is skipped"
        )),
    }
}

/// Name and unit of a word of a header.
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

fn separator(line: &[u8]) -> u8 {
    *b"\t;".iter().find(|separator| line.contains(separator)).unwrap_or(&b',')
}

fn first_line(head: &[u8]) -> &[u8] {
    head_lines(head, 1000).find(|line| !line.starts_with(b"#")).unwrap_or(b"")
}

impl Csv {
    /// The reader for columns as the user gives them.
    pub fn of_columns(columns: &str, head: &[u8]) -> Result<Self, String> {
        let parse = |word: &str| {
            let (name, unit) = word.split_once(':').unwrap_or((word, ""));
            field(&name.trim().to_lowercase(), &unit.trim().to_lowercase()).map_err(|error| format!("columns: {error}"))
        };
        let fields = columns.split(',').map(parse).collect::<Result<Vec<_>, _>>()?;
        let line = first_line(head);
        let mut csv = Self { fields, separator: separator(line), header: Vec::new() };
        csv.check("columns")?;
        // a first line without numbers where numbers belong is a header
        let wordy = csv.row(line, &mut Work::default()).is_err() && !line.iter().any(u8::is_ascii_digit);
        if wordy || split(line, csv.separator).any(|word| header_word(&word).is_some()) {
            csv.header = line.to_vec();
        }
        Ok(csv)
    }

    /// The reader that the header asks for.
    pub fn of_header(head: &[u8]) -> Result<Self, String> {
        let line = first_line(head);
        let separator = separator(line);
        let mut fields = Vec::new();
        for word in split(line, separator) {
            let word = String::from_utf8_lossy(&word).into_owned();
            let (name, unit) = split_unit(&word);
            fields.push(match field(&name, &unit) {
                Ok(field) => field,
                // a column that is known but has no unit, or a wrong one, must not be guessed
                Err(error) if field(&name, "s").is_ok() || field(&name, "").is_ok() => {
                    return Err(format!("header: {error}"))
                }
                Err(_) => Field::Skip,
            });
        }
        let csv = Self { fields, separator, header: line.to_vec() };
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

    /// Whether a file is a table with a header that names a time and something else.
    pub fn detect(head: &[u8]) -> Option<bool> {
        let line = first_line(head);
        let known = split(line, separator(line)).filter(|word| header_word(word).is_some()).count();
        let timed = split(line, separator(line)).any(|word| {
            let (name, unit) = split_unit(&String::from_utf8_lossy(&word));
            matches!(field(&name, if unit.is_empty() { "s" } else { &unit }), Ok(Field::Time(_) | Field::Start(_)))
        });
        Some(timed && known >= 2)
    }

    fn row(&self, line: &[u8], work: &mut Work) -> Result<Draft, Reason> {
        let mut draft = Draft::new();
        let mut seen = 0;
        if memchr::memchr(b'"', line).is_none() {
            for word in line.split(|&byte| byte == self.separator).take(self.fields.len()) {
                draft.set(self.fields[seen], word.trim_ascii(), work)?;
                seen += 1;
            }
        } else {
            for word in split(line, self.separator).take(self.fields.len()) {
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

/// Whether a word names a field.
fn header_word(word: &[u8]) -> Option<()> {
    let (name, unit) = split_unit(std::str::from_utf8(word).ok()?);
    let known = !name.is_empty()
        && name != "-"
        && (field(&name, &unit).is_ok() || (unit.is_empty() && field(&name, "s").is_ok()));
    known.then_some(())
}

/// Fields of a line, quotes undone.
fn split(line: &[u8], separator: u8) -> impl Iterator<Item = Vec<u8>> + '_ {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest.take()?;
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
                byte if byte == separator && !quoted => {
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
