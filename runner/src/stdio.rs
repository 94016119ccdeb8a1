//! The pipes to the host, kept clean: whatever prints to stdout, here or in a child, ends up on stderr, and no child
//! inherits the pipes.
//!
//! Pipes and sockets are polled. Whatever else stdin and stdout are (files, terminals, everything on Windows) is read
//! and written by a thread each. `tokio::io::stdin` would cost a hop to a thread for each read of a pipe, too.

use tokio::io::{AsyncRead, AsyncWrite};

mod threads;

#[cfg(unix)]
#[path = "stdio/unix.rs"]
mod platform;

#[cfg(not(unix))]
#[path = "stdio/other.rs"]
mod platform;

pub(crate) use platform::{keep, open};
use threads::Written;

/// What the host writes.
pub(crate) type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// What the host reads.
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The two ends of the link.
pub(crate) struct Pipes {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    /// To be waited for when `writer` is dropped.
    pub(crate) written: Written,
}
