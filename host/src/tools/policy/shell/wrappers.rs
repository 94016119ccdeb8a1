//! Commands that run another command: which, and where it begins.

use crate::tools::policy::glob::HOLE;

/// How a command runs the one behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools::policy) enum Wrapped {
    /// Only its surroundings are others: whoever may run the inner one may run it so.
    Plainly,
    /// It does more than that, so that it has to be allowed itself.
    WithMore,
}

/// The commands that a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools::policy) struct Inner {
    pub(in crate::tools::policy) wrapped: Wrapped,
    /// The words of each, and at which word it begins; none where that cannot be told.
    pub(in crate::tools::policy) commands: Option<Vec<(usize, Vec<String>)>>,
}

/// A command that runs the one behind its options.
struct Wrapper {
    name: &'static str,
    wrapped: Wrapped,
    /// Options without a value. Any other leaves untold where the inner command begins.
    flags: &'static [&'static str],
    /// Options with a value in the next word.
    values: &'static [&'static str],
    /// Words between the options and the inner command.
    operands: usize,
}

const fn wrapper(
    name: &'static str,
    wrapped: Wrapped,
    flags: &'static [&'static str],
    values: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper { name, wrapped, flags, values, operands }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("builtin", Wrapped::Plainly, &[], &[], 0),
    wrapper("command", Wrapped::Plainly, &["-p"], &[], 0),
    wrapper("doas", Wrapped::WithMore, &["-n"], &["-u"], 0),
    wrapper("env", Wrapped::Plainly, &["-i", "-"], &["-u"], 0),
    wrapper("exec", Wrapped::Plainly, &["-c", "-l"], &[], 0),
    wrapper("ionice", Wrapped::Plainly, &["-t"], &["-c", "-n"], 0),
    wrapper("nice", Wrapped::Plainly, &[], &["-n"], 0),
    wrapper("nohup", Wrapped::Plainly, &[], &[], 0),
    wrapper("setsid", Wrapped::Plainly, &["-f", "-w"], &[], 0),
    wrapper("stdbuf", Wrapped::Plainly, &["-oL", "-o0", "-eL", "-e0", "-i0"], &["-i", "-o", "-e"], 0),
    wrapper("sudo", Wrapped::WithMore, &["-E", "-H", "-n", "-S"], &["-u", "-g"], 0),
    wrapper("time", Wrapped::Plainly, &["-p", "-v"], &[], 0),
    wrapper("timeout", Wrapped::Plainly, &["-v", "--foreground", "--preserve-status"], &["-k", "-s"], 1),
    wrapper("xargs", Wrapped::Plainly, &["-0", "-r", "-t", "--null"], &["-n", "-P", "-L", "-d"], 0),
];

/// Commands that run another one in ways that are not looked into: only what refuses looks for it behind them.
const OTHERS: &[&str] = &[
    "ash",
    "bash",
    "busybox",
    "chroot",
    "chrt",
    "coproc",
    "dash",
    "docker",
    "entr",
    "eval",
    "fakeroot",
    "find",
    "flock",
    "ksh",
    "ltrace",
    "nsenter",
    "numactl",
    "parallel",
    "pkexec",
    "podman",
    "runuser",
    "script",
    "setarch",
    "sg",
    "sh",
    "ssh",
    "strace",
    "su",
    "systemd-run",
    "taskset",
    "toybox",
    "trap",
    "tsp",
    "unbuffer",
    "unshare",
    "watch",
    "xvfb-run",
    "zsh",
];

/// Shells whose `-c` is a script.
const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "sh", "zsh"];
/// Their options before a script that change nothing about what it is.
const SHELL_FLAGS: &[&str] = &["-c", "-ec", "-euc", "-lc", "-uc", "-xc"];
/// Their options with a value in the next word.
const SHELL_VALUES: &[&str] = &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"];
/// Their options with which they only tell of themselves.
const SHELL_WORDS: &[&str] = &["--version", "--help"];
/// Commands that run what they read, or a shell that does, unless they are told otherwise in ways that are not looked into.
const READERS: &[&str] = &[
    "at", "batch", "chroot", "crontab", "newgrp", "nsenter", "parallel", "pkexec", "runuser", "script", "setarch",
    "sg", "su", "unshare",
];
/// With these `sudo` runs a shell.
const SHELL_OF: &[&str] = &["-s", "-i", "--shell", "--login"];
/// Where `find` runs a command.
const FIND_RUNS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// A command without the folder that it lies in.
pub(super) fn base(head: &str) -> &str {
    head.rsplit('/').next().unwrap_or(head)
}

/// Whether the command `head` runs another one.
pub(in crate::tools::policy) fn is_wrapper(head: &str) -> bool {
    let name = base(head).to_ascii_lowercase();
    WRAPPERS.iter().any(|wrapper| wrapper.name == name) || OTHERS.contains(&name.as_str())
}

