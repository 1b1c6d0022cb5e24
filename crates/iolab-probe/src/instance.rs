// SPDX-License-Identifier: Apache-2.0
//! A tracefs instance of our own: rings that nobody else uses, removed with us.

use crate::failure::Failure;
use crate::tracefs::{read, write};
use std::path::{Path, PathBuf};

const PREFIX: &str = "iolab-";

/// Start time of a process in clock ticks since boot, by which a number used again is told; none of one that is dead, though nobody
/// has taken note of its end yet.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name in parentheses may hold anything
    let rest = stat.rsplit_once(')')?.1;
    let mut fields = rest.split_whitespace();
    if matches!(fields.next()?, "Z" | "X" | "x") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// An instance; dropping it removes it.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
}

impl Instance {
    /// Make the instance of a source, with rings of that size for each processor.
    pub fn make(tracefs: &Path, source: &str, ring_kib: u64) -> Result<Self, Failure> {
        let pid = std::process::id();
        let path = tracefs.join("instances").join(format!("{PREFIX}{pid}-{}-{source}", start_time(pid).unwrap_or(0)));
        std::fs::create_dir(&path).map_err(|error| Failure::io(&path, &error))?;
        let instance = Self { path };
        let at = |file: &str| instance.path.join(file);
        write(&at("tracing_on"), "0")?;
        write(&at("trace_clock"), "mono")?;
        write(&at("trace_options"), "nooverwrite")?;
        // names of processes are looked up here; the kernel's own way costs something at every switch of tasks
        for option in ["norecord-cmd", "norecord-tgid", "nomarkers"] {
            let _ = write(&at("trace_options"), option);
        }
        // larger pages mean fewer calls to read them; kernels before 6.8 have no choice
        if ring_kib >= 1024 {
            let _ = write(&at("buffer_subbuf_size_kb"), "32");
        }
        write(&at("buffer_size_kb"), &ring_kib.to_string())?;
        Ok(instance)
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Let events in, or keep them out.
    pub fn switch(&self, on: bool) -> Result<(), Failure> {
        write(&self.file("tracing_on"), if on { "1" } else { "0" })
    }

    /// Size of each processor's ring, as the kernel made it.
    pub fn ring_kib(&self) -> Option<u64> {
        read(&self.file("buffer_size_kb")).ok()?.split_whitespace().next()?.parse().ok()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = write(&self.path.join("events/enable"), "0");
        // a moment passes until the kernel has let go of files that were just closed
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

/// Names of the instances whose probe is dead, and of those whose probe lives.
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

/// Process number and start time of the probe that made an instance; none where no probe did.
fn owner(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Remove the instances of probes that are dead; gives the names of those that went, and of those that could not be removed.
///
/// One whose rings are open is refused by the kernel: a probe of another container, whose number means nothing here, keeps its own.
pub fn remove_stale(tracefs: &Path) -> (Vec<String>, Vec<String>) {
    owned(tracefs).0.into_iter().partition(|name| std::fs::remove_dir(tracefs.join("instances").join(name)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_probe_made_is_removed() {
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
