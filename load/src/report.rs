//! An outcome for its readers: text for a terminal, JSON for a program, a page for a browser.
//!
//! Pure functions of values that are there; nothing here measures, and nothing but `json::read_file` touches a file.
//! `quantity` writes numbers, `table` rows of them; `figures` and `run` are what there is to say of an outcome, which `text` and `html` show. `page` is what
//! pictures stand on, `plot` draws curves; `steps` is several measurements beside each other.

pub mod quantity;
mod page;
pub mod table;
mod figures;
pub(crate) mod run;
pub mod text;
pub mod json;
mod plot;
pub mod html;
pub mod steps;

pub use run::sentence;

pub(crate) const CLOSES: &str = "The server closes its connections: nearly every request opened one (Gunicorn keeps them with \
                                 --worker-class gthread --keep-alive 75)";

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
