//! The conversation of an agent, of which each word is recorded by itself, in the shape that a model can be asked with.

use std::collections::HashMap;

use assistant_protocol::types::{Content, Message, Part, Role};

use super::interrupted;

/// Messages in which what an assistant says and calls in a row is one message, with the results of its calls behind it.
/// A call without a result gets one that says so; a result without a call is left out.
pub(super) fn in_order(messages: Vec<Message>) -> Vec<Message> {
    let mut results: HashMap<String, Message> = HashMap::new();
    for message in &messages {
        for part in message.content.parts().iter() {
            if let Part::ToolResult { call_id, .. } = part {
                // The first result stands.
                let alone = || Message { role: Role::Tool, content: Content::Parts(vec![part.clone()]) };
                results.entry(call_id.clone()).or_insert_with(alone);
            }
        }
    }
    let (mut ordered, mut said): (Vec<Message>, Vec<Part>) = (Vec::new(), Vec::new());
    for message in messages {
        match (message.role, message.content) {
            (Role::Assistant, content) => said.extend(content.parts().iter().cloned()),
            // What came between two words of the assistant's ends the first.
            (Role::Tool, _) => close(&mut said, &mut results, &mut ordered),
            (role, content) => {
                close(&mut said, &mut results, &mut ordered);
                ordered.push(Message { role, content });
            }
        }
    }
    close(&mut said, &mut results, &mut ordered);
    ordered
}

/// Ends what the assistant says, with the results of what it calls.
fn close(said: &mut Vec<Part>, results: &mut HashMap<String, Message>, ordered: &mut Vec<Message>) {
    if said.is_empty() {
        return;
    }
    let calls: Vec<String> = said
        .iter()
        .filter_map(|part| match part {
            Part::ToolCall { call_id, .. } => Some(call_id.clone()),
            _ => None,
        })
        .collect();
    let content = match said.as_slice() {
        [Part::Text { text }] => Content::Text(text.clone()),
        _ => Content::Parts(std::mem::take(said)),
    };
    said.clear();
    ordered.push(Message { role: Role::Assistant, content });
    ordered.extend(calls.into_iter().map(|call| results.remove(&call).unwrap_or_else(|| interrupted(call))));
}

#[cfg(test)]
mod tests {
    use assistant_protocol::types::ToolCallResult;
    use serde_json::json;

    use super::*;

    /// `u` a word of the user, `a` one of the assistant, `+x` a call, `=x` its result; `?x` is that of an interrupted call.
    fn message(word: &str) -> Message {
        let rest = || word[1..].to_owned();
        let call = |call_id| Part::ToolCall { call_id, tool_name: "t".to_owned(), arguments: Ok(json!({})) };
        match &word[..1] {
            "u" => Message::text(Role::User, word),
            "a" => Message::text(Role::Assistant, word),
            "+" => Message { role: Role::Assistant, content: Content::Parts(vec![call(rest())]) },
            _ => {
                let content = vec![Part::text("r")];
                let result = ToolCallResult { content, structured_content: None, is_error: false, end_run: None };
                Message::tool_result(rest(), &result)
            }
        }
    }

    fn shown(message: &Message) -> String {
        let part = |part: &Part| match part {
            Part::Text { text } => text.clone(),
            Part::ToolCall { call_id, .. } => format!("+{call_id}"),
            Part::ToolResult { call_id, is_error, .. } => format!("{}{call_id}", if *is_error { "?" } else { "=" }),
            _ => "odd".to_owned(),
        };
        message.content.parts().iter().map(part).collect()
    }

    #[test]
    fn what_is_said_in_a_row_is_one_message() {
        let check = |words: &str, want: &str| {
            let ordered = in_order(words.split_whitespace().map(message).collect());
            assert_eq!(ordered.iter().map(shown).collect::<Vec<_>>().join(" "), want, "{words}");
        };
        check("u a", "u a");
        check("u a +1 +2 =2 =1 a", "u a+1+2 =1 =2 a");
        check("u +1 =1 +2 =2 a", "u +1 =1 +2 =2 a");
        check("u +1 +2 =1 a2 =2", "u +1+2 =1 =2 a2");
        check("u +1 u2 a", "u +1 ?1 u2 a");
        check("u +1 a u2 =1", "u +1a =1 u2");
        check("u =9 a", "u a");
        check("u +1", "u +1 ?1");
        check("", "");
    }
}
