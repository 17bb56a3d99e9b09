//! One server's part of one thread: which of its targets is next, when, and which connections are free for it.
//!
//! Never touches a socket. Next: `worker`.

use crate::pace::{Growth, Pace};
use crate::plan::{Arrivals, Mode, Plan, Schedule, Way};
use rustls::pki_types::ServerName;
use std::collections::VecDeque;
use std::net::SocketAddr;

pub(super) struct Lane {
    /// Places of targets in the plan, in the order in which they are asked for; empty only where nothing is ever due.
    order: Vec<u32>,
    next: usize,
    pub(super) addresses: Vec<SocketAddr>,
    /// The one that took a connection last: the next is tried there first.
    pub(super) address: u32,
    /// The server's name, where TLS is spoken to it.
    pub(super) name: Option<ServerName<'static>>,
    pub(super) way: Way,
    /// Open loop: when requests should start.
    pub(super) pace: Option<Pace>,
    /// Open loop: connections with room for a request, longest free first; each with its generation.
    pub(super) free: VecDeque<(u32, u32)>,
    /// Open loop: those that can be opened where none of them is there.
    pub(super) unopened: VecDeque<(u32, u32)>,
    /// Open loop: when requests should have started that are to be sent again, oldest first.
    pub(super) returned: VecDeque<u64>,
}

impl Lane {
    /// The lane for one server: `part` of the `parts` threads that talk to it.
    pub(super) fn new(plan: &Plan, places: &[u32], part: u32, parts: u32, seed: u64) -> Lane {
        // A log has more lines, and more distinct ones, than can be compared with each other.
        let mut is_own = vec![false; plan.targets.len()];
        places.iter().for_each(|place| is_own[*place as usize] = true);
        let lines = (0..plan.order.len()).filter(|line| is_own[plan.order[*line] as usize]);
        let is_timed = matches!(plan.schedule, Some(Schedule::Log { .. }));
        // Of a log with its own timing each thread has its part of the lines.
        let (skipped, each) = if is_timed { (part as usize, parts as usize) } else { (0, 1) };
        let lines: Vec<usize> = lines.skip(skipped).step_by(each).collect();
        let (order, whole) = match plan.order.as_slice() {
            [] => (places.to_vec(), plan.targets.len()),
            all => (lines.iter().map(|line| all[*line]).collect(), all.len()),
        };
        let share = order.len() as f64 / whole as f64 / f64::from(parts);
        let phase = f64::from(part) / f64::from(parts);
        let pace = |rate: f64, arrivals: Arrivals| {
            let (growth, arrivals) = match &plan.schedule {
                None => (Growth::Rate(1e9 / (rate * share)), arrivals),
                Some(Schedule::Stages(stages)) => (Growth::of(stages, share), arrivals),
                Some(Schedule::Log { moments, .. }) => {
                    (Growth::Moments(lines.iter().map(|line| moments[*line]).collect()), Arrivals::Constant)
                }
            };
            Pace::new(growth, arrivals, phase, seed)
        };
        let first = &plan.targets[places[0] as usize];
        // Threads begin at different places, so that they do not all ask for the same at once.
        let next = if is_timed { 0 } else { order.len() * part as usize / parts as usize };
        Lane {
            order,
            next,
            addresses: first.addresses.clone(),
            address: 0,
            name: first.tls.as_ref().and_then(|name| ServerName::try_from(name.clone()).ok()),
            way: first.way.clone(),
            pace: match plan.mode {
                Mode::Closed => None,
                Mode::Open { rate, arrivals } => Some(pace(rate, arrivals)),
            },
            free: VecDeque::new(),
            unopened: VecDeque::new(),
            returned: VecDeque::new(),
        }
    }

    pub(super) fn due(&self) -> Option<u64> {
        self.returned.front().copied().or_else(|| self.pace.as_ref().map(Pace::due))
    }

    pub(super) fn skip_to(&mut self, moment: u64) {
        self.returned.retain(|due| *due >= moment);
        if let Some(pace) = &mut self.pace {
            pace.skip_to(moment);
        }
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty() || !self.unopened.is_empty()
    }

    #[inline]
    pub(super) fn target(&mut self) -> u32 {
        let place = self.order[self.next];
        self.next += 1;
        if self.next == self.order.len() {
            self.next = 0;
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn a_long_log_of_many_distinct_requests_is_laid_out_at_once() {
        let (distinct, lines) = (200_000u32, 2_000_000u32);
        let plan = samples::plan();
        let targets = std::iter::repeat_n(plan.targets[0].clone(), distinct as usize).collect();
        let order: Vec<u32> = (0..lines).map(|line| line * 7 % distinct).collect();
        let plan = Plan { targets, order: order.clone(), ..plan };
        let origins = plan.origins();
        assert_eq!(origins.len(), 1);
        // Each place compared with each line, this would take minutes.
        let lane = Lane::new(&plan, &origins[0], 0, 1, 0);
        assert_eq!(lane.order, order);
    }

    #[test]
    fn threads_share_the_lines_of_a_log_and_each_comes_at_its_own_moment() {
        let plan = samples::plan();
        let target = plan.targets[0].clone();
        let schedule = Schedule::Log { moments: [0, 0, 40, 100, 900].into(), speed: 10.0 };
        let plan = Plan {
            targets: vec![target.clone(), target],
            order: vec![0, 1, 1, 0, 1],
            mode: Mode::Open { rate: 5.0, arrivals: Arrivals::Constant },
            schedule: Some(schedule),
            ..plan
        };
        for (part, parts, expected) in [
            (0, 1, &[(0, 0), (0, 1), (40, 1), (100, 0), (900, 1)][..]),
            (0, 2, &[(0, 0), (40, 1), (900, 1)]),
            (1, 2, &[(0, 1), (100, 0)]),
        ] {
            let mut lane = Lane::new(&plan, &[0, 1], part, parts, 0);
            let mut found = Vec::new();
            while let Some(due) = lane.due().filter(|due| *due < 1_000) {
                found.push((due, lane.target()));
                lane.pace.iter_mut().for_each(Pace::advance);
            }
            assert_eq!(found, expected, "{part} of {parts}");
        }
    }
}
