// SPDX-License-Identifier: Apache-2.0
//! Records of the NFS server, of a real kernel and built from its formats, become operations.
//!
//! The pages of `linux-6.1-nfsd` have reads and writes with direct I/O of a client over NFS 3 and of another over NFS
//! 4.2, a read at the end of a file, a file that does not exist, and a file that was deleted on the server.

#[path = "support/rings.rs"]
mod rings;

use iolab_core::event::Op;
use iolab_core::frames::events::Rows;
use iolab_core::frames::reader::{Frame, Reader};
use iolab_core::frames::{frame, Kind};
use iolab_core::nfs::fields::{Fields, POINTS};
use iolab_core::nfs::names::{hash, ExportNumber};
use iolab_core::nfs::Nfs;
use iolab_core::tracefs::format::Format;
use iolab_core::tracefs::merge::Merge;
use proptest::prelude::*;
use rings::Kernel;

const KERNEL: &str = "linux-6.1-nfsd";
/// Kernels with recorded formats.
const KERNELS: [&str; 2] = [KERNEL, "linux-6.12-nfsd"];
const EPOCH: i64 = 1_000_000;
/// A server thread.
const THREAD: u32 = 233;

/// An operation as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Operation {
    time: i64,
    op: &'static str,
    procedure: String,
    version: String,
    client: Option<String>,
    latency: Option<u64>,
    offset: Option<u64>,
    size: Option<u64>,
    file: Option<String>,
    error: Option<String>,
    thread: Option<u64>,
}

/// The operations of rows.
fn operations(rows: &mut Rows) -> Vec<Operation> {
    let frames = Reader::default().feed(&frame(Kind::Events, &rows.payload("nfs"))).unwrap();
    let Frame::Events(events) = &frames[0] else { panic!("a frame of events") };
    let number = |column: usize, width: usize, row: usize| {
        let column = &events.columns[column];
        let mut value = [0; 8];
        value[..width].copy_from_slice(&column.values[row * width..][..width]);
        (column.valid[row] == 1).then(|| u64::from_le_bytes(value))
    };
    let name = |column: usize, row| number(column, 4, row).map(|id| events.columns[column].names[id as usize].clone());
    let operation = |row| Operation {
        time: number(0, 8, row).unwrap() as i64 - EPOCH,
        op: Op::ALL[number(1, 1, row).unwrap() as usize].name(),
        procedure: name(16, row).unwrap(),
        version: name(12, row).unwrap(),
        client: name(13, row),
        latency: number(3, 8, row),
        offset: number(5, 8, row),
        size: number(6, 8, row),
        file: name(11, row),
        error: name(15, row),
        thread: number(8, 4, row),
    };
    (0..events.rows).map(operation).collect()
}

/// The server of a kernel.
struct Server {
    kernel: Kernel,
    nfs: Nfs,
    rows: Rows,
}

impl Server {
    fn new() -> Self {
        Self::of(KERNEL)
    }

    fn of(kernel: &str) -> Self {
        let kernel = Kernel::read(kernel);
        let fields = Fields::find(|name| kernel.formats.get(name)).unwrap();
        Self { kernel, nfs: Nfs::new(fields, EPOCH), rows: Rows::default() }
    }

    /// A record of a tracepoint of thread `THREAD`: numbers, then texts after the fixed fields.
    fn record(&self, event: &str, numbers: &[(&str, u64)], texts: &[(&str, &str)]) -> Vec<u8> {
        let thread = [("common_pid", u64::from(THREAD))];
        let mut record = self.kernel.record(event, &[&thread[..], numbers].concat(), "");
        for (name, text) in texts {
            let place = (record.len() as u32) | (text.len() as u32 + 1) << 16;
            let at = self.kernel.formats[event].field(name).unwrap().offset;
            record[at..at + 4].copy_from_slice(&place.to_le_bytes());
            record.extend(text.as_bytes());
            record.push(0);
        }
        record
    }

