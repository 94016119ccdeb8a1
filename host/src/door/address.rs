//! Where the socket of a state directory is: in its folder `door`, or, where that path is longer than a socket's may be,
//! in a folder for such files, and then `door/address` tells which.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use interprocess::local_socket::Name;

use crate::host::make_private;
use crate::registry::sha256_hex;

/// The folder of the state directory that only its owner may enter.
pub const FOLDER: &str = "door";
/// The file that tells where the socket is, if not here.
const ELSEWHERE: &str = "address";
/// The longest path of a socket, bytes: macOS has 104 with the end.
const PATH_BYTES_MAX: usize = 100;

/// Where a door is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(PathBuf);

impl Address {
    /// The address under which the host of `state` is to be found, if it has one.
    #[must_use]
    pub fn find(state: &Path) -> Self {
        let near = near(state);
        if fits(&near) {
            return Self(near);
        }
        match std::fs::read_to_string(state.join(FOLDER).join(ELSEWHERE)) {
            Ok(told) => Self(told.trim_end().into()),
            Err(_) => Self(near),
        }
    }

    /// Makes the folder of the socket and tells where it is to be. `run_dir` is a short path for such files.
    ///
    /// # Errors
    /// The system's; a folder that is not ours.
    pub(super) fn make(state: &Path, run_dir: &Path) -> Result<Self> {
        let folder = make_folder(state)?;
        let near = near(state);
        if fits(&near) {
            return Ok(Self(near));
        }
        let far = run_dir.join(format!("assistant-host-{}", platform::user()));
        make_private(&far)?;
        platform::is_private(&far)?;
        let absolute = std::path::absolute(state)?;
        let hash = sha256_hex(absolute.as_os_str().as_encoded_bytes());
        let path = far.join(format!("{}.sock", &hash[..16]));
        if !fits(&path) {
            let message = format!("{} is longer than the {PATH_BYTES_MAX} bytes of a socket's path", path.display());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let whole = folder.join(format!("{ELSEWHERE}.new"));
        std::fs::write(&whole, format!("{}\n", path.display()))?;
        std::fs::rename(whole, folder.join(ELSEWHERE))?;
        Ok(Self(path))
    }

    /// The path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The same for the system.
    ///
    /// # Errors
    /// A path that is none of a socket.
    pub fn name(&self) -> Result<Name<'_>> {
        platform::name(&self.0)
    }
}

/// Makes the folder of the door, which only its owner may enter.
///
/// # Errors
/// The system's.
pub(crate) fn make_folder(state: &Path) -> Result<PathBuf> {
    make_private(state)?;
    let folder = state.join(FOLDER);
    make_private(&folder)?;
    platform::close_to_others(&folder)?;
    Ok(folder)
}

fn near(state: &Path) -> PathBuf {
    platform::near(&state.join(FOLDER))
}

fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= PATH_BYTES_MAX
}

#[cfg(unix)]
mod platform {
    use std::io::{Error, ErrorKind, Result};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::{Path, PathBuf};

    use interprocess::local_socket::{GenericFilePath, Name, ToFsName};

    pub(super) fn near(folder: &Path) -> PathBuf {
        folder.join("host.sock")
    }

    pub(super) fn name(path: &Path) -> Result<Name<'_>> {
        path.to_fs_name::<GenericFilePath>()
    }

    pub(super) fn user() -> String {
        rustix::process::geteuid().as_raw().to_string()
    }

    pub(super) fn close_to_others(folder: &Path) -> Result<()> {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700))
    }

    /// A folder that everyone could have made has to be ours, and ours alone.
    pub(super) fn is_private(folder: &Path) -> Result<()> {
        let found = std::fs::symlink_metadata(folder)?;
        let mine = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0;
        if mine {
            return Ok(());
        }
        let message = format!("{} is not a folder of yours alone; remove it", folder.display());
        Err(Error::new(ErrorKind::PermissionDenied, message))
    }
}

#[cfg(not(unix))]
mod platform {
    use std::io::Result;
    use std::path::{Path, PathBuf};

    use interprocess::local_socket::{GenericFilePath, Name, ToFsName};

    use crate::registry::sha256_hex;

    pub(super) fn near(folder: &Path) -> PathBuf {
        let hash = sha256_hex(folder.as_os_str().as_encoded_bytes());
        PathBuf::from(format!(r"\\.\pipe\assistant-host-{}", &hash[..16]))
    }

    pub(super) fn name(path: &Path) -> Result<Name<'_>> {
        path.to_fs_name::<GenericFilePath>()
    }

    pub(super) fn user() -> String {
        String::new()
    }

    pub(super) fn close_to_others(_: &Path) -> Result<()> {
        Ok(())
    }

    pub(super) fn is_private(_: &Path) -> Result<()> {
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_short_path_is_below_the_state_directory() {
        let dir = tempfile::tempdir().expect("a folder");
        let state = dir.path().join("state");
        let made = Address::make(&state, dir.path()).expect("an address");
        assert_eq!(made.path(), state.join("door/host.sock"));
        assert_eq!(Address::find(&state), made);
        let mode = std::fs::metadata(state.join("door")).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_long_one_is_told_in_a_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let state = dir.path().join("s".repeat(120));
        assert!(!Address::find(&state).path().exists());
        let run = dir.path().join("run");
        let made = Address::make(&state, &run).expect("an address");
        assert!(made.path().starts_with(&run) && fits(made.path()), "{made:?}");
        assert_eq!(Address::find(&state), made);
        let folder = made.path().parent().expect("a folder");
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).expect("a mode");
        let error = Address::make(&state, &run).expect_err("refused").to_string();
        assert!(error.contains("not a folder of yours alone"), "{error}");
    }
}