impl Inner {
    /// The commands that a command of these words runs; none where it is not known to run any.
    pub(in crate::tools::policy) fn of(words: &[String]) -> Option<Self> {
        let head = words.first()?;
        // Another folder is another program.
        if head == "find" {
            return found(words);
        }
        if runs_script(words) {
            return Some(Self { wrapped: Wrapped::Plainly, commands: Some(Vec::new()) });
        }
        let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == head)?;
        // Alone they run nothing, but for what they read.
        if words.len() == 1 && head != "xargs" {
            return None;
        }
        // What becomes several words moves those behind it.
        let known =
            |begins: &usize| words.get(..=*begins).is_some_and(|words| words.iter().all(|word| !word.contains(HOLE)));
        let begins = wrapper.begins(words).filter(known);
        let inner = |begins: usize| {
            let mut inner = words[begins..].to_vec();
            if head == "xargs" {
                inner.push(HOLE.to_string());
            }
            vec![(begins, inner)]
        };
        Some(Self { wrapped: wrapper.wrapped, commands: begins.map(inner) })
    }
}

impl Wrapper {
    fn begins(&self, words: &[String]) -> Option<usize> {
        let mut at = 1;
        while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
            if word == "--" {
                at += 1;
                break;
            }
            at += if self.flags.contains(&word.as_str()) {
                1
            } else if self.values.contains(&word.as_str()) {
                2
            } else {
                return None;
            };
        }
        at += self.operands;
        // What `env` sets may make of the inner command another one.
        let sets = self.name == "env" && words.get(at).is_some_and(|word| word.contains('='));
        (at < words.len() && !sets).then_some(at)
    }
}

impl Inner {
    /// The commands that `find` runs, in whatever folder that lies.
    pub(in crate::tools::policy) fn of_find(words: &[String]) -> Option<Self> {
        found(words)
    }
}

fn found(words: &[String]) -> Option<Inner> {
    let mut commands = Vec::new();
    let mut at = 1;
    while at < words.len() {
        if words[at].contains(HOLE) && words[at].starts_with([HOLE, '-']) {
            // It may become anything, `-exec` too.
            return Some(Inner { wrapped: Wrapped::WithMore, commands: None });
        }
        if FIND_RUNS.contains(&words[at].as_str()) {
            let end = (at + 1..words.len()).find(|end| words[*end] == ";" || words[*end] == "+");
            let Some(end) = end.filter(|end| *end > at + 1) else {
                return Some(Inner { wrapped: Wrapped::WithMore, commands: None });
            };
            let name = |word: &String| if word.contains("{}") { HOLE.to_string() } else { word.clone() };
            commands.push((at + 1, words[at + 1..end].iter().map(name).collect()));
            at = end;
        }
        at += 1;
    }
    (!commands.is_empty()).then_some(Inner { wrapped: Wrapped::WithMore, commands: Some(commands) })
}

/// Whether all that a command does is to run a script that stands in its words.
fn runs_script(words: &[String]) -> bool {
    let head = words.first().map_or("", String::as_str);
    match words.get(1) {
        Some(flag) if SHELLS.contains(&head) => SHELL_FLAGS.contains(&flag.as_str()),
        Some(_) => head == "eval",
        None => false,
    }
}

/// The shell among the words of a command that reads from its input, or from nobody knows where, what it runs.
fn reader(words: &[String]) -> Option<&str> {
    let head = words.first()?;
    let name = base(head);
    match name {
        "." | "source" => return (!is_file(words.get(1))).then_some(name),
        // What `find` has elsewhere is not run.
        "find" => {
            let commands = found(words).and_then(|inner| inner.commands)?;
            return commands.iter().find_map(|(begins, inner)| reader(&words[*begins..begins + inner.len()]));
        }
        "xargs" => return given_words(words),
        "sudo" | "doas" if words.iter().any(|word| SHELL_OF.contains(&word.as_str())) => return Some(name),
        name if READERS.contains(&name) => return Some(name),
        name if SHELLS.contains(&name) => return reads_script(&words[1..]).then_some(name),
        _ => {}
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name);
    match wrapper.and_then(|wrapper| wrapper.begins(words)) {
        Some(begins) => reader(&words[begins..]),
        // Any of its words may be what it runs.
        None if is_wrapper(head) => (1..words.len())
            .find(|at| SHELLS.contains(&base(&words[*at])) && reads_script(&words[at + 1..]))
            .map(|at| base(&words[at])),
        None => None,
    }
}

