//! What differs between an index and a registry.

use std::cmp::Ordering;
use std::sync::Arc;

use super::document::digest;
use super::segment::Label;
use crate::registry::{Definition, Registry};

/// Changes from which an index may be built anew: fewer are always written one by one.
const CHANGES_MIN: usize = 64;

/// What makes an index of one registry that of another.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Update<'a> {
    /// Ids of documents that go.
    pub(super) gone: Vec<&'a str>,
    /// What becomes a document.
    pub(super) new: Vec<&'a Arc<Definition>>,
}

impl<'a> Update<'a> {
    /// What makes an index with documents of these `labels` that of `registry`.
    pub(super) fn of_labels(labels: &'a [Label], registry: &'a Registry) -> Self {
        let assistants = registry.assistants();
        let mut known = vec![false; assistants.len()];
        let mut gone = Vec::new();
        for (id, made_of) in labels {
            match registry.place(id).filter(|place| digest(&assistants[*place]) == *made_of) {
                Some(place) => known[place] = true,
                None => gone.push(id.as_str()),
            }
        }
        let new = assistants.iter().zip(known).filter(|(_, known)| !known).map(|(new, _)| new).collect();
        Self { gone, new }
    }

    /// What makes the index of `old` that of `new`, and the places in `new` of those that stay as they were. Both lists
    /// are in the order of names and ids; another order costs time only.
    pub(super) fn between(old: &'a [Arc<Definition>], new: &'a [Arc<Definition>]) -> (Self, Vec<Option<usize>>) {
        let mut update = Self::default();
        let mut moves = vec![None; old.len()];
        let (mut at, mut place) = (0, 0);
        loop {
            let order = match (old.get(at), new.get(place)) {
                (None, None) => return (update, moves),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) if Arc::ptr_eq(old, new) => Ordering::Equal,
                (Some(old), Some(new)) => old.name.cmp(&new.name).then_with(|| old.id.cmp(&new.id)),
            };
            let same = order.is_eq() && (Arc::ptr_eq(&old[at], &new[place]) || digest(&old[at]) == digest(&new[place]));
            if same {
                moves[at] = Some(place);
            } else {
                update.gone.extend(old.get(at).filter(|_| order.is_le()).map(|gone| gone.id.as_str()));
                update.new.extend(new.get(place).filter(|_| order.is_ge()));
            }
            at += usize::from(order.is_le());
            place += usize::from(order.is_ge());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.new.is_empty()
    }

    /// Whether it is as much work as building the index of `registry` anew.
    pub(super) fn is_all(&self, registry: &Registry) -> bool {
        self.gone.len() + self.new.len() > registry.assistants().len() / 2 + CHANGES_MIN
    }
}
