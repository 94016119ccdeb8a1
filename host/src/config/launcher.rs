//! Launchers that the configuration names: where and in what a runner is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{Config, ConfigError};
use crate::launcher::presets::{self, Preset, Setting, When};
use crate::launcher::{Files, Launcher, Servers, Words, fault};
use crate::launchers::{LOCAL, kept};
use crate::runners::OWN;

/// The longest name of a launcher, bytes.
const NAME_BYTES_MAX: usize = 64;
/// How many bytes of a hash tell the options of launchers apart, each as two signs.
const TAG_BYTES: usize = 4;
/// Words of a command, and paths and variables of a list.
const WORDS_MAX: usize = 500;

/// One launcher of `[launchers.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LauncherConfig {
    /// What is run is known: `bwrap`, `podman`, `docker`, `ssh`, `kubectl`, `srun`, `local`. Else `argv` says it.
    pub preset: Option<String>,
    /// The program and its arguments, with `{runner}` or `{shell}` where the runner is to be.
    pub argv: Vec<String>,
    /// The path of the runner's program over there.
    pub runner: Option<String>,
    /// The program of the runner that is brought into a container, where that is not the one of the host: a static one.
    pub bring: Option<PathBuf>,
    /// What ends a process over there that was killed here.
    pub kill: Option<Vec<String>>,
    /// How long a runner may take to answer, milliseconds.
    pub launch_ms: Option<u64>,
    /// Whether the working folder is on this machine.
    pub files: Option<Files>,
    /// What becomes of tool servers that only the process has.
    pub servers: Option<Servers>,
    /// The folder over there, where a process has none of its own.
    pub dir: Option<String>,
    /// Variables of the host that the runner gets beside the usual ones.
    pub env: Vec<String>,
    /// Whether there is a network inside.
    pub network: bool,
    /// Whether the working folder may be written to.
    pub write: bool,
    /// Files and folders that may be written to inside.
    pub bind: Vec<PathBuf>,
    /// Files and folders that are shown inside.
    pub bind_read: Vec<PathBuf>,
    /// The image of the container.
    pub image: Option<String>,
    /// The machine, as ssh names it.
    pub host: Option<String>,
    /// The namespace of the cluster.
    pub namespace: Option<String>,
    /// Further arguments of the program.
    pub options: Vec<String>,
}

