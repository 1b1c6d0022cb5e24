// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace: no panic, no hang, bounded memory, and every event counted once.

use iolab_core::filter::Filter;
use iolab_core::heatmap::{heatmap, Spec, Y};
use iolab_core::input::from_reader;
use iolab_core::scan::scan;
use iolab_core::summary::Summary;
use iolab_core::trace::Trace;
use std::sync::atomic::AtomicBool;

/// Read bytes in a given or detected format into a summary and into maps, which must agree.
pub fn read(data: &[u8], format: Option<&str>, columns: Option<&str>) {
    let stop = AtomicBool::new(false);
    let open = || {
        let input = from_reader(std::io::Cursor::new(data.to_vec()), "x").ok()?;
        Trace::of_input(input, Vec::new(), format, columns).ok()
    };
    let Some(mut trace) = open() else { return };
    let Ok(scanned) = scan(&mut trace, |work| Summary::new(Filter::default(), work), Some(1), &stop) else { return };
    for y in [Y::Latency, Y::Offset, Y::Size] {
        let Ok((map, again)) =
            heatmap(&mut open().expect("opened before"), &Spec::new(y), &Filter::default(), Some(1), &stop)
        else {
            panic!("a summary but no map");
        };
        assert_eq!(map.tally.events + map.tally.without_y, scanned.sink.events);
        assert_eq!(map.count.iter().sum::<u64>(), map.tally.events);
        assert_eq!(again.work.ledger, scanned.work.ledger);
    }
}
