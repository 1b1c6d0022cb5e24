//! A tracefs instance of our own: rings that nobody else uses, removed with us.

use crate::failure::Failure;
use crate::tracefs::{read, write};
use std::path::{Path, PathBuf};

const PREFIX: &str = "iolab-";

/// Start time of a process in clock ticks since boot, by which a number used again is told.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name in parentheses may hold anything
    let rest = stat.rsplit_once(')')?.1;
    rest.split_whitespace().nth(19)?.parse().ok()
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

/// Remove the instances of probes that are dead.
pub fn remove_stale(tracefs: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(tracefs.join("instances")) else { return 0 };
    let mut removed = 0;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        let mut parts = rest.split('-');
        let owner = (parts.next().and_then(|pid| pid.parse().ok()), parts.next().and_then(|time| time.parse().ok()));
        let (Some(pid), Some(time)) = owner else { continue };
        if start_time(pid) != Some(time) {
            let _ = write(&entry.path().join("events/enable"), "0");
            removed += usize::from(std::fs::remove_dir(entry.path()).is_ok());
        }
    }
    removed
}
