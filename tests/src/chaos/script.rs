//! What the assistants of a round do: a script of random steps, so that they make random trees and talk in them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::dice::Dice;

/// Assistants that spawn none.
const LEAVES: &[&str] = &["leaf-a", "leaf-b", "leaf-c", "leaf-d"];
/// Assistants that spawn leaves.
const BRANCHES: &[&str] = &["branch-a", "branch-b", "branch-c"];
/// Assistants that spawn leaves and branches.
const TRUNKS: &[&str] = &["trunk-a", "trunk-b"];
/// The one that a last look at the slots spawns.
pub(super) const QUICK: &str = "quick";
/// Answers after a while, and is there to be written to.
pub(super) const PATIENT: &str = "patient";

/// What assistants are granted.
const TOOLS: &str = "spawn_assistant, poll_assistant, wait_assistant, cancel_assistant, send_message, recv_message, \
    ask_parent, check_answer, get_pending_questions, reply_assistant, list_process";

/// Where the conversation of an assistant names its own thread.
const OWN_THREAD: &str = "{{id_after.Your thread_id is}}";
/// Where its task names the thread of a sibling.
const NEIGHBOUR: &str = "{{id_after.neighbour}}";

/// Assistants that clients spawn.
pub(super) fn spawnable(dice: &mut Dice) -> &'static str {
    match dice.below(10) {
        0 => QUICK,
        1 | 2 => PATIENT,
        3 | 4 => dice.one(LEAVES),
        5..=7 => dice.one(BRANCHES),
        _ => dice.one(TRUNKS),
    }
}

/// Writes the assistants, the script and the configuration of a round into its folder.
pub(super) fn write(dir: &Path, dice: &mut Dice) -> std::io::Result<()> {
    let folder = dir.join("assistants");
    std::fs::create_dir(&folder)?;
    let mut assistants = Vec::new();
    let all = LEAVES.iter().chain(BRANCHES).chain(TRUNKS).chain(&[QUICK, PATIENT]);
    for name in all {
        std::fs::write(folder.join(format!("{name}.md")), crate::bed::assistant(name, TOOLS))?;
        let steps = match *name {
            QUICK => vec![json!({ "text": "the quick result" })],
            PATIENT => {
                vec![
                    json!({ "text": "I take my time", "delay_ms": dice.between(20, 250), "tool_calls": [listen(dice)] }),
                    json!({ "text": format!("done by {OWN_THREAD}"), "delay_ms": dice.between(0, 100) }),
                ]
            }
            name => steps(name, dice),
        };
        assistants.push(json!({ "when": { "system": format!("You are {name}.") }, "steps": steps }));
    }
    std::fs::write(dir.join("script.json"), json!({ "assistants": assistants }).to_string())?;
    std::fs::write(dir.join("config.toml"), config(dice))
}

/// Small limits, so that all are met.
fn config(dice: &mut Dice) -> String {
    let model = "default_model = \"s\"\n[models.s]\nprovider = \"scripted\"\nscript = \"script.json\"\n[limits]\n";
    let mut text = model.to_owned();
    let mut limit = |name: &str, least: u64, most: u64| {
        text.push_str(&format!("{name} = {}\n", dice.between(least, most)));
    };
    limit("running_per_session", 2, 6);
    limit("running_per_host", 3, 8);
    limit("living_per_session", 12, 40);
    limit("queue_per_session", 3, 20);
    limit("spawns_per_tree", 4, 20);
    limit("queued_messages", 3, 20);
    limit("model_calls", 1, 6);
    limit("wall_ms", 1_200, 1_800);
    limit("answer_wait_ms", 300, 500);
    limit("question_ms", 1_000, 2_000);
    limit("launch_ms", 2_500, 3_000);
    limit("grace_ms", 50, 150);
    limit("shutdown_ms", 100, 300);
    limit("session_grace_ms", 50, 400);
    limit("tree_blob_bytes", 30_000, 200_000);
    text
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "tool_name": tool, "arguments": arguments })
}

fn listen(dice: &mut Dice) -> Value {
    let wait_ms = dice.between(0, 150);
    call(
        "recv_message",
        json!({ "thread_id": OWN_THREAD, "unread_only": true, "last_n": dice.between(1, 5), "wait_ms": wait_ms }),
    )
}

fn steps(name: &str, dice: &mut Dice) -> Vec<Value> {
    let mut steps = Vec::new();
    for at in 0..dice.between(1, 3) {
        let mut step =
            if name.starts_with("leaf") || dice.percent(30) { alone(dice, at) } else { growing(name, dice, at) };
        if dice.percent(30) {
            step["delay_ms"] = json!(dice.between(1, 60));
        }
        if dice.percent(25) {
            step["images"] = json!([{ "mime_type": "image/png", "data": picture(dice) }]);
        }
        if dice.percent(8) {
            let (kind, times) = match dice.below(4) {
                0 => ("rejected", 1),
                1 => ("rate_limited", 1),
                2 => ("overloaded", 2),
                _ => ("cut", 1),
            };
            step["error"] = json!({ "kind": kind, "retry_after_ms": dice.between(1, 30) });
            step["times"] = json!(times);
        }
        steps.push(step);
    }
    if dice.percent(4) {
        steps.push(json!({ "hang": true }));
    }
    steps.push(json!({ "text": format!("the result of {name}, {OWN_THREAD}"), "delay_ms": dice.between(0, 30) }));
    steps
}

