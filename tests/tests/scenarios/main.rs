//! One scenario per behaviour that a user can see, against the real binary, on real sockets.
//!
//! A test's name is the behaviour. They share nothing: each has its own directory, ports and processes, so they run
//! side by side. Most of them wait more than they work; `cargo xtask test` runs them with more threads than cores.

mod rfc9111;
mod seed_api;
mod seed_blog;
mod seed_upstreams;
mod seed_https;
mod serve_url;
mod serve_options;
mod serve_shared;
mod command_line;
mod client_side;
mod slow_peers;
mod heads;
mod trailers;
mod odd_clients;
mod request_bodies;
mod upstream_tls;
mod expressions;
mod returned;
mod rewriting;
mod made_variables;
mod site_files;
mod cache;
mod codings;
mod ranges;
mod slices;
mod stored_files;
mod temporary_files;
mod signals;
mod logs;
mod listeners;
mod shortage;
mod diagnostics;
mod disk;
mod failures;
mod names;
mod fastcgi;
mod memory;
mod slow_readers;
mod streams;
mod malformed;
mod flask_example;
mod examples;
mod purge;
mod access;
mod limits;
mod limit_rate;
mod explain;
mod ladder;
mod bench;
mod safety;
mod stampede;
mod capacity;
mod reports;
