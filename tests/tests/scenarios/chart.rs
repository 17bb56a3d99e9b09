//! The Helm chart: what it renders is what Kubernetes knows, and the pod that comes of it is run here as far as one can without a cluster:
//! its files, its variables, its read-only root, its user, its probes and its end.
//!
//! `cargo xtask check chart` makes the programs and schemas that this wants; without them it is skipped out loud.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use millstream_tests::pod::{Pod, USER};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::{binary, is_nginx};
use millstream_tests::{client, gunicorn, ports, target_directory, wait, workspace};
use rustix::process::Signal;
use serde_json::Value;

const ALWAYS: [&str; 4] = ["ConfigMap", "Deployment", "Service", "Service"];

struct Helm {
    tools: PathBuf,
    home: Prefix,
}

impl Helm {
    fn new() -> Option<Helm> {
        let tools = target_directory().join("tools");
        let is_there =
            ["bin/helm", "bin/kubeconform", "schemas"].iter().all(|name| tools.join(name).exists());
        if is_nginx() || !is_there {
            eprintln!("skipped: helm, kubeconform and the schemas are not there: cargo xtask check chart");
            return None;
        }
        Some(Helm { tools, home: Prefix::new() })
    }

    fn run(&self, arguments: &[&str], values: &[&str]) -> Output {
        let mut helm = Command::new(self.tools.join("bin/helm"));
        helm.args(arguments).arg(chart()).args(values).env("HOME", self.home.path()).env_remove("KUBECONFIG");
        helm.stdin(Stdio::null()).output().expect("helm runs")
    }

    fn rendered(&self, values: &[&str]) -> String {
        success(&self.run(&["template", "shop", "--namespace", "web"], values))
    }