/// A picture, by its first bytes; some are the same, and a tree that makes many has too much of them.
fn picture(dice: &mut Dice) -> String {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.resize(usize::try_from(dice.between(20, 40)).unwrap_or(20) * 1_000, 7);
    STANDARD.encode(bytes)
}

/// A step of one that looks upwards and sideways.
fn alone(dice: &mut Dice, at: u64) -> Value {
    let words = format!("from {OWN_THREAD}, step {at}");
    let up = |n: u64| call("send_message", json!({ "thread_id": OWN_THREAD, "message": format!("{words}, part {n}") }));
    let ask = |n: u64, wait: bool| {
        let mut arguments = json!({ "question": format!("what now? {words}, question {n}") });
        if !wait {
            arguments["wait_ms"] = json!(0);
        }
        call("ask_parent", arguments)
    };
    let calls = match dice.below(9) {
        0 => vec![ask(0, true)],
        1 => vec![ask(0, false)],
        2 => vec![up(0), up(1), up(2)],
        3 => vec![listen(dice)],
        4 => vec![up(0), ask(0, true), listen(dice)],
        5 => vec![ask(0, false), ask(1, false), up(0)],
        6 => vec![call("list_process", json!({}))],
        7 => vec![call(
            "check_answer",
            json!({ "message_id": "{{ask_parent.message_id}}", "wait_ms": dice.between(0, 200) }),
        )],
        _ => {
            vec![call("send_message", json!({ "thread_id": NEIGHBOUR, "message": format!("to a neighbour {words}") }))]
        }
    };
    // What refers to something that is not there is a refused model call: seldom, but it shall be there too.
    let refers =
        matches!(calls[0]["tool_name"].as_str(), Some("check_answer")) || calls[0].to_string().contains(NEIGHBOUR);
    if refers && dice.percent(60) {
        return json!({ "text": "on", "tool_calls": [up(7)] });
    }
    json!({ "text": "on", "tool_calls": calls })
}

/// A step of one that has children, or makes some.
fn growing(name: &str, dice: &mut Dice, at: u64) -> Value {
    let child = |dice: &mut Dice| {
        if name.starts_with("trunk") && dice.percent(50) { dice.one(BRANCHES) } else { dice.one(LEAVES) }
    };
    let spawn = |dice: &mut Dice, more: Value| {
        let mut arguments = json!({ "assistant_id": child(dice), "query": "go" });
        if let (Some(map), Value::Object(more)) = (arguments.as_object_mut(), more) {
            map.extend(more);
        }
        call("spawn_assistant", arguments)
    };
    let neighbour = json!({ "query": "go, neighbour {{spawn_assistant.thread_id}}" });
    let latest = || json!({ "process_id": "{{spawn_assistant.process_id}}", "answer": format!("the answer of {OWN_THREAD}, step {at}") });
    if at == 0 {
        let sync = json!({ "run_mode": "sync" });
        let calls = match dice.below(6) {
            0 => vec![spawn(dice, sync)],
            1 => vec![spawn(dice, json!({})), spawn(dice, json!({}))],
            2 => vec![spawn(dice, json!({ "detached": true }))],
            3 => vec![spawn(dice, sync.clone()), spawn(dice, sync)],
            4 => vec![
                spawn(dice, json!({ "idempotency_key": "mine" })),
                spawn(dice, json!({ "idempotency_key": "mine" })),
            ],
            _ => vec![spawn(dice, json!({}))],
        };
        return json!({ "text": "I spawn", "tool_calls": calls });
    }
    let wait = |dice: &mut Dice| {
        call("wait_assistant", json!({ "mode": dice.one(&["any", "all"]), "wait_ms": dice.between(20, 400) }))
    };
    let calls = match dice.below(8) {
        0 => vec![wait(dice)],
        1 => vec![call("reply_assistant", latest()), wait(dice)],
        2 => vec![spawn(dice, neighbour)],
        3 => vec![
            call(
                "send_message",
                json!({ "thread_id": "{{spawn_assistant.thread_id}}", "message": format!("down from {OWN_THREAD}, step {at}") }),
            ),
            wait(dice),
        ],
        4 => vec![call("get_pending_questions", json!({})), call("reply_assistant", latest())],
        5 => vec![call(
            "recv_message",
            json!({ "thread_id": "{{spawn_assistant.thread_id}}", "unread_only": true, "wait_ms": dice.between(0, 200) }),
        )],
        6 => vec![call("cancel_assistant", json!({ "process_id": "{{spawn_assistant.process_id}}" }))],
        _ => vec![wait(dice), listen(dice)],
    };
    json!({ "text": "I go on", "tool_calls": calls })
}
