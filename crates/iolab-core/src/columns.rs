// SPDX-License-Identifier: Apache-2.0
//! Columns of a Parquet file in memory: integers and names, in the encodings of the files of a recording. A library for
//! the whole format takes longer to build and to load than such a file takes to read.
//!
//! The format: <https://parquet.apache.org/docs/file-format/>; its metadata is in Thrift's compact protocol.

use crate::thrift::{Thrift, BINARY, STRUCT};
use ruzstd::decoding::FrameDecoder;

const MAGIC: &[u8] = b"PAR1";
/// Maximum size of a page in bytes, after decompression.
const LARGEST_PAGE: usize = 1 << 28;
/// Maximum number of values of a page.
const MOST_VALUES: usize = 1 << 24;
/// Maximum number of rows of a row group.
const MOST_ROWS: usize = 1 << 26;
/// Maximum number of decoded bytes of a row group: this many, and this many times the size of the file. Columns with one
/// value take few bytes in the file at any number of rows.
const DECODED: usize = 64 << 20;
const DECODED_PER_BYTE: usize = 256;
/// The id of a missing name.
pub const NO_NAME: u32 = u32::MAX;

/// Why a file can't be read here: it is damaged, or has a form that this reader does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnsError(pub &'static str);

pub(crate) type Result<T> = std::result::Result<T, ColumnsError>;

pub(crate) const TORN: ColumnsError = ColumnsError("ends too early");
const LACKS_COLUMN: ColumnsError = ColumnsError("lacks a column");
const NOT_IN_DICTIONARY: ColumnsError = ColumnsError("has a value that is not in its dictionary");

/// The values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// Integers. 32-bit ones are unsigned; 64-bit ones have the bits of the file.
    Numbers(Vec<i64>),
    /// Names by id; a name may have several ids. A missing one has `NO_NAME`.
    Names(Vec<u32>, Vec<String>),
}

impl Column {
    /// The numbers.
    ///
    /// # Errors
    /// The column has names.
    pub fn numbers(&self) -> Result<&[i64]> {
        match self {
            Self::Numbers(values) => Ok(values),
            Self::Names(..) => Err(ColumnsError("has names in a column of numbers")),
        }
    }

    /// Ids and names.
    ///
    /// # Errors
    /// The column has numbers.
    pub fn names(&self) -> Result<(&[u32], &[String])> {
        match self {
            Self::Names(ids, names) => Ok((ids, names)),
            Self::Numbers(_) => Err(ColumnsError("has numbers in a column of names")),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Names(ids, _) => ids.len(),
        }
    }
}

/// Memory for columns, reused for each row group: mapping new memory takes longer than decoding a page.
#[derive(Default)]
pub struct Buffers {
    decoder: FrameDecoder,
    columns: Vec<Column>,
    page: Vec<u8>,
    places: Vec<u32>,
    dictionary: Vec<i64>,
}

impl Buffers {
    /// A column without values of a kind.
    fn column(&mut self, kind: Kind) -> Column {
        let is_names = kind == Kind::Name;
        let of_kind = self.columns.iter().position(|column| matches!(column, Column::Names(..)) == is_names);
        match of_kind.map(|place| self.columns.swap_remove(place)) {
            Some(Column::Names(mut ids, mut names)) => {
                ids.clear();
                names.clear();
                Column::Names(ids, names)
            }
            Some(Column::Numbers(mut values)) => {
                values.clear();
                Column::Numbers(values)
            }
            None if is_names => Column::Names(Vec::new(), Vec::new()),
            None => Column::Numbers(Vec::new()),
        }
    }
}

/// A Parquet file in memory, with the positions of its columns in each row group.
pub struct Table<'a> {
    body: &'a [u8],
    fields: Vec<Field<'a>>,
    groups: Vec<Vec<Chunk<'a>>>,
}

impl<'a> Table<'a> {
    /// Read the metadata of a file.
    ///
    /// # Errors
    /// The metadata is damaged or has an unsupported form.
    pub fn open(file: &'a [u8]) -> Result<Self> {
        let metadata = file.len().checked_sub(8).ok_or(TORN)?;
        let (body, end) = file.split_at(metadata);
        if !file.starts_with(MAGIC) || &end[4..] != MAGIC {
            return Err(ColumnsError("is not a Parquet file"));
        }
        let length = u32::from_le_bytes([end[0], end[1], end[2], end[3]]) as usize;
        let footer = &body[body.len().checked_sub(length).ok_or(TORN)?..];
        let (fields, groups) = read_footer(footer)?;
        Ok(Self { body, fields, groups })
    }

