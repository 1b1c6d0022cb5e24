// SPDX-License-Identifier: Apache-2.0
//! Names (devices, processes, files, jobs, clients) as small integers, with a limit so that memory stays bounded.

use crate::event::{Dimension, DIMENSIONS};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of names of a dimension; further names become `OTHER`, and are counted.
pub const LIMIT: usize = 100_000;
/// Maximum size of the names of a dimension in bytes.
pub const LIMIT_BYTES: usize = 16 << 20;
/// The name of names beyond the limit.
pub const OTHER: &str = "(other)";

/// A name as text. Different names have different texts: a byte that is not UTF-8 becomes `\xNN` in lower case, and so
/// does a backslash that is followed by such letters.
pub fn text(name: &[u8]) -> String {
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let looks_escaped = |at: usize| {
        name[at] == b'\\'
            && name.get(at + 1) == Some(&b'x')
            && name.get(at + 2..at + 4).is_some_and(|digits| digits.iter().all(is_hex))
    };
    let mut out = String::with_capacity(name.len());
    let mut at = 0;
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter == '\\' && looks_escaped(at) {
                out.push_str("\\x5c");
            } else {
                out.push(letter);
            }
            at += letter.len_utf8();
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
        at += chunk.invalid().len();
    }
    out
}

/// The name with this `text`.
pub fn bytes_of(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        let digits = more.strip_prefix(b"x").and_then(|more| more.get(..2));
        let byte = digits
            .filter(|digits| first == b'\\' && digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        out.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &more[3..] } else { more };
    }
    out
}

/// Names of one dimension.
#[derive(Clone, Debug, Default)]
pub struct Table {
    ids: HashMap<Arc<[u8]>, u32>,
    names: Vec<Arc<[u8]>>,
    bytes: usize,
    last: Option<u32>,
    other: Option<u32>,
    beyond: u64,
}

impl Table {
    /// Id of a name; a new one if the limit is not reached.
    pub fn intern(&mut self, name: &[u8]) -> u32 {
        // consecutive I/Os mostly have the same name, and a comparison is cheaper than a hash
        if let Some(last) = self.last {
            if *self.names[last as usize] == *name {
                return last;
            }
        }
        let id = match self.ids.get(name) {
            Some(&id) => id,
            None if self.names.len() >= LIMIT || self.bytes + name.len() > LIMIT_BYTES => {
                self.beyond += 1;
                return self.other();
            }
            None => self.add(name),
        };
        self.last = Some(id);
        id
    }

    fn add(&mut self, name: &[u8]) -> u32 {
        let id = self.names.len() as u32;
        self.bytes += name.len();
        let name: Arc<[u8]> = name.into();
        self.names.push(Arc::clone(&name));
        self.ids.insert(name, id);
        id
    }

    fn other(&mut self) -> u32 {
        if let Some(id) = self.other {
            return id;
        }
        let id = self.add(OTHER.as_bytes());
        self.other = Some(id);
        id
    }

    /// Id of an existing name.
    pub fn get(&self, name: &[u8]) -> Option<u32> {
        self.ids.get(name).copied()
    }

    /// The name with an id.
    pub fn name(&self, id: u32) -> &[u8] {
        &self.names[id as usize]
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Number of times that a name beyond the limit was interned.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// The same since the last call.
    pub fn take_beyond(&mut self) -> u64 {
        std::mem::take(&mut self.beyond)
    }

    /// Add another table. Returns the id in this table for each id of the other one.
    pub fn absorb(&mut self, other: &Table) -> Vec<u32> {
        let merged = other.names.iter().map(|name| self.intern(name)).collect();
        self.beyond += other.beyond;
        merged
    }
}

/// Names of all dimensions.
#[derive(Clone, Debug, Default)]
pub struct Names {
    tables: [Table; DIMENSIONS],
}

impl Names {
    /// Id of a name.
    pub fn intern(&mut self, dimension: Dimension, name: &[u8]) -> u32 {
        self.tables[dimension as usize].intern(name)
    }

    /// Names of one dimension.
    pub fn table(&self, dimension: Dimension) -> &Table {
        &self.tables[dimension as usize]
    }

    /// Names of one dimension, mutable.
    pub fn table_mut(&mut self, dimension: Dimension) -> &mut Table {
        &mut self.tables[dimension as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_names_have_different_texts() {
        let names: [&[u8]; 9] = [
            b"a\xff",
            b"a\xfe",
            b"a\\xff",
            b"a\\x5cxff",
            b"a\\\xff",
            "a\u{fffd}".as_bytes(),
            b"\\x5",
            b"\\xFF",
            b"\xe2\x82",
        ];
        let texts: Vec<_> = names.iter().map(|name| text(name)).collect();
        assert_eq!(texts[0], "a\\xff");
        assert_eq!(texts[2], "a\\x5cxff");
        assert_eq!(texts[6], "\\x5");
        for (place, name) in names.iter().enumerate() {
            assert_eq!(bytes_of(&texts[place]), *name);
            assert!(!texts[..place].contains(&texts[place]));
        }
    }

    proptest::proptest! {
        #[test]
        fn a_text_is_of_one_name(name in proptest::collection::vec(proptest::prop_oneof![
            proptest::prelude::any::<u8>(), proptest::sample::select(b"\\x5cfF0\xff\xc3\xa9".to_vec())], 0..24)) {
            proptest::prop_assert_eq!(bytes_of(&text(&name)), name);
        }
    }

    #[test]
    fn the_same_name_has_the_same_number() {
        let mut names = Names::default();
        let first = names.intern(Dimension::Device, b"sda");
        assert_ne!(names.intern(Dimension::Device, b"sdb"), first);
        assert_eq!(names.intern(Dimension::Device, b"sda"), first);
        assert_eq!(names.table(Dimension::Device).name(first), b"sda");
    }

    #[test]
    fn names_beyond_the_limit_are_counted() {
        let mut table = Table::default();
        for number in 0..LIMIT + 7 {
            table.intern(number.to_string().as_bytes());
        }
        assert_eq!(table.beyond(), 7);
        assert_eq!(table.len(), LIMIT + 1);
        let other = table.get(OTHER.as_bytes()).unwrap();
        assert_eq!(table.intern(b"yet another"), other);
        assert_eq!(table.intern(b"5"), 5, "what is known stays known");
    }

    #[test]
    fn long_names_are_bounded_too() {
        let mut table = Table::default();
        let long = vec![b'x'; LIMIT_BYTES / 2];
        table.intern(&long);
        table.intern(&[&long[..], b"y"].concat());
        assert_eq!(table.beyond(), 1);
    }

    #[test]
    fn absorbing_keeps_names() {
        let (mut one, mut two) = (Table::default(), Table::default());
        one.intern(b"a");
        two.intern(b"b");
        two.intern(b"a");
        assert_eq!(one.absorb(&two), [1, 0]);
    }
}
