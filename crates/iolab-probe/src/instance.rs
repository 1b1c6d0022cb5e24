// SPDX-License-Identifier: Apache-2.0
//! A tracefs instance of this probe: private rings, removed at the end.

use crate::failure::Failure;
use crate::limited::{read_text, RECORD};
use crate::tracefs::{read, write};
use std::path::{Path, PathBuf};

const PREFIX: &str = "iolab-";

/// Start time of a process in clock ticks since boot, which shows that a PID was reused. None if the process ended,
/// even if its parent has not reaped it.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = read_text(format!("/proc/{pid}/stat"), RECORD).ok()?;
    // the name in parentheses may contain any character
    let rest = stat.rsplit_once(')')?.1;
    let mut fields = rest.split_whitespace();
    if matches!(fields.next()?, "Z" | "X" | "x") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// An instance. Dropping it removes it.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
}

impl Instance {
    /// Create the instance of a source, with a ring of this size per processor.
    pub fn make(tracefs: &Path, source: &str, ring_kib: u64) -> Result<Self, Failure> {
        let pid = std::process::id();
        let path = tracefs.join("instances").join(format!("{PREFIX}{pid}-{}-{source}", start_time(pid).unwrap_or(0)));
        std::fs::create_dir(&path).map_err(|error| Failure::io(&path, &error))?;
        let instance = Self { path };
        let at = |file: &str| instance.path.join(file);
        write(&at("tracing_on"), "0")?;
        write(&at("trace_clock"), "mono")?;
        write(&at("trace_options"), "nooverwrite")?;
        // the probe looks up process names; the kernel's own recording costs time at every context switch
        for option in ["norecord-cmd", "norecord-tgid", "nomarkers"] {
            let _ = write(&at("trace_options"), option);
        }
        // larger sub-buffers need fewer reads; kernels before 6.8 have no such setting
        if ring_kib >= 1024 {
            let _ = write(&at("buffer_subbuf_size_kb"), "32");
        }
        write(&at("buffer_size_kb"), &ring_kib.to_string())?;
        Ok(instance)
    }

    /// Path of a file in the instance.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Start or stop recording.
    pub fn switch(&self, on: bool) -> Result<(), Failure> {
        write(&self.file("tracing_on"), if on { "1" } else { "0" })
    }

    /// Ring size per processor as created by the kernel.
    pub fn ring_kib(&self) -> Option<u64> {
        read(&self.file("buffer_size_kb")).ok()?.split_whitespace().next()?.parse().ok()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = write(&self.path.join("events/enable"), "0");
        // the kernel needs a moment to release files that were just closed
        for _ in 0..50 {
            match std::fs::remove_dir(&self.path) {
                Ok(()) => return,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(20)),
            }
        }
        eprintln!("iolab-probe: {} could not be removed; the next start tries again", self.path.display());
    }
}

/// Names of the instances of ended probes, and of running probes.
pub fn owned(tracefs: &Path) -> (Vec<String>, Vec<String>) {
    let entries = std::fs::read_dir(tracefs.join("instances")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut owned: Vec<_> = names.filter_map(|name| owner(&name).map(|owner| (name, owner))).collect();
    owned.sort();
    let (dead, alive): (Vec<_>, Vec<_>) =
        owned.into_iter().partition(|&(_, (pid, time))| start_time(pid) != Some(time));
    let names = |owned: Vec<(String, _)>| owned.into_iter().map(|(name, _)| name).collect();
    (names(dead), names(alive))
}

/// PID and start time of the probe that created an instance; None if it is not an instance of a probe.
fn owner(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Remove the instances of probes that have ended. Returns the names of the removed instances and of those that could
/// not be removed.
///
/// The kernel refuses to remove an instance with open rings, so the instance of a probe in another container (with
/// another PID namespace) stays.
pub fn remove_stale(tracefs: &Path) -> (Vec<String>, Vec<String>) {
    owned(tracefs).0.into_iter().partition(|name| std::fs::remove_dir(tracefs.join("instances").join(name)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instances_of_ended_probes_are_removed() {
        let place = std::env::temp_dir().join(format!("iolab-instances-{}", std::process::id()));
        let own = (std::process::id(), start_time(std::process::id()).unwrap());
        let alive = format!("iolab-{}-{}-block", own.0, own.1);
        let dead = [format!("iolab-{}-{}-block", own.0, own.1 + 1), "iolab-4194304-7-syscall".to_owned()];
        let others = ["another", "iolab-", "iolab-x-7-block", "iolab-7"];
        let names = dead.iter().map(String::as_str).chain([alive.as_str()]).chain(others);
        for name in names {
            std::fs::create_dir_all(place.join("instances").join(name)).unwrap();
        }
        assert_eq!(owned(&place).1, std::slice::from_ref(&alive));
        let (mut removed, kept) = remove_stale(&place);
        removed.sort();
        let mut expected = dead.to_vec();
        expected.sort();
        assert_eq!((removed, kept), (expected, vec![]));
        assert_eq!(std::fs::read_dir(place.join("instances")).unwrap().count(), 1 + others.len());
        std::fs::remove_dir_all(place).unwrap();
    }
}
