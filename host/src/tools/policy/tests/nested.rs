//! Commands within commands: how deep they are read.

use super::commands::CURL;
use super::*;

#[test]
fn nested_commands_are_read_in_no_time_or_not_at_all() {
    let policy = policy(CURL, Some(Path::new("/")));
    // What is read is allowed; what is nested deeper than is read is refused, and why is told.
    let check = |command: String, times: usize, read_until: usize, why: &str| {
        let shown = crate::text::cut(&command, 40);
        let told = rule(&policy, "shell__run_command", &json!({ "command": command }));
        let want = if times <= read_until { "allowed" } else { why };
        assert!(told.contains(want), "{shown}, {times} times: {told}");
    };
    let expands = "it expands a variable in a way that may run commands";
    let (calculates, deep, long) =
        ("it calculates with something else than numbers", "it is nested too deep", "it is longer than 16384 bytes");
    for (open, close, read_until, first_refused) in [
        ("$(curl ", ")", 5, deep),
        ("\"$(curl ", ")\"", 5, deep),
        ("${a:-", "}", 1, expands),
        ("\"${a:-", "}\"", 1, expands),
        ("<(curl ", ")", 5, deep),
        ("$((", "))", 0, calculates),
    ] {
        let command = |times: usize| format!("curl {}x{}", open.repeat(times), close.repeat(times));
        for times in 1..=read_until + 1 {
            check(command(times), times, read_until, first_refused);
        }
        check(command(20), 20, read_until, deep);
        let most = command(2_000);
        let why = if most.len() > 16_384 { long } else { deep };
        check(most, 2_000, read_until, why);
    }
    for (open, close, read_until, first_refused, last_refused) in [
        ("(", ")", 1, calculates, deep),
        ("{ ", "; }", 5, deep, deep),
        ("if ", "; then curl; fi", 20, long, long),
        ("! ", "", 20, deep, deep),
        ("while ", "; do curl; done", 20, long, long),
        ("time ", "", 5, "runs too many commands in each other", deep),
    ] {
        for times in [1, 3, 5, 20, 3_000] {
            let why = if times == 3_000 { last_refused } else { first_refused };
            let why = if (open, times) == ("(", 20) { deep } else { why };
            check(format!("{}curl x{}", open.repeat(times), close.repeat(times)), times, read_until, why);
        }
    }
}
