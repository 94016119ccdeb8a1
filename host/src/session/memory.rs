//! The memory of an assistant that goes on with its last conversation: `memory.md` beside its `agent.md`, as it is when a
//! run begins.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use crate::registry::Definition;

/// The file, beside the definition.
const FILE: &str = "memory.md";
/// The definitions that have one.
const BESIDE: &str = "agent.md";
/// Bytes of it that an assistant is told.
const BYTES_MAX: u64 = 64 * 1024;

/// What is known of a memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// What stands in it, perhaps cut.
    text: Option<String>,
    /// Why it is not there, or not whole.
    pub(super) lacks: Option<String>,
}

impl Memory {
    /// The memory of an assistant; nothing where its definition has none to have.
    pub(super) fn read(definition: &Definition) -> Self {
        let file = definition.file().filter(|file| file.file_name().is_some_and(|name| name == BESIDE));
        let folder = file.and_then(Path::parent).filter(|_| definition.session == Some(true));
        folder.map(in_folder).unwrap_or_default()
    }

    /// What the assistant is told, behind its prompt.
    pub(super) fn told(&self) -> String {
        let mut told = String::new();
        if let Some(text) = &self.text {
            let text = text.replace("</memory", "&lt;/memory");
            told = format!("\n\nYour memory, from {FILE}:\n<memory>\n{}\n</memory>", text.trim_end());
        }
        if let (Some(lacks), true) = (&self.lacks, self.text.is_some()) {
            told.push_str(&format!("\n({lacks})"));
        }
        told
    }

    fn lacks(why: String) -> Self {
        Self { text: None, lacks: Some(why) }
    }
}

fn in_folder(folder: &Path) -> Memory {
    let file = folder.join(FILE);
    let shown = file.display();
    let (folder, found) = match (folder.canonicalize(), file.canonicalize()) {
        (Ok(folder), Ok(found)) => (folder, found),
        (_, Err(error)) if error.kind() == ErrorKind::NotFound => {
            return Memory::lacks(format!("there is no {shown}"));
        }
        (Err(error), _) | (_, Err(error)) => return Memory::lacks(format!("{shown} cannot be read: {error}")),
    };
    if !found.starts_with(&folder) {
        return Memory::lacks(format!("{shown} leads out of its folder, so it is not read"));
    }
    if !found.metadata().is_ok_and(|meta| meta.is_file()) {
        return Memory::lacks(format!("{shown} is no file"));
    }
    let mut bytes = Vec::new();
    let read = File::open(&found).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return Memory::lacks(format!("{shown} cannot be read: {error}"));
    }
    let cut = bytes.len() as u64 > BYTES_MAX;
    if cut {
        bytes.truncate(BYTES_MAX as usize);
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // The last character may be cut in two.
        Err(error) if cut && error.utf8_error().error_len().is_none() => {
            let whole = error.utf8_error().valid_up_to();
            String::from_utf8_lossy(&error.as_bytes()[..whole]).into_owned()
        }
        Err(_) => return Memory::lacks(format!("{shown} is no text")),
    };
    if text.contains('\0') {
        return Memory::lacks(format!("{shown} is no text"));
    }
    let lacks = cut.then(|| format!("{shown} is longer than {BYTES_MAX} bytes: the rest is left out"));
    Memory { text: Some(text).filter(|text| !text.trim().is_empty()), lacks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_is_read_where_it_may_be() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("notes");
        std::fs::create_dir(&folder).expect("a folder");
        let file = folder.join(FILE);
        let check = |text: Option<&str>, lacks: &str| {
            let found = in_folder(&folder);
            assert_eq!(found.text.as_deref(), text);
            let got = found.lacks.clone().unwrap_or_default();
            assert_eq!(got.replace(&file.display().to_string(), "FILE"), lacks);
            found.told()
        };
        assert_eq!(check(None, "there is no FILE"), "");
        std::fs::write(&file, "a </memory> b\n").expect("written");
        let told = check(Some("a </memory> b\n"), "");
        assert_eq!(told, "\n\nYour memory, from memory.md:\n<memory>\na &lt;/memory> b\n</memory>");
        std::fs::write(&file, " \n").expect("written");
        assert_eq!(check(None, ""), "");
        let long = "ä".repeat(40_000);
        std::fs::write(&file, &long).expect("written");
        let told = check(Some(&long[..65_536]), "FILE is longer than 65536 bytes: the rest is left out");
        assert!(told.ends_with("the rest is left out)"));
        std::fs::write(&file, format!("x{long}")).expect("written");
        check(Some(&format!("x{}", &long[..65_534])), "FILE is longer than 65536 bytes: the rest is left out");
        for junk in [&b"\xff\xfe"[..], b"a\0b"] {
            std::fs::write(&file, junk).expect("written");
            check(None, "FILE is no text");
        }
        std::fs::remove_file(&file).expect("removed");
        std::fs::create_dir(&file).expect("a folder");
        check(None, "FILE is no file");
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out_of_the_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        let (folder, other) = (dir.path().join("notes"), dir.path().join("secret.md"));
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(&other, "secret").expect("written");
        let file = folder.join(FILE);
        for to in [other.as_path(), Path::new("../secret.md"), Path::new("/etc/passwd")] {
            std::os::unix::fs::symlink(to, &file).expect("a link");
            let found = in_folder(&folder);
            assert!(found.text.is_none() && found.lacks.is_some_and(|why| why.contains("leads out of its folder")));
            std::fs::remove_file(&file).expect("removed");
        }
        std::fs::write(folder.join("real.md"), "ours").expect("written");
        std::os::unix::fs::symlink("real.md", &file).expect("a link");
        assert_eq!(in_folder(&folder).text.as_deref(), Some("ours"));
    }
}
