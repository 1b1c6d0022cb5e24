// SPDX-License-Identifier: Apache-2.0
//! Turns tracepoints of the kernel's NFS server (nfsd) into operations.
//!
//! A server thread handles one request at a time, so records of a request have the same thread and request id (xid). A
//! request of NFS 2 or 3 is one operation, from `svc_process` to `svc_stats_latency`, when the reply is passed to the
//! transport. A request of NFS 4 is a compound: each of its operations lasts from the end of the previous one to its
//! own end; the last one lasts to the reply. Operations that only prepare others (`PUTFH`, `SEQUENCE`) are part of the
//! next operation, unless they fail or the compound has no other.
//!
//! File, offset and size are those of the read or write in the server. They are unknown if a request caused none, for
//! example because the server refused it. Does no I/O.

pub mod fields;
pub mod names;
pub mod status;

use crate::errno;
use crate::event::Op;
use crate::frames::events::{Key, Row, Rows};
use fields::{Fields, Io, Point, POINTS};
use names::FileNames;
use std::collections::HashMap;

/// Maximum number of threads of RPC services. Above it, all are dropped and counted.
const THREADS: usize = 1 << 14;
/// Maximum number of file handles with a name.
const HANDLES: usize = 1 << 17;
/// Recorded services; others (lockd, callbacks of an NFS client) use the same tracepoints.
const SERVICES: [&[u8]; 2] = [b"nfsd", b"nfsacl"];
/// Operations of NFS 4 that only prepare others of their compound.
const PREPARING: [&[u8]; 7] = [b"SEQUENCE", b"PUTFH", b"PUTROOTFH", b"PUTPUBFH", b"SAVEFH", b"RESTOREFH", b"GETFH"];

/// Counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations.
    pub events: u64,
    /// Requests without a reply, and replies without a request.
    pub unpaired: u64,
    /// Records shorter than their format.
    pub damaged: u64,
}

/// Properties of a read or write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    /// Hash of the file handle.
    file: Option<u32>,
    offset: Option<u64>,
    size: Option<u64>,
    error: Option<u32>,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
struct Operation {
    op: Op,
    name: u32,
    part: Part,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
struct Request {
    xid: u32,
    version: u64,
    /// Whether it is one of `SERVICES`.
    wanted: bool,
    /// Its procedure, with the properties of the current operation.
    operation: Operation,
    client: Option<u32>,
    /// End of the last operation with a row; initially the start of the request.
    since_ns: u64,
    /// Whether an operation of the compound has a row.
    has_rows: bool,
    /// The last operation of the compound; it ends with the reply.
    last: Option<Operation>,
}

/// Turns records into operations.
#[derive(Debug)]
pub struct Nfs {
    fields: Fields,
    /// Requests in flight, by thread.
    requests: HashMap<u32, Request>,
    /// Ids of the names of file handles without a path, by hash.
    handles: HashMap<u32, u32>,
    /// Paths of files, by hash of the handle; set by the caller before the records of the same I/O are processed.
    pub names: FileNames,
    /// Difference of the Unix epoch and the trace clock.
    epoch_ns: i64,
    lossy: bool,
    /// Counts.
    pub counts: Counts,
}

impl Nfs {
    /// No operations yet. `epoch_ns` plus the trace clock is the time in nanoseconds since the Unix epoch.
    pub fn new(fields: Fields, epoch_ns: i64) -> Self {
        let (requests, handles, names) = (HashMap::default(), HashMap::default(), FileNames::default());
        Self { fields, requests, handles, names, epoch_ns, lossy: false, counts: Counts::default() }
    }

    /// Process a record of the tracepoint at this index of `POINTS`, in order of time.
    pub fn take(&mut self, place: usize, time_ns: u64, record: &[u8], rows: &mut Rows) {
        let Some(&(_, _, point, _)) = POINTS.get(place) else { return };
        if self.take_record(place, point, time_ns, record, rows).is_none() {
            self.counts.damaged += 1;
        }
    }

    /// Records are missing from now on (true), or complete from now on (false). Requests in flight are dropped, because
    /// a stale start would give a wrong latency. While records are missing, no request is recorded.
    pub fn set_lossy(&mut self, missing: bool) {
        self.forget_all();
        self.lossy = missing;
    }

