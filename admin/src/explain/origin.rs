//! Whose purge or unsafe request it was, if the zone is part of a cluster: that of this node, or of another one.

use millstream_cache::{Ruling, Scope};
use millstream_cluster::{Door, What};
use millstream_conf::model::ProxyCache;
use millstream_server::request::Request;

#[derive(Clone, Copy)]
pub(super) struct Origins<'a>(Option<&'a Door>);

impl<'a> Origins<'a> {
    pub(super) fn of(request: &'a Request, cache: &ProxyCache) -> Origins<'a> {
        let door = request.generation.shared.clusters.door(cache.zone.0 as usize);
        Origins(door.map(|door| &**door))
    }

    /// The name of the other node; `None` if it was this one.
    pub(super) fn of_purge(self, ruling: &Ruling) -> Option<String> {
        self.0?.account().node_of(ruling.at, |what| match (&ruling.scope, what) {
            (Scope::All, What::All) => true,
            (Scope::Prefix(known), What::Prefix(prefix)) => **known == **prefix,
            (Scope::Tag(_), What::Tag(_)) | (Scope::Key(_), What::Key(_)) => true,
            (Scope::AllPieces | Scope::Pieces(_), What::Changed { .. }) => true,
            _ => false,
        })
    }

    /// The same of an unsafe request, in milliseconds since 1970.
    pub(super) fn of_change(self, at: i64) -> Option<String> {
        self.0?.account().node_of(at, |what| matches!(what, What::Changed { .. }))
    }
}

/// To be added to a sentence.
pub(super) fn on_node(node: Option<String>) -> String {
    node.map(|node| format!(" on node {node}")).unwrap_or_default()
}
