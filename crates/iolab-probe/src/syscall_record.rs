// SPDX-License-Identifier: Apache-2.0
//! Decodes a record into the input of the tracker, by the kernel's formats.

use crate::source::Tracepoint;
use iolab_core::error::TraceError;
use iolab_core::syscall::call::ARGUMENTS;
use iolab_core::syscall::record::Comm;
use iolab_core::syscall::{Call, Record, Traced, TRACED};
use iolab_core::tracefs::format::{Format, Number, Text};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Role of a tracepoint in this source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Entry of a call, by index in `TRACED`.
    Enter(usize),
    /// Return of a call, by index in `TRACED`.
    Exit(usize),
    /// A task was created.
    Fork,
    /// A task was renamed.
    Rename,
    /// A task executes another program.
    Exec,
    /// A task ended.
    End,
}

struct Wanted {
    group: &'static str,
    name: &'static str,
    point: Point,
}

/// All tracepoints, in order of their indices.
fn wanted() -> &'static [Wanted] {
    static WANTED: OnceLock<Vec<Wanted>> = OnceLock::new();
    WANTED.get_or_init(|| {
        let mut wanted = Vec::new();
        for (place, traced) in TRACED.iter().enumerate() {
            // names live as long as the program: about seventy
            let name = |side: &str| -> &'static str { format!("sys_{side}_{}", traced.name).leak() };
            wanted.push(Wanted { group: "syscalls", name: name("enter"), point: Point::Enter(place) });
            if traced.returns {
                wanted.push(Wanted { group: "syscalls", name: name("exit"), point: Point::Exit(place) });
            }
        }
        for (group, name, point) in [
            ("task", "task_newtask", Point::Fork),
            ("task", "task_rename", Point::Rename),
            ("sched", "sched_process_exec", Point::Exec),
            ("sched", "sched_process_exit", Point::End),
        ] {
            wanted.push(Wanted { group, name, point });
        }
        wanted
    })
}

