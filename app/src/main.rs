//! The binary: one match over what the program can do.
//!
//! `cli` says what was asked; `assemble` turns a configuration into running pieces; `running` is the process from its
//! listeners to its end. Modules stand lowest floor first.

// In a binary nothing is reachable from outside; `pub` says which items other rooms use.
#![allow(unreachable_pub)]

mod cli;
mod completions;
mod man_page;
mod version;
mod pid_file;
mod panic_log;
mod account;
mod temporary;
mod state_folder;
mod traces;
mod accepting;
mod descriptors;
mod upgrade;
mod office;
mod opener;
mod keeper;
mod names;
mod health;
mod background;
mod issuing;
mod stapling;
mod renewing;
mod recording;
mod exporting;
mod handshakes;
mod logs;
mod clusters;
mod assemble;
mod check;
mod import;
mod serve_url;
mod container;
mod signal;
mod control;
mod purge;
mod explain;
mod top;
mod measure;
mod worker;
mod watchdog;
mod reload;
mod running;
mod shadow;

use cli::Command;
use millstream_net::{allocator, privileges};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anybody can look into it: an exec has opened it.
    privileges::close_to_others();
    allocator::give_back_soon();
    carry_out(cli::parse(std::env::args_os()))
}

fn carry_out(command: Command) -> ExitCode {
    match command {
        Command::Nothing(missing) => cli::help(&missing),
        Command::Version => version::short(),
        Command::Build => version::long(),
        Command::Test(options, how) => check::test(&options, how),
        Command::Signal(options, name) => signal::send(&options, name),
        Command::PrintConfig(serve) => serve_url::print(&serve),
        Command::Import(import) => import::run(&import),
        Command::Purge(options, purge) => purge::run(&options, &purge),
        Command::Explain(options, explain) => explain::run(&options, &explain),
        Command::Top(options, top) => top::run(&options, &top),
        Command::Bench(bench) => measure::bench::run(&bench),
        Command::Ladder(ladder) => measure::ladder::run(&ladder),
        Command::Demo(demo) => measure::demo::run(&demo),
        Command::Capacity(capacity) => measure::capacity::run(&capacity),
        Command::Completions(shell) => completions::print(shell),
        Command::Man(command) => man_page::print(&command),
        Command::Container(command) if container::prepare(&command) => carry_out(*command),
        Command::Container(_) => ExitCode::FAILURE,
        Command::ServeUrl(serve) => running::serve_url(&serve),
        Command::ShadowUrl(shadow) => shadow::run(&shadow),
        Command::Run(options) => running::run(&options),
    }
}
