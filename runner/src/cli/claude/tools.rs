//! The tools of Claude Code: which of them a definition wants, and which calls are allowed, asked for and forbidden.

use assistant_protocol::types::RuleAction;
use serde_json::{Map, Value, json};

use super::super::kind::Plan;
use super::super::wishes::{READONLY_RUNS, Role, Wanted, Wish, Wishes};
use crate::adapter::bridge::SERVER_NAME;

/// Its tools, by what they do.
const TOOLS: &[(Role, &[&str])] = &[
    (Role::Read, &["Read"]),
    (Role::Find, &["Glob"]),
    (Role::Search, &["Grep"]),
    (Role::Edit, &["Edit", "NotebookEdit"]),
    (Role::Write, &["Write"]),
    (Role::Run, &["Bash", "TaskOutput", "TaskStop"]),
    (Role::Fetch, &["WebFetch"]),
    (Role::Web, &["WebSearch"]),
    (Role::Todo, &["TodoWrite"]),
    (Role::Task, &["Task"]),
];
/// Those of them without which a shell cannot read what runs in the background.
pub(super) const COMPANIONS: [&str; 2] = ["TaskOutput", "TaskStop"];
/// Tools that change something: a definition that must not has none of them.
const CHANGING: [&str; 4] = ["Bash", "Edit", "NotebookEdit", "Write"];
/// What an assistant has whose definition says nothing of tools.
const READING: [&str; 3] = ["Read", "Glob", "Grep"];
/// Further tools of it, which do what no other agent's tools do.
const FURTHER_TOOLS: [&str; 4] = ["Skill", "SlashCommand", "ExitPlanMode", "ToolSearch"];

/// The tools that it has, as an argument, and its settings of what it may do with them.
pub(super) fn permissions(wishes: &Wishes, plan: &mut Plan) -> Value {
    let mut names = Vec::new();
    let (mut allow, mut deny, mut ask) = (vec![format!("mcp__{SERVER_NAME}")], Vec::new(), Vec::new());
    let judged = judged(wishes);
    if let Some(wanted) = listed(wishes) {
        for wish in &wanted {
            let own = own_names(wish);
            if own.is_empty() {
                plan.lacks(format!("the tool `{}`", wish.written), "Claude Code has no tool of this name");
            }
            // With rules the host judges each call.
            if !wishes.by_rules && !reads_anything(wish) {
                allow.extend(own.iter().filter(|name| !judged.contains(name)).map(|name| with_pattern(name, wish)));
            }
            names.extend(own);
        }
        if wishes.readonly {
            names.retain(|name| !CHANGING.contains(name));
            for wish in wanted.iter().filter(|wish| wish.role == Some(Role::Run)) {
                plan.lacks(format!("the tool `{}`", wish.written), READONLY_RUNS);
            }
        }
        names.sort_unstable();
        names.dedup();
        plan.arg("--tools").arg(names.join(","));
    }
    for wish in &wishes.denied {
        deny.extend(own_names(wish).iter().map(|name| with_pattern(name, wish)));
    }
    deny.extend(unread(wishes));
    for wish in &wishes.asked {
        ask.extend(own_names(wish).iter().filter(|name| !judged.contains(name)).map(|name| with_pattern(name, wish)));
    }
    ask.extend(judged.into_iter().map(str::to_owned));
    if wishes.bounds_reading() && wishes.runs_anything() {
        plan.lacks("what bounds reading, for commands", "Claude Code keeps some of them from files, and not all");
    }
    if wishes.readonly {
        deny.extend(CHANGING.map(str::to_owned));
    }
    json!({ "permissions": { "allow": allow, "deny": deny, "ask": ask } })
}

