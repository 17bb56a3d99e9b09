//! `cargo xtask conformance --configurations DIR`: configurations of others, made fit for this machine and tested.
//!
//! DIR has a folder for each row of `tests/conformance/configurations.tsv` with the files that the row names, by their
//! paths in their repository; nothing of them is kept here. Each is edited mechanically (`edit`), then the server tests
//! it, and nginx where it is installed: what nginx refuses says nothing. What loaded once must load for ever.

mod nodes;
mod stock;
mod template;
mod assemble;
mod edit;
mod probe;

use super::{blockers, folder, told_of};
use millstream_tests::server::binary;
use millstream_tests::target_directory;
use nodes::Node;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const LIST: &str = "configurations.tsv";

/// Differences printed for each configuration; a file holds all of them.
const SHOWN: usize = 5;

pub(super) struct ConfigurationOptions {
    pub(super) folder: PathBuf,
    /// Empty: all.
    pub(super) only: Vec<String>,
    /// Whether to record what loads now.
    pub(super) update: bool,
    pub(super) probe: bool,
}

struct ConfigurationRow {
    name: String,
    repository: String,
    path: String,
    commit: String,
    further: String,
    /// Directives of modules that nginx does not ship.
    foreign: String,
    /// `PLACE=VALUE`, separated by bars: fills places of its template whose names do not tell their value.
    values: String,
    loads: bool,
}

struct Tested {
    blockers: BTreeSet<String>,
    /// nginx's first error if it refuses the edited file.
    nginx: Option<String>,
}

impl Tested {
    fn loads(&self) -> bool {
        self.blockers.is_empty() && self.nginx.is_none()
    }
}

pub(super) fn run(options: &ConfigurationOptions) -> Result<(), String> {
    let mut rows = list()?;
    let home = target_directory().join("conformance/configurations");
    let shared = home.join("shared");
    prepare(&shared)?;
    let origin = probe::origin();
    let mut results = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let folder = options.folder.join(&row.name);
        if !(options.only.is_empty() || options.only.contains(&row.name)) || !folder.exists() {
            continue;
        }
        let own = home.join(&row.name);
        let tested = assembled(row, &folder, &own, &shared, origin.port()).and_then(|tree| {
            let tested = test(&own)?;
            if options.probe && tested.loads() {
                ask(row, &own, &tree)?;
            }
            Ok(tested)
        });
        let tested = tested.unwrap_or_else(|error| Tested { blockers: BTreeSet::new(), nginx: Some(error) });
        tell(row, &tested);
        results.push((at, tested));
    }
    let count = results.iter().filter(|(_, tested)| tested.loads()).count();
    println!("{count} of {} configurations load", results.len());
    blockers::print(&blockers::table(results.iter().map(|(_, tested)| &tested.blockers)));
    write_results(&rows, &results)?;
    let lost: Vec<_> = results.iter().filter(|(at, tested)| rows[*at].loads && !tested.loads()).collect();
    let lost: Vec<_> = lost.into_iter().map(|(at, _)| rows[*at].name.as_str()).collect();
    if !lost.is_empty() {
        return Err(format!("loaded before and do not now: {}", lost.join(", ")));
    }
    let won: Vec<usize> =
        results.iter().filter(|(at, tested)| tested.loads() && !rows[*at].loads).map(|(at, _)| *at).collect();
    for at in &won {
        rows[*at].loads = true;
    }
    match (won.is_empty(), options.update) {
        (true, _) => Ok(()),
        (false, true) => keep(&rows),
        (false, false) => {
            println!("{} load that did not before; --update keeps that", won.len());
            Ok(())
        }
    }
}

fn list() -> Result<Vec<ConfigurationRow>, String> {
    let text = super::text_of(LIST)?;
    let rows = text.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, repository, path, commit, further, foreign, values, loads] = fields[..] else {
            return Err(format!("{LIST}: not eight fields: {line}"));
        };
        let text = str::to_owned;
        Ok(ConfigurationRow {
            name: text(name),
            repository: text(repository),
            path: text(path),
            commit: text(commit),
            further: text(further),
            foreign: text(foreign),
            values: text(values),
            loads: loads == "loads",
        })
    });
    rows.collect()
}

fn keep(rows: &[ConfigurationRow]) -> Result<(), String> {
    let head =
        "name\trepository\tpath\tcommit\tfurther files\tdirectives left out\tvalues\tloads\n".to_owned();
    let text = rows.iter().fold(head, |all, row| {
        let ConfigurationRow { name, repository, path, commit, further, foreign, values, loads } = row;
        let loads = if *loads { "loads" } else { "-" };
        all + &format!("{name}\t{repository}\t{path}\t{commit}\t{further}\t{foreign}\t{values}\t{loads}\n")
    });
    let path = folder().join(LIST);
    fs::write(&path, text).map_err(|error| told_of(&path, &error))
}

