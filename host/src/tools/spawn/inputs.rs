//! Files that a caller adds to a task: read when it spawns, below its own folder, so that what becomes of them later
//! changes nothing. A text is in the task; a picture is kept, and in the task by its handle: the model is shown it there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use assistant_protocol::types::Input;
use serde_json::{Map, Value};

use super::choose::Parent;
use crate::blobs::{Blob, is_picture};
use crate::text::cut;
use crate::tools::ToolError;
use crate::tools::paths::{Own, Root};
use crate::tools::policy::{Policy, ToolName, Verdict};

/// Files of one task.
pub(super) const FILES_MAX: usize = 50;
/// Bytes of one of them that is a text.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Bytes of all of them.
const ALL_BYTES_MAX: usize = 1024 * 1024;
/// Faults that one refusal names.
const FAULTS_TOLD_MAX: usize = 10;
/// Characters of a path that are shown.
const PATH_CHARS_MAX: usize = 200;

/// The files of a task.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// As the assistant is told them.
    pub(super) files: Vec<Input>,
    /// Those that are pictures.
    pub(super) pictures: Vec<Blob>,
}

impl Inputs {
    /// The same behind the files that a task had before: each path once, as it is now.
    ///
    /// # Errors
    /// `bad_argument` where they are too many together.
    pub(super) fn behind(mut self, mut earlier: Vec<Input>) -> Result<Self, ToolError> {
        let is_more = !self.files.is_empty();
        earlier.retain(|one| self.files.iter().all(|new| new.path != one.path));
        earlier.append(&mut self.files);
        let texts = earlier.iter().filter(|one| one.picture.is_none());
        let bytes: usize = texts.map(|one| one.content.len()).sum();
        if is_more && (earlier.len() > FILES_MAX || bytes > ALL_BYTES_MAX) {
            let message = format!(
                "`inputs` and the files that the task has already are {} with {bytes} bytes of text; the most \
                 is {FILES_MAX} with {ALL_BYTES_MAX}",
                earlier.len()
            );
            let hint = "Name fewer; those of the task are given again by themselves.";
            return Err(ToolError::bad_argument(message, hint));
        }
        Ok(Self { files: earlier, ..self })
    }
}

/// The files at `paths`, below `base`, each once; its pictures have at most `blob_bytes` together. None of `own` is read.
///
/// # Errors
/// `bad_argument`, which names each path that cannot be given and why.
pub(super) async fn read(
    base: Option<&Path>,
    own: &Own,
    paths: &[String],
    blob_bytes: u64,
) -> Result<Inputs, ToolError> {
    if paths.is_empty() {
        return Ok(Inputs::default());
    }
    if paths.len() > FILES_MAX {
        let message = format!("`inputs` has {} paths, the most is {FILES_MAX}", paths.len());
        return Err(ToolError::bad_argument(message, "Name fewer, or let the assistant read them by itself."));
    }
    let base = base.ok_or_else(|| {
        let hint = "Put what is in the files into `context`.";
        ToolError::bad_argument("`inputs` cannot be used: this host has no project folder", hint)
    })?;
    let (base, own, paths) = (base.to_owned(), own.clone(), paths.to_vec());
    let reading = tokio::task::spawn_blocking(move || read_all(&base, &own, paths, blob_bytes));
    reading.await.map_err(|error| ToolError::internal(&error))?
}

/// Whether a process may give these files away: those that it may read itself, without being asked about it.
///
/// # Errors
/// `not_permitted`, which names the first path that it may not, and the rule.
pub(super) fn may_give(parent: &Parent, paths: &[String], aliases: &BTreeMap<String, String>) -> Result<(), ToolError> {
    const READS: &str = "read_file";
    let folder = parent.row.working_dir.clone().map(PathBuf::from);
    let policy = Policy::of(&parent.definition, aliases).within(folder);
    let refused = |path: &str, why: &str| {
        let message = format!("`inputs` names {}, which you may not read: {why}", cut(path, PATH_CHARS_MAX));
        ToolError::new("not_permitted", message, "Leave it out, and say so.")
    };
    for path in paths {
        if !parent.row.tools.iter().any(|tool| tool == READS) {
            return Err(refused(path, "you have no read_file"));
        }
        let arguments = Map::from_iter([("path".to_owned(), Value::from(path.as_str()))]);
        match policy.judge(ToolName { server: None, tool: READS }, &arguments) {
            Verdict::Allow => {}
            Verdict::Deny { rule } => return Err(refused(path, &rule)),
            Verdict::Ask { why } => return Err(refused(path, &why.to_string())),
        }
    }
    Ok(())
}

