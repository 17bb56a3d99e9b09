//! Real files and the real thread: order, sharing, rotation, compression, failure and stop.

use super::*;
use flate2::read::MultiGzDecoder;
use millstream_conf::model::ErrorForm;
use std::fs;
use std::future::Future;
use std::io::Read;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Wakes a parked thread, to await a future without a runtime.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        std::thread::park();
    }
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("the log can be read")
}

fn writer() -> Arc<LogWriter> {
    LogWriter::start().expect("a thread can be started")
}

#[test]
fn a_line_is_in_its_file_once_its_ticket_is_written() {
    let (directory, writer) = (directory(), writer());
    let path = directory.path().join("access.log");
    let sink = writer.open(&path, None).unwrap();
    for number in 0..100 {
        let ticket = sink.append(format!("line {number}\n").as_bytes());
        block_on(writer.written(ticket));
        assert!(text(&path).ends_with(&format!("line {number}\n")));
    }
    block_on(writer.written(Ticket::default()));
}

#[test]
fn many_threads_lose_and_split_no_line() {
    let (directory, writer) = (directory(), writer());
    let path = directory.path().join("access.log");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let sink = writer.open(&path, None).unwrap();
            scope.spawn(move || {
                for number in 0..5_000 {
                    match number % 2 {
                        0 => sink.append(format!("{thread} {number}\n").as_bytes()),
                        _ => sink.send(format!("{thread} {number}\n").into_bytes()),
                    };
                }
            });
        }
    });
    assert!(writer.drain());
    let mut next = [0; 4];
    for line in text(&path).lines() {
        let (thread, number) = line.split_once(' ').expect("a whole line");
        let next = &mut next[thread.parse::<usize>().unwrap()];
        assert_eq!(number.parse::<usize>().unwrap(), *next, "each thread's lines keep their order");
        *next += 1;
    }
    assert_eq!(next, [5_000; 4]);
}

#[test]
fn a_path_opened_twice_is_one_file_and_another_path_another() {
    let (directory, writer) = (directory(), writer());
    let path = directory.path().join("a");
    let first = writer.open(&path, None).unwrap();
    let second = writer.open(&path, None).unwrap();
    let other = writer.open(&directory.path().join("b"), None).unwrap();
    assert!(Arc::ptr_eq(&first.handle, &second.handle));
    assert!(!Arc::ptr_eq(&first.handle, &other.handle));
    drop(first);
    second.append(b"still open\n");
    drop(second);
    assert!(writer.drain());
    assert_eq!(text(&path), "still open\n");
}

#[test]
fn after_a_rotation_lines_go_to_the_new_file_and_earlier_ones_to_the_old() {
    let (directory, writer) = (directory(), writer());
    let (path, rotated) = (directory.path().join("access.log"), directory.path().join("access.log.1"));
    let sink = writer.open(&path, None).unwrap();
    sink.append(b"before\n");
    fs::rename(&path, &rotated).unwrap();
    sink.append(b"meanwhile\n");
    writer.reopen();
    assert!(writer.drain());
    sink.append(b"after\n");
    assert!(writer.drain());
    assert_eq!(text(&rotated), "before\nmeanwhile\n");
    assert_eq!(text(&path), "after\n");
}

#[test]
fn a_file_that_cannot_be_reopened_stays_in_use_and_the_error_log_says_so() {
    let (directory, writer) = (directory(), writer());
    let folder = directory.path().join("logs");
    fs::create_dir(&folder).unwrap();
    let (path, moved) = (folder.join("access.log"), directory.path().join("moved"));
    let errors = directory.path().join("error.log");
    let error_sink = writer.open(&errors, None).unwrap();
    writer.report_to(Some(&error_sink), ErrorForm::Text);
    let sink = writer.open(&path, None).unwrap();
    fs::rename(&folder, &moved).unwrap();
    writer.reopen();
    sink.append(b"kept\n");
    assert!(writer.drain() && writer.drain());
    assert_eq!(text(&moved.join("access.log")), "kept\n");
    let complaint = text(&errors);
    assert!(
        complaint.contains("[emerg]") && complaint.contains("(2: No such file or directory)"),
        "{complaint}"
    );
}

