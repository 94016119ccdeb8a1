use super::*;

#[test]
fn types_of_models_are_those_of_the_configuration_and_a_few_more_names() {
    let check = |name: &str, want: &str| assert_eq!(provider(name).expect("known").name(), want, "{name}");
    check("anthropic", "anthropic");
    check(" OpenAI", "openai");
    check("scripted", "scripted");
    check("google", "gemini");
    check("gemini", "gemini");
    check("ollama", "ollama");
    let refused = provider("telepathy").expect_err("unknown");
    assert!(refused.starts_with("is `telepathy`, which this host cannot speak to; it can be `openai`, "), "{refused}");
}

#[test]
fn a_file_is_meant_by_its_ending_or_its_key() {
    let dir = tempfile::tempdir().expect("a folder");
    let check = |name: &str, text: &str, want: (bool, bool)| {
        let file = dir.path().join(name);
        std::fs::write(&file, text).expect("a file");
        assert_eq!((is_meant(&file), is_one(&file)), want, "{name}");
    };
    check("a.yaml", "subagent:\n  name: x\n", (true, true));
    check("a.yaml", "name: x\n", (true, false));
    check("a.json", "{\n \"subagent\": {} }", (true, true));
    check("a.toml", "subagent:\n", (false, false));
    check("a.conf", "subagent:\n", (true, true));
    check("a.conf", "[models.x]\n", (false, false));
    check("a.conf", "\u{0}", (false, false));
    assert!(!is_meant(&dir.path().join("missing")));
}
