use std::path::Path;

use super::*;
use crate::model::ScriptedModel;

/// A script's file, written once for all tests.
fn script() -> String {
    static PATH: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let path = std::env::temp_dir().join(format!("assistant-host-models-{}.json", std::process::id()));
        std::fs::write(&path, r#"{"assistants": [{"steps": [{"text": "hello"}]}]}"#).expect("writes");
        path.display().to_string()
    });
    PATH.clone()
}

fn read(text: &str, vars: &'static [(&str, &str)]) -> Result<Models, ConfigError> {
    let text = text.replace("SCRIPT", &script());
    let config = Config::parse(&text, Path::new("/c/config.toml")).expect("is a configuration");
    let env = move |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    Models::from_config(&config, &env)
}

const THREE: &str = r#"
    default_model = "plain"
    [models.plain]
    provider = "scripted"
    script = "SCRIPT"
    [models.fast]
    provider = "scripted"
    model = "claude-haiku-4-5"
    script = "SCRIPT"
    [models.big]
    provider = "scripted"
    script = "SCRIPT"
    [model_aliases]
    opus = "big"
"#;

/// What a wish resolves to, as `name` or `name, because why`.
fn check(wish: &[&str], spawner: Option<&str>, want: &str) {
    let models = read(THREE, &[]).expect("reads");
    let wish: Vec<_> = wish.iter().map(|name| (*name).to_owned()).collect();
    let choice = models.resolve(&wish, spawner, false).expect("resolves");
    assert!(models.get(&choice.name).is_some());
    let told = choice.why.map_or(choice.name.clone(), |why| format!("{}, because {why}", choice.name));
    assert_eq!(told, want, "{wish:?}");
}

#[test]
fn a_wish_means_a_configured_model() {
    check(&[], None, "plain");
    check(&[], Some("big"), "big");
    check(&[], Some("gone"), "plain");
    check(&["inherit"], Some("fast"), "fast");
    check(&["inherit"], None, "plain");
    check(&["big"], Some("fast"), "big");
    check(&["BIG"], None, "big");
    check(&["opus"], None, "big");
    check(&["haiku"], None, "fast");
    check(&["Claude-Haiku-4-5"], None, "fast");
    check(&["sonnet"], Some("big"), "plain, because `sonnet` is not configured");
    check(&["GPT-4.1", "fast"], None, "fast");
    check(&["a", "b"], None, "plain, because `a` is not configured; `b` is not configured");
    check(&[" "], Some("big"), "big");
}

#[test]
fn strict_models_refuse_a_wish_that_is_unknown() {
    let models = read(THREE, &[]).expect("reads");
    let error = models.resolve(&["GPT-4.1".to_owned()], None, true).expect_err("refused");
    let want = "`GPT-4.1` is not configured, and `strict_models` is set. Configured are: big, fast, plain. Name one of \
                them, or add it to /c/config.toml.";
    assert_eq!(error.to_string(), want);
    assert_eq!(models.resolve(&[], None, true).map(|choice| choice.name), Ok("plain".to_owned()));
}

#[test]
fn without_models_the_error_says_how_to_get_one() {
    let models = read("", &[]).expect("reads");
    let want = "No model is configured, so no assistant can run. `assistant-host setup model` sets one up; or set \
                ANTHROPIC_API_KEY or OPENAI_API_KEY or \
                GEMINI_API_KEY or GOOGLE_API_KEY, or add [models.NAME] to /c/config.toml, then restart this server.";
    assert_eq!(models.resolve(&[], None, false).expect_err("none").to_string(), want);
}

#[test]
fn an_app_passes_models_in() {
    let mut models = Models::default();
    models.insert("mine", Arc::new(ScriptedModel::read(Path::new(&script())).expect("reads")));
    assert_eq!(models.resolve(&[], None, false), Ok(Choice { name: "mine".into(), why: None }));
    assert!(models.get("mine").is_some());
}

