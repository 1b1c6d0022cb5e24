// SPDX-License-Identifier: Apache-2.0
//! Open descriptors of all processes at the start.

use crate::clock::monotonic_ns;
use crate::files::{name_of, Files};
use iolab_core::syscall::{Opened, SeenProcess};
use std::collections::HashMap;

/// Maximum number of descriptors to read; others are read when they are used.
const LIMIT: usize = 1 << 18;
/// Flag of a descriptor, not of the open file description.
const CLOSE_ON_EXEC: u32 = 0o2000000;

/// All processes except one, and whether the limit of descriptors was reached.
pub fn all(files: &mut Files, own: u32) -> (Vec<SeenProcess>, bool) {
    let (mut processes, mut left) = (Vec::new(), LIMIT);
    for pid in numbers("/proc") {
        if pid != own {
            processes.extend(process(files, pid, &mut left));
        }
    }
    mark_alone(&mut processes);
    (processes, left == 0)
}

fn process(files: &mut Files, pid: u32, left: &mut usize) -> Option<SeenProcess> {
    let from_ns = monotonic_ns();
    let threads = numbers(&format!("/proc/{pid}/task"));
    let comm = name_of(pid)?;
    let (mut descriptors, mut hidden) = (Vec::new(), false);
    for number in numbers(&format!("/proc/{pid}/fd")) {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let Some(state) = files.look(pid, number) else { continue };
        hidden |= state.ring;
        descriptors.push((number, state.seen));
    }
    Some(SeenProcess { pid, comm, threads, descriptors, hidden, from_ns, until_ns: monotonic_ns() })
}

/// Descriptors of the same file with the same flags may share a position; the position of such descriptors is not
/// tracked.
fn mark_alone(processes: &mut [SeenProcess]) {
    let mut seen: HashMap<((u64, u64), u32), u32> = HashMap::new();
    let key = |descriptor: &iolab_core::syscall::SeenDescriptor| match &descriptor.opened {
        Opened::File(file) => file.identity.map(|identity| (identity, descriptor.flags & !CLOSE_ON_EXEC)),
        Opened::Other => None,
    };
    for (_, descriptor) in processes.iter().flat_map(|process| &process.descriptors) {
        if let Some(key) = key(descriptor) {
            *seen.entry(key).or_default() += 1;
        }
    }
    for (_, descriptor) in processes.iter_mut().flat_map(|process| &mut process.descriptors) {
        descriptor.alone = key(descriptor).is_some_and(|key| seen[&key] == 1);
    }
}

fn numbers(directory: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn descriptors_that_may_share_a_position_are_marked() {
        let path = std::env::temp_dir().join(format!("iolab-start-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        let copy = file.try_clone().unwrap();
        let reader = std::fs::File::open(&path).unwrap();
        let mut processes = vec![process(&mut Files::new(None), std::process::id(), &mut 1000).unwrap()];
        mark_alone(&mut processes);
        let alone = |number: i32| {
            let descriptor = processes[0].descriptors.iter().find(|(other, _)| *other == number as u32);
            descriptor.unwrap().1.alone
        };
        assert!(!alone(file.as_raw_fd()) && !alone(copy.as_raw_fd()) && alone(reader.as_raw_fd()));
        assert!(processes[0].until_ns >= processes[0].from_ns && !processes[0].threads.is_empty());
        std::fs::remove_file(path).unwrap();
    }
}
