//! What does not fit memory for a while: bodies of clients, answers for slow ones. It needs a place that whoever serves can
//! write to, which is found before the first request, or there is no start.
//!
//! `MILLSTREAM_SPILL=1000000000` makes the slow download that long; by default it is a tenth.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use millstream_tests::origin::{Origin, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::{Server, binary, command, is_nginx};
use millstream_tests::{ports, wait};

/// The largest upload that `serve` allows.
const UPLOAD: u64 = 100_000_000;
/// Longer than anything should take on a starved machine.
const PATIENCE: Duration = Duration::from_secs(240);

fn download() -> u64 {
    std::env::var("MILLSTREAM_SPILL").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000_000)
}

/// Shows a hole, a repetition or an exchange: the period is no multiple of any buffer's size.
struct Pattern(Vec<u8>);

impl Pattern {
    fn new() -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        Pattern((0..1_000_003).map(next).collect())
    }

    fn at(&self, place: u64) -> &[u8] {
        &self.0[(place % self.0.len() as u64) as usize..]
    }

    fn send(&self, stream: &mut TcpStream, length: u64, sent: &AtomicU64) -> io::Result<()> {
        let mut place = 0;
        while place < length {
            let piece = self.at(place);
            let count = piece.len().min(65_536).min((length - place) as usize);
            stream.write_all(&piece[..count])?;
            place += count as u64;
            sent.store(place, Ordering::Release);
        }
        Ok(())
    }

    fn right(&self, from: u64, piece: &[u8]) -> u64 {
        let mut done = 0;
        while done < piece.len() {
            let expected = self.at(from + done as u64);
            let count = expected.len().min(piece.len() - done);
            if piece[done..done + count] != expected[..count] {
                break;
            }
            done += count;
        }
        done as u64
    }

    fn receive(&self, stream: &mut impl Read, from: u64, length: u64) -> io::Result<u64> {
        let mut buffer = vec![0; 65_536];
        let mut place = from;
        while place < length {
            let most = buffer.len().min((length - place) as usize);
            let count = stream.read(&mut buffer[..most])?;
            let right = self.right(place, &buffer[..count]);
            place += right;
            if count == 0 || right < count as u64 {
                break;
            }
        }
        Ok(place)
    }
}

/// Sends the pattern on GET, and reports how much of a body was the pattern.
struct Bulk {
    address: String,
    sent: Arc<AtomicU64>,
}

impl Bulk {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let sent = Arc::new(AtomicU64::new(0));
        let told = sent.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let told = told.clone();
                std::thread::spawn(move || converse(stream, &told));
            }
        });
        Bulk { address, sent }
    }
}

fn converse(mut stream: TcpStream, sent: &AtomicU64) -> io::Result<()> {
    let pattern = Pattern::new();
    loop {
        let head = head(&mut stream)?;
        if head.starts_with("GET /bulk") {
            let length = download();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")?;
            pattern.send(&mut stream, length, sent)?;
        } else {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            let right = pattern.receive(&mut stream, 0, length.unwrap_or(0))?.to_string();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{right}", right.len())?;
        }
    }
}

/// Byte by byte: nothing after it is read.
fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        bytes.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

