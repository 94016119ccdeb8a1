//! Output that real agents wrote: `tests/data/agents/NAME-VERSION/CASE.jsonl`, with stderr and exit code beside it where
//! there were any. What the host is told of it stands in `CASE.told`; with ASSISTANT_UPDATE=1 these files are written anew.

use std::path::Path;

use serde_json::{Value, json};

use crate::real::skip;
use crate::stand_in::{StandIn, data, others_write_there};

async fn play(name: &'static str, case: &Path) -> String {
    let agent = StandIn::of(name);
    let (err, code) = (case.with_extension("err"), case.with_extension("code"));
    let code: i64 = std::fs::read_to_string(code).map_or(0, |code| code.trim().parse().expect("a number"));
    let mut steps = vec![json!(["read"])];
    if err.exists() {
        steps.push(json!(["errcat", err.display().to_string()]));
    }
    steps.extend([json!(["cat", case.display().to_string()]), json!(["exit", code])]);
    agent.plays(&Value::from(steps));
    let host = agent.host().await;
    let ended = host.run(json!({ "agent": { "tools": ["Bash", "Read"] } })).await;
    let mut told = host.lines();
    told.push(ended);
    assert_eq!(host.end().await, Some(0));
    told.iter().map(|line| format!("{}\n", line.replace('\n', "\\n"))).collect()
}

async fn check(name: &'static str) {
    let folders = std::fs::read_dir(data().join("agents")).expect("lists").flatten().map(|entry| entry.path());
    let mine =
        |path: &Path| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&format!("{name}-")));
    let mut played = 0;
    for folder in folders.filter(|folder| mine(folder)) {
        let cases = std::fs::read_dir(&folder).expect("lists").flatten().map(|entry| entry.path());
        for case in cases.filter(|case| case.extension().is_some_and(|ending| ending == "jsonl")) {
            let (told, want) = (play(name, &case).await, case.with_extension("told"));
            if std::env::var_os("ASSISTANT_UPDATE").is_some() {
                std::fs::write(&want, &told).expect("writes");
            }
            let want = std::fs::read_to_string(&want).unwrap_or_default();
            assert_eq!(told, want, "{}; ASSISTANT_UPDATE=1 writes it anew", case.display());
            played += 1;
        }
    }
    assert!(played >= 5, "{name}: {played} recordings");
}

#[tokio::test]
async fn claude_code_is_understood() {
    check("claude").await;
}

#[tokio::test]
async fn codex_is_understood() {
    check("codex").await;
}

#[tokio::test]
async fn opencode_is_understood() {
    check("opencode").await;
}

#[tokio::test]
async fn gemini_is_understood() {
    if others_write_there() {
        return skip("others may write to the cache folder of this user, and Gemini CLI is not run there");
    }
    check("gemini").await;
}
