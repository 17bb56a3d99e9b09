//! Files whose bytes changed while nobody looked, and directories that take nothing.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use millstream_tests::wait;

use super::proof::{check, origin};
use super::start;

fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flatten().flat_map(|entry| below(entry.path())).collect()
}

fn flip(path: &Path, bit: u64) {
    let file = fs::File::options().read(true).write(true).open(path).expect("own file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, bit / 8).expect("within the file");
    byte[0] ^= 1 << (bit % 8);
    file.write_all_at(&byte, bit / 8).expect("written");
}

#[test]
fn a_flipped_bit_in_a_small_file_is_never_answered() {
    skip_on_nginx!("it has no checksums");
    let origin = origin();
    let mut server = start(&origin, "");
    let cache = server.prefix().join("cache");
    let pages: Vec<String> = (0..50).map(|number| format!("/{number}/{}/3600", 300 + 40 * number)).collect();
    let mut random = 88_172_645_463_325_252u64;
    for round in 0..4 {
        for path in &pages {
            check(path, "none", &server.get(path)).expect("right");
        }
        wait::until("all are stored", || files(&cache).len() == pages.len());
        assert_eq!(server.stop(Signal::TERM).map(|status| status.success()), Some(true));
        for file in files(&cache) {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(round + 1);
            let bits = 8 * fs::metadata(&file).expect("there").len();
            flip(&file, (random >> 16) % bits);
        }
        server.run().expect("it starts");
        for path in &pages {
            let answer = server.get(path);
            check(path, "none", &answer).expect("right");
            assert_eq!(answer.cache_status(), "MISS", "every byte is under a checksum");
        }
    }
    server.says("a damaged file was removed");
}

#[test]
fn a_flipped_bit_in_a_large_file_ends_the_answer_and_the_next_is_asked_for_anew() {
    skip_on_nginx!();
    let origin = origin();
    let mut server = start(&origin, "");
    let cache = server.prefix().join("cache");
    let path = "/large/3000000/3600";
    for at in [2_000_000, 100_000, 2_999_000] {
        check(path, "none", &server.get(path)).expect("right");
        wait::until("it is stored", || files(&cache).len() == 1);
        check(path, "none", &server.get(path)).expect("right");
        server.stop(Signal::TERM).expect("it ends");
        flip(&files(&cache)[0], at * 8);
        server.run().expect("it starts");
        let mut client = server.client();
        match client.get(path) {
            Err(_) => {}
            Ok(answer) => {
                check(path, "none", &answer).expect("right");
                assert_eq!(answer.cache_status(), "MISS");
            }
        }
        wait::until("it is asked for anew", || {
            let answer = server.client().get(path);
            let Ok(answer) = answer else { return false };
            check(path, "none", &answer).expect("right");
            true
        });
    }
}

#[test]
fn a_directory_that_takes_no_files_costs_a_log_line_and_no_answer() {
    skip_on_nginx!();
    let origin = origin();
    let server = start(&origin, "");
    let cache = server.prefix().join("cache");
    check("/first/3000/3600", "none", &server.get("/first/3000/3600")).expect("right");
    wait::until("it is stored", || files(&cache).len() == 1);
    let closed = |mode| {
        for directory in [cache.clone(), cache.join(".temporary")] {
            fs::set_permissions(directory, fs::Permissions::from_mode(mode)).expect("own directory");
        }
    };
    closed(0o500);
    for number in 0..10 {
        for length in [3000, 1_500_000] {
            let path = format!("/{number}/{length}/3600");
            check(&path, "none", &server.get(&path)).expect("right");
        }
        assert_eq!(server.get(&format!("/{number}/3000/3600")).cache_status(), "HIT", "out of memory");
    }
    assert!(server.log().lines().filter(|line| line.contains("[crit]")).count() <= 1, "{}", server.log());
    closed(0o700);
    check("/last/3000/3600", "none", &server.get("/last/3000/3600")).expect("right");
    wait::until("it stores again", || files(&cache).len() >= 2);
}
