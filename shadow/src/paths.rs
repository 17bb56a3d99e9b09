//! Paths as a tree of segments, whose leaves are routes: ids are folded by their shape (`segment`), words when they are many and behave alike.
//!
//! A known route never gives way to a new one, so random paths cost nothing but their share of the route for the rest.
//! Finding a route allocates nothing. Next: `route`, what is known of one.

use crate::hash::Key;
use crate::segment::{Fold, Segment, fold};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Nodes of the tree.
const MOST_NODES: usize = 4_096;

/// Words below one node that are known by themselves, and from which on it is tried to fold them.
const MOST_WORDS: u16 = 192;
const MANY_WORDS: u16 = 48;

/// Requests for a word after which it is tried.
const TRIED: u32 = 12;

/// New words of a full node of which one takes the place of a word that led nowhere: looking for one takes some microseconds.
const NEWCOMERS: u16 = 64;

/// Words of one form from which on they are folded, and of ten words how many must have it.
const FEWEST_ALIKE: usize = 16;

/// Segments of a path, and bytes of one that is a word.
const DEEPEST: usize = 10;
const LONGEST_WORD: usize = 64;

/// Requests after which a path is a route.
const FEWEST_REQUESTS: u32 = 4;

/// Requests after which a folded word is a route of its own if it has a twentieth of all.
const HEAVY: u32 = 128;

/// Clients that must have used a word before a report shows it.
pub(crate) const FEWEST_CLIENTS: u32 = 5;

const NONE: u32 = u32::MAX;

struct Node {
    parent: u32,
    segment: Segment,
    requests: u32,
    clients: u32,
    words: u16,
    newcomers: u16,
    is_folded: bool,
    any: [u32; 4],
    route: Option<u32>,
    /// Routes at and below it.
    routes: u32,
    /// In a folded node: its most frequent words.
    heavy: Vec<(u64, u32)>,
}

impl Node {
    fn new(parent: u32, segment: Segment) -> Node {
        Node {
            parent,
            segment,
            requests: 0,
            clients: 0,
            words: 0,
            newcomers: 0,
            is_folded: false,
            any: [NONE; 4],
            route: None,
            routes: 0,
            heavy: Vec::new(),
        }
    }
}

/// Where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Route(u32),
    /// A path that should have a route now.
    Due(u32),
    /// Too new, too deep, too many or not in normal form.
    Rest,
}

pub(crate) struct Paths {
    nodes: Vec<Node>,
    free: Vec<u32>,
    children: HashMap<(u32, u64), u32>,
    locations: HashMap<u32, u32>,
}

impl Paths {
    pub(crate) fn new() -> Paths {
        Paths { nodes: Vec::new(), free: Vec::new(), children: HashMap::new(), locations: HashMap::new() }
    }

    /// `client`: any hash of the client. `form`: how the responses of a route look, if that is known.
    pub(crate) fn find(
        &mut self,
        key: &Key,
        location: u32,
        path: &[u8],
        client: u64,
        form: impl Fn(u32) -> Option<u64>,
    ) -> Found {
        let Some(rest) = path.strip_prefix(b"/").filter(|_| is_normal(path)) else { return Found::Rest };
        let Some(mut node) = self.root(location) else { return Found::Rest };
        let bit = 1 << (client % 32);
        for segment in rest.split(|byte| *byte == b'/') {
            let Some(next) = self.child(key, node, segment) else { return Found::Rest };
            node = next;
            self.nodes[node as usize].clients |= bit;
        }
        let leaf = &mut self.nodes[node as usize];
        leaf.requests = leaf.requests.saturating_add(1);
        if leaf.requests == TRIED
            && let Some(above) = self.foldable(key, node, &form)
        {
            self.fold_words(above);
            return Found::Rest;
        }
        let leaf = &self.nodes[node as usize];
        match leaf.route {
            Some(route) => Found::Route(route),
            None if leaf.requests >= FEWEST_REQUESTS => Found::Due(node),
            None => Found::Rest,
        }
    }