fn upload(port: u16, length: u64) {
    let mut stream = connect(port);
    write!(
        stream,
        "POST /upload HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    )
    .expect("sent");
    // A refusal may come before the end of the body, so an error here is seen in the answer.
    _ = Pattern::new().send(&mut stream, length, &AtomicU64::new(0));
    let head = head(&mut stream).expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let mut right = String::new();
    stream.read_to_string(&mut right).expect("a body");
    assert_eq!(right, length.to_string(), "as much of the body arrived as it was");
}

/// A client that reads almost nothing before the API has sent everything, and then the rest.
fn download_slowly(port: u16, api: &Bulk) {
    let (mut stream, pattern, length) = (connect(port), Pattern::new(), download());
    write!(stream, "GET /bulk HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
    let head = head(&mut stream).expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let mut place = 0;
    let sent = wait::within(PATIENCE, || {
        // A little at a time, so that it counts as a client that reads.
        place = pattern.receive(&mut stream, place, (place + 1000).min(length)).expect("a body");
        (api.sent.load(Ordering::Acquire) == length).then_some(())
    });
    assert!(sent.is_some(), "the API was held up at {} of {length} bytes", api.sent.load(Ordering::Acquire));
    assert!(place < length / 2, "the client was no slow one");
    assert_eq!(pattern.receive(&mut stream, place, length).expect("a body"), length);
}

/// In an empty read-only root, as user and group 65534; `writable` is the only writable folder, if any.
/// `None` if the system gives no namespaces.
fn in_empty_root(prefix: &Prefix, writable: Option<&str>) -> Option<Command> {
    let possible = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) || !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: mount namespaces and root are needed");
        return None;
    }
    let (root, scratch) = (prefix.join("root"), prefix.join("scratch"));
    for folder in [&root, &scratch] {
        std::fs::create_dir_all(folder).expect("own directory");
    }
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&scratch, open).expect("own directory");
    let script = prefix.write("enter.sh", ENTER);
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh"])
        .args([&script, &root, &scratch])
        .args([writable.unwrap_or(""), binary().to_str().expect("a path")])
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::null());
    Some(command)
}

/// Root, scratch folder, its name inside, the program, its arguments.
const ENTER: &str = r#"set -e
root=$1 scratch=$2 writable=$3 program=$4
shift 4
mount -t tmpfs -o size=1m,mode=755 none "$root"
for folder in /usr/lib /usr/lib64 /lib /lib64; do
    if [ -h $folder ]; then
        ln -s "$(readlink $folder)" "$root$folder"
    elif [ -d $folder ]; then
        mkdir -p "$root$folder"
        mount --bind $folder "$root$folder"
    fi
done
touch "$root/millstream"
mount --bind "$program" "$root/millstream"
if [ -n "$writable" ]; then
    mkdir -p "$root$writable"
    mount --bind "$scratch" "$root$writable"
fi
mount -o remount,ro "$root"
cd /
exec chroot --userspec=65534:65534 --groups=65534 "$root" /millstream "$@"
"#;

fn accepting(command: &mut Command, port: u16) -> Running {
    let mut process = Running::start(command).expect("it runs");
    wait::until("it accepts connections", || {
        assert!(process.ended().is_none(), "it ended");
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    process
}

#[test]
fn a_stranger_in_an_empty_read_only_root_serves_long_bodies_and_answers_whole() {
    skip_on_nginx!();
    for writable in ["/tmp", "/var/tmp", "/dev/shm"] {
        let prefix = Prefix::new();
        let Some(mut command) = in_empty_root(&prefix, Some(writable)) else { return };
        let (api, port) = (Bulk::start(), ports::free());
        command.args(["serve", &api.address, "--listen", &port.to_string(), "--workers", "1"]);
        command.args(["--dashboard", "off"]);
        let _process = accepting(command.stderr(Stdio::null()), port);
        if writable == "/tmp" {
            upload(port, UPLOAD);
            download_slowly(port, &api);
        } else {
            upload(port, 1_000_000);
        }
    }
}

#[test]
fn without_any_writable_folder_there_is_no_start() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    let Some(mut command) = in_empty_root(&prefix, None) else { return };
    let port = ports::free().to_string();
    let output = command.args(["serve", "127.0.0.1:1", "--listen", &port]).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("no directory for temporary files") && told.contains("/var/tmp ("), "{told}");
}

