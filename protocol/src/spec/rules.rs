//! The rules that a runner keeps, each with a name: the page of the protocol lists them, and each case of the conformance
//! kit is about one of them.

/// How binding a rule is, in the sense of RFC 2119.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// A runner that does not keep it does not conform.
    Must,
    /// There may be good reasons not to keep it.
    Should,
    /// A runner is free to do it, and a host has to bear it.
    May,
}

impl Level {
    /// The word of a sentence.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
        }
    }
}

/// What a part of the protocol is about; the page of the protocol has a section for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum About {
    /// Lines, ids, answers.
    Lines,
    /// From the start of the program to the first `run`.
    Handshake,
    /// `run` and the conversation.
    Runs,
    /// `on_tool_call`.
    Tools,
    /// `cancel` and `cancel_call`.
    Cancelling,
    /// Bounds of frames and calls.
    Bounds,
    /// The end of the program.
    Ending,
    /// What only some runners do.
    Capabilities,
}

impl About {
    /// All, in the order of the page.
    pub const ALL: [Self; 8] = [
        Self::Lines,
        Self::Handshake,
        Self::Runs,
        Self::Tools,
        Self::Cancelling,
        Self::Bounds,
        Self::Ending,
        Self::Capabilities,
    ];

    /// The heading of its section.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            Self::Lines => "Lines and answers",
            Self::Handshake => "Handshake",
            Self::Runs => "Runs and conversations",
            Self::Tools => "Tool calls",
            Self::Cancelling => "Cancelling",
            Self::Bounds => "Bounds",
            Self::Ending => "Ending",
            Self::Capabilities => "Capabilities",
        }
    }
}

/// One rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule {
    /// What it is known by.
    pub name: &'static str,
    /// How binding it is.
    pub level: Level,
    /// What it is about.
    pub about: About,
    /// What a runner does, as the rest of a sentence that begins with "A runner must".
    pub text: &'static str,
}

macro_rules! rules {
    ($($about:ident { $($constant:ident $name:literal $level:ident $text:literal;)* })*) => {
        $($(
            #[doc = concat!("A runner ", stringify!($level), ": ", $text)]
            pub const $constant: Rule = Rule { name: $name, level: Level::$level, about: About::$about, text: $text };
        )*)*

        /// All rules, by what they are about.
        pub const RULES: &[Rule] = &[$($($constant,)*)*];
    };
}

