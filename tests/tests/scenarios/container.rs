//! The image without an engine: its entry point, driven as one drives it, with the templates of nginx's image, a read-only root
//! and a user without rights.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use millstream_tests::pod::Pod;
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::binary;
use millstream_tests::{client, ports, wait, workspace};
use rustix::process::Signal;

const TEMPLATE: &str = "server {
    listen 127.0.0.1:${PORT};
    server_name ${NAME};
    location / { add_header X-Uri $uri; return 200 \"$host is ${NAME}\\n\"; }
}
";

/// What the image has in `/etc/millstream`, with ports of its own.
fn image(prefix: &Prefix, dashboard: u16) {
    fs::create_dir_all(prefix.join("etc/conf.d")).expect("own directory");
    for name in ["container.conf", "mime.types"] {
        let text = fs::read_to_string(workspace().join("packaging").join(name)).expect("the file is there");
        let inside = name.replace("container.conf", "nginx.conf");
        prefix.write(
            &format!("etc/{inside}"),
            text.replace("127.0.0.1:8081", &format!("127.0.0.1:{dashboard}")),
        );
    }
}

fn instruction(name: &str) -> Vec<String> {
    let file = fs::read_to_string(workspace().join("packaging/Dockerfile")).expect("the file is there");
    let line = file.lines().find_map(|line| line.strip_prefix(name));
    let list = line.unwrap_or_else(|| panic!("no {name}"));
    serde_json::from_str(list.trim()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn output_file(prefix: &Prefix) -> fs::File {
    let file = fs::File::create(prefix.join("output")).expect("own directory is writable");
    // As an engine gives its pipes to the container's user.
    file.set_permissions(fs::Permissions::from_mode(0o666)).expect("own file");
    file
}

#[test]
fn templates_become_sites_in_a_read_only_image_of_a_user_without_rights() {
    skip_on_nginx!();
    let (prefix, port, dashboard) = (Prefix::new(), ports::free(), ports::free());
    image(&prefix, dashboard);
    prefix.write("templates/default.conf.template", TEMPLATE);
    let pod = Pod::new(&prefix, binary()).with(&prefix.join("etc"), "/etc/millstream");
    let pod = pod.with(&prefix.join("templates"), "/etc/nginx/templates");
    let pod = pod.with_room("/run/millstream").with_room("/tmp").with_room("/etc/nginx/conf.d");
    let Some(mut command) = pod.command() else { return };
    let entry = [instruction("ENTRYPOINT"), instruction("CMD")].concat();
    assert_eq!(entry[..2], ["millstream", "container"]);
    // The image has one folder under two names; here what is written is beside it.
    command.args(&entry[1..]).args(["-c", "/etc/millstream/nginx.conf"]);
    let include =
        prefix.read("etc/nginx.conf").replace("include conf.d/*.conf;", "include /etc/nginx/conf.d/*.conf;");
    prefix.write("etc/nginx.conf", &include);
    command.env("PORT", port.to_string()).env("NAME", "shop.example");
    let output = output_file(&prefix);
    command.stdout(output.try_clone().expect("an open file")).stderr(output);
    let mut process = Running::start(&mut command).expect("it runs");
    wait::until("it serves", || {
        assert!(process.ended().is_none(), "{}", prefix.read("output"));
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let answer = client::get_with(port, "/a", &[("Host", "shop.example")]);
    assert_eq!(
        (answer.status, answer.field("x-uri"), &*answer.text()),
        (200, Some("/a"), "shop.example is shop.example\n")
    );
    assert_eq!(client::get(dashboard, "/readyz").status, 200);
    let made =
        fs::read_to_string(Pod::room(&prefix, "/etc/nginx/conf.d").join("default.conf")).expect("made");
    assert!(made.contains("server_name shop.example;") && made.contains("$host is shop.example"), "{made}");
    wait::until("the line is there", || prefix.read("output").contains("GET /a"));
    process.signal(Signal::QUIT);
    let ended = process.wait(Duration::from_secs(20));
    assert!(ended.is_some_and(|status| status.success()), "{}", prefix.read("output"));
}

fn entry(prefix: &Prefix, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(binary());
    command
        .arg("container")
        .args(arguments)
        .arg("-c")
        .arg(prefix.join("nginx.conf"))
        .arg("-p")
        .arg(prefix.path());
    command.env("NGINX_ENVSUBST_TEMPLATE_DIR", prefix.join("templates"));
    command.env("NGINX_ENVSUBST_OUTPUT_DIR", prefix.join("made"));
    command.envs(variables.iter().copied()).stdin(Stdio::null());
    command.output().expect("the binary runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn templates(template: &str) -> Prefix {
    let prefix = Prefix::new();
    prefix.write("templates/a.conf.template", template);
    let configuration =
        "pid nginx.pid; error_log stderr; events { } http { access_log off; include made/*.conf; }";
    prefix.write("nginx.conf", configuration);
    prefix
}

#[test]
fn a_command_written_for_the_image_of_nginx_does_what_it_did_there() {
    skip_on_nginx!();
    let port = ports::free().to_string();
    for words in
        [&["nginx", "-t"][..], &["nginx", "-g", "daemon off;", "-t"], &["-t"], &["nginx-debug", "-t"]]
    {
        let prefix = templates(TEMPLATE);
        let output = entry(&prefix, words, &[("PORT", &*port), ("NAME", "x.example")]);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        assert!(said(&output).contains("made/a.conf from ") && said(&output).contains("test is successful"));
        assert!(prefix.read("made/a.conf").contains("x.example"));
        // What is no start writes nothing.
        fs::remove_file(prefix.join("made/a.conf")).expect("own file");
        let output = entry(&prefix, &["nginx", "-v"], &[]);
        assert!(output.status.success() && !prefix.join("made/a.conf").exists());
    }
    let prefix = templates(TEMPLATE);
    let quiet = [("PORT", &*port), ("NAME", "x.example"), ("NGINX_ENTRYPOINT_QUIET_LOGS", "1")];
    assert!(!said(&entry(&prefix, &["-t", "-q"], &quiet)).contains("created"));
}

#[test]
fn what_is_wrong_with_a_template_is_told_with_its_place_and_nothing_starts() {
    skip_on_nginx!();
    let prefix = templates(TEMPLATE);
    let output = entry(&prefix, &["-t"], &[("NAME", "x.example")]);
    let template = prefix.join("templates/a.conf.template").display().to_string();
    assert!(
        !output.status.success() && said(&output).contains(&format!("{template}:2:22 PORT is not set")),
        "{}",
        said(&output)
    );
    assert!(said(&output).contains("made/a.conf:2:"), "the configuration's own error: {}", said(&output));

    let lost = Path::new("/proc/nowhere");
    let output = entry(&prefix, &[], &[("NGINX_ENVSUBST_OUTPUT_DIR", &lost.to_string_lossy())]);
    assert_eq!(output.status.code(), Some(1));
    let told = said(&output);
    assert!(
        told.contains("[emerg] /proc/nowhere/a.conf: ") && told.contains("NGINX_ENVSUBST_OUTPUT_DIR"),
        "{told}"
    );
    assert_eq!(told.lines().filter(|line| line.contains("[emerg]")).count(), 1, "{told}");
}