impl Config {
    /// The launchers that it names, and that its default is one of them.
    ///
    /// # Errors
    /// [`ConfigError::Value`] names the key, and what is wrong with it.
    pub fn launchers(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<BTreeMap<String, Launcher>, ConfigError> {
        let mut launchers = BTreeMap::new();
        for name in self.launchers.keys() {
            launchers.insert(name.clone(), self.launcher(name, env)?);
        }
        if let Some(Err(error)) = self.default_launcher.as_deref().map(|name| kept(&launchers, name)) {
            let message = format!("cannot be used: {error}; name one of them, or add [launchers.NAME]");
            return Err(self.value_error("default_launcher", message));
        }
        Ok(launchers)
    }

    /// Its own file and those of keys: nothing that a launcher fences in sees them.
    #[must_use]
    pub fn private(&self, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
        let keys = self.models.values().filter_map(|model| model.api_key_file.as_deref());
        let keys = keys.map(|file| self.resolve_path(file, env));
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        std::iter::once(self.path.clone()).chain(keys).map(absolute).collect()
    }

    /// One of them.
    ///
    /// # Errors
    /// [`ConfigError::Value`] names the key, and what is wrong with it.
    pub(crate) fn launcher(&self, name: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Launcher, ConfigError> {
        let written = self.launchers.get(name).cloned().unwrap_or_default();
        let of = |(key, message): (&str, String)| {
            let key = if key.is_empty() { format!("launchers.{name}") } else { format!("launchers.{name}.{key}") };
            self.value_error(key, message)
        };
        check_name(name).map_err(of)?;
        let path = |path: &Path| {
            let path = self.resolve_path(path, env);
            std::path::absolute(&path).unwrap_or(path)
        };
        read(name, &written, &path).map_err(of)
    }
}

/// A key, and what is wrong with it.
type Fault = (&'static str, String);

fn check_name(name: &str) -> Result<(), Fault> {
    if name == LOCAL {
        let message = "has the name of what is there without a launcher; name it otherwise, with preset = \"local\"";
        return Err(("", message.to_owned()));
    }
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(plain) {
        let message = "is no name of a launcher; it is made of letters, digits, `.`, `_` and `-`, and is short";
        return Err(("", message.to_owned()));
    }
    Ok(())
}

fn read(name: &str, written: &LauncherConfig, path: &dyn Fn(&Path) -> PathBuf) -> Result<Launcher, Fault> {
    let preset = match (&written.preset, written.argv.is_empty()) {
        (Some(preset), true) => Some(presets::preset(preset).ok_or_else(|| {
            ("preset", format!("is none that there is; there are: {}; or give `argv`", presets::names()))
        })?),
        (None, false) => None,
        (Some(_), false) => return Err(("", "has both a `preset` and an `argv`; give one of them".to_owned())),
        (None, true) => {
            let message = format!("has neither a `preset` ({}) nor an `argv`; give one of them", presets::names());
            return Err(("", message));
        }
    };
    bounded(written)?;
    fits(written, preset)?;
    let argv = match preset {
        Some(preset) => rows(preset.argv, written),
        None => vec![Words { words: written.argv.clone(), with_dir: false }],
    };
    let kill = match (&written.kill, preset) {
        (Some(kill), _) => kill.clone(),
        (None, Some(preset)) => rows(preset.kill, written).into_iter().flat_map(|row| row.words).collect(),
        (None, None) => Vec::new(),
    };
    check_words(written, preset.is_some(), &kill)?;
    let files = written.files.or(preset.map(|preset| preset.files)).unwrap_or_default();
    let servers = written.servers.or(preset.map(|preset| preset.servers)).unwrap_or_default();
    let launcher = Launcher {
        name: name.to_owned(),
        preset,
        argv,
        kill,
        runner: written.runner.clone().or_else(|| {
            let of_preset = preset.and_then(|preset| preset.runner);
            of_preset.or((files == Files::Elsewhere).then_some(OWN)).map(str::to_owned)
        }),
        bring: written.bring.as_deref().map(path),
        launch_ms: written.launch_ms,
        files,
        servers,
        dir: written.dir.clone(),
        env: written.env.clone(),
        network: written.network,
        write: written.write,
        bind: written.bind.iter().map(|one| path(one)).collect(),
        bind_read: written.bind_read.iter().map(|one| path(one)).collect(),
    };
    if launcher.is_elsewhere() && servers == Servers::Outside && preset.is_none_or(|preset| preset.name != LOCAL) {
        return Err(("servers", "is `outside`, where they would work on other files than the assistant".to_owned()));
    }
    Ok(launcher)
}

/// A few signs that are others for other options.
fn tag(options: &[String]) -> String {
    let digest = Sha256::digest(options.join("\0"));
    digest.iter().take(TAG_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// The words of a preset, with what is written put in.
fn rows(rows: &[(When, &str)], written: &LauncherConfig) -> Vec<Words> {
    let counts = |when: &When| match when {
        When::Always | When::Dir => true,
        When::Network => written.network,
        When::NoNetwork => !written.network,
        When::Namespace => written.namespace.is_some(),
        When::Unix => cfg!(unix),
    };
    let put_in = |word: &str| -> Vec<String> {
        if word == "{options}" {
            return written.options.clone();
        }
        let mut word = word.to_owned();
        // Connections that are opened with other options, another key perhaps, are others.
        word = word.replace("{tag}", &tag(&written.options));
        for (placeholder, value) in
            [("{image}", &written.image), ("{host}", &written.host), ("{namespace}", &written.namespace)]
        {
            word = word.replace(placeholder, value.as_deref().unwrap_or_default());
        }
        vec![word]
    };
    let row = |(when, words): &(When, &str)| Words {
        words: words.split_ascii_whitespace().flat_map(put_in).collect(),
        with_dir: *when == When::Dir,
    };
    rows.iter().filter(|(when, _)| counts(when)).map(row).collect()
}

fn bounded(written: &LauncherConfig) -> Result<(), Fault> {
    let lists = [
        ("argv", written.argv.len()),
        ("kill", written.kill.as_ref().map_or(0, Vec::len)),
        ("env", written.env.len()),
        ("bind", written.bind.len()),
        ("bind_read", written.bind_read.len()),
        ("options", written.options.len()),
    ];
    match lists.into_iter().find(|(_, len)| *len > WORDS_MAX) {
        Some((key, len)) => Err((key, format!("has {len} entries; the most is {WORDS_MAX}"))),
        None => Ok(()),
    }
}

/// Whether what is written goes with the preset, and whether all is there that it needs.
fn fits(written: &LauncherConfig, preset: Option<&'static Preset>) -> Result<(), Fault> {
    let given = [
        ("network", written.network, Setting::Network),
        ("write", written.write, Setting::Write),
        ("bind", !written.bind.is_empty(), Setting::Bind),
        ("bind_read", !written.bind_read.is_empty(), Setting::Bind),
        ("bring", written.bring.is_some(), Setting::Bring),
        ("image", written.image.is_some(), Setting::Image),
        ("host", written.host.is_some(), Setting::Host),
        ("namespace", written.namespace.is_some(), Setting::Namespace),
        ("dir", written.dir.is_some(), Setting::Dir),
        ("options", !written.options.is_empty(), Setting::Options),
    ];
    let mounts = ["{mounts}", "{volumes}"];
    let shows = written.argv.iter().any(|word| mounts.contains(&word.as_str()));
    for (key, is_given, setting) in given {
        let takes = match preset {
            Some(preset) => preset.takes.contains(&setting),
            None => setting == Setting::Dir || (shows && matches!(setting, Setting::Write | Setting::Bind)),
        };
        if is_given && !takes {
            let with: Vec<&str> =
                presets::PRESETS.iter().filter(|one| one.takes.contains(&setting)).map(|one| one.name).collect();
            return Err((key, format!("goes with the presets {} only; else write it into `argv`", with.join(", "))));
        }
        let needed = preset.is_some_and(|preset| preset.takes.contains(&setting));
        if needed && !is_given && matches!(setting, Setting::Image | Setting::Host) {
            return Err(("", format!("has no `{key}`, which its preset needs")));
        }
    }
    for (key, value) in [("image", &written.image), ("host", &written.host), ("namespace", &written.namespace)] {
        // What begins with a `-` would be an option.
        let odd = |text: &String| {
            text.is_empty() || text.starts_with('-') || text.chars().any(|c| c.is_whitespace() || c.is_control())
        };
        if value.as_ref().is_some_and(|text| odd(text) || text.contains(['{', '}'])) {
            return Err((key, "is no name; it has no blanks and no braces, and does not begin with `-`".to_owned()));
        }
    }
    if written.launch_ms == Some(0) {
        return Err(("launch_ms", "is 0, so that nothing could start; leave it out, or give milliseconds".to_owned()));
    }
    for (key, value) in [("runner", &written.runner), ("dir", &written.dir)] {
        if value.as_ref().is_some_and(|text| text.trim().is_empty() || text.contains('\0')) {
            return Err((key, "is empty; leave it out, or give a path".to_owned()));
        }
    }
    let is_name = |name: &String| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if let Some(odd) = written.env.iter().find(|name| !is_name(name)) {
        return Err(("env", format!("has {odd:?}, which is no name of a variable; values are not written here")));
    }
    Ok(())
}

/// Whether the words of the commands can be filled in.
fn check_words(written: &LauncherConfig, of_preset: bool, kill: &[String]) -> Result<(), Fault> {
    for (key, words) in [("argv", &written.argv), ("options", &written.options)] {
        if let Some((word, why)) = words.iter().find_map(|word| fault(word).map(|why| (word, why))) {
            return Err((key, format!("has a word {word:?} that {why}")));
        }
    }
    let runs = |word: &String| word == "{runner}" || word == "{shell}";
    if !of_preset && !written.argv.iter().any(runs) {
        return Err((
            "argv",
            "has no \"{runner}\", which is where the program and arguments of the runner go".to_owned(),
        ));
    }
    if written.argv.first().is_some_and(|program| program.trim().is_empty() || program == "{shell}") {
        return Err(("argv", "names no program".to_owned()));
    }
    let here = ["{name}", "{process}", "{private}"];
    let odd =
        |word: &&String| crate::launcher::placeholders(word).any(|found| !here.contains(&found)) || word.contains('\0');
    match kill.iter().find(odd) {
        Some(word) => Err(("kill", format!("has a word {word:?}; only {} can be filled in there", here.join(", ")))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
