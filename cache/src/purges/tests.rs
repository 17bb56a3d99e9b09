//! Rules and their journal: who is gone for, what is folded, and what a restart finds whatever happened to the file.

use super::rules::{MOST_PREFIXES, MOST_ROWS, MOST_WHOLES};
use super::*;
use crate::tags::Tag;
use std::fs;
use std::path::{Path, PathBuf};

const SOME_TAG: u64 = 7;

fn tags(numbers: &[u64]) -> Tags {
    Tags::from(numbers.iter().map(|&number| Tag(number)).collect::<Vec<_>>())
}

/// Of a slice of the response with the tag of this number.
fn piece_of(whole: u64) -> Tags {
    tags(&[SOME_TAG]).of_piece(Tag(whole)).expect("few")
}

fn prefix(text: &str) -> Scope {
    Scope::Prefix(text.as_bytes().into())
}

fn key(text: &str) -> Scope {
    Scope::Key(number_of_key(text.as_bytes()))
}

#[test]
fn a_rule_goes_for_what_it_names_and_was_born_before_it() {
    let cases: [(Scope, bool); 9] = [
        (Scope::All, true),
        (prefix("http://a/"), true),
        (prefix("http://a/b"), true),
        (prefix("http://a/bc"), false),
        (prefix("ttp"), false),
        (Scope::Tag(SOME_TAG), true),
        (Scope::Tag(SOME_TAG + 1), false),
        (key("http://a/b"), true),
        (key("http://a/"), false),
    ];
    for (scope, hits) in cases {
        for how in [How::Hard, How::Soft] {
            let purges = Purges::default();
            let rule = purges.declare(scope.clone(), how, 1000);
            let verdict = |born| purges.verdict(born, &tags(&[3, SOME_TAG]), b"http://a/b");
            let expected = match how {
                _ if !hits => Verdict::Untouched(rule.number),
                How::Hard => Verdict::Hard,
                How::Soft => Verdict::Soft { at: 1000, upto: rule.number },
            };
            assert_eq!(verdict(0), expected, "{scope:?}");
            assert_eq!(verdict(rule.number - 1), expected, "{scope:?}");
            assert_eq!(verdict(rule.number), Verdict::Untouched(rule.number), "{scope:?}");
            let ruling = purges.rules().ruling(&tags(&[SOME_TAG]), b"http://a/b");
            assert_eq!(ruling.map(|ruling| ruling.scope), hits.then_some(scope.clone()));
        }
    }
}

#[test]
fn numbers_grow_and_follow_the_clock_where_it_is_ahead() {
    let purges = Purges::default();
    let number = |at| purges.declare(Scope::All, How::Hard, at).number;
    assert_eq!([number(500), number(500), number(100), number(9_000)], [500, 501, 502, 9_000]);
    purges.outnumber(20_000);
    assert_eq!((purges.generation(), number(9_001), purges.generation()), (9_000, 20_001, 20_001));
}

#[test]
fn of_a_hard_and_a_soft_rule_the_hard_one_counts_and_of_two_soft_ones_the_earlier() {
    let purges = Purges::default();
    purges.declare(Scope::Tag(1), How::Soft, 10);
    purges.declare(prefix("a"), How::Soft, 20);
    let upto = purges.generation();
    assert_eq!(purges.verdict(0, &tags(&[1]), b"ab"), Verdict::Soft { at: 10, upto });
    assert_eq!(purges.verdict(10, &tags(&[1]), b"ab"), Verdict::Soft { at: 20, upto });
    purges.declare(Scope::Tag(1), How::Hard, 30);
    assert_eq!(purges.verdict(0, &tags(&[1]), b"ab"), Verdict::Hard);
    purges.declare(Scope::Tag(1), How::Soft, 40);
    assert_eq!(purges.verdict(0, &tags(&[1]), b"ab"), Verdict::Hard, "a soft one does not undo it");
    assert_eq!(purges.verdict(30, &tags(&[1]), b"x"), Verdict::Soft { at: 40, upto: 40 });
}

#[test]
fn what_a_wider_rule_says_too_is_not_kept() {
    let purges = Purges::default();
    for number in 0..100 {
        purges.declare(Scope::Tag(number), How::Hard, 0);
        purges.declare(prefix(&format!("http://a/{number}")), How::Soft, 0);
    }
    assert_eq!(purges.rules().len(Cause::Purge), 202);
    purges.declare(prefix("http://a/1"), How::Soft, 0);
    assert_eq!(purges.rules().len(Cause::Purge), 202 - 10, "10 to 19 are in 1");
    purges.declare(Scope::All, How::Soft, 0);
    assert_eq!(purges.rules().len(Cause::Purge), 102, "a hard rule says more than a soft one for all");
    purges.declare(Scope::All, How::Hard, 0);
    assert_eq!(purges.rules().len(Cause::Purge), 2);
    assert_eq!(purges.verdict(0, &tags(&[5]), b"x"), Verdict::Hard);
}

