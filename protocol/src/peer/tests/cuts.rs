//! A pipe that cuts and delays what goes through it, at places that a test chooses.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::super::millis;

/// What happens to one read or write.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cut {
    /// At most so many bytes go through.
    Bytes(usize),
    /// Nothing does, for so many milliseconds.
    Wait(u64),
}

/// One half of a pipe; its cuts come again and again in turn. At least one of them lets bytes through.
pub(super) struct Cuts<P> {
    pipe: P,
    cuts: Vec<Cut>,
    at: usize,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<P> Cuts<P> {
    pub(super) fn new(pipe: P, cuts: &[Cut]) -> Self {
        Self { pipe, cuts: cuts.to_vec(), at: 0, waiting: None }
    }

    /// How many bytes may go through now.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
                self.at += 1;
            }
            match self.cuts[self.at % self.cuts.len()] {
                Cut::Bytes(bytes) => return Poll::Ready(bytes.max(1)),
                Cut::Wait(ms) => self.waiting = Some(Box::pin(sleep(millis(ms)))),
            }
        }
    }
}

impl<P: AsyncRead + Unpin> AsyncRead for Cuts<P> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let bytes = ready!(self.poll_bytes(cx));
        let mut part = vec![0; bytes.min(into.remaining())];
        let mut part = ReadBuf::new(&mut part);
        ready!(pin!(&mut self.pipe).poll_read(cx, &mut part))?;
        into.put_slice(part.filled());
        self.at += 1;
        Poll::Ready(Ok(()))
    }
}

impl<P: AsyncWrite + Unpin> AsyncWrite for Cuts<P> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let most = ready!(self.poll_bytes(cx)).min(bytes.len());
        let written = ready!(pin!(&mut self.pipe).poll_write(cx, &bytes[..most]))?;
        self.at += 1;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        pin!(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        pin!(&mut self.pipe).poll_shutdown(cx)
    }
}