#[test]
fn a_configuration_that_does_not_fit_is_told() {
    let check = |text: &str, want: &str| {
        let error = read(text, &[]).expect_err("refused").to_string();
        assert_eq!(error, format!("/c/config.toml: {want}"));
    };
    let scripted = "provider = \"scripted\"\nscript = \"SCRIPT\"\n";
    check("default_model = \"x\"", "`default_model` is `x`, which is no [models.NAME] of this file: it has none");
    check(
        &format!("[models.a]\n{scripted}[models.b]\n{scripted}"),
        "`default_model` is needed where there are several models: set it to one of a, b",
    );
    check(
        &format!("[models.a]\n{scripted}[model_aliases]\nq = \"z\""),
        "`model_aliases.q` is `z`, which is no [models.NAME] of this file: it has a",
    );
    check("[models.a]\nprovider = \"scripted\"", "`models.a.script` is needed: the file of the scripted replies");
    check("[models.a]\nprovider = \"openai\"", "`models.a.model` is needed: the provider's name of the model");
    check(
        "[models.a]\nprovider = \"openai\"\nmodel = \"m\"\napi_key_env = \"K\"\napi_key_file = \"f\"",
        "`models.a.api_key_file` and `api_key_env` are both set: keep one",
    );
}

#[cfg(not(feature = "network-models"))]
#[test]
fn a_network_model_needs_the_feature() {
    let text = "[models.a]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1\"";
    let want = "/c/config.toml: `models.a.provider` is `openai`, but this program was built without network models \
                (`network-models`)";
    assert_eq!(read(text, &[]).expect_err("refused").to_string(), want);
}

#[cfg(feature = "network-models")]
#[test]
fn keys_in_the_environment_choose_a_model() {
    let check = |vars, want: Option<&str>| {
        let models = read("", vars).expect("reads");
        assert_eq!(models.default_name(), want);
    };
    check(&[], None);
    check(&[("OPENAI_API_KEY", "  ")], None);
    check(&[("OPENAI_API_KEY", "k")], Some("gpt-5-mini"));
    check(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")], Some("claude-sonnet-4-5"));
    check(&[("GEMINI_API_KEY", "k")], Some("gemini-2.5-flash"));
    check(&[("GOOGLE_API_KEY", "k")], Some("gemini-2.5-flash"));
    check(&[("GOOGLE_API_KEY", "k"), ("OPENAI_API_KEY", "k")], Some("gpt-5-mini"));
    check(&[("OLLAMA_HOST", "127.0.0.1")], None);
}

#[cfg(feature = "network-models")]
#[test]
fn each_provider_finds_its_key() {
    let check = |provider: &str, vars, want: Result<&str, &str>| {
        let text = format!("[models.a]\nprovider = \"{provider}\"\nmodel = \"m\"");
        let models = read(&text, vars).expect("reads");
        let of =
            |model: Result<Arc<dyn Model>, &str>| model.map(|model| model.provider().to_owned()).map_err(str::to_owned);
        let got = models.all().next().map(|(_, _, model)| of(model));
        let missing = |variable: &str| format!("the environment variable {variable}, which holds its key, is not set");
        assert_eq!(got, Some(want.map(str::to_owned).map_err(missing)));
    };
    check("ollama", &[], Ok("ollama"));
    check("openai_responses", &[], Err("OPENAI_API_KEY"));
    check("openai_responses", &[("OPENAI_API_KEY", "k")], Ok("openai_responses"));
    check("gemini", &[], Err("GEMINI_API_KEY"));
    check("gemini", &[("GEMINI_API_KEY", "k")], Ok("gemini"));
    check("gemini", &[("GOOGLE_API_KEY", "k")], Ok("gemini"));
    check("anthropic", &[("OPENAI_API_KEY", "k")], Err("ANTHROPIC_API_KEY"));
}

#[cfg(feature = "network-models")]
#[test]
fn a_model_without_its_key_is_known_but_not_used() {
    let text = "[models.a]\nprovider = \"openai\"\nmodel = \"m\"\napi_key_env = \"KEY\"";
    let models = read(text, &[]).expect("reads");
    let error = models.resolve(&[], None, false).expect_err("cannot be used").to_string();
    let why = "the environment variable KEY, which holds its key, is not set";
    assert_eq!(error, format!("The model `a` cannot be used: {why}."));
    assert!(models.get("a").is_none());
    assert!(read(text, &[("KEY", "k")]).expect("reads").get("a").is_some());
    let own = "[models.a]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1\"";
    assert!(read(own, &[]).expect("reads").get("a").is_some(), "a server of one's own needs no key");
    let wrong = "[models.a]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"ftp://x\"";
    let error = read(wrong, &[]).expect_err("refused").to_string();
    let want = "/c/config.toml: `models.a.base_url` is no address that starts with http:// or https://";
    assert_eq!(error, want);
}
