// SPDX-License-Identifier: Apache-2.0
//! Choice of the interval.

use super::Spec;
use crate::event::{Event, Sink};
use crate::filter::Filter;
use crate::names::Names;
use crate::readers::Work;
use crate::trace::Trace;

/// The smallest factor that makes an interval 1, 2 or 5 times a power of ten, with at most this many columns.
pub(super) fn round_factor(interval: i64, (first, last): (i64, i64), wanted: i64) -> i64 {
    let mut decade = 1i64;
    loop {
        for step in [1, 2, 5] {
            let round = decade.saturating_mul(step);
            let factor = round / interval;
            // times before and after 0 are never in the same column
            let few = |factor: i64| last.div_euclid(factor) - first.div_euclid(factor) < wanted.max(2);
            if round == i64::MAX || (factor > 0 && round % interval == 0 && few(factor)) {
                return factor.max(1);
            }
        }
        decade = decade.saturating_mul(10);
    }
}

/// Earliest and latest time of the events that match the filter.
struct Span {
    filter: Filter,
    span: Option<(i64, i64)>,
}

impl Sink for Span {
    fn event(&mut self, event: &Event, _names: &Names) {
        if self.filter.passes(event) {
            let time = event.time_ns;
            self.span = Some(self.span.map_or((time, time), |(first, last)| (first.min(time), last.max(time))));
        }
    }
}

/// Initial interval: fits the events at both ends of an uncompressed file, so that counting does not start with much
/// shorter ones. Events in between can only make the span longer, so it is never too long.
pub(super) fn finest(trace: &Trace, spec: &Spec, filter: &Filter) -> i64 {
    let mut work = Work::default();
    let mut filter = filter.clone();
    filter.bind(&mut work.names);
    let mut span = Span { filter, span: None };
    let ends = crate::scan::ends(trace, &mut work, &mut span);
    let resolution = trace.resolution_ns;
    match span.span.filter(|_| ends.is_ok()) {
        Some((first, last)) => {
            let columns = (first.div_euclid(resolution), last.div_euclid(resolution));
            resolution * round_factor(resolution, columns, i64::from(spec.columns_wanted))
        }
        None => resolution,
    }
}
