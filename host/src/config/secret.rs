//! Keys, which nothing shows.

use std::fmt;
use std::path::Path;

/// The longest key, bytes.
const KEY_BYTES_MAX: u64 = 16 * 1024;

/// A key of a provider. No text of it is a text of its content, and it has no serialised form.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a key, without the space around it; none if nothing is left.
    #[must_use]
    pub fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(key.to_owned()))
    }

    /// The key itself, for the one header that it belongs in.
    #[cfg_attr(
        not(any(feature = "network-models", feature = "cli")),
        expect(dead_code, reason = "only network models send keys")
    )]
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// Reads a key from a file that only its owner may read.
///
/// # Errors
/// A text that says what is wrong and what to do, to follow the name of the setting.
pub fn read_key_file(path: &Path) -> Result<Secret, String> {
    let shown = path.display();
    let cannot = |error: std::io::Error| format!("names {shown}, which cannot be read: {error}");
    let metadata = std::fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() || metadata.len() > KEY_BYTES_MAX {
        return Err(format!("names {shown}, which is no file of at most {KEY_BYTES_MAX} bytes"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(format!("names {shown}, which others may read (mode {mode:04o}): run `chmod 600 {shown}`"));
        }
    }
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    Secret::new(&text).ok_or_else(|| format!("names {shown}, which is empty: write the key into it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_shows_a_key() {
        let key = Secret::new(" sk-1 \n").expect("a key");
        assert_eq!((format!("{key:?}"), key.to_string()), ("[key]".into(), "[key]".into()));
        assert_eq!(key.0, "sk-1");
        assert_eq!(Secret::new(" \n"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_key_file_is_its_owners_and_not_empty() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("assistant-host-key-{}", std::process::id()));
        let check = |content: &str, mode: u32, want: Result<&str, &str>| {
            std::fs::write(&path, content).expect("writes");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("sets the mode");
            let got = read_key_file(&path).map(|key| key.0);
            let want = want.map(str::to_owned).map_err(|text| text.replace("PATH", &path.display().to_string()));
            assert_eq!(got, want);
        };
        check("sk-2\n", 0o600, Ok("sk-2"));
        check("sk-2\n", 0o400, Ok("sk-2"));
        check("sk-2", 0o644, Err("names PATH, which others may read (mode 0644): run `chmod 600 PATH`"));
        check("\n", 0o600, Err("names PATH, which is empty: write the key into it"));
        std::fs::remove_file(&path).expect("removes");
        let missing = read_key_file(&path).expect_err("refused");
        assert!(missing.contains("which cannot be read"), "{missing}");
    }
}
