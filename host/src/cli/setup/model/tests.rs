//! What is asked, and what is written.

use std::path::Path;

use super::super::super::logins::{AGENTS, Found};
use super::ModelArgs;
use super::ask::Dialog;
use super::candidates::{Candidate, Kind};
use super::plan::{Key, Plan};
use super::write::change;
use crate::config::{Provider, Secret};

fn model(name: &str) -> Plan {
    Plan::Model {
        name: name.to_owned(),
        title: "a title",
        provider: Provider::Anthropic,
        model: "m-1".to_owned(),
        key: Some(Key::Variable("K".to_owned())),
        base_url: None,
        context_tokens: None,
    }
}

fn agent() -> Plan {
    Plan::Agent { name: "claude".to_owned(), agent: &AGENTS[0], variable: Some("CLAUDE_CODE_OAUTH_TOKEN") }
}

/// The lines that come and go, and what is said, or why nothing can be written.
fn check(old: &str, plan: &Plan, args: &ModelArgs, expected: &str) {
    let told = match change(Some(old), Path::new("c.toml"), plan, args) {
        Ok(change) => [change.diff, change.told].concat().join("\n"),
        Err(why) => why,
    };
    assert_eq!(told, expected, "{old}");
}

#[test]
fn a_configuration_gets_an_entry_and_a_default() {
    let plain = ModelArgs::default();
    let entry = "+ [models.a]\n+ provider = \"anthropic\"\n+ model = \"m-1\"\n+ api_key_env = \"K\"";
    check("", &model("a"), &plain, &format!("+ default_model = \"a\"\n+ \n{entry}"));
    let runner = "+ [runners.claude]\n+ agent = \"claude\"\n+ env = [\"CLAUDE_CODE_OAUTH_TOKEN\"]";
    check("", &agent(), &plain, &format!("+ default_runner = \"claude\"\n+ \n{runner}"));
    // Where others stand, and comments.
    let with = "# mine\n[limits] # few\ndepth = 2\n";
    check(with, &model("a"), &plain, &format!("+ default_model = \"a\"\n+ \n+ \n{entry}"));
    let old = "default_model = \"b\"\n[models.b]\nprovider = \"openai\"\nmodel = \"x\"\n";
    let still = "assistants that name nothing still use `b`; --default makes it `a`";
    check(old, &model("a"), &plain, &format!("+ \n{entry}\n{still}"));
    let default = ModelArgs { default: true, ..ModelArgs::default() };
    check(old, &model("a"), &default, &format!("- default_model = \"b\"\n+ default_model = \"a\"\n+ \n{entry}"));
    check("[defaults]\nmodel = \"b\"\n[models.b]\nprovider = \"openai\"\nmodel = \"x\"\n", &model("a"), &default, &{
        format!("- model = \"b\"\n+ model = \"a\"\n+ \n{entry}")
    });
    // An entry of that name.
    let replace = ModelArgs { replace: true, ..ModelArgs::default() };
    check(old, &model("b"), &plain, "c.toml has [models.b] already; choose another --name, or give --replace");
    // The same once more is no fault, however it is laid out; a default can still come to it.
    let same = "default_model = \"a\"\n[models]\na = { model = 'm-1', api_key_env = \"K\", provider = \"anthropic\" } # mine\n";
    check(same, &model("a"), &plain, "");
    check(
        "[models.a]\nprovider = \"anthropic\"\nmodel = \"m-1\"\napi_key_env = \"K\"\n",
        &model("a"),
        &plain,
        "+ default_model = \"a\"\n+ ",
    );
    check("[models.a]\nprovider = \"anthropic\"\nmodel = \"m-1\"\napi_key_env = \"OTHER\"\n", &model("a"), &plain, {
        "c.toml has [models.a] already; choose another --name, or give --replace"
    });
    check(
        "default_runner = \"claude\"\n[runners.claude]\nagent = \"claude\"\nenv = [\"CLAUDE_CODE_OAUTH_TOKEN\"]\n",
        &agent(),
        &plain,
        "",
    );
    let anew = "- provider = \"openai\"\n- model = \"x\"\n+ provider = \"anthropic\"\n+ model = \"m-1\"\n+ api_key_env = \"K\"";
    check(old, &model("b"), &replace, anew);
    // A model beside an agent that runs all.
    let by_agent = "default_runner = \"c\"\n[runners.c]\nagent = \"claude\"\n";
    let beside = "assistants that name no runner are still run by `c`; --default changes that";
    check(by_agent, &model("a"), &plain, &format!("+ default_model = \"a\"\n+ \n{entry}\n{beside}"));
    check(by_agent, &model("a"), &default, &{
        let own = "- default_runner = \"c\"\n+ default_runner = \"assistant-runner\"\n+ default_model = \"a\"";
        format!("{own}\n+ \n{entry}")
    });
    // A model beside the only one, and an agent beside models.
    let lone = "[models.b]\nprovider = \"openai\"\nmodel = \"x\"\n";
    check(lone, &model("a"), &plain, &format!("+ default_model = \"b\"\n+ \n+ \n{entry}\n{still}"));
    check(lone, &model("a"), &default, &format!("+ default_model = \"a\"\n+ \n+ \n{entry}"));
    check(lone, &model("b"), &replace, &format!("+ default_model = \"b\"\n+ \n{anew}"));
    let models = "assistants that name nothing still use `b`; --default has `claude` run them";
    for beside in [old, lone] {
        check(beside, &agent(), &plain, &format!("+ \n{runner}\n{models}"));
    }
    check(old, &agent(), &default, &format!("+ default_runner = \"claude\"\n+ \n{runner}"));
    check("models = 3", &model("a"), &plain, "c.toml, line 1: invalid type: integer `3`, expected a map");
}

