//! The kinds of server that are compared, what they are called, and how a missing one is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Product {
    Millstream,
    Nginx,
    Haproxy,
    Varnish,
    Floor,
    Origin,
}

impl Product {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Product::Millstream => "Millstream",
            Product::Nginx => "nginx",
            Product::Haproxy => "HAProxy",
            Product::Varnish => "Varnish",
            Product::Floor => "bare epoll",
            Product::Origin => "the API",
        }
    }

    pub(crate) fn is_peer(self) -> bool {
        matches!(self, Product::Nginx | Product::Haproxy | Product::Varnish)
    }

    /// Debian's package and its program.
    fn package(self) -> Option<(&'static str, &'static str)> {
        match self {
            Product::Nginx => Some(("nginx", "nginx")),
            Product::Haproxy => Some(("haproxy", "haproxy")),
            Product::Varnish => Some(("varnish", "varnishd")),
            _ => None,
        }
    }

    pub(crate) fn version(self) -> Option<String> {
        let (_, program) = self.package()?;
        self.version_of(&find(program)?)
    }

    pub(crate) fn version_of(self, program: &Path) -> Option<String> {
        let flag = if self == Product::Nginx || self == Product::Varnish { "-V" } else { "-v" };
        let output = Command::new(program).arg(flag).output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).lines().next().map(|line| line.trim_end().to_owned())
    }
}

/// One line per missing program with the command that installs it.
pub(crate) fn missing(products: &[Product]) -> Vec<String> {
    let mut packages: Vec<(&str, &str)> = products.iter().filter_map(|product| product.package()).collect();
    packages.push(("wrk", "wrk"));
    packages
        .into_iter()
        .filter(|(_, program)| find(program).is_none())
        .map(|(package, program)| format!("{program} is not installed: apt-get install {package}"))
        .collect()
}

pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
    path.split(':').map(|folder| Path::new(folder).join(program)).find(|file| file.is_file())
}