/// The program behind `xargs` that makes a command of the words that are read.
fn given_words(words: &[String]) -> Option<&str> {
    let mut at = 1;
    // With these the inner command has the input itself, or what is read in the midst of its words.
    let mut anywhere = None;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        let (flag, value) = word.split_at_checked(2).unwrap_or((word, ""));
        match flag {
            "-0" | "-r" | "-t" if value.is_empty() => at += 1,
            "-n" | "-P" | "-L" | "-d" => at += if value.is_empty() { 2 } else { 1 },
            "-I" if value.is_empty() => {
                anywhere = words.get(at + 1).map(String::as_str);
                at += 2;
            }
            "-I" => {
                anywhere = Some(value);
                at += 1;
            }
            _ if word == "--null" => at += 1,
            // Of others nobody knows here where the command begins.
            _ => return words[at..].iter().map(|word| base(word)).find(|word| is_wrapper(word)),
        }
    }
    let inner = words.get(at..).unwrap_or_default();
    // It may become options, too.
    if inner.first().is_some_and(|word| word.contains(HOLE)) {
        return Some("xargs");
    }
    let put = |word: &String| anywhere.is_some_and(|place| word.contains(place));
    let mut from = 0;
    while let Some(word) = inner.get(from) {
        let name = base(word);
        if put(word) {
            return Some("xargs");
        }
        if !is_wrapper(word) {
            return None;
        }
        let rest = &inner[from..];
        if SHELLS.contains(&name) {
            let own = rest.get(1).is_some_and(|flag| SHELL_FLAGS.contains(&flag.as_str())) && rest.len() > 2;
            return (!own || put(&rest[2])).then_some(name);
        }
        let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name);
        let Some(begins) = wrapper.and_then(|wrapper| wrapper.begins(rest)) else { return Some(name) };
        from += begins;
    }
    // Alone it says what it reads.
    (from > 0).then(|| base(&words[at]))
}

/// Whether a shell with these words behind its name reads from its input, or from nobody knows where, what it runs.
fn reads_script(words: &[String]) -> bool {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with(['-', '+'])) {
        if SHELL_WORDS.contains(&word.as_str()) {
            return false;
        }
        let short = !word.starts_with("--");
        if short && word.contains('c') {
            // Only in the first place is its script looked at.
            return at > 0 || word.starts_with('+');
        }
        if word == "-" || (short && word.contains('s')) {
            return true;
        }
        at += if SHELL_VALUES.contains(&word.as_str()) { 2 } else { 1 };
        if word == "--" {
            break;
        }
    }
    !is_file(words.get(at))
}

/// Whether a word is a file that does not become another one with whoever runs it.
fn is_file(word: Option<&String>) -> bool {
    let Some(word) = word.filter(|word| !word.contains(HOLE)) else { return false };
    let mut parts: Vec<&str> = Vec::new();
    let mut whole = word.starts_with('/');
    for part in word.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part != ".." {
            parts.push(part);
        } else if parts.pop().is_none() {
            // Above where it starts, it may be at the root.
            whole = true;
        }
    }
    !(whole && parts.first().is_some_and(|first| matches!(*first, "dev" | "proc")))
}

/// The scripts that a command hands to a shell.
///
/// # Errors
/// One of them is known only when it runs.
pub(super) fn scripts(words: &[String]) -> Result<Vec<String>, String> {
    let unknown = || "what it hands to a shell is known only when it runs".to_owned();
    let known = |text: &str| if text.contains(HOLE) { Err(unknown()) } else { Ok(text.to_owned()) };
    let Some(head) = words.first().map(|head| base(head)) else { return Ok(Vec::new()) };
    if let Some(name) = reader(words) {
        return Err(format!("what `{name}` runs is known only when it reads it"));
    }
    // Behind whatever wraps it: `env sh -c x`, `builtin eval x`, `find -exec sh -c x`.
    let mut scripts = Vec::new();
    let wraps = is_wrapper(head);
    for at in 0..words.len() {
        if at > 0 && !wraps {
            break;
        }
        match base(&words[at]) {
            "eval" => scripts.push(known(&words[at + 1..].join(" "))?),
            "trap" => {
                let action = words.get(at + 1).filter(|word| !word.starts_with('-'));
                scripts.extend(action.map(|word| known(word)).transpose()?);
            }
            _ => {}
        }
        if !SHELLS.contains(&base(&words[at])) {
            continue;
        }
        let Some(flag) = words.get(at + 1) else { continue };
        if SHELL_FLAGS.contains(&flag.as_str()) {
            let script = words.get(at + 2).ok_or("its `-c` has no script")?;
            scripts.push(known(script)?);
            if at == 0 && words.len() > at + 3 && words[at + 3..].iter().any(|word| word.contains(HOLE)) {
                return Err(unknown());
            }
        } else if flag.starts_with('-') && flag.contains('c') && !flag.starts_with("--") {
            return Err(format!("its option `{flag}` before a script is not known"));
        }
    }
    Ok(scripts)
}
