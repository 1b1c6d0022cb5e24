// SPDX-License-Identifier: Apache-2.0
//! Tables by small kernel numbers (tasks, descriptors), used several times per call.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by number.
pub type ById<V> = HashMap<u32, V, BuildHasherDefault<Spread>>;

/// Spreads numbers over all bits. The kernel assigns consecutive numbers, so an attacker cannot choose colliding ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        let spread = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = spread ^ (spread >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_apart() {
        let hash = |number: u32| {
            let mut spread = Spread::default();
            spread.write_u32(number);
            spread.finish()
        };
        let mut low: Vec<u64> = (0..1 << 12).map(|number| hash(number) & 0xfff).collect();
        low.sort_unstable();
        low.dedup();
        assert!(low.len() > 2000, "successive numbers fall on many places: {}", low.len());
        let mut table = ById::default();
        (0..1000u32).for_each(|number| assert_eq!(table.insert(number, number), None));
        assert_eq!(table[&777], 777);
    }
}
