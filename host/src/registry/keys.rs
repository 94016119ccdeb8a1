//! The keys that are known, in any spelling, and the reading of frontmatter key by key.

use super::diagnostic::{Code, Diagnostic};
use super::yaml::{self, Broken, Node};

/// Every top-level key of the formats that are read, folded. Only such a line begins a new key in frontmatter that is
/// no valid YAML, so that `Context:` or `user:` within a description do not.
const KNOWN: &[&str] = &[
    "agents",
    "allowedcallers",
    "allowedtools",
    "applyto",
    "argumenthint",
    "author",
    "background",
    "builtinservices",
    "category",
    "color",
    "created",
    "description",
    "developerinstructions",
    "disable",
    "disabled",
    "disablemodelinvocation",
    "disallowedtools",
    "displayname",
    "effort",
    "emoji",
    "extensions",
    "handoffs",
    "hidden",
    "hooks",
    "icon",
    "id",
    "infer",
    "initialprompt",
    "instructions",
    "isbackground",
    "isolation",
    "keywords",
    "kind",
    "license",
    "maxsteps",
    "maxturns",
    "mcp",
    "mcpservers",
    "memory",
    "metadata",
    "mode",
    "model",
    "modelprovider",
    "models",
    "modelreasoningeffort",
    "name",
    "nicknamecandidates",
    "options",
    "owner",
    "parameters",
    "permission",
    "permissionmode",
    "permissions",
    "profile",
    "prompt",
    "readonly",
    "reasoningeffort",
    "response",
    "retry",
    "sandboxmode",
    "session",
    "settings",
    "skills",
    "steps",
    "subrecipes",
    "tags",
    "target",
    "temperature",
    "timeout",
    "timeoutmins",
    "timeoutms",
    "title",
    "tool",
    "tools",
    "topp",
    "triggers",
    "updated",
    "userinvocable",
    "userinvokable",
    "variant",
    "version",
    "vibe",
];

/// A key without case, `-`, `_` and blanks: `mcp-servers`, `mcp_servers` and `mcpServers` are one.
pub(crate) fn fold(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

/// The entries of frontmatter that begins on line `first` of `file`.
///
/// Valid YAML is taken as it is; else each known key is read alone, and what is no YAML even then is taken as text.
/// Repairs and double keys are told in `warnings`; of a double key the last value stays.
pub(super) fn read(text: &str, first: u32, file: &str, warnings: &mut Vec<Diagnostic>) -> Vec<(String, Node)> {
    let entries = match yaml::parse(text) {
        Ok(mut entries) => {
            entries.iter_mut().for_each(|(_, node)| node.line += first - 1);
            entries
        }
        Err(broken) => {
            let entries = scan(text, first);
            warnings.push(repaired(&broken, first, file));
            entries
        }
    };
    let mut kept: Vec<(String, Node)> = Vec::with_capacity(entries.len());
    for (key, node) in entries {
        match kept.iter_mut().find(|(other, _)| fold(other) == fold(&key)) {
            Some(entry) => {
                let message = format!("the key `{key}` stands there twice; the last one counts");
                warnings.push(Diagnostic::new(Code::DuplicateKey, file, message).at(node.line, None));
                *entry = (key, node);
            }
            None => kept.push((key, node)),
        }
    }
    kept
}

fn repaired(broken: &Broken, first: u32, file: &str) -> Diagnostic {
    let (code, what) = match broken.too_complex {
        true => (Code::YamlTooComplex, "is too complex"),
        false => (Code::YamlRepaired, "is no valid YAML"),
    };
    let message = format!("the frontmatter {what} ({}); it was read key by key", broken.message);
    Diagnostic::new(code, file, message)
        .at(broken.line.saturating_add(first - 1), Some(broken.column))
        .hint("put quotes around a value with `: `, or one that begins with a sign")
}

/// Splits at known keys, and reads each alone.
fn scan(text: &str, first: u32) -> Vec<(String, Node)> {
    let mut blocks: Vec<(&str, u32, usize, usize)> = Vec::new();
    let mut at = 0;
    for (line, number) in text.split('\n').zip(first..) {
        let end = at + line.len();
        match known_key(line) {
            Some(key) => blocks.push((key, number, at, end)),
            None => blocks.iter_mut().last().into_iter().for_each(|block| block.3 = end),
        }
        at = end + 1;
    }
    blocks.into_iter().map(|(key, line, from, to)| (key.to_owned(), alone(line, &text[from..to]))).collect()
}

/// The key that `line` begins, if it is a known one.
fn known_key(line: &str) -> Option<&str> {
    let (key, rest) = line.split_once(':')?;
    let key = key.trim_end();
    let blank = rest.is_empty() || rest.starts_with([' ', '\t']);
    let word = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    (blank && word && KNOWN.contains(&fold(key).as_str())).then_some(key)
}

/// The value of one key: YAML if its block is that, else the text behind the colon.
fn alone(line: u32, block: &str) -> Node {
    if let Ok(mut entries) = yaml::parse(block)
        && entries.len() == 1
        && let Some((_, node)) = entries.pop()
    {
        return Node { line, ..node };
    }
    let value = block.split_once(':').map_or("", |(_, value)| value);
    let value = value.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    Node::text(value.trim(), line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_key_by_key() {
        let check = |text: &str, expected: &str| {
            let mut warnings = Vec::new();
            let entries = read(text, 2, "f.md", &mut warnings);
            let entries: Vec<_> =
                entries.iter().map(|(key, node)| format!("{key}@{}={}", node.line, node.json())).collect();
            let warnings: Vec<_> = warnings.iter().map(|w| format!("{}@{:?}:{:?}", w.code, w.line, w.column)).collect();
            assert_eq!(format!("{} {}", entries.join(" "), warnings.join(" ")).trim_end(), expected, "{text:?}");
        };
        check("name: a\ntools: [x, y]", r#"name@2="a" tools@3=["x","y"]"#);
        check(
            "name: a\ndescription: Use it: always\nmodel: x",
            r#"name@2="a" description@3="Use it: always" model@4="x" yaml_repaired@Some(3):Some(20)"#,
        );
        check(
            "description: So. Examples:\n<example>\nContext: late\nuser: \"hi\"\n</example>\nmodel: x",
            r#"description@2="So. Examples:\n<example>\nContext: late\nuser: \"hi\"\n</example>" model@7="x" yaml_repaired@Some(2):Some(26)"#,
        );
        check(
            "description: \"Open\ntools: Read",
            r#"description@2="\"Open" tools@3="Read" yaml_repaired@Some(2):Some(14)"#,
        );
        check("max-turns: 1\nmaxTurns: 2", r#"maxTurns@3=2 duplicate_key@Some(3):None"#);
        check("just prose\nmore: prose: here", " yaml_repaired@Some(3):Some(5)");
        check("name: on\nmcp:\n\t- orders", r#"name@2="on" mcp@3="- orders" yaml_repaired@Some(4):Some(2)"#);
    }
}
