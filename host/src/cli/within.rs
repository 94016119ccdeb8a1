//! Within which assistant this program runs, if within any: a runner of this host or another one tells it to all that it
//! starts, by variables. An agent may keep its environment from what it starts itself, as some do from their servers; so where
//! the system tells, the environments of the programs above count too.

use std::ffi::OsString;

use crate::caller::Within;
use crate::launcher::{DEPTH, MARK};
use crate::process_table::LEVEL_UNKNOWN;

#[cfg_attr(target_os = "linux", path = "within/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "within/plain.rs")]
mod above;

/// The assistant within which this program runs; level 0 is within none.
pub(super) fn within() -> Within {
    told(|name| std::env::var_os(name)).or_else(above::told).unwrap_or_default()
}

/// What an environment tells; none where it tells nothing. A level that is no number is as deep as can be, so that a broken
/// value lets nothing grow.
fn told(variable: impl Fn(&str) -> Option<OsString>) -> Option<Within> {
    let depth = variable(DEPTH)?;
    let level = depth.to_str().and_then(|text| text.parse().ok()).unwrap_or(LEVEL_UNKNOWN);
    let process = variable(MARK).and_then(|id| id.to_str()?.parse().ok());
    Some(Within { level, process: process.filter(|_| level > 0) })
}

#[cfg(test)]
mod tests {
    use assistant_protocol::ids::ProcessId;

    use super::*;

    #[test]
    fn an_environment_tells_how_deep_it_is() {
        let id = ProcessId::mint();
        let check = |depth: Option<&str>, mark: Option<String>, want: Option<Within>| {
            let variable = |name: &str| match name {
                DEPTH => depth.map(OsString::from),
                _ => mark.clone().map(OsString::from),
            };
            assert_eq!(told(variable), want, "{depth:?} {mark:?}");
        };
        let within = |level, process| Some(Within { level, process });
        check(None, Some(id.to_string()), None);
        check(Some("0"), Some(id.to_string()), within(0, None));
        check(Some("2"), Some(id.to_string()), within(2, Some(id)));
        check(Some("2"), Some("x".to_owned()), within(2, None));
        check(Some("many"), None, within(LEVEL_UNKNOWN, None));
    }
}
