//! What an assistant would have here: its tools, its model, and what its definition asks for in vain.
//!
//! One computation for the spawn, for the lists that clients see, and for `assistant-host check`.

use std::collections::BTreeMap;

use super::Tool;
use super::grants::{self, Grants, Unavailable};
use super::policy::is_of_agents;
use crate::host::Host;
use crate::launchers::{self, LOCAL};
use crate::model::{Choice, Models, NoModel};
use crate::registry::{Code, Definition, Diagnostic, bare};
use crate::runners::{Named, UnknownRunner};
use crate::servers::{self, Configured};
use crate::text::{NAME_SHOWN_CHARS_MAX, cut};
use crate::trust::{self, Ruled};

/// Characters of a list of names in a message.
const NAMES_CHARS_MAX: usize = 300;

/// Keys, folded, that deny tools.
const DENYING: &[&str] =
    &["disallowedtools", "deniedtools", "excludedtools", "excludetools", "permission", "permissions"];

/// What decides what a definition gets.
#[derive(Clone, Copy)]
pub(crate) struct Stock<'a> {
    /// The tools that there are.
    pub(crate) table: &'a [Tool],
    /// Their names in other systems, as the configuration has them.
    pub(crate) aliases: &'a BTreeMap<String, String>,
    /// The tool servers that the configuration names.
    pub(crate) servers: &'a Configured,
    /// The models that there are.
    pub(crate) models: &'a Models,
    /// The runners that the configuration names.
    pub(crate) runners: &'a dyn Named,
    /// The runner of whoever names none.
    pub(crate) default_runner: Option<&'a str>,
    /// The launchers that the configuration names.
    pub(crate) launchers: &'a dyn launchers::Named,
    /// The launcher of whom none is named for.
    pub(crate) default_launcher: Option<&'a str>,
    /// A wish for an unknown model is refused.
    pub(crate) strict_models: bool,
}

impl<'a> Stock<'a> {
    /// That of a host.
    pub(crate) fn of(host: &'a Host) -> Self {
        Self {
            table: host.tools(),
            aliases: host.tool_aliases(),
            servers: host.configured_servers(),
            models: host.models(),
            runners: host.named_runners(),
            default_runner: host.default_runner(),
            launchers: host.named_launchers(),
            default_launcher: host.default_launcher(),
            strict_models: host.strict_models(),
        }
    }

    /// What a definition would have, spawned by a session.
    pub(crate) fn outfit(&self, definition: &Definition) -> Outfit {
        let runner = definition.runner.as_deref().or(self.default_runner);
        let agent = runner.filter(|name| self.runners.is_agent(name));
        let model = match agent {
            Some(runner) => Ok(Choice { name: runner.to_owned(), why: None }),
            None => self.models.resolve(&definition.model, None, self.strict_models),
        };
        let misspelt = grants::misspelt(&definition.disallowed_tools, self.aliases, self.table);
        let mut grants = grants::of_definition(definition, self.aliases, self.table);
        // What a server brings is known when that has started.
        grants.unavailable.retain(|one| !servers::may_bring(self.servers, definition, &one.tool, self.aliases));
        grants.unavailable.retain(|one| agent.is_none() || !is_of_agents(&one.tool));
        // It comes with the schema.
        grants.unavailable.retain(|one| definition.output_schema.is_none() || one.tool != "final_answer");
        let no_runner = definition.runner.as_deref().and_then(|name| self.runners.named(name).err());
        let no_launcher = definition.launcher.as_deref().and_then(|name| self.no_launcher(name));
        Outfit { grants, misspelt, model, no_runner, no_launcher }
    }

    /// Why a definition cannot have the launcher that it names.
    fn no_launcher(&self, name: &str) -> Option<String> {
        match (name, self.default_launcher.filter(|default| *default != LOCAL)) {
            (LOCAL, Some(fence)) => Some(launchers::out_of(fence)),
            _ => self.launchers.named(name).err().map(|error| error.to_string()),
        }
    }
}

/// What of a definition a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    /// The keys under which it stands, one of these; without case and signs.
    pub(crate) keys: &'static [&'static str],
    /// What stands there; none is all of it.
    pub(crate) value: Option<String>,
}

/// What an assistant would have.
pub(crate) struct Outfit {
    pub(crate) grants: Grants,
    /// A tool that it must not have and that is none here, and the name that is near.
    misspelt: Option<(String, String)>,
    pub(crate) model: Result<Choice, NoModel>,
    /// The runner that it names is none here.
    no_runner: Option<UnknownRunner>,
    /// Why it cannot have the launcher that it names.
    no_launcher: Option<String>,
}

