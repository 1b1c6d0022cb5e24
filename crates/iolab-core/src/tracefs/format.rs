// SPDX-License-Identifier: Apache-2.0
//! Formats of events (`events/GROUP/NAME/format`) and of pages (`events/header_page`) from the kernel.
//!
//! Offsets and sizes differ between kernels (`rwbs` has 8, 9 or 10 bytes), so none is fixed here.

use crate::error::TraceError;

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Offset.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// Whether it is a signed number.
    pub signed: bool,
    /// Type.
    pub kind: Kind,
}

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number, or a pointer.
    Number,
    /// Characters.
    Characters,
    /// The position of characters in the record (`__data_loc`): offset in the low half, length in the high half.
    CharactersFromStart,
    /// The same (`__rel_loc`), with an offset from the end of the field.
    CharactersFromField,
    /// Anything else, such as an array of numbers.
    Other,
}

/// Maximum end of a field in a record.
const LIMIT: usize = 1 << 20;

/// Format of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Name.
    pub name: String,
    /// Event number, at the start of a record.
    pub id: u16,
    /// Fields, starting with those common to all events.
    pub fields: Vec<Field>,
}

impl Format {
    /// Parse a format.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let name = value("name:").filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| TraceError::new("a format file without the event's name"))?.to_owned();
        let id = value("ID:").and_then(|id| id.parse().ok());
        let id =
            id.ok_or_else(|| TraceError::new(format!("the format file of {name} has no number in its line ID")))?;
        let fields = fields(text).map_err(|error| TraceError::new(format!("the format file of {name}: {error}")))?;
        Ok(Self { name, id, fields })
    }

    /// A field by name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// A number by name.
    pub fn number(&self, name: &str) -> Result<Number, TraceError> {
        let field = self.needed(name)?;
        match (field.size, field.kind) {
            (1 | 2 | 4 | 8, Kind::Number) => {
                Ok(Number { offset: field.offset, width: field.size as u8, signed: field.signed })
            }
            _ => Err(TraceError::new(format!("the field {name} of {} is not a number", self.name))),
        }
    }

    /// A number with this size by name.
    pub fn number_of(&self, name: &str, bytes: u8) -> Result<Number, TraceError> {
        let number = self.number(name)?;
        if number.width != bytes {
            let width = number.width;
            let text = format!("the field {name} of {} has {width} bytes, and iolab reads {bytes}", self.name);
            return Err(TraceError::new(text));
        }
        Ok(number)
    }

    /// A text by name.
    pub fn text(&self, name: &str) -> Result<Text, TraceError> {
        let field = self.needed(name)?;
        let is_position = matches!(field.kind, Kind::CharactersFromStart | Kind::CharactersFromField);
        if is_position && field.size != 4 {
            return Err(TraceError::new(format!("the field {name} of {} does not state its position", self.name)));
        }
        if !is_position && field.kind != Kind::Characters {
            return Err(TraceError::new(format!("the field {name} of {} is not a text", self.name)));
        }
        Ok(Text { offset: field.offset, size: field.size, kind: field.kind })
    }

    fn needed(&self, name: &str) -> Result<&Field, TraceError> {
        self.field(name)
            .ok_or_else(|| TraceError::new(format!("this kernel's event {} has no field {name}", self.name)))
    }
}

/// The lines `field:TYPE NAME; offset:N; size:N; signed:N;`.
fn fields(text: &str) -> Result<Vec<Field>, TraceError> {
    let mut fields = Vec::new();
    for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("field:")) {
        let bad = || match line.trim() {
            "" => TraceError::new("it ends within a field".to_owned()),
            text => TraceError::new(format!("cannot read the field '{text}'")),
        };
        let mut parts = line.split(';').map(str::trim);
        let declaration = parts.next().unwrap_or_default();
        let (mut offset, mut size, mut signed) = (None, None, false);
        for part in parts.filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once(':').ok_or_else(bad)?;
            match key.trim() {
                "offset" => offset = value.trim().parse().ok(),
                "size" => size = value.trim().parse().ok(),
                "signed" => signed = value.trim() == "1",
                _ => {}
            }
        }
        let (Some(offset), Some(size)) = (offset, size) else { return Err(bad()) };
        if offset > LIMIT || size > LIMIT {
            return Err(bad());
        }
        let last = declaration.split_whitespace().last().ok_or_else(bad)?;
        let name = last.split('[').next().unwrap_or(last).trim_start_matches('*').to_owned();
        fields.push(Field { name, offset, size, signed, kind: kind(declaration) });
    }
    Ok(fields)
}

