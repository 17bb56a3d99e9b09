//! The eleven configurations of the founding articles load, and say in the model what their articles say.
//!
//! They stand in `tests/seed-configs`, with placeholders; the scenario tests run the same files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use millstream_conf::diagnostics::Severity;
use millstream_conf::model::{
    Configuration, Escape, KeepaliveSize, LogFile, LogPlace, PassTarget, PeerAddress, Settings, StatusZone,
    TlsVersion, Upstream, ValidStatus, WorkerProcesses,
};
use millstream_conf::{Loaded, Options, load};

const SEEDS: [&str; 11] = [
    "api-1-default",
    "api-2-tuned",
    "api-3-cache-disk",
    "api-4-cache-ram",
    "api-5-buffered-log",
    "blog-1-proxy",
    "blog-2-microcache",
    "blog-3-microcache-lock",
    "https",
    "keepalive",
    "two-apis",
];

fn seed(name: &str, directory: &Path) -> Loaded {
    let file =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/seed-configs").join(format!("{name}.conf"));
    let text = fs::read_to_string(file).expect("the seed configurations are part of the repository");
    let text = text
        .replace("@DIR@", &directory.display().to_string())
        .replace("@PORT@", "8080")
        .replace("@TLSPORT@", "8443")
        .replace("@ORIGIN@", "127.0.0.1:8000")
        .replace("@ORIGIN2@", "unix:/run/api.sock");
    fs::write(directory.join("server.pem"), "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
        .expect("written");
    fs::write(directory.join("server.key"), "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n")
        .expect("written");
    fs::write(directory.join("nginx.conf"), text).expect("written");
    load(&Options { main_file: "nginx.conf".into(), prefix: directory.to_path_buf(), ..Options::default() })
}

fn loaded(name: &str) -> Configuration {
    let directory = tempfile::tempdir().expect("a directory");
    let loaded = seed(name, directory.path());
    let findings: String =
        loaded.diagnostics.sorted().iter().map(|finding| finding.render(&loaded.sources)).collect();
    loaded.configuration.unwrap_or_else(|| panic!("{name}:\n{findings}"))
}

fn root_location(configuration: &Configuration) -> &millstream_conf::model::Settings {
    let server = &configuration.http.servers[0];
    let (path, id) = &server.locations.prefixes[0];
    assert_eq!(path, "/");
    &configuration.http.location(*id).settings
}

fn upstream(configuration: &Configuration) -> &Upstream {
    let proxy = root_location(configuration).pass().expect("every seed proxies");
    let PassTarget::Upstream(id) = proxy.target else { panic!("every seed names an upstream") };
    configuration.http.upstream(id)
}

#[test]
fn every_seed_configuration_loads_without_an_error() {
    for name in SEEDS {
        let configuration = loaded(name);
        let by_hand = configuration.http.listeners.iter().filter(|listener| !listener.owner_only);
        assert!(by_hand.flat_map(|listener| &listener.servers).all(|server| server.0 == 0), "{name}");
        assert_eq!(upstream(&configuration).keepalive.requests, 1000, "{name}");
    }
}

/// The articles' files are as their authors wrote them: those with a cache share responses that nobody marked
/// as shareable, or use a host that their key lacks, which is reported.
#[test]
fn a_seed_is_warned_about_for_what_it_drops_and_for_what_it_lets_users_share() {
    const USERS: &str = "sent to every client";
    const HOSTS: &str = "$http_host as Host";
    const COOKIES: &str = "sent to clients with other cookies";
    for name in SEEDS {
        let directory = tempfile::tempdir().expect("a directory");
        let loaded = seed(name, directory.path());
        let warnings: Vec<String> = (loaded.diagnostics.sorted().iter())
            .filter(|finding| finding.severity == Severity::Warning)
            .map(|finding| finding.message.clone())
            .collect();
        let expected: &[&str] = match name {
            "https" => &["TLSv1, TLSv1.1", "RC4, EXPORT"],
            "api-3-cache-disk" | "api-4-cache-ram" | "api-5-buffered-log" => &[HOSTS, COOKIES],
            "blog-2-microcache" | "blog-3-microcache-lock" => &[HOSTS, USERS],
            _ => &[],
        };
        assert_eq!(warnings.len(), expected.len(), "{name}: {warnings:#?}");
        for (warning, part) in warnings.iter().zip(expected) {
            assert!(part.split(", ").all(|part| warning.contains(part)), "{name}: {warning}");
        }
    }
}

fn first_log<'a>(configuration: &'a Configuration, settings: &Settings) -> &'a LogFile {
    let LogPlace::File(file) = &settings.logs.access[0].place else { panic!("its path has no variables") };
    &configuration.http.log_files[file.0 as usize]
}

