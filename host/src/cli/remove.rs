//! `remove`: assistants of the database, and files that are named.

use std::fs;

use clap::Args;
use serde_json::json;

use super::open::Setting;
use super::show::find;
use super::{FAILED, Failure, Places, USAGE, change, say, shown, talk};
use crate::registry::{Definition, Source};

#[derive(Args)]
pub(super) struct RemoveArgs {
    /// Their ids or names
    #[arg(required = true)]
    ids: Vec<String>,
    /// Delete the file of one that is defined in a file
    #[arg(long)]
    file: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn remove(places: &Places, args: &RemoveArgs) -> Result<u8, Failure> {
    let setting = Setting::read(places)?;
    let registry = setting.registry();
    // All are known and may be removed before the first one is.
    let mut wanted: Vec<&Definition> = Vec::new();
    for id in &args.ids {
        let found = find(&registry, id)?;
        if let (Some(path), false) = (found.file(), args.file) {
            let (id, path) = (&found.id, path.display());
            let message = format!("`{id}` is defined in {path}; `remove {id} --file` deletes that file");
            return Err(Failure::new(USAGE, message));
        }
        if !wanted.iter().any(|one| one.id == found.id) {
            wanted.push(found);
        }
    }
    let mut removed = Vec::new();
    for one in wanted {
        let id = &one.id;
        match (one.file(), one.source) {
            (Some(path), _) => {
                let failed = |what: &dyn std::fmt::Display| {
                    Failure::new(FAILED, format!("`{id}` is not removed: {}: {what}", path.display()))
                };
                let file = fs::symlink_metadata(path).map_err(|error| failed(&error))?;
                if !file.is_file() {
                    return Err(failed(&"it is no regular file any more"));
                }
                fs::remove_file(path).map_err(|error| failed(&error))?;
            }
            (None, Source::Database) => {
                if !change::remove(places, id).await? {
                    talk(&format!("`{id}` was removed by someone else meanwhile"));
                    continue;
                }
            }
            (None, Source::Project | Source::User | Source::Dir) => {
                return Err(Failure::new(FAILED, format!("`{id}` is of no file that is known")));
            }
        }
        if !args.json {
            let place = one.place();
            say(&format!("{:<32} {place}", one.id.as_str()));
        }
        removed.push(json!({ "assistant_id": one.id, "source": one.source, "path": one.file().map(shown) }));
        for hidden in registry.shadowed().iter().filter(|hidden| hidden.id == one.id) {
            talk(&format!("`{id}` is now the one of {}, which was hidden", hidden.place()));
        }
    }
    if args.json {
        say(&json!({ "removed": removed }).to_string());
    }
    Ok(0)
}
