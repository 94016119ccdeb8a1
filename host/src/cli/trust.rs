//! `trust`: shows what the assistants of a project would run on this machine, and allows it by name.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::open::{Setting, env};
use super::run::NO_MATCH;
use super::{FAILED, Failure, Places, USAGE, now_ms, say, show, talk};
use crate::registry::{Definition, Registry};
use crate::servers::spec::{How, Spec};
use crate::text::{one_line, utc};
use crate::trust::{self, Answer, Book, Kind, Ruled, Trust, Unusable, Wanted, shown};

#[derive(Args)]
pub(super) struct TrustArgs {
    /// What to allow: assistants, or one thing of one as ASSISTANT/THING; none shows what is asked for
    #[arg(value_name = "NAME", conflicts_with = "all")]
    names: Vec<String>,
    /// Allow all that is asked for now
    #[arg(long)]
    all: bool,
    /// Allow it no more
    #[arg(long)]
    remove: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An assistant with what it asks for.
struct Asked<'a> {
    definition: Arc<Definition>,
    ruled: Vec<Ruled>,
    setting: &'a Setting,
}

impl<'a> Asked<'a> {
    fn look(definition: &Arc<Definition>, book: &Book, setting: &'a Setting) -> Self {
        Self { definition: definition.clone(), ruled: Self::ruled(definition, book, setting), setting }
    }

    /// All that it asks for.
    fn ruled(definition: &Definition, book: &Book, setting: &Setting) -> Vec<Ruled> {
        let mut ruled = trust::rule(definition, book);
        if setting.has_agents() {
            ruled.extend(trust::rule_own_tools(definition, &setting.servers, book));
        }
        ruled
    }

    fn title(&self) -> String {
        let from = self.definition.brought_from().map(|path| format!(", brought from {}", path.display()));
        let place = self.definition.place() + &from.unwrap_or_default();
        format!("{}  {}", self.definition.id, one_line(&place))
    }
}

pub(super) fn trust(places: &Places, args: &TrustArgs) -> Result<u8, Failure> {
    let setting = Setting::read(places)?;
    let registry = setting.registry();
    let book = Book::at(super::open::trust_dir());
    if args.remove && args.names.is_empty() && !args.all {
        return Err(Failure::new(USAGE, "--remove needs the NAME of what to allow no more, or --all"));
    }
    if args.names.is_empty() {
        let asking: Vec<Asked<'_>> = registry
            .assistants()
            .iter()
            .filter(|definition| trust::needs_trust(definition))
            .map(|definition| Asked::look(definition, &book, &setting))
            .filter(|asked| !asked.ruled.is_empty())
            .collect();
        return match (args.all, args.remove) {
            (false, _) => list(&book, &asking, args.json),
            (true, true) => forget(&book, &asking, args.json),
            (true, false) => allow(&book, asking, args.json),
        };
    }
    // All names are known before anything is done.
    let (mut asked, mut gone) = (Vec::new(), Vec::new());
    for name in &args.names {
        match find(&registry, &book, &setting, name) {
            Ok(found) => asked.push(found),
            Err(error) if args.remove => match of_gone(&book, name)? {
                left if left.is_empty() => return Err(error),
                left => gone.extend(left),
            },
            Err(error) => return Err(error),
        }
    }
    if !args.remove {
        return allow(&book, asked, args.json);
    }
    for one in &gone {
        book.remove(&one.key).map_err(unusable)?;
        talk(&format!("{} of {} ({}) is trusted no more", shown(&one.what), one.assistant, one_line(&one.file)));
    }
    forget(&book, &asked, args.json)
}

