// SPDX-License-Identifier: Apache-2.0
use super::*;
use proptest::prelude::*;

fn open(from_ns: u64, until_ns: u64) -> Span {
    Span { from_ns, until_ns, directory: false, writes: false }
}

fn notice(after_ns: u64, before_ns: u64) -> Window {
    Window { after_ns, before_ns, directory: false, executed: false, spent: false }
}

fn all(opens: &[Span], notices: &[Window]) -> Vec<Choice> {
    align(opens, notices, u64::MAX)
}

fn only(index: usize) -> Choice {
    Choice { notices: vec![index], silent: false }
}

#[test]
fn as_many_notices_as_opens_are_matched_in_order() {
    let opens = [open(10, 20), open(30, 40), open(50, 60)];
    assert_eq!(all(&opens, &[notice(0, 100); 3]), [only(0), only(1), only(2)]);
}

#[test]
fn an_executed_program_is_no_open() {
    let program = Window { executed: true, ..notice(0, 100) };
    assert_eq!(
        all(&[open(10, 20), open(30, 40)], &[program, program, notice(0, 100), notice(0, 100)]),
        [only(2), only(3)]
    );
}

#[test]
fn windows_tell_a_silent_open() {
    // the second was of proc: no notice came while it ran
    let opens = [open(10, 20), open(110, 120), open(210, 220)];
    let choices = all(&opens, &[notice(0, 100), notice(200, 300)]);
    assert_eq!(choices, [only(0), Choice { notices: vec![], silent: true }, only(1)]);
}

#[test]
fn in_one_window_a_silent_open_is_a_doubt() {
    let choices = all(&[open(10, 20), open(30, 40)], &[notice(0, 100)]);
    assert!(choices.iter().all(|choice| choice.notices == [0]));
    assert!(choices[1].silent, "either proc, or the same file again");
}

#[test]
fn the_same_file_written_again_and_again_is_one_notice() {
    let writes = |from| Span { writes: true, ..open(from, from + 5) };
    let choices = all(&[writes(10), writes(20), writes(30)], &[notice(0, 100)]);
    assert_eq!(choices, [only(0), only(0), only(0)]);
}

#[test]
fn the_first_of_merged_ones_is_certain_and_the_others_are_in_doubt() {
    let writes = |from| Span { writes: true, ..open(from, from + 5) };
    let choices = all(&[writes(10), writes(20), writes(30)], &[notice(0, 100), notice(0, 100)]);
    assert_eq!(choices[0], only(0));
    assert_eq!(choices[1].notices, [0, 1]);
}

#[test]
fn directories_are_told_apart() {
    let folder = Window { directory: true, ..notice(0, 100) };
    let listing = Span { directory: true, ..open(10, 20) };
    let writing = Span { writes: true, ..open(30, 40) };
    assert_eq!(all(&[listing, writing], &[folder, notice(0, 100)]), [only(0), only(1)]);
    assert_eq!(all(&[writing], &[folder, notice(0, 100)]), [only(1)]);
}

#[test]
fn without_notices_all_are_silent_and_without_opens_there_is_nothing() {
    assert_eq!(all(&[open(1, 2)], &[]), [Choice { notices: vec![], silent: true }]);
    assert!(all(&[], &[notice(0, 5)]).is_empty());
}

#[test]
fn notices_of_opens_that_are_still_to_come_wait_for_them() {
    let opens = [open(10, 20), open(30, 40)];
    assert_eq!(align(&opens, &[notice(0, 100); 4], 50), [only(0), only(1)]);
    let choices = align(&opens, &[notice(0, 45), notice(0, 45), notice(0, 45)], 50);
    assert_eq!(choices[1].notices, [1, 2], "read before the horizon, it belongs to none of them or another");
}

#[test]
fn too_many_at_once_are_in_doubt_and_quick() {
    let opens: Vec<Span> = (0..3000).map(|i| open(i, i + 1)).collect();
    let choices = all(&opens, &vec![notice(0, 10_000); 3000]);
    assert!(choices.iter().all(|choice| choice.notices.is_empty() && !choice.silent));
}

proptest! {
    /// A thread opens files, some of them silent, and executes; the queue is read at some moments, alike ones merged.
    /// A single choice is always the truth where readings separate silent opens from others; and without silent ones nothing is wrong.
    #[test]
    fn a_single_choice_is_the_truth(
        steps in prop::collection::vec((0usize..5, prop::bool::weighted(0.3), prop::bool::weighted(0.1)), 1..40),
    ) {
        let (mut opens, mut truth) = (Vec::new(), Vec::new());
        let (mut notices, mut files): (Vec<Window>, Vec<usize>) = (Vec::new(), Vec::new());
        let (mut unread, mut after, mut now) = (Vec::<(usize, bool)>::new(), 0u64, 0u64);
        for &(file, read, executed) in &steps {
            now += 10;
            if !executed {
                opens.push(Span { writes: true, ..open(now, now + 4) });
                truth.push(file);
            }
            // programs are other files than those written
            let name = if executed { file + 100 } else { file };
            if !unread.iter().any(|&(known, _)| known == name) {
                unread.push((name, executed));
            }
            if read {
                now += 10;
                for (name, executed) in unread.drain(..) {
                    notices.push(Window { executed, ..notice(after, now + 2) });
                    files.push(name);
                }
                after = now;
            }
        }
        for (name, executed) in unread.drain(..) {
            notices.push(Window { executed, ..notice(after, now + 100) });
            files.push(name);
        }
        let choices = all(&opens, &notices);
        prop_assert_eq!(choices.len(), opens.len());
        for (choice, file) in choices.iter().zip(&truth) {
            let mut names: Vec<usize> = choice.notices.iter().map(|&index| files[index]).collect();
            names.dedup();
            prop_assert!(names.contains(file), "the truth is always among the choices: {:?} of {:?}", choice, files);
        }
    }
}
