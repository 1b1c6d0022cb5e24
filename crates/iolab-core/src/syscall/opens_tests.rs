// SPDX-License-Identifier: Apache-2.0
use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn open(from_ns: u64, until_ns: u64) -> Span {
    Span { from_ns: from_ns * 1_000_000, until_ns: until_ns.saturating_mul(1_000_000), directory: false, writes: false }
}

fn notice(after_ns: u64, before_ns: u64) -> Window {
    Window { after_ns: after_ns * 1_000_000, before_ns: before_ns * 1_000_000, directory: false, optional: false }
}

fn optional(after_ns: u64, before_ns: u64) -> Window {
    Window { optional: true, ..notice(after_ns, before_ns) }
}

fn doubt(indices: &[usize]) -> Choice {
    Choice::Doubt(indices.into())
}

use Choice::Certain;

#[test]
fn as_many_notices_as_opens_are_matched_in_order() {
    let opens = [open(10, 20), open(30, 40), open(50, 60)];
    assert_eq!(align(&opens, &[notice(0, 100); 3]), [Certain(0), Certain(1), Certain(2)]);
}

#[test]
fn an_executed_program_is_no_open() {
    let notices = [optional(0, 100), optional(0, 100), notice(0, 100), notice(0, 100)];
    assert_eq!(align(&[open(10, 20), open(30, 40)], &notices), [Certain(2), Certain(3)]);
}

#[test]
fn readings_separate_a_silent_open_from_others() {
    // the second was of proc: no notice arrived while it ran
    let opens = [open(10, 20), open(110, 120), open(210, 220)];
    let choices = align(&opens, &[notice(0, 100), notice(200, 300)]);
    assert_eq!(choices, [Certain(0), doubt(&[]), Certain(1)]);
}

#[test]
fn in_one_reading_a_silent_open_makes_all_ambiguous() {
    assert_eq!(align(&[open(10, 20), open(30, 40)], &[notice(0, 100)]), [doubt(&[0]), doubt(&[0])]);
    let choices = align(&[open(10, 20), open(30, 40), open(50, 60)], &[notice(0, 100); 2]);
    assert_eq!(choices, [doubt(&[0, 1]), doubt(&[0, 1]), doubt(&[0, 1])]);
}

#[test]
fn the_kind_of_an_open_resolves_some_ambiguities() {
    let folder = Window { directory: true, ..notice(0, 100) };
    let listing = Span { directory: true, ..open(10, 20) };
    let writing = Span { writes: true, ..open(30, 40) };
    assert_eq!(align(&[listing, writing], &[folder, notice(0, 100)]), [Certain(0), Certain(1)]);
    assert_eq!(align(&[open(1, 2), listing, writing], &[folder]).last(), Some(&doubt(&[0])));
    assert_eq!(align(&[writing, listing], &[folder]), [doubt(&[0]), Certain(0)]);
}

#[test]
fn an_open_without_a_return_may_have_any_notice_or_none() {
    let opens = [open(10, 20), open(30, u64::MAX)];
    assert_eq!(align(&opens, &[notice(0, 100)]), [doubt(&[0]), doubt(&[0])]);
    assert_eq!(align(&opens, &[notice(0, 100); 2]), [Certain(0), Certain(1)]);
    assert_eq!(align(&opens, &[notice(0, 25)]), [Certain(0), doubt(&[])]);
}

#[test]
fn a_notice_without_an_open_makes_everything_of_its_time_uncertain() {
    let choices = align(&[open(10, 20), open(210, 220)], &[notice(0, 100), notice(0, 100), notice(200, 300)]);
    assert_eq!(choices, [doubt(&[0, 1]), Certain(2)]);
}

#[test]
fn without_notices_or_opens_nothing_is_certain() {
    assert_eq!(align(&[open(1, 2)], &[]), [doubt(&[])]);
    assert!(align(&[], &[notice(0, 5)]).is_empty());
}

#[test]
fn thousands_in_one_reading_are_matched_quickly() {
    let opens: Vec<Span> = (0..100_000).map(|i| open(2 * i, 2 * i + 1)).collect();
    let choices = align(&opens, &vec![notice(0, 1_000_000); 100_000]);
    assert!(choices.iter().enumerate().all(|(index, choice)| *choice == Certain(index)));
    let choices = align(&opens, &vec![notice(0, 1_000_000); 99_999]);
    assert!(choices.iter().all(|choice| matches!(choice, Choice::Doubt(_))));
}

/// All assignments of required notices to opens, by brute force.
fn histories(opens: &[Span], notices: &[Window], required: &[usize], from: usize) -> Vec<Vec<usize>> {
    let Some((&first, rest)) = required.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for open in from..opens.len() {
        if fits(&opens[open], &notices[first]) {
            for mut history in histories(opens, notices, rest, open + 1) {
                history.insert(0, open);
                all.push(history);
            }
        }
    }
    all
}

proptest! {
    /// A thread opens files, some without notices, some with pending ones, and executes; the queue is read at some
    /// times. A certain match is true, and a match that all histories share is certain.
    #[test]
    fn certain_names_are_true(
        steps in prop::collection::vec((0usize..6, prop::bool::weighted(0.3), prop::bool::weighted(0.1), prop::bool::weighted(0.2)), 1..14),
    ) {
        let (mut opens, mut truth) = (Vec::new(), Vec::new());
        let (mut notices, mut files): (Vec<Window>, Vec<usize>) = (Vec::new(), Vec::new());
        let (mut unread, mut after, mut now) = (Vec::<(usize, bool)>::new(), 0u64, 0u64);
        for &(file, read, executed, writes) in &steps {
            now += 10;
            let is_silent = file == 5;
            if !executed {
                opens.push(Span { writes, ..open(now, now + 4) });
                truth.push((!is_silent).then_some(file));
            }
            // programs are different files
            let name = if executed { file + 100 } else { file };
            if !is_silent && !unread.iter().any(|&(known, _)| known == name) {
                unread.push((name, executed));
            }
            if read {
                now += 10;
                for (name, optional) in unread.drain(..) {
                    notices.push(Window { optional, ..notice(after, now + 2) });
                    files.push(name);
                }
                after = now + 3;
            }
        }
        for (name, optional) in unread.drain(..) {
            notices.push(Window { optional, ..notice(after, now + 100) });
            files.push(name);
        }
        let choices = align(&opens, &notices);
        prop_assert_eq!(choices.len(), opens.len());
        for (choice, file) in choices.iter().zip(&truth) {
            match choice {
                Certain(notice) => prop_assert_eq!(Some(files[*notice]), *file),
                Choice::Doubt(candidates) => prop_assert!(
                    file.is_none_or(|file| candidates.iter().any(|&notice| files[notice] == file)),
                    "the truth is among the candidates"
                ),
            }
        }
        let required: Vec<usize> = (0..notices.len()).filter(|&index| !notices[index].optional).collect();
        let histories: HashSet<Vec<usize>> = histories(&opens, &notices, &required, 0).into_iter().collect();
        for (place, &notice) in required.iter().enumerate() {
            let possible: HashSet<usize> = histories.iter().map(|history| history[place]).collect();
            for &open in &possible {
                prop_assert_eq!(choices[open] == Certain(notice), possible.len() == 1);
            }
        }
    }
}
