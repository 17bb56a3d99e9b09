//! Logs to a log service: a datagram a line, over UDP and to a unix socket, and what becomes of them where nobody is there.

use std::fs::{self, Permissions};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;

const CONFIGURATION: &str = r#"pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
http {
    log_format short "$uri:$status";
    log_format open escape=none "$arg_a";
    access_log off;
    server {
        listen 127.0.0.1:@PORT@;
        location /a { access_log syslog:server=127.0.0.1:@UDP@,facility=user,severity=alert,tag=shop,nohostname short; return 204; }
        location /twice { access_log syslog:server=127.0.0.1:@UDP@ short; access_log @DIR@/access.log short; return 204; }
        location /e { error_log syslog:server=127.0.0.1:@UDP@,severity=debug,nohostname; root @DIR@; }
        location /u { access_log syslog:server=unix:@DIR@/service,nohostname,tag=u short; return 204; }
        location /open { access_log syslog:server=127.0.0.1:@UDP@,nohostname open; return 204; }
    }
}"#;

struct Service(UdpSocket);

impl Service {
    fn start() -> Service {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a bound");
        Service(socket)
    }

    fn port(&self) -> String {
        self.0.local_addr().expect("its address").port().to_string()
    }

    fn line(&self) -> String {
        let mut bytes = vec![0; 65536];
        let length = self.0.recv(&mut bytes).expect("a datagram");
        String::from_utf8(bytes[..length].to_vec()).expect("text")
    }
}

/// Without its time of fifteen bytes after the priority.
fn timeless(line: &str) -> String {
    let (priority, rest) = line.split_once('>').expect("a priority");
    format!("{priority}>{}", rest.get(15..).expect("a time"))
}

#[test]
fn lines_go_to_a_log_service_as_datagrams() {
    let service = Service::start();
    let server = Server::start(CONFIGURATION, &[("UDP", &service.port())]);
    assert_eq!(server.get("/a").status, 204);
    assert_eq!(timeless(&service.line()), "<9> shop: /a:204");
    assert_eq!(server.get("/twice").status, 204);
    let line = timeless(&service.line());
    assert!(line.starts_with("<190> ") && line.ends_with(" nginx: /twice:204"), "{line}");
    assert_eq!(line.split(' ').count(), 4, "the host stands in it: {line}");
    wait::until("the file has it too", || server.prefix().read("access.log") == "/twice:204\n");
    // The severity is the line's level, whatever is written.
    assert_eq!(server.get("/e").status, 404);
    let line = timeless(&service.line());
    assert!(
        line.starts_with("<187> nginx: ") && line.contains("[error]") && line.contains("open()"),
        "{line}"
    );
    assert!(!line.ends_with('\n'));
}

#[test]
fn a_value_with_a_line_break_makes_no_second_line_of_anothers_priority() {
    let service = Service::start();
    let server = Server::start(CONFIGURATION, &[("UDP", &service.port())]);
    // Of a request nothing can hold a line break, so what is not escaped is one line too.
    assert_eq!(server.get("/open?a=%0a%3c8%3eforged").status, 204);
    assert_eq!(timeless(&service.line()), "<190> nginx: %0a%3c8%3eforged");
}

#[test]
fn a_service_that_is_away_costs_no_request_and_is_found_when_it_is_back() {
    skip_on_nginx!();
    let nobody = ports::free().to_string();
    let server = Server::start(CONFIGURATION, &[("UDP", &nobody)]);
    for path in ["/a", "/twice", "/u", "/u"] {
        assert_eq!(server.get(path).status, 204);
    }
    server.says("failed (2: No such file or directory)");
    assert_eq!(server.log().matches("syslog:server=unix:").count(), 1, "{}", server.log());
    let socket = UnixDatagram::bind(server.prefix().join("service")).expect("a socket");
    // As /dev/log is: the server may be anybody.
    fs::set_permissions(server.prefix().join("service"), Permissions::from_mode(0o666)).expect("own socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a bound");
    assert_eq!(server.get("/u").status, 204);
    let mut bytes = [0; 256];
    let length = socket.recv(&mut bytes).expect("a datagram");
    assert_eq!(timeless(&String::from_utf8_lossy(&bytes[..length])), "<190> u: /u:204");
    // It takes no more, and nobody waits for it.
    for number in 0..2000 {
        assert_eq!(server.get("/u").status, 204, "{number}");
    }
}

#[test]
fn a_service_without_an_address_is_an_error_at_start() {
    skip_on_nginx!();
    let wrong = CONFIGURATION.replace("127.0.0.1:@UDP@", "nobody.invalid");
    let refused = Server::try_start(Prefix::new(), &wrong, &[]).err().expect("it does not start");
    assert!(
        refused.output.contains("host not found in syslog server \"nobody.invalid\""),
        "{}",
        refused.output
    );
}
