// SPDX-License-Identifier: Apache-2.0
//! The source `block`: requests of block devices.

use crate::args::Settings;
use crate::failure::Failure;
use crate::source::{Losses, Source, Tracepoint};
use crate::world::{number, Machine};
use iolab_core::block::fields::{Fields, Point, POINTS};
use iolab_core::block::Block;
use iolab_core::frames::events::Rows;
use iolab_core::tracefs::format::{Format, Number};
use serde_json::{json, Map, Value};
use std::collections::HashMap;

/// Flag of clone(2): the new thread belongs to the process of its creator.
const CLONE_THREAD: u64 = 0x1_0000;
/// Index of `task_newtask`: after the tracepoints of the block layer; `task_rename` follows.
const NEW_TASK: usize = POINTS.len();
/// Characters of a filter that the kernel accepts, with a margin.
const FILTER: usize = 3000;

/// Fields of `task_newtask` and `task_rename`.
#[derive(Clone, Copy, Debug)]
struct Tasks {
    maker: Number,
    made: Number,
    flags: Number,
    renamed: Option<Number>,
}

/// Requests of block devices.
pub struct BlockSource {
    epoch_ns: i64,
    machine: Machine,
    /// Numbers of the requested devices.
    devices: Vec<u32>,
    /// Requested devices without a request queue.
    bios: Vec<u32>,
    stacked: Vec<(u32, String)>,
    words: Vec<String>,
    block: Option<Block>,
    tasks: Option<Tasks>,
}

impl BlockSource {
    /// The source for these settings. Fails if a requested device does not exist.
    pub fn new(settings: &Settings, epoch_ns: i64) -> Result<Self, Failure> {
        let own = std::process::id();
        let mut machine = Machine::new(Vec::new(), settings.excluded.iter().copied().chain([own]));
        let (mut devices, mut words) = (Vec::new(), Vec::new());
        for &(major, minor) in &settings.devices {
            let requested = number(major, minor);
            let Some(disk) = machine.disk(requested) else {
                return Err(Failure::not_possible(format!("no block device {major}:{minor}; lsblk lists the devices")));
            };
            if disk != requested {
                words.push(format!(
                    "{} is a partition: its disk {} is recorded",
                    machine.name(requested),
                    machine.name(disk)
                ));
            }
            if !devices.contains(&disk) {
                devices.push(disk);
            }
        }
        machine = Machine::new(devices.clone(), settings.excluded.iter().copied().chain([own]));
        let bios = devices.iter().copied().filter(|&device| machine.has_bios_only(device)).collect();
        let stacked = if devices.is_empty() { machine.stacked() } else { Vec::new() };
        Ok(Self { epoch_ns, machine, devices, bios, stacked, words, block: None, tasks: None })
    }

    /// Filter for the kernel: the requested devices, or all except those with I/O that another device also shows.
    fn filter(&self, point: Point) -> String {
        let join = |devices: &[u32], sign: &str, with: &str| {
            let parts: Vec<String> = devices.iter().map(|device| format!("dev {sign} {device}")).collect();
            parts.join(with)
        };
        let filter = match point {
            Point::BioComplete => join(&self.bios, "==", " || "),
            _ if !self.devices.is_empty() => join(&self.devices, "==", " || "),
            _ => join(&self.stacked.iter().map(|stacked| stacked.0).collect::<Vec<_>>(), "!=", " && "),
        };
        // the filter is too long for the kernel; unrequested devices are dropped in `Block`
        if filter.len() > FILTER {
            String::new()
        } else {
            filter
        }
    }

    fn task(&mut self, point: usize, record: &[u8]) -> Option<()> {
        let tasks = self.tasks?;
        if point == NEW_TASK {
            let (thread, maker) = (tasks.made.of(record)? as u32, tasks.maker.of(record)? as u32);
            self.machine.made(thread, (tasks.flags.of(record)? & CLONE_THREAD != 0).then_some(maker));
            self.block.as_mut()?.forget_thread(thread);
        } else {
            self.block.as_mut()?.forget_thread(tasks.renamed?.of(record)? as u32);
        }
        Some(())
    }
}

