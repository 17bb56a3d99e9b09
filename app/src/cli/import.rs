//! The flags of `millstream import`.

use clap::Args;
use std::path::PathBuf;

/// `import …`.
#[derive(Debug, Clone, Args)]
pub struct Import {
    /// The directory that contains nginx.conf, or the file itself
    #[arg(default_value = "/etc/nginx", value_name = "NGINX")]
    pub from: PathBuf,
    /// The directory to copy it to
    #[arg(long, value_name = "DIRECTORY", default_value = "/etc/millstream")]
    pub to: PathBuf,
    /// nginx's prefix for relative paths (default: from `nginx -V`, or else the directory)
    #[arg(short = 'p', id = "directory", value_name = "PREFIX")]
    pub prefix: Option<PathBuf>,
    /// Replace files that differ, and keep the old ones next to the directory
    #[arg(long)]
    pub force: bool,
    /// Print the report without writing anything
    #[arg(long)]
    pub dry_run: bool,
}
