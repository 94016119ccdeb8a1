//! Assistants, as many as one wants, as long and as alike as real ones; the same for the same seed.
//!
//! Of its own words, or of the paragraphs of real files, mixed. The assistant of a number does not depend on how many
//! there are.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use assistant_host::registry::{FILE_BYTES_MAX, Source, read_markdown, slug};

use super::collection::Doc;
use super::words::{GLUE, ROLES, SUBJECTS, THINGS, VERBS, any};
use crate::dice::Dice;

/// The most assistants that are made.
pub const ASSISTANTS_MAX: usize = 1_000_000;
/// Real files that are mixed.
const FILES_MAX: usize = 20_000;
/// Files in a folder of [`write`].
const FILES_OF_A_FOLDER: usize = 1_000;
/// Words that an assistant is about, beside those of its name.
const TOPIC_WORDS: u64 = 24;

/// Makes one after the other.
pub struct Assistants {
    seed: u64,
    number: usize,
    ids: HashSet<String>,
    real: Vec<Doc>,
}

impl Assistants {
    /// Of words of its own.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, number: 0, ids: HashSet::new(), real: Vec::new() }
    }

    /// Of the paragraphs of the Markdown files below `folder`.
    ///
    /// # Errors
    /// In words: it cannot be read, or no file in it is an assistant.
    pub fn mixed(seed: u64, folder: &Path) -> Result<Self, String> {
        let told = |error: std::io::Error| format!("{}: {error}", folder.display());
        let mut real = Vec::new();
        for path in markdown(folder).map_err(told)? {
            let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            if let Ok(read) = read_markdown(&bytes, &path, Source::Dir) {
                let (id, name) = (read.id.to_string(), read.name);
                real.push(Doc { id, name, description: read.description, body: read.system_prompt });
            }
        }
        if real.is_empty() {
            return Err(format!("{}: no Markdown file below it is an assistant", folder.display()));
        }
        Ok(Self { real, ..Self::new(seed) })
    }

    fn make(&mut self) -> Doc {
        let mut dice = Dice::new(self.seed, self.number as u64);
        self.number += 1;
        let made = if self.real.is_empty() { of_words(&mut dice) } else { of_paragraphs(&mut dice, &self.real) };
        let mut name = made.name;
        let mut id = slug(&name).unwrap_or_default();
        if id.is_empty() || self.ids.contains(&id) {
            // In front, where an id that is cut to its longest keeps it.
            name = format!("{}-{name}", self.number);
            id = slug(&name).unwrap_or_default();
        }
        self.ids.insert(id.clone());
        Doc { id, name, ..made }
    }
}

impl Iterator for Assistants {
    type Item = Doc;

    fn next(&mut self) -> Option<Doc> {
        (self.number < ASSISTANTS_MAX).then(|| self.make())
    }
}

/// What an assistant of our words is about.
struct Topic {
    words: Vec<String>,
}

impl Topic {
    fn word(&self, dice: &mut Dice) -> String {
        match dice.below(10) {
            0..4 => dice.one(&GLUE).to_owned(),
            4..7 => self.words[dice.place(self.words.len())].clone(),
            _ => any(dice),
        }
    }

    /// A sentence without its dot.
    fn sentence(&self, dice: &mut Dice, first: &str, least: u64, most: u64) -> String {
        let mut text = first.to_owned();
        for _ in 0..dice.between(least, most) {
            text.push(' ');
            text.push_str(&self.word(dice));
        }
        capital(&text)
    }
}

fn of_words(dice: &mut Dice) -> Doc {
    let (subject, role) = (dice.one(&SUBJECTS), dice.one(&ROLES));
    let other = if dice.percent(60) { dice.one(&SUBJECTS) } else { dice.one(&THINGS) };
    let name = match dice.below(4) {
        0 => format!("{subject}-{role}"),
        1 => capital(&format!("{subject} {other} {role}")),
        2 => format!("{}-{subject}-{role}", dice.one(&VERBS)),
        _ => format!("{subject}-{other}-{role}"),
    };
    let mut words = vec![subject.to_owned(), other.to_owned(), role.to_owned()];
    words.extend((0..TOPIC_WORDS).map(|_| any(dice)));
    let topic = Topic { words };
    let mut description = format!("Use this {role} to {}", dice.one(&VERBS));
    let sentences = dice.between(1, 3);
    for sentence in 0..sentences {
        let first = if sentence == 0 { std::mem::take(&mut description) } else { dice.one(&VERBS).to_owned() };
        description.push_str(&format!(
            "{}{}.",
            if sentence == 0 { "" } else { " " },
            topic.sentence(dice, &first, 6, 16)
        ));
    }
    // Most have some 4 KB, a few three times that.
    let mut length = 600 + dice.below(2_300) + dice.below(2_300) + dice.below(2_300);
    if dice.percent(3) {
        length *= 3;
    }
    let mut body = format!("You are a {role} for {subject} and {other}. ");
    while (body.len() as u64) < length {
        match dice.below(3) {
            0 => body.push_str(&format!("\n\n## {}\n\n", topic.sentence(dice, "", 1, 4).trim())),
            1 => {
                for _ in 0..dice.between(3, 8) {
                    let verb = dice.one(&VERBS);
                    body.push_str(&format!("\n- {}", topic.sentence(dice, verb, 4, 12)));
                }
                body.push('\n');
            }
            _ => {
                let verb = dice.one(&VERBS);
                body.push_str(&format!("{}. ", topic.sentence(dice, verb, 8, 18)));
            }
        }
    }
    Doc { id: String::new(), name, description, body }
}

