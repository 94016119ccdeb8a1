//! The codes of findings, explained.

use serde_json::{Value, json};

use crate::cli::say;
use crate::registry::{Code, nearest_name};

/// The code of this name.
pub(super) fn parse(text: &str) -> Result<Code, String> {
    let found = Code::ALL.iter().copied().find(|code| code.as_str() == text);
    found.ok_or_else(|| {
        let names: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        let near = nearest_name(text, &names).map(|name| format!("; `{name}` is one")).unwrap_or_default();
        format!("there is no such code{near}; `check --codes` lists them")
    })
}

/// Prints what `wanted`, or each code, means and what to do about it.
pub(super) fn explain(wanted: Option<Code>, as_json: bool) -> u8 {
    let codes = wanted.as_ref().map_or(Code::ALL, std::slice::from_ref);
    if as_json {
        let codes: Vec<Value> = codes
            .iter()
            .map(|code| {
                json!({
                    "code": code,
                    "severity": code.severity(),
                    "meaning": code.meaning(),
                    "advice": code.advice(),
                })
            })
            .collect();
        say(&json!({ "codes": codes }).to_string());
        return 0;
    }
    for code in codes {
        say(&format!("{} ({})\n    {}", code.as_str(), code.severity().label(), code.meaning()));
        if let Some(advice) = code.advice() {
            say(&format!("    {advice}"));
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn codes_are_found_by_their_names() {
        let check = |text: &str, want: &str| {
            let got = parse(text).map_or_else(|error| error, |code| format!("{code:?}"));
            assert_eq!(got, want);
        };
        check("yaml_repaired", "YamlRepaired");
        check("yaml_repared", "there is no such code; `yaml_repaired` is one; `check --codes` lists them");
        check("", "there is no such code; `check --codes` lists them");
    }
}