#[test]
fn past_the_bound_the_oldest_rows_are_folded_and_only_purge_more() {
    let purges = Purges::default();
    let first = purges.declare(Scope::Tag(0), How::Hard, 1);
    let born_later = purges.declare(Scope::Tag(1), How::Soft, 2).number;
    for number in 2..MOST_ROWS as u64 + 10 {
        let scope = if number % 2 == 0 { Scope::Tag(number) } else { Scope::Key(number) };
        purges.declare(scope, How::Hard, 0);
    }
    assert_eq!(purges.rules().len(Cause::Purge), 2 + MOST_ROWS);
    assert_eq!(purges.verdict(0, &tags(&[0]), b"x"), Verdict::Hard, "{first:?} still holds");
    assert_eq!(purges.verdict(0, &tags(&[]), b"x"), Verdict::Hard, "and has come to hold for all");
    let spared = purges.verdict(born_later + 8, &tags(&[]), b"x");
    assert!(matches!(spared, Verdict::Untouched(_)), "what was born since is spared: {spared:?}");
}

#[test]
fn past_the_bound_the_oldest_prefix_is_folded() {
    let purges = Purges::default();
    for number in 0..MOST_PREFIXES + 1 {
        purges.declare(prefix(&format!("{number:05}")), How::Soft, 1 + number as i64);
    }
    let upto = purges.generation();
    assert_eq!(purges.verdict(0, &tags(&[]), b"other"), Verdict::Soft { at: 1, upto });
    assert_eq!(purges.verdict(1, &tags(&[]), b"other"), Verdict::Untouched(upto));
    assert_eq!(purges.verdict(1, &tags(&[]), b"00001/a"), Verdict::Soft { at: 2, upto });
}

#[test]
fn what_changes_of_pieces_declare_goes_for_pieces_alone() {
    let cases = [
        (Scope::Pieces(1), piece_of(1), true),
        (Scope::Pieces(1), piece_of(2), false),
        (Scope::Pieces(1), tags(&[1]), false),
        (Scope::Pieces(SOME_TAG), piece_of(1), false),
        (Scope::AllPieces, piece_of(1), true),
        (Scope::AllPieces, tags(&[1]), false),
        (Scope::AllPieces, tags(&[]), false),
        (Scope::Tag(SOME_TAG), piece_of(1), true),
        (Scope::All, piece_of(1), true),
    ];
    for (scope, tags, hits) in cases {
        let purges = Purges::default();
        let rule = purges.declare(scope.clone(), How::Hard, 1000);
        let expected = if hits { Verdict::Hard } else { Verdict::Untouched(rule.number) };
        assert_eq!(purges.verdict(rule.number - 1, &tags, b"x"), expected, "{scope:?} {tags:?}");
        assert_eq!(purges.verdict(rule.number, &tags, b"x"), Verdict::Untouched(rule.number), "{scope:?}");
        let ruling = purges.rules().ruling(&tags, b"x");
        assert_eq!(ruling.map(|ruling| ruling.scope), hits.then_some(scope));
    }
}

#[test]
fn too_many_changes_of_pieces_are_folded_over_pieces_and_leave_purges_alone() {
    let purges = Purges::default();
    for number in 0..100 {
        purges.declare(Scope::Tag(number), How::Hard, 1);
        purges.declare(prefix(&format!("http://a/{number}")), How::Soft, 1);
    }
    let asked_for = purges.rules().len(Cause::Purge);
    let before = purges.generation();
    let rules: Vec<u64> = (0..MOST_WHOLES as u64 + 10)
        .map(|whole| purges.declare(Scope::Pieces(1000 + whole), How::Hard, 1).number)
        .collect();
    let rules_of = |cause| purges.rules().len(cause);
    assert_eq!((rules_of(Cause::Change), rules_of(Cause::Purge)), (2 + MOST_WHOLES, asked_for));
    let verdict = |born, tags: &Tags| purges.verdict(born, tags, b"x");
    let spared = Verdict::Untouched(purges.generation());
    assert_eq!(verdict(before, &tags(&[])), spared, "whole responses");
    assert_eq!(verdict(before, &tags(&[1000])), spared, "one that has such a tag");
    assert_eq!(verdict(before, &piece_of(1)), Verdict::Hard, "pieces of others go with the oldest");
    assert_eq!(verdict(rules[9], &piece_of(1)), spared, "but for those stored since");
    assert_eq!(verdict(rules[9], &piece_of(1011)), Verdict::Hard, "by its own rule");
    assert_eq!(verdict(rules[11], &piece_of(1011)), spared);

    (0..MOST_ROWS as u64).for_each(|tag| _ = purges.declare(Scope::Tag(1_000_000 + tag), How::Hard, 1));
    assert_eq!(rules_of(Cause::Purge), 2 + 100 + MOST_ROWS, "and purges fold no change");
    purges.declare(Scope::AllPieces, How::Hard, 1);
    assert_eq!((rules_of(Cause::Change), rules_of(Cause::Purge)), (2, 2 + 100 + MOST_ROWS));
    purges.declare(Scope::All, How::Hard, 1);
    assert_eq!((rules_of(Cause::Change), rules_of(Cause::Purge)), (2, 2));
    assert_eq!(purges.rules().list(Cause::Change), [], "the purge of everything says it too");
}

