//! Moves the pipes away from descriptors 0 and 1, without unsafe code.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as Socket;

use rustix::fs::{FileType, Mode, OFlags, fstat, open as open_file};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdin, dup2_stdout};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::Pipes;
use super::threads::{self, Written};

/// The least number of a kept descriptor: above those that programs think of as theirs.
const KEPT_FD_MIN: i32 = 10;

/// The pipes, out of the way of everything that takes 0 and 1 for stdin and stdout.
pub(crate) struct Kept {
    read: OwnedFd,
    write: OwnedFd,
}

/// Keeps the pipes under other numbers; from here on stdout is stderr and stdin is empty.
pub(crate) fn keep() -> io::Result<Kept> {
    let read = fcntl_dupfd_cloexec(io::stdin().as_fd(), KEPT_FD_MIN)?;
    let write = fcntl_dupfd_cloexec(io::stdout().as_fd(), KEPT_FD_MIN)?;
    dup2_stdout(io::stderr().as_fd())?;
    dup2_stdin(open_file("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)?;
    Ok(Kept { read, write })
}

/// Opens the pipes, inside the runtime that will use them.
pub(crate) fn open(kept: Kept) -> io::Result<Pipes> {
    let reader: Box<dyn AsyncRead + Send + Unpin> = match kind(&kept.read)? {
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(kept.read)?),
        FileType::Socket => Box::new(socket(kept.read)?),
        _ => Box::new(threads::reader(File::from(kept.read))?),
    };
    let (writer, written): (Box<dyn AsyncWrite + Send + Unpin>, _) = match kind(&kept.write)? {
        FileType::Fifo => (Box::new(pipe::Sender::from_owned_fd(kept.write)?), Written::at_once()),
        FileType::Socket => (Box::new(socket(kept.write)?), Written::at_once()),
        _ => {
            let (writer, written) = threads::writer(File::from(kept.write))?;
            (Box::new(writer), written)
        }
    };
    Ok(Pipes { reader, writer, written })
}

fn kind(fd: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(fstat(fd)?.st_mode))
}

/// A socket that the host gave as a pipe, as some languages do.
fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = Socket::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
