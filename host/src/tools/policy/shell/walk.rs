//! From the parser's tree to commands, files that are read and files that are written.

use brush_parser::ast::{
    Command, CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList, IoFileRedirectKind as Kind,
    IoFileRedirectTarget as Target, IoHereDocument, IoRedirect, Pipeline, RedirectList, SimpleCommand, Word,
};

use super::words::{arithmetic, literal};
use super::{Script, Simple};
use crate::tools::policy::glob::HOLE;

impl Script {
    pub(super) fn list(&mut self, list: &CompoundList, depth: usize) -> Result<(), String> {
        for item in &list.0 {
            self.pipeline(&item.0.first, depth)?;
            for next in &item.0.additional {
                let (brush_parser::ast::AndOr::And(pipeline) | brush_parser::ast::AndOr::Or(pipeline)) = next;
                self.pipeline(pipeline, depth)?;
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline, depth: usize) -> Result<(), String> {
        pipeline.seq.iter().try_for_each(|command| self.command(command, depth))
    }

    fn command(&mut self, command: &Command, depth: usize) -> Result<(), String> {
        match command {
            Command::Simple(simple) => self.simple(simple, depth),
            Command::Compound(compound, redirects) => {
                self.compound(compound, depth)?;
                self.redirects(redirects.as_ref(), depth)
            }
            Command::Function(function) => {
                self.compound(&function.body.0, depth)?;
                self.redirects(function.body.1.as_ref(), depth)
            }
            Command::ExtendedTest(_) => Err("`[[` cannot be held to a pattern".to_owned()),
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, depth: usize) -> Result<(), String> {
        match compound {
            CompoundCommand::Arithmetic(command) => arithmetic(&command.expr.value),
            CompoundCommand::ArithmeticForClause(command) => {
                let parts = [&command.initializer, &command.condition, &command.updater];
                parts.into_iter().flatten().try_for_each(|part| arithmetic(&part.value))?;
                self.list(&command.body.list, depth)
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list, depth),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list, depth),
            CompoundCommand::ForClause(command) => {
                for value in command.values.iter().flatten() {
                    self.word(value, depth)?;
                }
                self.list(&command.body.list, depth)
            }
            CompoundCommand::CaseClause(command) => {
                self.word(&command.value, depth)?;
                for case in &command.cases {
                    case.patterns.iter().try_for_each(|pattern| self.word(pattern, depth).map(|_| ()))?;
                    case.cmd.iter().try_for_each(|list| self.list(list, depth))?;
                }
                Ok(())
            }
            CompoundCommand::IfClause(command) => {
                self.list(&command.condition, depth)?;
                self.list(&command.then, depth)?;
                for other in command.elses.iter().flatten() {
                    other.condition.iter().try_for_each(|list| self.list(list, depth))?;
                    self.list(&other.body, depth)?;
                }
                Ok(())
            }
            CompoundCommand::WhileClause(command) | CompoundCommand::UntilClause(command) => {
                self.list(&command.0, depth)?;
                self.list(&command.1.list, depth)
            }
        }
    }

    fn simple(&mut self, command: &SimpleCommand, depth: usize) -> Result<(), String> {
        let mut simple = Simple { sets: Vec::new(), words: Vec::new() };
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::AssignmentWord(_, word) | Item::Word(word) => {
                    let set = self.word(word, depth)?;
                    simple.sets.push(set);
                }
                Item::IoRedirect(redirect) => self.redirect(redirect, depth)?,
                Item::ProcessSubstitution(_, subshell) => self.list(&subshell.list, depth)?,
            }
        }
        if let Some(name) = &command.word_or_name {
            if name.value.contains('\\') {
                return Err("its command is written with a backslash".to_owned());
            }
            let word = self.word(name, depth)?;
            simple.words.push(word);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                Item::AssignmentWord(_, word) | Item::Word(word) => {
                    let word = self.word(word, depth)?;
                    simple.words.push(word);
                }
                Item::IoRedirect(redirect) => self.redirect(redirect, depth)?,
                Item::ProcessSubstitution(_, subshell) => {
                    self.list(&subshell.list, depth)?;
                    simple.words.push(HOLE.to_string());
                }
            }
        }
        if simple.words.is_empty() && simple.sets.is_empty() {
            return Ok(());
        }
        self.push(simple, depth)
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>, depth: usize) -> Result<(), String> {
        redirects.iter().flat_map(|list| &list.0).try_for_each(|redirect| self.redirect(redirect, depth))
    }

    fn redirect(&mut self, redirect: &IoRedirect, depth: usize) -> Result<(), String> {
        match redirect {
            IoRedirect::HereDocument(_, document) => here_document(document),
            IoRedirect::HereString(_, word) => self.word(word, depth).map(|_| ()),
            IoRedirect::OutputAndError(word, _) => self.file(Kind::Write, word, depth),
            IoRedirect::File(_, kind, target) => match target {
                Target::Fd(_) => Ok(()),
                Target::ProcessSubstitution(_, subshell) => self.list(&subshell.list, depth),
                Target::Filename(word) | Target::Duplicate(word) => self.file(kind.clone(), word, depth),
            },
        }
    }

    fn file(&mut self, kind: Kind, word: &Word, depth: usize) -> Result<(), String> {
        let file = self.word(word, depth)?;
        if file.starts_with("/dev/tcp") || file.starts_with("/dev/udp") {
            return Err("it opens a connection by itself".to_owned());
        }
        let number = file == "-" || (!file.is_empty() && file.bytes().all(|byte| byte.is_ascii_digit()));
        match kind {
            Kind::DuplicateInput | Kind::DuplicateOutput if number => {}
            Kind::Read | Kind::DuplicateInput => self.reads.push(file),
            Kind::ReadAndWrite => {
                self.reads.push(file.clone());
                self.writes.push(file);
            }
            Kind::Write | Kind::Append | Kind::Clobber | Kind::DuplicateOutput => self.writes.push(file),
        }
        Ok(())
    }

    /// What a word becomes, with holes; what is substituted in it is run too.
    fn word(&mut self, word: &Word, depth: usize) -> Result<String, String> {
        let (text, substituted) = literal(&word.value)?;
        substituted.iter().try_for_each(|script| self.add(script, depth + 1))?;
        Ok(text)
    }
}

/// A document in which nothing is substituted.
fn here_document(document: &IoHereDocument) -> Result<(), String> {
    let end = &document.here_end.value;
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let quoted = ['\'', '"']
        .iter()
        .any(|quote| end.strip_prefix(*quote).and_then(|rest| rest.strip_suffix(*quote)).is_some_and(plain));
    if !quoted && !plain(end) {
        return Err("where its document ends is not told by a plain word".to_owned());
    }
    let document = &document.doc.value;
    if !quoted && (document.contains(['`', '\\']) || ["$(", "${", "$["].iter().any(|sign| document.contains(sign))) {
        return Err("its document has something in it that is substituted; `<<'END'` takes it as it is".to_owned());
    }
    Ok(())
}