fn fields(formats: &HashMap<&'static str, Format>) -> Result<Fields, Failure> {
    Fields::find(|name| formats.get(name)).map_err(|error| Failure::not_possible(error.0))
}

impl Source for BlockSource {
    fn name(&self) -> &'static str {
        "block"
    }

    fn tracepoints(&self) -> Vec<Tracepoint> {
        let block = POINTS.map(|(name, point, needed)| Tracepoint {
            group: "block",
            name,
            filter: self.filter(point),
            needed: needed || (point == Point::BioComplete && !self.bios.is_empty()),
        });
        let task = |name| Tracepoint { group: "task", name, filter: String::new(), needed: false };
        block.into_iter().chain([task("task_newtask"), task("task_rename")]).collect()
    }

    fn wants(&self, point: usize) -> bool {
        POINTS.get(point).is_none_or(|point| point.1 != Point::BioComplete) || !self.bios.is_empty()
    }

    fn unread(&self, formats: &HashMap<&'static str, Format>) -> Result<Vec<String>, Failure> {
        fields(formats).map(|_| Vec::new())
    }

    fn bind(&mut self, formats: &HashMap<&'static str, Format>) -> Result<(), Failure> {
        self.block = Some(Block::new(fields(formats)?, self.epoch_ns));
        self.tasks = formats.get("task_newtask").and_then(|made| {
            let number = |name| made.number(name).ok();
            Some(Tasks {
                maker: number("common_pid")?,
                made: number("pid")?,
                flags: number("clone_flags")?,
                renamed: formats.get("task_rename").and_then(|renamed| renamed.number("pid").ok()),
            })
        });
        Ok(())
    }

    fn started(&mut self) {
        self.machine.read_threads();
    }

    fn facts(&self) -> Map<String, Value> {
        let names = |devices: &[u32]| devices.iter().map(|&device| self.machine.name(device)).collect::<Vec<_>>();
        let stacked: Map<_, _> =
            self.stacked.iter().map(|(device, below)| (self.machine.name(*device), json!(below))).collect();
        let mut words = self.words.clone();
        words.extend(self.stacked.iter().map(|(device, below)| {
            let name = self.machine.name(*device);
            format!("{name} is not recorded: {below} below it has the same I/O; --device {name} records it")
        }));
        words.extend(
            names(&self.bios).into_iter().map(|name| format!("{name} has no requests: latency counts from queueing")),
        );
        let facts = json!({
            "what": "requests of block devices; latency from issue to completion",
            "devices": names(&self.devices), "stacked": stacked, "words": words,
        });
        facts.as_object().cloned().unwrap_or_default()
    }

    fn take(&mut self, point: usize, time_ns: u64, record: &[u8], rows: &mut Rows) {
        match (POINTS.get(point), &mut self.block) {
            (Some(&(_, point, _)), Some(block)) => block.take(point, time_ns, record, &mut self.machine, rows),
            _ => {
                self.task(point, record);
            }
        }
    }

    fn lossy(&mut self, missing: bool) {
        if let Some(block) = &mut self.block {
            if missing {
                block.begin_loss();
            } else {
                block.end_loss();
            }
        }
    }

    fn losses(&mut self) -> Losses {
        let mut losses = Losses::default();
        if let Some(block) = &mut self.block {
            losses.add("unpaired", block.take_unpaired(), "starts without a completion, completions without a start");
            losses.add("damaged", std::mem::take(&mut block.counts.damaged), "records too short for their description");
        }
        losses
    }

    fn processes(&mut self) -> Vec<(u32, String, String)> {
        std::mem::take(&mut self.machine.fresh)
    }

    fn events(&self) -> u64 {
        self.block.as_ref().map_or(0, |block| block.counts.events)
    }
}
