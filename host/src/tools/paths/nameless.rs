//! What a file is, by whatever name: not known here.

use std::path::Path;

/// There is none.
pub(super) type Identity = std::convert::Infallible;

/// Nothing is known of it.
pub(super) fn of(_: &Path) -> Option<Identity> {
    None
}

/// Nothing is known of it.
pub(super) fn of_target(_: &Path) -> Option<Identity> {
    None
}
