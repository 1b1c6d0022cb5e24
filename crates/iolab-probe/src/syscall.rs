// SPDX-License-Identifier: Apache-2.0
//! The source `syscall`: calls of processes on regular files and block devices.

use crate::args::Settings;
use crate::clock::monotonic_ns;
use crate::failure::Failure;
use crate::fanotify::Watch;
use crate::files::{command_of, Files};
use crate::files_start;
use crate::smb_clients::{kernel_server, SmbClients};
use crate::source::{Losses, Source, Tracepoint};
use crate::syscall_record::Decoder;
use iolab_core::frames::events::{Key, Row, Rows, NAMED};
use iolab_core::syscall::descriptor::Why;
use iolab_core::syscall::{Counts, FileIo, Record, Timed, Tracker};
use iolab_core::tracefs::format::Format;
use nix::errno::Errno;
use nix::sys::stat::stat;
use serde_json::{json, Map, Value};
use std::collections::HashMap;

/// I/O that this layer does not see; shown on every page of the layer.
const UNSEEN: &str = "I/O by io_uring, libaio, mmap, nfsd and 32-bit programs makes no such calls and is not in here";
/// Why I/Os have no name.
const UNKNOWN: [(Why, &str); 4] = [
    (Why::Order, "I/Os on files that were closed while several names were possible"),
    (Why::Reused, "I/Os on files that were closed while their name was read from /proc"),
    (Why::Raced, "I/Os during which another thread closed or replaced the descriptor"),
    (Why::Directory, "I/Os on files in directories that were renamed or deleted at that time"),
];
/// Maximum number of file names; beyond it, they are dropped and sent again.
const FILES: usize = 1 << 15;

/// Calls on files.
pub struct SyscallSource {
    epoch_ns: i64,
    decoder: Decoder,
    tracker: Tracker,
    files: Files,
    smb_clients: SmbClients,
    /// Device numbers of the requested file systems.
    requested: Option<Vec<u64>>,
    mounts: Vec<String>,
    watch: Option<Watch>,
    words: Vec<String>,
    counts: Counts,
    /// Returns of calls during a loss of records.
    skipped: u64,
    last_ns: u64,
    lossy: bool,
    events: u64,
}

impl SyscallSource {
    /// The source for these settings. Fails if a requested path does not exist.
    pub fn new(settings: &Settings, epoch_ns: i64) -> Result<Self, Failure> {
        let mut requested = Vec::new();
        for path in &settings.mounts {
            let status = stat(path)
                .map_err(|error| Failure::not_possible(format!("--mount {}: {}", path.display(), error.desc())))?;
            requested.push(status.st_dev);
        }
        let requested = (!requested.is_empty()).then_some(requested);
        Ok(Self {
            epoch_ns,
            decoder: Decoder::default(),
            tracker: Tracker::new(settings.excluded.iter().copied().chain([std::process::id()])),
            files: Files::new(requested.clone()),
            smb_clients: SmbClients::default(),
            requested,
            mounts: settings.mounts.iter().map(|path| path.display().to_string()).collect(),
            watch: None,
            words: [Some(UNSEEN.to_owned()), kernel_server()].into_iter().flatten().collect(),
            counts: Counts::default(),
            skipped: 0,
            last_ns: 0,
            lossy: false,
            events: 0,
        })
    }

    fn work(&mut self, until_ns: u64, rows: &mut Rows) {
        // file numbers are stored only in `rows`
        if rows.is_empty() && rows.names(Key::File) > FILES {
            rows.restart(Key::File);
        }
        if let Some(watch) = &self.watch {
            let (notices, quiet) = watch.take();
            notices.into_iter().for_each(|notice| self.tracker.notice(notice));
            quiet.into_iter().for_each(|(from_ns, until_ns)| self.tracker.quiet(from_ns, until_ns));
            self.files.set_all_watched(watch.is_complete());
            for words in watch.take_words() {
                eprintln!("iolab-probe: {words}");
            }
        }
        let Self { tracker, files, smb_clients, epoch_ns, events, .. } = self;
        tracker.round(until_ns, files, &mut |io| {
            let mut keys = keys(io, rows);
            let client = smb_clients.client(io.pid, io.process);
            keys[Key::Client as usize] = client.map(|address| rows.intern(Key::Client, address.to_string().as_bytes()));
            rows.push(&row(io, *epoch_ns, keys));
            *events += 1;
        });
        let counts = self.tracker.take_counts();
        for (sum, count) in self.counts.unknown_names.iter_mut().zip(counts.unknown_names) {
            *sum += count;
        }
        self.counts.unpaired += counts.unpaired;
        self.counts.unsure += counts.unsure;
    }
}

/// Names of a row, as numbers.
fn keys(io: &FileIo<'_>, rows: &mut Rows) -> [Option<u32>; NAMED] {
    let mut keys = [None; NAMED];
    keys[Key::Process as usize] = Some(rows.intern(Key::Process, io.process));
    keys[Key::File as usize] = io.file.map(|file| rows.intern(Key::File, file));
    keys[Key::Mount as usize] = io.mount.map(|mount| rows.intern(Key::Mount, mount));
    keys[Key::Error as usize] = io.error.map(|error| rows.intern(Key::Error, error.as_bytes()));
    keys[Key::Flags as usize] = Some(rows.intern(Key::Flags, io.call.as_bytes()));
    keys
}