    fn take(&mut self, time: u64, event: &str, numbers: &[(&str, u64)], texts: &[(&str, &str)]) {
        let record = self.record(event, numbers, texts);
        let place = POINTS.iter().position(|point| point.1 == event).unwrap();
        self.nfs.take(place, time, &record, &mut self.rows);
    }

    fn start(&mut self, time: u64, xid: u64, service: &str, version: u64, procedure: &str) {
        let texts = [("service", service), ("procedure", procedure), ("addr", "10.0.0.7:812")];
        self.take(time, "svc_process", &[("xid", xid), ("vers", version)], &texts);
    }

    /// The end of an operation of a compound: number, number of operations, status.
    fn end(&mut self, time: u64, name: &str, number: u64, of: u64, status: u64) {
        let numbers = [("args_opcnt", of), ("resp_opcnt", number), ("status", status)];
        self.take(time, "nfsd_compound_status", &numbers, &[("name", name)]);
    }

    fn io(&mut self, time: u64, event: &str, xid: u64, offset: u64, length: (&str, u64)) {
        let mut numbers = vec![("xid", xid), ("fh_hash", 0xabc), ("offset", offset)];
        numbers.extend((!length.0.is_empty()).then_some(length));
        self.take(time, event, &numbers, &[]);
    }

    fn reply(&mut self, time: u64, xid: u64) {
        self.take(time, "svc_stats_latency", &[("xid", xid)], &[]);
    }

    fn operations(&mut self) -> Vec<Operation> {
        operations(&mut self.rows)
    }
}

/// All records of the recorded pages: time, index of the tracepoint, bytes.
fn recorded() -> Vec<(u64, usize, Vec<u8>)> {
    let kernel = Kernel::read(KERNEL);
    let mut merge = Merge::new(kernel.layout, 2);
    for processor in 0..2 {
        let path = format!("{}/../../tests/data/tracefs/{KERNEL}/cpu{processor}.page", env!("CARGO_MANIFEST_DIR"));
        merge.push(processor, std::fs::read(path).unwrap(), u64::MAX);
    }
    let mut records = Vec::new();
    merge.drain(u64::MAX, |_, time, record| {
        let is_of = |format: &Format| record[..2] == format.id.to_le_bytes();
        let place = POINTS.iter().position(|point| kernel.formats.get(point.1).is_some_and(is_of)).unwrap();
        records.push((time, place, record.to_vec()));
    });
    assert_eq!(merge.take_faults(), Default::default());
    records
}

