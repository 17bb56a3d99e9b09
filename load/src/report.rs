//! An outcome for its readers: text for a terminal, JSON for a program, a page for a browser.
//!
//! Pure functions of values that are there; nothing here measures, and nothing but `json::read_file` touches a file.
//! `quantity` writes numbers, `page` is what pictures and tables stand on, `plot` draws curves over an `axis`: `html` for one
//! outcome, `steps` for several measurements beside each other.

pub mod quantity;
pub mod paragraph;
pub mod aligned;
pub mod text;
pub mod json;
mod axis;
mod page;
mod plot;
pub mod html;
pub mod steps;

/// What is said of a server that closes its connections.
pub(crate) const CLOSES: &str = "The server closes its connections: nearly every request opened one (Gunicorn keeps them with \
                                 --worker-class gthread --keep-alive 75)";

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
