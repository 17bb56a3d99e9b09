//! The questions before a load: each server is asked once or a few times, so that a mistake ends in a sentence and not in a
//! thousand errors.
//!
//! What the answers tell is put into the plan: which of a server's addresses answers, and, where the user wants that, which
//! body every answer must have. Next: `millstream_load::probe`.

use crate::measure::end::{self, End};
use millstream_load::plan::{Mode, Plan, Target};
use millstream_load::probe::{self, ProbeError, Reply};
use millstream_load::report::quantity::{Quantity, plural, seconds};
use millstream_load::stop::Stop;
use millstream_load::target;
use millstream_load::verdict::Once;
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const STOPPED: End = End::Stopped(" before anything was measured");
/// Longest wait for the first response, unless `--timeout` is longer.
const FIRST_ANSWER: Duration = Duration::from_secs(30);

/// Time after which the user is told about the wait.
const NOTICE: Duration = Duration::from_secs(1);

/// Prints that the first response is awaited, unless dropped before.
struct Notice(Option<(Sender<()>, JoinHandle<()>)>);

impl Notice {
    fn after(delay: Duration, timeout: Duration) -> Notice {
        let (end, is_over) = mpsc::channel::<()>();
        let told = move || {
            if is_over.recv_timeout(delay) == Err(RecvTimeoutError::Timeout) {
                let timeout = Quantity::from(timeout);
                end::tell(&format!(
                    "waiting for the end of the first response, up to {timeout} (--timeout); press Ctrl-C to stop"
                ));
            }
        };
        // Where there is no thread for it, the wait is silent.
        let thread = thread::Builder::new().name("notice".to_owned()).spawn(told);
        Notice(thread.ok().map(|thread| (end, thread)))
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            // It has no panic to tell of.
            _ = thread.join();
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Single {
    pub(super) once: Option<Once>,
    pub(super) note: Option<String>,
}

/// Sends one request to each server, or to each URL with `same_body`; only connects if requests change
/// something and are counted. Measures a single response: for one target with a few more requests if that is
/// harmless.
pub(super) fn ask(plan: &mut Plan, same_body: bool, stop: &Stop) -> Result<Single, End> {
    let mut single = Single::default();
    let _notice = Notice::after(NOTICE, plan.timeout.min(FIRST_ANSWER));
    let (mut samples, mut changing) = (Vec::new(), 0);
    for places in plan.origins() {
        let asked = if same_body { places.len() } else { 1 };
        let mut answering = None;
        for place in &places[..asked] {
            let target = &mut plan.targets[*place as usize];
            let timeout = plan.timeout.min(FIRST_ANSWER);
            if plan.requests.is_some() && !same_body && !is_safe(target) {
                let reached = probe::reach(stop, target, timeout).map_err(|_| STOPPED)?;
                answering.get_or_insert(reached.map_err(|error| error.to_string())?);
                continue;
            }
            let (address, answer) = once(target, timeout, plan.redirects, stop)?;
            answering.get_or_insert(address);
            changing += u64::from(!is_safe(target));
            samples.extend(answer.as_ref().map(Once::of));
            if same_body {
                let Some(answer) = answer else {
                    let most = probe::LARGEST >> 20;
                    let why =
                        format!("the body of {} is too long to compare: more than {most} MB", target.url);
                    return Err(why.into());
                };
                if !target.expect.allows(answer.status) {
                    let why = format!(
                        "{} responded first with status {}, so there is no body to compare the other responses with",
                        target.url, answer.status
                    );
                    return Err(why.into());
                }
                target.expect.body = Some(answer.body.into());
            }
        }
        if let Some(address) = answering {
            places.iter().for_each(|place| prefer(&mut plan.targets[*place as usize].addresses, address));
        }
    }
    single.note = uncounted(changing);
    let [target] = plan.targets.as_slice() else { return Ok(single) };
    if is_harmless(plan, target) {
        let mut passed_over = Vec::new();
        while !samples.is_empty() && !Once::are_enough(&samples) {
            match probe::once_unless(stop, target, plan.timeout.min(FIRST_ANSWER)).map_err(|_| STOPPED)? {
                Ok(answer) => samples.push(Once::of(&answer)),
                // What is wrong now and then the load will count.
                Err(_) => break,
            }
            passed_over.extend(Once::pass_over_a_queue(&mut samples));
        }
        single.note = single.note.or_else(|| note(&passed_over, &samples));
    }
    single.once = Once::of_several(&samples);
    Ok(single)
}

/// Warns of requests before the load that may have changed something.
fn uncounted(changing: u64) -> Option<String> {
    let requests = (changing > 0).then(|| plural(changing, "request"))?;
    Some(format!(
        " Before the load, {requests} checked for a response; a run with -n and without --same-body only connects."
    ))
}

/// Reports requests that were slowed by earlier load on the server.
fn note(passed_over: &[f64], samples: &[Once]) -> Option<String> {
    let (longest, once) = (passed_over.iter().copied().reduce(f64::max)?, Once::of_several(samples)?);
    Some(format!(
        " The first single request took {} and later ones {}: the server was still busy with earlier work, or just \
         waking up, so only the later ones count.",
        seconds(longest),
        seconds(once.total)
    ))
}

/// Whether a few further requests change nothing and are not counted.
fn is_harmless(plan: &Plan, target: &Target) -> bool {
    is_safe(target) && plan.requests.is_none() && plan.mode == Mode::Closed
}

/// RFC 9110 §9.2.1.
fn is_safe(target: &Target) -> bool {
    target.is_head || target.request.starts_with(b"GET ")
}

/// Requests a target and its redirects; returns who responded, and what; no response if it succeeded but is
/// too long to keep.
fn once(
    target: &Target,
    timeout: Duration,
    redirects: u32,
    stop: &Stop,
) -> Result<(SocketAddr, Option<Reply>), End> {
    let (mut asked, mut hops) = (target.clone(), 0);
    loop {
        let answer = match probe::once_unless(stop, &asked, timeout).map_err(|_| STOPPED)? {
            Ok(answer) => answer,
            // It says how long it is, so it has an end.
            Err(ProbeError::Large(address, _)) => return Ok((address, None)),
            Err(error) => return Err(error.to_string().into()),
        };
        if hops < redirects
            && target::is_redirect(answer.status)
            && let Some(location) = answer.field("location")
        {
            let next = target::redirected(&asked, answer.status, location);
            asked = next.map_err(|why| format!("the redirect of {} cannot be followed: {why}", asked.url))?;
            hops += 1;
            continue;
        }
        if !target.expect.allows(answer.status) {
            end::tell(&format!(
                "{} responds with status {}, which counts as an error",
                asked.url, answer.status
            ));
        }
        if redirects > 0 && target::is_redirect(answer.status) {
            return Err(format!("{} redirects more than {redirects} times (--max-redirs)", target.url).into());
        }
        return Ok((answer.address, Some(answer)));
    }
}

fn prefer(addresses: &mut [SocketAddr], first: SocketAddr) {
    if let Some(place) = addresses.iter().position(|address| *address == first) {
        addresses[..=place].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_that_answers_comes_first_and_the_others_keep_their_order() {
        let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let mut addresses = [1, 2, 3, 4].map(address);
        prefer(&mut addresses, address(3));
        assert_eq!(addresses, [3, 1, 2, 4].map(address));
        prefer(&mut addresses, address(9));
        assert_eq!(addresses, [3, 1, 2, 4].map(address));
    }

    #[test]
    fn requests_before_the_load_are_told_where_they_may_have_changed_something() {
        assert_eq!(uncounted(0), None);
        let says = uncounted(1).unwrap_or_default();
        assert!(says.starts_with(" Before the load, 1 request checked for"), "{says}");
        assert!(uncounted(3).is_some_and(|says| says.contains(" 3 requests checked")));
    }
}