rules! {
    Lines {
        STDOUT_IS_PURE "stdout-is-pure" Must "write nothing to stdout but messages: one JSON object of JSON-RPC 2.0 in UTF-8 a line, each written at once, with its newline.";
        ANSWER_ONCE "answer-once" Must "answer each request exactly once, by the request's own id, a number as a number and a string as a string.";
        ERRORS "errors" Must "answer what it refuses with an error object: `code`, an integer, `message`, a string, and in `data` the `kind` that belongs to the code. The numbers of JSON-RPC itself (-32700 to -32600) may stand alone; those from 4000 on may not.";
        REQUESTS_ONLY "requests-only" Must "give each request of its own an id that no other request of its own in flight has: an integer from 0 to 2^53, or a string of at most 1,024 bytes.";
        KNOWN_METHODS "known-methods" Must "ask only the methods of this protocol, with params by name that fit their schemas.";
        OWN_THREAD "own-thread" Must "name in every `on_…` request the `thread_id` that `initialize` gave.";
        UNKNOWN_METHOD "unknown-method" Must "answer a method that it does not know with the error -32601 (`method_not_found`), and go on.";
        BAD_PARAMS "bad-params" Must "answer a request whose params do not fit with the error -32602 (`invalid_params`), and go on.";
        UNKNOWN_FIELDS "unknown-fields" Must "ignore fields that it does not know, in params and in results.";
        NULL_IS_ABSENT "null-is-absent" Must "read null as absent for every optional field, lists included.";
        JUNK "junk" Must "skip lines that are no messages, messages without id, and answers to nothing that it asked.";
        UNICODE "unicode" Must "carry any text through unchanged: escapes, characters beyond the basic plane, control characters, line separators; and live on where a line has half a character (`\\ud800` alone), so that its `run` goes on or fails.";
        EXACT_NUMBERS "exact-numbers" Should "keep integers beyond 2^53 as they came, in `arguments` and in `opaque` parts.";
        PING_ANY_TIME "ping-any-time" Must "answer `ping` at any time, beside a `run`, a model call or a tool call.";
        TALK_ON_STDERR "talk-on-stderr" May "write what it likes to stderr; the host keeps the last of it for people.";
    }
    Handshake {
        SILENT_FIRST "silent-first" Must "write nothing to stdout before it has been asked `initialize`.";
        INITIALIZE "initialize" Must "answer `initialize` with the version that it speaks, its name, and the longest line that it takes.";
        OTHER_VERSION "other-version" Must "answer `initialize` of a version that it does not speak with the error 4011 (`unsupported_protocol`), and every `run` after that with an error.";
        INITIALIZE_FIRST "initialize-first" Must "answer a `run` that comes before `initialize` with an error.";
        INITIALIZE_ONCE "initialize-once" Must "answer a second `initialize` with an error, and go on as before.";
        BACK_TO_BACK "back-to-back" Must "take an `initialize` and a `run` that come in one piece.";
    }
    Runs {
        ASK_THE_MODEL "ask-the-model" Must "ask `on_llm_request` with the whole conversation: the assistant's prompt, that of this `run`, as the one system message, what was said before, and the query as a message of the user.";
        ONE_MODEL_CALL "one-model-call" Must "have at most one `on_llm_request` of a `run` in flight.";
        RUN_ENDS "run-ends" Must "answer `run` when the model's answer calls no tool, with that answer's content, all of it, and stop_reason `finished` (`length`, `refused` where the model stopped so, `finished` for any other reason).";
        ONE_RUN "one-run" Must "answer a `run` that comes while another one goes on with an error, and go on with that one.";
        KEEP_THE_CONVERSATION "keep-the-conversation" Must "keep its conversation from one `run` to the next, until `shutdown`.";
        RUN_WITHOUT_QUERY "run-without-query" Must "take a `run` without query as: ask the model again, with the conversation as it is.";
        HISTORY "history" Must "begin its conversation with the `history` of a `run` that has one: it takes the place of all that was said before.";
        CONTEXT_AND_INPUTS "context-and-inputs" Must "show the model the `context` and the `inputs` of a `run`, each with its path and its picture behind it, together with the query, in one message of the user.";
        INSERTED_FIRST "inserted-first" Must "append the messages of `inserted` to its conversation, then `message`.";
        VERBATIM "verbatim" Must "give messages back as they came: a text as a text, parts in their order, `opaque` ones and those of unknown types unchanged.";
        MODEL_ERRORS "model-errors" Must "answer `run` with the error of a failed `on_llm_request` as it came, its `data` included; one with `retryable` may be asked again instead, a few times.";
        ONLY_IN_A_RUN "only-in-a-run" Must "ask nothing of the host but while a `run` goes on.";
        OFFER_THE_TOOLS "offer-the-tools" Must "offer the model the `tools` of the `run`, unchanged; null or an empty list is none.";
        TELL_PROGRESS "tell-progress" May "tell how far it is by `on_progress`, use `send_message` and `recv_message` itself, and ask `on_aggregate_service_context`.";
    }
    Tools {
        CALL_THE_TOOLS "call-the-tools" Must "make each tool call of the model's answer once, whatever its finish_reason, by `on_tool_call`, with its call id, name and arguments.";
        EVERY_CALL_A_RESULT "every-call-a-result" Must "have one `tool_result` in its conversation for each tool call, behind the message that calls, before it asks the model again.";
        IN_THE_ORDER_OF_ANSWERS "in-the-order-of-answers" Must "append the results of calls made beside each other in the order in which their answers came.";
        TOOL_ERRORS_ARE_RESULTS "tool-errors-are-results" Must "give the model a result with `is_error` as it came.";
        MENDABLE_ERRORS "mendable-errors" Must "tell the model, as a result with `is_error`, when `on_tool_call` is answered with an error that it can do something about (`unknown_tool`, `invalid_params`, `not_permitted`, `deadline_exceeded`, `frame_too_large`, `overloaded`), and go on; every other error, one of an unknown kind included, ends the `run` with that error.";
        BAD_ARGUMENTS "bad-arguments" Must "make no call whose arguments are no valid JSON (`arguments_text`), but tell the model so in its result.";
        END_RUN "end-run" Must "answer `run` with stop_reason `final_answer` when a tool's result says `end_run`, with its `structured_content`, else the call's arguments, as `structured`, and not ask the model again; of several such results the last one that comes counts.";
        CALLS_AT_ONCE "calls-at-once" Should "make the tool calls of one answer beside each other, up to 64 at once.";
    }
    Cancelling {
        CANCEL "cancel" Must "answer `cancel` with {} and then its `run`, within the grace, with stop_reason `cancelled` and what it had, whatever it waits for.";
        CANCEL_THE_NEXT "cancel-the-next" Must "take a `cancel` while nothing runs as meant for the next `run`, and only for that: it is answered `cancelled` and asks the model nothing.";
        GO_ON_AFTER_CANCEL "go-on-after-cancel" Must "take the next `run` after a cancelled one, with a conversation in which every tool call has a result.";
        CANCEL_CALL "cancel-call" Must "answer `cancel_call` with {}, whatever id it names, and the request that it names with its own one answer, an error `cancelled` or a result; one that names nothing in flight changes nothing.";
        LATE_ANSWERS "late-answers" Must "ignore the answer to a request that it has given up.";
        GIVE_UP_CALLS "give-up-calls" Should "send `cancel_call` for each request of its own that it gives up.";
    }
    Bounds {
        LONG_LINES "long-lines" Must "take lines up to the length that it told in `initialize`: 1 MiB at the least, 64 MiB as a rule.";
        THEIR_BOUND "their-bound" Must "write no line that is longer than the host's `max_frame_bytes`; a request or a result that would be one is given up, and the `run` fails with it (`frame_too_large`).";
        MANY_CALLS "many-calls" Must "have at most 256 requests in flight.";
        SLOW_HOST "slow-host" Must "wait for a host that reads slowly, and take lines that come in pieces.";
        DEEP_JSON "deep-json" Should "take JSON that is nested 64 deep.";
    }
    Ending {
        END_OF_STDIN "end-of-stdin" Must "exit when its stdin ends, whatever it is doing, within 2 seconds, and leave nothing behind that holds its stdout open.";
        SHUTDOWN "shutdown" Must "answer `shutdown` with {}, and exit when stdin is closed behind it.";
        EXIT_CODE "exit-code" Should "exit with 0 after `shutdown`.";
    }
    Capabilities {
        MESSAGES "messages" May "say `messages` in its capabilities; then it must answer `deliver_message` with {} once its agent has the message.";
        NO_MESSAGES "no-messages" Must "answer `deliver_message` with an error where its capabilities do not say `messages`.";
        AGENT "agent" May "say `agent` in its capabilities: it runs an agent with a model and tools of its own, is told of it in `agent` of `run`, tells by `on_agent_event` what that agent does, and asks `on_permission_request` before what may not be permitted.";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::error::{FIRST_OWN_CODE, Kind};
    use crate::peer::IN_FLIGHT_MAX;
    use crate::spec::bounds::SHUTDOWN_MS;
    use crate::types::MAX_FRAME_BYTES;
    use crate::wire::{ID_BYTES_MAX, ID_MAX};

    #[test]
    fn what_rules_say_of_bounds_and_kinds_is_what_the_code_has() {
        let says = |rule: Rule, words: String| assert!(rule.text.contains(&words), "{}: {words}", rule.name);
        assert_eq!((ID_MAX, ID_BYTES_MAX), (1 << 53, 1_024));
        says(REQUESTS_ONLY, "2^53, or a string of at most 1,024 bytes".to_owned());
        says(MANY_CALLS, format!("at most {IN_FLIGHT_MAX} requests"));
        says(LONG_LINES, format!("{} MiB as a rule", MAX_FRAME_BYTES >> 20));
        says(END_OF_STDIN, format!("within {} seconds", SHUTDOWN_MS / 1_000));
        says(UNKNOWN_METHOD, Kind::MethodNotFound.code().to_string());
        says(BAD_PARAMS, Kind::InvalidParams.code().to_string());
        says(ERRORS, format!("({} to {})", Kind::ParseError.code(), Kind::InvalidRequest.code()));
        says(ERRORS, format!("from {FIRST_OWN_CODE} on"));
        says(OTHER_VERSION, Kind::UnsupportedProtocol.code().to_string());
        let mendable: Vec<String> = Kind::MENDABLE.iter().map(|kind| format!("`{}`", kind.name())).collect();
        says(MENDABLE_ERRORS, format!("({})", mendable.join(", ")));
    }

    #[test]
    fn each_rule_has_a_name_of_its_own_and_is_a_sentence() {
        let names: HashSet<_> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len());
        for rule in RULES {
            assert!(rule.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", rule.name);
            assert!(rule.text.ends_with('.'), "{}", rule.name);
        }
    }
}
