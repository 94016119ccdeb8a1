//! One call against rules: whether it is what they let pass, and whether it may be what they refuse.

use std::path::Path;

use serde_json::{Map, Value};

use super::entry::{Entry, Style, joined};
use super::glob::{HOLE, INNER_BLANK, matches, may_match};
use super::paths::Resolved;
use super::shell::{Inner, Script, Simple, Wrapped, is_wrapper};
use super::urls::Url;
use super::{ToolName, Verdict, Why, list, subject};
use crate::registry::{Action, Subject, slug};

/// Characters of a command or a path in a message.
const SHOWN_CHARS_MAX: usize = 200;
/// Deepest nesting of commands that run others.
const WRAPPED_MAX: usize = 8;

/// A call that is looked at.
pub(super) struct Calls<'a> {
    pub(super) tool: ToolName<'a>,
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) subject: Option<Subject>,
    pub(super) folder: Option<&'a Path>,
}

/// What rules say of one command, path or address.
struct Said {
    action: Action,
    /// The words for it.
    why: String,
    /// A rule for some calls says so, and not the lack of one.
    named: bool,
}

impl Said {
    fn unnamed(action: Action, why: String) -> Self {
        Self { action, why, named: false }
    }
}

/// What rules say of an item; with a number, only rules that say at least so many of its words.
type Says<'a> = &'a dyn Fn(&Item, usize) -> Said;

/// What a rule is asked about.
pub(super) enum Item {
    Command(Vec<String>),
    Path(Resolved),
    Url(Url),
    Assistant(String),
}