fn prepare(shared: &Path) -> Result<(), String> {
    fs::create_dir_all(shared).map_err(|error| told_of(shared, &error))?;
    let (certificate, key) = edit::certificate(shared);
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut request = openssl(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj /CN=localhost \
         -addext subjectAltName=DNS:localhost",
    );
    request.arg("-keyout").arg(key).arg("-out").arg(certificate);
    let mut parameters = openssl("genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048");
    parameters.arg("-out").arg(shared.join("dhparam.pem"));
    for mut command in [request, parameters] {
        let status = command.status().map_err(|error| format!("openssl: {error}"))?;
        if !status.success() {
            return Err(format!("openssl: {status}"));
        }
    }
    Ok(())
}

fn assembled(
    row: &ConfigurationRow,
    folder: &Path,
    home: &Path,
    shared: &Path,
    origin: u16,
) -> Result<Vec<Node>, String> {
    if home.exists() {
        fs::remove_dir_all(home).map_err(|error| told_of(home, &error))?;
    }
    fs::create_dir_all(home.join("logs")).map_err(|error| told_of(home, &error))?;
    for name in ["certificate.pem", "key.pem", "dhparam.pem"] {
        fs::copy(shared.join(name), home.join(name)).map_err(|error| told_of(home, &error))?;
    }
    let further: Vec<&str> = row.further.split_whitespace().collect();
    let foreign: Vec<&str> = row.foreign.split_whitespace().collect();
    let values: Vec<_> = row.values.split('|').filter_map(|pair| pair.split_once('=')).collect();
    let mut tree = assemble::tree(folder, &row.path, &further, &values)?;
    edit::Edit::new(home, origin, &foreign).apply(&mut tree)?;
    let file = home.join("nginx.conf");
    fs::write(&file, nodes::written(&tree)).map_err(|error| told_of(&file, &error))?;
    Ok(tree)
}

fn nginx() -> PathBuf {
    std::env::var_os("NGINX_BINARY").map_or_else(|| "nginx".into(), PathBuf::from)
}

fn test(home: &Path) -> Result<Tested, String> {
    let tested = |program: &Path| {
        let mut command = Command::new(program);
        command.arg("-t").arg("-p").arg(home).arg("-c").arg(home.join("nginx.conf")).stdin(Stdio::null());
        command.output()
    };
    let ours = tested(binary()).map_err(|error| told_of(binary(), &error))?;
    let told = String::from_utf8_lossy(&ours.stderr).into_owned() + &String::from_utf8_lossy(&ours.stdout);
    fs::write(home.join("told.txt"), &told).map_err(|error| told_of(home, &error))?;
    let mut blockers = blockers::of(&told);
    if !ours.status.success() && blockers.is_empty() {
        blockers.insert(ours.status.to_string());
    }
    let refused = tested(&nginx()).ok().filter(|output| !output.status.success()).map(|output| {
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        told.lines().find(|line| line.contains("[emerg]")).unwrap_or(&told).to_owned()
    });
    Ok(Tested { blockers, nginx: refused })
}

fn ask(row: &ConfigurationRow, home: &Path, tree: &[Node]) -> Result<(), String> {
    let compared = probe::compare(binary(), &nginx(), home, &probe::questions(tree))?;
    let path = home.join("differences.txt");
    fs::write(&path, compared.different.join("\n")).map_err(|error| told_of(&path, &error))?;
    println!("asked     {}: {} of {} answers differ", row.name, compared.different.len(), compared.asked);
    for line in compared.different.iter().take(SHOWN) {
        println!("          {line}");
    }
    Ok(())
}

fn tell(row: &ConfigurationRow, tested: &Tested) {
    let ConfigurationRow { name, .. } = row;
    let missing: Vec<&str> = tested.blockers.iter().map(String::as_str).collect();
    match (&tested.nginx, missing.is_empty()) {
        (None, true) => println!("loads     {name}"),
        (None, false) => println!("stopped   {name}: {}", missing.join("; ")),
        (Some(told), _) => println!("unjudged  {name}: {told}; here: {}", missing.join("; ")),
    }
}

fn write_results(rows: &[ConfigurationRow], results: &[(usize, Tested)]) -> Result<(), String> {
    let results: Vec<_> = results
        .iter()
        .map(|(at, tested)| json!({ "name": rows[*at].name, "blockers": tested.blockers, "nginx": tested.nginx }))
        .collect();
    let path = target_directory().join("conformance/configurations.json");
    fs::write(&path, format!("{:#}\n", json!(results))).map_err(|error| told_of(&path, &error))
}