    /// Number of row groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Minimum and maximum of a 64-bit column in a row group, if the file states them.
    #[must_use]
    pub fn range(&self, group: usize, name: &str) -> Option<(i64, i64)> {
        let chunk = self.groups[group].iter().find(|chunk| chunk.name == name.as_bytes())?;
        Some((chunk.least?, chunk.largest?))
    }

    /// The requested columns of a row group, all of the same length. They are in `buffers` until the next call.
    ///
    /// # Errors
    /// The file is damaged, lacks a column, or has an unsupported form.
    pub fn read<'b>(&self, group: usize, wanted: &[&str], buffers: &'b mut Buffers) -> Result<&'b [Column]> {
        let mut budget = self.body.len().saturating_mul(DECODED_PER_BYTE).saturating_add(DECODED);
        let columns: Vec<Column> = wanted
            .iter()
            .map(|&name| {
                let field = self.fields.iter().find(|field| field.name == name.as_bytes()).ok_or(LACKS_COLUMN)?;
                let mut column = buffers.column(field.kind);
                let chunk = self.groups[group].iter().find(|chunk| chunk.name == name.as_bytes());
                read_chunk(self.body, field, chunk.ok_or(LACKS_COLUMN)?, &mut column, (buffers, &mut budget))?;
                Ok(column)
            })
            .collect::<Result<_>>()?;
        if columns.windows(2).any(|pair| pair[0].len() != pair[1].len()) {
            return Err(ColumnsError("has columns of different lengths"));
        }
        buffers.columns = columns;
        Ok(&buffers.columns)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Short,
    Long,
    Name,
    Other,
}

struct Field<'a> {
    name: &'a [u8],
    kind: Kind,
    is_optional: bool,
}

/// The part of a column in a row group.
#[derive(Default)]
struct Chunk<'a> {
    name: &'a [u8],
    codec: i64,
    values: i64,
    first_page: i64,
    dictionary_page: i64,
    least: Option<i64>,
    largest: Option<i64>,
}

/// Columns, and the positions of their parts in each row group.
type Footer<'a> = (Vec<Field<'a>>, Vec<Vec<Chunk<'a>>>);

fn read_footer(footer: &[u8]) -> Result<Footer<'_>> {
    let (mut fields, mut groups) = (Vec::new(), Vec::new());
    let mut thrift = Thrift { bytes: footer, at: 0 };
    thrift.fields(&mut |thrift, id, kind| match id {
        2 => thrift.items(kind, &mut |thrift| {
            let (mut name, mut kind, mut repetition) = (&[][..], Kind::Other, 0);
            thrift.fields(&mut |thrift, id, of| {
                match id {
                    1 => {
                        kind = match thrift.integer(of)? {
                            1 => Kind::Short,
                            2 => Kind::Long,
                            6 => Kind::Name,
                            _ => Kind::Other,
                        }
                    }
                    3 => repetition = thrift.integer(of)?,
                    4 => name = thrift.text(of)?,
                    _ => return thrift.skip(of, 0),
                }
                Ok(())
            })?;
            fields.push(Field { name, kind, is_optional: repetition != 0 });
            Ok(())
        }),
        4 => thrift.items(kind, &mut |thrift| {
            let mut chunks = Vec::new();
            thrift.fields(&mut |thrift, id, kind| match id {
                1 => thrift.items(kind, &mut |thrift| {
                    chunks.push(read_chunk_place(thrift)?);
                    Ok(())
                }),
                _ => thrift.skip(kind, 0),
            })?;
            groups.push(chunks);
            Ok(())
        }),
        _ => thrift.skip(kind, 0),
    })?;
    Ok((fields, groups))
}

