// SPDX-License-Identifier: Apache-2.0
//! The source `nfs`: operations of the kernel's NFS server.

use crate::failure::Failure;
use crate::limited::{read_text, RECORD};
use crate::nfs_names::NfsNames;
use crate::source::{Losses, Source, Tracepoint};
use iolab_core::frames::events::Rows;
use iolab_core::nfs::fields::{Fields, POINTS};
use iolab_core::nfs::Nfs;
use iolab_core::tracefs::format::Format;
use serde_json::{json, Map, Value};
use std::collections::HashMap;
use std::path::Path;

/// Limits of the tracepoints, listed in every recording.
const UNKNOWN: [&str; 2] = [
    "NFS: only reads, writes, commits and refused handles have a file; where its name is uncertain, it is a hash (fh:...)",
    "NFS 2 and 3: only errors of reads, writes and refused file handles are known",
];
/// What to do if a tracepoint lacks a needed field.
const UNFIT: &str = "; this version of iolab cannot record this kernel's NFS server: record without the source nfs";
/// Number of threads of the kernel's NFS server.
const THREADS: &str = "/proc/fs/nfsd/threads";

/// Operations of the kernel's NFS server.
pub struct NfsSource {
    epoch_ns: i64,
    nfs: Option<Nfs>,
    names: Option<NfsNames>,
    /// Whether names were read since the last reading of the rings.
    has_names: bool,
    /// Notes on data that is not read.
    unread: Vec<String>,
}

impl NfsSource {
    /// The source; `epoch_ns` added to the trace clock gives nanoseconds since the Unix epoch.
    pub fn new(epoch_ns: i64) -> Self {
        Self { epoch_ns, nfs: None, names: None, has_names: false, unread: Vec::new() }
    }
}

impl NfsSource {
    /// Read names once a round, after the rings and before their records.
    fn read_names(&mut self) {
        let (Some(names), Some(nfs)) = (&mut self.names, &mut self.nfs) else { return };
        if !std::mem::replace(&mut self.has_names, true) {
            names.read(&mut nfs.names);
        }
    }
}

fn fields(formats: &HashMap<&'static str, Format>) -> Result<Fields, Failure> {
    Fields::find(|name| formats.get(name)).map_err(|error| Failure::not_possible(error.0 + UNFIT))
}

impl Source for NfsSource {
    fn name(&self) -> &'static str {
        "nfs"
    }

    fn tracepoints(&self) -> Vec<Tracepoint> {
        let points = POINTS.map(|(group, name, _, needed)| Tracepoint { group, name, filter: String::new(), needed });
        points.to_vec()
    }

    fn why_absent(&self, tracefs: &Path) -> &'static str {
        if tracefs.join("events/nfsd").is_dir() {
            "this kernel's NFS server is too old to be recorded, or was built without tracing; use a newer kernel"
        } else {
            "the module nfsd is not loaded; start the NFS server (systemctl start nfs-server) or run 'modprobe nfsd'"
        }
    }

    fn unknown_without(&self, point: &Tracepoint) -> &'static str {
        match point.name {
            "svc_drop" => "requests that the server drops are counted as unmatched",
            "nfsd_read_err" => "errors of reads of NFS 2 and 3 are unknown",
            "nfsd_write_err" => "errors of writes of NFS 2 and 3 are unknown",
            "nfsd_commit_start" => "commits have no file",
            "nfsd_fh_verify_err" => "refused file handles of NFS 2 and 3 are unknown",
            _ => "",
        }
    }

    fn unread(&self, formats: &HashMap<&'static str, Format>) -> Result<Vec<String>, Failure> {
        fields(formats).map(|fields| fields.unread)
    }

    fn bind(&mut self, formats: &HashMap<&'static str, Format>) -> Result<(), Failure> {
        let fields = fields(formats)?;
        self.unread.clone_from(&fields.unread);
        // before the first record, so that every I/O has its report
        match NfsNames::start() {
            Ok(names) => self.names = Some(names),
            Err(error) => self.unread.push(format!(
                "NFS: names of files are unknown (fanotify: {}): files are known by the hash of their file handle (fh:...)",
                error.desc()
            )),
        }
        self.nfs = Some(Nfs::new(fields, self.epoch_ns));
        Ok(())
    }

    fn facts(&self) -> Map<String, Value> {
        let mut words = [&UNKNOWN.map(str::to_owned), &self.unread[..]].concat();
        if read_text(THREADS, RECORD).is_ok_and(|threads| threads.trim() == "0") {
            words.push("the NFS server is not running; operations are recorded once it starts".to_owned());
        }
        let facts = json!({
            "what": "operations of the NFS server (nfsd); latency from the start of the operation to its end, of the last one to the reply",
            "words": words,
        });
        facts.as_object().cloned().unwrap_or_default()
    }

    fn prepare(&mut self) {
        self.has_names = false;
    }

    fn round(&mut self, _until_ns: u64, _rows: &mut Rows) -> Result<(), Failure> {
        self.read_names();
        Ok(())
    }

    fn take(&mut self, point: usize, time_ns: u64, record: &[u8], rows: &mut Rows) {
        self.read_names();
        if let Some(nfs) = &mut self.nfs {
            nfs.take(point, time_ns, record, rows);
        }
    }

    fn lossy(&mut self, missing: bool) {
        if let Some(nfs) = &mut self.nfs {
            nfs.set_lossy(missing);
        }
    }

    fn losses(&mut self) -> Losses {
        let mut losses = Losses::default();
        if let Some(nfs) = &mut self.nfs {
            let (unpaired, damaged) = (&mut nfs.counts.unpaired, &mut nfs.counts.damaged);
            losses.add("unpaired", std::mem::take(unpaired), "requests without a reply, replies without a request");
            losses.add("damaged", std::mem::take(damaged), "records too short for their description");
        }
        losses
    }

    fn processes(&mut self) -> Vec<(u32, String, String)> {
        Vec::new()
    }

    fn events(&self) -> u64 {
        self.nfs.as_ref().map_or(0, |nfs| nfs.counts.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_optional_tracepoint_has_a_note() {
        let source = NfsSource::new(0);
        for point in source.tracepoints() {
            assert_eq!(source.unknown_without(&point).is_empty(), point.needed, "{}", point.name);
        }
    }
}
