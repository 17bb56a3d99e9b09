//! Servers of a version that are out as outliers: who comes back, and when.
//!
//! Who goes out is decided by the watch alone. Coming back may not wait for it where a request finds nobody else. Next: `watch`.

use super::Peers;
use crate::peer::Member;
use std::time::Instant;

impl Peers {
    pub(crate) fn readmit(&self, now: Instant) {
        let is_due =
            |member: &&Member| member.standing.health().ejection().until.is_some_and(|until| until <= now);
        for member in self.members.iter().filter(is_due) {
            member.standing.readmit(&member.parameters, now);
        }
    }

    /// Whether only ejected ones are left: the others may have gone since.
    pub(super) fn needs_outliers(&self, now: Instant) -> bool {
        // One that has no room for more is well all the same.
        let is_well = |Member { parameters, standing, .. }: &Member| {
            let is_asked = !parameters.drain && !parameters.down;
            is_asked && standing.health().is_well() && !standing.is_left_alone(parameters, now)
        };
        self.outliers.is_some() && !self.members.iter().any(is_well)
    }

    /// Brings back the one whose ejection ends first, if nothing else keeps it out. False if there is none.
    pub(crate) fn recall(&self, now: Instant) -> bool {
        let until = |member: &&Member| member.standing.health().ejection().until;
        let is_out_alone = |member: &&Member| {
            let Member { parameters, standing, .. } = member;
            until(member).is_some() && !parameters.down && standing.health().diagnosis().is_none()
        };
        let first = self.members.iter().filter(is_out_alone).min_by_key(until);
        first.map(|member| member.standing.readmit(&member.parameters, now)).is_some()
    }
}