fn read_chunk_place<'a>(thrift: &mut Thrift<'a>) -> Result<Chunk<'a>> {
    let mut chunk = Chunk::default();
    thrift.fields(&mut |thrift, id, kind| {
        if id != 3 || kind != STRUCT {
            return thrift.skip(kind, 0);
        }
        thrift.fields(&mut |thrift, id, kind| {
            match id {
                3 => {
                    return thrift.items(kind, &mut |thrift| {
                        chunk.name = thrift.text(BINARY)?;
                        Ok(())
                    })
                }
                4 => chunk.codec = thrift.integer(kind)?,
                5 => chunk.values = thrift.integer(kind)?,
                9 => chunk.first_page = thrift.integer(kind)?,
                11 => chunk.dictionary_page = thrift.integer(kind)?,
                12 if kind == STRUCT => {
                    return thrift.fields(&mut |thrift, id, kind| {
                        match id {
                            5 => chunk.largest = number_of(thrift.text(kind)?),
                            6 => chunk.least = number_of(thrift.text(kind)?),
                            _ => return thrift.skip(kind, 0),
                        }
                        Ok(())
                    })
                }
                _ => return thrift.skip(kind, 0),
            }
            Ok(())
        })
    })?;
    Ok(chunk)
}

/// A 64-bit number as in statistics; None for other types.
fn number_of(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_le_bytes)
}

#[derive(Default)]
struct PageHeader {
    kind: i64,
    unpacked: i64,
    packed: i64,
    values: i64,
    encoding: i64,
}

impl PageHeader {
    fn read(thrift: &mut Thrift<'_>) -> Result<Self> {
        let mut header = Self::default();
        thrift.fields(&mut |thrift, id, kind| {
            match id {
                1 => header.kind = thrift.integer(kind)?,
                2 => header.unpacked = thrift.integer(kind)?,
                3 => header.packed = thrift.integer(kind)?,
                5 | 7 if kind == STRUCT => {
                    return thrift.fields(&mut |thrift, id, kind| {
                        match id {
                            1 => header.values = thrift.integer(kind)?,
                            2 => header.encoding = thrift.integer(kind)?,
                            _ => return thrift.skip(kind, 0),
                        }
                        Ok(())
                    })
                }
                _ => return thrift.skip(kind, 0),
            }
            Ok(())
        })?;
        Ok(header)
    }
}

fn read_chunk(
    body: &[u8],
    field: &Field<'_>,
    chunk: &Chunk<'_>,
    column: &mut Column,
    (buffers, budget): (&mut Buffers, &mut usize),
) -> Result<()> {
    let Buffers { decoder, page: unpacked_page, places, dictionary, .. } = buffers;
    let is_dictionary_first = chunk.dictionary_page > 0 && chunk.dictionary_page < chunk.first_page;
    let start = if is_dictionary_first { chunk.dictionary_page } else { chunk.first_page };
    let mut thrift = Thrift { bytes: body, at: usize::try_from(start).map_err(|_| TORN)? };
    let past = usize::try_from(chunk.values).map_err(|_| TORN)?;
    if past > MOST_ROWS {
        return Err(ColumnsError("has too many rows"));
    }
    dictionary.clear();
    let mut has_dictionary = false;
    while column.len() < past {
        let header = PageHeader::read(&mut thrift)?;
        let (packed, unpacked) = (header.packed as usize, header.unpacked as usize);
        let count = usize::try_from(header.values).map_err(|_| TORN)?;
        if unpacked > LARGEST_PAGE || count > MOST_VALUES {
            return Err(ColumnsError("has a page that is too large"));
        }
        // values are numbers of 64 bits; a name of a dictionary has its place and length
        let value_size = if header.kind == 2 { size_of::<String>() } else { size_of::<i64>() };
        let decoded = unpacked.saturating_add(count.saturating_mul(value_size));
        *budget = budget.checked_sub(decoded).ok_or(ColumnsError("decodes to too many bytes for its size"))?;
        let page = decompress(thrift.take(packed)?, unpacked, chunk.codec, decoder, unpacked_page)?;
        match (header.kind, header.encoding) {
            (2, _) if has_dictionary => return Err(ColumnsError("has several dictionaries of a column")),
            (2, 0 | 2) => {
                has_dictionary = true;
                read_dictionary(page, count, field.kind, column, dictionary)?;
            }
            (0, encoding) => {
                if count == 0 || column.len() + count > past {
                    return Err(ColumnsError("has another number of values than it states"));
                }
                let (is_present, values) = read_levels(page, count, field.is_optional)?;
                let present =
                    is_present.as_ref().map_or(count, |levels| levels.iter().filter(|&&level| level == 1).count());
                match column {
                    Column::Names(ids, names) if matches!(encoding, 2 | 8) => {
                        read_places(values, present, places)?;
                        if places.iter().any(|&place| place as usize >= names.len()) {
                            return Err(NOT_IN_DICTIONARY);
                        }
                        let mut places = places.iter().copied();
                        match is_present {
                            None => ids.extend(places),
                            Some(levels) => ids.extend(levels.iter().map(|&level| match level {
                                1 => places.next().unwrap_or(NO_NAME),
                                _ => NO_NAME,
                            })),
                        }
                    }
                    Column::Numbers(column) if present == count => {
                        read_numbers(values, count, encoding, field.kind, (dictionary, places), column)?;
                    }
                    _ => return Err(ColumnsError("has a column in an unknown form")),
                }
            }
            _ => return Err(ColumnsError("has a page of an unknown kind")),
        }
    }
    Ok(())
}

