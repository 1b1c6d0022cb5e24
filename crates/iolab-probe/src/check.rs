// SPDX-License-Identifier: Apache-2.0
//! `--check`: what this machine can do, as JSON.

use crate::args::Settings;
use crate::block::BlockSource;
use crate::clock::Anchor;
use crate::instance::{owned, remove_stale};
use crate::nfs::NfsSource;
use crate::session::ring_kib;
use crate::smb_clients::kernel_server;
use crate::source::Source;
use crate::syscall::{can_watch, SyscallSource};
use crate::traced::formats;
use crate::tracefs;
use serde_json::{json, Map, Value};
use std::path::Path;

/// What this machine supports, by source.
pub fn check(settings: &Settings) -> Value {
    let place = tracefs::find(settings.tracefs.as_deref());
    let mut sources = Map::new();
    let tracefs = place.as_deref().map_err(Clone::clone);
    let anchor = Anchor::now();
    let block = BlockSource::new(settings, anchor.epoch_ns());
    sources.insert(
        "block".into(),
        match (tracefs.clone(), block) {
            (Ok(tracefs), Ok(block)) => traced(tracefs, &block),
            (Err(failure), _) | (_, Err(failure)) => json!({"available": false, "words": [failure.message]}),
        },
    );
    let syscall = SyscallSource::new(settings, anchor.epoch_ns());
    sources.insert(
        "syscall".into(),
        match (tracefs.clone(), syscall) {
            (Ok(tracefs), Ok(syscall)) => with_words(traced(tracefs, &syscall), [can_watch().err(), kernel_server()]),
            (Err(failure), _) | (_, Err(failure)) => json!({"available": false, "words": [failure.message]}),
        },
    );
    let nfs = NfsSource::new(anchor.epoch_ns());
    sources.insert(
        "nfs".into(),
        match tracefs {
            Ok(tracefs) => traced(tracefs, &nfs),
            Err(failure) => json!({"available": false, "words": [failure.message]}),
        },
    );
    sources.insert("counters".into(), json!({"available": true, "words": []}));
    let (dead, alive) = tracefs::mounted(settings.tracefs.as_deref()).map(|place| owned(&place)).unwrap_or_default();
    json!({
        "probe": env!("CARGO_PKG_VERSION"),
        "kernel": crate::limited::read_text("/proc/sys/kernel/osrelease", crate::limited::RECORD).unwrap_or_default().trim(),
        "root": nix::unistd::geteuid().is_root(),
        "tracefs": place.ok(),
        "ring_kib": ring_kib(settings),
        "sources": sources,
        "instances": {"dead": dead, "alive": alive},
    })
}

/// Remove the tracefs instances of probes that have ended. Returns the removed ones and those that could not be
/// removed.
pub fn clean(settings: &Settings) -> Value {
    let place = tracefs::mounted(settings.tracefs.as_deref());
    let (removed, kept) = place.map(|place| remove_stale(&place)).unwrap_or_default();
    json!({"removed": removed, "kept": kept})
}

/// Adds notes to a source's answer.
fn with_words(mut answer: Value, more: impl IntoIterator<Item = Option<String>>) -> Value {
    if let Some(words) = answer["words"].as_array_mut() {
        words.extend(more.into_iter().flatten().map(Value::from));
    }
    answer
}

/// Whether the tracepoints of a source exist and have the expected format.
fn traced(tracefs: &Path, source: &dyn Source) -> Value {
    let read = formats(source, tracefs);
    match read.and_then(|(formats, lacking)| Ok([lacking, source.unread(&formats)?].concat())) {
        Ok(words) => json!({"available": true, "words": words}),
        Err(failure) => json!({"available": false, "words": [failure.message]}),
    }
}
