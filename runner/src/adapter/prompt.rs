//! What a turn of an agent begins with.

use assistant_protocol::types::{Content, DeliverMessageParams as Letter, Message, Part, Role, RunParams};

use super::bridge::SERVER_NAME;
use super::mail::Giving;
use crate::conversation::{in_quotes, inside, task};

/// What an agent is told that is to go on without anything new.
const GO_ON: &str = "Go on.";
/// How much of an earlier conversation is told, in bytes; of a longer one the newest.
const EARLIER_BYTES_MAX: usize = 512 * 1024;
/// How much of one tool's arguments or result is told of an earlier conversation, in bytes.
const EARLIER_TOOL_BYTES_MAX: usize = 4 * 1024;

/// What an agent is given at the beginning of a turn.
#[derive(Debug)]
pub(crate) struct Prompt {
    /// Text, and pictures behind the text that tells of them.
    pub(crate) content: Content,
    /// The first part is what was said elsewhere.
    has_earlier: bool,
    giving: Giving,
}

impl Prompt {
    /// The first one of a run: what was said elsewhere, the task, and messages that came before it.
    pub(super) fn of_run(params: &mut RunParams, (letters, giving): (Vec<Letter>, Giving)) -> Self {
        let earlier = params.history.take().and_then(|history| earlier(&history));
        let task = task(params.query.take(), params.context.take(), params.inputs.take());
        let has_earlier = earlier.is_some();
        let mut parts: Vec<Part> = earlier.into_iter().map(Part::text).collect();
        parts.extend(task.map(|message| message.content.parts().into_owned()).into_iter().flatten());
        parts.extend(letters.iter().map(|letter| Part::text(shown(letter))));
        if parts.is_empty() {
            parts.push(Part::text(GO_ON));
        }
        if params.output_schema.is_some() {
            parts.push(Part::text(format!(
                "When you are done, call the tool `final_answer` of the MCP server `{SERVER_NAME}` with your result: only what \
                 you give there counts. Its arguments have to fit its schema."
            )));
        }
        Self { content: Content::Parts(parts), has_earlier, giving }
    }

    /// One of messages.
    pub(super) fn of_mail((letters, giving): (Vec<Letter>, Giving)) -> Self {
        let parts = letters.iter().map(|letter| Part::text(shown(letter))).collect();
        Self { content: Content::Parts(parts), has_earlier: false, giving }
    }

    /// Leaves out what was said elsewhere: the agent knows it. Where nothing else is said, it is to go on.
    pub(crate) fn without_earlier(&mut self) {
        if let (true, Content::Parts(parts)) = (std::mem::take(&mut self.has_earlier), &mut self.content) {
            parts.remove(0);
            if parts.is_empty() {
                parts.push(Part::text(GO_ON));
            }
        }
    }

    /// All its text, with a blank line between the parts, and the number of pictures that are not in it.
    pub(crate) fn text(&self) -> (String, usize) {
        let parts = self.content.parts();
        let pictures = parts.iter().filter(|part| matches!(part, Part::Image { .. })).count();
        let texts = parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.trim_matches('\n')),
            _ => None,
        });
        (texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n"), pictures)
    }

    /// The agent has it: whoever wrote a message in it is told so.
    pub(crate) fn given(&mut self) {
        self.giving.given();
    }
}

/// A message much as the host shows them to models. Of a question it is said how it is answered: nobody else says so here.
fn shown(letter: &Letter) -> String {
    let mail = &letter.message;
    let kind = letter.kind.as_deref().map(|kind| format!(" kind=\"{}\"", in_quotes(kind))).unwrap_or_default();
    let process = mail.from_process_id.map(|id| format!(" process_id=\"{id}\"")).unwrap_or_default();
    let thread = letter.thread_id.map(|id| format!(" thread_id=\"{id}\"")).unwrap_or_default();
    let (id, from, content) = (mail.id, in_quotes(&mail.from_assistant_id), inside(&mail.content));
    let text = format!("<message{kind} message_id=\"{id}\" from=\"{from}\"{process}{thread}>\n{content}\n</message>");
    match letter.kind.as_deref() {
        Some("question") => format!("{text}\nIt waits for your answer: give it by the tool `reply_assistant`."),
        _ => text,
    }
}

/// A conversation as a record, the newest of it.
fn earlier(history: &[Message]) -> Option<String> {
    let told: Vec<String> = history.iter().map(told).filter(|text| !text.is_empty()).collect();
    let mut bytes = 0;
    let kept = told.iter().rev().take_while(|text| {
        bytes += text.len();
        bytes <= EARLIER_BYTES_MAX
    });
    let kept = kept.count();
    if told.is_empty() {
        return None;
    }
    let left_out = match told.len() - kept {
        0 => String::new(),
        count => format!("({count} earlier messages are left out.)\n"),
    };
    let kept = told[told.len() - kept..].join("\n");
    Some(format!("<earlier>\n{left_out}{kept}\n</earlier>\n\nThis is what was said before; go on from there."))
}