impl Calls<'_> {
    /// Whether the call may be one that the entry is about.
    ///
    /// # Errors
    /// Why that cannot be told.
    pub(super) fn may_be(&self, entry: &Entry) -> Result<bool, String> {
        if entry.patterns.is_empty() {
            return Ok(true);
        }
        let Some(about) = self.subject else { return Err(self.unheld()) };
        if about == Subject::Assistant && subject::assistant(self.arguments)?.is_none() {
            // Whom a search finds is looked at then.
            return Ok(false);
        }
        if entry.patterns.iter().any(String::is_empty) {
            return Err("what stands in its parentheses cannot be read".to_owned());
        }
        if about == Subject::Command {
            let (scripts, _) = subject::command(self.arguments)?;
            let found = scripts.iter().flat_map(|script| &script.commands).any(|simple| may_be_command(entry, simple));
            return Ok(found);
        }
        Ok(self.items(about)?.iter().any(|item| self.may_fit(entry, item)))
    }

    /// Whether the call is one that one of `entries` gives. `writes` are entries that give files to write.
    ///
    /// # Errors
    /// What of it is none, in words that name the rules.
    pub(super) fn are(&self, entries: &[&Entry], writes: &[&Entry]) -> Result<(), String> {
        let about = self.subject.ok_or_else(|| format!("{}, and only {} is given", self.unheld(), list(entries)))?;
        let says = |item: &Item, least: usize| match entries.iter().any(|entry| self.fits(entry, item, least)) {
            true => Said { action: Action::Allow, why: String::new(), named: true },
            false => Said::unnamed(Action::Deny, format!("`{}` does not match any of: {}", shown(item), list(entries))),
        };
        let untold = |why: String| format!("{why}, and only {} is given", list(entries));
        let (action, why) = match about {
            Subject::Command => {
                let (scripts, folder) = subject::command(self.arguments).map_err(untold)?;
                for script in &scripts {
                    self.writes(script, folder.as_deref(), writes).map_err(untold)?;
                }
                commands(&scripts, &says)
            }
            about => worst(self.items(about).map_err(untold)?.iter().map(|item| says(item, 0))),
        };
        if action == Action::Allow { Ok(()) } else { Err(why) }
    }

    /// What the last of `rules` that fits says; of several commands or paths the strictest. Where none fits and one allows
    /// some calls, no other is.
    ///
    /// # Errors
    /// Why the call cannot be told, where that matters.
    pub(super) fn last(&self, rules: &[(&Entry, Action)]) -> Result<Verdict, String> {
        let given = rules.iter().any(|(entry, action)| !entry.patterns.is_empty() && *action == Action::Allow);
        let default = if given { Action::Deny } else { Action::Allow };
        let named: Vec<&Entry> = rules.iter().map(|(entry, _)| *entry).collect();
        let says = |item: &Item, least: usize| {
            // Up to the last that fits for certain: what may fit before that counts where it is stricter.
            let mut said: Option<Said> = None;
            for (entry, action) in rules.iter().rev() {
                let certain = entry.patterns.is_empty() || self.fits(entry, item, least);
                let may = certain || (*action != Action::Allow && self.may_fit(entry, item));
                if may && said.as_ref().is_none_or(|said| rank(*action) > rank(said.action)) {
                    said =
                        Some(Said { action: *action, why: entry.written.clone(), named: !entry.patterns.is_empty() });
                }
                if certain {
                    return said.unwrap_or_else(|| Said::unnamed(*action, entry.written.clone()));
                }
            }
            let lacks = || format!("`{}` does not match any of: {}", shown(item), list(&named));
            match said {
                Some(said) if rank(said.action) >= rank(default) => said,
                Some(_) | None => Said::unnamed(default, lacks()),
            }
        };
        let whole = rules.iter().rev().find(|(entry, _)| entry.patterns.is_empty());
        let patterned = rules.iter().any(|(entry, _)| !entry.patterns.is_empty());
        let (action, rule) = match (patterned, self.subject) {
            (false, _) => {
                whole.map_or((Action::Allow, String::new()), |(entry, action)| (*action, entry.written.clone()))
            }
            (true, None) => return Err(self.unheld()),
            (true, Some(Subject::Command)) => {
                let untold = |why: String| format!("{why}, and it is held to: {}", list(&named));
                let (scripts, folder) = subject::command(self.arguments).map_err(untold)?;
                let open = default == Action::Allow || whole.is_some_and(|(_, action)| *action == Action::Allow);
                for script in scripts.iter().filter(|_| !open) {
                    self.writes(script, folder.as_deref(), &[]).map_err(untold)?;
                }
                commands(&scripts, &says)
            }
            (true, Some(Subject::Assistant)) if subject::assistant(self.arguments)?.is_none() => {
                (Action::Allow, String::new())
            }
            (true, Some(about)) => {
                let untold = |why: String| format!("{why}, and it is held to: {}", list(&named));
                worst(self.items(about).map_err(untold)?.iter().map(|item| says(item, 0)))
            }
        };
        Ok(match action {
            Action::Allow => Verdict::Allow,
            Action::Ask => Verdict::Ask { why: Why::Rule(rule) },
            Action::Deny => Verdict::Deny { rule },
        })
    }

    fn unheld(&self) -> String {
        let server = self.tool.server.map(|server| format!("{server}__")).unwrap_or_default();
        format!("which calls of {server}{} are meant cannot be told", self.tool.tool)
    }

    /// What the call names, for rules about that.
    fn items(&self, about: Subject) -> Result<Vec<Item>, String> {
        match about {
            Subject::ReadPath | Subject::WritePath => {
                let resolved = |path: &String| Ok(Item::Path(Resolved::of(self.folder, path)?));
                subject::paths(self.tool, self.arguments)?.iter().map(resolved).collect()
            }
            Subject::Url => subject::urls(self.arguments)?.iter().map(|url| Ok(Item::Url(Url::read(url)?))).collect(),
            Subject::Assistant => Ok(subject::assistant(self.arguments)?.map(Item::Assistant).into_iter().collect()),
            Subject::Command => Ok(Vec::new()),
        }
    }

    pub(super) fn fits(&self, entry: &Entry, item: &Item, least: usize) -> bool {
        let deep = subject::depth(self.tool).0;
        let any = |fits: &dyn Fn(&str) -> bool| {
            entry.patterns.iter().filter(|pattern| !pattern.is_empty()).any(|one| fits(one))
        };
        match item {
            Item::Command(words) => entry.is_command(words, least),
            Item::Path(path) => any(&|pattern| match entry.style {
                Style::List => path.matches(pattern, deep),
                Style::Text => path.matches_text(pattern, deep),
            }),
            Item::Url(url) => any(&|pattern| url.matches(pattern)),
            Item::Assistant(id) => {
                any(&|pattern| pattern == id || slug(pattern).as_ref() == Some(id) || matches(pattern, id))
            }
        }
    }

    pub(super) fn may_fit(&self, entry: &Entry, item: &Item) -> bool {
        let deep = subject::depth(self.tool).1;
        let any = |fits: &dyn Fn(&str) -> bool| entry.patterns.iter().any(|pattern| fits(pattern));
        match item {
            Item::Command(words) => may_be_words(entry, words),
            Item::Path(path) => any(&|pattern| match entry.style {
                Style::List => path.may_match(pattern, deep),
                Style::Text => path.may_match_text(pattern, deep),
            }),
            Item::Url(url) => any(&|pattern| url.may_match(pattern)),
            Item::Assistant(id) => any(&|pattern| slug(pattern).as_ref() == Some(id) || may_match(pattern, id)),
        }
    }
}