fn row(io: &FileIo<'_>, epoch_ns: i64, keys: [Option<u32>; NAMED]) -> Row {
    Row {
        latency_ns: Some(io.latency_ns),
        offset_bytes: io.offset,
        size_bytes: io.size,
        pid: Some(io.pid),
        thread: Some(io.thread),
        keys,
        ..Row::at(io.time_ns as i64 + epoch_ns, io.op)
    }
}

impl Source for SyscallSource {
    fn name(&self) -> &'static str {
        "syscall"
    }

    fn tracepoints(&self) -> Vec<Tracepoint> {
        Decoder::tracepoints()
    }

    fn unread(&self, formats: &HashMap<&'static str, Format>) -> Result<Vec<String>, Failure> {
        Decoder::new(formats).map(|_| Vec::new()).map_err(|error| Failure::not_possible(error.0))
    }

    fn bind(&mut self, formats: &HashMap<&'static str, Format>) -> Result<(), Failure> {
        self.decoder = Decoder::new(formats).map_err(|error| Failure::not_possible(error.0))?;
        // before the first record, so that every open has its notice
        match Watch::start(self.requested.clone()) {
            Ok(watch) => {
                self.words.extend(watch.take_words());
                self.watch = Some(watch);
            }
            Err(Errno::EPERM) => return Err(Failure::not_permitted("watching opens of files (fanotify) needs root")),
            Err(error) => self.words.push(format!(
                "this kernel does not report the names of opened files (fanotify: {}): they are read from /proc, and short-lived processes have none",
                error.desc()
            )),
        }
        Ok(())
    }

    /// Reads the open descriptors of all processes; from now on every change makes a record.
    fn started(&mut self) {
        let (processes, beyond) = files_start::all(&mut self.files, std::process::id());
        if beyond {
            self.words.push("too many open descriptors to read at the start: the others are read when used".to_owned());
        }
        self.tracker.start(processes, monotonic_ns());
    }

    fn facts(&self) -> Map<String, Value> {
        let names = if self.watch.is_some() { "fanotify and /proc" } else { "/proc" };
        let facts = json!({
            "what": "system calls on regular files and block devices; latency from entry to return",
            "names": format!("{names}: the path that a file had when it was opened"), "mounts": self.mounts, "words": self.words,
        });
        facts.as_object().cloned().unwrap_or_default()
    }

    fn take(&mut self, point: usize, time_ns: u64, record: &[u8], rows: &mut Rows) {
        self.last_ns = time_ns;
        let Some((task, record)) = self.decoder.record(point, record) else { return };
        if self.lossy {
            // entry and return of two calls may look like one call: none is paired while records are missing
            self.skipped += u64::from(matches!(record, Record::Exit { call, .. } if call.moves_data()));
            return;
        }
        self.tracker.record(Timed { time_ns, task, record });
        if self.tracker.full() {
            // another record of this time may follow
            self.work(time_ns.saturating_sub(1), rows);
        }
    }

    fn lossy(&mut self, missing: bool) {
        if missing {
            self.tracker.record(Timed { time_ns: self.last_ns, task: 0, record: Record::Lost });
        }
        self.lossy = missing;
    }

    fn damaged(&mut self) {
        self.tracker.damaged();
    }

    fn prepare(&mut self) {
        if let Some(watch) = &self.watch {
            watch.read();
        }
    }

    fn round(&mut self, until_ns: u64, rows: &mut Rows) -> Result<(), Failure> {
        self.work(until_ns, rows);
        Ok(())
    }

    fn stopped(&mut self, time_ns: u64) {
        self.tracker.end(time_ns);
    }

    fn waits_since_ns(&self) -> Option<u64> {
        self.tracker.waits_since_ns()
    }

    fn losses(&mut self) -> Losses {
        let mut losses = Losses::default();
        let Counts { unknown_names, unpaired, unsure } = std::mem::take(&mut self.counts);
        for (why, words) in UNKNOWN {
            losses.add("unknown-name", unknown_names[why as usize], words);
        }
        losses.add("unpaired", unsure, "calls on descriptors that changed before it was known whether they were files");
        losses.add("unpaired", unpaired, "calls on files whose return was not seen");
        losses.add("unpaired", std::mem::take(&mut self.skipped), "calls, on files or not, while records were missing");
        losses.add("damaged", self.decoder.take_damaged(), "records too short for their description");
        losses
    }

    fn processes(&mut self) -> Vec<(u32, String, String)> {
        let name = |bytes: Vec<u8>| iolab_core::names::text(&bytes);
        self.tracker.take_seen().into_iter().map(|seen| (seen.pid, name(seen.process), command_of(seen.pid))).collect()
    }

    fn events(&self) -> u64 {
        self.events
    }
}

/// Whether fanotify, which this source needs besides the tracepoints, is available.
pub fn can_watch() -> Result<(), String> {
    match Watch::start(None) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("fanotify: {}; names of files come from /proc alone", error.desc())),
    }
}