    fn refusal(&self, values: &[&str]) -> String {
        let output = self.run(&["template", "shop"], values);
        assert!(!output.status.success(), "{values:?} are taken");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

fn chart() -> PathBuf {
    workspace().join("packaging/helm/millstream")
}

fn success(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {said}{}", output.status, String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn all_values() -> Vec<Vec<String>> {
    let entries = fs::read_dir(chart().join("ci")).expect("the folder is there");
    let files = entries.map(|entry| entry.expect("an entry").path().display().to_string());
    let own = std::iter::once(Vec::new());
    own.chain(files.map(|file| vec!["--values".to_owned(), file])).collect()
}

fn documents(yaml: &str) -> Vec<Value> {
    let script = "import json, sys, yaml\njson.dump([one for one in yaml.safe_load_all(sys.stdin) if one], sys.stdout)";
    let mut python = Command::new(gunicorn::programs().join("python"));
    let mut python =
        python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python");
    python.stdin.take().expect("a pipe").write_all(yaml.as_bytes()).expect("it reads");
    let output = python.wait_with_output().expect("it ends");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn of_kind<'d>(documents: &'d [Value], kind: &str) -> &'d Value {
    documents.iter().find(|one| one["kind"] == kind).unwrap_or_else(|| panic!("there is no {kind}"))
}

fn words(values: &[String]) -> Vec<&str> {
    values.iter().map(String::as_str).collect()
}

#[test]
fn what_the_chart_renders_is_what_kubernetes_knows() {
    let Some(helm) = Helm::new() else { return };
    let folder = Prefix::new();
    let schemas = format!("{}/schemas/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json", helm.tools.display());
    let judged = |yaml: &str| {
        let file = folder.write("rendered.yaml", yaml);
        let mut kubeconform = Command::new(helm.tools.join("bin/kubeconform"));
        kubeconform.args(["-strict", "-summary", "-output", "json", "-schema-location", &schemas]).arg(file);
        let output = kubeconform.stdin(Stdio::null()).output().expect("it runs");
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (output.status.success(), told)
    };
    let mut kinds = Vec::new();
    for values in all_values() {
        let values = words(&values);
        success(&helm.run(&["lint", "--strict"], &values));
        let rendered = helm.rendered(&values);
        let (is_valid, told) = judged(&rendered);
        let documents = documents(&rendered);
        assert!(is_valid && told["summary"]["valid"] == documents.len(), "{values:?}: {told:#}");
        let found: Vec<String> =
            documents.iter().map(|one| one["kind"].as_str().unwrap_or("").to_owned()).collect();
        assert!(ALWAYS.iter().all(|kind| found.iter().any(|one| one == kind)), "{values:?}: {found:?}");
        kinds.extend(found);
        // Each is of this release, and what selects pods selects these.
        let pods = &of_kind(&documents, "Deployment")["spec"];
        for service in documents.iter().filter(|one| one["kind"] == "Service") {
            assert_eq!(service["spec"]["selector"], pods["selector"]["matchLabels"]);
        }
        for (name, value) in pods["selector"]["matchLabels"].as_object().expect("labels") {
            assert_eq!(&pods["template"]["metadata"]["labels"][name], value);
        }
    }
    for kind in [
        "ServiceAccount",
        "PodDisruptionBudget",
        "HorizontalPodAutoscaler",
        "PersistentVolumeClaim",
        "NetworkPolicy",
        "ServiceMonitor",
    ] {
        assert!(kinds.iter().any(|found| found == kind), "no values render a {kind}");
    }
    let wrong = helm.rendered(&[]).replace("periodSeconds:", "periodSecond:");
    assert!(!judged(&wrong).0, "the schemas take what is not theirs");
}

#[test]
fn values_that_make_no_sense_are_refused_with_what_to_do() {
    let Some(helm) = Helm::new() else { return };
    for (value, told) in [
        ("dashbord.port=8081", "dashbord"),
        ("port=80", "minimum"),
        ("workers=many", "workers"),
        ("dashboard.port=8080", "dashboard.port: it is the port of the sites"),
        ("api.servers={a:80; return 200}", "servers"),
        ("cache.persistence.enabled=true,replicaCount=2", "set replicaCount to 1"),
        ("serviceMonitor.enabled=true", "dashboard.allow"),
        ("dashboard.allow=null", "dashboard"),
        ("cluster.url=redis://valkey", "cluster.secretName: name the Secret"),
        ("cluster.url=valkey:6379", "cluster"),
        ("cluster.url=redis://user:password@valkey", "cluster"),
        ("sites.shop=server {}", "shop"),
    ] {
        let refusal = helm.refusal(&["--set", value]);
        assert!(refusal.contains(told), "{value}: {refusal}");
    }
}

#[test]
fn one_replica_is_the_default_two_with_an_engine_and_more_without_one_are_installed_with_a_warning() {
    let Some(helm) = Helm::new() else { return };
    let replicas = |values: &[&str]| {
        of_kind(&documents(&helm.rendered(values)), "Deployment")["spec"]["replicas"].clone()
    };
    assert_eq!(replicas(&[]), 1, "a purge reaches one cache, and an invalidation one");
    assert_eq!(replicas(&["--set", "replicaCount=3"]), 3);
    assert_eq!(replicas(&["--set", "replicaCount=0"]), 0);
    assert_eq!(replicas(&["--set", "cluster.url=redis://valkey,cluster.secretName=one"]), 2);
    for (value, is_warned) in [
        ("port=8080", false),
        ("replicaCount=2", true),
        ("autoscaling.enabled=true", true),
        ("cluster.url=redis://valkey,cluster.secretName=one", false),
    ] {
        let notes = success(&helm.run(&["install", "--dry-run=client", "shop"], &["--set", value]));
        assert_eq!(
            notes.contains("WARNING: each replica has a cache of its own"),
            is_warned,
            "{value}: {notes}"
        );
    }
}

#[test]
fn versions_of_chart_and_program_are_one_and_every_value_has_a_schema() {
    let text = |name: &str| fs::read_to_string(chart().join(name)).expect("the file is there");
    let version = fs::read_to_string(workspace().join("Cargo.toml")).expect("the file is there");
    let version =
        version.lines().find_map(|line| line.strip_prefix("version = ")).expect("a version").to_owned();
    assert!(
        text("Chart.yaml").contains(&format!("appVersion: {version}")),
        "Chart.yaml is of another version than {version}"
    );
    let schema: Value = serde_json::from_str(&text("values.schema.json")).expect("JSON");
    for value in documents(&text("values.yaml"))[0].as_object().expect("values").keys() {
        assert!(schema["properties"][value].is_object(), "{value} has no schema");
    }
}

/// One container of a Deployment, run on this machine: its files and ports are its own, everything else as
/// the cluster would have it.
struct Container {
    prefix: Prefix,
    spec: Value,
    port: u16,
    dashboard: u16,
}

impl Container {
    fn new(documents: &[Value]) -> Container {
        let pod = &of_kind(documents, "Deployment")["spec"]["template"]["spec"];
        let texts = &of_kind(documents, "ConfigMap")["data"];
        let container = Container {
            prefix: Prefix::new(),
            spec: pod.clone(),
            port: ports::free(),
            dashboard: ports::free(),
        };
        let volume =
            pod["volumes"].as_array().expect("a list").iter().find(|one| one["name"] == "configuration");
        for item in volume.expect("the volume")["configMap"]["items"].as_array().expect("a list") {
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            let file = container.prefix.join("etc").join(text(&item["path"]));
            fs::create_dir_all(file.parent().expect("a folder")).expect("own directory");
            let own = text(&texts[text(&item["key"])])
                .replace("listen 8080;", &format!("listen 127.0.0.1:{};", container.port))
                .replace("0.0.0.0:8081", &format!("127.0.0.1:{}", container.dashboard));
            fs::write(file, own).expect("own directory");
        }
        for key in ["secret", "password"] {
            let file = container.prefix.join("secret").join(key);
            fs::create_dir_all(file.parent().expect("a folder")).expect("own directory");
            fs::write(file, "what a Secret would have").expect("own directory");
        }
        container
    }

    fn first(&self) -> &Value {
        &self.spec["containers"][0]
    }