    fn forget_all(&mut self) {
        self.counts.unpaired += self.requests.values().filter(|request| request.wanted).count() as u64;
        self.requests.clear();
    }

    fn take_record(&mut self, place: usize, point: Point, time_ns: u64, record: &[u8], rows: &mut Rows) -> Option<()> {
        let thread = self.fields.thread(record)?;
        match point {
            Point::Process => self.start(thread, time_ns, record, rows),
            Point::Reply => self.reply(thread, time_ns, record, rows),
            Point::Drop => {
                // the client sends it again: there is no reply
                self.requests.remove(&thread);
                Some(())
            }
            Point::Operation => self.operation(thread, time_ns, record, rows),
            Point::Start | Point::Moved | Point::Failed | Point::Refused => match self.fields.io(place) {
                Some(fields) => self.io(thread, fields, point, record, rows),
                None => Some(()),
            },
        }
    }

    fn start(&mut self, thread: u32, time_ns: u64, record: &[u8], rows: &mut Rows) -> Option<()> {
        let fields = self.fields.process;
        let (xid, version) = (fields.xid.of(record)? as u32, fields.version.of(record)?);
        let (service, procedure) = (fields.service.of(record)?, fields.procedure.of(record)?);
        let client = address(fields.client.of(record)?);
        if self.lossy {
            return Some(());
        }
        let wanted = SERVICES.contains(&service);
        let operation = if wanted {
            Operation::new(procedure, rows)
        } else {
            Operation { op: Op::Other, name: 0, part: Part::default() }
        };
        let client = client.filter(|_| wanted).map(|client| rows.intern(Key::Client, &client));
        if self.requests.len() >= THREADS {
            self.forget_all();
        }
        let request =
            Request { xid, version, wanted, operation, client, since_ns: time_ns, has_rows: false, last: None };
        let before = self.requests.insert(thread, request);
        self.counts.unpaired += u64::from(before.is_some_and(|before| before.wanted));
        Some(())
    }

    fn operation(&mut self, thread: u32, time_ns: u64, record: &[u8], rows: &mut Rows) -> Option<()> {
        let fields = self.fields.operation;
        let (of, number) = (fields.of.of(record)?, fields.number.of(record)?);
        let status = fields.status.of(record)? as u32;
        let name = fields.name.of(record)?;
        let name = name.strip_prefix(b"OP_").unwrap_or(name);
        let Some(request) = self.requests.get_mut(&thread).filter(|request| request.wanted) else { return Some(()) };
        let part = std::mem::take(&mut request.operation.part);
        let is_last = status != 0 || number >= of;
        let prepares = status == 0 && PREPARING.contains(&name);
        if prepares && (!is_last || request.has_rows) {
            return Some(());
        }
        let error = (status != 0).then(|| rows.intern(Key::Error, status::words(status, request.version).as_bytes()));
        let operation = Operation { part: Part { error, ..part }, ..Operation::new(name, rows) };
        if is_last {
            request.last = Some(operation);
            return Some(());
        }
        let request_before = *request;
        request.since_ns = time_ns;
        request.has_rows = true;
        self.push(request_before, operation, thread, time_ns, rows);
        Some(())
    }

    fn io(&mut self, thread: u32, fields: Io, point: Point, record: &[u8], rows: &mut Rows) -> Option<()> {
        let (xid, hash) = (fields.xid.of(record)? as u32, fields.file.of(record)? as u32);
        let value = |field: Option<crate::tracefs::format::Number>| match field {
            Some(number) => number.of(record).map(Some),
            None => Some(None),
        };
        let (offset, length, status) = (value(fields.offset)?, value(fields.length)?, value(fields.status)?);
        let Some(request) = self.requests.get_mut(&thread).filter(|request| request.wanted && request.xid == xid)
        else {
            return Some(());
        };
        let part = &mut request.operation.part;
        // a kernel without CONFIG_CRC32 has no hash
        part.file = part.file.or((hash != 0).then_some(hash));
        part.offset = part.offset.or(offset);
        match (point, status) {
            (Point::Moved, _) => part.size = length.map(|length| part.size.unwrap_or(0).saturating_add(length)),
            // operations of a compound have their own status
            (Point::Failed, Some(error)) if request.version < 4 => {
                let number = (error as i64).unsigned_abs().min(u64::from(u32::MAX)) as u32;
                part.error = Some(rows.intern(Key::Error, errno::words(number).as_bytes()));
            }
            (Point::Refused, Some(status)) if request.version < 4 && status as u32 != 0 => {
                part.error = Some(rows.intern(Key::Error, status::words(status as u32, request.version).as_bytes()));
            }
            _ => {}
        }
        Some(())
    }

