//! The tools that are a word with those around a process, and change nothing else: the one place that names them.

/// By these a process asks whoever spawned it, and reads the answer: they reach nobody else.
pub(crate) const ASKING: &[&str] = &["ask_parent", "check_answer"];
/// These and the messages of a thread. What hands a result in is none of them: it ends the run.
pub(crate) const TALK: &[&str] = &["ask_parent", "check_answer", "send_message", "recv_message"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_tools_of_the_table_and_who_asks_talks() {
        let table = crate::tools::table(&crate::limits::Limits::default());
        for name in TALK {
            assert!(table.iter().any(|tool| tool.name == *name), "`{name}` is no tool");
        }
        assert!(ASKING.iter().all(|name| TALK.contains(name)));
    }
}