/// What a session of Claude Code behind an adapter of another protocol is begun with: the tools that it has, and those that it
/// must not have, and no servers, hooks and settings of the user's. It asks for each call but those that read in its folder.
pub(crate) fn options(wishes: &Wishes) -> Map<String, Value> {
    let mut options = Map::new();
    options.insert("settingSources".to_owned(), json!([]));
    options.insert("strictMcpConfig".to_owned(), true.into());
    if let (Wanted::Some(_), _) | (_, Some(RuleAction::Deny)) = (&wishes.wanted, wishes.others) {
        let mut names: Vec<_> = listed(wishes).unwrap_or_default().iter().flat_map(own_names).collect();
        names.retain(|name| !(wishes.readonly && CHANGING.contains(name)));
        // It does not ask before it searches in its folder.
        names.retain(|name| *name != "Grep" || !withholds_search(wishes));
        names.sort_unstable();
        names.dedup();
        options.insert("tools".to_owned(), json!(names));
    }
    let mut denied: Vec<String> = Vec::new();
    for wish in &wishes.denied {
        denied.extend(own_names(wish).iter().map(|name| with_pattern(name, wish)));
    }
    denied.extend(unread(wishes));
    if !options.contains_key("tools") && withholds_search(wishes) {
        denied.push("Grep".to_owned());
    }
    if !denied.is_empty() {
        options.insert("disallowedTools".to_owned(), json!(denied));
    }
    options
}

/// The tools that a definition names and that Claude Code does not have.
pub(crate) fn unknown(wishes: &Wishes) -> Vec<&str> {
    let wanted = if let Wanted::Some(wanted) = &wishes.wanted { wanted.as_slice() } else { &[] };
    let named = wanted.iter().chain(&wishes.denied).filter(|wish| own_names(wish).is_empty());
    let mut unknown: Vec<&str> = named.map(|wish| wish.name.as_str()).collect();
    unknown.sort_unstable();
    unknown.dedup();
    unknown
}

/// The tools that it has; none is all that there are.
fn listed(wishes: &Wishes) -> Option<Vec<Wish>> {
    match (&wishes.wanted, wishes.others) {
        (Wanted::Some(wanted), _) => Some(wanted.clone()),
        (_, Some(RuleAction::Deny)) => Some(wishes.ruled().cloned().collect()),
        // Of each of them it can be told to ask.
        (_, Some(RuleAction::Ask)) => {
            Some(TOOLS.iter().flat_map(|(_, names)| *names).map(|name| Wish::read(name)).collect())
        }
        (Wanted::All, _) => None,
        // Without a word about tools it only reads, and has what rules are about.
        (Wanted::Unsaid, _) => Some(READING.map(Wish::read).into_iter().chain(wishes.ruled().cloned()).collect()),
    }
}