const OF_A_USER: &str = site! {
    main "user www-data;"
    http "@PLACE@"
    server "client_max_body_size 0;
        location / { proxy_pass http://@ORIGIN@; }"
};

fn can_become_www_data() -> bool {
    let known = Command::new("id").arg("www-data").stderr(Stdio::null()).stdout(Stdio::null()).status();
    let can = rustix::process::geteuid().is_root() && known.is_ok_and(|status| status.success());
    if !can {
        eprintln!("SKIPPED: root and a user www-data are needed");
    }
    can
}

#[test]
fn workers_that_root_made_another_user_serve_long_bodies_and_answers_whole() {
    if !can_become_www_data() {
        return;
    }
    for place in ["", "client_body_temp_path @DIR@/bodies; proxy_temp_path @DIR@/answers;"] {
        let api = Bulk::start();
        let server = Server::start(&OF_A_USER.replace("@PLACE@", place), &[("ORIGIN", &api.address)]);
        upload(server.port(), UPLOAD);
        download_slowly(server.port(), &api);
    }
}

#[test]
fn a_prefix_that_is_not_there_is_left_so_and_nobody_misses_it() {
    if is_nginx() || !can_become_www_data() {
        return;
    }
    let (prefix, api, port) = (Prefix::new(), Bulk::start(), ports::free());
    let text = OF_A_USER
        .replace("@PLACE@", "")
        .replace("@DIR@", prefix.path().to_str().expect("a path"))
        .replace("@PORT@", &port.to_string())
        .replace("@ORIGIN@", &api.address);
    let missing = prefix.join("missing");
    let mut start = command(&missing, &prefix.write("nginx.conf", &text));
    let _process = accepting(start.args(["-g", "daemon off;"]), port);
    upload(port, 1_000_000);
    assert!(!missing.exists(), "no folder is made for temporary files");
}

fn close(prefix: &Prefix) {
    let closed = prefix.join("closed");
    std::fs::create_dir(&closed).expect("own directory");
    let only_root = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&closed, only_root).expect("own directory");
}

#[test]
fn a_place_that_the_user_may_not_enter_is_a_located_error_of_start_and_check() {
    if is_nginx() || !can_become_www_data() {
        return;
    }
    let prefix = Prefix::new();
    close(&prefix);
    let text = OF_A_USER.replace("@PLACE@", "proxy_temp_path @DIR@/closed/answers;");
    let Err(refused) = Server::try_start(prefix, &text, &[("ORIGIN", "127.0.0.1:1")]) else {
        panic!("it started");
    };
    let expected = "proxy_temp_path";
    assert!(refused.output.contains(expected) && refused.output.contains("www-data"), "{}", refused.output);
    assert!(refused.output.contains("nginx.conf:4:"), "{}", refused.output);

    let prefix = Prefix::new();
    close(&prefix);
    let text = text.replace("@DIR@", prefix.path().to_str().expect("a path"));
    let text = text.replace("@PORT@", "8080").replace("@ORIGIN@", "127.0.0.1:1");
    let checked =
        command(prefix.path(), &prefix.write("nginx.conf", &text)).arg("-t").output().expect("it runs");
    let told = String::from_utf8_lossy(&checked.stderr);
    assert!(!checked.status.success() && told.contains(expected) && told.contains("nginx.conf:4:"), "{told}");
}

#[test]
fn an_answer_that_the_full_disk_has_no_room_for_comes_at_the_pace_of_its_reader() {
    skip_on_nginx!("it cuts the answer off");
    let prefix = Prefix::new();
    let folder = prefix.join("small");
    std::fs::create_dir(&folder).expect("own directory");
    // Declared first, so that it is dropped last: a directory with something mounted in it cannot be removed.
    let server;
    let Some(_mounted) = Mounted::small(&folder) else {
        eprintln!("SKIPPED: a small tmpfs cannot be mounted here");
        return;
    };
    let api = Bulk::start();
    let text = OF_A_USER.replace("user www-data;", "").replace("@PLACE@", "proxy_temp_path @DIR@/small;");
    server = Server::start_in(prefix, &text, &[("ORIGIN", &api.address)]);
    let (mut stream, pattern) = (connect(server.port()), Pattern::new());
    write!(stream, "GET /bulk HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
    head(&mut stream).expect("an answer");
    wait::until("a file takes what the client has not taken", || {
        let open =
            std::fs::read_dir(format!("/proc/{}/fd", server.serving_id())).into_iter().flatten().flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|link| link.starts_with(&folder))
    });
    assert_eq!(pattern.receive(&mut stream, 0, download()).expect("a body"), download());
    wait::until("the error log says so", || server.log().to_lowercase().contains("no space left"));
}