#[test]
fn a_compressed_log_is_whole_after_every_block() {
    let (directory, writer) = (directory(), writer());
    let path = directory.path().join("access.log.gz");
    let sink = writer.open(&path, Some(6)).unwrap();
    assert!(sink.is_gzip());
    let mut expected = String::new();
    for block in 0..3 {
        let lines = format!("block {block}\n").repeat(500);
        sink.send(lines.clone().into_bytes());
        assert!(writer.drain());
        expected.push_str(&lines);
        let mut found = String::new();
        MultiGzDecoder::new(fs::File::open(&path).unwrap()).read_to_string(&mut found).unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_full_disk_drops_lines_counts_them_and_complains_once() {
    let (directory, writer) = (directory(), writer());
    let errors = directory.path().join("error.log");
    let error_sink = writer.open(&errors, None).unwrap();
    writer.report_to(Some(&error_sink), ErrorForm::Text);
    let sink = writer.open(Path::new("/dev/full"), None).unwrap();
    for _ in 0..3 {
        sink.append(b"lost\n");
        assert!(writer.drain());
    }
    assert!(writer.drain());
    let complaints = text(&errors);
    assert_eq!(complaints.lines().count(), 1, "{complaints}");
    assert!(complaints.contains("[alert]"), "{complaints}");
    assert!(
        complaints.ends_with("write() to \"/dev/full\" failed (28: No space left on device)\n"),
        "{complaints}"
    );
    let statistics = writer.statistics();
    assert_eq!((statistics.bytes_dropped, statistics.errors), (15, 3));
}

/// The reading end may be opened before a writer exists.
fn pipe(path: &Path) -> fs::File {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    fs::OpenOptions::new().read(true).write(true).open(path).unwrap()
}

#[test]
fn a_slow_reader_gets_every_line_in_order() {
    let (directory, writer) = (directory(), writer());
    let path = directory.path().join("pipe");
    let mut reader = pipe(&path);
    let sink = writer.open(&path, None).unwrap();
    let lines = FILE_BYTES / 1024;
    for number in 0..lines {
        sink.append(format!("{number:1023}\n").as_bytes());
    }
    let mut line = [0; 1024];
    for number in 0..lines {
        reader.read_exact(&mut line).unwrap();
        assert_eq!(line[..], format!("{number:1023}\n").into_bytes()[..]);
    }
    assert!(writer.drain());
    assert_eq!(writer.statistics().bytes_dropped, 0);
}

#[test]
fn a_pipe_that_nobody_reads_delays_nobody_and_costs_the_lines_past_a_bound() {
    let (directory, writer) = (directory(), writer());
    let path = directory.path().join("pipe");
    let mut reader = pipe(&path);
    let (errors, other) = (directory.path().join("error.log"), directory.path().join("other.log"));
    let error_sink = writer.open(&errors, None).unwrap();
    writer.report_to(Some(&error_sink), ErrorForm::Text);
    let (sink, other_sink) = (writer.open(&path, None).unwrap(), writer.open(&other, None).unwrap());
    let sent = (3 * FILE_BYTES) >> 20;
    for _ in 0..sent {
        let mut block = vec![b'x'; 1 << 20];
        block[(1 << 20) - 1] = b'\n';
        block_on(writer.written(sink.send(block)));
        let ticket = other_sink.append(b"another log goes on\n");
        block_on(writer.written(ticket));
    }
    assert_eq!(text(&other).lines().count(), sent);
    let dropped = writer.statistics().lines_dropped;
    assert!((sent as u64 / 2..sent as u64).contains(&dropped), "{dropped} of {sent}");
    assert!(!writer.drain(), "it cannot be written");
    let complaints = text(&errors);
    assert_eq!(complaints.lines().count(), 1, "{complaints}");
    assert!(complaints.contains("[alert]") && complaints.contains("does not keep up"), "{complaints}");
    // A rotation meanwhile, with the reader coming back after it.
    writer.reopen();
    let mut kept = vec![0; (sent - dropped as usize) << 20];
    let partly = (kept.len() >> 20) - 1;
    reader.read_exact(&mut kept[..partly << 20]).unwrap();
    assert!(kept[..partly << 20].iter().all(|byte| matches!(byte, b'x' | b'\n')));
    // How much of the last block a pipe takes while nobody reads depends on how the others lie in its pages.
    // It ends with the last writer, which the test does not wait for.
    thread::spawn(move || while reader.read(&mut kept).is_ok_and(|count| count > 0) {});
    assert!(writer.drain());
    let complaints = text(&errors);
    assert!(complaints.contains(&format!("keeps up again, {dropped} lines were dropped")), "{complaints}");
}

#[test]
fn a_pipe_without_a_reader_can_be_opened_and_keeps_its_lines_for_one() {
    let (directory, writer) = (directory(), writer());
    let path = directory.path().join("pipe");
    drop(pipe(&path));
    let sink = writer.open(&path, None).unwrap();
    block_on(writer.written(sink.append(b"early\n")));
    let mut line = [0; 6];
    fs::File::open(&path).unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"early\n");
    writer.reopen();
    assert!(writer.drain());
}

#[test]
fn whoever_waits_for_a_writer_that_does_not_come_is_let_go() {
    let shared = Arc::new(Shared::new().unwrap());
    let directory = directory();
    let path = directory.path().join("access.log");
    let open = Open::File(Output::open(&path).unwrap());
    let sink = LogSink::insert(&shared, Place::File(path.clone()), None, open);
    // No thread runs: this is what a disk that never answers looks like to everybody else.
    let (first, second) = (sink.append(b"first\n"), sink.append(b"second\n"));
    let context = &mut Context::from_waker(Waker::noop());
    let mut waiting = pin!(Written::new(&shared, first));
    assert!(waiting.as_mut().poll(context).is_pending());
    shared.stop_waiting();
    assert!(shared.lock().waiters.is_empty());
    assert!(waiting.as_mut().poll(context).is_ready());
    assert!(pin!(Written::new(&shared, second)).poll(context).is_ready());
}

#[test]
fn what_is_queued_is_written_before_the_writer_ends() {
    let (directory, writer) = (directory(), writer());
    let path = directory.path().join("access.log");
    let sink = writer.open(&path, None).unwrap();
    for _ in 0..1000 {
        sink.append(b"queued\n");
    }
    drop(writer);
    assert_eq!(text(&path).lines().count(), 1000);
    sink.append(b"too late\n");
    assert_eq!(text(&path).lines().count(), 1000);
}

#[test]
fn emptied_buffers_come_back() {
    let (directory, writer) = (directory(), writer());
    let sink = writer.open(&directory.path().join("access.log"), None).unwrap();
    let mut block = Vec::with_capacity(4096);
    block.extend_from_slice(b"line\n");
    sink.send(block);
    assert!(writer.drain());
    let buffer = sink.take_buffer();
    assert!(buffer.is_empty() && buffer.capacity() >= 4096);
}

fn kept(max: usize, min_uses: u64) -> KeptLogs {
    let hour = Duration::from_secs(3600);
    KeptLogs { max, inactive: hour, min_uses, valid: hour, span: Default::default() }
}

fn append_to(writer: &LogWriter, group: &LogSink, path: &Path, line: &str) {
    let root = path.ancestors().nth(2).expect("a directory above");
    let ticket = group.append_to(NamedLine { path, root, follows_links: true, line: line.as_bytes() });
    block_on(writer.written(ticket));
}

#[test]
fn of_files_that_requests_name_those_in_use_stay_open_and_the_one_used_longest_ago_goes_first() {
    let (directory, writer) = (directory(), writer());
    let (logs, moved) = (directory.path().join("logs"), directory.path().join("moved"));
    fs::create_dir(&logs).unwrap();
    let group = writer.group(Some(kept(3, 2)));
    let append = |name: &str, line: &str| append_to(&writer, &group, &logs.join(name), line);
    for name in ["first", "first", "once", "second", "second", "third", "third"] {
        append(name, "here\n");
    }
    // What is open is written to wherever it is by now; anything else is not there.
    fs::rename(&logs, &moved).unwrap();
    for name in ["first", "once", "second", "third"] {
        append(name, "there\n");
    }
    for (name, expected) in [
        ("first", "here\nhere\n"),
        ("once", "here\n"),
        ("second", "here\nhere\nthere\n"),
        ("third", "here\nhere\nthere\n"),
    ] {
        assert_eq!(text(&moved.join(name)), expected, "{name}");
    }
    assert_eq!(writer.statistics().errors, 2);
    // A rotation closes all of them.
    fs::create_dir(&logs).unwrap();
    writer.reopen();
    assert!(writer.drain());
    append("third", "anew\n");
    assert_eq!(text(&logs.join("third")), "anew\n");
}

#[test]
fn without_a_cache_each_line_goes_to_the_file_that_has_the_name_now() {
    let (directory, writer) = (directory(), writer());
    let logs = directory.path().join("logs");
    fs::create_dir(&logs).unwrap();
    let (path, group) = (logs.join("a"), writer.group(None));
    append_to(&writer, &group, &path, "one\n");
    fs::rename(&path, logs.join("b")).unwrap();
    append_to(&writer, &group, &path, "two\n");
    assert_eq!((text(&logs.join("b")), text(&path)), ("one\n".to_owned(), "two\n".to_owned()));
}

#[test]
fn no_file_is_made_where_the_root_is_missing_or_a_link_is_on_the_way_that_is_not_followed() {
    let (directory, writer) = (directory(), writer());
    let (here, group) = (directory.path(), writer.group(None));
    let real = here.canonicalize().unwrap();
    fs::create_dir(real.join("logs")).unwrap();
    std::os::unix::fs::symlink(real.join("logs"), real.join("link")).unwrap();
    let append = |path: &str, root: &str, follows_links: bool| {
        let (path, root) = (real.join(path), real.join(root));
        let line = NamedLine { path: &path, root: &root, follows_links, line: b"line\n" };
        block_on(writer.written(group.append_to(line)));
        path.exists()
    };
    assert!(!append("logs/a", "nowhere", true));
    assert!(!append("link/a", "logs", false));
    assert!(append("link/a", "logs", true));
    assert!(append("logs/b", "logs", false));
    assert_eq!(writer.statistics().errors, 2);
}
