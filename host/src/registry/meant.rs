//! Keys in which authors limit an assistant in their own words: which known key each means.

/// Words behind, before or between which `tools` may stand, for tools that are given.
const GIVES: &[&str] = &[
    "access",
    "allow",
    "allowed",
    "allowlist",
    "approved",
    "available",
    "enable",
    "enabled",
    "grant",
    "granted",
    "ids",
    "include",
    "included",
    "list",
    "names",
    "only",
    "permit",
    "permitted",
    "set",
    "sets",
    "whitelist",
];
/// The same for tools that are taken away.
const TAKES: &[&str] = &[
    "ban",
    "banned",
    "blacklist",
    "block",
    "blocked",
    "blocklist",
    "denied",
    "deny",
    "denylist",
    "disable",
    "disabled",
    "disallow",
    "disallowed",
    "exclude",
    "excluded",
    "forbid",
    "forbidden",
    "no",
    "omit",
    "omitted",
    "prohibit",
    "prohibited",
    "remove",
    "removed",
    "without",
];
/// Words of those that mean tools where they stand alone.
const ALONE: &[&str] = &[
    "allow",
    "allowed",
    "allowlist",
    "ban",
    "banned",
    "blacklist",
    "block",
    "blocked",
    "blocklist",
    "denied",
    "deny",
    "denylist",
    "disallow",
    "disallowed",
    "forbid",
    "forbidden",
    "permit",
    "permitted",
    "prohibit",
    "prohibited",
    "whitelist",
];
/// What is no word for tools.
const OTHERS: &[(&str, &str)] = &[
    ("allowagents", "agents"),
    ("allowcallers", "allowedcallers"),
    ("allowedagents", "agents"),
    ("allowedsubagents", "agents"),
    ("callers", "allowedcallers"),
    ("permittedagents", "agents"),
    ("permittedcallers", "allowedcallers"),
    ("permittedsubagents", "agents"),
    ("sandbox", "sandboxmode"),
    ("subagents", "agents"),
    ("toolpermission", "permissions"),
    ("toolpermissions", "permissions"),
    ("toolspermissions", "permissions"),
];

/// The known key that the unknown folded key `key` means.
pub(super) fn meant(key: &str) -> Option<&'static str> {
    if let Some((_, right)) = OTHERS.iter().find(|(other, _)| *other == key) {
        return Some(right);
    }
    let of_word = |word: &str| match (GIVES.contains(&word), TAKES.contains(&word)) {
        (true, _) => Some("allowedtools"),
        (_, true) => Some("disallowedtools"),
        _ => None,
    };
    let beside = ["tools", "tool"].iter().find_map(|tool| {
        let word = key.strip_prefix(tool).or_else(|| key.strip_suffix(tool))?;
        of_word(word)
    });
    beside.or_else(|| of_word(key).filter(|_| ALONE.contains(&key)))
}

#[cfg(test)]
mod tests {
    use super::super::known::{fold, look};
    use super::*;

    #[test]
    fn words_for_known_keys() {
        let check = |key: &str, expected: Option<&str>| assert_eq!(meant(&fold(key)), expected, "{key}");
        for key in [
            "permittedTools",
            "tool_list",
            "tools-allow",
            "allow",
            "permitted",
            "toolset",
            "tool names",
            "includeTools",
        ] {
            check(key, Some("allowedtools"));
        }
        for key in ["forbid", "Forbidden-Tools", "no_tools", "toolsBlocked", "denylist", "tool-blacklist", "deny"] {
            check(key, Some("disallowedtools"));
        }
        check("sub-agents", Some("agents"));
        check("sandbox", Some("sandboxmode"));
        check("toolPermissions", Some("permissions"));
        for key in ["list", "names", "exclude", "toolUse", "tooling", "toolbox", "no", "", "agentlist", "blocks"] {
            check(key, None);
        }
    }

    #[test]
    fn each_is_unknown_and_means_one_that_limits() {
        let tools = |word: &&str| [format!("{word}tools"), format!("tools{word}")];
        let words = GIVES.iter().chain(TAKES).flat_map(tools);
        let keys = words.chain(ALONE.iter().chain(OTHERS.iter().map(|(key, _)| key)).map(|key| (*key).to_owned()));
        for key in keys {
            assert_eq!(fold(&key), key);
            let right = look(&key).is_none().then(|| meant(&key)).flatten();
            let limits = right.is_some_and(|right| look(right).is_some_and(|(field, _)| field.is_access()));
            assert!(limits || look(&key).is_some_and(|(field, _)| field.is_access()), "{key}");
        }
    }
}