fn decompress<'b>(
    packed: &'b [u8],
    unpacked: usize,
    codec: i64,
    decoder: &mut FrameDecoder,
    page: &'b mut Vec<u8>,
) -> Result<&'b [u8]> {
    match codec {
        0 => Ok(packed),
        6 => {
            page.resize(unpacked, 0);
            match decoder.decode_all(packed, page) {
                Ok(length) if length == unpacked => Ok(page),
                _ => Err(ColumnsError("has a page that can't be decompressed")),
            }
        }
        _ => Err(ColumnsError("has an unknown compression")),
    }
}

fn read_dictionary(page: &[u8], count: usize, kind: Kind, column: &mut Column, numbers: &mut Vec<i64>) -> Result<()> {
    match column {
        Column::Names(_, names) => {
            let mut rest = Thrift { bytes: page, at: 0 };
            for _ in 0..count {
                let length = rest.take(4)?;
                let text = rest.take(u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize)?;
                names.push(String::from_utf8(text.to_vec()).map_err(|_| ColumnsError("has a name that is not UTF-8"))?);
            }
            Ok(())
        }
        Column::Numbers(_) => read_plain(page, count, kind, numbers),
    }
}

/// Numbers in native byte order.
fn read_plain(page: &[u8], count: usize, kind: Kind, numbers: &mut Vec<i64>) -> Result<()> {
    match kind {
        Kind::Short => {
            let values = page.get(..4 * count).ok_or(TORN)?;
            numbers
                .extend(values.chunks_exact(4).map(|bytes| i64::from(u32::from_le_bytes(bytes.try_into().unwrap()))));
        }
        Kind::Long => {
            let values = page.get(..8 * count).ok_or(TORN)?;
            numbers.extend(values.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())));
        }
        _ => return Err(ColumnsError("has a column of an unknown kind")),
    }
    Ok(())
}

/// (1 where a value exists, else 0; None if all exist), and the values.
fn read_levels(page: &[u8], count: usize, is_optional: bool) -> Result<(Option<Vec<u32>>, &[u8])> {
    if !is_optional {
        return Ok((None, page));
    }
    let length = page.get(..4).ok_or(TORN)?;
    let past = 4 + u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
    let mut levels = Vec::new();
    unpack_runs(page.get(4..past).ok_or(TORN)?, 1, count, &mut levels)?;
    Ok((Some(levels), &page[past..]))
}

/// Indices in a dictionary.
fn read_places(page: &[u8], count: usize, places: &mut Vec<u32>) -> Result<()> {
    places.clear();
    match page.split_first() {
        None if count == 0 => Ok(()),
        Some((&width, runs)) if width <= 32 => unpack_runs(runs, u32::from(width), count, places),
        _ => Err(TORN),
    }
}

fn read_numbers(
    page: &[u8],
    count: usize,
    encoding: i64,
    kind: Kind,
    (dictionary, places): (&[i64], &mut Vec<u32>),
    numbers: &mut Vec<i64>,
) -> Result<()> {
    match encoding {
        0 => read_plain(page, count, kind, numbers),
        2 | 8 => {
            read_places(page, count, places)?;
            if places.iter().any(|&place| place as usize >= dictionary.len()) {
                return Err(NOT_IN_DICTIONARY);
            }
            numbers.extend(places.iter().map(|&place| dictionary[place as usize]));
            Ok(())
        }
        5 => unpack_deltas(page, count, kind == Kind::Short, numbers),
        _ => Err(ColumnsError("has an unknown encoding")),
    }
}