/// The tools of which the host judges each call, also one that Claude Code would make without a word, as one that reads in
/// its folder: those that a pattern or a rule bounds. What bounds reading bounds searches in files, too.
fn judged(wishes: &Wishes) -> Vec<&'static str> {
    let wanted = if let Wanted::Some(wanted) = &wishes.wanted { wanted.as_slice() } else { &[] };
    let in_part = wanted.iter().chain(&wishes.denied).filter(|wish| wish.pattern.is_some());
    // Of a command that it is told to ask for it does not look what it reads. What is not plainly harmless it asks for anyway.
    let any = |(does, wish): &(RuleAction, Wish)| *does == RuleAction::Allow && wish.pattern.is_none();
    let all_runs = wishes.rules.iter().filter(|(_, wish)| wish.role == Some(Role::Run)).all(any);
    let rules = wishes.rules.iter().filter(|(_, wish)| !(all_runs && wish.role == Some(Role::Run)));
    let bounded = rules.map(|(_, wish)| wish).chain(in_part).chain(&wishes.asked).flat_map(own_names);
    let searches = ["Grep"].into_iter().filter(|_| wishes.bounds_reading() && !holds_searches(wishes));
    let all = TOOLS.iter().flat_map(|(_, names)| names.iter().copied()).filter(|_| !wishes.unasked());
    let mut names: Vec<_> = bounded.chain(searches).chain(all).filter(|name| !COMPANIONS.contains(name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Whether it has to go without searches in files where it does not ask before one in its folder.
pub(crate) fn withholds_search(wishes: &Wishes) -> bool {
    wishes.withholds_search() && !holds_searches(wishes)
}

/// Whether all that bounds reading is forbidden files of which Claude Code keeps its searches by itself.
fn holds_searches(wishes: &Wishes) -> bool {
    let reads = |wish: &&Wish| wish.role == Some(Role::Read);
    let bounds = wishes.rules.iter().filter(|(does, wish)| *does != RuleAction::Allow && reads(&wish));
    let listed = wishes.denied.iter().filter(reads).all(|wish| wish.pattern.as_deref().is_some_and(is_held));
    let unread = unread(wishes);
    let ruled =
        bounds.clone().all(|(_, wish)| wish.pattern.as_deref().is_some_and(is_held)) && bounds.count() == unread.len();
    let wanted = if let Wanted::Some(wanted) = &wishes.wanted { wanted.as_slice() } else { &[] };
    let whole = wanted.iter().filter(reads).all(|wish| wish.pattern.is_none());
    listed && ruled && whole && !wishes.asked.iter().any(|wish| reads(&wish))
}

/// Whether a pattern is about no less for Claude Code than for the rules, in which `*` stands for `/`, too: one for names, or
/// for all that lies in a folder.
pub(super) fn is_held(pattern: &str) -> bool {
    let folder = pattern.strip_suffix("/**");
    let stem = folder.unwrap_or(pattern);
    let inner = stem.trim_start_matches('*');
    let inner = if inner.len() == stem.len() { stem.trim_end_matches('*') } else { inner };
    let plain =
        !inner.is_empty() && !inner.contains(['*', '?', '[', ']', '{', '}', '!', '\\', '~', '(', ')', '#', ' ']);
    let named = folder.is_none() && !inner.contains('/') && inner != "..";
    let below =
        folder.is_some() && inner.len() == stem.len() && inner.split('/').all(|part| !["", ".", ".."].contains(&part));
    plain && (named || below)
}

/// What rules forbid to read, where none behind them gives a part of it back: Claude Code keeps it from its searches and from
/// the commands that it knows, too.
fn unread(wishes: &Wishes) -> Vec<String> {
    let reads = |wish: &Wish| wish.role == Some(Role::Read);
    let given_back = wishes.rules.iter().rposition(|(does, wish)| *does != RuleAction::Deny && reads(wish));
    let last = &wishes.rules[given_back.map_or(0, |at| at + 1)..];
    let last = last.iter().filter(|(_, wish)| reads(wish) && wish.pattern.is_some());
    last.map(|(_, wish)| with_pattern("Read", wish)).collect()
}

/// Whether it is a wish to read whatever there is. In the folder of the run it may without a word; for what is outside the
/// host is asked.
fn reads_anything(wish: &Wish) -> bool {
    wish.pattern.is_none() && matches!(wish.role, Some(Role::Read | Role::Find | Role::Search))
}

/// The tools of Claude Code that a wish is about.
fn own_names(wish: &Wish) -> Vec<&'static str> {
    let of_role = TOOLS.iter().flat_map(|(_, names)| names.iter().copied());
    let exact = of_role.chain(FURTHER_TOOLS).find(|name| name.eq_ignore_ascii_case(&wish.name));
    match (exact, wish.role) {
        // A shell without its companions cannot read what runs in the background.
        (Some(_), Some(Role::Run)) | (None, Some(_)) => {
            TOOLS.iter().find(|(role, _)| Some(*role) == wish.role).map(|(_, names)| names.to_vec()).unwrap_or_default()
        }
        (Some(name), _) => vec![name],
        (None, None) => Vec::new(),
    }
}

fn with_pattern(name: &str, wish: &Wish) -> String {
    match &wish.pattern {
        Some(pattern) if !COMPANIONS.contains(&name) => format!("{name}({pattern})"),
        Some(_) | None => name.to_owned(),
    }
}