const FULL: &str = site! {
    http "client_body_temp_path @DIR@/small; client_body_buffer_size 16k;"
    server "location /plain { proxy_pass http://@ORIGIN@; }
        location /named { proxy_pass http://@ORIGIN@; error_page 500 502 = @named; }
        location /named/again { recursive_error_pages on; proxy_pass http://@ORIGIN@; error_page 500 502 = @again; }
        location /named/told { proxy_pass http://@ORIGIN@; error_page 500 @named; }
        location /page { proxy_pass http://@ORIGIN@; error_page 500 = /get; }
        location /page/told { proxy_pass http://@ORIGIN@; error_page 500 /get; }
        location /text { proxy_pass http://@ORIGIN@; error_page 500 = @text; }
        location @named { proxy_pass http://@ORIGIN@; }
        location @again { error_page 500 = @named; proxy_pass http://@ORIGIN@; }
        location @text { return 200 text; }
        location /get { proxy_pass http://@ORIGIN@; }"
};

#[test]
fn an_upload_that_the_full_disk_has_no_room_for_gets_500_and_nothing_of_it_goes_elsewhere() {
    skip_on_nginx!("it sends what the file took");
    let prefix = Prefix::new();
    let folder = prefix.join("small");
    std::fs::create_dir(&folder).expect("own directory");
    // Declared first, so that it is dropped last.
    let server;
    let Some(_mounted) = Mounted::small(&folder) else {
        eprintln!("SKIPPED: a small tmpfs cannot be mounted here");
        return;
    };
    let origin = Origin::start(|request| {
        let method = request.head.split(' ').next().unwrap_or_default();
        answer(200, &[], format!("{method} {}", request.body.len()).as_bytes())
    });
    server = Server::start_in(prefix, FULL, &[("ORIGIN", &origin.address())]);
    let body = "x".repeat(300_000);
    for (path, status, text) in [
        ("/plain", 500, None),
        ("/named", 500, None),
        ("/named/again", 500, None),
        ("/named/told", 500, None),
        ("/page", 500, None),
        ("/page/told", 500, Some("GET 0")),
        ("/text", 200, Some("text")),
    ] {
        for is_chunked in [false, true] {
            let mut client = server.client();
            let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\n");
            let length = body.len();
            // A refusal may come before the end of the body.
            _ = client.send(match is_chunked {
                true => format!("{head}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"),
                false => format!("{head}Content-Length: {length}\r\n\r\n{body}"),
            });
            let got = client.answer().unwrap_or_else(|error| panic!("{path}: {error}"));
            assert_eq!(got.status, status, "{path} {is_chunked}: {}", got.text());
            assert!(text.is_none_or(|text| got.text() == text), "{path} {is_chunked}: {}", got.text());
        }
    }
    assert!(origin.requests().iter().all(|request| request.head.starts_with("GET ")), "no upload came");
    assert!(!server.log().contains("was streamed"), "{}", server.log());
}

/// A tmpfs of 128 KB, unmounted with the value.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn small(folder: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=128k,mode=777", "tmpfs"]).arg(folder);
        mount.output().is_ok_and(|output| output.status.success()).then(|| Mounted(folder.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: the server that has files open there ends a moment later.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_cache_directory_that_the_user_may_not_enter_is_told_and_what_is_missing_above_one_is_made_open() {
    if is_nginx() || !can_become_www_data() {
        return;
    }
    let prefix = Prefix::new();
    close(&prefix);
    let zones = "proxy_cache_path @DIR@/closed/cache keys_zone=a:1m; proxy_cache_path @DIR@/new/above/cache keys_zone=b:1m;";
    let text = OF_A_USER
        .replace("@PLACE@", zones)
        .replace("location /", "proxy_cache b; location /a { proxy_cache a; } location /");
    let server = Server::start_in(prefix, &text, &[("ORIGIN", "127.0.0.1:1")]);
    wait::until("it is told", || server.log().contains("no responses will be stored"));
    let log = server.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("no responses will be stored")).collect();
    assert!(
        matches!(&told[..], [one] if one.contains("closed/cache") && one.contains("nginx.conf:4:")),
        "{log}"
    );
    assert!(!log.contains("new/above"), "{log}");
}
