// SPDX-License-Identifier: Apache-2.0
//! Where the block layer's tracepoints keep what is needed of them, by the kernel's own descriptions.

use crate::error::TraceError;
use crate::tracefs::format::{Format, Number, Text};

/// A tracepoint that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Point {
    /// A bio enters the block layer, in the context of whoever asked.
    BioQueue,
    /// A request goes to the driver.
    Issue,
    /// A request completes, or a part of it.
    Complete,
    /// The driver gives a request back.
    Requeue,
    /// A bio goes to the end of a request. One that goes before a request gives it its sector, so nothing is forgotten then.
    Merged,
    /// A request goes into another.
    RequestMerged,
    /// A bio is divided.
    Split,
    /// A bio completes.
    BioComplete,
}

/// Tracepoints by name, which of them a recording cannot be without, and what they mean.
pub const POINTS: [(&str, Point, bool); 8] = [
    ("block_bio_queue", Point::BioQueue, true),
    ("block_rq_issue", Point::Issue, true),
    ("block_rq_complete", Point::Complete, true),
    ("block_rq_requeue", Point::Requeue, false),
    ("block_bio_backmerge", Point::Merged, false),
    ("block_rq_merge", Point::RequestMerged, false),
    ("block_split", Point::Split, false),
    ("block_bio_complete", Point::BioComplete, false),
];

/// Where things are.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// Device number; in all of them at the same place.
    pub device: Number,
    /// First sector; in all of them at the same place.
    pub sector: Number,
    /// Number of sectors, in those that are about a length.
    pub sectors: Number,
    /// Bytes of an issued request.
    pub bytes: Number,
    /// The thread that was running.
    pub thread: Number,
    /// Its command name, when a bio was queued.
    pub command: Text,
    /// Where the second part of a divided bio begins.
    pub split_to: Option<Number>,
    letters: [Option<Text>; 8],
    errors: [Option<Number>; 8],
}

impl Fields {
    /// Find everything in the descriptions of the tracepoints that there are.
    pub fn find<'a>(format: impl Fn(&str) -> Option<&'a Format>) -> Result<Self, TraceError> {
        let needed =
            |name: &str| format(name).ok_or_else(|| TraceError::new(format!("this kernel has no tracepoint {name}")));
        let (queue, issue, complete) =
            (needed("block_bio_queue")?, needed("block_rq_issue")?, needed("block_rq_complete")?);
        let (mut letters, mut errors) = ([None; 8], [None; 8]);
        for (name, point, _) in POINTS {
            let Some(format) = format(name) else { continue };
            // read before it is known which of them a record is
            for (field, place) in [("dev", queue.number("dev")?), ("sector", queue.number("sector")?)] {
                if format.number(field)? != place {
                    return Err(TraceError::new(format!("{name} has its field {field} elsewhere than {}", queue.name)));
                }
            }
            letters[point as usize] = Some(format.text("rwbs")?);
            if matches!(point, Point::Complete | Point::BioComplete) {
                errors[point as usize] = Some(format.number("error").or_else(|_| format.number("errors"))?);
            }
        }
        let sectors = queue.number("nr_sector")?;
        let others = [Some(complete), format("block_bio_complete")];
        if others.into_iter().flatten().any(|format| format.number("nr_sector") != Ok(sectors)) {
            return Err(TraceError::new("a completion has its field nr_sector elsewhere than block_bio_queue"));
        }
        Ok(Self {
            device: queue.number("dev")?,
            sector: queue.number("sector")?,
            sectors,
            bytes: issue.number("bytes")?,
            thread: queue.number("common_pid")?,
            command: queue.text("comm")?,
            split_to: format("block_split").map(|format| format.number("new_sector")).transpose()?,
            letters,
            errors,
        })
    }

    /// The letters of a tracepoint.
    pub fn letters(&self, point: Point) -> Text {
        self.letters[point as usize].expect("a tracepoint that is there")
    }

    /// The error of a completion.
    pub fn error(&self, point: Point) -> Number {
        self.errors[point as usize].expect("a completion")
    }
}
