//! Who is let in, and who hears what. A host of another build, or with another setting, is replaced when nobody needs
//! it; else the client is refused with words, or told what it does not get.

use std::path::Path;

use super::CONNECTIONS_MAX;
use super::hello::{Asked, Hello, Identity, PAYLOAD_BYTES_MAX, Reply, Status, Want};
use crate::host::stored::How;
use crate::registry::AssistantId;
use crate::tools::profile::Profile;

/// What becomes of a connection.
#[derive(Debug)]
pub(super) enum Verdict {
    /// MCP begins behind this, with the tools of this profile.
    Serve(Reply, Profile),
    /// That is all.
    Answer(Reply),
    /// The database is made small, then that is told.
    Vacuum,
    /// So many bytes follow behind this; what they hold is stored, then that is told.
    Store(Reply, u64, How),
    /// This assistant is removed, then that is told.
    Remove(AssistantId),
    /// The host ends.
    End(Reply),
}

/// Decides about a client where `others` are connected and `living` processes have not ended.
pub(super) fn greet(identity: &Identity, hello: &Hello, others: usize, living: u32) -> Verdict {
    let pid = std::process::id();
    let refused = |message: String| Verdict::Answer(Reply::Refused { message });
    match &hello.want {
        Want::Status => Verdict::Answer(Reply::Status(Status {
            pid,
            version: identity.version.clone(),
            build: identity.build.clone(),
            opened_at: identity.opened_at,
            clients: others,
            living,
            uses: identity.uses.clone(),
            automatic: identity.automatic.clone(),
        })),
        Want::Vacuum => Verdict::Vacuum,
        // Another build may mean something else by the same definition.
        Want::Store { .. } if identity.build != hello.build && others == 0 && living == 0 => {
            Verdict::End(Reply::Ending { pid })
        }
        Want::Store { .. } if identity.build != hello.build => refused(format!(
            "the host of this state directory (process {pid}) is of another build and at work; `assistant-host stop` \
             ends it when it is done, then try again"
        )),
        Want::Store { bytes, .. } if *bytes > PAYLOAD_BYTES_MAX => {
            refused(format!("{bytes} bytes are to be stored, the most at once is {PAYLOAD_BYTES_MAX}; take fewer"))
        }
        Want::Store { bytes, how } => Verdict::Store(Reply::Welcome { pid, told: Vec::new() }, *bytes, *how),
        Want::Remove { id } => Verdict::Remove(id.clone()),
        Want::Stop { force } if !force && living > 0 => {
            refused(format!("{living} assistants are at work; `assistant-host stop --force` cancels them"))
        }
        Want::Stop { .. } => Verdict::End(Reply::Ending { pid }),
        Want::Mcp if others >= CONNECTIONS_MAX => {
            refused(format!("{others} clients are connected, the most that one host serves is {CONNECTIONS_MAX}"))
        }
        Want::Mcp => {
            let differs = differs(identity, hello);
            let stale = hello.config_hash.is_some() && hello.config_hash != identity.config_hash;
            let idle = others == 0 && living == 0;
            match differs {
                Some(_) if idle => Verdict::End(Reply::Ending { pid }),
                None if stale && idle => Verdict::End(Reply::Ending { pid }),
                Some(how) => refused(format!(
                    "the host of this state directory (process {pid}) {how}; it has {others} other clients and {living} \
                     assistants at work. `assistant-host stop` ends it when they are done, `stop --force` now, and \
                     --state DIR makes a host of its own"
                )),
                None => match profile(hello) {
                    Ok(profile) => Verdict::Serve(Reply::Welcome { pid, told: told(identity, hello, stale) }, profile),
                    Err(why) => refused(why),
                },
            }
        }
    }
}

