//! What one client of a round does, and what of its answers it keeps and checks at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::door::Kind;
use super::followed::Followed;
use super::ledger::{Known, Ledger, Replied, Sent, Spawned};
use super::line::{Answer, Line, held};
use super::round::Shared;
use super::script::spawnable;
use super::tables;
use crate::dice::Dice;

/// The wait that is long enough for a lost wake-up to show, milliseconds: disks of loaded machines stand still for some
/// seconds, and no wait is told of what is not committed.
const LONG_WAIT_MS: u64 = 12_000;
/// News that are older than this when a wait ends by its time limit were not told when they came, milliseconds.
const LATE_MS: i64 = 8_000;
/// Processes that a choice mostly is of.
const NEWEST: usize = 4;
/// Calls that one who reads no more sends, at most: they fit into a pipe.
const UNREAD_CALLS_MAX: u64 = 200;
/// Errors of tools that mean that something is wrong with the host, or that it forgot what it had answered.
const NEVER: &[&str] =
    &["internal", "unknown_process", "unknown_thread", "not_permitted", "unknown_assistant", "no_model", "none"];

pub(super) struct Worker<'a> {
    shared: &'a Shared,
    number: u64,
    dice: Dice,
    own: Option<Arc<Line>>,
    followed: Followed,
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Shared, number: u64, dice: Dice) -> Self {
        Self { shared, number, dice, own: None, followed: Followed::default() }
    }

    pub(super) fn work(mut self, steps: u64) -> Followed {
        for _ in 0..steps {
            self.step();
        }
        self.part();
        self.followed
    }

    fn step(&mut self) {
        match self.dice.below(100) {
            0..25 => self.spawn(),
            25..42 => self.send(),
            42..50 => self.poll(),
            50..63 => self.wait(),
            63..70 => self.read_on(),
            70..76 => self.read_unread(),
            76..84 => self.answer_questions(),
            84..88 => self.cancel(),
            88..93 => self.resume(),
            93..95 => self.look_around(),
            95..97 => self.stop_reading(),
            _ => self.part(),
        }
    }

    fn ledger(&self) -> std::sync::MutexGuard<'a, Ledger> {
        held(&self.shared.ledger)
    }

    fn some(&mut self) -> Option<Known> {
        let known = held(&self.shared.known);
        // Mostly one of the newest, as that lives.
        let from = if self.dice.percent(75) { known.len().saturating_sub(NEWEST) } else { 0 };
        (!known.is_empty()).then(|| known[from + self.dice.place(known.len() - from)].clone())
    }

    /// A call of a tool. None where it was refused or lost; what no host may say is a violation.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, Refused> {
        let Some(line) = self.shared.door.line(&mut self.own) else {
            self.ledger().violation("no host can be reached".to_owned());
            return Err(Refused::Lost);
        };
        match line.call(tool, arguments) {
            Answer::Done(value) => {
                if self.dice.percent(3) && self.shared.hosts.take() && self.shared.door.kill_host() {
                    // At once: what was answered has to be there all the same.
                    self.shared.totals.count("hosts killed");
                }
                Ok(value)
            }
            Answer::Told(code, told) => {
                if NEVER.contains(&code.as_str()) {
                    self.ledger().violation(format!("{tool} {arguments}: {told}"));
                }
                Err(Refused::Told)
            }
            Answer::Lost => {
                self.shared.totals.count("calls lost");
                Err(Refused::Lost)
            }
            Answer::Never => {
                self.ledger().violation(format!("{tool} {arguments}: it was never answered"));
                Err(Refused::Lost)
            }
        }
    }

    fn spawn(&mut self) {
        let label = self.ledger().token("spawn", self.number);
        let mut arguments = json!({ "assistant_id": spawnable(&mut self.dice), "query": "go", "name": label });
        match self.dice.below(8) {
            0 => arguments["detached"] = json!(true),
            1 | 2 => arguments["run_mode"] = json!("sync"),
            3 => arguments["wait_ms"] = json!(self.dice.between(1, 200)),
            _ => {}
        }
        self.spawn_as(label, arguments, None);
    }

    fn resume(&mut self) {
        let Some(old) = self.some() else { return };
        let label = self.ledger().token("resumption", self.number);
        let arguments = json!({ "resume_process_id": old.process, "query": format!("go on, {label}"), "name": label });
        self.spawn_as(label, arguments, Some(old.process));
    }

    fn spawn_as(&mut self, label: String, mut arguments: Value, resumes: Option<String>) {
        let keyed = self.dice.percent(50);
        if keyed {
            arguments["idempotency_key"] = json!(label);
        }
        self.ledger().spawned.insert(label.clone(), Spawned { answered: None, resumes });
        let mut answered = self.call("spawn_assistant", &arguments);
        if keyed && (matches!(answered, Err(Refused::Lost)) || self.dice.percent(10)) {
            let before = answered.ok();
            answered = self.call("spawn_assistant", &arguments);
            if let (Some(before), Ok(again)) = (before, &answered)
                && before["process_id"] != again["process_id"]
            {
                self.ledger()
                    .violation(format!("one key, two processes: {} and {}", before["process_id"], again["process_id"]));
            }
        }
        let Ok(told) = answered else { return };
        let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
        let (process, thread) = (text("process_id"), text("thread_id"));
        self.shared.totals.count(if label.starts_with("resumption") { "resumes" } else { "spawns" });
        let mut ledger = self.ledger();
        if let Some(result) = told.get("result") {
            ledger.ended_as(&process, told["status"].as_str().unwrap_or_default());
            if let Some(content) = result["content"].as_str().filter(|_| told["status"] == "finished") {
                ledger.results.insert(process.clone(), content.to_owned());
            }
        }
        if let Some(spawned) = ledger.spawned.get_mut(&label) {
            spawned.answered = Some((process.clone(), thread.clone()));
        }
        drop(ledger);
        if self.followed.cursor.is_some() {
            self.followed.expected.push(process.clone());
        }
        held(&self.shared.known).push(Known { process, thread });
    }

    fn send(&mut self) {
        let Some(to) = self.some() else { return };
        let times = if self.dice.percent(15) { self.dice.between(5, 25) } else { self.dice.between(1, 3) };
        for _ in 0..times {
            let text = self.ledger().token("message", self.number);
            let mut arguments = json!({ "thread_id": to.thread, "message": text });
            let keyed = self.dice.percent(50);
            if keyed {
                arguments["idempotency_key"] = json!(text);
            }
            let sent = Sent { thread: to.thread.clone(), worker: self.number, id: None };
            self.ledger().sent.insert(text.clone(), sent);
            let mut answered = self.call("send_message", &arguments);
            if keyed && (matches!(answered, Err(Refused::Lost)) || self.dice.percent(10)) {
                answered = self.call("send_message", &arguments);
            }
            let Ok(told) = answered else { return };
            self.shared.totals.count("messages");
            let mut ledger = self.ledger();
            if let Some(sent) = ledger.sent.get_mut(&text) {
                sent.id = told["message_id"].as_str().map(str::to_owned);
            }
            ledger.sent_in_order.push(text);
        }
    }

    fn poll(&mut self) {
        let Some(one) = self.some() else { return };
        let wait_ms = self.dice.one(&[0, 0, 50, 300]);
        let Ok(told) = self.call("poll_assistant", &json!({ "process_id": one.process, "wait_ms": wait_ms })) else {
            return;
        };
        let seen = &told["process"];
        if seen["done"] == true {
            let end = json!([seen["status"], seen["reason"], seen["cause"], seen["finished_at"]]);
            self.ledger().ended(&one.process, end);
        }
    }

    fn wait(&mut self) {
        if self.dice.percent(30) {
            return self.wait_long();
        }
        let wait_ms = self.dice.one(&[0, 30, 200]);
        let mut arguments = json!({ "wait_ms": wait_ms, "mode": self.dice.one(&["any", "any", "all"]) });
        if let Some(cursor) = &self.followed.cursor {
            arguments["cursor"] = json!(cursor);
        }
        let Ok(told) = self.call("wait_assistant", &arguments) else { return };
        self.followed.follow(&told, &mut self.ledger());
    }

    /// A wait for one that may live, long enough for a lost wake-up to show.
    fn wait_long(&mut self) {
        let Some(one) = self.some() else { return };
        let arguments = json!({ "process_ids": [one.process], "wait_ms": LONG_WAIT_MS });
        let begun = Instant::now();
        let Ok(told) = self.call("wait_assistant", &arguments) else { return };
        if begun.elapsed() >= Duration::from_millis(LONG_WAIT_MS) {
            let late = tables::late(&self.shared.door.db(), &told["events"], LATE_MS);
            late.into_iter().for_each(|late| self.ledger().violation(late));
        }
    }

    /// All that is new in a thread, by the time of the last that is known.
    fn read_on(&mut self) {
        let Some(one) = self.some() else { return };
        let since = self.followed.readings.get(&one.thread).map_or(0, |reading| reading.since);
        let wait_ms = self.dice.one(&[0, 40, 250]);
        let arguments = json!({ "thread_id": one.thread, "since": since, "last_n": 200, "wait_ms": wait_ms });
        let Ok(told) = self.call("recv_message", &arguments) else { return };
        let reading = self.followed.readings.entry(one.thread).or_default();
        for message in told["messages"].as_array().into_iter().flatten() {
            reading.since = message["created_at"].as_i64().unwrap_or(reading.since);
            reading.ids.push(message["id"].as_str().unwrap_or_default().to_owned());
        }
    }

    /// What is unread in a thread, in small pieces, each message marked and so given once.
    fn read_unread(&mut self) {
        let Some(one) = self.some() else { return };
        let mut arguments = json!({ "thread_id": one.thread, "unread_only": true, "mark_as_read": true, "last_n": self.dice.between(1, 4) });
        for _ in 0..5 {
            let Ok(told) = self.call("recv_message", &arguments) else { return };
            for message in told["messages"].as_array().into_iter().flatten() {
                let id = message["id"].as_str().unwrap_or_default();
                let mut ledger = self.ledger();
                if !ledger.marked.insert(id.to_owned()) {
                    ledger.violation(format!("message {id} was given as unread twice, and marked each time"));
                }
            }
            match told["next_cursor"].as_str() {
                Some(cursor) => arguments["cursor"] = json!(cursor),
                None => return,
            }
        }
    }

    fn answer_questions(&mut self) {
        let Ok(told) = self.call("get_pending_questions", &json!({})) else { return };
        for question in told["questions"].as_array().into_iter().flatten() {
            let answer = self.ledger().token("answer", self.number);
            let id = question["message_id"].as_str().unwrap_or_default().to_owned();
            let arguments = json!({ "process_id": question["process_id"], "message_id": id, "answer": answer });
            self.ledger().replied.insert(answer.clone(), Replied { question: id.clone(), id: None });
            let Ok(told) = self.call("reply_assistant", &arguments) else { continue };
            self.shared.totals.count("questions answered");
            if let Some(replied) = self.ledger().replied.get_mut(&answer) {
                replied.id = told["message_id"].as_str().map(str::to_owned);
            }
            if self.dice.percent(20) {
                let mut again = arguments.clone();
                let text = self.ledger().token("second answer", self.number);
                again["answer"] = json!(text);
                if self.call("reply_assistant", &again).is_ok() {
                    self.ledger().violation(format!("question {id} was answered twice"));
                }
            }
        }
    }

    fn cancel(&mut self) {
        let Some(one) = self.some() else { return };
        let Ok(told) = self.call("cancel_assistant", &json!({ "process_id": one.process })) else { return };
        self.shared.totals.count("cancels");
        let ids = told["cancelled"].as_array().into_iter().flatten().filter_map(Value::as_str);
        self.ledger().cancelled.extend(ids.map(str::to_owned));
    }

    fn look_around(&mut self) {
        let listed = self.call("list_process", &json!({ "page_size": 50 }));
        drop(listed);
        let Some(one) = self.some() else { return };
        let mut arguments = json!({ "process_id": one.process, "limit": 20 });
        let mut last = 0;
        while let Ok(told) = self.call("read_log", &arguments) {
            for event in told["events"].as_array().into_iter().flatten() {
                let seq = event["seq"].as_i64().unwrap_or(0);
                if event.get("seq").is_some() && seq <= last {
                    self.ledger().violation(format!("the log of {} tells event {seq} behind {last}", one.process));
                }
                last = seq;
            }
            match told["next_cursor"].as_str() {
                Some(cursor) if told["events"].as_array().is_some_and(|events| !events.is_empty()) => {
                    arguments["cursor"] = json!(cursor);
                }
                _ => return,
            }
        }
    }

    /// Asks much and reads nothing for a while. One that has a connection of its own goes without having read.
    fn stop_reading(&mut self) {
        let Some(line) = self.shared.door.line(&mut self.own) else { return };
        line.be_deaf(true);
        for _ in 0..self.dice.between(1, UNREAD_CALLS_MAX) {
            line.call_and_forget("list_process", &json!({}));
        }
        std::thread::park_timeout(Duration::from_millis(self.dice.between(1, 100)));
        if self.shared.door.kind == Kind::Background && self.dice.percent(50) {
            line.kill();
            self.own = None;
        }
        line.be_deaf(false);
        self.shared.totals.count("clients that read no more");
    }

    /// Goes, in one way or another. Where the connection is everyone's it stays.
    fn part(&mut self) {
        if self.shared.door.kind == Kind::Embedded {
            return;
        }
        let Some(line) = self.own.take() else { return };
        match self.dice.below(4) {
            0 => line.close(),
            1 => {
                // In the middle of a call.
                line.call_and_forget("wait_assistant", &json!({ "wait_ms": 10_000 }));
                line.kill();
            }
            2 => {
                // In the middle of a line; it may be gone already.
                let _ = line.write("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/ca");
                line.kill();
            }
            _ => line.kill(),
        }
        self.shared.totals.count("clients gone");
    }
}

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    Told,
    Lost,
}