/// Positions of the fields of a record.
#[derive(Clone, Debug)]
enum Fields {
    Enter { traced: &'static Traced, arguments: Vec<Number> },
    Exit { traced: &'static Traced, returned: Number },
    Fork { child: Number, flags: Number, comm: Text },
    Rename { task: Option<Number>, comm: Text },
    Exec { before: Number },
    End,
}

/// Reads records.
#[derive(Debug, Default)]
pub struct Decoder {
    /// By index of the tracepoint: position of the task number, and the other fields.
    points: Vec<Option<(Number, Fields)>>,
    damaged: u64,
}

impl Decoder {
    /// The tracepoints of this source.
    pub fn tracepoints() -> Vec<Tracepoint> {
        let tracepoint = |wanted: &Wanted| {
            let (filter, needed) = match wanted.point {
                Point::Enter(place) => (TRACED[place].filter.unwrap_or_default(), TRACED[place].call.needed()),
                Point::Exit(place) => ("", TRACED[place].call.needed()),
                Point::Rename => ("", false),
                _ => ("", true),
            };
            let reads_rings = matches!(wanted.point, Point::Enter(place) | Point::Exit(place)
                if matches!(TRACED[place].call, Call::Read | Call::Lseek));
            // reading the rings must not add records to them: the loop would not end
            let filter = if reads_rings { format!("common_pid != {}", std::process::id()) } else { filter.to_owned() };
            Tracepoint { group: wanted.group, name: wanted.name, filter, needed }
        };
        wanted().iter().map(tracepoint).collect()
    }

    /// Decoder for the formats of the available tracepoints.
    pub fn new(formats: &HashMap<&'static str, Format>) -> Result<Self, TraceError> {
        let fields = |wanted: &Wanted| {
            let Some(format) = formats.get(wanted.name) else { return Ok(None) };
            let fields = match wanted.point {
                Point::Enter(place) => {
                    let traced = &TRACED[place];
                    let arguments = traced.fields.iter().map(|name| format.number(name));
                    Fields::Enter { traced, arguments: arguments.collect::<Result<_, _>>()? }
                }
                Point::Exit(place) => Fields::Exit { traced: &TRACED[place], returned: format.number("ret")? },
                Point::Fork => Fields::Fork {
                    child: format.number("pid")?,
                    flags: format.number("clone_flags")?,
                    comm: format.text("comm")?,
                },
                // kernels without this field mean the current task
                Point::Rename => Fields::Rename { task: format.number("pid").ok(), comm: format.text("newcomm")? },
                Point::Exec => Fields::Exec { before: format.number("old_pid")? },
                Point::End => Fields::End,
            };
            Ok(Some((format.number("common_pid")?, fields)))
        };
        Ok(Self { points: wanted().iter().map(fields).collect::<Result<_, TraceError>>()?, damaged: 0 })
    }

    /// Task and content of a record; None if it is damaged or not used.
    pub fn record(&mut self, point: usize, bytes: &[u8]) -> Option<(u32, Record)> {
        let (task, fields) = self.points.get(point)?.as_ref()?;
        let record = read(fields, bytes).and_then(|record| Some((task.of(bytes)? as u32, record)));
        self.damaged += u64::from(record.is_none());
        // number 0 is the idle task, in interrupts: no process did this
        record.filter(|(task, _)| *task != 0)
    }

    /// Number of records that were too short since the last call.
    pub fn take_damaged(&mut self) -> u64 {
        std::mem::take(&mut self.damaged)
    }
}

fn read(fields: &Fields, bytes: &[u8]) -> Option<Record> {
    Some(match fields {
        Fields::Enter { traced, arguments } => {
            let mut args = [0; ARGUMENTS];
            for (arg, number) in args.iter_mut().zip(arguments) {
                *arg = number.of(bytes)?;
            }
            Record::Enter { call: traced.call, args }
        }
        Fields::Exit { traced, returned } => Record::Exit { call: traced.call, returned: returned.of(bytes)? as i64 },
        Fields::Fork { child, flags, comm } => {
            Record::Fork { child: child.of(bytes)? as u32, flags: flags.of(bytes)?, comm: name(comm.of(bytes)?) }
        }
        Fields::Rename { task, comm } => {
            let task = match task {
                Some(task) => task.of(bytes)?,
                None => u64::from(u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?)),
            };
            Record::Rename { task: task as u32, comm: name(comm.of(bytes)?) }
        }
        Fields::Exec { before } => Record::Exec { before: before.of(bytes)? as u32 },
        Fields::End => Record::End,
    })
}

fn name(text: &[u8]) -> Comm {
    let mut comm = [0; 16];
    let length = text.len().min(comm.len() - 1);
    comm[..length].copy_from_slice(&text[..length]);
    comm
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(name: &str, fields: &str) -> Format {
        let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
        Format::parse(&format!("name: {name}\nID: 7\nformat:\n{common}{fields}\nprint fmt: \"\"\n")).unwrap()
    }

    fn place(name: &str) -> usize {
        wanted().iter().position(|wanted| wanted.name == name).unwrap()
    }

    #[test]
    fn entries_and_returns_are_read_by_the_kernels_description() {
        let enter = "\tfield:unsigned int fd;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:loff_t pos;\toffset:40;\tsize:8;\tsigned:0;\n";
        let formats = HashMap::from([
            ("sys_enter_pwrite64", format("sys_enter_pwrite64", enter)),
            ("sys_exit_pwrite64", format("sys_exit_pwrite64", "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n")),
        ]);
        let mut decoder = Decoder::new(&formats).unwrap();
        let mut bytes = vec![0; 48];
        bytes[4..8].copy_from_slice(&99u32.to_le_bytes());
        bytes[16] = 3;
        bytes[40..48].copy_from_slice(&4096u64.to_le_bytes());
        let entered = decoder.record(place("sys_enter_pwrite64"), &bytes);
        assert_eq!(entered, Some((99, Record::Enter { call: Call::Pwrite64, args: [3, 4096, 0, 0] })));
        bytes[16..24].copy_from_slice(&(-28i64).to_le_bytes());
        let returned = decoder.record(place("sys_exit_pwrite64"), &bytes);
        assert_eq!(returned, Some((99, Record::Exit { call: Call::Pwrite64, returned: -28 })));
        assert_eq!(decoder.record(place("sys_exit_pwrite64"), &bytes[..20]), None);
        assert_eq!(decoder.record(place("sys_enter_read"), &bytes), None, "missing, but not damaged");
        assert_eq!(decoder.take_damaged(), 1);
    }

    #[test]
    fn a_kernel_with_other_fields_is_refused_in_words() {
        let formats = HashMap::from([("sys_enter_read", format("sys_enter_read", ""))]);
        assert!(Decoder::new(&formats).unwrap_err().0.contains("no field fd"));
    }

    #[test]
    fn every_tracepoint_is_requested_once() {
        let points = Decoder::tracepoints();
        let mut names: Vec<_> = points.iter().map(|point| point.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), points.len());
        assert!(points.iter().any(|point| point.name == "sys_enter_fcntl" && !point.filter.is_empty()));
    }
}