/// The assistant of a name, or of a name and the thing behind its `/`.
fn find<'a>(registry: &Registry, book: &Book, setting: &'a Setting, name: &str) -> Result<Asked<'a>, Failure> {
    if let Some(definition) = registry.find_exact(name) {
        return Ok(Asked::look(definition, book, setting));
    }
    let parts = name.split_once('/').and_then(|(id, thing)| Some((registry.find_exact(id)?, thing)));
    let Some((definition, thing)) = parts else {
        return Err(show::unknown(registry, name.split('/').next().unwrap_or(name)));
    };
    let mut asked = Asked::look(definition, book, setting);
    let known: Vec<String> = asked.ruled.iter().map(|one| format!("`{}`", shown(&one.wanted.name))).collect();
    asked.ruled.retain(|one| one.wanted.name == thing);
    if asked.ruled.is_empty() {
        let known = if known.is_empty() { "nothing at all".to_owned() } else { known.join(", ") };
        let message = format!("`{}` asks for nothing called `{}`, but for {known}", definition.id, shown(thing));
        return Err(Failure::new(NO_MATCH, message));
    }
    Ok(asked)
}

/// What is trusted of an assistant whose file is gone.
fn of_gone(book: &Book, name: &str) -> Result<Vec<Trust>, Failure> {
    let (mut trusted, _) = book.all().map_err(unusable)?;
    trusted.retain(|one| one.assistant == name && !Path::new(&one.file).exists());
    Ok(trusted)
}

