//! What holds for every command-line agent, whatever its output looks like.

use assistant_protocol::error::Kind;
use serde_json::{Value, json};

use crate::stand_in::{StandIn, others_write_there, result, says};

/// How an agent writes: that it begins, a piece of what it says, and its end behind a text.
struct Writes {
    name: &'static str,
    begins: Value,
    says: fn(&str) -> Value,
    ends: fn(&str) -> Value,
    /// What it says comes in pieces of one text.
    in_pieces: bool,
}

fn line(line: &Value) -> Value {
    json!(["out", line.to_string()])
}

/// All of them; what cannot be run here is told.
fn all() -> Vec<Writes> {
    let mut all = vec![
        Writes {
            name: "claude",
            begins: line(&json!({ "type": "system", "subtype": "init", "session_id": "s" })),
            says,
            ends: result,
            in_pieces: false,
        },
        Writes {
            name: "codex",
            begins: line(&json!({ "type": "thread.started", "thread_id": "s" })),
            says: |text| {
                let item = json!({ "id": "i", "type": "agent_message", "text": text });
                line(&json!({ "type": "item.completed", "item": item }))
            },
            ends: |_| line(&json!({ "type": "turn.completed", "usage": { "input_tokens": 1, "output_tokens": 1 } })),
            in_pieces: false,
        },
        Writes {
            name: "opencode",
            begins: line(&json!({ "type": "step_start", "sessionID": "s", "part": {} })),
            says: |text| line(&json!({ "type": "text", "sessionID": "s", "part": { "text": text } })),
            ends: |_| line(&json!({ "type": "step_finish", "sessionID": "s", "part": { "reason": "stop" } })),
            in_pieces: true,
        },
    ];
    if others_write_there() {
        crate::real::skip("gemini: others may write to where its folder would be");
    } else {
        all.push(Writes {
            name: "gemini",
            begins: line(&json!({ "type": "init", "session_id": "s", "model": "m" })),
            says: |text| line(&json!({ "type": "message", "role": "assistant", "content": text, "delta": true })),
            ends: |_| line(&json!({ "type": "result", "status": "success", "stats": {} })),
            in_pieces: true,
        });
    }
    all
}

/// Runs an agent that plays these steps: how its run ends.
async fn ended(writes: &Writes, steps: Vec<Value>) -> String {
    let agent = StandIn::of(writes.name);
    agent.plays(&Value::Array(steps));
    let host = agent.host().await;
    let ended = host.run(json!({})).await;
    assert_eq!(host.end().await, Some(0), "{}", writes.name);
    ended
}

#[tokio::test]
async fn what_is_no_message_is_passed_over_up_to_a_bound() {
    for writes in all() {
        let Writes { name, begins, says, ends, .. } = &writes;
        let mut steps = vec![json!(["read"]), json!(["out", "Loading"]), json!(["raw", "fffe000a"]), begins.clone()];
        let odd =
            ["[1]", "7", "{}", "{\"type\":7}", "{\"type\":\"text\",\"part\":7}", "{\"type\":\"message\",\"role\":"];
        steps.extend(odd.map(|odd| json!(["out", odd])));
        steps.extend([json!(["times", 9_000, "junk"]), says("Hi."), json!(["times", 9_000, "junk"]), ends("Hi.")]);
        assert_eq!(ended(&writes, steps).await, "finished: Hi.", "{name}");
        let steps = vec![json!(["read"]), begins.clone(), json!(["times", 200_000, "junk"]), ends("Hi.")];
        let given_up = "internal_error: the agent wrote 10000 lines in a row that are no JSON objects; the first: junk";
        assert_eq!(ended(&writes, steps).await, given_up, "{name}");
        // What comes behind its answer takes nothing from that; the end of opencode's is told by its exit only.
        let behind = if *name == "opencode" { 9_000 } else { 20_000 };
        let steps = vec![json!(["read"]), begins.clone(), says("Hi."), ends("Hi."), json!(["times", behind, "junk"])];
        assert_eq!(ended(&writes, steps).await, "finished: Hi.", "{name}");
    }
}

#[tokio::test]
async fn an_output_that_breaks_off_is_no_answer() {
    for writes in all() {
        let Writes { name, begins, says, .. } = &writes;
        for broken in [
            vec![],
            vec![json!(["read"]), begins.clone(), says("Hi."), json!(["raw", "7b2274797065223a"])],
            vec![json!(["read"]), begins.clone(), json!(["fill", 40_000_000])],
            vec![json!(["read"]), begins.clone(), says("Hi."), json!(["die", 9])],
            vec![begins.clone(), json!(["close"]), json!(["hang"])],
        ] {
            let shown = format!("{name} {broken:?}");
            let ended = ended(&writes, broken).await;
            assert!(ended.starts_with(Kind::InternalError.name()), "{shown}: {ended}");
        }
    }
}

#[tokio::test]
async fn of_a_huge_answer_as_much_is_kept_as_of_any() {
    let mebibyte = 1 << 20;
    for writes in all() {
        let Writes { name, begins, says, ends, in_pieces } = &writes;
        let (piece, times) = if *in_pieces { ("x".repeat(10_000), 2_000) } else { ("x".repeat(9 * mebibyte), 1) };
        let said = says(&piece)[1].as_str().expect("a line").to_owned();
        let steps = vec![json!(["read"]), begins.clone(), json!(["times", times, said]), ends(&piece)];
        let ended = ended(&writes, steps).await;
        assert_eq!(ended.len(), "finished: ".len() + mebibyte, "{name}: {}", &ended[..ended.len().min(200)]);
        assert!(ended.starts_with("finished: xxx"), "{name}");
    }
}