#[test]
fn a_tag_that_is_purged_again_and_again_takes_one_row() {
    let purges = Purges::default();
    for _ in 0..10_000 {
        purges.declare(Scope::Tag(1), How::Hard, 0);
    }
    assert_eq!(purges.rules().len(Cause::Purge), 3);
    assert!(purges.rules().queue_len() < 3_000);
}

fn open(directory: &Path) -> (Purges, Journal) {
    let purges = Purges::default();
    let journal = open_with(directory, Cause::Purge, &purges);
    (purges, journal)
}

fn open_with(directory: &Path, cause: Cause, purges: &Purges) -> Journal {
    let (journal, read) = Journal::open(directory, cause, purges, 1_000_000);
    read.expect("it can be read");
    journal
}

fn purge(purges: &Purges, journal: &Journal, scope: Scope) -> u64 {
    let rule = purges.declare(scope, How::Hard, 0);
    journal.append(&rule, purges).expect("written");
    rule.number
}

fn file(directory: &Path) -> PathBuf {
    directory.join(".millstream-purges")
}

fn is_purged(purges: &Purges, tag: u64) -> bool {
    purges.verdict(0, &tags(&[tag]), b"x") == Verdict::Hard
}

#[test]
fn a_restart_finds_every_rule_and_numbers_go_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let (purges, journal) = open(directory.path());
    purge(&purges, &journal, prefix("http://a/"));
    let soft = purges.declare(key("b"), How::Soft, 77);
    journal.append(&soft, &purges).expect("written");
    let last = purge(&purges, &journal, Scope::Tag(1));
    let (restarted, journal) = open(directory.path());
    assert_eq!(restarted.generation(), last);
    assert_eq!(restarted.verdict(0, &tags(&[]), b"http://a/b"), Verdict::Hard);
    assert_eq!(restarted.verdict(0, &tags(&[]), b"b"), Verdict::Soft { at: 77, upto: last });
    assert!(is_purged(&restarted, 1) && !is_purged(&restarted, 2));
    assert!(purge(&restarted, &journal, Scope::Tag(2)) > last);
    assert!(is_purged(&open(directory.path()).0, 2));
}

#[test]
fn a_journal_cut_at_any_byte_keeps_every_rule_that_was_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let (purges, journal) = open(directory.path());
    let mut lengths = Vec::new();
    for tag in 0..6 {
        purge(&purges, &journal, Scope::Tag(tag));
        lengths.push(fs::metadata(file(directory.path())).expect("there").len() as usize);
    }
    let whole = fs::read(file(directory.path())).expect("there");
    for cut in lengths[0]..whole.len() {
        fs::write(file(directory.path()), &whole[..cut]).expect("written");
        let (restarted, journal) = open(directory.path());
        let kept = lengths.iter().filter(|&&length| length <= cut).count() as u64;
        for tag in 0..6 {
            assert_eq!(is_purged(&restarted, tag), tag < kept, "cut at {cut}: {tag}");
        }
        // What comes after a torn record can be read.
        purge(&restarted, &journal, Scope::Tag(99));
        let again = open(directory.path()).0;
        assert!(is_purged(&again, 99) && is_purged(&again, 0) && !is_purged(&again, 6));
    }
}

#[test]
fn damage_before_the_end_purges_everything_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let (purges, journal) = open(directory.path());
    for tag in 0..6 {
        purge(&purges, &journal, Scope::Tag(tag));
    }
    let whole = fs::read(file(directory.path())).expect("there");
    // Every bit but those of the last record, whose loss cannot be told from a torn one.
    for at in 0..whole.len() - 34 {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(file(directory.path()), &bytes).expect("written");
        let damaged = Purges::default();
        let (_, read) = Journal::open(directory.path(), Cause::Purge, &damaged, 1_000_000);
        assert!(read.is_err(), "{at}");
        assert!(is_purged(&damaged, 999), "{at}");
        let (again, _) = open(directory.path());
        assert_eq!(again.generation(), damaged.generation(), "the new journal is whole");
        assert!(is_purged(&again, 999));
    }
}