/// Values of `width` bits: run lengths mixed with packed values.
fn unpack_runs(bytes: &[u8], width: u32, count: usize, values: &mut Vec<u32>) -> Result<()> {
    values.reserve(count);
    let mut rest = Thrift { bytes, at: 0 };
    while values.len() < count {
        let header = rest.varint()?;
        let (length, missing) = (usize::try_from(header >> 1).map_err(|_| TORN)?, count - values.len());
        if header & 1 == 1 {
            let length = length.checked_mul(width as usize).ok_or(TORN)?;
            // the last group may be cut off after the last value
            let packed = rest.take(length.min(rest.bytes.len() - rest.at))?;
            let here = missing.min((header >> 1) as usize * 8);
            if packed.len() * 8 < here * width as usize {
                return Err(TORN);
            }
            values.extend((0..here).map(|place| unpack(packed, width, place) as u32));
        } else {
            let bytes = rest.take(width.div_ceil(8) as usize)?;
            let value = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
            values.resize(values.len() + length.min(missing), value);
        }
    }
    Ok(())
}

/// Values as differences (`DELTA_BINARY_PACKED`).
fn unpack_deltas(page: &[u8], count: usize, is_short: bool, numbers: &mut Vec<i64>) -> Result<()> {
    let mut rest = Thrift { bytes: page, at: 0 };
    let (block, blocks, total) = (rest.varint()?, rest.varint()?, rest.varint()?);
    if total != count as u64 || blocks == 0 || block / blocks == 0 || block > MOST_VALUES as u64 {
        return Err(ColumnsError("has an unknown form of differences"));
    }
    let size = (block / blocks) as usize;
    let narrow = |value: i64| if is_short { i64::from(value as u32) } else { value };
    let mut value = rest.signed()?;
    let past = numbers.len() + count;
    numbers.push(narrow(value));
    while numbers.len() < past {
        let least = rest.signed()?;
        for &width in rest.take(blocks as usize)? {
            let here = size.min(past - numbers.len());
            if here == 0 {
                break;
            }
            let length = (size * usize::from(width)).div_ceil(8);
            let packed = rest.take(length.min(rest.bytes.len() - rest.at))?;
            if width > 64 || packed.len() * 8 < here * usize::from(width) {
                return Err(TORN);
            }
            if width == 0 && least == 0 {
                numbers.resize(numbers.len() + here, narrow(value));
                continue;
            }
            for place in 0..here {
                value = value.wrapping_add(least).wrapping_add(unpack(packed, u32::from(width), place) as i64);
                numbers.push(narrow(value));
            }
        }
    }
    Ok(())
}

/// The value at an index of packed values, lowest bits first. Its bytes must exist.
fn unpack(packed: &[u8], width: u32, place: usize) -> u64 {
    let bit = place * width as usize;
    let bytes = &packed[bit / 8..];
    let wide = match bytes.first_chunk::<16>() {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => {
            let mut padded = [0; 16];
            padded[..bytes.len()].copy_from_slice(bytes);
            u128::from_le_bytes(padded)
        }
    };
    let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
    (wide >> (bit % 8)) as u64 & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(mut value: u64, out: &mut Vec<u8>) {
        while value > 0x7f {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    /// A page of equal numbers as differences, without bits for any value.
    fn page_of_equal_numbers(count: u64) -> Vec<u8> {
        let mut page = Vec::new();
        [count, 1, count, 14, 0].into_iter().for_each(|value| varint(value, &mut page));
        page.push(0);
        let mut out = vec![0x15, 0]; // kind: data
        for size in [page.len(), page.len()] {
            out.push(0x15);
            varint(size as u64 * 2, &mut out);
        }
        out.extend([0x2c, 0x15]);
        varint(count * 2, &mut out);
        out.extend([0x15, 10, 0, 0]); // encoding: differences
        out.extend(page);
        out
    }

    #[test]
    fn a_small_file_decodes_to_a_bounded_number_of_bytes() {
        let read = |count: u64| {
            let body = page_of_equal_numbers(count);
            let field = Field { name: b"n", kind: Kind::Long, is_optional: false };
            let chunk = Chunk { name: b"n", values: count as i64, ..Chunk::default() };
            let table = Table { body: &body, fields: vec![field], groups: vec![vec![chunk]] };
            table.read(0, &["n"], &mut Buffers::default()).map(|columns| columns[0].numbers().unwrap().to_vec())
        };
        assert_eq!(read(1000), Ok(vec![7; 1000]));
        assert_eq!(read(1 << 24), Err(ColumnsError("decodes to too many bytes for its size")));
    }
}
