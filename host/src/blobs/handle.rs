//! Handles: what blobs are called where models and people write them.

use std::fmt;
use std::str::FromStr;

/// What a handle begins with.
const MARK: &str = "blob:";
/// Hex digits of the hash that a handle has: few enough to be copied, enough to be the only one of a reader's.
const DIGITS: usize = 16;
/// Hex digits of a whole hash.
const DIGITS_MAX: usize = 64;
/// Handles of one text that count.
const NAMED_MAX: usize = 100;

/// `blob:` and the first 16 hex digits of the SHA-256 of the bytes; more digits mean the same blob.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(String);

/// What is no handle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a handle is `blob:` and at least {DIGITS} hex digits, as blob:0123456789abcdef")]
pub struct NoHandle;

impl Handle {
    pub(super) fn of_hash(hash: &str) -> Self {
        Self(hash.chars().take(DIGITS).collect())
    }

    /// Its hex digits, in lower case.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}{}", self.0)
    }
}

impl FromStr for Handle {
    type Err = NoHandle;

    /// Takes what models and clients make of a handle: `blob:`, `blob://` or nothing before the digits, in any case.
    fn from_str(text: &str) -> Result<Self, NoHandle> {
        let text = text.trim().to_ascii_lowercase();
        let digits = text.strip_prefix(MARK).unwrap_or(&text);
        let digits = digits.strip_prefix("//").unwrap_or(digits);
        let fits = (DIGITS..=DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if fits { Ok(Self(digits.to_owned())) } else { Err(NoHandle) }
    }
}

/// The handles that a text names, each once, the first 100.
pub(crate) fn named_in(text: &str) -> Vec<Handle> {
    let mut found = Vec::new();
    for (at, mark) in text.match_indices(MARK) {
        let behind = &text[at + mark.len()..];
        let behind = behind.strip_prefix("//").unwrap_or(behind);
        let end = behind.bytes().take(DIGITS_MAX + 1).take_while(u8::is_ascii_hexdigit).count();
        if let Ok(handle) = behind[..end].parse::<Handle>()
            && !found.contains(&handle)
        {
            found.push(handle);
            if found.len() == NAMED_MAX {
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_as_it_may_be_written() {
        let check = |text: &str, want: Option<&str>| {
            let read = text.parse::<Handle>().ok().map(|handle| handle.to_string());
            assert_eq!(read.as_deref(), want, "{text:?}");
        };
        let (digits, more) = ("0123456789abcdef", "0123456789abcdef0123");
        let handle = format!("blob:{digits}");
        check(&handle, Some(&handle));
        check(digits, Some(&handle));
        check(&format!(" BLOB://{} \n", digits.to_uppercase()), Some(&handle));
        check(&format!("blob:{more}"), Some(&format!("blob:{more}")));
        check(&"a".repeat(64), Some(&format!("blob:{}", "a".repeat(64))));
        check(&"a".repeat(65), None);
        check("blob:0123456789abcde", None);
        check("blob:0123456789abcdeg", None);
        check("", None);
        check("blob:", None);
        check("blob:é123456789abcdef", None);
    }

    #[test]
    fn a_text_names_handles() {
        let check = |text: &str, want: &[&str]| {
            let found: Vec<String> = named_in(text).iter().map(|handle| handle.digits().to_owned()).collect();
            assert_eq!(found, want, "{text:?}");
        };
        let (one, two) = ("0123456789abcdef", "fedcba9876543210");
        check(&format!("[image/png: blob:{one}], (blob://{two}). blob:{one}"), &[one, two]);
        check(&format!("blob:{one}x blob:{two}"), &[one, two]);
        check("blob:0123 blob: blob:é", &[]);
        check(&format!("blob:{}", "a".repeat(65)), &[]);
        check("", &[]);
        let many: String = (0..200).map(|n| format!("blob:{n:016x} ")).collect();
        assert_eq!(named_in(&many).len(), NAMED_MAX);
    }
}
