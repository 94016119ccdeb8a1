//! What becomes of the tool servers of a process whose runner a launcher starts: those that only it has, and those that would
//! work on its files, are started in the same way or not at all.

use std::path::Path;

use super::plan::Planned;
use super::presets;
use super::spec::How;
use crate::launcher::{Launcher, Servers};

/// Where a process works.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Its folder.
    pub(crate) working_dir: Option<&'a Path>,
    /// What starts its runner; none is the machine as it is.
    pub(crate) by: Option<&'a Launcher>,
    /// Its depth.
    pub(crate) depth: u32,
}

impl<'a> Place<'a> {
    /// The launcher by which a server of the process is started; none for one that works outside, as it may.
    ///
    /// # Errors
    /// In words: it is not started.
    pub(super) fn fence(&self, planned: &Planned) -> Result<Option<&'a Launcher>, String> {
        let Some(launcher) = self.by.filter(|_| is_own(planned)) else { return Ok(None) };
        let name = &launcher.name;
        let env = match &planned.spec.how {
            How::Program { env, .. } => env,
            How::Http { .. } | How::Named | How::Off | How::Unusable(_) => return Ok(None),
        };
        match launcher.servers {
            Servers::Outside => Ok(None),
            Servers::Withheld if launcher.is_elsewhere() => Err(format!(
                "the launcher `{name}` has the assistant work on another machine, and this server would work on the host's; \
                 `servers = \"inside\"` of [launchers.{name}] starts it over there"
            )),
            Servers::Withheld => Err(format!(
                "the launcher `{name}` fences the assistant in, and this server would work outside of that; where what it \
                 needs is inside, `servers = \"inside\"` of [launchers.{name}] starts it there"
            )),
            Servers::Inside if launcher.shows_values() && !env.is_empty() => Err(format!(
                "its variables may hold secrets, and the launcher `{name}` could give them to it only in a command line, for \
                 all to see"
            )),
            Servers::Inside => match env.keys().find(|variable| launcher.heeds(variable)) {
                Some(variable) => Err(format!(
                    "its variable {variable} would be heeded by the program of the launcher `{name}`, outside of what that fences \
                     in; let its command be `env` with {variable}=… as the first argument, or leave it out"
                )),
                None => Ok(Some(launcher)),
            },
        }
    }
}

/// Whether a server works for one process, on its files: one that is not shared, one of a definition, and those that read,
/// write and run commands. One that the configuration shares is nobody's own.
fn is_own(planned: &Planned) -> bool {
    !planned.spec.shared || planned.of_definition || presets::preset(&planned.spec.name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::servers::spec::Spec;

    #[test]
    fn own_servers_are_fenced_in_or_not_there() {
        let check = |launcher: &str, server: (&str, bool, bool), env: &[(&str, &str)], expected: Result<bool, &str>| {
            let text = format!("[launchers.a]\n{launcher}");
            let config = Config::parse(&text, "c.toml".as_ref()).expect("a configuration");
            let launcher = config.launcher("a", &|_| None).expect("a launcher");
            let (name, shared, of_definition) = server;
            let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let how = How::Program { command: "c".to_owned(), args: Vec::new(), env, folder: None };
            let spec = Spec { shared, ..Spec::new(name, how) };
            let planned = Planned { spec, of_definition, bare: false, trust: None };
            let found = Place { working_dir: None, by: Some(&launcher), depth: 0 }.fence(&planned);
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.is_some(), expected, "{text} {server:?}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{text} {server:?}: {why}"),
                (found, _) => panic!("{text} {server:?}: {:?}", found.map(|found| found.is_some())),
            }
        };
        let (own, shared, defined) = (("s", false, false), ("s", true, false), ("s", true, true));
        let key = [("KEY", "k")];
        for server in [own, defined, ("filesystem", true, false), ("shell", false, false)] {
            check("preset = 'bwrap'", server, &key, Ok(true));
            check("preset = 'local'", server, &key, Ok(false));
            check("preset = 'podman'\nimage = 'i'", server, &[], Err("fences the assistant in"));
            check("preset = 'podman'\nimage = 'i'\nservers = 'inside'", server, &key, Ok(true));
            check("preset = 'ssh'\nhost = 'h'", server, &[], Err("on another machine"));
            check("preset = 'ssh'\nhost = 'h'\nservers = 'inside'", server, &[], Ok(true));
            check("preset = 'ssh'\nhost = 'h'\nservers = 'inside'", server, &key, Err("may hold secrets"));
        }
        let podman = "preset = 'podman'\nimage = 'i'\nservers = 'inside'";
        let own_argv = "argv = ['jail', '{runner}']\nservers = 'inside'";
        for (name, by_bwrap) in [
            ("LD_PRELOAD", false),
            ("DYLD_INSERT_LIBRARIES", false),
            ("PATH", false),
            ("Path", false),
            ("HOME", true),
            ("DOCKER_HOST", true),
            ("CONTAINERS_CONF", true),
            ("http_proxy", true),
            ("BASH_ENV", true),
        ] {
            let refused = format!("its variable {name} would be heeded by the program of the launcher `a`");
            check("preset = 'bwrap'", own, &[(name, "x")], if by_bwrap { Ok(true) } else { Err(&refused) });
            check(podman, own, &[(name, "x")], Err(&refused));
            check(own_argv, own, &[(name, "x")], Err(&refused));
            // Nobody who is not fenced in is refused one.
            check("preset = 'bwrap'", shared, &[(name, "x")], Ok(false));
            check("preset = 'local'", own, &[(name, "x")], Ok(false));
        }
        check("argv = ['jail', '--env', '{variable}', '{runner}']\nservers = 'inside'", own, &key, Ok(true));
        check("preset = 'bwrap'", shared, &key, Ok(false));
        check("preset = 'ssh'\nhost = 'h'", shared, &key, Ok(false));
    }
}
