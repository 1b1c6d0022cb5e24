// SPDX-License-Identifier: Apache-2.0
//! The tracepoints of the kernel's NFS server (nfsd) become operations.
//!
//! A thread of the server serves one request at a time, so that records belong together by thread and by the number of the
//! request (xid). A request of NFS 2 or 3 is one operation, from `svc_process` to `svc_stats_latency`, where the reply goes to
//! the transport. A request of NFS 4 is a compound: each operation in it is one, from the end of the operation before it to its
//! own end, and to the reply where it is the last. Operations that only prepare others (`PUTFH`, `SEQUENCE`) are part of the
//! operation that follows, unless they fail or the compound has no other.
//!
//! File, offset and size are those of the server's own read or write. Nothing is known of them where a request made none, for
//! example because the server refused it. Pure: nothing is looked up outside.

pub mod fields;
pub mod names;
pub mod status;

use crate::errno;
use crate::event::Op;
use crate::frames::events::{Key, Row, Rows};
use crate::pairing::WordMap;
use fields::{Fields, Io, Point, POINTS};
use names::FileNames;

/// Threads of RPC services that are kept; with more, all are forgotten and counted.
const THREADS: usize = 1 << 14;
/// File handles of which the name is kept.
const HANDLES: usize = 1 << 17;
/// Services of which requests are recorded; others (lockd, callbacks of an NFS client) use the same tracepoints.
const SERVICES: [&[u8]; 2] = [b"nfsd", b"nfsacl"];
/// Operations of NFS 4 that only prepare others of their compound.
const PREPARING: [&[u8]; 7] = [b"SEQUENCE", b"PUTFH", b"PUTROOTFH", b"PUTPUBFH", b"SAVEFH", b"RESTOREFH", b"GETFH"];

/// What is counted besides the operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations.
    pub events: u64,
    /// Requests without a reply, and replies without a request.
    pub unpaired: u64,
    /// Records too short for their own description.
    pub damaged: u64,
}

/// What is known of a file's part.
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
    /// Its procedure, with what is known of the operation that is under way.
    operation: Operation,
    client: Option<u32>,
    /// End of the last operation that became a row; at first the start of the request.
    since_ns: u64,
    /// Whether an operation of the compound has become a row.
    has_rows: bool,
    /// The last operation of the compound, which ends with the reply.
    last: Option<Operation>,
}

/// Turns records into operations.
#[derive(Debug)]
pub struct Nfs {
    fields: Fields,
    /// Requests in flight, by thread.
    requests: WordMap<u32, Request>,
    /// Numbers of the names of file handles without a path, by hash.
    handles: WordMap<u32, u32>,
    /// Paths of files, by hash of the handle; filled from elsewhere before the records of the same I/O are taken.
    pub names: FileNames,
    /// From the trace clock to the Unix epoch.
    epoch_ns: i64,
    lossy: bool,
    /// What was counted.
    pub counts: Counts,
}

impl Nfs {
    /// No operations yet; `epoch_ns` added to the trace clock gives nanoseconds since the Unix epoch.
    pub fn new(fields: Fields, epoch_ns: i64) -> Self {
        let (requests, handles, names) = (WordMap::default(), WordMap::default(), FileNames::default());
        Self { fields, requests, handles, names, epoch_ns, lossy: false, counts: Counts::default() }
    }

    /// Take a record of the tracepoint at this place in `POINTS`, in the order of time.
    pub fn take(&mut self, place: usize, time_ns: u64, record: &[u8], rows: &mut Rows) {
        let Some(&(_, _, point, _)) = POINTS.get(place) else { return };
        if self.take_record(place, point, time_ns, record, rows).is_none() {
            self.counts.damaged += 1;
        }
    }

    /// Records are missing from here on (true), or none are from here on (false): requests in flight are discarded, as
    /// a stale start would give a wrong latency. While records are missing no request is recorded.
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
                // the client sends it again: no reply is due
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
            // a compound's operations have a status of their own
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
