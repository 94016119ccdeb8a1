//! Files that a patch is about, by its headers: those of `apply_patch`, of `diff` and of git.

/// What stands before a path in a line of a patch, where the path is the rest of the line.
const HEADERS: &[&str] = &[
    "*** Add File:",
    "*** Update File:",
    "*** Delete File:",
    "*** Move to:",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "Index:",
];
/// The same, where the first folder may be left out, as git's `a/`, and the time may stand behind the path.
const FILES: &[&str] = &["--- ", "+++ ", "*** "];
/// What stands for a file that is not there before or behind the change.
const NOTHING: &str = "/dev/null";
/// Lines that begin as a header and are none.
const MARKS: &[&str] = &["*** Begin Patch", "*** End Patch", "*** End of File"];

/// Every path in the headers of `patch`; where it may be meant without its first folder, as `patch -p1` and git do, with
/// and without that. A line of the content that looks like a header counts as one: what is told may be more than is
/// changed, never less.
///
/// # Errors
/// A header cannot be read.
pub(super) fn files(patch: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for line in patch.split(['\n', '\r']) {
        let line = line.trim();
        if MARKS.contains(&line) || is_range(line) {
            continue;
        }
        if let Some(rest) = HEADERS.iter().find_map(|header| line.strip_prefix(header)) {
            found.push(plain(rest)?.to_owned());
        } else if let Some(rest) = FILES.iter().find_map(|header| line.strip_prefix(header)) {
            // Behind a tab `diff` writes the time.
            both(plain(rest.split('\t').next().unwrap_or(rest))?, &mut found);
        } else if let Some(rest) = line.strip_prefix("diff --git ") {
            let (old, new) = pair(rest).ok_or_else(unread)?;
            both(plain(old)?, &mut found);
            both(plain(new)?, &mut found);
        }
    }
    found.retain(|path| !path.is_empty());
    Ok(found)
}

fn unread() -> String {
    "which files its patch changes cannot be told".to_owned()
}

/// The lines of a file that a part of a context diff is about: `*** 1,5 ****`, `--- 1,5 ----`.
fn is_range(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("*** ").or_else(|| line.strip_prefix("--- ")) else { return false };
    let rest = rest.trim_end_matches(['*', '-']).trim_end();
    !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit() || c == ',')
}

/// A path as it stands, or in quotes in which nothing is written otherwise.
fn plain(path: &str) -> Result<&str, String> {
    let path = path.trim();
    match path.strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"').filter(|inner| !inner.contains(['\\', '"'])).ok_or_else(unread),
        None => Ok(path),
    }
}

fn both(path: &str, found: &mut Vec<String>) {
    if path == NOTHING {
        return;
    }
    found.push(path.to_owned());
    found.extend(path.split_once('/').map(|(_, rest)| rest.to_owned()));
}

/// The two paths behind `diff --git`: nothing but a blank is between them, and one may have blanks of its own.
fn pair(rest: &str) -> Option<(&str, &str)> {
    let half = rest.len() / 2;
    let same = |(old, new): &(&str, &str)| {
        let bare = |path: &str| path.get(2..).map(str::to_owned);
        old.len() == new.len() && bare(old) == bare(new)
    };
    let halves = rest.get(..half).zip(rest.get(half..).and_then(|new| new.strip_prefix(' ')));
    halves.filter(same).or_else(|| rest.split_once(' ').filter(|(_, new)| !new.contains(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_patches() {
        let check = |patch: &str, want: &[&str]| {
            assert_eq!(files(patch), Ok(want.iter().map(ToString::to_string).collect()), "{patch}");
        };
        check("*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n*** End of File\n*** End Patch", &["src/a.rs"]);
        check("*** Add File: a/k\n+x\n*** Delete File: b\n*** Update File: c\n*** Move to: d", &["a/k", "b", "c", "d"]);
        check(
            "--- a/src/x.rs\t2026-01-01\n+++ b/src/x.rs\n@@ -1 +1 @@\n-a\n+b\n",
            &["a/src/x.rs", "src/x.rs", "b/src/x.rs", "src/x.rs"],
        );
        check("--- /dev/null\n+++ new file.txt\n", &["new file.txt"]);
        check("--- i/secrets/k\n+++ w/secrets/k", &["i/secrets/k", "secrets/k", "w/secrets/k", "secrets/k"]);
        check("diff --git a/x b/y\nrename from x\nrename to y\n", &["a/x", "x", "b/y", "y", "x", "y"]);
        check("diff --git a/my key b/my key\ndeleted file mode 100644", &["a/my key", "my key", "b/my key", "my key"]);
        check("diff --git k k\nGIT binary patch\nliteral 0", &["k", "k"]);
        check("--- \"a/x y\"\r\n+++ \"b/x y\"\r\n", &["a/x y", "x y", "b/x y", "x y"]);
        check("Index: x\n  *** Update File: ../x", &["x", "../x"]);
        check("*** old.c\t2026\n--- new.c\t2026\n***************\n*** 1,5 ****\n--- 1,5 ----", &["old.c", "new.c"]);
        check("no patch", &[]);
        for patch in ["+++ \"b/\\163ecrets\"", "--- \"x", "diff --git a/x y b/z", "rename to \"a\\tb\"", "diff --git x"]
        {
            assert_eq!(files(patch), Err(unread()), "{patch}");
        }
    }
}
