//! The hosts that are broken on purpose (`tests/mutants/run.sh`) can still be built from the sources as they are.

use std::path::Path;

/// What stands where each hunk of a patch begins, before it: whole lines.
fn before(patch: &str) -> Vec<(String, String)> {
    let (mut file, mut hunks) = (String::new(), Vec::new());
    for line in patch.lines() {
        if let Some(name) = line.strip_prefix("--- a/") {
            file = name.to_owned();
        } else if line.starts_with("@@") {
            hunks.push((file.clone(), String::new()));
        } else if let (Some((_, text)), Some(kept)) =
            (hunks.last_mut(), line.strip_prefix(' ').or(line.strip_prefix('-')))
            && !line.starts_with("---")
        {
            text.push_str(kept);
            text.push('\n');
        }
    }
    hunks
}

#[test]
fn each_patch_fits_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut patches = 0;
    for entry in std::fs::read_dir(root.join("tests/mutants")).expect("the mutants").flatten() {
        if entry.path().extension().is_none_or(|ending| ending != "patch") {
            continue;
        }
        patches += 1;
        let hunks = before(&std::fs::read_to_string(entry.path()).expect("a patch"));
        assert!(!hunks.is_empty(), "{} changes nothing", entry.path().display());
        for (file, text) in hunks {
            let source = std::fs::read_to_string(root.join(&file)).expect("a source");
            assert!(source.contains(&text), "{} does not fit {file} any more: make it anew", entry.path().display());
        }
    }
    assert_eq!(patches, 3);
}