/// What is said of all commands, the strictest.
fn commands(scripts: &[Script], says: Says<'_>) -> (Action, String) {
    worst(
        scripts.iter().flat_map(|script| &script.commands).map(|simple| command(&simple.sets, &simple.words, says, 0)),
    )
}

/// What is said of one command and of those that it runs.
fn command(sets: &[String], words: &[String], says: Says<'_>, depth: usize) -> Said {
    let own = |least: usize| says(&Item::Command([sets, words].concat()), least);
    let inner = if sets.is_empty() { Inner::of(words) } else { None };
    let Some(Inner { wrapped, commands }) = inner else { return own(0) };
    if depth >= WRAPPED_MAX {
        let why = format!("`{}` runs too many commands in each other", shown_words(words));
        return Said::unnamed(Action::Deny, why);
    }
    let whole = own(0);
    let whole_counts = wrapped == Wrapped::WithMore || (whole.named && whole.action != Action::Allow);
    let Some(commands) = commands else {
        // A rule that says no more than the outer command says nothing about what that runs.
        return if whole_counts && whole.action != Action::Allow { whole } else { own(2) };
    };
    let each = commands.iter().map(|(begins, inner)| {
        let named = own(begins + 1);
        let covered = named.action == Action::Allow && named.named;
        if covered { named } else { command(&[], inner, says, depth + 1) }
    });
    let (action, why) = worst(each.chain(whole_counts.then_some(whole)));
    Said::unnamed(action, why)
}

/// How strict an action is.
fn rank(action: Action) -> u8 {
    match action {
        Action::Allow => 0,
        Action::Ask => 1,
        Action::Deny => 2,
    }
}

/// The strictest of all; what allows where there is none.
fn worst(all: impl Iterator<Item = Said>) -> (Action, String) {
    // The first of the strictest is told.
    let none = (Action::Allow, String::new());
    all.fold(none, |worst, one| if rank(one.action) > rank(worst.0) { (one.action, one.why) } else { worst })
}

/// Whether a command may be one that an entry is about, or run one.
fn may_be_command(entry: &Entry, simple: &Simple) -> bool {
    let with_sets = [&simple.sets[..], &simple.words].concat();
    may_be_words(entry, &simple.words) || (!simple.sets.is_empty() && may_be_words(entry, &with_sets))
}

/// The same for its words: by its name with and without a folder, and where it runs others any words behind it.
fn may_be_words(entry: &Entry, words: &[String]) -> bool {
    let Some(head) = words.first() else { return false };
    // What `find` runs is told from what it looks for.
    let inner = if head.rsplit('/').next() == Some("find") { Inner::of_find(words) } else { None };
    if let Some(Inner { commands: Some(commands), .. }) = &inner
        && commands.iter().any(|(_, inner)| may_be_words(entry, inner))
    {
        return true;
    }
    let finds = head.rsplit('/').next() == Some("find") && inner.is_none_or(|inner| inner.commands.is_some());
    let loose = is_wrapper(head) && !finds;
    let last = if loose { words.len() } else { 1 };
    (0..last).any(|from| {
        let words = &words[from..];
        let mut based = words.to_vec();
        if let Some((_, name)) = words[0].rsplit_once('/') {
            name.clone_into(&mut based[0]);
        }
        // What it reads may be further words.
        let more = [&based[..], &[HOLE.to_string()]].concat();
        let more = if loose { more } else { based.clone() };
        [words, &based, &more]
            .into_iter()
            .any(|words| entry.may_be_command(words, false) || (loose && entry.may_be_command(words, true)))
    })
}

fn shown(item: &Item) -> String {
    match item {
        Item::Command(words) => shown_words(words),
        Item::Path(path) => clean(&path.to_string()),
        Item::Url(url) => clean(&url.to_string()),
        Item::Assistant(id) => clean(id),
    }
}

fn shown_words(words: &[String]) -> String {
    clean(&joined(words).replace(INNER_BLANK, " "))
}

/// A text of a call for a message: cut, and without signs that are not seen.
pub(super) fn clean(text: &str) -> String {
    let seen = |c: char| {
        if c == HOLE {
            '…'
        } else if c.is_control() {
            ' '
        } else {
            c
        }
    };
    crate::text::cut(&text.chars().map(seen).collect::<String>(), SHOWN_CHARS_MAX)
}
