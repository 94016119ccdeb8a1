//! `export`: assistants as files that read the same. It reads the files and the database, and takes no lock.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::open::Setting;
use super::show::find;
use super::{FAILED, Failure, Places, USAGE, counted, say, talk};
use crate::registry::write::{Written, write};
use crate::registry::{Definition, Source};
use crate::text::one_line;
use crate::whole::{self, Mode};

#[derive(Args)]
pub(super) struct ExportArgs {
    /// Their ids or names
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,
    /// All that there are
    #[arg(long)]
    all: bool,
    /// Only those from here, with --all
    #[arg(long, value_name = "WHERE", value_parser = super::sources(), requires = "all")]
    source: Option<Source>,
    /// The folder for the files, one each; `-` or nothing prints a single one
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Write over files that are there
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What became of one.
struct Exported {
    definition: Arc<Definition>,
    /// The file, or why there is none.
    file: Result<PathBuf, String>,
}

pub(super) fn export(places: &Places, args: &ExportArgs) -> Result<u8, Failure> {
    let setting = Setting::read(places)?;
    let registry = setting.registry();
    let wanted: Vec<Arc<Definition>> = match args.all {
        true => registry
            .assistants()
            .iter()
            .filter(|one| args.source.is_none_or(|from| from == one.source))
            .cloned()
            .collect(),
        false => args.ids.iter().map(|id| find(&registry, id).cloned()).collect::<Result<_, _>>()?,
    };
    if wanted.is_empty() {
        return Err(Failure::new(FAILED, format!("there are no assistants to export; {}", setting.where_read())));
    }
    let folder = args.to.as_deref().filter(|folder| *folder != Path::new("-"));
    let Some(folder) = folder else {
        let [one] = wanted.as_slice() else {
            let message = format!("{} assistants do not fit into one file; name a folder with --to DIR", wanted.len());
            return Err(Failure::new(USAGE, message));
        };
        let written = write(one).map_err(|error| Failure::new(FAILED, error))?;
        tell_blanks(one, &written);
        // The text ends with its own line end.
        say(written.text.trim_end_matches('\n'));
        return Ok(0);
    };
    folder_for_files(folder)?;
    let exported: Vec<Exported> = wanted
        .into_iter()
        .map(|definition| Exported { file: to_file(&definition, folder, args.force), definition })
        .collect();
    let kept = keep_files(folder);
    tell(&exported, folder, args.json);
    kept?;
    Ok(if exported.iter().all(|one| one.file.is_ok()) { 0 } else { FAILED })
}

fn to_file(definition: &Definition, folder: &Path, force: bool) -> Result<PathBuf, String> {
    let written = write(definition).map_err(|error| error.to_string())?;
    tell_blanks(definition, &written);
    let path = folder.join(&written.file);
    put_file(&path, &written.text, force)?;
    Ok(path)
}

/// Writes a file as a whole or not at all; over one that is there only by `force`.
pub(super) fn put_file(path: &Path, text: &str, force: bool) -> Result<(), String> {
    let put = match (force, path.symlink_metadata()) {
        // Who may read and write it is none of what is written over.
        (true, Ok(there)) if there.is_file() => whole::put(path, text, Mode::Like(there.permissions()), || Ok(())),
        (true, _) => whole::put(path, text, Mode::Usual, || Ok(())),
        (false, _) => whole::put_new(path, text),
    };
    put.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => format!("{} is there already; nothing was written over it", path.display()),
        _ => format!("{} could not be written: {error}", path.display()),
    })
}

/// The folder for files that [`put_file`] writes: made where there is none, and without what killed commands left.
pub(super) fn folder_for_files(folder: &Path) -> Result<(), Failure> {
    let made = fs::create_dir_all(folder).and_then(|()| whole::tidy(folder));
    let words = |error| format!("the folder {} can be neither made nor used: {error}", folder.display());
    made.map(drop).map_err(|error| Failure::new(FAILED, words(error)))
}

/// Makes the files last that were written; they are told before a failure is.
pub(super) fn keep_files(folder: &Path) -> Result<(), Failure> {
    let words =
        |error| format!("the files in {} are written, but may not outlive a power loss: {error}", folder.display());
    whole::keep(folder).map_err(|error| Failure::new(FAILED, words(error)))
}

/// What a file does not keep.
fn tell_blanks(definition: &Definition, written: &Written) {
    if !written.blanks.is_empty() {
        talk(&format!(
            "`{}`: blanks around or within its {} differ in the file",
            definition.id,
            written.blanks.join(", ")
        ));
    }
}

fn tell(exported: &[Exported], folder: &Path, as_json: bool) {
    let failed = exported.iter().filter(|one| one.file.is_err()).count();
    if as_json {
        let one = |one: &Exported| match &one.file {
            Ok(path) => json!({ "assistant_id": one.definition.id, "path": path }),
            Err(error) => json!({ "assistant_id": one.definition.id, "error": error }),
        };
        let items: Vec<_> = exported.iter().map(one).collect();
        say(&json!({ "items": items, "totals": { "written": exported.len() - failed, "failed": failed } }).to_string());
        return;
    }
    for one in exported {
        match &one.file {
            Ok(path) => say(&path.display().to_string()),
            Err(error) => talk(&format!("not exported: {}", one_line(error))),
        }
    }
    let written = counted(exported.len() - failed, "file");
    talk(&format!("{written} written to {}, {failed} not", folder.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_is_written_over_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.md");
        put_file(&path, "usual", false).expect("written");
        for mode in [0o600, 0o640, 0o444] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            put_file(&path, "private", true).expect("written");
            assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, mode);
        }
        assert_eq!(
            put_file(&path, "again", false),
            Err(format!("{} is there already; nothing was written over it", path.display()))
        );
        assert_eq!(fs::read_to_string(&path).expect("a file"), "private");
    }
}
