//! What `--api` may name, and what an answer says.

use super::*;

#[test]
fn an_api_is_named_by_url_or_socket() {
    let to = |host: &str, path: &str| Ok(Api::Remote(host.to_owned(), path.to_owned()));
    assert_eq!(remote("http://127.0.0.1:8081/api/"), to("127.0.0.1:8081", "/api"));
    assert_eq!(remote("cache.internal"), to("cache.internal:80", ""));
    assert_eq!(remote("http://[::1]/x"), to("[::1]:80", "/x"));
    assert_eq!(remote("unix:/run/m.sock"), Ok(Api::Socket("/run/m.sock".into())));
    for bad in ["https://a/api", "ftp://a", "unix:relative", "http://", "http://a b", "http://a\r\nX: y"] {
        assert!(remote(bad).is_err(), "{bad}");
    }
}

#[test]
fn of_several_that_run_the_port_of_the_url_says_which_and_else_all_are_named() {
    let paths =
        |names: &[&str]| names.iter().map(|name| PathBuf::from(format!("/run/{name}"))).collect::<Vec<_>>();
    let both = paths(&["serve-8080.sock", "serve-9000.sock"]);
    assert_eq!(choose(&both, Some(9000)), Ok(Api::Socket("/run/serve-9000.sock".into())));
    assert_eq!(choose(&both[..1], None), Ok(Api::Socket("/run/serve-8080.sock".into())));
    for port in [None, Some(80), Some(900)] {
        let told = choose(&both, port).expect_err("it could be either");
        assert!(told.contains("one of unix:/run/serve-8080.sock, unix:/run/serve-9000.sock"), "{told}");
    }
    assert!(
        choose(&both[..1], Some(9000))
            .is_err_and(|told| told.contains("no millstream serve process uses port 9000"))
    );
    assert!(
        choose(&[], None)
            .is_err_and(|told| told.contains("no control socket of millstream serve was found in"))
    );
}

#[test]
fn of_many_that_run_three_are_named_and_the_others_counted() {
    let many: Vec<PathBuf> = (1..=9).map(|port| PathBuf::from(format!("/run/serve-{port}.sock"))).collect();
    for port in [None, Some(80)] {
        let told = choose(&many, port).expect_err("it could be any");
        let named =
            "one of unix:/run/serve-1.sock, unix:/run/serve-2.sock, unix:/run/serve-3.sock and 6 more";
        assert!(told.ends_with(named), "{told}");
    }
    // Those of the port are meant, however many others run.
    let mut two: Vec<PathBuf> = ["serve-80-1.sock", "serve-80.sock"].map(PathBuf::from).into();
    two.splice(0..0, many);
    let told = choose(&two, Some(80)).expect_err("it could be either");
    assert!(told.ends_with("one of unix:serve-80-1.sock, unix:serve-80.sock"), "{told}");
}

#[test]
fn the_port_of_a_url_is_what_it_says() {
    assert_eq!(port_of("http://127.0.0.1:8080/a:9"), Some(8080));
    assert_eq!(port_of("localhost:81"), Some(81));
    assert_eq!(port_of("http://localhost/"), None);
}

#[test]
fn an_answer_is_its_body_or_its_error() {
    let api = Api::Socket("/x".into());
    assert_eq!(understood(&api, b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}"), Ok(b"{}".to_vec()));
    let refused = b"HTTP/1.1 404 Not Found\r\n\r\n{\"error\":{\"status\":404,\"text\":\"no such zone\",\"code\":\"X\"}}";
    assert_eq!(understood(&api, refused), Err("no such zone".to_owned()));
    assert!(understood(&api, b"HTTP/1.1 502 Bad\r\n\r\n<html>").is_err_and(|text| text.contains("502")));
    for odd in [&b""[..], b"SSH-2.0", b"\r\n\r\n"] {
        assert!(understood(&api, odd).is_err());
    }
}