fn list(book: &Book, asking: &[Asked<'_>], as_json: bool) -> Result<u8, Failure> {
    let (_, bad) = book.all().map_err(unusable)?;
    bad.iter().for_each(|error| talk(&format!("warning: {error}")));
    if as_json {
        say(&told(book, asking).to_string());
        return Ok(0);
    }
    asking.iter().for_each(|asked| tell(asked, "not trusted"));
    let things = asking.iter().flat_map(|asked| &asked.ruled);
    let (all, open) = (things.clone().count(), things.filter(|one| one.answer.is_missing()).count());
    match (all, open) {
        (0, _) => talk("no assistant of the project names a command or a server"),
        (_, 0) => talk("all of it is trusted; `assistant-host trust --remove NAME` allows it no more"),
        _ => talk(&format!(
            "{open} of {all} not trusted: assistants run without them. `assistant-host trust NAME` allows all of an \
             assistant, `assistant-host trust NAME/THING` one thing, `--all` everything above"
        )),
    }
    Ok(0)
}

/// Who it is where no variable says so.
#[cfg(unix)]
fn user() -> String {
    format!("the user {}", rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn user() -> String {
    "unknown".to_owned()
}

fn allow(book: &Book, asking: Vec<Asked<'_>>, as_json: bool) -> Result<u8, Failure> {
    let (before, _) = book.all().map_err(unusable)?;
    let by = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| env(name)).unwrap_or_else(user);
    for asked in &asking {
        if asked.ruled.is_empty() {
            talk(&format!("`{}` names no command and no server: there is nothing to trust", asked.definition.id));
        } else if !trust::needs_trust(&asked.definition) {
            talk(&format!("`{}` is your own: what it names needs no trust", asked.definition.id));
        }
        if !as_json {
            tell(asked, "to be trusted");
        }
        let open = asked.ruled.iter().filter(|one| one.answer.is_missing());
        let new: Vec<Trust> = open.filter_map(|one| Trust::new(&asked.definition, one, &by, now_ms())).collect();
        book.add(&new).map_err(unusable)?;
        forget_older(book, asked, &before, &new)?;
        for one in &new {
            talk(&format!("{} of {} is trusted now", shown(&one.what), asked.definition.id));
        }
    }
    if as_json {
        let now: Vec<Asked<'_>> = asking.iter().map(|asked| again(asked, book)).collect();
        say(&told(book, &now).to_string());
    }
    Ok(0)
}

/// What stood there `before` under the same name as what is `new` is trusted no more.
fn forget_older(book: &Book, asked: &Asked<'_>, before: &[Trust], new: &[Trust]) -> Result<(), Failure> {
    let Some(file) = new.first().map(|one| one.file.as_str()) else { return Ok(()) };
    let names: HashSet<&str> = new.iter().map(|one| one.what.as_str()).collect();
    let now: HashSet<String> =
        Asked::ruled(&asked.definition, book, asked.setting).into_iter().filter_map(|one| one.key).collect();
    // They are sorted by file.
    let from = before.partition_point(|one| one.file.as_str() < file);
    let of_file = before[from..].iter().take_while(|one| one.file == file);
    for one in of_file.filter(|one| names.contains(one.what.as_str()) && !now.contains(&one.key)) {
        book.remove(&one.key).map_err(unusable)?;
    }
    Ok(())
}

fn forget(book: &Book, asking: &[Asked<'_>], as_json: bool) -> Result<u8, Failure> {
    let (trusted, bad) = book.all().map_err(unusable)?;
    bad.iter().for_each(|error| talk(&format!("warning: {error}")));
    for asked in asking {
        let file = trust::place(&asked.definition).display().to_string();
        let titles: Vec<String> = asked.ruled.iter().map(|one| one.wanted.title()).collect();
        let whole = Asked::ruled(&asked.definition, book, asked.setting).len() == asked.ruled.len();
        // Of a whole assistant, what was trusted of it once is forgotten too.
        let meant = |one: &&Trust| one.file == file && (whole || titles.contains(&one.what));
        let mut keys: Vec<(String, String)> =
            trusted.iter().filter(meant).map(|one| (one.key.clone(), one.what.clone())).collect();
        for one in &asked.ruled {
            if let (Some(key), Answer::Unreadable(_)) = (&one.key, &one.answer) {
                keys.push((key.clone(), one.wanted.title()));
            }
        }
        if keys.is_empty() {
            talk(&format!("nothing of `{}` was trusted", asked.definition.id));
        }
        for (key, what) in keys {
            book.remove(&key).map_err(unusable)?;
            talk(&format!("{} of {} is trusted no more", shown(&what), asked.definition.id));
        }
    }
    if as_json {
        let now: Vec<Asked<'_>> = asking.iter().map(|asked| again(asked, book)).collect();
        say(&told(book, &now).to_string());
    }
    Ok(0)
}

/// The same things, as they stand now.
fn again<'a>(asked: &Asked<'a>, book: &Book) -> Asked<'a> {
    let mut now = Asked::look(&asked.definition, book, asked.setting);
    now.ruled.retain(|one| asked.ruled.iter().any(|old| old.key == one.key));
    now
}

fn tell(asked: &Asked<'_>, open: &str) {
    say(&asked.title());
    for one in &asked.ruled {
        let state = match &one.answer {
            Answer::Off => "switched off, so it needs no trust".to_owned(),
            Answer::Own => "needs no trust".to_owned(),
            Answer::Trusted(trust) => format!("trusted {} by {}", utc(trust.at), shown(&trust.by)),
            Answer::Untrusted => open.to_owned(),
            Answer::Unreadable(error) => format!("{open}: {}", one_line(error)),
        };
        say(&format!("  {}: {state}", one.wanted.title()));
        let wanted = &one.wanted;
        let lists = [("variables", &wanted.env), ("headers", &wanted.headers)];
        let line = wanted.command.iter().map(|part| quoted(part)).collect::<Vec<_>>().join(" ");
        let parts = [
            ("runs", (!line.is_empty()).then_some(line)),
            ("connects to", wanted.url.as_deref().map(shown)),
            ("in the folder", wanted.folder.as_deref().map(shown)),
            ("says", wanted.text.as_deref().map(shown)),
            ("is", named(asked, wanted).map(meant)),
        ];
        for (what, text) in parts {
            text.iter().for_each(|text| say(&format!("    {what} {text}")));
        }
        for part in wanted.command.iter().filter(|part| is_of(asked.setting.project.as_deref(), part)) {
            say(&format!("    {} is a file of the project: whoever changes it changes what runs", quoted(part)));
        }
        for (what, names) in lists.iter().filter(|(_, names)| !names.is_empty()) {
            let names: Vec<String> = names.iter().map(|name| shown(name)).collect();
            say(&format!("    with the {what} {}", names.join(", ")));
        }
    }
}

/// How the configuration reaches a server of which the definition says no more than its name; nothing where the definition
/// says more, or the thing is no server, and no way where none is configured.
fn named<'a>(asked: &Asked<'a>, wanted: &Wanted) -> Option<Option<&'a How>> {
    let named = wanted.kind == Kind::Server && Spec::of(wanted).how == How::Named;
    named.then(|| asked.setting.servers.get(&wanted.name).map(|spec| &spec.how))
}