    /// The node above a leaf whose words are to be folded: they are many, and what they have in the leaf's place behaves alike.
    fn foldable(&self, key: &Key, leaf: u32, form: &impl Fn(u32) -> Option<u64>) -> Option<u32> {
        let (mut node, mut rest) = (leaf, Vec::new());
        loop {
            let of = &self.nodes[node as usize];
            if of.parent == NONE {
                return None;
            }
            let is_word = matches!(of.segment, Segment::Word(_));
            if is_word && self.may_fold(of.parent) && self.are_alike(key, of.parent, &rest, form) {
                return Some(of.parent);
            }
            rest.insert(0, &of.segment);
            node = of.parent;
        }
    }

    /// The node that a path leads to from another one.
    fn below(&self, key: &Key, mut node: u32, path: &[&Segment]) -> Option<u32> {
        for segment in path {
            node = match segment {
                Segment::Word(word) => *self.children.get(&(node, key.bytes(word)))?,
                Segment::Any(fold) => self.nodes[node as usize].any[*fold as usize],
            };
            if node == NONE {
                return None;
            }
        }
        Some(node)
    }

    fn may_fold(&self, parent: u32) -> bool {
        self.nodes.get(parent as usize).is_some_and(|node| node.words >= MANY_WORDS && !node.is_folded)
    }

    pub(crate) fn set_route(&mut self, node: u32, route: u32) {
        self.nodes[node as usize].route = Some(route);
        self.count_routes(node, |count| count + 1);
    }

    /// Changes the count of a node and of all above it.
    fn count_routes(&mut self, mut node: u32, change: impl Fn(u32) -> u32) {
        while let Some(of) = self.nodes.get_mut(node as usize) {
            of.routes = change(of.routes);
            node = of.parent;
        }
    }

    fn root(&mut self, location: u32) -> Option<u32> {
        if let Some(root) = self.locations.get(&location) {
            return Some(*root);
        }
        let root = self.add(NONE, Segment::Word(Box::default()))?;
        self.locations.insert(location, root);
        Some(root)
    }

    fn add(&mut self, parent: u32, segment: Segment) -> Option<u32> {
        if let Some(free) = self.free.pop() {
            self.nodes[free as usize] = Node::new(parent, segment);
            return Some(free);
        }
        if self.nodes.len() == MOST_NODES {
            return None;
        }
        self.nodes.push(Node::new(parent, segment));
        Some(self.nodes.len() as u32 - 1)
    }

    fn child(&mut self, key: &Key, parent: u32, segment: &[u8]) -> Option<u32> {
        if let Some(fold) = fold(segment) {
            return self.folded(parent, fold);
        }
        if segment.len() > LONGEST_WORD {
            return None;
        }
        let hash = key.bytes(segment);
        if let Some(child) = self.children.get(&(parent, hash)) {
            return Some(*child);
        }
        if self.nodes[parent as usize].is_folded {
            let child = self.folded(parent, Fold::Word)?;
            return Some(self.promoted(parent, child, hash, segment).unwrap_or(child));
        }
        let words = self.nodes[parent as usize].words;
        if words >= MOST_WORDS {
            let node = &mut self.nodes[parent as usize];
            node.newcomers = node.newcomers.wrapping_add(1);
            if !node.newcomers.is_multiple_of(NEWCOMERS) {
                return None;
            }
            self.forget_one(parent)?;
        }
        self.add_word(parent, hash, segment)
    }

    fn add_word(&mut self, parent: u32, hash: u64, segment: &[u8]) -> Option<u32> {
        if self.free.is_empty() && self.nodes.len() == MOST_NODES {
            self.forget_strangers();
        }
        let child = self.add(parent, Segment::Word(segment.into()))?;
        self.children.insert((parent, hash), child);
        self.nodes[parent as usize].words += 1;
        Some(child)
    }

    fn folded(&mut self, parent: u32, fold: Fold) -> Option<u32> {
        let child = self.nodes[parent as usize].any[fold as usize];
        if child != NONE {
            return Some(child);
        }
        let child = self.add(parent, Segment::Any(fold))?;
        self.nodes[parent as usize].any[fold as usize] = child;
        Some(child)
    }

