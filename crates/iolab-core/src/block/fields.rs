// SPDX-License-Identifier: Apache-2.0
//! Positions of the needed fields in the block layer's tracepoints, from the kernel's formats.

use crate::error::TraceError;
use crate::tracefs::format::{Format, Number, Text};

/// A tracepoint that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Point {
    /// A bio enters the block layer, in the context of the submitter.
    BioQueue,
    /// A request is issued to the driver.
    Issue,
    /// A request or a part of it completes.
    Complete,
    /// The driver returns a request.
    Requeue,
    /// A bio is merged at the end of a request. A front merge takes over the sector of the bio, so its start stays
    /// valid.
    Merged,
    /// A request is merged into another.
    RequestMerged,
    /// A bio is split.
    Split,
    /// A bio completes.
    BioComplete,
}

/// Tracepoints by name, with their meaning and whether recording needs them.
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

/// Positions of fields.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// Device number, at the same position in all.
    pub device: Number,
    /// First sector, at the same position in all.
    pub sector: Number,
    /// Number of sectors, in tracepoints with a length.
    pub sectors: Number,
    /// Bytes of an issued request.
    pub bytes: Number,
    /// The current thread.
    pub thread: Number,
    /// Its command name, when a bio was queued.
    pub command: Text,
    /// First sector of the second part of a split bio.
    pub split_to: Option<Number>,
    letters: [Option<Text>; 8],
    errors: [Option<Number>; 8],
}

impl Fields {
    /// Find all fields in the formats of the available tracepoints.
    pub fn find<'a>(format: impl Fn(&str) -> Option<&'a Format>) -> Result<Self, TraceError> {
        let needed =
            |name: &str| format(name).ok_or_else(|| TraceError::new(format!("this kernel has no tracepoint {name}")));
        let (queue, issue, complete) =
            (needed("block_bio_queue")?, needed("block_rq_issue")?, needed("block_rq_complete")?);
        let (mut letters, mut errors) = ([None; 8], [None; 8]);
        for (name, point, _) in POINTS {
            let Some(format) = format(name) else { continue };
            // read before the tracepoint of a record is known
            for (field, place) in [("dev", queue.number("dev")?), ("sector", queue.number("sector")?)] {
                if format.number(field)? != place {
                    return Err(TraceError::new(format!(
                        "{name} has its field {field} at another offset than {}",
                        queue.name
                    )));
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
            return Err(TraceError::new("a completion has its field nr_sector at another offset than block_bio_queue"));
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
