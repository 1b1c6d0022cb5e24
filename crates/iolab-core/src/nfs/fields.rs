// SPDX-License-Identifier: Apache-2.0
//! The tracepoints of the NFS server, and the fields of their records, from the kernel's formats.

use crate::error::TraceError;
use crate::tracefs::format::{Format, Number, Text};

/// Meaning of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Point {
    /// A thread of an RPC service starts to serve a request.
    Process,
    /// The reply to a request is passed to the transport.
    Reply,
    /// A request gets no reply.
    Drop,
    /// One operation of a compound ended.
    Operation,
    /// A read, write or commit starts, with file and offset.
    Start,
    /// A read or write moved this many bytes.
    Moved,
    /// A read or write failed on the local file system.
    Failed,
    /// A file handle was refused.
    Refused,
}

/// A tracepoint: group, name, meaning, and whether a recording needs it.
pub const POINTS: [(&str, &str, Point, bool); 12] = [
    ("sunrpc", "svc_process", Point::Process, true),
    ("sunrpc", "svc_stats_latency", Point::Reply, true),
    ("sunrpc", "svc_drop", Point::Drop, false),
    ("nfsd", "nfsd_compound_status", Point::Operation, true),
    ("nfsd", "nfsd_read_start", Point::Start, true),
    ("nfsd", "nfsd_read_io_done", Point::Moved, true),
    ("nfsd", "nfsd_read_err", Point::Failed, false),
    ("nfsd", "nfsd_write_start", Point::Start, true),
    ("nfsd", "nfsd_write_io_done", Point::Moved, true),
    ("nfsd", "nfsd_write_err", Point::Failed, false),
    ("nfsd", "nfsd_commit_start", Point::Start, false),
    ("nfsd", "nfsd_fh_verify_err", Point::Refused, false),
];

/// Fields of `svc_process`.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// Number of the request, chosen by the client.
    pub xid: Number,
    /// Version of the protocol.
    pub version: Number,
    /// Name of the service.
    pub service: Text,
    /// Name of the procedure.
    pub procedure: Text,
    /// Address and port of the client.
    pub client: Text,
}

/// Fields of `nfsd_compound_status`.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Operations of the compound.
    pub of: Number,
    /// Number of this operation, from 1.
    pub number: Number,
    /// NFS status.
    pub status: Number,
    /// Name.
    pub name: Text,
}

/// Fields of a read, write or commit.
#[derive(Clone, Copy, Debug)]
pub struct Io {
    /// Number of the request.
    pub xid: Number,
    /// Hash of the file handle.
    pub file: Number,
    /// First byte in the file.
    pub offset: Option<Number>,
    /// Bytes.
    pub length: Option<Number>,
    /// Negative error number, or NFS status.
    pub status: Option<Number>,
}

/// Bytes of ids that are compared between tracepoints, and of the hash of a file handle.
const WORD: u8 = 4;

/// Fields of all tracepoints of this kernel.
#[derive(Clone, Debug)]
pub struct Fields {
    /// Fields of `svc_process`.
    pub process: Process,
    /// Number of the request in `svc_stats_latency`.
    pub reply: Number,
    /// Fields of `nfsd_compound_status`.
    pub operation: Operation,
    thread: Number,
    io: [Option<Io>; POINTS.len()],
    /// Why optional tracepoints are not read, one line for each.
    pub unread: Vec<String>,
}

impl Fields {
    /// Find the fields in the formats of the available tracepoints.
    pub fn find<'a>(format: impl Fn(&str) -> Option<&'a Format>) -> Result<Self, TraceError> {
        let needed =
            |name: &str| format(name).ok_or_else(|| TraceError::new(format!("this kernel has no tracepoint {name}")));
        let (process, operation) = (needed("svc_process")?, needed("nfsd_compound_status")?);
        let (mut io, mut unread) = ([None; POINTS.len()], Vec::new());
        let thread = process.number_of("common_pid", WORD)?;
        for (place, (_, name, point, is_needed)) in POINTS.into_iter().enumerate() {
            let Some(format) = format(name) else {
                if is_needed {
                    needed(name)?;
                }
                continue;
            };
            // the thread is read before the tracepoint is known
            if format.number_of("common_pid", WORD)? != thread {
                return Err(TraceError::new(format!(
                    "{name} has its field common_pid at another place than svc_process"
                )));
            }
            match io_fields(format, point) {
                Ok(fields) => io[place] = fields,
                Err(error) if is_needed => return Err(error),
                Err(error) => unread.push(format!("{name} is not read: {error}")),
            }
        }
        Ok(Self {
            process: Process {
                xid: process.number_of("xid", WORD)?,
                version: process.number("vers")?,
                service: process.text("service")?,
                procedure: process.text("procedure")?,
                client: process.text("addr")?,
            },
            reply: needed("svc_stats_latency")?.number_of("xid", WORD)?,
            operation: Operation {
                of: operation.number("args_opcnt")?,
                number: operation.number("resp_opcnt")?,
                status: operation.number("status")?,
                name: operation.text("name")?,
            },
            thread,
            io,
            unread,
        })
    }

    /// The thread of a record.
    pub fn thread(&self, record: &[u8]) -> Option<u32> {
        self.thread.of(record).map(|thread| thread as u32)
    }

    /// Fields of the read, write or commit at this index of `POINTS`; None if it is not read.
    pub fn io(&self, place: usize) -> Option<Io> {
        *self.io.get(place)?
    }
}

/// Fields of a read, write or commit; None for other tracepoints.
fn io_fields(format: &Format, point: Point) -> Result<Option<Io>, TraceError> {
    let (has_offset, length, status) = match point {
        Point::Start => (true, None, None),
        Point::Moved => (true, Some("len"), None),
        Point::Failed => (true, None, Some("status")),
        Point::Refused => (false, None, Some("error")),
        Point::Process | Point::Reply | Point::Drop | Point::Operation => return Ok(None),
    };
    Ok(Some(Io {
        xid: format.number_of("xid", WORD)?,
        file: format.number_of("fh_hash", WORD)?,
        offset: has_offset.then(|| format.number("offset")).transpose()?,
        length: length.map(|name| format.number(name)).transpose()?,
        status: status.map(|name| format.number(name)).transpose()?,
    }))
}
