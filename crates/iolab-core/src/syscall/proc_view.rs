// SPDX-License-Identifier: Apache-2.0
//! State of a descriptor in /proc, if later records of the round do not change it.

use super::later::Later;
use super::record::{SeenDescriptor, Timed, World};
use super::tasks::Tasks;
use std::cell::OnceCell;
use std::rc::Rc;

/// Access to /proc from a record of a round.
pub struct ProcView<'a> {
    /// The machine.
    pub world: &'a mut dyn World,
    /// Index of the records after this one, created when first needed.
    pub later: &'a OnceCell<Later>,
    /// The records of the round.
    pub round: &'a [Timed],
    /// The index of the record in the round.
    pub index: usize,
}

impl ProcView<'_> {
    /// Reads a descriptor from /proc. Returns None if a later record of the round changes the descriptor.
    pub fn descriptor(&mut self, tasks: &mut Tasks, task: u32, number: u32) -> Option<SeenDescriptor> {
        let Self { world, later, round, index } = self;
        let later = later.get_or_init(|| Later::new(round));
        let thread = tasks.known(task)?;
        let (pid, table) = (thread.pid, Rc::clone(&thread.table));
        let shares = |task: u32| match tasks.known(task) {
            Some(thread) => Rc::ptr_eq(&thread.table, &table),
            // an unknown task is assumed to share the table if this cannot be ruled out
            None => !later.is_apart(task) && world.task(task).is_none_or(|seen| seen.pid == pid),
        };
        if later.changes(*index, number, shares) {
            return None;
        }
        world.descriptor(tasks.owner(task, &table), number)
    }
}
