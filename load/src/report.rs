//! An outcome for its readers: text for a terminal, JSON for a program, a page for a browser.
//!
//! Pure functions of values that are there; nothing here measures, and nothing but `json::read` touches a file.
//! `quantity` writes numbers, `axis` and `drawing` are what `charts` are drawn with, `page` is what they stand on.

pub mod quantity;
