use assistant_protocol::types::ToolCallResult;
use serde_json::json;

use super::*;

const ID: &str = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";

fn model(script: Value) -> ScriptedModel {
    ScriptedModel::from_value(script).expect("is a script")
}

fn ask(system: &str, messages: Vec<Message>) -> Ask {
    Ask { system: Some(system.to_owned()), messages, ..Ask::default() }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn called(id: &str, tool: &str) -> Message {
    let call = Part::ToolCall { call_id: id.into(), tool_name: tool.into(), arguments: Ok(json!({})) };
    Message { role: Role::Assistant, content: Content::Parts(vec![call]) }
}

fn result(id: &str, text: &str) -> Message {
    let result =
        ToolCallResult { content: vec![Part::text(text)], structured_content: None, is_error: false, end_run: None };
    Message::tool_result(id.into(), &result)
}

async fn answer(model: &ScriptedModel, ask: Ask) -> Result<Answer, String> {
    model.answer(ask, &|_| {}).await.map_err(|error| format!("{}: {}", error.kind, error.message))
}

#[tokio::test]
async fn the_first_assistant_that_fits_answers() {
    let script = json!({"assistants": [
        {"when": {"system": "reviewer", "task": "rust"}, "steps": [{"text": "a rust review"}]},
        {"when": {"system": "reviewer"}, "steps": [{"text": "a review"}]},
        {"when": {"last_user": "stop"}, "steps": [{"text": "stopping"}]},
    ]});
    let model = model(script);
    let check = async |system: &str, users: &[&str], want: Result<&str, &str>| {
        let got = answer(&model, ask(system, users.iter().map(|text| user(text)).collect())).await;
        let got = got.map(|answer| answer.message.content.as_text().into_owned());
        assert_eq!(got, want.map(str::to_owned).map_err(str::to_owned));
    };
    check("a reviewer", &["rust code"], Ok("a rust review")).await;
    check("a reviewer", &["go code", "rust code"], Ok("a review")).await;
    check("a writer", &["write", "please stop"], Ok("stopping")).await;
    check("a writer", &["write"], Err("rejected: the script has nothing for this assistant and task")).await;
}

#[tokio::test]
async fn steps_follow_the_conversation_and_quote_it() {
    let script = json!({"model": "demo-1", "assistants": [{"steps": [
        {"reasoning": "who?", "text": "ask", "tool_calls": [
            {"tool_name": "spawn_assistant", "arguments": {"query": "do: {{task}}", "n": [1, "{{id_after.thread}}"]}},
            {"tool_name": "list_files"},
        ]},
        {"tool_calls": [{"tool_name": "send_message", "arguments": {
            "thread_id": "{{spawn_assistant.thread_id}}", "last": "{{result.messages.last.at}}", "first": "{{ result.messages.0.at }}",
        }}]},
        {"text": "It said {{recv.text}} and {{result}}; {{spawn_assistant.thread_id}}, {{last_user}}."},
    ]}]});
    let model = model(script);
    let seen = std::sync::Mutex::new(Vec::new());
    let first = ask(&format!("your thread is <{ID}>"), vec![user("the job")]);
    let told =
        model.answer(first, &|progress| seen.lock().expect("not poisoned").push(progress)).await.expect("answers");
    let call = |id: &str, tool: &str, arguments| Part::ToolCall {
        call_id: id.into(),
        tool_name: tool.into(),
        arguments: Ok(arguments),
    };
    let parts = vec![
        Part::Reasoning { text: Some("who?".into()) },
        Part::text("ask"),
        call("call_0_0", "spawn_assistant", json!({"query": "do: the job", "n": [1, ID]})),
        call("call_0_1", "list_files", json!({})),
    ];
    assert_eq!(told.message.content, Content::Parts(parts));
    assert_eq!((told.finish, told.model.as_str()), (FinishReason::ToolCalls, "demo-1"));
    assert_eq!((told.usage.input_tokens, told.usage.output_tokens), (Some(6), Some(6)));
    let progress = vec![Progress::Reasoning("who?".into()), Progress::Text("ask".into())];
    assert_eq!(seen.into_inner().expect("not poisoned"), progress);

    let mut messages = vec![user("the job"), called("1", "spawn_assistant"), result("1", r#"{"thread_id": "T"}"#)];
    messages.extend([result("2", r#"{"messages": [{"at": 1}, {"at": 2}]}"#)]);
    let told = answer(&model, ask("", messages.clone())).await.expect("answers");
    let arguments = json!({"thread_id": "T", "last": 2, "first": 1});
    assert_eq!(told.message.content, Content::Parts(vec![call("call_1_0", "send_message", arguments)]));

    messages.extend([called("3", "recv"), result("3", r#"{"text": "yes"}"#), user("inserted"), result("4", "plain")]);
    for _ in 0..2 {
        let told = answer(&model, ask("", messages.clone())).await.expect("answers");
        assert_eq!(told.message.content.as_text(), "It said yes and plain; T, inserted.");
        assert_eq!(told.finish, FinishReason::Stop);
        messages.push(told.message);
    }
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let check = async |steps: Value, messages: Vec<Message>, want: &str| {
        let model = model(json!({"assistants": [{"steps": steps}]}));
        assert_eq!(answer(&model, ask("", messages)).await.expect_err("fails"), want);
    };
    let missing = "rejected: the script refers to {{recv.x}}, which is not in the conversation";
    check(json!([{"text": "{{recv.x}}"}]), vec![], missing).await;
    let messages = vec![called("1", "recv"), result("1", "{}"), user("go")];
    check(json!([{"text": "a"}, {"text": "{{recv.x}}"}]), messages, missing).await;
    let after_call = "rejected: the script has 1 steps and none after a tool call";
    check(json!([{"tool_calls": [{"tool_name": "t"}]}]), vec![called("1", "t")], after_call).await;
}

#[tokio::test(start_paused = true)]
async fn errors_delays_and_hanging_are_scripted() {
    let script = json!({"assistants": [{"steps": [
        {"error": {"kind": "rate_limited", "status": 429, "retry_after_ms": 20}, "times": 2, "text": "third time", "delay_ms": 5},
        {"hang": true},
    ]}]});
    let model = model(script);
    let start = tokio::time::Instant::now();
    for _ in 0..2 {
        let error = model.answer(ask("", vec![]), &|_| {}).await.expect_err("fails");
        assert_eq!(
            (error.kind, error.status, error.retry_after_ms),
            (ModelErrorKind::RateLimited, Some(429), Some(20))
        );
    }
    let told = answer(&model, ask("", vec![])).await.expect("answers");
    assert_eq!(told.message.content.as_text(), "third time");
    assert_eq!(start.elapsed(), Duration::from_millis(15));
    let hangs = answer(&model, ask("", vec![told.message]));
    assert!(tokio::time::timeout(Duration::from_secs(3_600), hangs).await.is_err());
}

#[tokio::test]
async fn a_hundred_at_once_do_not_meet() {
    let model = model(json!({"assistants": [{"steps": [{"text": "for {{task}}", "delay_ms": 1}]}]}));
    let calls = (0..100).map(|n| answer(&model, ask("", vec![user(&n.to_string())])));
    let answers = futures::future::join_all(calls).await;
    for (n, told) in answers.into_iter().enumerate() {
        assert_eq!(told.expect("answers").message.content.as_text(), format!("for {n}"));
    }
}

#[test]
fn a_wrong_script_is_told() {
    let check = |text: &str, want: &str| {
        let error = ScriptedModel::parse(text).expect_err("refused").to_string();
        assert!(error.starts_with(want), "{error}");
    };
    check("{", "the script is wrong: EOF while parsing");
    check(r#"{"assistants": []}"#, "the script needs at least one of `assistants`");
    check(r#"{"assistants": [{"steps": []}]}"#, "the script needs at least one of `assistants`");
    check(r#"{"assistants": [{"steps": [{"say": 1}]}]}"#, "the script is wrong: unknown field `say`, expected one of");
}