/// What is planned from some answers, as its entry, or why nothing is.
fn answers(found: &[Candidate], answers: &str, expected: &str) {
    let mut asked = Vec::new();
    let plan = Dialog::of(answers.as_bytes(), &mut asked).plan(found, &ModelArgs::default());
    let told = plan.map_or_else(|why| why, |plan| serde_json::Value::Object(plan.entry()).to_string());
    assert_eq!(told, expected, "{answers:?}: {}", String::from_utf8_lossy(&asked));
    assert!(!String::from_utf8_lossy(&asked).contains("sk-secret"), "a key is not shown");
}

#[test]
fn questions_have_numbers_and_defaults() {
    let of = |what: &'static str, kind: Kind| Candidate {
        what,
        title: what,
        ready: true,
        why: "why".to_owned(),
        models: Vec::new(),
        kind,
    };
    let login =
        Found { agent: &AGENTS[0], program: Some("/claude".into()), login: Some("/login".to_owned()), variable: None };
    let key = Kind::Key { provider: Provider::OpenAi, set: None, variable: "OPENAI_API_KEY", model: "usual" };
    let found = [of("claude", Kind::Agent(login)), of("openai", key)];
    answers(&found, "\n", r#"{"agent":"claude"}"#);
    answers(&found, "1\n", r#"{"agent":"claude"}"#);
    answers(&found, "9\nx\n1\n", r#"{"agent":"claude"}"#);
    answers(&found, "0\n0\n0\n0\n0\n0\n", "nothing was chosen");
    answers(&found, "", "nobody answered; nothing was written");
    let entry = |model: &str| format!(r#"{{"provider":"openai","model":"{model}","api_key_file":"openai.key"}}"#);
    answers(&found, "2\nsk-secret\n\n", &entry("usual"));
    answers(&found, "2\n sk-secret \nother\n", &entry("other"));
    answers(&found, "2\n\n\n", "no key was given");
    answers(&found, "2\nsk-secret\u{3}", "interrupted; nothing was written");
    answers(&found, "2\n\u{1b}[200~sk-secret\n\n", "the key has signs in it that are none of a key; paste it alone");
    answers(&found, "2\n", "nobody answered; nothing was written");
}

#[cfg(unix)]
#[test]
fn a_pasted_key_gets_a_file_of_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a folder");
    let config = dir.path().join("new/config.toml");
    let secret = Secret::new("sk-secret").expect("a key");
    let Plan::Model { name, title, provider, model, base_url, context_tokens, .. } = model("a") else { unreachable!() };
    let plan = Plan::Model { name, title, provider, model, key: Some(Key::Pasted(secret)), base_url, context_tokens };
    plan.keep_key(&config, false).expect("written");
    let file = dir.path().join("new/a.key");
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "sk-secret\n");
    assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    let again = plan.keep_key(&config, false).map(drop).expect_err("it is there");
    assert!(again.contains("is there already") && !again.contains("secret"), "{again}");
    std::fs::write(&file, "sk-older\n").expect("written");
    let kept = plan.keep_key(&config, true).expect("written over").expect("a key");
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "sk-secret\n");
    // Where the configuration cannot be written, the one before is there again, or none.
    kept.undo().expect("undone");
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "sk-older\n");
    std::fs::remove_file(&file).expect("removed");
    plan.keep_key(&config, false).expect("written").expect("a key").undo().expect("undone");
    assert!(!file.exists());
    assert!(!format!("{plan:?}").contains("secret"), "it is shown nowhere");
}
