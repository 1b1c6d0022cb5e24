// SPDX-License-Identifier: Apache-2.0
//! Effect of a call on its files: the position it uses at its entry, and what its return shows.

use super::call::{Call, ARGUMENTS};
use super::descriptor::{flag, Description};
use super::tasks::{Pending, Place, Use};
use crate::event::Op;
use std::rc::Rc;

/// `pwritev2`: append; as if opened without `O_APPEND`.
const RWF_APPEND: u64 = 0x10;
const RWF_NOAPPEND: u64 = 0x20;
/// `lseek`: from the end.
const SEEK_END: u64 = 2;
/// `fallocate`: deallocate space.
const PUNCH_HOLE: u64 = 2;
/// `fallocate`: shift the data behind it.
const COLLAPSE: u64 = 8;

/// Descriptor numbers of a call: the file read or used, and the file written by a call on two files.
pub fn numbers(call: Call, args: &[u64; ARGUMENTS]) -> [Option<u32>; 2] {
    let number = |index: usize| u32::try_from(args[index] as u32 as i32).ok();
    match call {
        Call::Sendfile64 | Call::CopyFileRange | Call::Splice => [number(0), number(2)],
        Call::Read
        | Call::Write
        | Call::Pread64
        | Call::Pwrite64
        | Call::Readv
        | Call::Writev
        | Call::Preadv
        | Call::Pwritev
        | Call::Preadv2
        | Call::Pwritev2
        | Call::Fsync
        | Call::Fdatasync
        | Call::SyncFileRange
        | Call::Fallocate
        | Call::Lseek
        | Call::Ftruncate => [number(0), None],
        _ => [None, None],
    }
}

/// Position that a call uses. `second` is the file that a call on two files writes.
fn place(call: Call, args: &[u64; ARGUMENTS], flags: Option<u32>, second: bool) -> Place {
    let appends = flags.is_some_and(|flags| flags & flag::APPEND != 0);
    // with unknown flags (openat2 of an ended process) a write may be at the end or not
    let unsure = flags.is_none();
    let written = |at: Place| match (unsure, appends, at) {
        (true, ..) => Place::At(None),
        (_, true, Place::At(_)) => Place::EndOnly,
        (_, true, _) => Place::End,
        (_, false, at) => at,
    };
    // a pointer to an offset: null means the position, else the value is unknown
    let pointed = |pointer: u64| if pointer == 0 { Place::Position } else { Place::At(None) };
    let explicit = |at: u64| Place::At(i64::try_from(at).is_ok().then_some(at));
    match call {
        Call::Read | Call::Readv => Place::Position,
        Call::Write | Call::Writev => written(Place::Position),
        Call::Pread64 | Call::Preadv | Call::SyncFileRange => explicit(args[1]),
        Call::Pwrite64 | Call::Pwritev => written(explicit(args[1])),
        Call::Preadv2 => {
            if args[1] as i64 == -1 {
                Place::Position
            } else {
                explicit(args[1])
            }
        }
        Call::Pwritev2 => {
            let at = if args[1] as i64 == -1 { Place::Position } else { explicit(args[1]) };
            match (args[2] & RWF_APPEND != 0, args[2] & RWF_NOAPPEND != 0, at) {
                (true, _, Place::Position) => Place::End,
                (true, ..) => Place::EndOnly,
                (_, true, at) => at,
                (.., at) => written(at),
            }
        }
        Call::Fallocate => explicit(args[2]),
        Call::Sendfile64 if second => written(Place::Position),
        Call::Sendfile64 => pointed(args[1]),
        Call::CopyFileRange | Call::Splice if second => written(pointed(args[3])),
        Call::CopyFileRange | Call::Splice => pointed(args[1]),
        Call::Lseek => Place::Seek,
        Call::Ftruncate => Place::Cut,
        _ => Place::At(None),
    }
}

/// A call on a file was entered.
pub fn begin(call: Call, args: &[u64; ARGUMENTS], description: Rc<Description>, second: bool) -> Use {
    let mut state = description.state.borrow_mut();
    let place = place(call, args, state.flags, second);
    if matches!(place, Place::Position | Place::End | Place::Seek) {
        state.position.begin();
    }
    if matches!(place, Place::End | Place::EndOnly | Place::Seek | Place::Cut) {
        state.end.begin();
    }
    drop(state);
    let writes = second
        || matches!(
            call,
            Call::Write | Call::Writev | Call::Pwrite64 | Call::Pwritev | Call::Pwritev2 | Call::Fallocate
        );
    Use { description, place, writes }
}

/// A call returned. Returns its start position if it is certain.
pub fn finish(pending: &Pending, used: &Use, returned: Option<i64>) -> Option<u64> {
    let mut state = used.description.state.borrow_mut();
    used.description.check_end(&mut state);
    let moved = returned.and_then(|returned| u64::try_from(returned).ok());
    let bytes = moved.unwrap_or(0);
    let began = match used.place {
        Place::At(at) => {
            if used.writes && pending.call == Call::Fallocate {
                state.end.lose();
            }
            if state.flags.is_none() && used.writes {
                state.position.lose();
            }
            at
        }
        Place::Position => state.position.end(bytes),
        Place::End | Place::EndOnly => {
            let began = state.end.end(bytes);
            if used.place == Place::End {
                // the kernel sets the position to the end of the appended data
                match moved {
                    Some(bytes) if bytes > 0 => {
                        let behind = began.and_then(|began| began.checked_add(bytes));
                        state.position.set(behind);
                    }
                    _ => {
                        state.position.end(0);
                    }
                }
            }
            began
        }
        Place::Seek => {
            match moved {
                Some(at) => state.position.set(Some(at)),
                None => {
                    state.position.end(0);
                }
            }
            match moved {
                Some(at) if pending.args[2] == SEEK_END && !state.hidden => {
                    // other writers may have moved the end; then it is not tracked
                    let end = at.checked_add_signed((pending.args[1] as i64).wrapping_neg());
                    state.end.set(end);
                    used.description.check_end(&mut state);
                }
                _ => {
                    state.end.end(0);
                }
            }
            None
        }
        Place::Cut => {
            match moved {
                Some(_) => state.end.set(Some(pending.args[1])),
                None => {
                    state.end.end(0);
                }
            }
            used.description.check_end(&mut state);
            None
        }
    };
    // a call without a recorded return may have changed any position
    if returned.is_none() {
        state.position.lose();
        state.end.lose();
    }
    if state.hidden && !matches!(used.place, Place::At(_)) {
        return None;
    }
    began
}

/// Operation of a call, as in events; None for calls that transfer no data.
pub fn operation(pending: &Pending, used: &Use) -> Option<Op> {
    Some(match pending.call {
        Call::Fsync | Call::Fdatasync | Call::SyncFileRange => Op::Sync,
        Call::Fallocate if pending.args[1] & (PUNCH_HOLE | COLLAPSE) != 0 => Op::Trim,
        Call::Fallocate => Op::Other,
        Call::Lseek | Call::Ftruncate => return None,
        _ if used.writes => Op::Write,
        _ => Op::Read,
    })
}

/// Number of bytes transferred, by the result; None for errors and for calls that transfer none.
pub fn size(pending: &Pending, op: Op, returned: i64) -> Option<u64> {
    match (op, returned) {
        (_, ..0) | (Op::Sync | Op::Other, _) => None,
        // fallocate returns no count: on success the whole range was deallocated
        (Op::Trim, _) => Some(pending.args[3]),
        (_, bytes) => Some(bytes as u64),
    }
}