    fn reply(&mut self, thread: u32, time_ns: u64, record: &[u8], rows: &mut Rows) -> Option<()> {
        let xid = self.fields.reply.of(record)? as u32;
        let Some(request) = self.requests.remove(&thread) else {
            self.counts.unpaired += 1;
            return Some(());
        };
        if request.xid != xid {
            self.counts.unpaired += 1 + u64::from(request.wanted);
            return Some(());
        }
        let operation = request.last.unwrap_or(request.operation);
        if request.wanted && (request.last.is_some() || !request.has_rows) {
            self.push(request, operation, thread, time_ns, rows);
        }
        Some(())
    }

    fn push(&mut self, request: Request, operation: Operation, thread: u32, time_ns: u64, rows: &mut Rows) {
        let Operation { op, name, part } = operation;
        let mut row = Row::at(self.epoch_ns.saturating_add_unsigned(time_ns), op);
        row.latency_ns = Some(time_ns.saturating_sub(request.since_ns));
        (row.offset_bytes, row.size_bytes, row.thread) = (part.offset, part.size, Some(thread));
        row.keys[Key::File as usize] = part.file.map(|hash| self.file(hash, time_ns, rows));
        row.keys[Key::Client as usize] = request.client;
        row.keys[Key::Error as usize] = part.error;
        row.keys[Key::Flags as usize] = Some(name);
        row.keys[Key::Mount as usize] = Some(rows.intern(Key::Mount, format!("v{}", request.version).as_bytes()));
        rows.push(&row);
        self.counts.events += 1;
    }

    /// The path of a file at this time, or the hash of its handle as a name.
    fn file(&mut self, hash: u32, time_ns: u64, rows: &mut Rows) -> u32 {
        if let Some(path) = self.names.path(hash, time_ns) {
            return rows.intern(Key::File, path);
        }
        if self.handles.len() >= HANDLES {
            self.handles.clear();
        }
        let name = || rows.intern(Key::File, format!("fh:{hash:08x}").as_bytes());
        *self.handles.entry(hash).or_insert_with(name)
    }
}

impl Operation {
    fn new(name: &[u8], rows: &mut Rows) -> Self {
        let op = match name {
            b"READ" | b"READ_PLUS" => Op::Read,
            b"WRITE" => Op::Write,
            b"COMMIT" => Op::Sync,
            b"DEALLOCATE" => Op::Trim,
            _ => Op::Other,
        };
        Self { op, name: rows.intern(Key::Flags, name), part: Part::default() }
    }
}

/// The address of a client without its port: of `10.0.0.7:789`, `[fe80::7]:789` and `10.0.0.7, port=789`.
fn address(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let address = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => {
            text.split_once(',').map_or_else(|| text.rsplit_once(':').map_or(text, |(host, _)| host), |(host, _)| host)
        }
    };
    let is_address = address.starts_with(|letter: char| letter.is_ascii_hexdigit() || letter == ':');
    is_address.then(|| address.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_their_port() {
        for (text, expected) in [
            ("10.0.0.7:789", Some("10.0.0.7")),
            ("10.0.0.7, port=789", Some("10.0.0.7")),
            ("[fe80::7%eth0]:789", Some("fe80::7%eth0")),
            ("[::1]:2049", Some("::1")),
            ("fe80::7, port=789", Some("fe80::7")),
            ("(null)", None),
            ("(einval)", None),
            ("", None),
            ("[::1", None),
        ] {
            assert_eq!(address(text.as_bytes()).as_deref(), expected.map(str::as_bytes), "{text}");
        }
    }
}
