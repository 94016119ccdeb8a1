//! What an agent writes that nothing can be done with: counted, and told to people.

use std::fmt;

/// Lines and messages that nothing can be done with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// Lines that are no messages.
    pub(crate) junk_lines: u64,
    /// The beginning of the first of them.
    pub(crate) first_junk: Option<String>,
    /// Answers to nothing that was asked, second answers among them.
    pub(crate) unknown_answers: u64,
    /// Updates and requests of other sessions, and outside of a turn.
    pub(crate) foreign: u64,
    /// Updates of a kind that is not known, or that do not fit their kind.
    pub(crate) unfit: u64,
    /// The kind of the first of them.
    pub(crate) first_unfit: Option<String>,
}

impl fmt::Display for Oddities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { junk_lines, first_junk, unknown_answers, foreign, unfit, first_unfit: _ } = self;
        write!(
            f,
            "{junk_lines} lines that are no messages, {unknown_answers} answers to nothing, {foreign} messages outside "
        )?;
        write!(f, "of its turn or its session, {unfit} updates that are not known")?;
        first_junk.as_ref().map_or(Ok(()), |junk| write!(f, "; the first line: {junk}"))
    }
}

impl Oddities {
    /// The first thing that was not understood, for people.
    pub(crate) fn first(&self) -> Option<String> {
        let unfit = self.first_unfit.as_ref().map(|kind| format!("an update of the kind `{kind}`"));
        self.first_junk.clone().or(unfit)
    }

    /// Whether there is more than `told` of what no agent does that is well. Messages outside of a turn are usual.
    pub(crate) fn is_more_than(&self, told: &Self) -> bool {
        (self.junk_lines, self.unknown_answers, self.unfit) != (told.junk_lines, told.unknown_answers, told.unfit)
    }
}