    /// A word that is as frequent as a route is one.
    fn promoted(&mut self, parent: u32, child: u32, hash: u64, segment: &[u8]) -> Option<u32> {
        const COUNTED: usize = 8;
        let node = &mut self.nodes[child as usize];
        let requests = node.requests;
        let Some(at) = node.heavy.iter().position(|(of, _)| *of == hash) else {
            if node.heavy.len() < COUNTED {
                node.heavy.push((hash, 1));
            } else if let Some(least) = node.heavy.iter_mut().min_by_key(|(_, count)| *count) {
                // Counting down instead of replacing keeps random words from taking over.
                if least.1 <= 1 { *least = (hash, 1) } else { least.1 -= 1 }
            }
            return None;
        };
        node.heavy[at].1 += 1;
        let count = node.heavy[at].1;
        if count < HEAVY
            || u64::from(count) * 20 < u64::from(requests)
            || self.nodes[parent as usize].words >= MOST_WORDS
        {
            return None;
        }
        self.nodes[child as usize].heavy.swap_remove(at);
        self.add_word(parent, hash, segment)
    }

    fn words_below(&self, parent: u32) -> impl Iterator<Item = (u64, u32)> {
        self.children
            .iter()
            .filter(move |((of, _), _)| *of == parent)
            .map(|((_, hash), child)| (*hash, *child))
    }

    /// A word with a tenth of its siblings' requests is no id.
    fn is_heavy(&self, child: u32, all: u32) -> bool {
        let requests = self.nodes[child as usize].requests;
        requests >= HEAVY / 2 && u64::from(requests) * 10 >= u64::from(all)
    }

    fn are_alike(
        &self,
        key: &Key,
        parent: u32,
        rest: &[&Segment],
        form: &impl Fn(u32) -> Option<u64>,
    ) -> bool {
        let all: u32 = self.words_below(parent).map(|(_, child)| self.nodes[child as usize].requests).sum();
        let light = self.words_below(parent).filter(|(_, child)| !self.is_heavy(*child, all));
        let leaf = |child: u32| self.below(key, child, rest);
        let forms: Vec<u64> =
            light.filter_map(|(_, child)| form(self.nodes[leaf(child)? as usize].route?)).collect();
        let Some(first) = forms.first() else { return false };
        forms.len() >= FEWEST_ALIKE && forms.iter().all(|form| form == first)
    }

    fn fold_words(&mut self, parent: u32) {
        let all: u32 = self.words_below(parent).map(|(_, child)| self.nodes[child as usize].requests).sum();
        let light: Vec<(u64, u32)> =
            self.words_below(parent).filter(|(_, child)| !self.is_heavy(*child, all)).collect();
        for (hash, child) in light {
            self.remove(parent, hash, child);
        }
        self.nodes[parent as usize].is_folded = true;
    }

    /// Takes away a word that is no route and has the fewest requests.
    fn forget_one(&mut self, parent: u32) -> Option<()> {
        let strangers = self.words_below(parent).filter(|(_, child)| self.is_stranger(*child));
        let (hash, child) = strangers.min_by_key(|(_, child)| self.nodes[*child as usize].requests)?;
        self.remove(parent, hash, child);
        Some(())
    }

    fn is_stranger(&self, node: u32) -> bool {
        self.nodes[node as usize].routes == 0
    }

    /// Takes away all words that lead to no route: what is left of random paths.
    fn forget_strangers(&mut self) {
        let strangers: Vec<((u32, u64), u32)> = self
            .children
            .iter()
            .filter(|((parent, _), child)| self.is_stranger(**child) && !self.is_stranger(*parent))
            .map(|(key, child)| (*key, *child))
            .collect();
        for ((parent, hash), child) in strangers {
            self.remove(parent, hash, child);
        }
    }