/// Paragraphs of several, as many as one of them has; name and description of two.
fn of_paragraphs(dice: &mut Dice, real: &[Doc]) -> Doc {
    let (first, second) = (dice.place(real.len()), dice.place(real.len()));
    let length = real[dice.place(real.len())].body.len();
    let start = real[first].name.split(['-', ' ']).next().unwrap_or_default();
    let end = real[second].name.split(['-', ' ']).next_back().unwrap_or_default();
    let mut body = String::new();
    // A prompt that is empty adds nothing: the tries are bounded too.
    for _ in 0..1_000 {
        let paragraphs: Vec<&str> = real[dice.place(real.len())].body.split("\n\n").collect();
        body.push_str(paragraphs[dice.place(paragraphs.len())]);
        body.push_str("\n\n");
        if body.len() >= length {
            break;
        }
    }
    Doc { id: String::new(), name: format!("{start}-{end}"), description: real[first].description.clone(), body }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The Markdown files below `folder`, by path.
fn markdown(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file()
                && path.extension().is_some_and(|ending| ending == "md")
                && entry.metadata()?.len() <= FILE_BYTES_MAX
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files.truncate(FILES_MAX);
    Ok(files)
}

/// An assistant as a file.
#[must_use]
pub fn file(doc: &Doc) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "---\nname: {}\ndescription: {}\ntools: Read, Grep\nmodel: inherit\n---\n{}\n",
        quoted(&doc.name),
        quoted(&doc.description),
        doc.body
    )
}

/// Writes a file for each, a thousand in a folder, below `folder`, which is made. Returns the bytes.
///
/// # Errors
/// The file that cannot be written, in words.
pub fn write(folder: &Path, docs: impl IntoIterator<Item = impl Borrow<Doc>>) -> Result<u64, String> {
    let mut bytes = 0;
    for (number, doc) in docs.into_iter().enumerate() {
        let folder = folder.join(format!("{:04}", number / FILES_OF_A_FOLDER));
        let doc = doc.borrow();
        let path = folder.join(format!("{}.md", doc.id));
        let text = file(doc);
        let written = match number % FILES_OF_A_FOLDER {
            0 => fs::create_dir_all(&folder).and_then(|()| fs::write(&path, &text)),
            _ => fs::write(&path, &text),
        };
        written.map_err(|error| format!("{}: {error}", path.display()))?;
        bytes += text.len() as u64;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use assistant_host::registry::Severity;

    use super::*;

    #[test]
    fn the_same_for_the_same_seed() {
        let make = |seed, count| Assistants::new(seed).take(count).collect::<Vec<_>>();
        let made = make(1, 300);
        assert_eq!(made[..50], make(1, 50)[..]);
        assert_ne!(made[..50], make(2, 50)[..]);
        let ids: HashSet<_> = made.iter().map(|doc| doc.id.as_str()).collect();
        assert_eq!(ids.len(), made.len());
        let mean = made.iter().map(|doc| doc.body.len()).sum::<usize>() / made.len();
        assert!((3_000..6_000).contains(&mean), "{mean}");
    }

    #[test]
    fn a_file_reads_as_what_was_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let made: Vec<Doc> = Assistants::new(3).take(20).collect();
        write(folder.path(), &made).expect("files");
        let check = |made: &[Doc]| {
            for doc in made {
                let path = PathBuf::from(format!("{}.md", doc.id));
                let read = read_markdown(file(doc).as_bytes(), &path, Source::Dir).expect("an assistant");
                let repaired = read.warnings.iter().any(|warning| warning.severity != Severity::Info);
                let read = (read.id.to_string(), read.name, read.description, repaired);
                assert_eq!(read, (doc.id.clone(), doc.name.clone(), doc.description.clone(), false));
            }
        };
        check(&made);
        let mixed = |seed| Assistants::mixed(seed, folder.path()).expect("files").take(10).collect::<Vec<_>>();
        assert_eq!(mixed(1), mixed(1));
        assert_ne!(mixed(1), mixed(2));
        check(&mixed(1));
        let empty = tempfile::tempdir().expect("a folder");
        assert!(Assistants::mixed(1, empty.path()).is_err());
    }
}