#[test]
fn no_bytes_make_reading_a_journal_fail() {
    let mut random: u64 = 88172645463325252;
    for length in 0..600 {
        let mut bytes = if length % 2 == 0 { super::rule::MAGIC.to_vec() } else { Vec::new() };
        for _ in 0..length {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            bytes.push(if random.is_multiple_of(3) { 0 } else { random as u8 });
        }
        let decoded = super::rule::decode(&bytes);
        assert!(decoded.rules.is_empty());
    }
}

#[test]
fn a_directory_that_vanished_gets_a_new_journal_with_all_rules() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("cache");
    fs::create_dir(&directory).expect("made");
    let (purges, journal) = open(&directory);
    purge(&purges, &journal, Scope::Tag(1));
    fs::remove_dir_all(&directory).expect("removed");
    purge(&purges, &journal, Scope::Tag(2));
    let restarted = open(&directory).0;
    assert!(is_purged(&restarted, 1) && is_purged(&restarted, 2));

    fs::remove_dir_all(&directory).expect("removed");
    fs::write(&directory, b"a file in its place").expect("written");
    let rule = purges.declare(Scope::Tag(3), How::Hard, 0);
    assert!(journal.append(&rule, &purges).is_err());
    assert!(is_purged(&purges, 3), "it holds all the same");
    fs::remove_file(&directory).expect("removed");
    purge(&purges, &journal, Scope::Tag(4));
    let restarted = open(&directory).0;
    assert!((1..5).all(|tag| is_purged(&restarted, tag)), "and is written with the next");
}

#[test]
fn two_processes_on_one_directory_lose_no_rule_of_each_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let (old, old_journal) = open(directory.path());
    purge(&old, &old_journal, Scope::Tag(0));
    let (new, new_journal) = open(directory.path());
    for tag in 1..2_500 {
        match tag % 2 {
            0 => purge(&old, &old_journal, Scope::Tag(tag % 50)),
            _ => purge(&new, &new_journal, Scope::Tag(tag % 50)),
        };
    }
    let restarted = open(directory.path()).0;
    assert!((0..50).all(|tag| is_purged(&restarted, tag)));
}

#[test]
fn a_journal_does_not_grow_without_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let (purges, journal) = open(directory.path());
    for number in 0..2_500 {
        purge(&purges, &journal, Scope::Tag(number % 10));
        assert!(fs::metadata(file(directory.path())).expect("there").len() < 60_000);
    }
    assert!((0..10).all(|tag| is_purged(&open(directory.path()).0, tag)));
}

#[test]
fn purges_of_many_threads_are_all_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let (purges, journal) = open(directory.path());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (purges, journal) = (&purges, &journal);
            scope.spawn(move || {
                (0..100).for_each(|number| _ = purge(purges, journal, Scope::Tag(thread * 100 + number)));
            });
        }
    });
    let restarted = open(directory.path()).0;
    assert!((0..400).all(|tag| is_purged(&restarted, tag)));
    assert_eq!(restarted.generation(), purges.generation());
}

#[test]
fn changes_have_a_journal_of_their_own_whose_damage_costs_pieces_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let changes = directory.path().join(".millstream-pieces");
    let (purges, journal) = open(directory.path());
    let of_changes = open_with(directory.path(), Cause::Change, &purges);
    purge(&purges, &journal, Scope::Tag(1));
    let asked_for = fs::read(file(directory.path())).expect("there");
    // More than are borne before the file is written anew.
    (0..2_500).for_each(|number| _ = purge(&purges, &of_changes, Scope::Pieces(number % 10)));
    assert_eq!(fs::read(file(directory.path())).expect("there"), asked_for);
    assert!(fs::metadata(&changes).expect("there").len() < 60_000);
    let restarted = || {
        let (purges, _) = open(directory.path());
        let read = Journal::open(directory.path(), Cause::Change, &purges, 1_000_000).1;
        let is_gone = |tags: Tags| purges.verdict(0, &tags, b"x") == Verdict::Hard;
        (read.is_ok(), [tags(&[]), tags(&[1]), piece_of(9), piece_of(10)].map(is_gone))
    };
    assert_eq!(restarted(), (true, [false, true, true, false]));
    let whole = fs::read(&changes).expect("there");
    fs::write(&changes, &whole[..whole.len() - 3]).expect("written");
    assert_eq!(restarted(), (true, [false, true, true, false]), "cut, and there before");
    for damaged in [&whole[1..], &[], &[0; 500]] {
        fs::write(&changes, damaged).expect("written");
        assert_eq!(restarted(), (false, [false, true, true, true]), "{} bytes", damaged.len());
        assert_eq!(restarted(), (true, [false, true, true, true]), "once");
    }
}