    fn command(&self, more: &[&str]) -> Option<Command> {
        let security = &self.first()["securityContext"];
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert_eq!(
            (&self.spec["securityContext"]["runAsUser"], &self.spec["securityContext"]["runAsNonRoot"]),
            (&USER.into(), &true.into())
        );
        let mut pod = Pod::new(&self.prefix, binary());
        for mount in self.first()["volumeMounts"].as_array().expect("a list") {
            let inside = mount["mountPath"].as_str().expect("a path");
            pod = match mount["name"].as_str() {
                Some("configuration") => pod.with(&self.prefix.join("etc"), inside),
                Some("cluster") => pod.with(&self.prefix.join("secret"), inside),
                _ => pod.with_room(inside),
            };
        }
        let mut command = pod.command()?;
        command.arg("container");
        command
            .args(self.first()["args"].as_array().expect("a list").iter().filter_map(Value::as_str))
            .args(more);
        for variable in self.first()["env"].as_array().expect("a list") {
            // What a Secret would have.
            let value = variable["value"].as_str().unwrap_or("a-token-of-a-secret-of-32-letters");
            command.env(variable["name"].as_str().expect("a name"), value);
        }
        Some(command)
    }

    /// Redirects output into a file that its user may open, as an engine's pipes are.
    fn telling<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let written = fs::File::create(self.prefix.join("output")).expect("own directory");
        written.set_permissions(fs::Permissions::from_mode(0o666)).expect("own file");
        command.stdout(written.try_clone().expect("an open file")).stderr(written)
    }

    fn probe(&self, name: &str) -> u16 {
        let asked = &self.first()[name]["httpGet"];
        assert_eq!(asked["port"], "dashboard");
        let ports = self.first()["ports"].as_array().expect("a list");
        assert!(ports.iter().any(|port| port["name"] == "dashboard" && port["containerPort"] == 8081));
        client::get(self.dashboard, asked["path"].as_str().expect("a path")).status
    }
}

#[test]
fn the_configuration_of_the_chart_passes_the_check_serves_and_answers_the_probes() {
    let Some(helm) = Helm::new() else { return };
    for values in all_values() {
        let values = words(&values);
        let documents = documents(&helm.rendered(&values));
        let container = Container::new(&documents);
        let Some(mut check) = container.command(&["-t"]) else { return };
        let status = container.telling(&mut check).status().expect("it runs");
        let said = container.prefix.read("output");
        assert!(status.success() && !said.contains("[warn]"), "{values:?}: {said}");

        let mut command = container.command(&[]).expect("there are namespaces");
        container.telling(&mut command);
        let mut process = Running::start(&mut command).expect("it runs");
        wait::until("it is ready", || {
            assert!(process.ended().is_none(), "{values:?}: {}", container.prefix.read("output"));
            let address = ("127.0.0.1", container.dashboard);
            std::net::TcpStream::connect(address).is_ok() && container.probe("readinessProbe") == 200
        });
        assert_eq!(container.probe("livenessProbe"), 200);
        ask(&container, &values);
        // What the runtime sends when a pod is stopped, as the Dockerfile says.
        process.signal(Signal::QUIT);
        let ended = process.wait(Duration::from_secs(20));
        assert!(
            ended.is_some_and(|status| status.success()),
            "{values:?}: {}",
            container.prefix.read("output")
        );
        let grace = container.spec["terminationGracePeriodSeconds"].as_u64().expect("seconds");
        let pause = container.first()["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap_or(0);
        let longest = container.prefix.read("etc/nginx.conf");
        assert!((5..=30).any(|seconds| longest.contains(&format!("worker_shutdown_timeout {seconds}s;"))
            && pause + seconds < grace));
    }
}

fn ask(container: &Container, values: &[&str]) {
    let name = values
        .last()
        .map_or("", |file| Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or(""));
    let get =
        |host: &str, key: &str| client::get_with(container.port, "/", &[("Host", host), ("X-Key", key)]);
    match name {
        "" => assert!(get("a.example", "").text().contains("there is no site")),
        "api-values.yaml" => {
            assert_eq!(get("shop.example", "").status, 502, "there is no API");
            let token = [("Authorization", "Bearer a-token-of-a-secret-of-32-letters")];
            let metrics = client::get_with(container.dashboard, "/metrics", &token);
            assert!(metrics.text().contains("millstream_requests_total"));
            assert!([401, 403].contains(
                &client::get_with(container.dashboard, "/metrics", &[("Authorization", "Bearer x")]).status
            ));
        }
        "cluster-values.yaml" => {
            assert_eq!(get("shop.example", "").status, 502, "there is no API");
            let clusters = client::get(container.dashboard, "/api/9/cluster").json();
            assert_eq!((&clusters[0]["zone"], &clusters[0]["state"]), (&"api".into(), &"joining".into()));
        }
        "sites-values.yaml" => {
            assert_eq!(get("admin.example", "open").text(), "hello open\n");
            assert_eq!(get("admin.example", "shut").status, 403);
            assert_eq!(get("shop.example", "").status, 502, "there is no API");
        }
        other => panic!("{other} is asked nothing"),
    }
}
