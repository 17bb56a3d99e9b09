//! The flags of `millstream import`.

use clap::Args;
use std::path::PathBuf;

/// `import …`.
#[derive(Debug, Clone, Args)]
pub struct Import {
    /// The folder with nginx.conf in it, or that file
    #[arg(default_value = "/etc/nginx", value_name = "NGINX")]
    pub from: PathBuf,
    /// Where it is copied to
    #[arg(long, value_name = "FOLDER", default_value = "/etc/millstream")]
    pub to: PathBuf,
    /// What relative paths of nginx hang on (default: as `nginx -V` says, else the folder)
    #[arg(short = 'p', id = "directory", value_name = "PREFIX")]
    pub prefix: Option<PathBuf>,
    /// Replace files that differ; they are kept beside the folder
    #[arg(long)]
    pub force: bool,
    /// Say all that and write nothing
    #[arg(long)]
    pub dry_run: bool,
}
