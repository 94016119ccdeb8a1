//! Where the socket is: a place that only this user can come to, and that a socket's address has room for.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use super::super::folder::Folder;

/// The longest path of a socket, in bytes: the least that any system has, its end left out.
const PATH_BYTES_MAX: usize = 103;
/// Its name.
const NAME: &str = "bridge.sock";
/// Where a folder is made when the one that is given has too long a path.
const SHORT: &str = "/tmp";

/// A socket in the file system; it is removed when this is dropped, and a folder that was made for it.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    _folder: Option<Folder>,
}

impl Socket {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // It may be gone already, with the folder of the adapter.
        let _ = fs::remove_file(&self.path);
    }
}

/// Listens in `folder`, or in a new one where its path is too long.
pub(super) fn listen(folder: &Path) -> io::Result<(Socket, UnixListener)> {
    let path = folder.join(NAME);
    let socket = if path.as_os_str().len() <= PATH_BYTES_MAX {
        Socket { path, _folder: None }
    } else {
        // What a killed adapter leaves there, a later one removes.
        let folder = Folder::make(Path::new(SHORT))?;
        Socket { path: folder.path().join(NAME), _folder: Some(folder) }
    };
    let listener = UnixListener::bind(&socket.path)?;
    fs::set_permissions(&socket.path, Permissions::from_mode(0o600))?;
    Ok((socket, listener))
}

/// What a configuration in JSON can hold.
pub(super) fn text(name: &OsStr) -> io::Result<String> {
    let text = name.to_str().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is no text that a configuration can hold", name.display()),
        )
    })?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("is there").mode() & 0o777
    }

    #[tokio::test]
    async fn a_socket_is_private_wherever_it_is_and_leaves_nothing() {
        let temporary = tempfile::tempdir().expect("a folder");
        let (short, long) = (temporary.path().to_owned(), temporary.path().join("x".repeat(100)));
        fs::create_dir(&long).expect("a folder");
        for (folder, own) in [(short, false), (long, true)] {
            let (socket, listener) = listen(&folder).expect("listens");
            assert_eq!(mode(socket.path()), 0o600);
            assert!(socket.path().as_os_str().len() <= PATH_BYTES_MAX);
            let made = socket.path().parent().expect("in a folder").to_owned();
            assert_eq!(made != folder, own);
            if own {
                assert_eq!(mode(&made), 0o700);
            }
            let path = socket.path().to_owned();
            drop((socket, listener));
            assert!(!path.exists() && made.exists() != own);
        }
    }
}