#[test]
fn recorded_pages_become_the_operations_of_the_clients() {
    let mut server = Server::new();
    for (time, place, record) in recorded() {
        server.nfs.take(place, time, &record, &mut server.rows);
    }
    assert_eq!((server.nfs.counts.unpaired, server.nfs.counts.damaged), (0, 0));
    let operations = server.operations();
    assert_eq!(server.nfs.counts.events, operations.len() as u64);
    let of = |client: &str| {
        let of_client = operations.iter().filter(|operation| operation.client.as_deref() == Some(client));
        of_client.cloned().collect::<Vec<_>>()
    };
    let (three, four) = (of("127.0.0.1"), of("10.9.0.2"));
    assert_eq!(three.len() + four.len(), operations.len());
    assert!(three.iter().all(|operation| operation.version == "v3"));
    assert!(four.iter().all(|operation| operation.version == "v4"));
    let moved = |operations: &[Operation], op: &str| {
        let of_op = operations.iter().filter(|operation| operation.op == op);
        of_op.map(|operation| (operation.offset.unwrap(), operation.size.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(moved(&three, "read"), [(0, 8192), (8192, 8192)]);
    assert_eq!(moved(&three, "write"), [(32768, 16384)]);
    assert_eq!(moved(&four, "write"), [(32768, 32768)]);
    assert_eq!(moved(&four, "read"), [(65536, 0)], "64 KiB were requested at the end of the file");
    let errors: Vec<_> = operations.iter().filter_map(|o| Some((o.procedure.as_str(), o.error.as_deref()?))).collect();
    assert_eq!(errors, [("OPEN", "NFS4ERR_NOENT"), ("GETATTR", "NFS3ERR_STALE")]);
    let files: Vec<_> = operations.iter().filter(|o| o.size.is_some()).map(|o| o.file.as_deref().unwrap()).collect();
    assert_eq!(files, ["fh:34da77c3", "fh:34da77c3", "fh:34da77c3", "fh:4c593843", "fh:4c593843"]);
    let names: Vec<_> = four.iter().map(|operation| operation.procedure.as_str()).collect();
    let expected =
        "SEQUENCE OPEN ACCESS GETATTR WRITE GETATTR CLOSE ACCESS GETATTR LOOKUP GETATTR OPEN ACCESS GETATTR \
                    READ GETATTR CLOSE OPEN";
    assert_eq!(names.join(" "), expected);
    // the kernel's latencies of these requests in microseconds, which include the decoding before the start
    let latency = |operation: &Operation| operation.latency.unwrap() / 1000;
    let write = three.iter().find(|operation| operation.op == "write").unwrap();
    assert!((45_300..45_589).contains(&latency(write)), "{}", latency(write));
    let write = four.iter().find(|operation| operation.op == "write").unwrap();
    assert!((108_400..108_744).contains(&latency(write)), "{}", latency(write));
}

#[test]
fn records_of_each_kernel_become_the_same_operations() {
    let of_kernels = KERNELS.map(|kernel| {
        let mut server = Server::of(kernel);
        server.start(100, 7, "nfsd", 3, "WRITE");
        server.io(110, "nfsd_write_start", 7, 4096, ("len", 8192));
        server.io(120, "nfsd_write_io_done", 7, 4096, ("len", 8192));
        server.reply(130, 7);
        server.start(200, 8, "nfsd", 4, "COMPOUND");
        server.end(210, "OP_SEQUENCE", 1, 3, 0);
        server.end(215, "OP_PUTFH", 2, 3, 0);
        server.io(220, "nfsd_read_start", 8, 0, ("len", 65536));
        server.io(230, "nfsd_read_io_done", 8, 0, ("len", 65536));
        server.end(240, "OP_READ_PLUS", 3, 3, 0);
        server.reply(250, 8);
        server.start(300, 9, "nfsd", 3, "READ");
        server.io(310, "nfsd_read_start", 9, 0, ("len", 8192));
        server.io(320, "nfsd_read_err", 9, 0, ("status", -5i64 as u64));
        server.reply(330, 9);
        server.start(400, 10, "nfsd", 3, "READ");
        server.take(410, "nfsd_fh_verify_err", &[("xid", 10), ("fh_hash", 0xabc), ("error", 70)], &[]);
        server.reply(420, 10);
        server.start(500, 11, "nfsd", 3, "READ");
        server.take(510, "svc_drop", &[("xid", 11)], &[]);
        assert_eq!((server.nfs.counts.unpaired, server.nfs.counts.damaged), (0, 0), "{kernel}");
        server.operations()
    });
    assert_eq!(of_kernels[0], of_kernels[1]);
    let words: Vec<_> =
        of_kernels[1].iter().map(|o| (o.op, o.procedure.as_str(), o.latency, o.size, o.error.as_deref())).collect();
    assert_eq!(
        words,
        [
            ("write", "WRITE", Some(30), Some(8192), None),
            ("read", "READ_PLUS", Some(50), Some(65536), None),
            ("read", "READ", Some(30), None, Some("EIO")),
            ("read", "READ", Some(20), None, Some("NFS3ERR_STALE")),
        ]
    );
}

#[test]
fn an_operation_of_nfs_3_lasts_from_its_start_to_the_reply() {
    let mut server = Server::new();
    server.start(100, 7, "nfsd", 3, "WRITE");
    server.io(110, "nfsd_write_start", 7, 4096, ("len", 8192));
    server.io(150, "nfsd_write_io_done", 7, 4096, ("len", 8000));
    server.reply(190, 7);
    let expected = Operation {
        time: 190,
        op: "write",
        procedure: "WRITE".into(),
        version: "v3".into(),
        client: Some("10.0.0.7".into()),
        latency: Some(90),
        offset: Some(4096),
        size: Some(8000),
        file: Some("fh:00000abc".into()),
        thread: Some(u64::from(THREAD)),
        error: None,
    };
    assert_eq!(server.operations(), [expected]);
    let mut server = Server::new();
    server.start(200, 8, "nfsd", 3, "READ");
    server.io(210, "nfsd_read_start", 8, 0, ("len", 8192));
    server.io(220, "nfsd_read_err", 8, 0, ("status", -5i64 as u64));
    server.reply(230, 8);
    let failed = server.operations();
    assert_eq!((failed[0].error.as_deref(), failed[0].size, failed[0].offset), (Some("EIO"), None, Some(0)));
}

#[test]
fn a_file_has_its_path_if_it_is_certain() {
    let mut server = Server::new();
    let handle = ExportNumber { kind: 1, bytes: vec![7, 0, 0, 0] }.handle(1, &[5; 8]).unwrap();
    let number = u64::from(hash(&handle));
    let write = |server: &mut Server, time: u64, read: Option<(&[u8], u64)>| {
        server.start(time, 7, "nfsd", 3, "WRITE");
        server.take(time + 1, "nfsd_write_start", &[("xid", 7), ("fh_hash", number), ("offset", 0)], &[]);
        if let Some((path, read_ns)) = read {
            server.nfs.names.set(handle.clone(), Some(path), read_ns);
        }
        server.take(time + 2, "nfsd_write_io_done", &[("xid", 7), ("fh_hash", number), ("offset", 0), ("len", 9)], &[]);
        server.reply(time + 3, 7);
    };
    write(&mut server, 10, None);
    // the name arrives while the request is in flight
    write(&mut server, 20, Some((b"/srv/a", 30)));
    write(&mut server, 40, None);
    write(&mut server, 50, Some((b"/srv/\xff b", 60)));
    write(&mut server, 70, None);
    let files: Vec<_> = server.operations().into_iter().map(|operation| operation.file.unwrap()).collect();
    let hashed = format!("fh:{number:08x}");
    assert_eq!(files, [&hashed[..], "/srv/a", "/srv/a", &hashed, "/srv/\\xff b"]);
}

#[test]
fn the_latencies_of_a_compound_add_up() {
    let mut server = Server::new();
    server.start(100, 7, "nfsd", 4, "COMPOUND");
    server.end(110, "OP_SEQUENCE", 1, 5, 0);
    server.end(120, "OP_PUTFH", 2, 5, 0);
    server.io(125, "nfsd_read_start", 7, 0, ("len", 100));
    server.io(140, "nfsd_read_io_done", 7, 0, ("len", 90));
    server.end(150, "OP_READ", 3, 5, 0);
    server.io(155, "nfsd_write_start", 7, 512, ("len", 10));
    server.io(160, "nfsd_write_io_done", 7, 512, ("len", 10));
    server.end(170, "OP_WRITE", 4, 5, 0);
    server.end(180, "OP_GETATTR", 5, 5, 0);
    assert_eq!(server.nfs.counts.events, 2, "the last operation waits for the reply");
    server.reply(200, 7);
    let brief = |o: &Operation| (o.time, o.op, o.latency.unwrap(), o.offset, o.size);
    let operations = server.operations();
    assert_eq!(
        operations.iter().map(brief).collect::<Vec<_>>(),
        [(150, "read", 50, Some(0), Some(90)), (170, "write", 20, Some(512), Some(10)), (200, "other", 30, None, None)]
    );
}

#[test]
fn preparing_operations_are_reported_if_they_fail_or_are_alone() {
    let mut server = Server::new();
    server.start(0, 1, "nfsd", 4, "COMPOUND");
    server.end(10, "OP_SEQUENCE", 1, 1, 0);
    server.reply(20, 1);
    server.start(30, 2, "nfsd", 4, "COMPOUND");
    server.end(31, "OP_SEQUENCE", 1, 3, 0);
    server.end(32, "OP_PUTFH", 2, 3, 70);
    server.reply(40, 2);
    // a cached reply for a client that repeats a request: no operation is executed
    server.start(50, 3, "nfsd", 4, "COMPOUND");
    server.reply(60, 3);
    let brief = |o: &Operation| (o.procedure.clone(), o.error.clone(), o.latency.unwrap());
    let operations = server.operations();
    assert_eq!(
        operations.iter().map(brief).collect::<Vec<_>>(),
        [
            ("SEQUENCE".into(), None, 20),
            ("PUTFH".into(), Some("NFS4ERR_STALE".into()), 10),
            ("COMPOUND".into(), None, 10)
        ]
    );
}

#[test]
fn other_services_are_left_out() {
    let mut server = Server::new();
    server.start(0, 1, "lockd", 4, "LOCK");
    server.reply(10, 1);
    server.start(20, 2, "nfsacl", 3, "GETACL");
    server.reply(30, 2);
    assert_eq!(server.operations().iter().map(|o| o.procedure.as_str()).collect::<Vec<_>>(), ["GETACL"]);
    assert_eq!(server.nfs.counts.unpaired, 0);
}

#[test]
fn unmatched_records_are_counted_and_have_no_latency() {
    let mut server = Server::new();
    server.reply(5, 9);
    assert_eq!(std::mem::take(&mut server.nfs.counts.unpaired), 1, "its start was before the recording");
    server.start(10, 1, "nfsd", 3, "READ");
    server.start(20, 2, "nfsd", 3, "READ");
    assert_eq!(std::mem::take(&mut server.nfs.counts.unpaired), 1, "the first has no reply");
    server.io(25, "nfsd_read_io_done", 1, 0, ("len", 512));
    server.reply(30, 3);
    assert_eq!(std::mem::take(&mut server.nfs.counts.unpaired), 2, "a start and the reply to another");
    server.start(40, 4, "nfsd", 3, "READ");
    server.take(45, "svc_drop", &[("xid", 4)], &[]);
    server.start(50, 4, "nfsd", 3, "READ");
    server.reply(60, 4);
    assert_eq!(server.nfs.counts.unpaired, 0, "a dropped request is sent again");
    let operations = server.operations();
    assert_eq!(operations.iter().map(|o| (o.latency, o.size)).collect::<Vec<_>>(), [(Some(10), None)]);
}

#[test]
fn after_a_loss_no_latency_is_invented() {
    let mut server = Server::new();
    server.start(0, 1, "nfsd", 3, "READ");
    server.nfs.set_lossy(true);
    assert_eq!(std::mem::take(&mut server.nfs.counts.unpaired), 1);
    server.start(10, 1, "nfsd", 3, "READ");
    server.nfs.set_lossy(false);
    server.reply(20, 1);
    assert_eq!((server.nfs.counts.events, server.nfs.counts.unpaired), (0, 1));
    server.start(30, 2, "nfsd", 3, "READ");
    server.reply(40, 2);
    assert_eq!(server.operations()[0].latency, Some(10));
}

#[test]
fn a_missing_tracepoint_is_named() {
    let kernel = Kernel::read(KERNEL);
    for (_, name, _, needed) in POINTS {
        let fields = Fields::find(|other| kernel.formats.get(other).filter(|_| other != name));
        assert_eq!(fields.is_err(), needed, "{name}");
        if let Err(error) = fields {
            assert!(error.0.contains(name), "{}", error.0);
        }
    }
    let mut without = kernel.formats["svc_process"].clone();
    without.fields.retain(|field| field.name != "addr");
    let find = |name: &str| if name == "svc_process" { Some(&without) } else { kernel.formats.get(name) };
    assert!(Fields::find(find).unwrap_err().0.contains("addr"));
}

/// The fields of a kernel with a changed format of one event.
fn fields_with(event: &str, line: &str, instead: &str) -> Result<Fields, String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tracefs").join(KERNEL);
    let group = if event.starts_with("svc") { "sunrpc" } else { "nfsd" };
    let text = std::fs::read_to_string(path.join("events").join(group).join(event).join("format")).unwrap();
    assert!(text.contains(line), "{event} has no line {line}");
    let format = Format::parse(&text.replace(line, instead)).map_err(|error| error.0)?;
    let kernel = Kernel::read(KERNEL);
    let fields = Fields::find(|name| if name == event { Some(&format) } else { kernel.formats.get(name) });
    fields.map_err(|error| error.0)
}

#[test]
fn a_field_of_another_form_is_named_and_not_misread() {
    for (event, line, instead, words) in [
        ("svc_process", "u32 xid;", "u32 number;", "svc_process has no field xid"),
        (
            "svc_process",
            "size:4;\tsigned:0;\n\tfield:u32 vers",
            "size:8;\tsigned:0;\n\tfield:u32 vers",
            "xid of svc_process has 8 bytes",
        ),
        ("svc_process", "__data_loc char[] addr", "__data_loc u8[] addr", "addr of svc_process is not a text"),
        ("svc_process", "__data_loc char[] addr", "const char * addr", "addr of svc_process is not a text"),
        ("nfsd_read_start", "u32 fh_hash;", "u32 fh_hash[1];", "fh_hash of nfsd_read_start is not a number"),
        ("svc_stats_latency", "int common_pid;", "int common_thread;", "svc_stats_latency has no field common_pid"),
        ("nfsd_write_start", "offset:4;", "offset:6;", "at another place"),
        ("nfsd_write_start", "offset:4;", "offset:;", "cannot read the field"),
    ] {
        let error = fields_with(event, line, instead).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    // without an optional tracepoint, and with a field relative to its own end, the server is recorded
    let fields = fields_with("nfsd_read_err", "u32 fh_hash;", "u64 fh_hash;").unwrap();
    assert_eq!(fields.unread, Vec::<String>::new(), "the type is a name, the size counts");
    let fields = fields_with("nfsd_read_err", "fh_hash;", "handle;").unwrap();
    assert_eq!(fields.unread.len(), 1);
    assert!(fields.unread[0].contains("nfsd_read_err") && fields.unread[0].contains("fh_hash"));
    assert!(fields_with("svc_process", "__data_loc char[] addr", "__rel_loc char[] addr").is_ok());
}

#[test]
fn an_optional_tracepoint_that_is_not_read_changes_nothing() {
    let mut server = Server::new();
    server.nfs = Nfs::new(fields_with("nfsd_read_err", "fh_hash;", "handle;").unwrap(), EPOCH);
    server.start(200, 8, "nfsd", 3, "READ");
    server.io(210, "nfsd_read_start", 8, 0, ("len", 8192));
    server.io(220, "nfsd_read_err", 8, 0, ("status", -5i64 as u64));
    server.reply(230, 8);
    let read = server.operations();
    assert_eq!((read[0].error.as_deref(), read[0].offset, server.nfs.counts.damaged), (None, Some(0), 0));
}

#[test]
fn cut_records_are_counted_as_damaged() {
    let records = recorded();
    for length in 0..24 {
        let mut server = Server::new();
        for (time, place, record) in &records {
            server.nfs.take(*place, *time, &record[..length], &mut server.rows);
        }
        let damaged = server.nfs.counts.damaged;
        assert!(if length < 12 { damaged == records.len() as u64 } else { damaged > 0 }, "{length}: {damaged}");
        assert_eq!(server.nfs.counts.events, 0);
    }
}

proptest! {
    #[test]
    fn damaged_records_never_panic(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..60)) {
        let mut records = recorded();
        for (record, byte, value) in flips {
            let count = records.len();
            let record = &mut records[record.index(count)].2;
            let length = record.len();
            record[byte.index(length)] = value;
        }
        let mut server = Server::new();
        for (time, place, record) in &records {
            server.nfs.take(*place, *time, record, &mut server.rows);
        }
        prop_assert_eq!(server.rows.len() as u64, server.nfs.counts.events);
        prop_assert!(server.nfs.counts.events <= records.len() as u64);
        server.operations();
    }
}
