//! One thread that reads and one that writes what cannot be polled, each over a bounded channel.

use std::io::{self, Read, Write};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Bytes that are read or written at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks between a thread and the runtime.
const CHUNKS: usize = 4;
/// How long the end of the program waits for the last bytes to be written, in milliseconds.
const WRITTEN_MS: u64 = 1_000;

/// Tells when everything is written.
pub(crate) struct Written(Option<oneshot::Receiver<()>>);

impl Written {
    /// There is no thread in between: what is written is written.
    #[cfg(unix)]
    pub(crate) fn at_once() -> Self {
        Self(None)
    }

    /// Waits, with a bound, until the thread has written all; to be called when the writer is dropped.
    pub(crate) async fn wait(self) {
        if let Self(Some(done)) = self {
            // Late or gone: either way there is no more to wait for.
            let _ = timeout(Duration::from_millis(WRITTEN_MS), done).await;
        }
    }
}

/// Reads `from` by a thread of its own. The thread is not waited for: it may hang in a read for ever.
pub(crate) fn reader(mut from: impl Read + Send + 'static) -> io::Result<DuplexStream> {
    let (chunks, mut read) = mpsc::channel::<Vec<u8>>(CHUNKS);
    thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match from.read(&mut chunk) {
                Ok(0) => return,
                Ok(bytes) if chunks.blocking_send(chunk[..bytes].to_vec()).is_ok() => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The runtime is gone, or the input is broken, which is its end.
                Ok(_) | Err(_) => return,
            }
        }
    })?;
    let (near, mut far) = duplex(CHUNK_BYTES);
    tokio::spawn(async move {
        while let Some(chunk) = read.recv().await {
            if far.write_all(&chunk).await.is_err() {
                return;
            }
        }
    });
    Ok(near)
}

/// Writes `to` by a thread of its own. When writing fails, so does the pipe that is given back.
pub(crate) fn writer(mut to: impl Write + Send + 'static) -> io::Result<(DuplexStream, Written)> {
    let (chunks, mut written) = mpsc::channel::<Vec<u8>>(CHUNKS);
    let (done, all_written) = oneshot::channel();
    thread::Builder::new().name("stdout".to_owned()).spawn(move || {
        while let Some(chunk) = written.blocking_recv() {
            if to.write_all(&chunk).and_then(|()| to.flush()).is_err() {
                break;
            }
        }
        // Nobody may wait for it.
        let _ = done.send(());
    })?;
    let (near, mut far) = duplex(CHUNK_BYTES);
    tokio::spawn(async move {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(bytes @ 1..) = far.read(&mut chunk).await {
            if chunks.send(chunk[..bytes].to_vec()).await.is_err() {
                return;
            }
        }
    });
    Ok((near, Written(Some(all_written))))
}