impl Outfit {
    /// Whether the definition names what is not configured, and cannot start therefore.
    #[cfg(feature = "cli")]
    pub(crate) fn cannot_start(&self) -> bool {
        self.no_runner.is_some() || self.no_launcher.is_some()
    }

    /// What the definition asks for in vain; `ruled` is what it would run. No finding has a line.
    pub(crate) fn findings(&self, definition: &Definition, table: &[Tool], ruled: &[Ruled]) -> Vec<Diagnostic> {
        self.findings_about(definition, table, ruled).into_iter().map(|(found, _)| found).collect()
    }

    /// The same, each with what of the definition it is about.
    ///
    /// That no model can be used at all is not told: it is no fault of the definition.
    pub(crate) fn findings_about(
        &self,
        definition: &Definition,
        table: &[Tool],
        ruled: &[Ruled],
    ) -> Vec<(Diagnostic, About)> {
        let file = definition.place();
        let mut found = Vec::new();
        if let [first, ..] = self.grants.unavailable.as_slice() {
            let message = format!("not available here: {}", names(&self.grants.unavailable));
            let diagnostic = Diagnostic::new(Code::ToolUnavailable, &file, message);
            let about = About { keys: &["tools", "allowedtools", "tool"], value: Some(bare(&first.tool).to_owned()) };
            found.push((diagnostic.hint(tool_hint(&first.tool, table)), about));
        }
        if let Some((denied, near)) = &self.misspelt {
            let message = format!("it must not have what is no tool here: {}", cut(denied, NAME_SHOWN_CHARS_MAX));
            let hint = format!("`{near}` is the nearest name");
            let about = About { keys: DENYING, value: Some(denied.clone()) };
            found.push((Diagnostic::new(Code::ToolMisspelt, &file, message).hint(hint), about));
        }
        let wished = || About { keys: &["model", "models"], value: definition.model.first().cloned() };
        match &self.model {
            Ok(Choice { name, why: Some(why) }) => {
                let wish = definition.model.first().map_or("NAME", String::as_str);
                let message = format!("{why}; it runs on `{name}`");
                let diagnostic = Diagnostic::new(Code::ModelReplaced, &file, message);
                found.push((diagnostic.hint(model_hint(wish, name)), wished()));
            }
            Err(refused @ NoModel::Refused { .. }) => {
                let message = refused.to_string().trim_end_matches('.').to_owned();
                found.push((Diagnostic::new(Code::ModelRefused, &file, message), wished()));
            }
            Ok(_) | Err(NoModel::NoneConfigured { .. } | NoModel::Unusable { .. }) => {}
        }
        if let Some(unknown) = &self.no_runner {
            let about = About { keys: &["runner"], value: definition.runner.clone() };
            found.push((Diagnostic::new(Code::RunnerUnknown, &file, unknown.to_string()), about));
        }
        if let Some(why) = &self.no_launcher {
            let about = About { keys: &["launcher"], value: definition.launcher.clone() };
            found.push((Diagnostic::new(Code::LauncherUnknown, &file, why.clone()), about));
        }
        let runs = About { keys: &["mcpservers", "mcp", "hooks", "extensions", "retry"], value: None };
        found.extend(trust::told(definition, ruled).map(|told| (told, runs)));
        found
    }
}

fn names(unavailable: &[Unavailable]) -> String {
    let names: Vec<&str> = unavailable.iter().map(|one| one.tool.as_str()).collect();
    cut(&names.join(", "), NAMES_CHARS_MAX)
}

/// What brings a tool that is not here.
fn tool_hint(tool: &str, table: &[Tool]) -> String {
    let bare = cut(bare(tool), NAME_SHOWN_CHARS_MAX);
    if bare.starts_with("mcp_") || bare.contains('*') {
        return format!("`{bare}` belongs to a tool server, and this host has none of that name");
    }
    if !grants::roles_of(&bare).is_empty() {
        return grants::why_unavailable(&bare);
    }
    let known: Vec<&str> = table.iter().map(|tool| tool.name.as_ref()).collect();
    let like = crate::registry::nearest_name(&bare, &known).filter(|_| !grants::is_foreign(&bare));
    let meant = like.map(|name| format!("`{name}` is the nearest name here; ")).unwrap_or_default();
    let key = toml_key(&bare);
    let to = like.unwrap_or("TOOL");
    format!(
        "{meant}in the configuration, `[tool_aliases]` with `{key} = \"{to}\"` maps it to a tool of `assistant-host tools`"
    )
}

fn model_hint(wish: &str, used: &str) -> String {
    let key = toml_key(&cut(wish, NAME_SHOWN_CHARS_MAX));
    format!(
        "in the configuration, `[model_aliases]` with `{key} = \"{used}\"` takes it without a word, and `[models.NAME]` adds one"
    )
}