#[test]
fn api_1_has_one_worker_and_a_log_of_its_own() {
    let configuration = loaded("api-1-default");
    assert_eq!(configuration.main.worker_processes, WorkerProcesses::Number(1));
    assert_eq!(configuration.main.worker_connections, 768);
    let settings = root_location(&configuration);
    assert_eq!(settings.keepalive.timeout, Duration::from_secs(65));
    assert!(settings.gzip.enabled);
    let log = first_log(&configuration, settings);
    assert!(log.target.file().is_some_and(|path| path.ends_with("access.log")) && log.buffer.is_none());
    assert_eq!(settings.logs.access[0].format.escape, Escape::Default);
}

#[test]
fn api_2_compresses_at_level_2_and_logs_nothing() {
    let configuration = loaded("api-2-tuned");
    assert_eq!(configuration.main.worker_processes, WorkerProcesses::Auto);
    let settings = root_location(&configuration);
    assert!(settings.logs.access.is_empty());
    assert_eq!((settings.gzip.level, settings.gzip.min_length, settings.gzip.vary), (2, 256, true));
    assert!(settings.gzip.proxied.any);
    assert_eq!(settings.gzip.types.len(), 8);
}

#[test]
fn api_3_caches_per_credential_for_a_day_and_errors_for_a_minute() {
    let configuration = loaded("api-3-cache-disk");
    let cache = root_location(&configuration).pass().and_then(|proxy| proxy.cache.clone()).expect("a cache");
    assert!(cache.key_names_credential);
    let valid: Vec<_> = cache.valid.iter().map(|valid| (valid.status, valid.time.as_secs())).collect();
    assert_eq!(
        valid,
        [(ValidStatus::Is(404), 60), (ValidStatus::Is(302), 60), (ValidStatus::Is(200), 86_400)]
    );
    let zone = configuration.http.cache_zone(cache.zone);
    assert_eq!((zone.keys_size, zone.inactive), (10 << 20, Duration::from_secs(86_400)));
    assert_eq!(root_location(&configuration).headers.add[0].name, "X-Cache-Status");
}

#[test]
fn api_5_buffers_the_log_of_its_location() {
    let configuration = loaded("api-5-buffered-log");
    let settings = root_location(&configuration);
    assert_eq!(settings.logs.access.len(), 1);
    let log = first_log(&configuration, settings);
    assert_eq!((log.buffer, log.flush), (Some(256 << 10), Some(Duration::from_secs(10))));
    assert_eq!(settings.logs.error.len(), 1);
}

#[test]
fn blog_3_collapses_and_serves_stale_while_it_updates() {
    let configuration = loaded("blog-3-microcache-lock");
    let proxy = root_location(&configuration).pass().cloned().expect("a proxy");
    let cache = proxy.cache.as_ref().expect("a cache inherited from the server");
    assert!(cache.lock && cache.use_stale.updating && !cache.use_stale.error);
    let zone = configuration.http.cache_zone(cache.zone);
    assert_eq!((zone.levels.as_slice(), zone.max_size), (&[1, 2][..], Some(100 << 20)));
    assert_eq!(upstream(&configuration).keepalive.size, KeepaliveSize::Fixed(20));
    assert_eq!(upstream(&configuration).zone, Some(("wordpress".to_owned(), 128 << 10)));
    assert_eq!(configuration.http.servers[0].status_zone, StatusZone::Named("wordpress".into()));
}

#[test]
fn https_offers_tls_1_2_with_forward_secrecy_on_its_second_address() {
    let configuration = loaded("https");
    let [plain, secure, _] = &configuration.http.listeners[..] else { panic!("two addresses and a socket") };
    assert!(!plain.ssl && secure.ssl);
    let tls = configuration.http.servers[0].settings.tls.as_ref().expect("TLS");
    assert_eq!(tls.protocols, [TlsVersion::Tls12]);
    assert_eq!((tls.session_cache, tls.session_timeout), (40_000, Duration::from_secs(600)));
    assert!(tls.prefer_server_ciphers);
    assert!(tls.ciphers.contains(&"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".to_owned()));
    assert_eq!(configuration.http.servers[0].names.len(), 2);
}

#[test]
fn keepalive_has_two_servers_and_long_lived_connections() {
    let configuration = loaded("keepalive");
    let group = upstream(&configuration);
    assert_eq!(group.keepalive.size, KeepaliveSize::Fixed(300));
    assert_eq!(group.servers[1].address, PeerAddress::Unix("/run/api.sock".into()));
    assert_eq!((group.servers[0].max_fails, group.servers[0].fail_timeout), (2, Duration::from_secs(30)));
    let settings = root_location(&configuration);
    assert_eq!(settings.keepalive.header, Some(Duration::from_secs(120)));
    assert_eq!(settings.keepalive.requests, 10_000);
    assert_eq!(settings.headers.add.len(), 2);
}

#[test]
fn two_apis_leaves_redirects_alone() {
    let configuration = loaded("two-apis");
    let proxy = root_location(&configuration).pass().cloned().expect("a proxy");
    assert!(proxy.http().expect("HTTP is spoken").redirects.is_empty());
    assert_eq!(upstream(&configuration).servers.len(), 2);
}
