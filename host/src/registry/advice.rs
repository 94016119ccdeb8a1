//! What to do about each finding.

use super::diagnostic::Code;

/// By code; what is worth knowing only needs nothing.
const ADVICE: &[(Code, &str)] = &[
    (
        Code::YamlRepaired,
        "Put quotes around a value that has `: ` or ` #` in it or begins with a sign such as `*`, `@` or `[`.",
    ),
    (Code::YamlTooComplex, "Write the values out, without anchors and with less nesting."),
    (Code::TomlRepaired, "Mend the line; texts stand in quotes."),
    (Code::DataTooComplex, "Write less into it, with less nesting, or move the file away if it is no assistant."),
    (Code::DataBroken, "Mend the line, or move the file away if it is no assistant."),
    (Code::DuplicateKey, "Keep one of the two."),
    (Code::FieldIgnored, "Give it a value of the kind that the message names."),
    (Code::AccessClosed, "Write a list of names such as `[a, b]`, or one of the words that the key is for."),
    (Code::SwitchUnreadable, "Write `true` or `false` behind the key, or remove it to have the assistant."),
    (Code::AccessNarrowed, "Write `allow` to give the tool in any case, or `deny` to mean that it is not given."),
    (Code::KeyMisspelt, "Write the key as it is meant."),
    (Code::SeveralAgents, "Write each agent as a Markdown file of its own."),
    (Code::ListCut, "Shorten the list."),
    (Code::LeadingBlankRemoved, "Remove the blank lines: other systems skip such a file."),
    (
        Code::TextBeforeFrontmatter,
        "Begin the file with a line of three dashes, and move the text below the frontmatter: other systems skip such a file.",
    ),
    (Code::Dedented, "Remove the indent: other systems skip such a file."),
    (Code::FenceRemoved, "Remove the first and the last line: other systems skip such a file."),
    (Code::ClosingDelimiterRepaired, "End the frontmatter with a line of three dashes."),
    (Code::FrontmatterNotClosed, "Put a line of three dashes behind the last key."),
    (Code::OpeningDelimiterRepaired, "Begin the file with a line of three dashes: other systems skip such a file."),
    (
        Code::FrontmatterNotOpened,
        "If it is to be an assistant, put a line of three dashes before the keys and one behind them; if not, begin it with a heading.",
    ),
    (
        Code::NoFrontmatter,
        "If it is to be an assistant, begin it with frontmatter: a line of three dashes, `name` and `description`, and such a line again.",
    ),
    (Code::NameMissing, "If it is to be an assistant, give it a `name` and a `description`."),
    (Code::NameNotString, "Put quotes around the name."),
    (Code::NameTooLong, "Shorten the name."),
    (Code::NameLeadingDash, "Begin the name with a letter."),
    (Code::NameReservedCharacter, "Leave the sign out of the name."),
    (Code::ReservedName, "Rename the folder, if it is to be an assistant."),
    (Code::DescriptionMissing, "Say in `description` for which tasks it is; that is what a search looks at first."),
    (Code::EmptyBody, "Write the prompt below the frontmatter."),
    (Code::EmptyFile, "Remove the file, or write the assistant into it."),
    (Code::FileTooBig, "Shorten the prompt; put what is long into files that the assistant reads."),
    (Code::NotUtf8, "Save the file as UTF-8."),
    (Code::ControlCharacter, "Remove the character, or move the file away if it is no text."),
    (Code::Unreadable, "Look at the rights of the file and of its folder."),
    (Code::SpecialFile, "Move it out of the folder of assistants."),
    (Code::DanglingLink, "Remove the link, or mend what it leads to."),
    (Code::LinkOutside, "Copy the file into the folder, or name the other folder with `--assistants`."),
    (Code::TooDeep, "Move the files up."),
    (
        Code::TooManyFiles,
        "Name the folders that hold assistants with `--assistants`, instead of one that holds everything.",
    ),
    (Code::Shadowed, "Rename one of the two, or remove the one that is not wanted."),
    (Code::UntrustedCommand, "Look at what would run with `assistant-host trust`, and allow it by name if it may run."),
    (
        Code::ToolUnavailable,
        "Remove the tool from the definition, or map its name to a tool that is here in `[tool_aliases]` of the configuration; `assistant-host tools` lists them.",
    ),
    (Code::ToolMisspelt, "Write the name of the tool that is meant; `assistant-host tools` prints those of this host."),
    (
        Code::OutputSchemaUnusable,
        "Mend the schema as the message says: a JSON schema of at most 64 KiB whose references stay within it.",
    ),
    (
        Code::ModelReplaced,
        "Name a configured model, map the name in `[model_aliases]`, or add the model as `[models.NAME]`.",
    ),
    (Code::ModelRefused, "Name a configured model, map the name in `[model_aliases]`, or set `strict_models = false`."),
    (
        Code::LauncherUnknown,
        "Name a configured launcher, or add it as `[launchers.NAME]` with a `preset` or an `argv`; one with preset = \
         \"local\" is this machine as it is.",
    ),
    (Code::RunnerUnknown, "Name a configured runner, or add it as `[runners.NAME]` with a `command`."),
];

impl Code {
    /// What to do about it, in a sentence; none where nothing needs to be done.
    #[must_use]
    pub fn advice(self) -> Option<&'static str> {
        ADVICE.iter().find(|(code, _)| *code == self).map(|(_, advice)| *advice)
    }
}

#[cfg(test)]
mod tests {
    use super::super::diagnostic::Severity;
    use super::Code;

    #[test]
    fn each_code_is_explained() {
        for code in Code::ALL {
            let sentence = |text: &str| text.ends_with('.') && text.len() > 15;
            assert!(sentence(code.meaning()), "{code} has no meaning: {:?}", code.meaning());
            let advised = code.advice().is_some_and(sentence);
            assert!(
                advised || code.severity() == Severity::Info,
                "{code}: registry/advice.rs has nothing to do for it"
            );
        }
    }
}