/// A name as a key of TOML.
fn toml_key(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if bare { name.to_owned() } else { format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::launcher::RunnerCommand;
    use crate::limits::Limits;
    use crate::model::{Model, ScriptedModel};
    use crate::registry::{Source, read_markdown};
    use crate::runners::Runner;

    /// What a file with this frontmatter gets, and what is said of it.
    fn check(frontmatter: &str, strict_models: bool, tools: &[&str], findings: &[(&str, &str, &str)]) {
        let text = format!("---\nname: x\ndescription: y\n{frontmatter}\n---\nz\n");
        let definition = read_markdown(text.as_bytes(), Path::new("x.md"), Source::Dir).expect("an assistant");
        let table = crate::tools::table(&Limits::default());
        let mut models = Models::default();
        let model = ScriptedModel::from_value(serde_json::json!({ "assistants": [{ "steps": [{ "text": "a" }] }] }))
            .expect("a script");
        models.insert("only", std::sync::Arc::new(model) as std::sync::Arc<dyn Model>);
        let aliases = BTreeMap::from([("Fetch".to_owned(), "read_file".to_owned())]);
        let servers = Configured::default();
        let runners = BTreeMap::from([("python".to_owned(), Runner::from(RunnerCommand::new("python")))]);
        let launchers = BTreeMap::from([("box".to_owned(), ())]);
        let stock = Stock {
            table: &table,
            aliases: &aliases,
            servers: &servers,
            models: &models,
            runners: &runners,
            default_runner: None,
            launchers: &launchers,
            default_launcher: None,
            strict_models,
        };
        let outfit = stock.outfit(&definition);
        let found = outfit.findings(&definition, &table, &[]);
        let found: Vec<_> =
            found.iter().map(|one| (one.code.as_str(), &*one.message, one.hint.as_deref().unwrap_or(""))).collect();
        assert_eq!((outfit.grants.tools, found), (tools.iter().map(ToString::to_string).collect(), findings.to_vec()));
    }

    #[test]
    fn what_is_asked_for_in_vain_is_told() {
        check("tools: Read, Fetch", false, &["read_file"], &[]);
        check("tools: Read, LS\ndisallowedTools: read_file", false, &["list_files"], &[]);
        check("tools: '*'\ndisallowedTools: '*'", false, &[], &[]);
        check("tools: [Read, final_answer]\noutput_schema: {type: object}", false, &["read_file"], &[]);
        check(
            "tools: raedfile, Bash",
            false,
            &[],
            &[(
                "tool_unavailable",
                "not available here: raedfile, Bash",
                "`read_file` is the nearest name here; in the configuration, `[tool_aliases]` with `raedfile = \"read_file\"` maps it to a tool of `assistant-host tools`",
            )],
        );
        check(
            "tools: [Write]",
            false,
            &[],
            &[(
                "tool_unavailable",
                "not available here: Write",
                "the host itself only reads; tool_presets = [\"filesystem\"] in the configuration brings a tool server for it",
            )],
        );
        check(
            "tools: [mcp__db__query]",
            false,
            &[],
            &[(
                "tool_unavailable",
                "not available here: mcp__db__query",
                "`mcp__db__query` belongs to a tool server, and this host has none of that name",
            )],
        );
        check(
            "tools: []\nmodel: GPT-4.1 (copilot)",
            false,
            &[],
            &[(
                "model_replaced",
                "`GPT-4.1 (copilot)` is not configured; it runs on `only`",
                "in the configuration, `[model_aliases]` with `\"GPT-4.1 (copilot)\" = \"only\"` takes it without a word, and `[models.NAME]` adds one",
            )],
        );
        check("tools: []\nmodel: [o9, only]", false, &[], &[]);
        check("tools: []\nrunner: python", false, &[], &[]);
        check("tools: []\nlauncher: box", false, &[], &[]);
        check("tools: []\nlauncher: local", false, &[], &[]);
        check(
            "tools: []\nlauncher: bax",
            false,
            &[],
            &[("launcher_unknown", "no launcher is called `bax` (`box` is); there are: local, box", "")],
        );
        check("tools: []\nrunner: assistant-runner", false, &[], &[]);
        check(
            "tools: []\nrunner: pyton",
            false,
            &[],
            &[("runner_unknown", "no runner is called `pyton` (`python` is); there are: assistant-runner, python", "")],
        );
        check(
            "tools: []\nmodel: o9",
            true,
            &[],
            &[(
                "model_refused",
                "`o9` is not configured, and `strict_models` is set. Configured are: only. Name one of them, or add it to ",
                "",
            )],
        );
    }
}
