//! Each party's files: what they say, and what they say they cannot.

use super::*;

const SETTING: StepSetting<'static> = StepSetting {
    port: 8081,
    origin: "127.0.0.1:8000",
    secure: None,
    fallback: Some("1m"),
    puts_aside: false,
};

fn file(party: Party, step: Step) -> String {
    launch(party, step, &SETTING, Path::new("/run/x")).expect("it can").text
}

#[test]
fn the_program_itself_and_nginx_can_do_every_step_with_a_proxy() {
    for step in Step::ALL {
        for party in [Party::Millstream, Party::Nginx] {
            let found = launch(party, step, &SETTING, Path::new("/run/x"));
            assert_eq!(found.is_ok(), step != Step::Alone, "{party:?} {}", step.name());
        }
    }
}

#[test]
fn what_a_peer_cannot_do_it_says() {
    let cannot = |party: Party| -> Vec<&str> {
        let refused = |step: Step| party.can(step, false).is_err();
        Step::ALL.into_iter().skip(1).filter(|step| refused(*step)).map(Step::name).collect()
    };
    assert_eq!(cannot(Party::Haproxy), ["lock", "log"]);
    assert_eq!(cannot(Party::Varnish), ["log", "tls", "http2"]);
}

#[test]
fn peers_keep_what_says_nothing_for_as_long_as_nginx_would() {
    assert!(file(Party::Haproxy, Step::Microcache).contains("max-age=1 "));
    assert!(file(Party::Haproxy, Step::Headers).contains("max-age=60 "));
    assert!(file(Party::Varnish, Step::Microcache).contains("ttl = 1s"));
    assert!(file(Party::Varnish, Step::Headers).contains("ttl = 60s"));
    assert!(file(Party::Nginx, Step::Headers).contains("proxy_cache_valid 200 1m;"));
}

#[test]
fn a_lifetime_of_the_apis_own_is_put_aside_by_everybody_in_the_microcache_alone() {
    let with = |party: Party, step: Step| {
        let setting = StepSetting { puts_aside: true, ..SETTING };
        launch(party, step, &setting, Path::new("/run/x")).expect("it can").text
    };
    for (party, words) in [
        (Party::Millstream, "proxy_ignore_headers Cache-Control"),
        (Party::Nginx, "proxy_ignore_headers Cache-Control"),
        (Party::Haproxy, "max-age=1 unless { var(txn.session) -m bool }"),
        (Party::Varnish, "if (true) {\n        set beresp.ttl = 1s;"),
    ] {
        assert!(with(party, Step::Microcache).contains(words), "{party:?}");
        assert!(!with(party, Step::Headers).contains(words), "{party:?}");
        assert!(!file(party, Step::Microcache).contains(words), "{party:?}");
    }
}

#[test]
fn varnish_gets_host_and_port_apart() {
    let setting = StepSetting { origin: "[::1]:8000", ..SETTING };
    let text = launch(Party::Varnish, Step::Proxied, &setting, Path::new("/")).expect("it can").text;
    assert!(text.contains(".host = \"::1\";") && text.contains(".port = \"8000\";"));
    assert!(text.contains("Connection = \"close\""));
}

#[test]
fn an_api_that_speaks_tls_is_verified_by_its_name_and_asked_under_it() {
    let secure =
        SecureOrigin { name: "a.example", host: "a.example:8443", authorities: Path::new("/ca.pem") };
    let setting = StepSetting { origin: "127.0.0.1:8443", secure: Some(secure), ..SETTING };
    let text =
        |party: Party| launch(party, Step::Memory, &setting, Path::new("/run/x")).map(|launch| launch.text);
    for party in [Party::Millstream, Party::Nginx] {
        let text = text(party).expect("it can");
        for line in [
            "server 127.0.0.1:8443;",
            "proxy_pass https://api;",
            "proxy_ssl_name a.example;",
            "proxy_ssl_verify on;",
            "proxy_ssl_trusted_certificate /ca.pem;",
            "proxy_set_header Host a.example:8443;",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
    let haproxy = text(Party::Haproxy).expect("it can");
    assert!(
        haproxy.contains("ssl verify required ca-file /ca.pem sni str(a.example) verifyhost a.example"),
        "{haproxy}"
    );
    assert_eq!(text(Party::Varnish), Err("does not support TLS to the API"));
    assert!(!file(Party::Nginx, Step::Memory).contains("ssl_verify"));
}

#[test]
fn haproxy_offers_http_2_where_the_step_is_about_it() {
    assert!(file(Party::Haproxy, Step::Http2).contains("ssl crt certificate.pem alpn h2,http/1.1\n"));
    assert!(file(Party::Haproxy, Step::Tls).contains("ssl crt certificate.pem\n"));
}

#[test]
fn parties_are_read_and_a_wrong_one_is_told_who_there_is() {
    assert_eq!(parse("nginx, varnish,nginx"), Ok(vec![Party::Nginx, Party::Varnish]));
    assert!(parse("apache").is_err_and(|error| error.contains("haproxy")));
    assert!(parse("millstream").is_err());
}

#[test]
fn every_word_of_a_condition_is_a_fact() {
    for row in &PARTIES {
        let lines = row.template.lines().filter_map(|line| line.split_once('|'));
        let conditions = row.cannot.iter().chain(row.notes).copied();
        for (condition, _) in lines.chain(conditions) {
            for word in condition.split_whitespace() {
                let word = word.trim_start_matches('!');
                assert!(serde_json::from_value::<Fact>(word.into()).is_ok(), "{}: {word}", row.name);
            }
        }
        for party in Party::ALL {
            assert_eq!(party.name(), serde_json::to_value(party).expect("a word"));
        }
    }
}

#[test]
fn no_name_of_a_value_is_left_in_a_text_and_every_file_ends_a_line() {
    for (party, step) in
        Party::ALL.into_iter().flat_map(|party| Step::ALL.into_iter().skip(1).map(move |step| (party, step)))
    {
        let Ok(found) = launch(party, step, &SETTING, Path::new("/run/x")) else { continue };
        let all = found.text.clone() + &found.arguments.join(" ");
        assert!(
            !all.contains('<') && found.text.ends_with("}\n") || party == Party::Haproxy,
            "{party:?}: {all}"
        );
    }
}