/// What the name of a server stands for.
fn meant(how: Option<&How>) -> String {
    const CONFIGURED: &str = "the server of that name in your own configuration";
    match how {
        Some(How::Program { command, args, .. }) => {
            let line: Vec<String> = masked_line(command, args).iter().map(|part| quoted(part)).collect();
            format!("{CONFIGURED}, which runs {}", line.join(" "))
        }
        Some(How::Http { url, .. }) => format!("{CONFIGURED}, which connects to {}", shown(&masked_text(url))),
        Some(How::Off) => format!("{CONFIGURED}, which is switched off"),
        Some(How::Unusable(why)) => format!("{CONFIGURED}, which cannot be used: {}", shown(why)),
        Some(How::Named) | None => {
            "the name of a server that your configuration has not: nothing runs until `[mcp_servers]` or `tool_presets` \
             adds one"
                .to_owned()
        }
    }
}

/// A command of the user's own configuration without its secrets: whoever allows what a project names needs none of them.
fn masked_line(command: &str, args: &[String]) -> Vec<String> {
    let line: Vec<&str> = std::iter::once(command).chain(args.iter().map(String::as_str)).collect();
    let masked = trust::masked(&json!(line));
    masked.as_array().into_iter().flatten().map(|part| part.as_str().unwrap_or_default().to_owned()).collect()
}

/// An address of the user's own configuration without its secrets.
fn masked_text(text: &str) -> String {
    trust::masked(&json!(text)).as_str().unwrap_or_default().to_owned()
}

/// Whether a part of a command names a file of the project.
fn is_of(project: Option<&Path>, part: &str) -> bool {
    project.is_some_and(|project| {
        let path = project.join(part).canonicalize();
        path.is_ok_and(|path| path.is_file() && path.starts_with(project))
    })
}

/// One argument, so that it cannot pass for two.
fn quoted(part: &str) -> String {
    let plain = !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c == '"' || c == '\'');
    if plain { shown(part) } else { format!("\"{}\"", shown(part).replace('"', "\\\"")) }
}

fn told(book: &Book, asking: &[Asked<'_>]) -> Value {
    let wants = |asked: &Asked<'_>, one: &Ruled| {
        let mut told = json!(one.wanted);
        match named(asked, &one.wanted) {
            None => {}
            Some(Some(How::Program { command, args, .. })) => {
                told["configured"] = json!({ "command": masked_line(command, args) });
            }
            Some(Some(How::Http { url, .. })) => told["configured"] = json!({ "url": masked_text(url) }),
            Some(Some(How::Named | How::Off | How::Unusable(_)) | None) => told["configured"] = Value::Null,
        }
        told["trusted"] = json!(one.answer.allows());
        match &one.answer {
            Answer::Trusted(trust) => (told["trusted_at"], told["trusted_by"]) = (json!(trust.at), json!(trust.by)),
            Answer::Unreadable(error) => told["problem"] = json!(error),
            Answer::Off => told["off"] = json!(true),
            Answer::Own | Answer::Untrusted => {}
        }
        told
    };
    let one = |asked: &Asked<'_>| {
        json!({
            "assistant_id": asked.definition.id,
            "source": asked.definition.source.label(),
            "path": asked.definition.file().map(super::shown),
            "brought_from": asked.definition.brought_from().map(super::shown),
            "wants": asked.ruled.iter().map(|one| wants(asked, one)).collect::<Vec<_>>(),
        })
    };
    json!({ "folder": book.folder().ok(), "assistants": asking.iter().map(one).collect::<Vec<_>>() })
}

fn unusable(error: Unusable) -> Failure {
    Failure::new(FAILED, error)
}
