//! Variables that a configuration makes out of others: each kind is a file below, listed in `makings!`.
//!
//! Plain data. What one reads may be made itself; what it comes to in the end is for [`reads`] to say, which every judgement about
//! who may share an answer has to ask. Before: `template`; next: `features/made`, which declares them; `millstream-server`'s
//! `made`, which evaluates them.

pub mod map;
pub mod geo;
pub mod split_clients;

use crate::source::Span;
use crate::template::{MadeId, Template, Variable};

/// A made variable.
#[derive(Debug)]
pub struct Made {
    /// Its name without the dollar, as written.
    pub name: Box<str>,
    /// Where it is declared.
    pub span: Span,
    /// Whether it is made anew every time that it is read, and not once for each request.
    pub volatile: bool,
    /// How it is made; nothing where that could not be read.
    pub making: Option<Making>,
}

macro_rules! makings {
    ($($(#[$doc:meta])* $module:ident $kind:ident,)*) => {
        /// The ways to make a variable.
        #[derive(Debug)]
        pub enum Making { $($(#[$doc])* $kind($module::$kind),)* }

        $(impl From<$module::$kind> for Making {
            fn from(own: $module::$kind) -> Making {
                Making::$kind(own)
            }
        })*

        impl Making {
            /// What it is made of in any case: what is looked up, or hashed.
            pub fn source(&self) -> Option<&Template> {
                match self { $(Making::$kind(own) => own.source(),)* }
            }

            /// All templates in it, its source included.
            pub fn templates(&self) -> impl Iterator<Item = &Template> {
                let values = match self { $(Making::$kind(own) => own.values(),)* };
                self.source().into_iter().chain(values)
            }
        }
    };
}

makings! {
    /// `map`.
    map Map,
    /// `geo`.
    geo Geo,
    /// `split_clients`.
    split_clients SplitClients,
}

/// The made variable of an id.
pub fn find(made: &[Made], id: MadeId) -> Option<&Made> {
    made.get(usize::from(id.0))
}

/// A variable, and those that it may be made of in the end.
pub fn made_of<'t>(made: &'t [Made], variable: &'t Variable) -> Vec<&'t Variable> {
    let (mut seen, mut all) = (vec![false; made.len()], vec![variable]);
    let mut next = 0;
    while let Some(&variable) = all.get(next) {
        next += 1;
        let Variable::Made(id) = variable else { continue };
        let at = usize::from(id.0);
        if let Some(making) = made.get(at).and_then(|made| made.making.as_ref())
            && !std::mem::replace(&mut seen[at], true)
        {
            all.extend(making.templates().flat_map(Template::variables));
        }
    }
    all
}

/// The variables that a template reads in the end.
pub fn reads<'t>(made: &'t [Made], template: &'t Template) -> Vec<&'t Variable> {
    template.variables().flat_map(|variable| made_of(made, variable)).collect()
}