/// How the host is another one than the client wants.
fn differs(identity: &Identity, hello: &Hello) -> Option<String> {
    if identity.build != hello.build {
        return Some(if identity.version == hello.version {
            format!("is another build of version {}", identity.version)
        } else {
            format!("has version {}, and this client {}", identity.version, hello.version)
        });
    }
    let Asked { config, project, assistants } = &hello.asked;
    let other =
        |asked: &Option<std::path::PathBuf>, used: &Option<std::path::PathBuf>| asked.is_some() && asked != used;
    let shown = |path: &Option<std::path::PathBuf>| {
        path.as_deref().map_or_else(|| "none".to_owned(), |path: &Path| path.display().to_string())
    };
    if other(config, &identity.uses.config) {
        return Some(format!("uses the configuration {}", shown(&identity.uses.config)));
    }
    if other(project, &identity.uses.project) {
        return Some(format!("belongs to the project {}", shown(&identity.uses.project)));
    }
    if !assistants.is_empty() && *assistants != identity.uses.assistants {
        return Some("reads its assistants from other folders".to_owned());
    }
    None
}

/// The profile that a client wants, where it can be had here.
fn profile(hello: &Hello) -> Result<Profile, String> {
    let Some(wanted) = &hello.profile else { return Ok(Profile::Orchestrator) };
    Profile::at_a_door(wanted).ok_or_else(|| {
        let wanted = crate::text::cut(wanted, 40);
        format!("this host has no profile `{wanted}` for its clients; it has: {}", Profile::AT_A_DOOR.join(", "))
    })
}

/// Variables that hold keys in the client's environment and not in the host's.
pub(super) fn lacking(identity: &Identity, hello: &Hello) -> Vec<String> {
    identity.lacks.iter().filter(|name| hello.variables.contains(name)).cloned().collect()
}

fn told(identity: &Identity, hello: &Hello, stale: bool) -> Vec<String> {
    let mut told: Vec<String> = lacking(identity, hello).iter().map(|name| lacking_key(name)).collect();
    if stale {
        told.push(
            "the configuration has changed since the host was started; it counts from the next start on \
             (`assistant-host stop` ends the host when it is not at work)"
                .to_owned(),
        );
    }
    told
}

