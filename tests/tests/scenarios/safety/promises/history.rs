//! A random history: who there is, what is asked, in which order, and when the API breaks.

use super::resource::{By, Caching, Delivery, Resource, Trouble, Weights};
use crate::safety::random::Random;

/// A client: its side in each of the fields that it sends.
pub type Person = Vec<(By, usize)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Get,
    Head,
    Post,
    Range(usize, usize),
    /// With the ETag of what this client was last given.
    Again,
    Leave(usize),
}

#[derive(Debug, Clone, Copy)]
pub struct Act {
    pub person: usize,
    pub resource: usize,
    pub what: What,
    pub zipped: bool,
}

#[derive(Debug, Clone)]
pub enum Moment {
    Together(Vec<Act>),
    /// A pause until all that may be given is too old, except for what is fresh for longer.
    Quiet,
    Breaks(usize),
    Mends(usize),
}

#[derive(Debug, Clone)]
pub struct History {
    pub people: Vec<Person>,
    pub resources: Vec<Resource>,
    pub moments: Vec<Moment>,
}

impl History {
    pub fn of(seed: u64, by: Weights) -> History {
        let mut random = Random::new(seed);
        // Changes that come so soon one after the other that they wait for their turn, of what would be fresh for long.
        let changes = random.percent(20);
        let mut resources: Vec<Resource> =
            (0..1 + random.below(3)).map(|_| resource(by, &mut random)).collect();
        if changes {
            let delivery = Delivery::Whole(900);
            resources = vec![Resource { by: None, caching: Caching::Long, delivery, ..resources[0] }];
        }
        let people = (0..2 + random.below(4)).map(|_| person(by, &resources, changes, &mut random));
        let people = people.collect::<Vec<_>>();
        let mut moments = Vec::new();
        let quiet = random.percent(if changes { 80 } else { 20 }).then(|| random.below(3));
        let writes = if changes { 8 } else { 2 };
        for at in 0..3 + random.below(5) {
            moments.push(Moment::Together(acts(&resources, people.len(), writes, &mut random)));
            let resource = random.below(resources.len());
            match random.below(8) {
                0 => moments.push(Moment::Breaks(resource)),
                1 => moments.push(Moment::Mends(resource)),
                _ => {}
            }
            if quiet == Some(at) {
                moments.push(Moment::Quiet);
            }
        }
        // So that what was quiet is asked for.
        moments.push(Moment::Together(acts(&resources, people.len(), writes, &mut random)));
        History { people, resources, moments }
    }

    pub fn shorter(&self) -> Vec<History> {
        let mut all = Vec::new();
        for at in 0..self.moments.len() {
            let mut shorter = self.clone();
            shorter.moments.remove(at);
            all.push(shorter);
        }
        for (at, moment) in self.moments.iter().enumerate() {
            let Moment::Together(acts) = moment else { continue };
            for act in 0..acts.len() {
                let mut fewer = acts.clone();
                fewer.remove(act);
                let mut shorter = self.clone();
                shorter.moments[at] = Moment::Together(fewer);
                all.push(shorter);
            }
        }
        all
    }

    pub fn size(&self) -> usize {
        self.moments
            .iter()
            .map(|moment| if let Moment::Together(acts) = moment { 1 + acts.len() } else { 1 })
            .sum()
    }
}

fn resource(by: Weights, random: &mut Random) -> Resource {
    Resource {
        by: random.percent(80).then(|| random.weighted(by)),
        varies: random.percent(35),
        caching: random.weighted(&Caching::ALL),
        delivery: random.weighted(&Delivery::ALL),
        trouble: random.one(&Trouble::ALL),
        tagged: random.percent(50),
    }
}

/// Mostly they send what the API uses, sometimes something else, and often nothing.
fn person(by: Weights, resources: &[Resource], changes: bool, random: &mut Random) -> Person {
    let mut person = Person::new();
    for &(_, by) in by {
        // Whose change it is goes by the address.
        let looked_at =
            resources.iter().any(|resource| resource.by == Some(by)) || changes && by == By::Address;
        if random.percent(if looked_at { 75 } else { 6 }) {
            person.push((by, random.below(2)));
        }
    }
    person
}

fn acts(resources: &[Resource], people: usize, writes: usize, random: &mut Random) -> Vec<Act> {
    // Mostly all ask for one thing, so that they meet.
    let one = random.below(resources.len());
    (0..1 + random.below(6))
        .map(|_| {
            let resource = if random.percent(80) { one } else { random.below(resources.len()) };
            let first = random.below(600);
            let (last, enough) = (first + random.below(300), random.below(2_000));
            let what = random.weighted(&[
                (12, What::Get),
                (1, What::Head),
                (writes, What::Post),
                (2, What::Range(first, last)),
                (2, What::Again),
                (2, What::Leave(enough)),
            ]);
            Act { person: random.below(people), resource, what, zipped: random.percent(30) }
        })
        .collect()
}