    /// A folded word's routes stay in their list, without requests from now on.
    fn remove(&mut self, parent: u32, hash: u64, child: u32) {
        let routes = self.nodes[child as usize].routes;
        self.count_routes(child, |count| count.saturating_sub(routes));
        // What is below no longer counts for those above.
        self.nodes[child as usize].parent = NONE;
        if let Entry::Occupied(entry) = self.children.entry((parent, hash)) {
            entry.remove();
            self.nodes[parent as usize].words -= 1;
        }
        let below: Vec<(u64, u32)> = self.words_below(child).collect();
        for (hash, of) in below {
            self.remove(child, hash, of);
        }
        let any = std::mem::replace(&mut self.nodes[child as usize].any, [NONE; 4]);
        for of in any.into_iter().filter(|of| *of != NONE) {
            self.remove(child, 0, of);
        }
        self.nodes[child as usize].route = None;
        self.free.push(child);
    }

    /// The segments of a node's path. `None`: no longer in the tree.
    pub(crate) fn segments(&self, mut node: u32, route: u32) -> Option<Vec<Segment>> {
        if self.nodes[node as usize].route != Some(route) {
            return None;
        }
        let mut segments = Vec::new();
        while self.nodes[node as usize].parent != NONE {
            segments.push(self.nodes[node as usize].segment.clone());
            node = self.nodes[node as usize].parent;
        }
        segments.reverse();
        Some(segments)
    }

    /// The segments of a path that stand for {word} in the route of `node`, with a slash between them; empty if it has none.
    pub(crate) fn words(&self, mut node: u32, path: &[u8]) -> Box<[u8]> {
        let mut words: Vec<u8> = Vec::new();
        for segment in path.rsplit(|byte| *byte == b'/') {
            let Some(of) = self.nodes.get(node as usize).filter(|of| of.parent != NONE) else { break };
            if of.segment == Segment::Any(Fold::Word) {
                let before = if words.is_empty() { &[][..] } else { b"/" };
                words.splice(..0, segment.iter().chain(before).copied());
            }
            node = of.parent;
        }
        words.into()
    }

    /// Whether five clients have used each word of a path: otherwise it may be one client's secret.
    pub(crate) fn may_be_shown(&self, mut node: u32) -> Vec<bool> {
        let mut may = Vec::new();
        while self.nodes[node as usize].parent != NONE {
            let of = &self.nodes[node as usize];
            may.push(of.clients.count_ones() >= FEWEST_CLIENTS || matches!(of.segment, Segment::Any(_)));
            node = of.parent;
        }
        may.reverse();
        may
    }

    pub(crate) fn bytes(&self) -> usize {
        self.nodes.capacity() * (size_of::<Node>() + LONGEST_WORD) + self.children.capacity() * 32
    }
}

