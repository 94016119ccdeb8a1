use super::*;

/// The commands of `text`, each with its words in `[]`, what is set for it, and what is written and read.
fn check(text: &str, want: &str) {
    let told = match Script::parse(text) {
        Err(why) => why,
        Ok(Script { commands, writes, reads }) => {
            let words =
                |words: &[String]| words.iter().map(|word| word.replace(HOLE, "_")).collect::<Vec<_>>().join("|");
            let mut told: Vec<String> = commands
                .iter()
                .map(|one| {
                    format!(
                        "{}[{}]",
                        one.sets.iter().map(|set| format!("{set} ")).collect::<String>(),
                        words(&one.words)
                    )
                })
                .collect();
            told.extend(writes.iter().map(|file| format!(">{}", file.replace(HOLE, "_"))));
            told.extend(reads.iter().map(|file| format!("<{}", file.replace(HOLE, "_"))));
            told.join(" ")
        }
    };
    assert_eq!(told, want, "{text}");
}

#[test]
fn words() {
    check("a 'b c' \"d $e\" f\\ g", "[a|b c|d _|f g]");
    check("a *.rs {b,c} {} ~/x $x ${x} a${x}b", "[a|_|_|{}|_/x|_|_|a_b]");
    check("a \"it's\" 'say \"x\"' \"\\$5\" '$5'", "[a|it's|say \"x\"|$5|$5]");
    check("a \"x$\" b$", "[a|x$|b$]");
    check("a --x=y b=c", "[a|--x=y|b=c]");
    check("a \"\" ''", "[a||]");
    check("a $((1+2)) \"$((3))\"", "[a|_|_]");
}

#[test]
fn commands_and_files() {
    check("a | b && c; d & e || f", "[a] [b] [c] [d] [e] [f]");
    check("A=b B='c d' a", "A=b B=c d [a]");
    check("A=b", "A=b []");
    check("a > b 2>> c < d 2>&1 &> e >| f <> g >& h", "[a] >b >c >e >f >g >h <d <g");
    check("a > $x", "[a] >_");
    check("a $(b $(c)) `d`", "[c] [b|_] [d] [a|_|_]");
    check("for x in a $(b); do c $x; done", "[b] [c|_]");
    check("a <<'E'\n$(b)\nE\nc", "[a] [c]");
    check("bash -c 'a; b' x", "[bash|-c|a; b|x] [a] [b]");
    check("eval a 'b; c'", "[eval|a|b; c] [a|b] [c]");
    check("f() { a; } > b", "[a] >b");
}

#[test]
fn what_cannot_be_told() {
    check("$x", "which command it runs is known only when it runs");
    check("[[ a ]]", "`[[` cannot be held to a pattern");
    check("a 'b", "it cannot be read as a command of a shell");
    check("a\rb", "it has the sign U+000D in it, which is not seen");
    check("a $((b))", "it calculates with something else than numbers");
    check("a ${b@P}", "it expands a variable in a way that may run commands");
    check("a < /dev/tcp/b/1", "it opens a connection by itself");
    check("bash -c \"$x\"", "what it hands to a shell is known only when it runs");
    check(&"a ".repeat(9_000), "it is longer than 16384 bytes");
    check(&format!("a {}", "$(b ".repeat(9)), "it is nested too deep");
}