fn told(message: &Message) -> String {
    let role = match message.role {
        Role::System => return String::new(),
        Role::User => "User",
        Role::Assistant => "You",
        Role::Tool => "Tool",
    };
    let parts = message.content.parts();
    let parts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(inside(text)),
        Part::ToolCall { tool_name, arguments, .. } => {
            let arguments = arguments.as_ref().map_or_else(Clone::clone, ToString::to_string);
            Some(format!("[called {} with {}]", inside(tool_name), inside(&cut(&arguments))))
        }
        Part::ToolResult { content, is_error, .. } => {
            let text = Content::Parts(content.clone()).as_text().into_owned();
            Some(format!("[{}: {}]", if *is_error { "failed" } else { "result" }, inside(&cut(&text))))
        }
        Part::Image { .. } => Some("[a picture]".to_owned()),
        Part::Reasoning { .. } | Part::Opaque { .. } | Part::Unknown(_) => None,
    });
    let text = parts.collect::<Vec<_>>().join("\n");
    if text.is_empty() { text } else { format!("{role}: {text}") }
}

fn cut(text: &str) -> String {
    match text.char_indices().find(|(at, _)| *at >= EARLIER_TOOL_BYTES_MAX) {
        Some((at, _)) => format!("{} …", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(run: Value, want: &str) {
        let mut whole = json!({ "assistant": { "id": "a", "name": "A", "system_prompt": "" } });
        whole.as_object_mut().expect("an object").extend(run.as_object().expect("an object").clone());
        let mut params: RunParams = serde_json::from_value(whole).expect("params of a run");
        assert_eq!(Prompt::of_run(&mut params, (Vec::new(), Giving::default())).text().0, want);
    }

    #[test]
    fn a_prompt_has_all_that_a_run_brings() {
        check(json!({}), "Go on.");
        check(json!({ "query": "Hi" }), "Hi");
        let context = "<context>\nc\n</context>\n\n<file path=\"a\">\n1\n</file>\n\nHi";
        check(json!({ "query": "Hi", "context": "c", "inputs": [{ "path": "a", "content": "1" }] }), context);
        let history = json!([
            { "role": "user", "content": "Q </earlier>" },
            { "role": "assistant", "content": [
                { "type": "text", "text": "I look." },
                { "type": "tool_call", "call_id": "1", "tool_name": "read", "arguments": { "path": "a" } },
            ] },
            { "role": "tool", "content": [
                { "type": "tool_result", "call_id": "1", "content": [{ "type": "text", "text": "1" }], "is_error": false },
            ] },
        ]);
        let want = "<earlier>\nUser: Q &lt;/earlier>\nYou: I look.\n[called read with {\"path\":\"a\"}]\nTool: [result: 1]\n\
            </earlier>\n\nThis is what was said before; go on from there.\n\nHi";
        check(json!({ "query": "Hi", "history": history }), want);
    }

    #[test]
    fn a_question_is_told_as_one() {
        let message = json!({
            "id": "01a228bf-0000-7000-8000-000000000001", "from_assistant_id": "x", "to_assistant_id": "y", "content": "how?",
            "from_process_id": "01a228bf-0000-7000-8000-000000000002", "to_process_id": null, "created_at": 0, "read_at": null,
        });
        let of = |more: Value| {
            let mut params = json!({ "message": message });
            params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            shown(&serde_json::from_value(params).expect("a letter"))
        };
        let ids = "message_id=\"01a228bf-0000-7000-8000-000000000001\" from=\"x\" \
                   process_id=\"01a228bf-0000-7000-8000-000000000002\"";
        assert_eq!(of(json!({})), format!("<message {ids}>\nhow?\n</message>"));
        let thread = "01a228bf-0000-7000-8000-000000000003";
        let question = of(json!({ "kind": "question", "thread_id": thread }));
        let answer = "It waits for your answer: give it by the tool `reply_assistant`.";
        assert_eq!(
            question,
            format!("<message kind=\"question\" {ids} thread_id=\"{thread}\">\nhow?\n</message>\n{answer}")
        );
    }

    #[test]
    fn the_newest_of_a_long_conversation_is_told() {
        let message = |text: &str| Message::text(Role::User, text.repeat(200 * 1024));
        let told = earlier(&[message("a"), message("b"), message("c")]).expect("something");
        assert!(told.starts_with("<earlier>\n(1 earlier messages are left out.)\nUser: bb"), "{}", &told[..80]);
    }
}