/// What is said of a key that the client has and the host has not.
fn lacking_key(name: &str) -> String {
    format!(
        "{name} is set here, but the host was started without it: put the key into a file that only you can read and \
         name that as `api_key_file` in the configuration, or end the host (`assistant-host stop`) and start again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            version: "1.0.0".into(),
            build: "b".into(),
            uses: Asked { config: Some("/c.toml".into()), ..Asked::default() },
            config_hash: Some("h".into()),
            lacks: vec!["A_KEY".into()],
            ..Identity::default()
        }
    }

    fn hello(want: Want) -> Hello {
        Hello {
            want,
            version: "1.0.0".into(),
            build: "b".into(),
            pid: 1,
            client: "mcp".into(),
            asked: Asked::default(),
            config_hash: Some("h".into()),
            variables: Vec::new(),
            level: 0,
            within: None,
            profile: None,
        }
    }

    /// Compares the kind of the verdict and a part of its words.
    fn check(hello: &Hello, others: usize, living: u32, kind: &str, words: &str) {
        let verdict = format!("{:?}", greet(&identity(), hello, others, living));
        assert!(verdict.starts_with(kind) && verdict.contains(words), "wanted {kind} {words}, got {verdict}");
    }

    #[test]
    fn who_fits_is_let_in() {
        check(&hello(Want::Mcp), 0, 0, "Serve(Welcome", "told: []");
        check(&hello(Want::Mcp), 7, 5, "Serve(Welcome", "told: []");
        check(&hello(Want::Mcp), CONNECTIONS_MAX, 0, "Answer(Refused", "the most that one host serves is 256");
        let lacks = Hello { variables: vec!["B".into(), "A_KEY".into()], ..hello(Want::Mcp) };
        check(&lacks, 0, 0, "Serve(Welcome", "A_KEY is set here");
    }

    #[test]
    fn a_profile_is_the_clients_own() {
        let wants = |profile: &str| Hello { profile: Some(profile.into()), ..hello(Want::Mcp) };
        check(&hello(Want::Mcp), 1, 0, "Serve(Welcome", "Orchestrator");
        check(&wants("orchestrator"), 1, 0, "Serve(Welcome", "Orchestrator");
        check(&wants("subagents"), 1, 0, "Serve(Welcome", "Subagents");
        check(
            &wants("other"),
            1,
            0,
            "Answer(Refused",
            "no profile `other` for its clients; it has: orchestrator, subagents",
        );
        // It has a configuration of its own, and a host of its own.
        check(&wants("single"), 1, 0, "Answer(Refused", "no profile `single`");
        check(&wants(&"x".repeat(10_000)), 1, 0, "Answer(Refused", "xxx…`");
        // Another build hears that first, whatever it wants.
        check(
            &Hello { build: "c".into(), ..wants("other") },
            1,
            0,
            "Answer(Refused",
            "is another build of version 1.0.0",
        );
    }

    #[test]
    fn another_one_is_replaced_when_idle_and_refused_else() {
        let build = Hello { build: "c".into(), ..hello(Want::Mcp) };
        check(&build, 0, 0, "End(Ending", "");
        check(&build, 1, 0, "Answer(Refused", "is another build of version 1.0.0");
        check(&build, 0, 1, "Answer(Refused", "1 assistants at work");
        let version = Hello { version: "2.0.0".into(), ..build };
        check(&version, 1, 0, "Answer(Refused", "has version 1.0.0, and this client 2.0.0");
        let config = Asked { config: Some("/d.toml".into()), ..Asked::default() };
        check(&Hello { asked: config, ..hello(Want::Mcp) }, 1, 0, "Answer(Refused", "the configuration /c.toml");
        let project = Asked { project: Some("/p".into()), ..Asked::default() };
        check(&Hello { asked: project, ..hello(Want::Mcp) }, 1, 0, "Answer(Refused", "the project none");
        let folders = Asked { assistants: vec!["/a".into()], ..Asked::default() };
        check(&Hello { asked: folders, ..hello(Want::Mcp) }, 1, 0, "Answer(Refused", "other folders");
        let same = Asked { config: Some("/c.toml".into()), ..Asked::default() };
        check(&Hello { asked: same, ..hello(Want::Mcp) }, 1, 0, "Serve(Welcome", "told: []");
    }

    #[test]
    fn a_changed_configuration_counts_when_nobody_is_disturbed() {
        let changed = Hello { config_hash: Some("i".into()), ..hello(Want::Mcp) };
        check(&changed, 0, 0, "End(Ending", "");
        check(&changed, 1, 0, "Serve(Welcome", "the configuration has changed");
        let unknown = Hello { config_hash: None, ..hello(Want::Mcp) };
        check(&unknown, 0, 0, "Serve(Welcome", "told: []");
    }

    #[test]
    fn only_the_same_build_stores() {
        let store = |bytes| Want::Store { bytes, how: How::default() };
        check(&hello(store(7)), 2, 3, "Store(Welcome", "7, How { replace: false, dry_run: false }");
        check(&hello(store(u64::MAX)), 0, 0, "Answer(Refused", "the most at once is 134217728");
        let other = Hello { build: "c".into(), ..hello(store(7)) };
        check(&other, 0, 0, "End(Ending", "");
        check(&other, 0, 1, "Answer(Refused", "another build and at work");
    }

    #[test]
    fn every_build_may_ask_and_end_it() {
        let other = |want| Hello { build: "c".into(), ..hello(want) };
        check(&other(Want::Status), 2, 3, "Answer(Status", "clients: 2, living: 3");
        check(&other(Want::Vacuum), 2, 3, "Vacuum", "");
        check(&other(Want::Remove { id: "x".parse().expect("an id") }), 2, 3, "Remove", "x");
        check(&other(Want::Stop { force: false }), 2, 3, "Answer(Refused", "3 assistants are at work");
        check(&other(Want::Stop { force: false }), 2, 0, "End(Ending", "");
        check(&other(Want::Stop { force: true }), 2, 3, "End(Ending", "");
    }
}