fn read_all(base: &Path, own: &Own, paths: Vec<String>, blob_bytes: u64) -> Result<Inputs, ToolError> {
    let gone = |_| ToolError::bad_argument("`inputs` cannot be used: the folder is gone", "Put it into `context`.");
    let root = Root::new(base, own).map_err(gone)?;
    let (mut inputs, mut faults, mut bytes) = (Inputs::default(), Vec::new(), 0);
    for path in paths {
        if inputs.files.iter().any(|known| known.path == path) {
            continue;
        }
        // An absolute path may lead through the same links as the folder's own.
        let within = Path::new(&path).strip_prefix(base).ok().and_then(Path::to_str).unwrap_or(&path);
        let pictures: u64 = inputs.pictures.iter().map(Blob::size).sum();
        match read_one(&root, within, blob_bytes - pictures) {
            Ok(Is::Text(content)) => {
                bytes += content.len();
                inputs.files.push(Input { path, content, picture: None });
            }
            Ok(Is::Picture(picture)) => {
                inputs.files.push(Input { path, content: picture.line("picture"), picture: picture.picture() });
                inputs.pictures.push(picture);
            }
            Err(why) => faults.push(format!("`{}` {why}", crate::text::cut(&path, PATH_CHARS_MAX))),
        }
        if bytes > ALL_BYTES_MAX {
            faults.push(format!("together they have more than {ALL_BYTES_MAX} bytes"));
            break;
        }
    }
    if faults.is_empty() {
        return Ok(inputs);
    }
    let more = faults.len().saturating_sub(FAULTS_TOLD_MAX);
    faults.truncate(FAULTS_TOLD_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let hint = "Name text files and pictures below your folder; what is large the assistant can read by itself.";
    Err(ToolError::bad_argument(format!("`inputs` cannot be given: {}{more}", faults.join("; ")), hint))
}

/// What a file is.
enum Is {
    Text(String),
    Picture(Blob),
}

fn read_one(root: &Root, path: &str, blob_bytes: u64) -> Result<Is, String> {
    if path.trim().is_empty() {
        return Err("is no path".to_owned());
    }
    let found = root.below(path).map_err(|error| error.to_string())?;
    let unreadable = |_| "cannot be read".to_owned();
    let meta = found.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err("is no file".to_owned());
    }
    // It may grow while it is read.
    let (mut file, mut bytes) = (File::open(&found).map_err(unreadable)?, Vec::new());
    file.by_ref().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if is_picture(Blob::new(bytes.clone(), "", None).mime_type()) {
        let rest = (blob_bytes + 1).saturating_sub(bytes.len() as u64);
        file.take(rest).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > blob_bytes {
            return Err(format!("is a picture, and more than {blob_bytes} bytes are too much here"));
        }
        let name = found.file_name().map(|name| name.to_string_lossy());
        return Ok(Is::Picture(Blob::new(bytes, "", name.as_deref())));
    }
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("has more than {FILE_BYTES_MAX} bytes"));
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.map(Is::Text).ok_or_else(|| "is a binary file".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_below_the_folder_only() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a folder").join("project");
        std::fs::create_dir_all(root.join("src")).expect("a folder");
        let write = |name: &str, bytes: &[u8]| std::fs::write(root.join(name), bytes).expect("written");
        write("a.txt", b"A");
        write("src/b.txt", "\u{e4}".as_bytes());
        write("empty", b"");
        write("nul", b"a\0b");
        write("latin", b"\xe4");
        write("full", &vec![b'x'; FILE_BYTES_MAX as usize]);
        write("large", &vec![b'x'; FILE_BYTES_MAX as usize + 1]);
        std::fs::write(root.join("../secret"), "secret").expect("written");
        std::fs::create_dir(root.join("state")).expect("a folder");
        write("state/key", b"very-secret");
        let own = Own::noted(&[root.join("state"), root.join("none")]);
        let absolute = root.join("a.txt").display().to_string();
        let check = |paths: &[&str], want: Result<&[&str], &str>| {
            let got = read_all(&root, &own, paths.iter().map(ToString::to_string).collect(), 300_000);
            let got = got.map(|all| all.files.into_iter().map(|one| one.content).collect::<Vec<_>>());
            let want = want
                .map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())
                .map_err(|why| format!("`inputs` cannot be given: {why}"));
            assert_eq!(got.map_err(|error| error.message), want, "{paths:?}");
        };
        check(&["a.txt", "src/b.txt", "empty"], Ok(&["A", "\u{e4}", ""]));
        check(&["a.txt", "a.txt", "./src/../a.txt", &absolute], Ok(&["A", "A", "A"]));
        check(&["none", "../none"], Err("`none` does not exist; `../none` lies outside of the folder"));
        check(&["../secret"], Err("`../secret` lies outside of the folder"));
        check(&["src/../../secret"], Err("`src/../../secret` lies outside of the folder"));
        check(&["/etc/passwd"], Err("`/etc/passwd` lies outside of the folder"));
        check(&["state/key"], Err("`state/key` is the host's own"));
        check(&["state/none"], Err("`state/none` is the host's own"));
        check(&["src"], Err("`src` is no file"));
        check(&[" "], Err("`` is no path"));
        check(&["nul", "latin"], Err("`nul` is a binary file; `latin` is a binary file"));
        let picture = |bytes: usize| [b"\x89PNG\r\n\x1a\n".as_slice(), &vec![7; bytes - 8]].concat();
        write("small.png", &picture(20));
        write("full.png", &picture(300_000));
        write("large.png", &picture(300_001));
        let line = |name: &str, bytes: usize| Blob::new(picture(bytes), "", Some(name)).line("picture");
        check(&["small.png"], Ok(&[&line("small.png", 20)]));
        check(&["full.png"], Ok(&[&line("full.png", 300_000)]));
        check(&["large.png"], Err("`large.png` is a picture, and more than 300000 bytes are too much here"));
        check(&["small.png", "full.png"], Err("`full.png` is a picture, and more than 299980 bytes are too much here"));
        check(&["large"], Err("`large` has more than 262144 bytes"));
        let names: Vec<String> = (0..5).map(|n| format!("full{n}")).collect();
        names.iter().for_each(|name| write(name, &vec![b'x'; FILE_BYTES_MAX as usize]));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        check(&names, Err("together they have more than 1048576 bytes"));
        let many: Vec<String> = (0..12).map(|n| format!("n{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let told: Vec<String> = many[..10].iter().map(|name| format!("`{name}` does not exist")).collect();
        check(&many, Err(&format!("{}; and 2 more", told.join("; "))));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../secret", root.join("link")).expect("a link");
            std::os::unix::fs::symlink("a.txt", root.join("inner")).expect("a link");
            check(&["inner"], Ok(&["A"]));
            // By another name it is what it was.
            std::fs::hard_link(root.join("state/key"), root.join("hard")).expect("a name");
            check(&["hard"], Ok(&["very-secret"]));
            std::fs::rename(root.join("state"), root.join("moved")).expect("moved");
            check(&["moved/key"], Err("`moved/key` is the host's own"));
            check(&["link"], Err("`link` lies outside of the folder"));
            let by_link = dir.path().join("by-link");
            std::os::unix::fs::symlink(&root, &by_link).expect("a link");
            let through = by_link.join("a.txt").display().to_string();
            let read = read_all(&by_link, &Own::default(), vec![through.clone(), "a.txt".to_owned()], 300_000)
                .expect("two files");
            assert_eq!(read.files.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), [through.as_str(), "a.txt"]);
        }
    }
}
