//! Where pipes cannot be polled and handles are not inherited by number: nothing to move away, and a thread each.

use std::io;

use super::{Pipes, threads};

/// Nothing needs to be kept.
pub(crate) struct Kept;

/// Does nothing.
pub(crate) fn keep() -> io::Result<Kept> {
    Ok(Kept)
}

/// Opens the pipes, inside the runtime that will use them.
pub(crate) fn open(_: Kept) -> io::Result<Pipes> {
    let reader = threads::reader(io::stdin())?;
    let (writer, written) = threads::writer(io::stdout())?;
    Ok(Pipes { reader: Box::new(reader), writer: Box::new(writer), written })
}
