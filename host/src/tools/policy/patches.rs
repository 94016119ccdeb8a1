//! Files that a patch is about, by its headers: those of `apply_patch` and those of `diff -u` and git.

/// What stands before a path in a line of a patch.
const HEADERS: &[&str] = &[
    "*** Add File:",
    "*** Update File:",
    "*** Delete File:",
    "*** Move to:",
    "--- ",
    "+++ ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
];

/// Every path in the headers of `patch`, without the `a/` or `b/` that git puts before it. A line of the content that
/// looks like a header counts as one: what is changed may be more than is told, never less.
pub(super) fn files(patch: &str) -> Vec<String> {
    let header = |line: &str| HEADERS.iter().find_map(|header| line.strip_prefix(header)).map(path);
    let named = patch.lines().filter_map(|line| header(line.trim_start()));
    named.filter(|path| !path.is_empty() && path != "/dev/null").collect()
}

fn path(rest: &str) -> String {
    // Behind a tab `diff` writes the time.
    let path = rest.split('\t').next().unwrap_or(rest).trim();
    let path = path.strip_prefix('"').and_then(|path| path.strip_suffix('"')).unwrap_or(path);
    path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_patches() {
        let check = |patch: &str, want: &[&str]| assert_eq!(files(patch), want, "{patch}");
        check("*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n*** End Patch", &["src/a.rs"]);
        check("*** Add File: a\n+x\n*** Delete File: b\n*** Update File: c\n*** Move to: d", &["a", "b", "c", "d"]);
        check("--- a/src/x.rs\t2026-01-01\n+++ b/src/x.rs\n@@ -1 +1 @@\n-a\n+b\n", &["src/x.rs", "src/x.rs"]);
        check("--- /dev/null\n+++ b/new file.txt\n", &["new file.txt"]);
        check("diff --git a/x b/y\nrename from x\nrename to y\n", &["x", "y"]);
        check("--- \"a/x y\"\r\n+++ \"b/x y\"\r\n", &["x y", "x y"]);
        check("  *** Update File: ../x", &["../x"]);
        check("no patch", &[]);
    }
}
