//! docker and the engines of a fleet with programs that stand in for them: they note what they are told, and run the runner as
//! the real ones do. The configurations are those of the guide.

use rmcp::ServiceExt;
use rmcp::transport::TokioChildProcess;

use super::*;
use crate::crash::{McpClient, call, mcp};

/// Notes its words, does what the real one does with its variables, and runs what is behind them.
const BEGIN: &str = "printf '%s\\n' \"$*\" >> \"$0.log\"";

/// What stands in for a program, by how that takes variables and where its runner's command begins.
fn stand_in(begins: &str, variables: &str) -> String {
    format!(
        "{BEGIN}\nwhile [ $# -gt 0 ] && [ \"$1\" != {begins} ]; do case \"$1\" in {variables} esac; shift; done\nshift\n\
         [ \"$1\" != /assistant-runner-of-the-host ] || set -- {RUNNER}\n\
         test -n \"$ASSISTANT_PROCESS_ID\" || exit 9\nexec \"$@\""
    )
}

/// A host whose programs these are, with a configuration.
async fn host(config: &str, bin: &Bin, steps: Value) -> (Bed, McpClient) {
    let steps = script(&[("x", steps)]);
    let bed = Bed::new(RUNNER, &[("x.md", &conformance::bed::assistant("x", ""))], &steps);
    let mut command = mcp(&bed, &steps);
    let file = bed.dir.path().join("config.toml");
    let model = std::fs::read_to_string(&file).expect("a configuration");
    std::fs::write(&file, format!("default_launcher = \"there\"\n{model}\n{config}")).expect("a file");
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", bin.0.path().display()));
    let client: McpClient = ().serve(TokioChildProcess::new(command).expect("a process")).await.expect("a client");
    (bed, client)
}

/// Runs `x` to its end on a host whose programs are these, with a configuration; gives the process and what `program` was told.
pub(super) async fn ran(
    config: &str,
    program: &str,
    begins: &str,
    variables: &str,
    working_dir: Option<&str>,
) -> (String, String) {
    let text = stand_in(begins, variables);
    let bin = Bin::new(&[(program, &text), ("assistant-runner", &format!("exec {RUNNER} \"$@\""))]);
    let (_bed, client) = host(config, &bin, json!([{ "text": "done" }])).await;
    let mut asked = json!({ "assistant_id": "x", "query": "go", "run_mode": "sync" });
    if let Some(dir) = working_dir {
        asked["working_dir"] = json!(dir);
    }
    let spawned = call(&client, "spawn_assistant", asked).await;
    let polled =
        call(&client, "poll_assistant", json!({ "process_id": spawned["process_id"], "wait_ms": 20_000 })).await;
    assert_eq!(polled["process"]["status"], "finished", "{config}: {polled}");
    client.cancel().await.expect("it ends");
    let told = std::fs::read_to_string(bin.path(&format!("{program}.log"))).expect("it was run");
    (spawned["process_id"].as_str().expect("an id").to_owned(), told)
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_is_told_names_of_variables_and_what_it_may() {
    let config =
        format!("[launchers.there]\npreset = \"docker\"\nimage = \"a/b:1\"\nbring = {}\nwrite = true", json!(RUNNER));
    let (id, told) = ran(&config, "docker", "a/b:1", "x) ;;", None).await;
    let number = |which: &str| {
        let told = Command::new("id").arg(which).output().expect("id");
        String::from_utf8_lossy(&told.stdout).trim().to_owned()
    };
    let user = format!("{}:{}", number("-u"), number("-g"));
    let begin = format!(
        "run --rm --interactive --init --name assistant-{id} --user={user} --network none --read-only --tmpfs /tmp --cap-drop=all \
         --security-opt no-new-privileges --env=ASSISTANT_PROCESS_ID --env=ASSISTANT_HOST_DEPTH --volume="
    );
    assert!(told.starts_with(&begin), "{told}");
    for part in [
        "/project:rw",
        ":/assistant-runner-of-the-host:ro",
        " --workdir /",
        " --entrypoint= a/b:1 /assistant-runner-of-the-host\n",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// What a program was told, line by line, as soon as that are so many.
async fn until_told(bin: &Bin, program: &str, lines: usize) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let told = std::fs::read_to_string(bin.path(&format!("{program}.log"))).unwrap_or_default();
        let whole: Vec<String> =
            told.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(Into::into).collect();
        if whole.len() >= lines {
            return whole.iter().map(|line| line.trim_end().to_owned()).collect();
        }
        assert!(begun.elapsed() < SOON, "{program} is told {lines}: {told}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Kills a process that heeds nothing, on a host whose programs are these; gives its id and what `program` was told by then,
/// line by line: the last is what ends what it may have left over there.
async fn killed(config: &str, starts: &str, program: &str) -> (String, Vec<String>) {
    let stays = format!("{BEGIN}\ncase \"$1\" in rm | delete) ;; *) exec sleep 1000 ;; esac");
    let bin = Bin::new(&[(starts, &stays), ("scancel", BEGIN), ("assistant-runner", &format!("exec {RUNNER} \"$@\""))]);
    let config = format!("{config}\n[limits]\nshutdown_ms = 100");
    let (_bed, client) = host(&config, &bin, json!([{ "hang": true }])).await;
    let spawned = call(&client, "spawn_assistant", json!({ "assistant_id": "x", "query": "go" })).await;
    let process = spawned["process_id"].clone();
    until_told(&bin, starts, 1).await;
    call(&client, "cancel_assistant", json!({ "process_id": process })).await;
    let seen = call(&client, "poll_assistant", json!({ "process_id": process, "wait_ms": 20_000 })).await;
    assert_eq!(seen["process"]["status"], "cancelled", "{seen}");
    until_told(&bin, program, if starts == program { 2 } else { 1 }).await;
    client.cancel().await.expect("it ends");
    (process.as_str().expect("an id").to_owned(), until_told(&bin, program, 1).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_over_there_is_told_its_name() {
    let docker = format!("preset = \"docker\"\nimage = \"a/b:1\"\nbring = {}", json!(RUNNER));
    let kubectl = "preset = \"kubectl\"\nimage = \"a/b:1\"\nnamespace = \"n\"";
    for (launcher, starts, ends, words) in [
        (docker.as_str(), "docker", "docker", "rm --force --volumes assistant-{id}"),
        (
            kubectl,
            "kubectl",
            "kubectl",
            "delete pod assistant-{id} --ignore-not-found --now --wait=false --namespace=n",
        ),
        ("preset = \"srun\"", "srun", "scancel", "--quiet --name=assistant-{id}"),
    ] {
        let (id, told) = killed(&format!("[launchers.there]\n{launcher}"), starts, ends).await;
        let last = told.last().expect("it was told");
        assert_eq!(*last, words.replace("{id}", &id), "{told:?}");
        assert_eq!(told.len(), if starts == ends { 2 } else { 1 }, "once: {told:?}");
    }
}
