//! `millstream top`: the dashboard in a terminal, or one snapshot of it where there is none.
//!
//! Three threads wait and tell: for keys, for figures, for signals. This one takes what they tell, and draws when something has
//! changed; it asks nobody. What it shows is what the dashboard's page shows, out of the same stream. Modules stand lowest floor
//! first: `events` and `seen` are what came, `view` is what is chosen, `draw` makes cells of both.

mod figures;
mod events;
mod seen;
mod boards;
mod charts;
mod keyboard;
mod keys;
mod view;
mod grid;
mod draw;
mod plain;
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
use seen::{Link, Seen};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use source::{Source, Stream, Told};
use std::io;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use view::View;

/// What waits to be taken at the most; who has more to tell waits.
const WAITING: usize = 64;
/// A shell's word for a program that a signal ended: this and the signal's number.
const SIGNALLED: i32 = 128;
/// Frames that make a snapshot: how fast counts grow is known with the second.
const FRAMES: usize = 2;

/// What happened.
enum Happened {
    Key(Key),
    Told(Told),
    /// The terminal has another size.
    Resized,
    Signal(i32),
    /// The terminal can be read no more.
    Deaf(io::Error),
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
            Err(error) => control::print(Err(format!("the terminal: {error}"))),
        },
        Err(why) => control::print(Err(why)),
    }
}

/// A snapshot as text.
fn once(source: &Source, mut stream: Stream) -> Result<String, String> {
    let mut seen = Seen::default();
    // The history is first.
    for _ in 0..=FRAMES {
        match stream.next()? {
            Some(event) => seen.take(event),
            None => return Err(format!("{} ended the stream of figures: try again", source.place())),
        }
    }
    Ok(plain::snapshot(&seen, &events::plain(&source.place())))
}

/// Draws until a key or a signal ends it, and gives the signal's number.
fn watch(source: Source, stream: Stream) -> io::Result<i32> {
    let place = events::plain(&source.place());
    let (tell, happened) = sync_channel(WAITING);
    hear_signals(tell.clone())?;
    let mut screen = Screen::take_over()?;
    let terminal = screen::terminal()?;
    spawn("keys", tell.clone(), move |tell| {
        if let Err(error) = keyboard::read(&terminal, |key| tell.send(Happened::Key(key)).is_ok()) {
            _ = tell.send(Happened::Deaf(error));
        }
    })?;
    spawn("figures", tell, move |tell| {
        source.follow(stream, |told| tell.send(Happened::Told(told)).is_ok());
    })?;
    let palette = Palette::of_environment();
    let (mut seen, mut view) = (Seen::default(), View::default());
    loop {
        screen.show(|grid| draw::screen(grid, &seen, &mut view, &place, palette))?;
        match take(&happened, &mut seen, &mut view)? {
            Next::Draw => {}
            Next::End(signal) => return Ok(signal),
            Next::Suspend => {
                drop(screen);
                // The shell goes on, and so does this when it is told to.
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
                screen = Screen::take_over()?;
            }
        }
    }
}

/// What is to be done after what happened.
enum Next {
    Draw,
    /// To end: a signal's number, or 0 for a key.
    End(i32),
    Suspend,
}

/// Waits until something happens, and takes all that has.
fn take(happened: &Receiver<Happened>, seen: &mut Seen, view: &mut View) -> io::Result<Next> {
    // The thread that reads keys is there as long as this one is.
    let first = happened.recv().map_err(io::Error::other)?;
    for what in std::iter::once(first).chain(happened.try_iter().take(WAITING)) {
        match what {
            Happened::Key(key) => match keys::action(key, view.is_typing) {
                Some(Action::Quit) => return Ok(Next::End(0)),
                Some(Action::Suspend) => return Ok(Next::Suspend),
                Some(action) => view.act(action),
                None => {}
            },
            Happened::Resized => {}
            Happened::Told(Told::Event(event)) => seen.take(event),
            Happened::Told(Told::Away(why)) => seen.link = Link::Away(events::plain(&why)),
            Happened::Signal(signal) => return Ok(Next::End(signal)),
            Happened::Deaf(error) => return Err(error),
        }
    }
    Ok(Next::Draw)
}

/// The first signal that ends asks for an end; a further one ends the process where it stands, with the terminal as it was.
fn hear_signals(tell: SyncSender<Happened>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGWINCH])?;
    spawn("signals", tell, move |tell| {
        let mut is_ending = false;
        for signal in signals.forever() {
            if signal == SIGWINCH {
                // If there is no room, what waits is drawn for in the new size.
                _ = tell.try_send(Happened::Resized);
            } else if is_ending || tell.try_send(Happened::Signal(signal)).is_err() {
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
    tell: SyncSender<Happened>,
    work: impl FnOnce(SyncSender<Happened>) + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(move || work(tell))?;
    Ok(())
}
