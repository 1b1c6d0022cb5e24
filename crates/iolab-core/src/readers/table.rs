// SPDX-License-Identifier: Apache-2.0
//! Tables of words separated by spaces, with a header: output of biosnoop and iosnoop.
//!
//! One column may contain spaces (a command name, a path). It gets the words that remain after the columns before it
//! are filled from the left and those after it from the right.
//!
//! A file may have several such tables, as of two recordings in sequence: each header applies to the lines below it.
//! Text before a header, and from an empty line to the next row or header, is prose.

use super::field::{Draft, Field};
use super::{TextFormat, Work, CUT};
use crate::event::Sink;
use crate::ledger::Reason;
use memchr::memmem;

/// A header word and the meaning of its column.
pub type Heading = (&'static str, Field);

/// Reader of such lines.
#[derive(Clone, Debug)]
pub struct Table {
    fields: Vec<Field>,
    wide: usize,
    headings: &'static [Heading],
    /// Words that are in every header of this tool.
    required: &'static [&'static str],
    /// The column that may contain spaces.
    wide_of: fn(&[Field]) -> Option<usize>,
    /// Whether a line that is not a row is prose, not damage.
    outside: bool,
}

impl Table {
    /// A reader for these columns; the one at `wide` may contain spaces.
    pub fn new(
        fields: Vec<Field>,
        wide: usize,
        headings: &'static [Heading],
        required: &'static [&'static str],
        wide_of: fn(&[Field]) -> Option<usize>,
    ) -> Self {
        Self { fields, wide, headings, required, wide_of, outside: false }
    }

    /// The reader for a header; `None` if the line is not a header.
    pub fn of_header(
        line: &[u8],
        headings: &'static [Heading],
        required: &'static [&'static str],
        wide_of: fn(&[Field]) -> Option<usize>,
    ) -> Option<Self> {
        let mut fields = header(line, headings, required)?;
        // of two latencies (iosnoop's DELTA and DTIME) the first is used: it is from start to completion
        let mut latencies = fields.iter_mut().filter(|field| matches!(field, Field::Latency(_)));
        latencies.next();
        latencies.for_each(|field| *field = Field::Skip);
        let wide = wide_of(&fields).unwrap_or(fields.len() - 1);
        Some(Self { fields, wide, headings, required, wide_of, outside: true })
    }

    /// Meaning of the columns.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// A line that this reader accepts.
    pub fn example(&self) -> String {
        self.fields
            .iter()
            .map(|field| if *field == Field::Skip { "1" } else { field.example() })
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn row(&self, line: &[u8], work: &mut Work) -> Result<Draft, Reason> {
        let mut draft = Draft::new();
        let mut rest = line.trim_ascii();
        for &field in &self.fields[..self.wide] {
            let end = rest.iter().position(u8::is_ascii_whitespace).ok_or("too few columns")?;
            draft.set(field, &rest[..end], work)?;
            rest = rest[end..].trim_ascii_start();
        }
        for &field in self.fields[self.wide + 1..].iter().rev() {
            let start = rest.iter().rposition(u8::is_ascii_whitespace).ok_or("too few columns")?;
            draft.set(field, &rest[start + 1..], work)?;
            rest = rest[..start].trim_ascii_end();
        }
        if rest.is_empty() {
            return Err("too few columns");
        }
        draft.set(self.fields[self.wide], rest, work)?;
        Ok(draft)
    }
}

fn header(line: &[u8], headings: &[Heading], required: &[&str]) -> Option<Vec<Field>> {
    let text = std::str::from_utf8(line).ok()?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let known = |word: &str| headings.iter().find(|heading| heading.0 == word).map(|heading| heading.1);
    let complete = required.iter().all(|wanted| words.contains(wanted));
    // a line with numbers is a row, whatever words it contains
    let is_header =
        complete && !words.iter().any(|word| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
    is_header.then(|| words.into_iter().map(|word| known(word).unwrap_or(Field::Skip)).collect())
}

/// Messages of tracers about lost events: `Possibly lost 12 samples`, `Lost 12 events`.
pub fn losses(line: &[u8]) -> Option<u64> {
    let at = memmem::find(line, b"ost ")?;
    if !matches!(line.get(at.checked_sub(1)?), Some(b'L' | b'l')) {
        return None;
    }
    let mut words = line[at + 4..].split(|&byte| byte == b' ');
    let count = crate::number::unsigned(words.next()?)?;
    let what = words.next()?;
    (what.starts_with(b"events") || what.starts_with(b"samples")).then_some(count)
}

impl TextFormat for Table {
    fn line<S: Sink>(&mut self, line: &[u8], whole: bool, work: &mut Work, sink: &mut S) -> Result<(), Reason> {
        let chatter = |line: &[u8]| {
            line.starts_with(b"Attaching ") || line.starts_with(b"Tracing ") || line.starts_with(b"Detaching")
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            self.outside = true;
            return Ok(());
        }
        if chatter(line) {
            return Ok(());
        }
        if let Some(lost) = losses(line) {
            work.ledger.losses = work.ledger.losses.saturating_add(lost);
            return Ok(());
        }
        match self.row(line, work).and_then(Draft::finish) {
            Ok(_) if !whole => Err(CUT),
            Ok(event) => {
                self.outside = false;
                sink.event(&event, &work.names);
                Ok(())
            }
            Err(reason) => {
                if let Some(next) = Self::of_header(line, self.headings, self.required, self.wide_of) {
                    *self = Self { outside: false, ..next };
                } else if !self.outside {
                    return Err(if whole { reason } else { CUT });
                }
                Ok(())
            }
        }
    }

    fn is_independent(&self) -> bool {
        false // a header changes the meaning of the lines below it
    }
}

#[cfg(test)]
mod tests {
    use super::losses;

    #[test]
    fn messages_of_lost_events() {
        assert_eq!(losses(b"Possibly lost 12 samples"), Some(12));
        assert_eq!(losses(b"Lost 7 events"), Some(7));
        assert_eq!(losses(b"0.1 ghost 7 sda W 0 512 1.0"), None);
        assert_eq!(losses(b"0.1 lost 7 sda W 0 512 1.0"), None);
    }
}
