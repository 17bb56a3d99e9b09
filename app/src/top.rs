//! `millstream top`: the dashboard in a terminal, or a snapshot of it as text without one.
//!
//! Three threads wait: for keys, for figures, for signals. They send what they receive to this one, which draws whenever something has
//! changed, and polls nothing. It shows what the dashboard's page shows, out of the same stream. Modules are in the order of their
//! floors: `events` and `state` are what came, `view` is what is chosen, `draw` makes a grid of both.

mod figures;
mod events;
mod state;
mod grid;
mod tables;
mod charts;
mod keyboard;
mod keys;
mod view;
mod draw;
mod snapshot;
mod canvas;
mod screen;
mod source;
#[cfg(test)]
mod sample;

use crate::cli::Top;
use crate::control;
use draw::Palette;
use keyboard::Key;
use keys::Action;
use millstream_conf::load::Options;
use screen::Screen;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use source::{Source, Stream, Update};
use state::{Link, State};
use std::io;
use std::iter;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use view::View;

/// Inputs that wait at the most; a thread that has more waits too.
const WAITING: usize = 64;
/// The exit status of a process that a signal ended, as shells have it: this and the signal's number.
const SIGNALLED: i32 = 128;
/// Frames that a snapshot needs: the second one shows how fast counts grow.
const FRAMES: usize = 2;

enum Input {
    Key(Key),
    Update(Update),
    /// The terminal has another size.
    Resized,
    Signal(i32),
    /// The terminal cannot be read any more.
    Unreadable(io::Error),
}

/// Shows what the running Millstream does.
pub fn run(options: &Options, top: &Top) -> ExitCode {
    let is_once = top.once || !screen::is_there();
    match Source::find(options, top) {
        Ok((source, stream)) if is_once => control::print(once(&source, stream)),
        Ok((source, stream)) => match watch(source, stream) {
            Ok(0) => ExitCode::SUCCESS,
            // A signal has a small number.
            Ok(signal) => ExitCode::from(u8::try_from(SIGNALLED + signal).unwrap_or(1)),
            Err(error) => control::print(Err(format!("terminal error: {error}"))),
        },
        Err(why) => control::print(Err(why)),
    }
}

/// A snapshot as text.
fn once(source: &Source, mut stream: Stream) -> Result<String, String> {
    let mut state = State::default();
    // The history is first.
    for _ in 0..=FRAMES {
        match stream.next()? {
            Some(event) => state.take(event),
            None => return Err(format!("{} closed the event stream: try again", source.place())),
        }
    }
    Ok(snapshot::snapshot(&state, &events::plain(&source.place())))
}

/// Draws until a key or a signal ends it, and returns the signal's number.
fn watch(source: Source, stream: Stream) -> io::Result<i32> {
    let place = events::plain(&source.place());
    let (sender, inputs) = sync_channel(WAITING);
    send_signals(sender.clone())?;
    let mut screen = Screen::take_over()?;
    let terminal = screen::terminal()?;
    spawn("keys", sender.clone(), move |sender| {
        if let Err(error) = keyboard::read(&terminal, |key| sender.send(Input::Key(key)).is_ok()) {
            _ = sender.send(Input::Unreadable(error));
        }
    })?;
    spawn("figures", sender, move |sender| {
        source.follow(stream, |update| sender.send(Input::Update(update)).is_ok());
    })?;
    let palette = Palette::of_environment();
    let (mut state, mut view) = (State::default(), View::default());
    loop {
        screen.show(|grid| draw::screen(grid, &state, &mut view, &place, palette))?;
        match take(&inputs, &mut state, &mut view)? {
            Next::Draw => {}
            Next::End(signal) => return Ok(signal),
            Next::Suspend => {
                drop(screen);
                // The shell goes on, and so does this process once it is continued.
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
                screen = Screen::take_over()?;
            }
        }
    }
}

/// What to do after some inputs.
enum Next {
    Draw,
    /// A signal's number, or 0 for a key.
    End(i32),
    Suspend,
}

/// Waits for an input, and takes all that are there.
fn take(inputs: &Receiver<Input>, state: &mut State, view: &mut View) -> io::Result<Next> {
    // The thread that reads keys lives as long as this one.
    let first = inputs.recv().map_err(io::Error::other)?;
    for input in iter::once(first).chain(inputs.try_iter().take(WAITING)) {
        match input {
            Input::Key(key) => match keys::action(key, view.is_typing) {
                Some(Action::Quit) => return Ok(Next::End(0)),
                Some(Action::Suspend) => return Ok(Next::Suspend),
                Some(action) => view.act(action),
                None => {}
            },
            Input::Update(Update::Event(event)) => state.take(event),
            Input::Update(Update::Away(why)) => state.link = Link::Away(events::plain(&why)),
            Input::Resized => {}
            Input::Signal(signal) => return Ok(Next::End(signal)),
            Input::Unreadable(error) => return Err(error),
        }
    }
    Ok(Next::Draw)
}

/// The first signal to end asks for it; a further one ends the process on the spot, with the terminal as it was.
fn send_signals(sender: SyncSender<Input>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGWINCH])?;
    spawn("signals", sender, move |sender| {
        let mut is_ending = false;
        for signal in signals.forever() {
            if signal == SIGWINCH {
                // Without room, the inputs that wait are drawn in the new size.
                _ = sender.try_send(Input::Resized);
            } else if is_ending || sender.try_send(Input::Signal(signal)).is_err() {
                screen::give_back();
                low_level::exit(SIGNALLED + signal);
            } else {
                is_ending = true;
            }
        }
    })
}

fn spawn(
    name: &str,
    sender: SyncSender<Input>,
    work: impl FnOnce(SyncSender<Input>) + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(move || work(sender))?;
    Ok(())
}