/// Whether a path means what it looks like: nothing is encoded, doubled or relative.
fn is_normal(path: &[u8]) -> bool {
    let is_plain = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~' | b'@' | b',' | b'+')
    };
    path.iter().all(is_plain)
        && path.iter().filter(|byte| **byte == b'/').count() <= DEEPEST
        && !path.windows(2).any(|pair| pair == b"//" || pair == b"/.")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree {
        paths: Paths,
        key: Key,
        nodes: Vec<u32>,
        are_alike: bool,
    }

    impl Tree {
        fn new(are_alike: bool) -> Tree {
            Tree { paths: Paths::new(), key: Key::from_seed(1), nodes: Vec::new(), are_alike }
        }

        fn ask(&mut self, path: &str, client: u64) -> Option<u32> {
            let form = |route: u32| Some(if self.are_alike { 1 } else { u64::from(route) });
            match self.paths.find(&self.key, 0, path.as_bytes(), client, form) {
                Found::Route(route) => Some(route),
                Found::Rest => None,
                Found::Due(node) => {
                    let route = self.nodes.len() as u32;
                    self.nodes.push(node);
                    self.paths.set_route(node, route);
                    Some(route)
                }
            }
        }

        fn label(&self, route: u32) -> Option<String> {
            let segments = self.paths.segments(self.nodes[route as usize], route)?;
            Some(segments.iter().map(|segment| format!("/{}", segment.label())).collect())
        }

        fn asked(&mut self, path: &str) -> String {
            let route = (0..8).filter_map(|client| self.ask(path, client)).last();
            route.and_then(|route| self.label(route)).unwrap_or_default()
        }
    }

    #[test]
    fn ids_are_folded_by_shape_and_words_are_not() {
        let mut tree = Tree::new(true);
        for (path, expected) in [
            ("/", "/"),
            ("/api/items/17", "/api/items/{id}"),
            ("/api/items/17/parts", "/api/items/{id}/parts"),
            ("/users/me", "/users/me"),
            ("/users/81", "/users/{id}"),
            ("/o/6ba7b810-9dad-11d1-80b4-00c04fd430c8", "/o/{uuid}"),
            ("/c/9f86d081884c7d65", "/c/{hash}"),
            ("/v2/prices", "/v2/prices"),
            ("/a/", "/a/"),
            ("/a/%6de", ""),
            ("/a//b", ""),
            ("/a/../b", ""),
        ] {
            assert_eq!(tree.asked(path), expected, "{path}");
        }
    }

    #[test]
    fn many_words_that_behave_alike_are_folded_and_a_heavy_one_stays() {
        let mut tree = Tree::new(true);
        for round in 0..40 {
            for item in 0..80_u64 {
                let word = format!("/items/{}", ["shoe", "hat", "coat", "sock"][(item % 4) as usize]);
                let word = format!("{word}-{}x", (b'a' + (item / 4) as u8) as char);
                tree.ask(&word, round);
                tree.ask(&format!("{word}/parts/{item}"), round);
                if item % 4 == 0 {
                    tree.ask("/items/new", round);
                }
            }
        }
        assert_eq!(tree.asked("/items/coat-zx"), "/items/{word}");
        assert_eq!(tree.asked("/items/new"), "/items/new");
        assert_eq!(tree.asked("/items/hat-cx/parts/4"), "/items/{word}/parts/{id}");
        let route = tree.ask("/items/hat-cx/parts/4", 1).expect("it is a route");
        let words = |path: &str| tree.paths.words(tree.nodes[route as usize], path.as_bytes());
        assert_eq!(&*words("/items/hat-cx/parts/4"), b"hat-cx");
        let new = tree.ask("/items/new", 1).expect("it is a route");
        assert!(tree.paths.words(tree.nodes[new as usize], b"/items/new").is_empty());
    }

    #[test]
    fn words_in_the_middle_of_paths_are_folded_too() {
        let mut tree = Tree::new(true);
        for round in 0..20 {
            for item in 0..60_u8 {
                let slug = format!("{}-{}-post", (b'a' + item % 20) as char, (b'a' + item / 20) as char);
                tree.ask(&format!("/posts/{slug}/"), round);
                tree.ask(&format!("/posts/{slug}/raw/"), round);
            }
        }
        assert_eq!(tree.asked("/posts/a-b-post/"), "/posts/{word}/");
        assert_eq!(tree.asked("/posts/a-b-post/raw/"), "/posts/{word}/raw/");
    }

    #[test]
    fn random_paths_evict_nothing_that_is_known_and_stay_within_bounds() {
        let mut tree = Tree::new(false);
        let known: Vec<String> = (0..20).map(|number| format!("/api/{}", (b'a' + number) as char)).collect();
        for path in &known {
            tree.asked(path);
        }
        tree.asked("/status");
        for number in 0..200_000_u64 {
            let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let letters: String =
                (0..10).map(|at| (b'a' + (random >> (at * 5)) as u8 % 26) as char).collect();
            tree.ask(&format!("/{}", &letters), number);
            tree.ask(&format!("/api/{}/{}", &letters[..5], &letters[5..]), number);
        }
        assert!(tree.paths.nodes.len() <= MOST_NODES && tree.nodes.len() < 60, "{}", tree.nodes.len());
        for path in known.iter().map(String::as_str).chain(["/status"]) {
            assert_eq!(tree.asked(path), path);
        }
        // A new word waits for its turn among the random ones.
        assert!((0..20).any(|_| (0..20).any(|_| tree.asked("/api/new") == "/api/new")));
    }
}
