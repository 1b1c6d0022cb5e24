// SPDX-License-Identifier: Apache-2.0
//! What the machine shows of a descriptor, as far as later records of the round leave it the same.

use super::later::Later;
use super::record::{SeenDescriptor, Timed, World};
use super::tasks::Tasks;
use std::cell::OnceCell;
use std::rc::Rc;

/// What may be asked of the machine at a record of a round.
pub struct Asked<'a> {
    /// The machine.
    pub world: &'a mut dyn World,
    /// Records after this one, once they were looked through.
    pub later: &'a OnceCell<Later>,
    /// The records of the round.
    pub round: &'a [Timed],
    /// The place of the record in the round.
    pub index: usize,
}

impl Asked<'_> {
    /// What /proc shows of a descriptor, unless that is of something else by now.
    pub fn descriptor(&mut self, tasks: &mut Tasks, task: u32, number: u32) -> Option<SeenDescriptor> {
        let Self { world, later, round, index } = self;
        let later = later.get_or_init(|| Later::new(round));
        let thread = tasks.known(task)?;
        let (pid, table) = (thread.pid, Rc::clone(&thread.table));
        let shares = |task: u32| match tasks.known(task) {
            Some(thread) => Rc::ptr_eq(&thread.table, &table),
            // one that was not met yet: that it may share the table is believed where nobody can tell
            None => !later.is_apart(task) && world.task(task).is_none_or(|seen| seen.pid == pid),
        };
        if later.changes(*index, number, shares) {
            return None;
        }
        world.descriptor(tasks.owner(task, &table), number)
    }
}
