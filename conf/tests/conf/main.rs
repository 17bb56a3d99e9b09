//! What configurations mean and what is said about them, asked at the crate's door.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod fixture;

mod cache;
mod conf_commands;
mod findings;
mod grammar;
mod grpc;
mod lenient;
mod made_variables;
mod meaning;
mod seed_configs;
mod sharing;
