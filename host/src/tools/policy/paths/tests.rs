use super::*;

#[test]
fn paths_without_dots() {
    let check = |path: &str, want: &str| assert_eq!(lexical(Path::new(path)), Path::new(want), "{path}");
    check("/a/./b/../c", "/a/c");
    check("/../../a", "/a");
    check("/a//b/", "/a/b");
}

#[test]
fn long_paths_are_refused() {
    let path = "x".repeat(PATH_BYTES_MAX + 1);
    assert!(Resolved::of(Some(Path::new("/")), &path).is_err_and(|why| why.contains("longer than 4096 bytes")));
}
