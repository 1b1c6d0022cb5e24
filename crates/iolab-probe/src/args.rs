// SPDX-License-Identifier: Apache-2.0
//! The command line.

use crate::failure::Failure;
use std::ffi::OsString;
use std::path::PathBuf;

/// What `--help` prints.
pub const HELP: &str = "\
iolab-probe --source NAME... [OPTION...]   write frames to standard output until stopped
iolab-probe --check [--tracefs DIR]        print as JSON what this machine supports
iolab-probe --clean [--tracefs DIR]        remove the tracefs instances of probes that have ended
iolab-probe --version                      print name and version

  --source NAME       block, syscall, nfs or counters; may be given several times
  --device MAJ:MIN    only this block device; may be given several times (default: all with a request queue)
  --mount PATH        only files of the file system at PATH; may be given several times
  --exclude-pid PID   leave out the I/O of this process (its own is always left out); may be given several times
  --ring-kib N        size of each processor's trace ring (default: 2 s at 100 000 I/O/s, less on small machines)
  --interval-ms N     time between readings of counters (default 1000)
  --lease-s N         stop if standard input is silent for N seconds, as when a remote caller has disconnected
  --tracefs DIR       mount point of tracefs (default: /sys/kernel/tracing, then /sys/kernel/debug/tracing; if it is not
                      mounted, it is mounted for this process only)

Standard input closed, a line `stop` on it, SIGTERM or SIGINT end it in order; standard output closed ends it at once.
Exit code: 0 fine, 2 usage, 3 not permitted, 4 not possible on this machine; one line on standard error says why.";

/// Names of the sources.
pub const SOURCES: [&str; 4] = ["block", "syscall", "nfs", "counters"];

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Sources, without duplicates.
    pub sources: Vec<String>,
    /// Block devices: major, minor.
    pub devices: Vec<(u32, u32)>,
    /// Paths of file systems.
    pub mounts: Vec<PathBuf>,
    /// Processes to leave out.
    pub excluded: Vec<u32>,
    /// Size of the ring of each processor.
    pub ring_kib: Option<u64>,
    /// Milliseconds between readings of counters.
    pub interval_ms: u64,
    /// Seconds of silence on standard input after which the probe stops.
    pub lease_s: Option<u64>,
    /// Mount point of tracefs, if given.
    pub tracefs: Option<PathBuf>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Print the help.
    Help,
    /// Print name and version.
    Version,
    /// Print what this machine supports.
    Check(Settings),
    /// Remove the instances of probes that have ended.
    Clean(Settings),
    /// Write frames.
    Record(Settings),
}

/// Read the command line, without the program's name.
pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Command, Failure> {
    let mut settings = Settings {
        sources: Vec::new(),
        devices: Vec::new(),
        mounts: Vec::new(),
        excluded: Vec::new(),
        ring_kib: None,
        interval_ms: 1000,
        lease_s: None,
        tracefs: None,
    };
    let (mut check, mut clean) = (false, false);
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let name = argument.to_string_lossy().into_owned();
        match name.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--version" => return Ok(Command::Version),
            "--check" => {
                check = true;
                continue;
            }
            "--clean" => {
                clean = true;
                continue;
            }
            "--source" | "--device" | "--mount" | "--exclude-pid" | "--ring-kib" | "--interval-ms" | "--lease-s"
            | "--tracefs" => {}
            _ => return Err(Failure::usage(format!("unknown argument '{name}'; --help lists them"))),
        }
        let value = arguments.next().ok_or_else(|| Failure::usage(format!("{name} needs a value")))?;
        let text = value.to_string_lossy().into_owned();
        match name.as_str() {
            "--source" if !SOURCES.contains(&text.as_str()) => {
                return Err(Failure::usage(format!("no source '{text}'; sources: {}", SOURCES.join(", "))));
            }
            "--source" if settings.sources.contains(&text) => {}
            "--source" => settings.sources.push(text),
            "--device" => settings.devices.push(device(&text)?),
            "--mount" => settings.mounts.push(PathBuf::from(value)),
            "--exclude-pid" => settings.excluded.push(number(&name, &text, 1, u64::from(u32::MAX))? as u32),
            "--ring-kib" => settings.ring_kib = Some(number(&name, &text, 4, 4 << 20)?),
            "--interval-ms" => settings.interval_ms = number(&name, &text, 10, 3_600_000)?,
            "--lease-s" => settings.lease_s = Some(number(&name, &text, 1, 86_400)?),
            _ => settings.tracefs = Some(PathBuf::from(value)),
        }
    }
    if clean {
        return Ok(Command::Clean(settings));
    }
    match (check, settings.sources.is_empty()) {
        (true, _) => Ok(Command::Check(settings)),
        (false, true) => Err(Failure::usage("nothing to record: give --source block, syscall, nfs or counters")),
        (false, false) => Ok(Command::Record(settings)),
    }
}

fn number(name: &str, text: &str, low: u64, high: u64) -> Result<u64, Failure> {
    let value = text.parse().ok().filter(|value| (low..=high).contains(value));
    value.ok_or_else(|| Failure::usage(format!("{name} needs a whole number from {low} to {high}, not '{text}'")))
}

fn device(text: &str) -> Result<(u32, u32), Failure> {
    let parts = text.split_once(':').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    // the kernel's own limits of a device number
    let parts = parts.filter(|&(major, minor)| major < 1 << 12 && minor < 1 << 20);
    parts.ok_or_else(|| Failure::usage(format!("--device needs MAJOR:MINOR (as in /sys/block/sda/dev), not '{text}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, Failure> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn a_full_line() {
        let line =
            "--source block --source counters --source block --device 7:3 --mount /mnt --exclude-pid 9 --ring-kib 64";
        let Ok(Command::Record(settings)) = parsed(line) else { panic!() };
        assert_eq!(settings.sources, ["block", "counters"]);
        assert_eq!((settings.devices, settings.excluded, settings.ring_kib), (vec![(7, 3)], vec![9], Some(64)));
        assert!(matches!(parsed("--check"), Ok(Command::Check(_))));
        assert_eq!(parsed("--source block --help"), Ok(Command::Help));
        assert_eq!(parsed("--version"), Ok(Command::Version));
    }

    #[test]
    fn unknown_arguments_are_refused() {
        for line in [
            "",
            "--source disk",
            "--source",
            "--device sda --source block",
            "--device 5000:1 --source block",
            "--run sh",
            "--exclude-pid 0 --source block",
            "--ring-kib 1 --source block",
            "--interval-ms x --source counters",
            "--lease-s 0 --source counters",
            "block",
        ] {
            assert_eq!(parsed(line).unwrap_err().code, crate::failure::USAGE, "{line}");
        }
    }
}