/// Parses `u32 xid`, `char comm[16]`, `__data_loc char[] name`.
fn kind(declaration: &str) -> Kind {
    let is_array = declaration.contains('[');
    let is_text =
        is_array && declaration.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == "char");
    match declaration.split_whitespace().next() {
        Some("__data_loc") if is_text => Kind::CharactersFromStart,
        Some("__rel_loc") if is_text => Kind::CharactersFromField,
        Some("__data_loc" | "__rel_loc") => Kind::Other,
        _ if is_text => Kind::Characters,
        _ if is_array => Kind::Other,
        _ => Kind::Number,
    }
}

/// A number in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    offset: usize,
    width: u8,
    signed: bool,
}

impl Number {
    /// Its value, sign-extended if signed; None if the record is too short.
    #[inline]
    pub fn of(self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.offset..self.offset + usize::from(self.width))?;
        Some(match (self.width, self.signed) {
            (1, false) => u64::from(bytes[0]),
            (1, true) => bytes[0] as i8 as u64,
            (2, false) => u64::from(u16::from_le_bytes(bytes.try_into().ok()?)),
            (2, true) => i16::from_le_bytes(bytes.try_into().ok()?) as u64,
            (4, false) => u64::from(u32::from_le_bytes(bytes.try_into().ok()?)),
            (4, true) => i32::from_le_bytes(bytes.try_into().ok()?) as u64,
            _ => u64::from_le_bytes(bytes.try_into().ok()?),
        })
    }
}

/// A text in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    offset: usize,
    size: usize,
    kind: Kind,
}

impl Text {
    /// Its bytes up to the first zero; None if the record is too short.
    #[inline]
    pub fn of(self, record: &[u8]) -> Option<&[u8]> {
        let bytes = record.get(self.offset..self.offset + self.size)?;
        let bytes = if self.kind == Kind::Characters {
            bytes
        } else {
            let position = u32::from_le_bytes(bytes.try_into().ok()?);
            let from = if self.kind == Kind::CharactersFromField { self.offset + self.size } else { 0 };
            let (offset, length) = (from + (position & 0xffff) as usize, (position >> 16) as usize);
            record.get(offset..offset + length)?
        };
        Some(&bytes[..bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len())])
    }
}

/// Format of a page of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Offset of the time of the page's first event.
    pub timestamp: usize,
    /// Offset of the number of bytes with events.
    pub commit: usize,
    /// Size of that number.
    pub commit_size: usize,
    /// Offset of the events.
    pub data: usize,
    /// Size of the page.
    pub size: usize,
}

impl Layout {
    /// Parse `events/header_page`.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let fields = fields(text)?;
        let find = |name: &str| {
            let field = fields.iter().find(|field| field.name == name);
            field.ok_or_else(|| TraceError::new(format!("header_page has no field {name}")))
        };
        let (timestamp, commit, data) = (find("timestamp")?, find("commit")?, find("data")?);
        let size = data.offset + data.size;
        let before = |field: &Field| field.offset + field.size <= data.offset;
        if timestamp.size != 8 || !matches!(commit.size, 4 | 8) || !before(timestamp) || !before(commit) || size < 256 {
            return Err(TraceError::new("header_page describes a page that iolab cannot read"));
        }
        Ok(Self {
            timestamp: timestamp.offset,
            commit: commit.offset,
            commit_size: commit.size,
            data: data.offset,
            size,
        })
    }
}
