//! What a word of a shell becomes: what is known of it, and what is substituted in it.

use brush_parser::ParserOptions;
use brush_parser::word::{self, Parameter, ParameterExpr, WordPiece, WordPieceWithSource};

use crate::tools::policy::glob::HOLE;

/// A word and what it becomes: its text with holes, and the scripts whose output is put into it.
///
/// # Errors
/// What is in it that cannot be told.
pub(super) fn literal(word: &str) -> Result<(String, Vec<String>), String> {
    let unreadable = || "a word of it cannot be read".to_owned();
    let parsed = std::panic::catch_unwind(|| word::parse(word, &ParserOptions::default()));
    let pieces = parsed.ok().and_then(Result::ok).ok_or_else(unreadable)?;
    let mut read = Read { word, text: String::new(), scripts: Vec::new(), spread: false, open_brace: false };
    if word.starts_with('=') && word.len() > 1 {
        return Err("a word of it begins with `=`, which some shells read as a command".to_owned());
    }
    read.pieces(&pieces, 0, word.len(), false)?;
    let text = if read.spread { HOLE.to_string() } else { read.text };
    Ok((text, read.scripts))
}

/// Refuses arithmetic in which anything but numbers counts: a name in it may run commands.
pub(super) fn arithmetic(expression: &str) -> Result<(), String> {
    let known = |c: char| c.is_ascii_digit() || " +-*/%()<>=!&|^~?:,".contains(c);
    match expression.chars().all(known) {
        true => Ok(()),
        false => Err("it calculates with something else than numbers".to_owned()),
    }
}

struct Read<'a> {
    word: &'a str,
    text: String,
    scripts: Vec<String>,
    /// It becomes the names of files, or several words.
    spread: bool,
    /// A brace that is not quoted stands before what is read; quotes between it and a comma keep neither from spreading.
    open_brace: bool,
}

impl Read<'_> {
    /// All pieces of the word between `from` and `to`, which they have to cover.
    fn pieces(&mut self, pieces: &[WordPieceWithSource], from: usize, to: usize, quoted: bool) -> Result<(), String> {
        let mut at = from;
        for (index, piece) in pieces.iter().enumerate() {
            if piece.start_index != at {
                return Err("a word of it cannot be read".to_owned());
            }
            at = piece.end_index;
            self.piece(piece, index + 1 == pieces.len(), quoted)?;
        }
        if at == to { Ok(()) } else { Err("a word of it cannot be read".to_owned()) }
    }

    fn piece(&mut self, piece: &WordPieceWithSource, last: bool, quoted: bool) -> Result<(), String> {
        match &piece.piece {
            WordPiece::Text(text) => self.plain(text, last, quoted)?,
            WordPiece::SingleQuotedText(text) => self.text.push_str(text),
            // What stands in it is not the same in every shell.
            WordPiece::AnsiCQuotedText(_) | WordPiece::TildePrefix(_) => self.text.push(HOLE),
            WordPiece::DoubleQuotedSequence(inner) => {
                self.pieces(inner, piece.start_index + 1, piece.end_index - 1, true)?;
            }
            WordPiece::GettextDoubleQuotedSequence(inner) => {
                self.pieces(inner, piece.start_index + 2, piece.end_index - 1, true)?;
                self.text.push(HOLE);
            }
            WordPiece::EscapeSequence(text) => match text.chars().nth(1) {
                None | Some('\n') => return Err("a line of it goes on behind a backslash".to_owned()),
                Some(sign) => self.text.push(sign),
            },
            WordPiece::ParameterExpansion(expression) => {
                let source = self.word.get(piece.start_index..piece.end_index).unwrap_or_default();
                if !is_plain(expression, source) {
                    return Err("it expands a variable in a way that may run commands".to_owned());
                }
                self.text.push(HOLE);
            }
            WordPiece::CommandSubstitution(script) => {
                self.scripts.push(script.clone());
                self.text.push(HOLE);
            }
            WordPiece::BackquotedCommandSubstitution(script) => {
                if script.contains('\\') {
                    return Err("it has a backslash between backquotes".to_owned());
                }
                self.scripts.push(script.clone());
                self.text.push(HOLE);
            }
            WordPiece::ArithmeticExpression(expression) => {
                arithmetic(&expression.value)?;
                self.text.push(HOLE);
            }
        }
        Ok(())
    }

    fn plain(&mut self, text: &str, last: bool, quoted: bool) -> Result<(), String> {
        let dollar = text.char_indices().find(|(_, sign)| *sign == '$');
        let ends_so = dollar.is_some_and(|(at, _)| last && at + 1 == text.len());
        let followed_by_blank =
            dollar.is_some_and(|(at, _)| quoted && text[at + 1..].starts_with([' ', '/', '.', ',', '|', ')']));
        if text.contains('`') || (dollar.is_some() && !ends_so && !followed_by_blank) {
            return Err("something in it is substituted that cannot be read".to_owned());
        }
        if text.contains("\\\n") || (!quoted && text.contains(['\\', '\n'])) {
            return Err("a line of it goes on behind a backslash".to_owned());
        }
        if !quoted {
            if text.contains(['(', ')']) {
                return Err("it has parentheses within a word".to_owned());
            }
            self.open_brace |= text.contains('{');
            let braces = self.open_brace && (text.contains(',') || text.contains(".."));
            self.spread |= braces || text.contains(['*', '?', '[']);
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// Whether a variable is put in as it is, or with a text that substitutes nothing.
fn is_plain(expression: &ParameterExpr, source: &str) -> bool {
    let named = |parameter: &Parameter| {
        matches!(parameter, Parameter::Named(_) | Parameter::Positional(_) | Parameter::Special(_))
    };
    let inner = source.trim_start_matches('$');
    let clean = !inner.contains(['$', '`', '(', '<', '[', '\\', '"', '\'']);
    match expression {
        ParameterExpr::Parameter { parameter, indirect } | ParameterExpr::ParameterLength { parameter, indirect } => {
            named(parameter) && !indirect
        }
        ParameterExpr::UseDefaultValues { parameter, indirect, .. }
        | ParameterExpr::UseAlternativeValue { parameter, indirect, .. }
        | ParameterExpr::RemoveSmallestSuffixPattern { parameter, indirect, .. }
        | ParameterExpr::RemoveLargestSuffixPattern { parameter, indirect, .. }
        | ParameterExpr::RemoveSmallestPrefixPattern { parameter, indirect, .. }
        | ParameterExpr::RemoveLargestPrefixPattern { parameter, indirect, .. } => {
            named(parameter) && !indirect && clean
        }
        ParameterExpr::AssignDefaultValues { .. }
        | ParameterExpr::IndicateErrorIfNullOrUnset { .. }
        | ParameterExpr::Substring { .. }
        | ParameterExpr::Transform { .. }
        | ParameterExpr::UppercaseFirstChar { .. }
        | ParameterExpr::UppercasePattern { .. }
        | ParameterExpr::LowercaseFirstChar { .. }
        | ParameterExpr::LowercasePattern { .. }
        | ParameterExpr::ReplaceSubstring { .. }
        | ParameterExpr::VariableNames { .. }
        | ParameterExpr::MemberKeys { .. } => false,
    }
}
