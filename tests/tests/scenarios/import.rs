//! `millstream import`: a configuration of nginx as Debian lays it out comes over whole, runs, and says what differs; one that cannot leaves nothing behind.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use millstream_tests::origin::Origin;
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::binary;
use millstream_tests::signed::SigningAuthority;
use millstream_tests::{client, wait};

/// What Debian's package installs, without comments.
const MAIN: &str = "user www-data;
worker_processes auto;
pid /run/nginx.pid;
include @NGINX@/modules-enabled/*.conf;

events {
	worker_connections 768;
}

http {
	sendfile on;
	tcp_nopush on;
	types_hash_max_size 2048;
	include @NGINX@/mime.types;
	default_type application/octet-stream;
	ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3; # Dropping SSLv3
	access_log /var/log/nginx/access.log;
	gzip on;
	include @NGINX@/conf.d/*.conf;
	include @NGINX@/sites-enabled/*;
}
";

const SITE: &str = "proxy_cache_path /var/cache/nginx/api keys_zone=api:1m;
upstream api { server @ORIGIN@; }
server {
	listen 127.0.0.1:@PORT@;
	root html;
	access_log /var/log/nginx/site/access.log;
	error_log /var/log/nginx/site.error.log;
	location / {
		include snippets/proxy.conf;
		proxy_pass http://api;
		proxy_cache api;
		proxy_cache_valid 200 1m; gzip_no_buffer on;
	}
	location /page { try_files $uri =404; }
	location /secret/ {
		auth_basic \"who\";
		auth_basic_user_file @NGINX@/htpasswd;
		alias html/page/;
	}
}
";

/// A folder with nginx's files, and the import's results beside it.
struct Machine {
    prefix: Prefix,
    port: u16,
}

impl Machine {
    /// Debian's layout: links in sites-enabled, a module's file outside, a cache, passwords.
    fn new(origin: &str) -> Machine {
        let machine = Machine { prefix: Prefix::new(), port: ports::free() };
        for folder in ["conf.d", "modules-enabled", "sites-available", "sites-enabled", "snippets"] {
            fs::create_dir_all(machine.at("nginx").join(folder)).expect("own directory");
        }
        fs::create_dir_all(machine.at("share/html/page")).expect("own directory");
        machine.write("share/html/page/a.html", "a page");
        machine.write("share/mod.conf", "load_module modules/ngx_http_echo_module.so;\n");
        machine.write("nginx/nginx.conf", MAIN);
        machine.write("nginx/mime.types", "types { text/html html; }\n");
        machine.write("nginx/htpasswd", "joe:{PLAIN}secret\n");
        machine.write("nginx/snippets/proxy.conf", "proxy_set_header X-Real-IP $remote_addr;\n");
        machine.write("nginx/sites-available/site", &SITE.replace("@ORIGIN@", origin));
        machine.link("nginx/sites-available/site", "nginx/sites-enabled/site");
        machine.link("share/mod.conf", "nginx/modules-enabled/50-mod.conf");
        // What `nginx -V` says of a build with this folder.
        let build = "#!/bin/sh\necho 'nginx version: nginx/1.22.1\nconfigure arguments: --prefix=@DIR@/share --conf-path=@DIR@/nginx/nginx.conf' >&2\n";
        let file = machine.write("nginx.sh", build);
        fs::create_dir(machine.at("bin")).expect("own directory");
        fs::rename(file, machine.at("bin/nginx")).expect("own directory");
        fs::set_permissions(machine.at("bin/nginx"), fs::Permissions::from_mode(0o755)).expect("own file");
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.prefix.join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let (folder, nginx, port) = (self.prefix.path().display(), self.at("nginx"), self.port);
        let text = text.replace("@NGINX@", &nginx.display().to_string()).replace("@PORT@", &port.to_string());
        self.prefix.write(name, text.replace("@DIR@", &folder.to_string()))
    }

    fn link(&self, to: &str, name: &str) {
        symlink(self.at(to), self.at(name)).expect("own directory");
    }

    fn import(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(binary());
        command.arg("import").args(arguments).current_dir(self.prefix.path()).env("PATH", path);
        let output = command.output().expect("the binary runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    fn tree(&self, name: &str) -> Vec<String> {
        let mut all = Vec::new();
        collect(&self.at(name), Path::new(""), &mut all);
        all.sort();
        all
    }

    fn read(&self, name: &str) -> String {
        self.prefix.read(name)
    }

    fn leavings(&self) -> Vec<String> {
        let known = ["bin", "logs", "nginx", "share"];
        let entries = fs::read_dir(self.prefix.path()).expect("own directory").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| !known.contains(&name.as_str()));
        names.sort();
        names
    }
}

fn collect(folder: &Path, below: &Path, all: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), below.join(entry.file_name()));
        let shown = name.display();
        match entry.file_type().expect("own directory") {
            kind if kind.is_dir() => collect(&path, &name, all),
            kind if kind.is_symlink() => {
                all.push(format!("{shown} -> {}", fs::read_link(&path).unwrap_or_default().display()));
            }
            _ => all.push(format!("{shown}: {}", fs::read_to_string(&path).unwrap_or_default())),
        }
    }
}

fn first(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[test]
fn a_configuration_as_debian_lays_it_out_comes_over_and_runs() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"of the API");
    let machine = Machine::new(&origin.address());
    let before = machine.tree("nginx");
    let (status, said) = machine.import(&["nginx", "--to", "new"]);
    assert_eq!(status, Some(0), "{said}");
    let answer = first(&said);
    assert!(answer.starts_with("nginx can run on Millstream: 6 files and 1 link copied to "), "{said}");
    assert!(answer.ends_with(" things differ."), "{said}");
    for told in [
        "nginx.conf:3:5: the pid file /run/nginx.pid is replaced by nginx.pid, because nginx writes to the original",
        "nginx.conf:11:2: \"sendfile\" has no effect here: ",
        "the cache /var/cache/nginx/api is replaced by cache/api, because nginx writes to the original; it is empty at first",
        "the log /var/log/nginx/site/access.log is replaced by logs/site-access.log",
        "responses without caching headers are stored and sent to every client",
        "\"gzip_no_buffer\"",
        "it is ignored: this changes only performance and resources",
        "sites-enabled/site -> ../sites-available/site",
    ] {
        assert!(said.contains(told), "{told} is not in\n{said}");
    }
    assert_eq!(machine.tree("nginx"), before, "nginx's own files are as they were");
    assert_eq!(machine.leavings(), ["new"]);
    let main = machine.read("new/nginx.conf");
    assert!(main.contains("\tinclude sites-enabled/*;\n") && main.contains("# Dropping SSLv3"), "{main}");
    assert_eq!(
        fs::read_link(machine.at("new/sites-enabled/site")).ok(),
        Some("../sites-available/site".into())
    );
    let module = fs::symlink_metadata(machine.at("new/modules-enabled/50-mod.conf")).expect("it was copied");
    assert!(module.is_file(), "what a link out of the folder leads to is a file here");
    // It serves: the API through a cache of its own, pages from where nginx has them, passwords.
    let _running = Running::start(
        Command::new(binary())
            .args(["-p", "new", "-c", "nginx.conf", "-g", "daemon off;"])
            .current_dir(machine.prefix.path()),
    )
    .expect("it starts");
    wait::until("it is there", || machine.at("new/nginx.pid").exists());
    assert_eq!(client::get(machine.port, "/").text(), "of the API");
    assert_eq!(client::get(machine.port, "/page/a.html").text(), "a page");
    assert_eq!(client::get(machine.port, "/secret/a.html").status, 401);
    let joe = [("Authorization", "Basic am9lOnNlY3JldA==")];
    assert_eq!(client::get_with(machine.port, "/secret/a.html", &joe).text(), "a page");
    wait::until("it logs", || machine.read("new/logs/site-access.log").contains("GET /page/a.html"));
    let (status, said) = machine.import(&["nginx", "--to", "new"]);
    assert_eq!(status, Some(0), "what is there already is the same:\n{said}");
}

#[test]
fn a_configuration_that_cannot_run_is_told_with_each_error_and_leaves_nothing_behind() {
    skip_on_nginx!();
    let machine = Machine::new("127.0.0.1:9");
    machine.write("nginx/conf.d/more.conf", "lua_shared_dict things 1m;\nclient_max_body_size 10x;\n");
    let (status, said) = machine.import(&["nginx", "--to", "new"]);
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(first(&said), "nginx cannot run on Millstream yet: 2 errors. Nothing was copied.");
    assert!(
        said.contains("conf.d/more.conf:1:1: unknown directive") && said.contains("more.conf:2:"),
        "{said}"
    );
    assert_eq!(machine.leavings(), [""; 0]);
    for (what, told) in [("nowhere", "nowhere"), ("share", "contains no nginx.conf")] {
        let (status, said) = machine.import(&[what, "--to", "new"]);
        assert!(
            status == Some(1) && first(&said).contains(told) && said.contains("was not copied"),
            "{said}"
        );
    }
}

#[test]
fn files_that_differ_stay_unless_force_is_asked_for_and_are_kept_then() {
    skip_on_nginx!();
    let machine = Machine::new("127.0.0.1:9");
    fs::create_dir_all(machine.at("new/conf.d")).expect("own directory");
    machine.write("new/nginx.conf", "# mine\nevents {}\n");
    machine.write("new/conf.d/mine.conf", "# also mine\n");
    machine.write("new/notes", "of mine");
    let before = machine.tree("new");
    let (status, said) = machine.import(&["nginx", "--to", "new"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(first(&said).contains("but 1 file in ") && said.contains("--force"), "{said}");
    assert_eq!(machine.tree("new"), before);
    for arguments in
        [&["nginx", "--to", "new", "--force", "--dry-run"][..], &["nginx", "--to", "other", "--dry-run"]]
    {
        let (status, said) = machine.import(arguments);
        assert!(
            status == Some(0) && first(&said).contains("6 files and 1 link would be copied to "),
            "{said}"
        );
        assert_eq!((machine.tree("new"), machine.leavings()), (before.clone(), vec!["new".to_owned()]));
    }
    let (status, said) = machine.import(&["nginx", "--to", "new", "--force"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains(
            "conf.d/mine.conf if its site no longer exists: the file was there before, and is still included"
        ),
        "{said}"
    );
    assert!(said.contains("the replaced files are in ") && said.contains("new.before-import"), "{said}");
    assert_eq!(machine.leavings(), ["new", "new.before-import"]);
    assert_eq!(machine.tree("new.before-import"), ["nginx.conf: # mine\nevents {}\n"]);
    assert_eq!(
        (machine.read("new/notes"), machine.read("new/conf.d/mine.conf")),
        ("of mine".into(), "# also mine\n".into())
    );
    assert!(machine.read("new/nginx.conf").contains("include sites-enabled/*;"));
}

#[test]
fn certificates_stay_where_they_are_and_relative_names_go_on_resolving() {
    skip_on_nginx!();
    let machine = Machine::new("127.0.0.1:9");
    let made = Prefix::with_certificate("site.test");
    fs::create_dir(machine.at("nginx/tls")).expect("own directory");
    for file in ["server.pem", "server.key"] {
        fs::copy(made.join(file), machine.at("nginx/tls").join(file)).expect("own directory");
    }
    machine.write(
        "nginx/conf.d/tls.conf",
        "server { listen 127.0.0.1:@PORT@ ssl; ssl_certificate tls/server.pem; ssl_certificate_key @NGINX@/tls/server.key; return 204; }\n",
    );
    fs::remove_file(machine.at("nginx/sites-enabled/site")).expect("own file");
    let (status, said) = machine.import(&["nginx", "--to", "new"]);
    assert_eq!(status, Some(0), "{said}");
    let nginx = machine.at("nginx");
    let (certificate, key) = (nginx.join("tls/server.pem"), nginx.join("tls/server.key"));
    let stay = said.split_once("Not copied, and read from their present place").expect(&said).1;
    for file in [&key, &certificate] {
        assert!(stay.contains(&file.display().to_string()), "{said}");
    }
    assert!(!said.contains("To do before the start"), "{said}");
    let text = machine.read("new/conf.d/tls.conf");
    assert!(text.contains(&format!("ssl_certificate {};", certificate.display())), "{text}");
    assert!(text.contains(&format!("ssl_certificate_key {};", key.display())), "{text}");
    assert!(!machine.at("new/tls").exists());
}

#[test]
fn whoever_holds_the_port_is_named() {
    skip_on_nginx!();
    let machine = Machine::new("127.0.0.1:9");
    let _held = TcpListener::bind(("127.0.0.1", machine.port)).expect("it is free");
    let (status, said) = machine.import(&["nginx", "--to", "new", "--dry-run"]);
    assert_eq!(status, Some(0), "{said}");
    let told = format!("127.0.0.1:{} is in use by ", machine.port);
    assert!(said.contains(&told) && said.contains("stop it first"), "{said}");
}

#[test]
fn a_loop_of_links_a_file_that_nobody_may_read_and_a_target_around_the_origin_are_refused() {
    skip_on_nginx!();
    let machine = Machine::new("127.0.0.1:9");
    machine.link("nginx/sites-enabled/loop", "nginx/sites-enabled/loop");
    let (status, said) = machine.import(&["nginx", "--to", "new"]);
    assert!(status == Some(1) && said.contains("sites-enabled/loop\" failed (40: "), "{said}");
    fs::remove_file(machine.at("nginx/sites-enabled/loop")).expect("own file");
    fs::create_dir(machine.at("nginx/sites-enabled/folder")).expect("own directory");
    let (status, said) = machine.import(&["nginx", "--to", "new"]);
    assert!(status == Some(1) && first(&said).contains("1 error"), "a folder is no file: {said}");
    fs::remove_dir(machine.at("nginx/sites-enabled/folder")).expect("own directory");
    for (to, told) in [
        ("nginx", "is inside"),
        (".", "is inside"),
        ("share", "contains no nginx.conf"),
        ("none/new", "does not exist"),
    ] {
        let (status, said) = machine.import(&["nginx", "--to", to]);
        assert!(status == Some(1) && said.contains(told), "{to}: {said}");
    }
    assert_eq!(machine.leavings(), [""; 0]);
}

#[test]
fn a_key_that_stays_where_it_is_is_not_copied_and_the_list_is_as_long_as_its_number_says() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"of the API");
    let machine = Machine::new(&origin.address());
    SigningAuthority::new(&machine.at("nginx/snippets"));
    machine.write("nginx/snippets/other.conf", "gzip on;\n");
    machine.write(
        "nginx/conf.d/tls.conf",
        "server { listen 127.0.0.1:8443 ssl; ssl_certificate snippets/ca.pem; ssl_certificate_key @NGINX@/snippets/ca.key; }\n",
    );
    let (status, said) = machine.import(&["nginx", "--to", "new"]);
    assert_eq!(status, Some(0), "{said}");
    let (_, list) = said.split_once("\nCopied").expect("a list");
    for file in ["snippets/ca.pem", "snippets/ca.key"] {
        assert!(!list.contains(file) && said.contains(file), "{file}: {said}");
        assert!(!machine.at("new").join(file).exists(), "{file}");
    }
    assert!(list.contains("snippets/other.conf"), "{said}");
}
